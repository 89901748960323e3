"""What would make a plan smaller: one change at a time, what it saves and what it costs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.flight import matmul_weights
from zeroplan.core.ledger import Term
from zeroplan.core.meters import need
from zeroplan.core.question import Card, Question
from zeroplan.core.verdict import FITS, StageAnswer, verdict
from zeroplan.core.workload import Workload

Change = tuple[str, tuple[Question, int], Callable[[Estimate, Estimate], str]]
"""What to type, the question and stage with it, and what it costs, from both estimates."""
FULL_PRICE = "+33% compute"
"""One more forward pass for a forward and a backward of twice its cost: Korthikanti et al. (arXiv 2205.05198)
section 5; measured there: 39%."""
WORTH = 50
"""A mend is named when it saves at least one part in so many of the peak."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Mend:
    """One change to the question."""

    option: str
    """What to type."""
    saved_bytes: int
    """Of the peak, per GPU."""
    price: str
    verdict: str
    """With this change alone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Binding:
    """What fills the peak, and what would help."""

    stage: int
    moment: str
    terms: tuple[Term, ...]
    """The three largest alive at the peak, largest first."""
    mends: tuple[Mend, ...]
    """The cheapest first; none where it fits."""
    higher_saves_bytes: int | None
    """What the best higher stage saves of the peak; None where there is none."""


def binding(question: Question, card: Card, answer: StageAnswer) -> Binding | None:
    """What binds one stage on one card; None where activations are not counted or the stage is not offered."""
    found = answer.estimate
    if found is None or not question.counts_activations:
        return None
    alive = sorted(found.memory.alive_at(found.memory.peak_moment), key=lambda term: -term.bytes)
    mends = () if answer.verdict == FITS else tuple(_mends(question, card, found))
    return Binding(
        stage=answer.stage,
        moment=found.memory.peak_moment,
        terms=tuple(alive[:3]),
        mends=mends,
        higher_saves_bytes=_higher(question, card, found),
    )


def _mends(question: Question, card: Card, found: Estimate) -> Iterator[Mend]:
    stage = found.plan.strategy.stage
    for option, changed, price in _changes(question, stage):
        other = estimate(changed[0].plan(card, changed[1]))
        saved = found.memory.peak_bytes - other.memory.peak_bytes
        if saved * WORTH >= found.memory.peak_bytes:
            needs = need(other.plan, other.memory)
            said = verdict(needs, question.budget_bytes(card), card.gpu.usable_bytes)
            yield Mend(option=option, saved_bytes=saved, price=price(found, other), verdict=said)


def _changes(question: Question, stage: int) -> Iterator[Change]:
    """The changes worth trying, the cheapest first."""
    work = question.workload
    assert work is not None  # the caller checked
    yield from _free(question, stage, work)
    for higher in question.framework.stage_numbers:
        if higher > stage and question.offers(higher):
            yield f"--stage {higher}", (question, higher), _traffic
    if work.micro_batch > 1:
        yield "--micro-batch 1", (question.at("micro_batch", 1), stage), lambda _a, _b: _passes(work)
    if work.recompute == "none" and (work.selective == "matmuls" or work.attention != "flash"):
        again = _with(question, replace(work, recompute="selective"))
        yield "--recompute selective", (again, stage), lambda _a, _b: f"+{selective_percent(question)}% compute"
    if not work.recomputes:
        yield "--recompute full", (_with(question, replace(work, recompute="full")), stage), lambda _a, _b: FULL_PRICE
    elif work.checkpoints == "gpu":
        on_cpu = _with(question, replace(work, checkpoints="cpu"))
        yield "--checkpoints cpu", (on_cpu, stage), lambda _a, _b: "copies to the CPU and back"


def selective_percent(question: Question) -> int:
    """What selective recomputation adds to the compute of a step, percent, rounded up.

    By operator: a third of the share of the products that are done again. The attention core: s/18h over
    1 + s/6h + V/12hL, from Korthikanti et al. (arXiv 2205.05198) appendix A.
    """
    work, model = question.workload, question.model
    shape = model.architecture
    assert work is not None
    assert shape is not None  # the caller checked
    if work.selective == "matmuls":
        again, whole = matmul_weights(model.runs[-1].block, shape)
        return -(-100 * again // (3 * whole))
    seq, hidden, layers = work.seq_len, shape.hidden, model.layers
    return -(-100 * 2 * seq * layers // (36 * hidden * layers + 6 * seq * layers + 3 * shape.vocab))


def _free(question: Question, stage: int, work: Workload) -> Iterator[Change]:
    if work.attention != "flash":
        flash = _with(question, replace(work, attention="flash"))
        yield "--attention flash", (flash, stage), lambda _a, _b: "no price"
    if work.loss.chunks == 1 and work.loss.backward_bytes > 1:
        chunks = replace(work.loss, chunks=8)
        yield "--loss chunked", (_with(question, replace(work, loss=chunks)), stage), lambda _a, _b: "no more compute"


def _with(question: Question, work: Workload) -> Question:
    return replace(question, workload=work)


def _traffic(before: Estimate, after: Estimate) -> str:
    more = after.traffic.wire_bytes - before.traffic.wire_bytes
    if more == 0:
        return "the same traffic"
    if before.traffic.wire_bytes == 0:
        return "no price"
    percent = round(100 * abs(more) / before.traffic.wire_bytes)
    return f"{percent}% {'more' if more > 0 else 'less'} traffic"


def _passes(work: Workload) -> str:
    return f"{work.micro_batch} times the passes for as many tokens"


def _higher(question: Question, card: Card, found: Estimate) -> int | None:
    """What the best higher stage saves; negative where it needs more."""
    stage = found.plan.strategy.stage
    higher = [other for other in question.framework.stage_numbers if other > stage and question.offers(other)]
    if not higher:
        return None
    peaks = [estimate(question.plan(card, other)).memory.peak_bytes for other in higher]
    return found.memory.peak_bytes - min(peaks)
