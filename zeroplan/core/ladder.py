"""Ways to keep more and more off the GPU, the cheapest first, and what they make of a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from zeroplan.core.question import Card, Question
from zeroplan.core.verdict import FITS, TIGHT, StageAnswer, fit

STEPS: tuple[dict[str, str], ...] = (
    {"optimizer": "cpu"},
    {"params": "cpu"},
    {"optimizer": "cpu", "params": "cpu"},
    {"optimizer": "nvme"},
    {"optimizer": "nvme", "params": "cpu"},
    {"optimizer": "nvme", "params": "nvme"},
)
"""From the states that move the fewest bytes (ZeRO-Offload section 4.1) to all on disk (ZeRO-Infinity)."""


class Step(NamedTuple):
    """A way to keep states off the GPU."""

    option: str
    """What to type."""
    question: Question


class Offloaded(NamedTuple):
    """The lowest stage that fits with something off the GPU."""

    option: str
    answer: StageAnswer


def ladder(question: Question) -> Iterator[Step]:
    """The questions with something off the GPU that the framework can answer at one of their stages."""
    if question.scheme.offloads:
        return
    for places in STEPS:
        scheme = replace(question.scheme, **places)  # type: ignore[arg-type]
        if any(question.offers(stage, scheme) for stage in question.stages):
            option = " ".join(f"--offload {place}={tier}" for place, tier in places.items())
            yield Step(option, replace(question, scheme=scheme))


def offloaded(question: Question, card: Card) -> Offloaded | None:
    """The first way that fits on a card, else the first that may; None where none does."""
    found = []
    for option, asked in ladder(question):
        [answer] = fit(replace(asked, cards=(card,)))
        best = answer.recommended
        if best is not None and best.verdict == FITS:
            return Offloaded(option, best)
        found += [Offloaded(option, best)] if best is not None and best.verdict == TIGHT else []
    return found[0] if found else None
