"""The inverse questions: the largest model or micro-batch, the longest sequence, and the fewest GPUs, that fit.

What a plan needs never falls with more parameters or tokens, so each answer is the last integer on the good side of
one crossing. The crossing is found exactly: a first guess from the line through both ends, then a bracket around it,
halved until good and bad are neighbours. With more GPUs a plan needs less but for two things: where slices cut tensors
depends on their number, and a host needs more for each GPU of its node. So the numbers within a node are tried in turn
where something is off the GPU. Below the crossing without cut tensors nothing fits; from there on, again in turn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from zeroplan.core.choices import LARGEST_BATCH, LONGEST_SEQUENCE
from zeroplan.core.estimate import memory
from zeroplan.core.hardware import LARGEST_CLUSTER, USUAL_GPUS_PER_NODE
from zeroplan.core.host import GPU_MEMORY, resources
from zeroplan.core.ladder import ladder
from zeroplan.core.ledger import Ledger
from zeroplan.core.meters import need
from zeroplan.core.model import LARGEST_MODEL
from zeroplan.core.question import Card, Question
from zeroplan.core.scheme import PLAIN, Scheme


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
    binding: str | None
    """What is too little beyond the answer: GPU memory, host RAM, NVMe; None where nothing is."""
    scheme: Scheme = PLAIN
    """What is off the GPU for it, where that was allowed."""


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


def solve(question: Question, what: str, offload: bool = False) -> list[Solution]:
    """The answers for every card and offered stage of the question; `what` is one of SOLVERS.

    With `offload` each is the best of all ways to keep states off the GPU, the least of them where several are.
    """
    solver = SOLVERS[what]
    asked = [question, *(step.question for step in ladder(question))] if offload else [question]
    found = []
    for card in question.cards:
        for stage in question.stages:
            among = [_solution(each, card, stage, solver) for each in asked if each.offers(stage)]
            found += [_best(among, solver)] if among else []
    return found


def _best(solutions: list[Solution], solver: Solver) -> Solution:
    """The first of those with the best answer, and of these with the best tight one; without any, the last, which has
    most off the GPU."""
    worst = -solver.last - 1

    def rank(solution: Solution) -> tuple[int, int]:
        sign = -1 if solver.fewest else 1
        answers = (solution.answer, solution.tight_answer)
        good, tight = (worst if answer is None else sign * answer for answer in answers)
        return good, tight

    best = max(solutions, key=rank)
    return solutions[-1] if best.tight_answer is None else best


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
    unit = _unit(question, solver)

    def least(at: int, whole: bool = True) -> int:
        return max(_overs(question.at(solver.field, at * unit), card, stage, whole, least=True).values())

    peak = None
    if answer is not None:
        peak = memory(question.at(solver.field, answer).plan(card, stage)).peak_bytes
    return Solution(
        card=card,
        stage=stage,
        answer=answer,
        tight_answer=_solved(least, solver, question, _in_turn(question, card)),
        peak_bytes=peak,
        at_limit=not solver.fewest and answer == _last(question, solver),
        binding=_binding(question, card, stage, solver, answer),
        scheme=question.scheme,
    )


def _within_budget(question: Question, card: Card, stage: int, solver: Solver) -> int | None:
    unit = _unit(question, solver)

    def comfortable(at: int, whole: bool = True) -> int:
        return max(_overs(question.at(solver.field, at * unit), card, stage, whole).values())

    return _solved(comfortable, solver, question, _in_turn(question, card))


def _overs(question: Question, card: Card, stage: int, whole: bool = True, least: bool = False) -> dict[str, int]:
    """By how much each resource of a node is too little, negative where it is enough; not `whole`: without the parts of
    tensors beyond a slice, which do not shrink steadily."""
    plan = question.plan(card, stage)
    held = memory(plan)
    if not whole:
        held = Ledger(tuple(term for term in held.terms if term.name not in OVERHANGS))
    needs, usable = need(plan, held), question.usable_bytes(card)
    gpu = needs.squeezed - usable if least else needs.comfortable - question.budget_bytes(card)
    return {GPU_MEMORY: gpu, **{r.name: r.least_over if least else r.over for r in resources(plan, held)}}


def _binding(question: Question, card: Card, stage: int, solver: Solver, answer: int | None) -> str | None:
    """The resource that is most over what there is one step beyond the answer, or at the best where there is none."""
    unit, last = _unit(question, solver), _last(question, solver)
    best, step = (last, -unit) if solver.fewest else (1, 1)
    beyond = best if answer is None else answer + step
    if not 1 <= beyond <= last:
        return None
    overs = _overs(question.at(solver.field, beyond), card, stage)
    return max(overs, key=overs.__getitem__)


def _in_turn(question: Question, card: Card) -> int:
    """Up to how many GPUs each number is tried: a node's, where something is off the GPU, since its host needs more for
    each of them; from full nodes on more GPUs never need more of any."""
    if not question.scheme.offloads:
        return 0
    return card.node.gpus_per_node if card.node else USUAL_GPUS_PER_NODE


def _unit(question: Question, solver: Solver) -> int:
    """What the answer is a multiple of: the GPUs of whole groups."""
    return question.scheme.unit if solver.field == "gpus" else 1


def _last(question: Question, solver: Solver) -> int:
    """The last value: of sequences, what the model has positions for."""
    shape = question.model.architecture
    if solver.field == "seq_len" and shape is not None and shape.positions:
        return shape.positions
    unit = _unit(question, solver)
    return solver.last // unit * unit


class Needed(Protocol):
    """What a plan needs at a value of the field that is solved for."""

    def __call__(self, at: int, whole: bool = True) -> int: ...


def _fewest(value_at: Needed, last: int, in_turn: int) -> int | None:
    """The least value that fits: of the first `in_turn`, each in turn; then from where it does without what does not
    shrink steadily."""
    first = next((at for at in range(1, min(in_turn, last) + 1) if value_at(at) <= 0), None)
    return first if first is not None or in_turn >= last else _fewest_of_many(value_at, in_turn + 1, last)


def _fewest_of_many(value_at: Needed, least: int, last: int) -> int | None:
    def steady(at: int) -> int:
        return value_at(at, whole=False)

    first, most = steady(least), steady(last)
    if most > 0:
        return None
    guess = least + -(-(first - most) // max(-most, 1))
    start = least if first <= 0 else crossing(steady, 0, good=last, bad=least, guess=guess)
    found = next((at for at in range(start, min(start + IN_TURN, last + 1)) if value_at(at) <= 0), None)
    bad, step = start + IN_TURN - 1, IN_TURN
    while found is None and bad < last:
        at = min(bad + step, last)
        if value_at(at) <= 0:
            found = crossing(value_at, 0, good=at, bad=bad, guess=(at + bad) // 2)
        bad, step = at, 2 * step
    return found


def _solved(value_at: Needed, solver: Solver, question: Question, in_turn: int) -> int | None:
    last, unit = _last(question, solver), _unit(question, solver)
    if solver.fewest:
        found = _fewest(value_at, last // unit, -(-in_turn // unit))
        return None if found is None else found * unit
    first, most = value_at(1), value_at(last)
    if first > 0:
        return None
    if most <= 0:
        return last
    guess = last * -first // (most - first)
    return crossing(value_at, 0, good=1, bad=last, guess=guess)
