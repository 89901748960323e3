"""`zeroplan config`: the configuration file of a plan that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast

import click

from zeroplan.cli import ANSWERED, NOTHING_FITS
from zeroplan.cli.asking import ask, no_cards
from zeroplan.cli.options import ACCOUNTING, GroupedCommand, GroupedOption, shared
from zeroplan.cli.planned import FOLLOW, default, planned
from zeroplan.cli.scheme import OFF
from zeroplan.cli.typed import missing, parts, typed
from zeroplan.core.findings import taken
from zeroplan.core.verdict import TIGHT, CardAnswer, fit
from zeroplan.errors import InputError
from zeroplan.formats.accelerate_keys import NO_SYNC, fsdp2_settings
from zeroplan.formats.written import accelerate_file, deepspeed_file

if TYPE_CHECKING:
    from zeroplan.cli.given import Given

FRAMEWORKS = {"deepspeed": "deepspeed", "accelerate": "deepspeed", "fsdp2": "fsdp2"}
"""The formats, and the framework that each is of where none is typed."""
SHARDED, OVERLAP, MIXED = ("2", "3"), "overlap_comm", "fsdp-mixed"


@click.command("config", cls=GroupedCommand, short_help="The configuration file of a plan that fits.")
@click.argument("form", type=click.Choice(tuple(FRAMEWORKS)), metavar="FORMAT")
@shared(without=("format", "unit", "framework"))
@click.option(
    "--framework",
    cls=GroupedOption,
    heading=ACCOUNTING,
    help="Of the format accelerate: deepspeed, fsdp2, fsdp1 or ddp. Unset: deepspeed.",
    metavar="NAME",
)
def command(form: str, **given: Unpack[Given]) -> int:
    """The configuration of the lowest stage that fits: DeepSpeed's JSON, or accelerate's YAML for its DeepSpeed
    plugin (accelerate) or FSDP2 (fsdp2).

    What the plan says and the file cannot is said on stderr.

    \b
    Example: zeroplan config deepspeed --params 7.5e9 --gpus 64 --gpu a100-80gb > ds_config.json
    Example: zeroplan config fsdp2 --model llama-3.1-8b --gpus 8 --gpu h100 --seq-len 4096 > fsdp2.yaml
    Exit status: 0 a plan that fits is written, 1 nothing fits, 2 a bad question.
    """
    given = _under(form, planned(cast("Given", {"format": "json", "unit": "GB", **given})))
    answer = _answer(given)
    best = answer.recommended
    if best is None or best.estimate is None:
        click.echo("zeroplan: nothing fits, and nothing is written. `zeroplan fit` shows why.", err=True)
        return NOTHING_FITS
    plan = best.estimate.plan
    written = deepspeed_file(plan) if form == "deepspeed" else accelerate_file(plan)
    click.echo(written.text, nl=False)
    verdict, where = "is tight" if best.verdict == TIGHT else "fits", taken(answer._replace(stages=(best,)))
    click.echo(f"zeroplan: stage {best.stage} under {plan.framework.name} {verdict} {where}.", err=True)
    for sentence in (*written.untold, *_unset(given, best.stage)):
        click.echo(f"zeroplan: not in the file: {sentence}", err=True)
    return ANSWERED


def _under(form: str, given: Given) -> Given:
    """The question under the framework of the format, with what its launcher always does."""
    own, of_plan = FRAMEWORKS[form], given["framework"]
    if form != "accelerate" and typed("framework") and of_plan != own:
        raise InputError("--framework", f"the format {form} is of {own}.", "Leave it out, or use accelerate.")
    framework = own if form != "accelerate" or of_plan in (None, "zero") else of_plan
    aside = FOLLOW if of_plan not in (None, framework) and not typed("framework") else ()
    changed: dict[str, Any] = {name: default(name) for name in aside if not typed(name)}
    under = cast("Given", {**given, **changed, "framework": framework})
    if framework.startswith("fsdp"):
        under["stage"] = _sharded(under["stage"])
    if framework == "fsdp2":
        under["set"] = (*fsdp2_settings((under["recipe"] or MIXED).strip().lower() == MIXED), *under["set"])
    if framework.startswith("fsdp") and under["grad_accum"].strip() != "1":
        under["set"] = (f"{NO_SYNC}=true", *under["set"])
    return under


def _answer(given: Given) -> CardAnswer:
    question = ask(given, otherwise=no_cards).question
    if not question.cards:
        raise missing("--gpu", "--gpu a100-80gb. A card of your own: --memory 44.35GiB")
    if len(question.cards) > 1:
        raise InputError("--gpu", "a configuration is of one kind of GPU.", "Name one.")
    [answer] = fit(question)
    return answer


def _unset(given: Given, stage: int) -> list[str]:
    """What is typed as off, and is on where a file does not say it."""
    off = any(
        text.partition("=")[0] == OVERLAP and text.partition("=")[2].lower() in OFF for text in parts(given["set"])
    )
    return [f"{OVERLAP}=false: DeepSpeed turns it on at stage 3 by itself."] if off and stage == 3 else []


def _sharded(stages: tuple[str, ...]) -> tuple[str, ...]:
    """The stages of FSDP's files: 2 and 3, those of them that are asked for."""
    asked = parts(stages) or list(SHARDED)
    if not set(asked) <= set(SHARDED):
        raise InputError("--stage", "FSDP's files are of stages 2 and 3.", "For 0: accelerate --framework ddp.")
    return tuple(asked)
