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
from zeroplan.errors import Faults, InputError, one_line, printable
from zeroplan.formats.models import known_name, width_of
from zeroplan.formats.presets import Presets

if TYPE_CHECKING:
    from zeroplan.cli.given import Given
    from zeroplan.formats.reading import Reading
    from zeroplan.render.checked import Checked

FORMATS = ("table", "json", "github", "sarif")
KINDS = ("deepspeed", "accelerate", "trainer", "axolotl", "torchtitan")


@click.command("check", cls=GroupedCommand, short_help="A configuration file, judged before the job starts.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@shared("headroom", "recipe", "grad_accum", without=("format", "unit", "framework", "stage"))
@click.option(
    "--from",
    "kind",
    cls=GroupedOption,
    heading=QUESTION,
    type=click.Choice(KINDS),
    metavar="KIND",
    help=f"{', '.join(KINDS)}. Unset: the files' content says.",
)
@click.option(
    "--fail-on",
    cls=GroupedOption,
    heading=OUTPUT,
    type=click.Choice([ERROR, WARNING]),
    metavar="SEVERITY",
    default=ERROR,
    show_default=True,
    help="The least that ends with status 1: error or warning.",
)
@click.option(
    "--format",
    cls=GroupedOption,
    heading=OUTPUT,
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    default="table",
    show_default=True,
    help="table, json, github (annotations) or sarif.",
)
def command(files: tuple[str, ...], kind: str | None, fail_on: str, **given: Unpack[Given]) -> int:
    """Whether configuration files of DeepSpeed, accelerate, the Hugging Face Trainer, axolotl or torchtitan are
    right, and whether what they ask for fits.

    Give what the file does not say: the model, the GPUs, the batch.

    \b
    Example: zeroplan check ds_config.json
    Example: zeroplan check ds_config.json --model llama-3.1-8b --gpus 8 --gpu a100-80gb --seq-len 4096
    Exit status: 0 clean, 1 findings at or above --fail-on, 2 unreadable.
    """
    form = given["format"]
    given = planned(cast("Given", {"framework": "deepspeed", "stage": (), "unit": "GB", **given}))
    faults = Faults()
    hidden = width_of(given["model"], Presets(given["presets"])) if given["model"] else None
    checked = [found for file in files if (found := faults.attempt(partial(_checked, file, given, kind, hidden)))]
    if checked:
        _show(form, checked)
    faults.report()
    worse = [each for found in checked if (each := worst(found.findings))]
    bad = any(SEVERITIES.index(each) <= SEVERITIES.index(fail_on) for each in worse)
    return NOTHING_FITS if bad else ANSWERED


def _checked(file: str, given: Given, kind: str | None, hidden: int | None) -> Checked:
    from zeroplan.formats.configs import read_config
    from zeroplan.formats.derived import batch_findings, derived_batch, derived_groups
    from zeroplan.render.checked import Checked

    reading = read_config(file, hidden, kind)
    if (own := _own_width(reading, given)) is not None:
        reading = read_config(file, own, kind)
    options = _untyped(reading, given)
    planned_as, why = None, list[Finding]()
    if worst(reading.findings) == ERROR:
        said = "whether it fits is not judged while the file has errors: what it asks for is not certain."
        why = [Finding("ZP303", NOTE, Place(one_line(file)), said)]
    elif not reading.unmodelled:
        asked = cast("Given", {**given, **options})
        planned_as, why = _question(asked, given, reading)
        gpus = planned_as.question.gpus if planned_as else 1
        derived = {**derived_batch(reading, gpus), **derived_groups(reading, gpus)}
        if planned_as and (derived := {name: value for name, value in derived.items() if not typed(name)}):
            reading.options.update(derived)
            planned_as, why = _question(cast("Given", {**asked, **derived}), given, reading)
    question = planned_as.question if planned_as else None
    findings = [*reading.findings, *why]
    answers = fit(question) if question else ()
    if question:
        place = Place(one_line(file))
        findings += batch_findings(reading, question.gpus)
        findings += [each for answer in answers for each in of_answer(question, answer, place, reading.half)]
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


def _untyped(reading: Reading, given: Given) -> dict[str, Any]:
    """What the file says and the command line does not; of a model it has to be one that is known."""
    model = reading.options.get("model")
    if model is not None and not Presets(given["presets"]).knows("model", known_name(model, Presets())):
        said = f"the model {printable(model)} is not one that zeroplan knows."
        mend = "Give --model, or --params."
        reading.findings.append(Finding("ZP302", NOTE, Place(one_line(reading.path)), said, mend))
        del reading.options["model"]
    aside = {"model", "params"} if given["model"] or given["params"] else set[str]()
    return {
        name: value
        for name, value in reading.options.items()
        if name not in aside and (name == "framework" or not typed(name))
    }


def _own_width(reading: Reading, given: Given) -> int | None:
    """The width of the model that the file names, where none is given."""
    named = reading.options.get("model")
    if given["model"] or given["params"] or named is None:
        return None
    presets = Presets(given["presets"])
    return width_of(known_name(named, presets), presets) if presets.knows("model", known_name(named, presets)) else None


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
