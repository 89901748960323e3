"""`zeroplan check`: a configuration file judged before the job starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast

import click

from zeroplan.cli import ANSWERED, NOTHING_FITS
from zeroplan.cli.judging import check_typed, judged
from zeroplan.cli.options import OUTPUT, QUESTION, GroupedCommand, GroupedOption, shared
from zeroplan.cli.planned import planned
from zeroplan.core.findings import ERROR, SEVERITIES, WARNING, worst
from zeroplan.errors import InputError
from zeroplan.formats.configs import KINDS
from zeroplan.formats.models import width_of
from zeroplan.formats.presets import Presets
from zeroplan.render import checked as render

if TYPE_CHECKING:
    from zeroplan.cli.given import Given
    from zeroplan.render.checked import Checked

FORMATS = ("table", "json", "github", "sarif")


@click.command("check", cls=GroupedCommand, short_help="A configuration file, judged before the job starts.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@shared("headroom", "recipe", without=("format", "unit", "framework", "stage"))
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
    check_typed(given)
    failed: dict[str, InputError] = {}
    hidden = width_of(given["model"], Presets(given["presets"])) if given["model"] else None
    checked = []
    for file in files:
        try:
            checked.append(judged(file, given, kind, hidden))
        except InputError as error:
            failed[file] = error
    if checked:
        _show(form, checked)
    if failed and form == "github":
        click.echo("".join(render.github_fault(*each) for each in failed.items()), nl=False)
    if failed:
        raise InputError.together(failed.values())
    worse = [each for found in checked if (each := worst(found.findings))]
    bad = any(SEVERITIES.index(each) <= SEVERITIES.index(fail_on) for each in worse)
    return NOTHING_FITS if bad else ANSWERED


def _show(form: str, checked: list[Checked]) -> None:
    if form == "table":
        from zeroplan.render.table import print_blocks

        print_blocks(list(render.blocks(checked)))
        return
    texts: dict[str, Any] = {"json": render.json_answer, "github": render.github, "sarif": render.sarif}
    click.echo(texts[form](checked), nl=False)
