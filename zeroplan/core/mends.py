"""What would make a plan smaller: one change at a time, what it saves and what it costs."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.flight import matmul_weights
from zeroplan.core.host import resources
from zeroplan.core.ledger import Term
from zeroplan.core.meters import need, taken_bytes
from zeroplan.core.question import Card, Question, on_card
from zeroplan.core.verdict import FITS, StageAnswer, verdict
from zeroplan.core.workload import Workload

Change = tuple[str, Question, int, str]
"""What to type, the question and stage with it, and what it costs; no words: its traffic."""
FULL_PRICE = "+33% compute"
"""One more forward pass for a forward and a backward of twice its cost: Korthikanti et al. (arXiv 2205.05198)
section 5; measured there: 39%."""
WORTH = 50
"""A mend is named when it saves at least one part in so many of the peak."""


class Mend(NamedTuple):
    """One change to the question."""

    option: str
    """What to type."""
    saved_bytes: int
    """Of what the allocator is expected to take, per GPU."""
    taken_bytes: int
    """What it is expected to take with this change alone, where there is room."""
    price: str
    verdict: str
    """With this change alone."""


class Binding(NamedTuple):
    """What fills the peak, and what would help."""

    stage: int
    moment: str
    terms: tuple[Term, ...]
    """The three largest alive at the peak, largest first."""
    mends: tuple[Mend, ...]
    """The cheapest first; none where it fits."""
    higher_saves_bytes: int | None
    """What the best higher stage saves of what the allocator takes; None where there is none."""


def binding(question: Question, card: Card, answer: StageAnswer) -> Binding | None:
    """What binds one stage on one card; None where activations are not counted or the stage is not offered."""
    found = answer.estimate
    if found is None or not question.counts_activations:
        return None
    alive = sorted(found.memory.alive_at(found.memory.peak_moment), key=lambda term: -term.bytes)
    return Binding(
        stage=answer.stage,
        moment=found.memory.peak_moment,
        terms=tuple(alive[:3]),
        mends=() if answer.verdict == FITS or answer.short else tuple(_mends(question, card, found)),
        higher_saves_bytes=_higher(question, found),
    )


def _mends(question: Question, card: Card, found: Estimate) -> Iterator[Mend]:
    before, usable = taken_bytes(found), question.usable_bytes(card)
    for option, other, price in _tried(question, found.plan.strategy.stage):
        saved, now = before - taken_bytes(other), taken_bytes(other)
        if saved * WORTH < before:
            continue
        host = resources(on_card(other.plan, card), other.memory)
        alone = verdict(need(other.plan, other.memory), question.budget_bytes(card), usable, host)
        yield Mend(
            option=option,
            saved_bytes=saved,
            taken_bytes=now,
            price=price or _traffic(found, other),
            verdict=alone,
        )


@lru_cache(maxsize=4)
def _tried(question: Question, stage: int) -> tuple[tuple[str, Estimate, str], ...]:
    """Every change with its estimate, which is the same on all cards."""
    return tuple(
        (option, estimate(changed.plan(None, at)), price) for option, changed, at, price in _changes(question, stage)
    )


def _changes(question: Question, stage: int) -> Iterator[Change]:
    """The changes worth trying, the cheapest first."""
    work = question.workload
    assert work is not None  # the caller checked
    yield from _free(question, stage, work)
    if question.scheme.shard_group:
        yield "--shard-group 0", replace(question, scheme=replace(question.scheme, shard_group=0)), stage, ""
    for higher in _higher_stages(question, stage):
        yield f"--stage {higher}", question, higher, ""
    if work.micro_batch > 1:
        price = f"{work.micro_batch} times the passes for as many tokens"
        yield "--micro-batch 1", question.at("micro_batch", 1), stage, price
    if work.recompute == "none" and (work.selective == "matmuls" or work.attention != "flash"):
        again = _with(question, replace(work, recompute="selective"))
        yield "--recompute selective", again, stage, f"+{selective_percent(question)}% compute"
    if not work.recomputes:
        yield "--recompute full", _with(question, replace(work, recompute="full")), stage, FULL_PRICE
    elif work.checkpoints == "gpu":
        yield (
            "--offload activations=cpu",
            _with(question, replace(work, checkpoints="cpu")),
            stage,
            "copies to the CPU and back",
        )


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
        yield "--attention flash", _with(question, replace(work, attention="flash")), stage, "no price"
    if work.loss.chunks == 1 and question.chunked is not None:
        yield "--loss chunked", _with(question, replace(work, loss=question.chunked)), stage, "no more compute"


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


def _higher_stages(question: Question, stage: int) -> list[int]:
    return [other for other in question.framework.stage_numbers if other > stage and question.offers(other)]


def _higher(question: Question, found: Estimate) -> int | None:
    """What the best higher stage saves; negative where it needs more."""
    higher = _higher_stages(question, found.plan.strategy.stage)
    if not higher:
        return None
    return taken_bytes(found) - min(taken_bytes(estimate(question.plan(None, stage))) for stage in higher)
