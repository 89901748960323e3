"""The inverse questions: the largest model or micro-batch, the longest sequence, and the fewest GPUs, that fit.

What a plan needs never falls with more parameters or tokens, so each answer is the last integer on the good side of
one crossing. The crossing is found exactly: a first guess from the line through both ends, then a bracket around it,
halved until good and bad are neighbours. With more GPUs a plan needs less but for one thing: where slices cut tensors
depends on their number. Below the crossing without that, nothing fits; from there the numbers are tried in turn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from zeroplan.core.choices import LARGEST_BATCH, LONGEST_SEQUENCE
from zeroplan.core.estimate import memory
from zeroplan.core.hardware import LARGEST_CLUSTER
from zeroplan.core.ledger import Ledger
from zeroplan.core.meters import Need, need
from zeroplan.core.model import LARGEST_MODEL
from zeroplan.core.question import Card, Question


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Solution:
    """The answer for one stage on one card; None when there is none."""

    card: Card
    stage: int
    answer: int | None
    tight_answer: int | None
    """What still fits by using the headroom, or if the allocator gives back what it caches."""
    peak_bytes: int | None
    """At the answer."""
    at_limit: bool
    """Whether the answer is the most that zeroplan counts to, and more may fit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Solver:
    """What is solved for: a field of the question, and the last value that is possible at all."""

    field: str
    last: int
    fewest: bool = False
    """Whether the least value that fits is wanted, and not the largest."""


OVERHANGS = (
    *("buffers.slice_overhang", "buffers.new_overhang"),
    *("states.parameters.rows", "states.gradients.rows", "states.optimizer.rows"),
    "states.optimizer.tensors",
)
"""The terms that do not shrink steadily with more GPUs."""
IN_TURN = 256
"""How many numbers of GPUs are tried in turn before larger steps are taken."""
SOLVERS = {
    "max-params": Solver(field="params", last=LARGEST_MODEL),
    "min-gpus": Solver(field="gpus", last=LARGEST_CLUSTER, fewest=True),
    "max-micro-batch": Solver(field="micro_batch", last=LARGEST_BATCH),
    "max-seq-len": Solver(field="seq_len", last=LONGEST_SEQUENCE),
}


def solve(question: Question, what: str) -> list[Solution]:
    """The answers for every card and offered stage of the question; `what` is one of SOLVERS."""
    stages = [stage for stage in question.stages if question.offers(stage)]
    return [_solution(question, card, stage, SOLVERS[what]) for card in question.cards for stage in stages]


def max_params(question: Question, card: Card, stage: int) -> int | None:
    """The most parameters that fit at this stage within the card's budget; None when none do."""
    return _within_budget(question, card, stage, SOLVERS["max-params"])


def min_gpus(question: Question, card: Card, stage: int) -> int | None:
    """The fewest GPUs at which this stage fits within the card's budget; None when no number is enough."""
    return _within_budget(question, card, stage, SOLVERS["min-gpus"])


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


def _solution(question: Question, card: Card, stage: int, solver: Solver) -> Solution:
    answer = _within_budget(question, card, stage, solver)
    usable = card.gpu.usable_bytes

    def squeezed(at: int, whole: bool = True) -> int:
        moved = question.at(solver.field, at)
        return _need(moved, card, stage, whole).squeezed + usable - moved.usable_bytes(card)

    tight = _solved(squeezed, usable, solver, question)
    peak = None
    if answer is not None:
        peak = memory(question.at(solver.field, answer).plan(card, stage)).peak_bytes
    at_limit = not solver.fewest and answer == _last(question, solver)
    return Solution(card=card, stage=stage, answer=answer, tight_answer=tight, peak_bytes=peak, at_limit=at_limit)


def _within_budget(question: Question, card: Card, stage: int, solver: Solver) -> int | None:
    usable = card.gpu.usable_bytes

    def comfortable(at: int, whole: bool = True) -> int:
        moved = question.at(solver.field, at)
        return _need(moved, card, stage, whole).comfortable + usable - moved.budget_bytes(card)

    return _solved(comfortable, usable, solver, question)


def _need(question: Question, card: Card, stage: int, whole: bool) -> Need:
    """What a plan needs; not `whole`: without the parts of tensors beyond a slice, which do not shrink steadily."""
    plan = question.plan(card, stage)
    held = memory(plan)
    if not whole:
        held = Ledger(tuple(term for term in held.terms if term.name not in OVERHANGS))
    return need(plan, held)


def _last(question: Question, solver: Solver) -> int:
    """The last value: of sequences, what the model has positions for."""
    shape = question.model.architecture
    if solver.field == "seq_len" and shape is not None and shape.positions:
        return shape.positions
    return solver.last


class Needed(Protocol):
    """What a plan needs at a value of the field that is solved for."""

    def __call__(self, at: int, whole: bool = True) -> int: ...


def _fewest(value_at: Needed, target: int, last: int) -> int | None:
    """The least value that fits, from where it does without what does not shrink steadily."""

    def steady(at: int) -> int:
        return value_at(at, whole=False)

    first, most = steady(1), steady(last)
    if most > target:
        return None
    guess = -(-(first - most) // max(target - most, 1))
    start = 1 if first <= target else crossing(steady, target, good=last, bad=1, guess=guess)
    found = next((at for at in range(start, min(start + IN_TURN, last + 1)) if value_at(at) <= target), None)
    bad, step = start + IN_TURN - 1, IN_TURN
    while found is None and bad < last:
        at = min(bad + step, last)
        if value_at(at) <= target:
            found = crossing(value_at, target, good=at, bad=bad, guess=(at + bad) // 2)
        bad, step = at, 2 * step
    return found


def _solved(value_at: Needed, target: int, solver: Solver, question: Question) -> int | None:
    last = _last(question, solver)
    if solver.fewest:
        return _fewest(value_at, target, last)
    first, most = value_at(1), value_at(last)
    if first > target:
        return None
    if most <= target:
        return last
    guess = last * (target - first) // (most - first)
    return crossing(value_at, target, good=1, bad=last, guess=guess)
