"""The four meters that users compare with: what states take, what tensors take, what the allocator holds, what the
driver shows. Each is a range, low to high, in bytes per GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from zeroplan.core.hardware import MIB, Gpu
from zeroplan.core.ledger import Ledger
from zeroplan.core.plan import Plan
from zeroplan.core.rules import Slack

if TYPE_CHECKING:
    from zeroplan.core.estimate import Estimate

COMPILED = (90, 92, 94)
"""Percent of the eager run's memory that a compiled one reserves, mean and two standard deviations: 28.72 of 31.02 and
53.83 of 59.41 (pytorch/torchtitan commit 83c879f18), 77.0 of 82.4 and 62.0 of 67.0
(benchmarks/llama3_h100_202412_torchtitan.md), 81.85 of 89.33 GiB (commit d66b72a6a)."""
CONTEXT_MIB = (256, 1823)
"""A CUDA context at its smallest and largest: torch 2.7 on RTX 3090 (InvokeAI issue 9413); torch 1.10.2 on A100, which
loaded every kernel."""
NCCL_MIB = (342, 544, 1600)
"""One communicator, low, expected, high: 342 to 392 (aiconfigurator's model), 544 to 688 per group on A100 (NVIDIA/nccl
issue 964), about 1600 (NVIDIA/nccl issue 864)."""


class Range(NamedTuple):
    """Bytes per GPU: the least, the expected and the most."""

    low: int
    expected: int
    high: int

    def plus(self, low: int, expected: int, high: int) -> Range:
        return Range(self.low + low, self.expected + expected, self.high + high)


class Meters(NamedTuple):
    """What four meters show of one stage on one card; all but the first are unknown without activations."""

    resident: Range
    """Model states while gradients exist."""
    allocated: Range | None = None
    """Tensors at the peak: torch.cuda.max_memory_allocated."""
    reserved: Range | None = None
    """The allocator's blocks: torch.cuda.max_memory_reserved."""
    device: Range | None = None
    """nvidia-smi: the allocator, the CUDA context and NCCL."""


class Need(NamedTuple):
    """What a plan needs of a card, bytes: comfortably, and with every cached block given back."""

    comfortable: int
    squeezed: int


def need(plan: Plan, memory: Ledger) -> Need:
    """The peak as it is without activations, whose slack nobody knows; else what the allocator takes for it."""
    slack = plan.framework.slack
    if plan.workload is None or slack is None:
        return Need(comfortable=memory.peak_bytes, squeezed=memory.peak_bytes)
    taken = _taken(plan, memory, slack)
    squeezed = _percent(_allocated(plan, memory).expected, slack.squeezed)
    return Need(comfortable=max(taken.high, squeezed), squeezed=squeezed)


def taken_bytes(found: Estimate) -> int:
    """What a plan is expected to take where there is room: of the allocator with activations, else its peak."""
    if found.plan.workload is None:
        return found.memory.peak_bytes
    return _reserved(found.plan, found.memory, None).expected


def meters(plan: Plan, memory: Ledger, gpu: Gpu | None, usable_bytes: int | None = None) -> Meters:
    """All four meters; `gpu` None: a card of unknown context; `usable_bytes` None: without limit."""
    held = memory.resident_bytes
    resident = Range(held, held, held)
    if plan.workload is None:
        return Meters(resident=resident)
    reserved = _reserved(plan, memory, usable_bytes)
    return Meters(
        resident=resident,
        allocated=_allocated(plan, memory),
        reserved=reserved,
        device=_device(plan, reserved, gpu),
    )


def _allocated(plan: Plan, memory: Ledger) -> Range:
    """The peak; what compilation saves of it is known as a range, and is of the activations."""
    peak = memory.peak_bytes
    if not _compiled(plan):
        return Range(peak, peak, peak)
    rest = memory.peak_without("activations")
    return Range(*(max(_percent(peak, share), rest) for share in COMPILED))


def _reserved(plan: Plan, memory: Ledger, usable_bytes: int | None) -> Range:
    """Cached blocks are given back before an allocation fails: what can fit takes no more than there is."""
    slack = plan.framework.slack
    if slack is None:
        return _allocated(plan, memory)
    taken, needed = _taken(plan, memory, slack), need(plan, memory)
    fitted = usable_bytes is not None and needed.squeezed <= usable_bytes < taken.expected
    expected = usable_bytes if fitted and usable_bytes else taken.expected
    expected = max(expected, needed.squeezed)
    low = taken.low if taken.low <= expected else 0
    return Range(max(low, _allocated(plan, memory).low), expected, max(needed.comfortable, expected))


def _taken(plan: Plan, memory: Ledger, slack: Slack) -> Range:
    """What the allocator takes where there is room: the pools of all streams, and the slack."""
    pools = memory.pooled_bytes
    shares = zip((slack.low, slack.expected, slack.high), COMPILED if _compiled(plan) else (100, 100, 100), strict=True)
    return Range(*(_percent(pools, taken * compiled, 10**4) for taken, compiled in shares))


def _device(plan: Plan, reserved: Range, gpu: Gpu | None) -> Range:
    context = gpu.context_bytes if gpu and gpu.usable_bytes_stated is None else 0
    least, most = (min(CONTEXT_MIB[0] * MIB, context), max(CONTEXT_MIB[1] * MIB, context)) if context else (0, 0)
    shown = reserved.plus(least, context, most)
    return shown.plus(*(size * MIB for size in NCCL_MIB)) if plan.gpus > 1 else shown


def _compiled(plan: Plan) -> bool:
    return plan.workload is not None and plan.workload.compiled != "none"


def _percent(size: int, percent: int, of: int = 100) -> int:
    """A percentage of a size, rounded up to a whole byte."""
    return -(-size * percent // of)
