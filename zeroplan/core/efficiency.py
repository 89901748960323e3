"""How much of a GPU's compute is left when nothing but its copies is waited for: ZeRO-Infinity's efficiency.

Source: ZeRO-Infinity (Rajbhandari et al., arXiv 2104.07857) section 4.1 and 4.2.
"""

from zeroplan.core.estimate import Estimate
from zeroplan.core.plan import Plan

FORWARD_FLOPS = 2
"""Per parameter and token: a multiplication and an addition."""
BACKWARD_PASSES = 2
"""A backward pass costs two forward passes."""
TERA = 10**12


def efficiency(intensity: float, bytes_per_s: float, peak_flops: float) -> float:
    """The share of the peak that is reached: ait * bw / (ait * bw + peak), with `intensity` in FLOP per byte moved."""
    return intensity * bytes_per_s / (intensity * bytes_per_s + peak_flops)


def step_flops(plan: Plan) -> int | None:
    """Floating-point operations of one GPU in a step; None without activations.

    2 per parameter that a token uses, for the forward pass, for two in backward and for one more with recomputation.
    """
    work = plan.workload
    if work is None:
        return None
    passes = 1 + BACKWARD_PASSES + (1 if work.recomputes else 0)
    return FORWARD_FLOPS * passes * plan.model.active_params * work.tokens * plan.strategy.grad_accum


def left_by_copies(found: Estimate) -> float | None:
    """The share of the GPU's peak compute that its copies leave at most, nothing overlapped; None where unknown."""
    flops, seconds, gpu = step_flops(found.plan), found.copy_time.link, found.plan.cluster.gpu
    moved = sum(copy.wire_bytes for copy in found.traffic.copies)
    if flops is None or not seconds or not moved or gpu is None or gpu.matmul_tflops is None:
        return None
    return efficiency(flops / moved, moved / seconds, gpu.matmul_tflops * TERA)
