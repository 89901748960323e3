"""Does it fit? The peak of each stage against the usable memory of each card."""

from typing import NamedTuple

from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.host import Resource, resources
from zeroplan.core.meters import Meters, Need, meters, need
from zeroplan.core.question import Card, Question

FITS, TIGHT, DOES_NOT_FIT = "fits", "tight", "does-not-fit"
"""tight: fits only by using the headroom, or if the allocator gives back what it caches."""
NOT_OFFERED, NOT_ASKED = "not-offered", "not-asked"
"""The framework lacks the stage; no card was named."""


class StageAnswer(NamedTuple):
    """One stage on one card; no estimate where the framework does not offer the stage."""

    stage: int
    verdict: str
    spare_bytes: int | None = None
    """Budget less peak, or less what the allocator is expected to take for it; negative when over."""
    estimate: Estimate | None = None
    meters: Meters | None = None
    host: tuple[Resource, ...] = ()
    """What each node needs beside its GPUs, where something is kept there."""
    short: Resource | None = None
    """What is too little beside the GPUs, where that and not the GPU's memory keeps it from fitting."""


class CardAnswer(NamedTuple):
    """Every stage on one card, and the lowest that fits."""

    card: Card
    usable_bytes: int
    budget_bytes: int
    """Usable memory less the headroom."""
    stages: tuple[StageAnswer, ...]
    recommended: StageAnswer | None
    """The lowest stage that fits; if none does, the lowest that is tight; else None."""

    def stage(self, number: int) -> StageAnswer:
        return next(answer for answer in self.stages if answer.stage == number)

    @property
    def offered(self) -> tuple[StageAnswer, ...]:
        """The stages that the framework has."""
        return tuple(answer for answer in self.stages if answer.verdict != NOT_OFFERED)


def fit(question: Question) -> tuple[CardAnswer, ...]:
    """The answer for each card of the question, in its order."""
    by_node: dict[int, dict[int, Estimate | None]] = {}
    answers = []
    for card in question.cards:
        gpus = question.gpus_per_node(card)
        if gpus not in by_node:
            by_node[gpus] = {stage: _estimate(question, card, stage) for stage in sorted(question.stages)}
        answers.append(_card_answer(question, card, by_node[gpus]))
    return tuple(answers)


def verdict(needs: Need, budget_bytes: int, usable_bytes: int, host: tuple[Resource, ...] = ()) -> str:
    """fits, tight or does-not-fit, of the GPU and of what else the node has."""
    over = max(needs.comfortable - budget_bytes, *(each.over for each in host), 0)
    if over == 0:
        return FITS
    least = max(needs.squeezed - usable_bytes, *(each.least_over for each in host), 0)
    return TIGHT if least == 0 else DOES_NOT_FIT


def lowest(stages: tuple[StageAnswer, ...]) -> StageAnswer | None:
    """The lowest stage that fits; if none does, the lowest that is tight; else None."""
    for wanted in (FITS, TIGHT):
        found = [answer for answer in stages if answer.verdict == wanted]
        if found:
            return min(found, key=lambda answer: answer.stage)
    return None


def _estimate(question: Question, card: Card, stage: int) -> Estimate | None:
    """The ledgers of a stage, which are the same on every card in such nodes; None where it is not offered."""
    return estimate(question.plan(card, stage)) if question.offers(stage) else None


def _card_answer(question: Question, card: Card, estimates: dict[int, Estimate | None]) -> CardAnswer:
    stages = tuple(_stage_answer(question, card, stage, found) for stage, found in estimates.items())
    return CardAnswer(
        card=card,
        usable_bytes=question.usable_bytes(card),
        budget_bytes=question.budget_bytes(card),
        stages=stages,
        recommended=lowest(stages),
    )


def _stage_answer(question: Question, card: Card, stage: int, found: Estimate | None) -> StageAnswer:
    if found is None:
        return StageAnswer(stage=stage, verdict=NOT_OFFERED)
    plan, budget, usable = question.plan(card, stage), question.budget_bytes(card), question.usable_bytes(card)
    found = found.on(plan)
    shown, host = meters(plan, found.memory, card.gpu, usable), resources(plan, found.memory)
    taken = shown.reserved.expected if shown.reserved else found.memory.peak_bytes
    return StageAnswer(
        stage=stage,
        verdict=verdict(need(plan, found.memory), budget, usable, host),
        spare_bytes=budget - taken,
        estimate=found,
        meters=shown,
        host=host,
        short=short_of(need(plan, found.memory), budget, host),
    )


def short_of(needs: Need, budget_bytes: int, host: tuple[Resource, ...]) -> Resource | None:
    """What is too little beside the GPUs, where the GPU's memory is enough."""
    if needs.comfortable > budget_bytes:
        return None
    short = (each for each in host if each.over > 0)
    return max(short, key=lambda each: (each.least_over > 0, each.least_over, each.over), default=None)
