"""The remarks on an answer, a line each: a free upgrade, DeepSpeed as shipped, a way out."""

from collections.abc import Iterable, Sequence

from zeroplan.core.advice import Advice
from zeroplan.core.meters import taken_bytes
from zeroplan.core.question import Question
from zeroplan.core.verdict import FITS, TIGHT, CardAnswer, StageAnswer
from zeroplan.render.hosts import host
from zeroplan.render.labels import at_stages, listed, short_title, stage_label
from zeroplan.units import format_count, format_ratio, format_size

GATHERING_STAGE = 3
"""The stage that gathers layers, which `--params` alone cannot size."""
SHIPPED, TRY_SHIPPED = "DeepSpeed as shipped", "--framework deepspeed"


def card_notes(question: Question, answer: CardAnswer, advice: Advice, unit: str = "GB") -> list[str]:
    """The remarks on one card."""
    shipped = _shipped_needs(question, answer, advice) or _shipped_costs(answer, advice, unit)
    remarks = (
        _upgrade(answer, advice, unit),
        f"Without --shard-group {stage_label(advice.ungrouped)} fits" if advice.ungrouped is not None else "",
        _way_out(advice),
        _offload(advice, unit),
        f"{SHIPPED} {shipped}: {TRY_SHIPPED}" if shipped else "",
    )
    return [*_general(question), *(f"{remark}." for remark in remarks if remark)]


def cards_notes(question: Question, answers: Sequence[CardAnswer], advices: Sequence[Advice], unit: str) -> list[str]:
    """The remarks on several cards; what holds for several is said once."""
    pairs = list(zip(answers, advices, strict=True))
    upgrades = _grouped((answer, _upgrade(answer, advice, unit)) for answer, advice in pairs)
    needs = _grouped((answer, _shipped_needs(question, answer, advice)) for answer, advice in pairs)
    shipped = "; ".join([*needs, *_shipped_sends(answers, advices)])
    return [
        *_general(question),
        *(f"{remark}." for remark in upgrades),
        *_ways_out(pairs),
        *_offloads(pairs),
        *([f"{SHIPPED} {shipped}: {TRY_SHIPPED}."] if shipped else []),
    ]


def _grouped(remarks: Iterable[tuple[CardAnswer, str]]) -> list[str]:
    """Each remark once, with the cards that it is about; the highest stage first."""
    cards: dict[str, list[str]] = {}
    for answer, remark in remarks:
        if remark:
            cards.setdefault(remark, []).append(short_title(answer))
    return [f"{remark} on {listed(titles)}" for remark, titles in sorted(cards.items(), reverse=True)]


def _general(question: Question) -> list[str]:
    notes = []
    if question.workload is not None and not question.counts_activations:
        notes.append(f"Activations are not counted: {question.model.why_unmodelled}.")
    if idle := _idle_recompute(question):
        notes.append(idle)
    if question.gpus == 1:
        notes.append("On one GPU sharding saves nothing: every stage holds all states, and buffers differ.")
    lacking = [str(stage) for stage in question.stages if not question.offers(stage)]
    if lacking:
        notes.append(f"{question.framework.name} does not offer stage {listed(lacking, 'or')}.")
    return notes


def _idle_recompute(question: Question) -> str:
    """That selective recomputation changes nothing, where it does not."""
    work = question.workload
    if work is None or work.recompute != "selective" or work.selective != "attention" or work.attention != "flash":
        return ""
    return (
        f"Selective recomputation, which is of the attention core in {question.framework.name}, "
        "saves nothing: flash attention keeps no scores."
    )


def _upgrade(answer: CardAnswer, advice: Advice, unit: str) -> str:
    after = advice.free_upgrade.estimate if advice.free_upgrade else None
    here = answer.recommended.estimate if answer.recommended else None
    if not after or not here or after.plan.gpus == 1:
        return ""
    freed = format_size(taken_bytes(here) - taken_bytes(after), unit)
    traffic = "the same" if after.traffic.wire_bytes == here.traffic.wire_bytes else "less"
    stage = after.plan.strategy.stage
    gathered = ", gathered layers not counted" if stage == GATHERING_STAGE else ""
    return f"{stage_label(stage)} frees {freed} {unit} more per GPU at {traffic} traffic{gathered}"


def _shipped_needs(question: Question, answer: CardAnswer, advice: Advice) -> str:
    """What DeepSpeed as shipped needs, where that is another stage."""
    if advice.shipped is None or _choice(advice.shipped) == _choice(answer):
        return ""
    best = advice.shipped.recommended
    if best is None:
        return f"does not fit{at_stages(question)}"
    return f"needs {stage_label(best.stage)}{' and the headroom' if best.verdict == TIGHT else ''}"


def _shipped_costs(answer: CardAnswer, advice: Advice, unit: str) -> str:
    """What DeepSpeed as shipped holds and sends at the same stage, where that is more."""
    other = advice.shipped.recommended if advice.shipped else None
    there = other.estimate if other else None
    here = answer.recommended.estimate if answer.recommended else None
    if not there or not here or taken_bytes(there) <= taken_bytes(here):
        return ""
    word = "takes" if there.plan.workload else "peaks at"
    peak, sent = (format_size(size, unit) for size in (taken_bytes(there), there.traffic.wire_bytes))
    ratio = format_ratio(there.ratio_to_data_parallel)
    traffic = f", {sent} {unit} sent ({ratio} plain DP)" if there.traffic.wire_bytes else ""
    return f"{word} {peak} {unit}{traffic}"


def _shipped_sends(answers: Sequence[CardAnswer], advices: Sequence[Advice]) -> list[str]:
    """The stages at which DeepSpeed as shipped sends more than the paper's algorithm."""
    shipped = advices[0].shipped
    if shipped is None:
        return []
    by_ratio: dict[str, list[str]] = {}
    for here, there in zip(answers[0].stages, shipped.stages, strict=True):
        if _sends_more(here, there):
            by_ratio.setdefault(format_ratio(_ratio(there)), []).append(stage_label(there.stage))
    if not by_ratio:
        return []
    return [f"sends {listed(f'{ratio} at {listed(labels)}' for ratio, labels in by_ratio.items())}"]


def _sends_more(here: StageAnswer, there: StageAnswer) -> bool:
    if not here.estimate or not there.estimate:
        return False
    return there.estimate.traffic.wire_bytes > here.estimate.traffic.wire_bytes


def _ratio(stage: StageAnswer) -> float | None:
    return stage.estimate.ratio_to_data_parallel if stage.estimate else None


def _way_out(advice: Advice) -> str:
    if advice.way_out is None:
        return ""
    stage, gpus = advice.way_out
    return f"{stage_label(stage)} fits from {format_count(gpus)} GPUs"


def _ways_out(pairs: Sequence[tuple[CardAnswer, Advice]]) -> list[str]:
    """From how many GPUs it fits on the cards where nothing does now: the fewest and the most."""
    found = sorted((a.way_out[1], a.way_out[0], short_title(card)) for card, a in pairs if a.way_out)
    if not found:
        return []
    ends = [found[0], found[-1]] if len(found) > 1 else found
    spans = " to ".join(f"{format_count(gpus)} GPUs ({title})" for gpus, _, title in ends)
    return [f"{stage_label(found[0][1])} fits from {spans}."]


def _offload(advice: Advice, unit: str) -> str:
    """The cheapest offload with which something fits, and its price."""
    if advice.offloaded is None:
        return ""
    best = advice.offloaded.answer
    may = "fits" if best.verdict == FITS else "may just fit"
    assert best.estimate is not None
    taken = format_size(taken_bytes(best.estimate), unit)
    off = host(best, unit).partition(". Reading")[0]
    return f"With {advice.offloaded.option} {stage_label(best.stage)} {may}, at {taken} {unit} per GPU. {off}"


def _offloads(pairs: Sequence[tuple[CardAnswer, Advice]]) -> list[str]:
    """With which offload something fits on the cards where nothing does now."""
    remarks = (
        (card, f"With {a.offloaded.option} {stage_label(a.offloaded.answer.stage)} fits") if a.offloaded else (card, "")
        for card, a in pairs
    )
    return [f"{remark}." for remark in _grouped(remarks)]


def _choice(answer: CardAnswer) -> tuple[int, str] | None:
    best = answer.recommended
    return (best.stage, best.verdict) if best else None
