"""`zeroplan sweep`: one input varied, every stage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import click

from zeroplan.cli import ANSWERED
from zeroplan.cli.asking import Asked, ask, no_cards, parse_gpus, parse_params
from zeroplan.cli.batch import check_activations, parse_micro_batch, parse_seq_len
from zeroplan.cli.options import QUESTION, GroupedCommand, GroupedOption, shared
from zeroplan.cli.output import show
from zeroplan.cli.typed import typed
from zeroplan.core.plan import MOST_MICRO_BATCHES
from zeroplan.core.question import WORKLOAD_FIELDS
from zeroplan.core.sweep import FIELDS, SweepPoint, sweep
from zeroplan.errors import Faults, InputError, printable
from zeroplan.units import parse_count

MOST_VALUES = 1000
EXAMPLE = "--over gpus=1,4,16,64"

if TYPE_CHECKING:
    from zeroplan.cli.given import Given


@click.command("sweep", cls=GroupedCommand, short_help="One input varied, every stage.")
@click.option(
    "--over",
    cls=GroupedOption,
    heading=QUESTION,
    metavar="NAME=V,V",
    multiple=True,
    help=f"What to vary: {', '.join(FIELDS)}; its values.",
)
@shared("recompute")
def command(over: tuple[str, ...], **given: Unpack[Given]) -> int:
    """Every stage at several values of one input, as in Table 1 of the ZeRO paper.

    \b
    Example: zeroplan sweep --params 7.5e9 --over gpus=1,4,16,64,256,1024
    Exit status: 0, or 2 for a bad question.
    """
    name, values = parse_over(over)
    field = FIELDS[name]
    assumed = {field: values[0]} if field in ("params", "gpus", *WORKLOAD_FIELDS) else None
    asked = ask(given, otherwise=no_cards, assumed=assumed)
    if field in WORKLOAD_FIELDS:
        check_activations(asked.question, "sweep")
    points = sweep(asked.question, name, values)

    def table(style: Any) -> Any:
        from zeroplan.render.rows.sweep import sweep_blocks

        return sweep_blocks(asked.question, name, points, style)

    show(
        given["format"],
        given["unit"],
        table,
        lambda: _json(asked, name, points),
        lambda: _records(asked, name, points),
    )
    return ANSWERED


def parse_over(texts: tuple[str, ...]) -> tuple[str, list[int]]:
    """What to vary, and its values; the same input cannot be typed as an option too."""
    if len(texts) != 1:
        raise InputError(
            "--over", "is given twice; one input is varied." if texts else "is missing.", f"Example: {EXAMPLE}."
        )
    name, equals, rest = texts[0].partition("=")
    name = name.strip().removeprefix("--")
    if not equals or name not in FIELDS:
        hint = f"Example: {EXAMPLE}. NAME: {', '.join(FIELDS)}."
        raise InputError("--over", f"{printable(texts[0])} is not NAME=VALUES.", hint)
    if typed(FIELDS[name]):
        raise InputError(f"--{name}", f"--over {name}=... varies it already.", f"Leave --{name} out.")
    values = rest.split(",")
    if len(values) > MOST_VALUES:
        raise InputError("--over", f"{len(values)} values; give 1 to {MOST_VALUES}.", f"Example: {EXAMPLE}.")
    faults = Faults()
    parsed = [faults.attempt(partial(_value, name, text)) for text in values]
    faults.report()
    return name, [value for value in parsed if value is not None]


def _value(name: str, text: str) -> int:
    if name == "params":
        return parse_params(text, "--over params")
    if name == "gpus":
        return parse_gpus(text, "--over gpus")
    if name == "seq-len":
        return parse_seq_len(text, "--over seq-len")
    if name == "micro-batch":
        return parse_micro_batch(text, "--over micro-batch")
    return parse_count(text, "--over grad-accum", MOST_MICRO_BATCHES, "--over grad-accum=1,8")


def _json(asked: Asked, over: str, points: list[SweepPoint]) -> dict[str, Any]:
    from zeroplan.render.answers import sweep_point_json
    from zeroplan.render.machine import header, request_json

    return {
        **header("sweep"),
        "request": {**request_json(asked.question, asked.node), FIELDS[over]: None},
        "over": over,
        "results": [sweep_point_json(point) for point in points],
    }


def _records(asked: Asked, over: str, points: list[SweepPoint]) -> list[dict[str, Any]]:
    results = _json(asked, over, points)["results"]
    return [{over.replace("-", "_"): point["value"], **stage} for point in results for stage in point["stages"]]
