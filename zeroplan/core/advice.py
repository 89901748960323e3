"""What else the user should know of an answer: a free upgrade, a shipped default, a way out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from zeroplan.core.meters import taken_bytes
from zeroplan.core.question import Question
from zeroplan.core.verdict import CardAnswer, StageAnswer, fit

if TYPE_CHECKING:
    from zeroplan.core.ladder import Offloaded
    from zeroplan.core.mends import Binding


class Advice(NamedTuple):
    """The remarks on one card's answer; None where there is nothing to say."""

    free_upgrade: StageAnswer | None
    """The next higher stage, where it frees memory at no more traffic than the recommended one."""
    shipped: CardAnswer | None
    """The answer of a shipped framework to the same question."""
    binding: Binding | None
    """What fills the peak of the stage to show; None where activations are not counted."""
    way_out: tuple[int, int] | None
    """Where nothing fits: the highest stage and the fewest GPUs at which it does."""
    offloaded: Offloaded | None
    """Where nothing fits: the cheapest offload with which something does."""
    ungrouped: int | None
    """Where nothing fits in groups: the lowest stage that fits over all GPUs."""


def advise(question: Question, answer: CardAnswer, shipped: CardAnswer | None) -> Advice:
    """The remarks on an answer; `shipped` is the answer of a shipped framework for the same card."""
    return Advice(
        free_upgrade=free_upgrade(answer),
        shipped=shipped,
        binding=_binding(question, answer),
        way_out=None if answer.recommended else _way_out(question, answer),
        offloaded=None if answer.recommended else _offloaded(question, answer),
        ungrouped=None if answer.recommended else _ungrouped(question, answer),
    )


def _ungrouped(question: Question, answer: CardAnswer) -> int | None:
    if not question.scheme.shard_group:
        return None
    whole = replace(question, scheme=replace(question.scheme, shard_group=0), cards=(answer.card,))
    best = fit(whole)[0].recommended
    return best.stage if best else None


def _offloaded(question: Question, answer: CardAnswer) -> Offloaded | None:
    from zeroplan.core.ladder import offloaded  # only where nothing fits

    return offloaded(question, answer.card)


def _binding(question: Question, answer: CardAnswer) -> Binding | None:
    if not question.counts_activations:
        return None
    from zeroplan.core.mends import binding  # only where activations are counted

    return binding(question, answer.card, answer.recommended or answer.offered[-1])


def free_upgrade(answer: CardAnswer) -> StageAnswer | None:
    """The next higher stage, where it frees memory at no more traffic than the recommended one."""
    here = answer.recommended
    if here is None or here.estimate is None:
        return None
    after = next((other for other in answer.offered if other.stage > here.stage), None)
    if after is None or after.estimate is None:
        return None
    frees = taken_bytes(after.estimate) < taken_bytes(here.estimate)
    costs = after.estimate.traffic.wire_bytes > here.estimate.traffic.wire_bytes
    return after if frees and not costs else None


def _way_out(question: Question, answer: CardAnswer) -> tuple[int, int] | None:
    from zeroplan.core.solve import min_gpus  # only where nothing fits

    stage = answer.offered[-1].stage
    enough = min_gpus(question, answer.card, stage)
    return None if enough is None else (stage, enough)
