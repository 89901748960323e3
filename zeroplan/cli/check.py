"""`zeroplan check`: a configuration file judged before the job starts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import click

from zeroplan.cli import ANSWERED, NOTHING_FITS
from zeroplan.cli.asking import Asked, ask, no_cards
from zeroplan.cli.options import OUTPUT, QUESTION, GroupedCommand, GroupedOption, shared
from zeroplan.cli.planned import planned
from zeroplan.cli.typed import typed
from zeroplan.core.findings import ERROR, NOTE, SEVERITIES, WARNING, Finding, Place, of_answer, worst
from zeroplan.core.verdict import fit
from zeroplan.errors import Faults, InputError, one_line
from zeroplan.formats.presets import Presets

if TYPE_CHECKING:
    from zeroplan.cli.given import Given
    from zeroplan.formats.reading import Reading
    from zeroplan.render.checked import Checked

FORMATS = ("table", "json", "github", "sarif")


@click.command("check", cls=GroupedCommand, short_help="A configuration file, judged before the job starts.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@shared("headroom", "recipe", "grad_accum", without=("format", "unit", "framework", "stage"))
@click.option(
    "--from",
    "kind",
    cls=GroupedOption,
    heading=QUESTION,
    type=click.Choice(("deepspeed", "accelerate")),
    help="The files' format; without it their content says.",
)
@click.option(
    "--fail-on",
    cls=GroupedOption,
    heading=OUTPUT,
    type=click.Choice([ERROR, WARNING]),
    default=ERROR,
    show_default=True,
    help="The least that ends with status 1.",
)
@click.option(
    "--format",
    cls=GroupedOption,
    heading=OUTPUT,
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the findings.",
)
def command(files: tuple[str, ...], kind: str | None, fail_on: str, **given: Unpack[Given]) -> int:
    """Whether configuration files of DeepSpeed or accelerate are right, and whether what they ask for fits.

    Give what the file does not say: the model, the GPUs, the batch.

    \b
    Example: zeroplan check ds_config.json
    Example: zeroplan check ds_config.json --model llama-3.1-8b --gpus 8 --gpu a100-80gb --seq-len 4096
    Exit status: 0 clean, 1 findings at or above --fail-on, 2 unreadable.
    """
    form = given["format"]
    given = planned(cast("Given", {"framework": "deepspeed", "stage": (), "unit": "GB", **given}))
    faults = Faults()
    hidden = _hidden(given)
    checked = [found for file in files if (found := faults.attempt(partial(_checked, file, given, kind, hidden)))]
    if checked:
        _show(form, checked)
    faults.report()
    worse = [each for found in checked if (each := worst(found.findings))]
    bad = any(SEVERITIES.index(each) <= SEVERITIES.index(fail_on) for each in worse)
    return NOTHING_FITS if bad else ANSWERED


def _checked(file: str, given: Given, kind: str | None, hidden: int | None) -> Checked:
    from zeroplan.formats.configs import read_config
    from zeroplan.formats.deepspeed_batch import batch_findings, derived_batch
    from zeroplan.render.checked import Checked

    reading = read_config(file, hidden, kind)
    options = {name: value for name, value in reading.options.items() if name == "framework" or not typed(name)}
    planned_as, why = None, list[Finding]()
    if worst(reading.findings) == ERROR:
        said = "whether it fits is not judged while the file has errors: what it asks for is not certain."
        why = [Finding("ZP303", NOTE, Place(one_line(file)), said)]
    elif not reading.unmodelled:
        asked = cast("Given", {**given, **options})
        planned_as, why = _question(asked, given, reading)
        batch = derived_batch(reading, planned_as.question.gpus) if planned_as else {}
        if batch := {name: value for name, value in batch.items() if not typed(name)}:
            reading.options.update(batch)
            planned_as, why = _question(cast("Given", {**asked, **batch}), given, reading)
    question = planned_as.question if planned_as else None
    findings = [*reading.findings, *why]
    answers = fit(question) if question else ()
    if question:
        place = Place(one_line(file))
        findings += batch_findings(reading, question.gpus)
        findings += [each for answer in answers for each in of_answer(question, answer, place)]
    findings.sort(key=lambda each: SEVERITIES.index(each.severity))
    return Checked(
        path=file,
        kind=reading.kind,
        options=reading.options,
        findings=findings,
        question=question,
        answers=answers,
        node=planned_as.node if planned_as else None,
    )


def _hidden(given: Given) -> int | None:
    """The model's width, where it is known."""
    if given["model"] is None:
        return None
    from zeroplan.formats.models import read_model

    shape = read_model(given["model"], Presets(given["presets"])).architecture
    return shape.hidden if shape else None


def _question(asked: Given, typed_alone: Given, reading: Reading) -> tuple[Asked | None, list[Finding]]:
    """The file's plan as a question; None, and why, where not enough is said or it is not modelled."""
    place = Place(one_line(reading.path))
    lacking = [
        option
        for option, there in (
            ("--model or --params", asked["model"] or asked["params"]),
            ("--gpus", asked["gpus"]),
            ("--gpu", asked["gpu"] or asked["memory"] or asked["node"]),
        )
        if not there
    ]
    if lacking:
        said = "whether it fits is not judged: the file does not say the model, the GPUs or their kind."
        return None, [Finding("ZP303", NOTE, place, said, f"Give {', '.join(lacking)}.")]
    try:
        return ask(asked, otherwise=no_cards), []
    except InputError as error:
        ask(cast("Given", {**typed_alone, "gpus": asked["gpus"]}), otherwise=no_cards)  # raises where typed is at fault
        return None, [Finding("ZP301", WARNING, place, f"is not modelled: {fault}") for fault in error.faults]


def _show(form: str, checked: list[Checked]) -> None:
    from zeroplan.render import checked as render

    if form == "table":
        from zeroplan.render.table import print_blocks

        print_blocks(list(render.blocks(checked)))
        return
    texts: dict[str, Any] = {"json": render.json_answer, "github": render.github, "sarif": render.sarif}
    click.echo(texts[form](checked), nl=False)
