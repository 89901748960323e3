"""What a checkpoint is on disk: to resume from, and the weights alone.

A resumable one has every state but the gradients, each once: DeepSpeed and FSDP write the shards of each rank, and
replicated weights from the first rank alone (deepspeedai/DeepSpeed runtime/engine.py, save_checkpoint;
pytorch/pytorch torch/distributed/checkpoint).
"""

from typing import NamedTuple

from zeroplan.core.plan import Plan
from zeroplan.core.recipe import State
from zeroplan.core.sharding import shard_of


class Checkpoint(NamedTuple):
    """Bytes on disk."""

    resume: int
    """All files to resume from."""
    each_rank: int
    """Of them, the part of each rank."""
    first_rank: int
    """What the first rank writes: its part, and what is not divided."""
    weights: int
    """One file of whole weights, in the type they are trained in."""


def checkpoint(plan: Plan) -> Checkpoint:
    """The sizes of a plan's checkpoints."""
    states = [state for state in plan.recipe.states if state.role != "gradients"]
    divided = [state for state in states if state.role in plan.stage.shards]
    part = shard_of(plan).count * _bytes(divided)
    whole = plan.params * _bytes([state for state in states if state not in divided])
    return Checkpoint(
        resume=plan.params * _bytes(states),
        each_rank=part,
        first_rank=part + whole,
        weights=plan.params * plan.recipe.bytes_of("parameters"),
    )


def _bytes(states: list[State]) -> int:
    return sum(state.bytes for state in states)
