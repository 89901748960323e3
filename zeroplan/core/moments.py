"""When memory is held: the phases of a training step, and the moments at which it can peak."""

PHASES = ("load", "forward", "backward", "step", "save")
MOMENTS = ("load", "start", "logits", "loss", "blocks", "end", "norm", "update", "save")
"""Where memory can peak. The forward pass has its start and its logits; the backward pass the loss, before any gradient
exists, the first blocks to go back, when nearly all activations are alive, and the end, when all gradients are; the
step the norm of the gradients and the update."""
FORWARD = ("start", "logits")
BACKWARD = ("loss", "blocks", "end")
STEP = ("norm", "update")
_MOMENTS_OF = {"forward": FORWARD, "backward": BACKWARD, "step": STEP}
_PHASE_OF = {moment: phase for phase, moments in _MOMENTS_OF.items() for moment in moments}
STREAMS = ("compute", "gather", "reduce")
"""The CUDA streams that allocate; the allocator keeps a pool for each, and lends nothing from one to another."""


def moments_of(name: str) -> tuple[str, ...]:
    """The moments of a phase, or the moment of this name itself."""
    return _MOMENTS_OF.get(name, (name,))


def phase_of(moment: str) -> str:
    """The phase that a moment belongs to."""
    return _PHASE_OF.get(moment, moment)
