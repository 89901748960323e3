"""When memory is held: the phases of a training step, and the moments at which it can peak."""

PHASES = ("load", "forward", "backward", "step", "save")
FORWARD = ("start", "logits")
FIRST = ("first_block", "first_block_done")
LAST = ("last_block", "last_block_done")
BACKWARD = ("loss", *FIRST, *LAST, "end")
STEP = ("norm", "update")
MOMENTS = ("load", *FORWARD, *BACKWARD, *STEP, "save")
"""Where memory can peak. The forward pass has its start and its logits. The backward pass has the loss, before any
gradient exists; a block among the first to go back, when nearly all activations are alive, and one among the last, when
nearly all gradients are, each in its feed-forward part, where most is in flight, and when its gradients are done; and
the end, when all gradients are. The step has the norm of the gradients and the update."""
_GROUPS = {
    "forward": FORWARD,
    "backward": BACKWARD,
    "first": FIRST,
    "last": LAST,
    "blocks": (*FIRST, *LAST),
    "in_block": (FIRST[0], LAST[0]),
    "block_done": (FIRST[1], LAST[1]),
    "step": STEP,
}
MOMENT_NAMES = (*dict.fromkeys((*PHASES, *_GROUPS, *MOMENTS)),)
"""What a preset may name: phases, groups of moments, and moments."""
_PHASE_OF = {moment: phase for phase in PHASES for moment in _GROUPS.get(phase, ())}
STREAMS = ("compute", "gather", "reduce")
"""The CUDA streams that allocate; the allocator keeps a pool for each, and lends nothing from one to another."""


def moments_of(name: str) -> tuple[str, ...]:
    """The moments of a phase or group, or the moment of this name itself."""
    return _GROUPS.get(name, (name,))


def phase_of(moment: str) -> str:
    """The phase that a moment belongs to."""
    return _PHASE_OF.get(moment, moment)
