"""`zeroplan explain`: each number with its formula, inputs and source; or a word of the trade."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import click

from zeroplan.cli import ANSWERED
from zeroplan.cli.asking import Asked, ask, no_cards
from zeroplan.cli.options import GroupedCommand, names_of, shared, starting
from zeroplan.cli.output import show
from zeroplan.cli.planned import planned
from zeroplan.cli.typed import missing, typed
from zeroplan.core.claims import ClaimedBytes, claimed
from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.ledger import Term, Transfer
from zeroplan.core.meters import meters
from zeroplan.core.question import Question
from zeroplan.core.verdict import NOT_ASKED, CardAnswer, StageAnswer, fit
from zeroplan.core.word import Word
from zeroplan.errors import InputError, printable, unknown_name
from zeroplan.formats.presets import Presets

if TYPE_CHECKING:  # a JSON answer needs no screen
    from zeroplan.cli.given import Given
    from zeroplan.render.blocks import Block
    from zeroplan.render.rows.style import Style


PEAK = ("peak", "phases")
TIME = ("time", "link", "measured", "seconds")
MEMORY = (
    "usable",
    "memory",
    "budget",
    "context",
    "headroom",
    "verdict",
    "spare",
    "left",
    "host",
    "ram",
    "host ram",
    "nvme",
)
TRAFFIC = ("traffic", "sent", "ratio", "elements")
"""Words for the figures that are neither terms nor transfers, and for all transfers."""
PLAN_OPTIONS = (
    *("plan", "model", "params", "seq_len", "micro_batch", "recompute", "gpus", "stage", "gpu", "memory", "node"),
    *("recipe", "optimizer_bytes", "framework", "grad_accum", "headroom", "attention", "loss", "fused"),
    *("optimizer_kernel", "experts", "compiled", "offload", "shard_group", "hpz", "quantize", "set"),
)
"""The options that ask for a plan rather than for a word."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Explained:
    """The parts of one plan that were asked for."""

    asked: Asked
    term: str | None
    found: Estimate
    terms: list[Term]
    transfers: list[Transfer]
    claims: list[ClaimedBytes]
    words: list[Word]
    cards: tuple[CardAnswer, ...]

    @property
    def anything(self) -> bool:
        """Whether the term names something of this plan, or a word."""
        figures = _matches(self.term, *PEAK, *TIME, *MEMORY)
        return bool(self.terms or self.transfers or self.claims or self.words or figures)


@click.command("explain", cls=GroupedCommand, short_help="Formulas, sources, words of the trade.")
@click.argument("term", required=False, shell_complete=starting(lambda: names_of("word")))
@shared()
def command(term: str | None, **given: Unpack[Given]) -> int:
    """Each number of a plan with its formula, inputs and source; or a word of the trade.

    \b
    Example: zeroplan explain --params 7.5e9 --gpus 64 --stage 2
    Example: zeroplan explain --params 7.5e9 --gpus 64 --stage 2 momentum
    Example: zeroplan explain all-reduce
    """
    sized = given["params"] is not None or given["model"] is not None
    known = sized and given["gpus"] is not None and bool(given["stage"])
    if typed(*PLAN_OPTIONS) or (known and term is None):
        _explain_plan(given, term)
    else:
        _explain_words(given, term)
    return ANSWERED


def _explain_words(given: Given, term: str | None) -> None:
    presets = Presets(given["presets"])
    words = [_word(presets, term)] if term is not None else _all_words(presets)

    def table(_style: Style) -> list[Block]:
        from zeroplan.render.rows.words import word_blocks, words_grid

        return word_blocks(words) if term is not None else words_grid(words)

    def data() -> dict[str, Any]:
        from zeroplan.render.answers import word_json
        from zeroplan.render.machine import header

        empty: dict[str, Any] = {"request": None, "term": term, "stage": None, "usable": [], "claims": []}
        return {**header("explain"), **empty, "words": [word_json(word) for word in words]}

    show(given["format"], given["unit"], table, data, lambda: data()["words"])


def _explain_plan(given: Given, term: str | None) -> None:
    given = planned(given)
    asked = ask(given, otherwise=no_cards)
    if not given["stage"]:
        asked = replace(asked, question=_at_lowest(asked.question))
    if len(asked.question.stages) > 1 or len(asked.question.cards) > 1:
        raise InputError("explain", "explains one stage on one GPU.", "Example: --stage 2 --gpu h100.")
    explained = _explained(asked, term)

    def table(style: Style) -> list[Block]:
        return _blocks(explained, style)

    def data() -> dict[str, Any]:
        return _json(explained)

    show(given["format"], given["unit"], table, data, lambda: _records(data()))


def _at_lowest(question: Question) -> Question:
    """The question at the stage that fit shows of its one card: the lowest that fits, else the highest."""
    if len(question.cards) != 1:
        raise missing("--stage", "--stage 2")
    [answer] = fit(question)
    return replace(question, stages=((answer.recommended or answer.offered[-1]).stage,))


def _explained(asked: Asked, term: str | None) -> Explained:
    question = asked.question
    cards = fit(question)
    found = cards[0].stages[0].estimate if cards else estimate(question.plan(None, question.stages[0]))
    assert found is not None  # a question has a stage that the framework offers
    moved = (*found.traffic.transfers, *found.traffic.copies)
    explained = Explained(
        asked=asked,
        term=term,
        found=found,
        terms=[t for t in found.memory.terms if _matches(term, t.name, t.what, t.role)],
        transfers=[t for t in moved if _matches(term, t.collective, t.what, t.phase, *TRAFFIC)],
        claims=[c for c in claimed(found.plan) if _matches(term, c.claim.name, "estimator", "claims")],
        words=_words(asked.presets, term),
        cards=cards if _matches(term, *MEMORY) else (),
    )
    if term is not None and not explained.anything:
        raise _unknown_term(asked.presets, found, term)
    return explained


def _matches(term: str | None, *names: str) -> bool:
    """Whether a term names a thing: by its whole name, a part of its dotted name, or a word of it."""
    if term is None:
        return True
    wanted = term.strip().lower()
    parts = {part for name in names for part in (name.lower(), *name.lower().replace(",", "").split())}
    dotted = {piece for part in parts for piece in part.split(".")} | parts
    return wanted in dotted or any(part.startswith(f"{wanted}.") for part in parts)


def _words(presets: Presets, term: str | None) -> list[Word]:
    if term is None:
        return []
    try:
        return [presets.word(term)]
    except InputError:
        return []


def _word(presets: Presets, term: str) -> Word:
    try:
        return presets.word(term)
    except InputError as error:
        raise InputError("TERM", error.problem, f"{error.hint} `zeroplan explain` lists all words.".strip()) from error


def _all_words(presets: Presets) -> list[Word]:
    return [word for word in presets.all("word") if isinstance(word, Word)]


def _unknown_term(presets: Presets, found: Estimate, term: str) -> InputError:
    known = [t.name for t in found.memory.terms] + [t.collective for t in found.traffic.transfers]
    known += [name for word in _all_words(presets) for name in (word.name, *word.aliases)]
    error = unknown_name("TERM", "term", term, known, "Without TERM every term is shown.")
    return InputError("TERM", f"{printable(term)} is no term of this plan and no word.", error.hint)


def _blocks(explained: Explained, style: Style) -> list[Block]:
    from zeroplan.render.rows import explain as rows
    from zeroplan.render.rows.words import word_blocks

    question, found, term = explained.asked.question, explained.found, explained.term
    parts = (explained.terms, explained.transfers, explained.claims, style)
    plan = rows.part_blocks(found, *parts) if term else rows.plan_blocks(question, found, *parts)
    memory = [block for card in explained.cards for block in rows.memory_blocks(question, card, style)]
    peak = rows.peak_blocks(found, style) if term and _matches(term, *PEAK) else []
    time = rows.time_blocks(found) if explained.asked.question.cards and _matches(term, *TIME) else []
    return [*word_blocks(explained.words), *plan, *peak, *memory, *time]


def _json(explained: Explained) -> dict[str, Any]:
    from zeroplan.render.answers import claim_json, usable_json, word_json
    from zeroplan.render.machine import header, request_json, stage_json, term_json, transfer_json

    asked, found = explained.asked, explained.found
    answer = (
        explained.cards[0].stages[0]
        if explained.cards
        else StageAnswer(
            stage=found.plan.strategy.stage,
            verdict=NOT_ASKED,
            estimate=found,
            meters=meters(found.plan, found.memory, None),
        )
    )
    stage = {
        **stage_json(asked.question, answer),
        "memory": [term_json(t) for t in explained.terms],
        "traffic": [transfer_json(found, t) for t in explained.transfers],
    }
    return {
        **header("explain"),
        "request": request_json(asked.question, asked.node),
        "term": explained.term,
        "stage": stage,
        "usable": [usable_json(asked.question, card) for card in explained.cards],
        "claims": [claim_json(claim) for claim in explained.claims],
        "words": [word_json(word) for word in explained.words],
    }


def _records(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each term and transfer; where there is none, for each word."""
    if not answer["stage"]["memory"] and not answer["stage"]["traffic"]:
        yield from answer["words"]
    for term in answer["stage"]["memory"]:
        yield {**term, "inputs": _given(term["inputs"])}
    for transfer in answer["stage"]["traffic"]:
        name = {"name": f"{transfer['collective']} {transfer['what']}", "bytes": transfer["wire_bytes"]}
        yield {
            **name,
            "what": transfer["what"],
            "phases": transfer["phase"],
            "formula": transfer["formula"],
            "inputs": _given(transfer["inputs"]),
            "source": transfer["source"],
        }


def _given(inputs: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in inputs.items())
