"""When memory is held: the phases of a training step, and the moments at which it can peak."""

PHASES = ("load", "forward", "backward", "step", "save")
MOMENTS = ("load", "start", "logits", "loss", "blocks", "end", "step", "save")
"""Where memory can peak. The forward pass has its start and its logits; the backward pass the loss, before any gradient
exists, the first blocks to go back, when nearly all activations are alive, and the end, when all gradients are."""
FORWARD = ("start", "logits")
BACKWARD = ("loss", "blocks", "end")
STREAMS = ("compute", "gather", "reduce")
"""The CUDA streams that allocate; the allocator keeps a pool for each, and lends nothing from one to another."""


def moments_of(name: str) -> tuple[str, ...]:
    """The moments of a phase, or the moment of this name itself."""
    return BACKWARD if name == "backward" else FORWARD if name == "forward" else (name,)


def phase_of(moment: str) -> str:
    """The phase that a moment belongs to."""
    return "backward" if moment in BACKWARD else "forward" if moment in FORWARD else moment
