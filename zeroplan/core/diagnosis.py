"""Which tensors of a plan have the size that an allocator failed to give."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.moments import MOMENTS
from zeroplan.core.plan import Plan
from zeroplan.core.question import Question
from zeroplan.core.sharding import shard

LARGE_BLOCK = 2**21
SMALL, LEAST_KNOWN = 10 * 2**20, 20 * 2**20
"""The allocator asks the device for 2 MiB for requests up to 1 MiB, for 20 MiB below 10 MiB, and above for whole 2 MiB:
pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp, kLargeBuffer, kMinLargeAlloc, kRoundLarge."""


ROUGH = 2000
"""By what part of itself a size may differ where the parameters are a rounded number: 13.9e9."""


class Candidate(NamedTuple):
    """Something that a plan allocates at once."""

    what: str
    formula: str
    bytes: int
    before: int | None = None
    """Bytes of tensors when it is asked for, by the ledger; None where that is not known."""


class Matched(NamedTuple):
    """A candidate of the size asked for, and the stages at which it is."""

    candidate: Candidate
    stages: tuple[int, ...]
    distance: float
    """How far its tensors before are from those of the message, in bytes; infinite where either is not known."""


def matches(question: Question, requested: int, half: int, allocated: int | None) -> list[Matched]:
    """What has the size of a request of so many bytes, printed with an error of `half`; empty where the request is so
    small that its size says nothing.

    First what is asked for when tensors take about as much as were `allocated`.
    """
    if requested <= LEAST_KNOWN:
        return []
    found: dict[Candidate, list[int]] = {}
    for stage in question.stages:
        if question.offers(stage):
            for candidate in _candidates(estimate(question.plan(None, stage))):
                slack = 0 if question.model.name else candidate.bytes // ROUGH
                if _same(candidate.bytes, requested, half + slack):
                    found.setdefault(candidate, []).append(stage)
    matched = [
        Matched(candidate, tuple(dict.fromkeys(stages)), _distance(candidate, allocated))
        for candidate, stages in found.items()
    ]
    return sorted(matched, key=lambda each: each.distance)


def _distance(candidate: Candidate, allocated: int | None) -> float:
    if candidate.before is None or allocated is None:
        return inf
    return abs(candidate.before - allocated)


def _same(size: int, requested: int, half: int) -> bool:
    """Whether a tensor makes a request of such a size, rounded up by the allocator or not."""
    rounded = -(-size // LARGE_BLOCK) * LARGE_BLOCK
    return any(abs(each - requested) <= half for each in (size, rounded))


def _candidates(found: Estimate) -> Iterator[Candidate]:
    plan = found.plan
    known = set()
    for term in found.memory.terms:
        if term.tier == "gpu" and term.bytes > SMALL:
            first = next(moment for moment in MOMENTS if moment in term.moments)
            before = found.memory.bytes_at(first) - term.bytes
            known.add(term.bytes)
            yield Candidate(term.what, term.formula, term.bytes, before)
    yield from (other for other in _others(plan) if other.bytes not in known)


def _others(plan: Plan) -> Iterator[Candidate]:
    """What no plan holds for long, or holds in parts."""
    for size, kind in ((4, "fp32"), (2, "16-bit")):
        what = f"{kind} copy of all parameters: loaded so, or one rank alone"
        yield Candidate(what, f"{size} * params", size * plan.params)
        if plan.gpus > 1:
            part = size * shard(plan.params, plan.gpus).count
            yield Candidate(f"{kind} copy of one shard", f"{size} * ceil(params / gpus)", part)
    shape, work = plan.model.architecture, plan.workload
    if shape is None:
        return
    for size, kind in ((4, "fp32"), (2, "16-bit")):
        yield Candidate(f"embedding, {kind}", f"{size} * vocab * hidden", size * shape.vocab * shape.hidden)
        if work is not None:
            yield Candidate(f"logits, {kind}", f"{size} * vocab * tokens", size * shape.vocab * work.tokens)
            yield Candidate(f"hidden states, {kind}", f"{size} * hidden * tokens", size * shape.hidden * work.tokens)
