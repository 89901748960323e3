"""`zeroplan fit`: does it fit, and which is the lowest stage that does?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import click

from zeroplan.cli import ANSWERED, NOTHING_FITS
from zeroplan.cli.asking import Asked, ask, shipped_question
from zeroplan.cli.options import GroupedCommand, shared
from zeroplan.cli.output import show
from zeroplan.core.advice import Advice, advise
from zeroplan.core.verdict import CardAnswer, fit

if TYPE_CHECKING:  # a JSON answer needs no screen
    from zeroplan.cli.given import Given
    from zeroplan.render.blocks import Block
    from zeroplan.render.rows.style import Style


@click.command("fit", cls=GroupedCommand, short_help="Every stage on common or named GPUs.")
@shared()
def command(**given: Unpack[Given]) -> int:
    """What each GPU holds and sends at every ZeRO stage, and the lowest stage that fits.

    \b
    Example: zeroplan fit --params 7.5e9 --gpus 64 --gpu a100-80gb
    Exit status: 0 some stage fits, 1 nothing fits, 2 a bad question.
    """
    asked = ask(given)
    answers = fit(asked.question)
    shipped = shipped_question(asked, given)
    others = fit(shipped) if shipped else (None,) * len(answers)
    advices = [advise(asked.question, *pair) for pair in zip(answers, others, strict=True)]
    show(
        given["format"],
        given["unit"],
        lambda style: _blocks(asked, answers, advices, style),
        lambda: _json(asked, answers, advices),
        lambda: _records(_json(asked, answers, advices)),
    )
    return ANSWERED if any(answer.recommended for answer in answers) else NOTHING_FITS


def _blocks(asked: Asked, answers: tuple[CardAnswer, ...], advices: list[Advice], style: Style) -> list[Block]:
    if len(answers) == 1:
        from zeroplan.render.rows.card import card_blocks

        return card_blocks(asked.question, answers[0], advices[0], style)
    from zeroplan.render.rows.fit import fit_blocks

    return fit_blocks(asked.question, answers, advices, style)


def _json(asked: Asked, answers: tuple[CardAnswer, ...], advices: list[Advice]) -> dict[str, Any]:
    from zeroplan.render.machine import card_json, header, request_json

    results = [card_json(asked.question, *pair) for pair in zip(answers, advices, strict=True)]
    return {**header("fit"), "request": request_json(asked.question, asked.node), "results": results}


def _records(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each GPU and stage, without the ledgers."""
    for card in answer["results"]:
        for stage in card["stages"]:
            yield {**{k: v for k, v in card.items() if k not in ("stages", "notes", "binding")}, **_figures(stage)}


def _figures(stage: dict[str, Any]) -> dict[str, Any]:
    from zeroplan.render.machine import flat_host

    lists = ("memory", "traffic", "copies", "host", "moment_bytes")
    return {**{key: value for key, value in stage.items() if key not in lists}, **flat_host(stage["host"])}
