"""`zeroplan compare`: every card side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import click

from zeroplan.cli import ANSWERED, NOTHING_FITS
from zeroplan.cli.asking import Asked, ask, no_cards
from zeroplan.cli.options import OUTPUT, QUESTION, GroupedCommand, GroupedOption, shared
from zeroplan.cli.output import show
from zeroplan.cli.planned import planned
from zeroplan.cli.typed import missing, typed
from zeroplan.core.compare import SORTS, Comparison, answers_to, compare, in_cheapest_node
from zeroplan.core.hardware import Gpu, Node
from zeroplan.core.question import Question
from zeroplan.errors import Faults, InputError
from zeroplan.formats.presets import Presets

if TYPE_CHECKING:
    from zeroplan.cli.given import Given


@click.command("compare", cls=GroupedCommand, short_help="Cards side by side.")
@shared("recompute", "stage")
@click.option(
    "--strategy",
    "strategies",
    cls=GroupedOption,
    heading=QUESTION,
    multiple=True,
    metavar="OPTIONS",
    help='Side by side: "stage=3,offload=optimizer", "quantize=weights+gradients".',
)
@click.option(
    "--sort",
    cls=GroupedOption,
    heading=OUTPUT,
    type=click.Choice(SORTS),
    default="asked",
    show_default=True,
    metavar="KEY",
    help=f"Order of the cards: {', '.join(SORTS)}.",
)
def command(sort: str, strategies: tuple[str, ...], **given: Unpack[Given]) -> int:
    """Every card, or those named, side by side: stage, fewest GPUs, time, memory left, price; or strategies.

    \b
    Example: zeroplan compare --params 70e9 --gpus 512 --sort price
    Example: zeroplan compare --params 70e9 --gpus 64 --gpu h100 --strategy stage=3 --strategy stage=3,hpz=8
    Exit status: 0 some card or strategy has an answer, 1 none has, 2 a bad question.
    """
    if strategies:
        return _strategies(strategies, given)
    asked = ask(given, otherwise=_every_gpu)
    rows = compare(asked.question if asked.node else _rented(asked), sort)

    def table(style: Any) -> Any:
        from zeroplan.render.rows.compare import compare_blocks

        return compare_blocks(asked.question, rows, style)

    show(given["format"], given["unit"], table, lambda: _json(asked, rows), lambda: _records(_json(asked, rows)))
    return ANSWERED if any(row.answer.recommended for row in rows) else NOTHING_FITS


def _strategies(texts: tuple[str, ...], given: Given) -> int:
    if typed("sort"):
        raise InputError("--sort", "orders cards.", "Strategies stay in the order in which they are given.")
    given, faults = planned(given), Faults()
    asked = [faults.attempt(partial(_asked, given, text)) for text in texts]
    faults.report()
    rows = [row for text, one in zip(texts, asked, strict=True) if one for row in answers_to(text, one.question)]
    first = asked[0]
    assert first is not None  # a fault was reported

    def table(style: Any) -> Any:
        from zeroplan.cli.strategies import outside
        from zeroplan.render.rows.strategies import strategies_blocks

        return strategies_blocks(rows, outside(given), style)

    def data() -> dict[str, Any]:
        from zeroplan.render.answers import strategy_json
        from zeroplan.render.machine import header, request_json

        results = [strategy_json(row, first.node) for row in rows]
        return {**header("compare"), "request": request_json(first.question, first.node), "results": results}

    show(given["format"], given["unit"], table, data, lambda: _strategy_records(data()))
    return ANSWERED if any(row.answer.recommended for row in rows) else NOTHING_FITS


def _strategy_records(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each strategy and card; the request is in its name."""
    from zeroplan.render.machine import flat_host

    for row in answer["results"]:
        yield {**{key: value for key, value in row.items() if key not in ("request", "host")}, **flat_host(row["host"])}


def _asked(given: Given, text: str) -> Asked:
    from zeroplan.cli.strategies import strategy

    asked = ask(strategy(given, text), otherwise=no_cards)
    if not asked.question.cards:
        raise missing("--gpu", "--gpu h100")
    return asked


def _rented(asked: Asked) -> Question:
    """The question with every card in the node that is the cheapest to rent."""
    if asked.question.scheme.offloads:  # a verdict is of the node then, and all commands give the same
        return asked.question
    nodes = [node for node in asked.presets.all("node") if isinstance(node, Node)]
    question = asked.question
    return replace(question, cards=tuple(in_cheapest_node(card, nodes, question.gpus) for card in question.cards))


def _every_gpu(presets: Presets) -> list[Gpu]:
    return [gpu for gpu in presets.all("gpu") if isinstance(gpu, Gpu)]


def _json(asked: Asked, rows: list[Comparison]) -> dict[str, Any]:
    from zeroplan.render.answers import comparison_json
    from zeroplan.render.machine import header, request_json

    results = [comparison_json(asked.question, row) for row in rows]
    return {**header("compare"), "request": request_json(asked.question, asked.node), "results": results}


def _records(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each card, the fewest GPUs per stage in columns of their own."""
    for card in answer["results"]:
        fewest = {f"min_gpus_{entry['stage']}": entry["gpus"] for entry in card["min_gpus"]}
        yield {**{key: value for key, value in card.items() if key != "min_gpus"}, **fewest}
