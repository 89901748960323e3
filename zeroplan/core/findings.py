"""What is wrong with a configuration, or worth knowing: with a code, a severity, a place, a sentence and a mend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zeroplan.core.host import NVME_BUFFER
from zeroplan.core.question import Question
from zeroplan.core.verdict import DOES_NOT_FIT, FITS, TIGHT, CardAnswer, StageAnswer
from zeroplan.units import format_size

ERROR, WARNING, NOTE = "error", "warning", "note"
BUCKET = "reduce_bucket_size"
SEVERITIES = (ERROR, WARNING, NOTE)
"""The worst first."""


class Place(NamedTuple):
    """Where a finding is."""

    file: str
    key: str = ""
    """Dotted: `zero_optimization.stage`; empty: the file as a whole."""
    line: int | None = None


class Finding(NamedTuple):
    """One thing found."""

    code: str
    """ZP and three digits; `zeroplan explain ZP101` says more."""
    severity: str
    place: Place
    said: str
    mend: str = ""


def worst(findings: list[Finding]) -> str | None:
    """The worst severity; None where nothing was found."""
    return min((each.severity for each in findings), key=SEVERITIES.index, default=None)


def of_answer(question: Question, answer: CardAnswer, place: Place, half: str = "") -> Iterator[Finding]:
    """What the answer for one card says of a plan that computes in `half`: bf16, fp16, or empty."""
    [stage] = answer.stages
    if half == "bf16" and answer.card.gpu.bf16 is False:
        said = f"bf16 is on, and {answer.card.gpu.title} has no matrix units for it: refused, or slow."
        yield Finding("ZP108", WARNING, place, said, "Use fp16.")
    if stage.estimate is None:
        return
    yield from _fitting(answer, stage, place)
    yield from _idle(question, stage, place)


def _fitting(answer: CardAnswer, stage: StageAnswer, place: Place) -> Iterator[Finding]:
    if stage.short and stage.short.name == NVME_BUFFER:
        said = f"the largest tensor's shard of {_gb(stage.short.needed.high)} is larger than an NVMe buffer"
        mend = f"Raise offload_param.buffer_size to {stage.short.needed.high // stage.short.element_bytes}."
        yield Finding("ZP103", ERROR, place, f"{said} of {_gb(stage.short.available or 0)}.", mend)
    elif stage.short:
        severity = ERROR if stage.verdict == DOES_NOT_FIT else WARNING
        low, _, high = stage.short.needed
        needed, there = f"{_gb(low)} to {_gb(high)}", _gb(stage.short.available or 0)
        said = f"a node needs {needed} of {stage.short.name}, and has {there}."
        yield Finding("ZP104", severity, place, said, "Use more nodes, or offload less.")
    elif stage.verdict == DOES_NOT_FIT:
        yield Finding("ZP101", ERROR, place, f"does not fit {taken(answer)}.", "See zeroplan fit.")
    elif stage.verdict == TIGHT:
        yield Finding("ZP102", WARNING, place, f"is tight {taken(answer)}.", "See zeroplan fit.")


def taken(answer: CardAnswer) -> str:
    """Where, and what is taken of how much, for an answer of one stage."""
    [stage] = answer.stages
    where = f"on {stage.estimate.plan.gpus:,} x {answer.card.gpu.title}" if stage.estimate else ""
    reserved = stage.meters.reserved if stage.meters else None
    needs = _gb(answer.budget_bytes - (stage.spare_bytes or 0))
    if reserved and stage.verdict != FITS:
        needs = f"{_gb(reserved.low)} to {_gb(reserved.high)}"
    return f"{where}: {needs} of {_gb(answer.budget_bytes)}"


def _gb(size: int) -> str:
    return f"{format_size(size, 'GB')} GB"


def _idle(question: Question, stage: StageAnswer, place: Place) -> Iterator[Finding]:
    if question.gpus == 1 and stage.stage > 0 and not question.scheme.offloads:
        said = f"on one GPU stage {stage.stage} divides nothing and saves nothing."
        yield Finding("ZP105", WARNING, place, said, "Use more GPUs, or stage 0.")
    found = stage.estimate
    buckets = found and stage.stage > 0 and BUCKET in found.plan.framework.limits
    if found and buckets and found.plan.limit(BUCKET) > question.params:
        said = f"{BUCKET} of {found.plan.limit(BUCKET):,} is larger than the model, and takes its memory all the same."
        yield Finding("ZP107", WARNING, place, said, f"Use {question.params:,} or less.")
    if found and question.grad_accum > 1 and question.gpus > 1:
        once = sum(each.wire_bytes // each.times_per_step for each in found.traffic.transfers)
        if found.traffic.wire_bytes > once:
            times = found.traffic.wire_bytes / once
            said = f"{question.grad_accum} micro-batches a step send {times:.1f} times the bytes of one."
            yield Finding("ZP106", NOTE, place, said, "Stages 0 and 1 reduce once a step.")
