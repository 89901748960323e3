"""One input varied, everything else as asked: every stage at every value."""

from collections.abc import Iterable
from dataclasses import dataclass

from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.host import Resource, resources
from zeroplan.core.meters import need
from zeroplan.core.question import Card, Question, on_card
from zeroplan.core.verdict import NOT_OFFERED, short_of, verdict

FIELDS = {
    "gpus": "gpus",
    "params": "params",
    "grad-accum": "grad_accum",
    "seq-len": "seq_len",
    "micro-batch": "micro_batch",
}
"""What can be varied, and the field of the question it is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SweepPoint:
    """Every stage at one value; None where the framework does not offer the stage."""

    value: int
    question: Question
    estimates: dict[int, Estimate | None]

    def verdict(self, stage: int, card: Card) -> str:
        """Whether the stage fits on a card at this value."""
        found = self.estimates[stage]
        if found is None:
            return NOT_OFFERED
        budget, usable = self.question.budget_bytes(card), self.question.usable_bytes(card)
        host = resources(on_card(found.plan, card), found.memory)
        return verdict(need(found.plan, found.memory), budget, usable, host)

    def short(self, stage: int, card: Card) -> Resource | None:
        """What is too little beside the GPU's memory, where that keeps it from fitting."""
        found = self.estimates[stage]
        if found is None:
            return None
        host = resources(on_card(found.plan, card), found.memory)
        return short_of(need(found.plan, found.memory), self.question.budget_bytes(card), host)


def sweep(question: Question, over: str, values: Iterable[int]) -> list[SweepPoint]:
    """The points of a sweep in the order of `values`."""
    return [_point(question.at(FIELDS[over], value), value) for value in values]


def _point(question: Question, value: int) -> SweepPoint:
    estimates = {
        stage: estimate(question.plan(None, stage)) if question.offers(stage) else None for stage in question.stages
    }
    return SweepPoint(value=value, question=question, estimates=estimates)
