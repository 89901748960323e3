"""Predictions against measurements: one row scored, and the figures of many."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tests.accuracy.runs import NotExpressibleError, Row, asked
from zeroplan.core.meters import Range
from zeroplan.core.verdict import DOES_NOT_FIT, StageAnswer, fit
from zeroplan.formats.presets import Presets
from zeroplan.units import GIB

METERS = ("allocated", "active", "reserved", "device")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One row: what was predicted and what was measured, GiB."""

    id: str
    scored: str
    framework: str
    meter: str
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    measured: float | None = None
    outcome: str
    verdict: str | None = None
    reason: str = ""
    """Why it cannot be expressed; empty where it can."""

    @property
    def error(self) -> float | None:
        """The relative error, absolute value."""
        if self.predicted is None or not self.measured:
            return None
        return abs(self.predicted / self.measured - 1)

    @property
    def inside(self) -> bool | None:
        """Whether the measured value is within low and high."""
        if self.low is None or self.high is None or self.measured is None:
            return None
        return self.low <= self.measured <= self.high

    @property
    def width(self) -> float | None:
        """The range over the expected value."""
        if self.predicted is None or self.low is None or self.high is None:
            return None
        return (self.high - self.low) / self.predicted

    def json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "framework"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of several rows of one meter."""

    rows: int
    median_error: float | None
    p90_error: float | None
    inside: float | None
    median_width: float | None


def score(rows: Iterable[Row], presets: Presets) -> list[Scored]:
    """Every row, in its order."""
    return [_scored(row, presets) for row in rows]


def summary(scored: Sequence[Scored]) -> Summary:
    """The figures of rows that were measured."""
    errors = sorted(error for row in scored if (error := row.error) is not None)
    inside = [found for row in scored if (found := row.inside) is not None]
    widths = [width for row in scored if (width := row.width) is not None]
    return Summary(
        rows=len(errors),
        median_error=median(errors) if errors else None,
        p90_error=percentile(errors, 0.9) if errors else None,
        inside=sum(inside) / len(inside) if inside else None,
        median_width=median(widths) if widths else None,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie, by the nearest rank."""
    return values[max(-(-round(share * 1000) * len(values) // 1000) - 1, 0)]


def caught(scored: Iterable[Scored]) -> tuple[int, int]:
    """Of the expressible runs that ran out of memory, how many are called does-not-fit; and how many there are."""
    verdicts = [row.verdict for row in scored if row.outcome == "oom" and not row.reason]
    return verdicts.count(DOES_NOT_FIT), len(verdicts)


def false_alarms(scored: Iterable[Scored]) -> tuple[int, int]:
    """Of the expressible runs that ran, how many are called does-not-fit; and how many there are."""
    verdicts = [row.verdict for row in scored if row.outcome == "ran" and not row.reason]
    return verdicts.count(DOES_NOT_FIT), len(verdicts)


def _scored(row: Row, presets: Presets) -> Scored:
    known: dict[str, Any] = {
        "id": row["id"],
        "scored": row["scored"],
        "framework": row["framework"],
        "meter": row["meter"],
        "outcome": row["outcome"],
        "measured": float(row["measured_memory_gib"]) if row["measured_memory_gib"] else None,
    }
    try:
        question = asked(row, presets)
    except NotExpressibleError as reason:
        return Scored(**known, reason=str(reason))
    answer = fit(question.question)[0].stage(question.stage)
    bounds = _bounds(answer, row["meter"])
    return Scored(
        **known,
        verdict=answer.verdict,
        predicted=round(bounds.expected / GIB, 3),
        low=round(bounds.low / GIB, 3),
        high=round(bounds.high / GIB, 3),
    )


def _bounds(answer: StageAnswer, meter: str) -> Range:
    """What the row's meter would show; the reserved memory for runs that were not measured."""
    assert answer.meters is not None
    by_name = {"allocated": answer.meters.allocated, "active": answer.meters.allocated, "device": answer.meters.device}
    found = by_name.get(meter, answer.meters.reserved)
    assert found is not None  # only questions whose activations are counted get here
    return found
