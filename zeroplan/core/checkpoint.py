"""What a checkpoint is on disk: to resume from, and the weights alone.

A resumable one has the states that the framework saves, each once: each rank of one group writes its shards, and the
first rank what is not divided. DeepSpeed at stage 3 saves no 16-bit weights, which follow from the master copy:
measured with 0.19.8 on one rank, 12 bytes per parameter at stage 3, 14 at stages 1 and 2, and 16 with fp32 weights.
"""

from typing import NamedTuple

from zeroplan.core.ledger import STATES, Ledger, Term
from zeroplan.core.plan import Plan
from zeroplan.core.sharding import group_of

UNEVEN = (".rows", ".tensors")
"""Endings of the terms that are what one rank has above an even part."""


class Checkpoint(NamedTuple):
    """Bytes on disk."""

    resume: int
    """All files to resume from."""
    each_rank: int
    """Of them, the part of each rank that writes one."""
    first_rank: int
    """What the first rank writes: its part, and what is not divided."""
    weights: int
    """One file of whole weights, in the type they are trained in."""
    ranks: int
    """How many write a part: those of one group."""


def checkpoint(plan: Plan, memory: Ledger) -> Checkpoint:
    """The sizes of a plan's checkpoints."""
    saved = [term for term in memory.terms if _is_saved(plan, term)]
    ranks = group_of(plan, "shard").gpus
    part = sum(term.bytes for term in saved if term.sharded)
    whole = sum(term.bytes for term in saved if not term.sharded)
    return Checkpoint(
        resume=part * ranks + whole,
        each_rank=part,
        first_rank=part + whole,
        weights=plan.params * plan.recipe.bytes_of("parameters"),
        ranks=ranks,
    )


def _is_saved(plan: Plan, term: Term) -> bool:
    return term.name.startswith(STATES) and term.role in plan.stage.saves and not term.name.endswith(UNEVEN)
