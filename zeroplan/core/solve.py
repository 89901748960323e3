"""The inverse questions: the largest model, and the fewest GPUs, that fit.

The peak never falls with more parameters and never rises with more GPUs, so each answer is the
last integer on the good side of one crossing. The crossing is found exactly: a first guess from
the line through both ends, then a bracket around it, halved until good and bad are neighbours.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from zeroplan.core.estimate import memory
from zeroplan.core.hardware import LARGEST_CLUSTER
from zeroplan.core.model import LARGEST_MODEL
from zeroplan.core.plan import Plan
from zeroplan.core.question import Card, Question


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Solution:
    """The answer for one stage on one card; None when there is none."""

    card: Card
    stage: int
    answer: int | None
    peak_bytes: int | None
    """At the answer."""
    at_limit: bool
    """Whether the answer is the most that zeroplan counts to, and more may fit."""


def solve(question: Question, what: str) -> list[Solution]:
    """`max-params` or `min-gpus` for every card and offered stage of the question."""
    stages = [stage for stage in question.stages if question.offers(stage)]
    return [_solution(question, card, stage, what) for card in question.cards for stage in stages]


def max_params(question: Question, card: Card, stage: int) -> int | None:
    """The most parameters whose peak at this stage is within the card's budget; None when none is."""
    plan, budget = question.plan(card, stage), question.budget_bytes(card)

    def peak(params: int) -> int:
        return memory(replace(plan, model=replace(plan.model, params=params))).peak_bytes

    smallest, largest = peak(1), peak(LARGEST_MODEL)
    if smallest > budget:
        return None
    if largest <= budget:
        return LARGEST_MODEL
    guess = LARGEST_MODEL * (budget - smallest) // (largest - smallest)
    return crossing(peak, budget, good=1, bad=LARGEST_MODEL, guess=guess)


def min_gpus(question: Question, card: Card, stage: int) -> int | None:
    """The fewest GPUs at which the peak of this stage is within the card's budget; None when no number is."""
    plan, budget = question.plan(card, stage), question.budget_bytes(card)

    def peak(gpus: int) -> int:
        return memory(_on(plan, gpus)).peak_bytes

    alone, widest = peak(1), peak(LARGEST_CLUSTER)
    if alone <= budget:
        return 1
    if widest > budget:
        return None
    guess = -(-(alone - widest) // max(budget - widest, 1))
    return crossing(peak, budget, good=LARGEST_CLUSTER, bad=1, guess=guess)


def crossing(value_at: Callable[[int], int], target: int, good: int, bad: int, guess: int) -> int:
    """The integer next to the crossing on the good side.

    `value_at` is monotone, at most `target` at `good` and above it at `bad`.
    """
    towards = 1 if bad > good else -1
    probe, step = guess, 1
    while abs(bad - good) > 1:
        if not min(good, bad) < probe < max(good, bad):
            probe = (good + bad) // 2
        if value_at(probe) <= target:
            good, probe = probe, probe + towards * step
        else:
            bad, probe = probe, probe - towards * step
        step *= 2
    return good


def _solution(question: Question, card: Card, stage: int, what: str) -> Solution:
    field, inverse = SOLVERS[what]
    answer = inverse(question, card, stage)
    peak = None
    if answer is not None:
        peak = memory(question.at(field, answer).plan(card, stage)).peak_bytes
    at_limit = what == "max-params" and answer == LARGEST_MODEL
    return Solution(card=card, stage=stage, answer=answer, peak_bytes=peak, at_limit=at_limit)


def _on(plan: Plan, gpus: int) -> Plan:
    return replace(plan, cluster=replace(plan.cluster, gpus=gpus))


SOLVERS: dict[str, tuple[str, Callable[[Question, Card, int], int | None]]] = {
    "max-params": ("params", max_params),
    "min-gpus": ("gpus", min_gpus),
}
"""What is solved for: the field of the question, and its inverse."""
