"""`zeroplan diagnose`: what an out-of-memory message says, and which tensor it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast

import click

from zeroplan.cli import ANSWERED
from zeroplan.cli.asking import Asked, ask, no_cards
from zeroplan.cli.options import GroupedCommand, shared
from zeroplan.cli.output import show
from zeroplan.core.diagnosis import Matched, matches
from zeroplan.core.oom import Message
from zeroplan.core.verdict import CardAnswer, fit
from zeroplan.errors import InputError
from zeroplan.formats.oom import is_message, read_message

if TYPE_CHECKING:
    from zeroplan.cli.given import Given
    from zeroplan.render.blocks import Block
    from zeroplan.render.rows.style import Style

LARGEST_LOG = 64 * 2**20
LEAST_DEVICE, LARGEST_DEVICE = 2**20, 2**50
"""Bytes of devices that are worth planning for."""


@click.command("diagnose", cls=GroupedCommand, short_help="A CUDA out-of-memory message, decoded.")
@click.argument("message", metavar="MESSAGE|FILE|-")
@shared("headroom", without=("unit",))
def command(message: str, **given: Unpack[Given]) -> int:
    """What a CUDA out-of-memory message says, which tensor had that size, and at which stage it would fit.

    MESSAGE is the text itself, a log with it, or - for standard input. With the model and the GPUs the size that
    PyTorch failed to get is looked up among what the plan allocates.

    \b
    Example: zeroplan diagnose train.log --params 13.9e9 --gpus 4 --framework deepspeed --stage 2
    Exit status: 0 a message was found, 2 none.
    """
    found = read_message(_text(message))
    question = cast("Given", {"unit": "GiB", **given})
    asked, answer = _asked(question, found) if given["params"] or given["model"] else (None, None)
    allocated = found.allocated.bytes if found.allocated else None
    same = matches(asked.question, found.requested.bytes, found.requested.half, allocated) if asked else []
    show(
        given["format"],
        "GiB",
        lambda style: _blocks(found, asked, same, answer, style),
        lambda: _json(found, asked, same, answer),
        lambda: _records(_json(found, asked, same, answer)),
    )
    return ANSWERED


def _text(message: str) -> str:
    if message == "-":
        raw = sys.stdin.buffer.read(LARGEST_LOG + 1)
        if len(raw) > LARGEST_LOG:
            raise InputError("MESSAGE", f"standard input is larger than {LARGEST_LOG // 2**20} MiB.", "Give its end.")
        return raw.decode("utf-8", errors="replace")
    if is_message(message):
        return message
    if not os.path.exists(message):
        hint = "Give the message in quotes, a log's path, or - for standard input."
        raise InputError("MESSAGE", "is neither an out-of-memory message nor a file.", hint)
    from zeroplan.formats.files import read_bytes

    return read_bytes(message, LARGEST_LOG).decode("utf-8", errors="replace")


def _asked(given: Given, found: Message) -> tuple[Asked, CardAnswer | None]:
    """The question, and the answer at every stage on a GPU with the memory that PyTorch had, where none is
    named."""
    asked = ask(given, otherwise=no_cards)
    whole = cast("Given", {**given, "stage": ()})
    if not asked.question.cards:
        usable = found.total.bytes - (found.outside or 0) if found.total else 0
        if not LEAST_DEVICE <= usable <= LARGEST_DEVICE:
            return asked, None
        whole = cast("Given", {**whole, "memory": f"{usable / 2**20:.3f}MiB"})
    question = ask(whole, otherwise=no_cards).question
    return asked, fit(replace(question, cards=question.cards[:1]))[0]


def _blocks(
    found: Message, asked: Asked | None, same: list[Matched], answer: CardAnswer | None, style: Style
) -> list[Block]:
    from zeroplan.render.rows.diagnose import diagnose_blocks

    return diagnose_blocks(found, asked.question if asked else None, same, answer, style)


def _json(found: Message, asked: Asked | None, same: list[Matched], answer: CardAnswer | None) -> dict[str, Any]:
    from zeroplan.render.answers import diagnosis_json
    from zeroplan.render.machine import header, request_json

    request = request_json(asked.question, asked.node) if asked else None
    return {**header("diagnose"), "request": request, "results": [diagnosis_json(found, same, answer)]}


def _records(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each thing of the size asked for, or one for the message alone."""
    for result in answer["results"]:
        message = {name: value for name, value in result.items() if name != "matches"}
        for match in result["matches"] or [{}]:
            yield {**message, **match}
