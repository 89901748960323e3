"""`zeroplan solve`: the inverse questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import click

from zeroplan.cli import ANSWERED, NOTHING_FITS
from zeroplan.cli.asking import Asked, ask
from zeroplan.cli.batch import check_activations
from zeroplan.cli.options import SCHEME, GroupedCommand, GroupedOption, shared, starting
from zeroplan.cli.output import show
from zeroplan.cli.typed import typed
from zeroplan.core.ladder import ladder
from zeroplan.core.question import WORKLOAD_FIELDS
from zeroplan.core.solve import SOLVERS, Solution, solve
from zeroplan.errors import InputError, unknown_name

if TYPE_CHECKING:
    from zeroplan.cli.given import Given


SEVERAL = 2
"""The GPUs that a budget is shown for when their number is what is asked: NCCL takes its part from two on."""


@click.command("solve", cls=GroupedCommand, short_help="The largest model, batch, length; the fewest GPUs.")
@click.argument("what", metavar="WHAT", shell_complete=starting(lambda: SOLVERS))
@shared("stage")
@click.option(
    "--allow",
    cls=GroupedOption,
    heading=SCHEME,
    type=click.Choice(["offload"]),
    help="Answer with whatever offload does best.",
)
def command(what: str, allow: str | None, **given: Unpack[Given]) -> int:
    """The largest model, the fewest GPUs, the largest micro-batch or the longest sequence that fits, per stage.

    WHAT is max-params, min-gpus, max-micro-batch or max-seq-len.

    \b
    Example: zeroplan solve max-params --gpus 64 --gpu v100-32gb
    Example: zeroplan solve min-gpus --params 70e9 --gpu h100
    Example: zeroplan solve max-micro-batch --model llama-3.1-8b --gpus 8 --gpu h100 --seq-len 4096
    Example: zeroplan solve max-params --gpus 8 --gpu a100-80gb --framework deepspeed --allow offload
    Exit status: 0 some stage has an answer, 1 none has, 2 a bad question.
    """
    if what not in SOLVERS:
        raise unknown_name("solve", "question", what, SOLVERS, f"It is {' or '.join(SOLVERS)}.")
    field = SOLVERS[what].field
    for option in (field, *(("model",) if field == "params" else ())):
        if typed(option):
            name = f"--{option.replace('_', '-')}"
            raise InputError(name, f"solve {what} finds it.", f"Leave {name} out.")
    asked = ask(given, assumed={field: SEVERAL if field == "gpus" else 1})
    if field in WORKLOAD_FIELDS:
        check_activations(asked.question, f"solve {what}")
    if allow and not any(True for _ in ladder(asked.question)):
        name = asked.question.framework.name
        raise InputError("--allow", f"no offload is modelled for {name} here, or one is asked for.", "Leave it out.")
    solutions = solve(asked.question, what, offload=allow is not None)

    def table(style: Any) -> Any:
        from zeroplan.render.rows.solve import solve_blocks

        return solve_blocks(asked.question, what, solutions, style)

    show(
        given["format"],
        given["unit"],
        table,
        lambda: _json(asked, what, solutions),
        lambda: _records(_json(asked, what, solutions)),
    )
    answers = (answer for solution in solutions for answer in (solution.answer, solution.tight_answer))
    return ANSWERED if any(answer is not None for answer in answers) else NOTHING_FITS


def _json(asked: Asked, what: str, solutions: list[Solution]) -> dict[str, Any]:
    from zeroplan.render.answers import solved_card_json
    from zeroplan.render.machine import header, request_json

    request = {**request_json(asked.question, asked.node), SOLVERS[what].field: None}
    results = [solved_card_json(asked.question, card, solutions) for card in asked.question.cards]
    return {**header("solve"), "request": request, "solve": what, "results": results}


def _records(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each GPU and stage."""
    for card in answer["results"]:
        for stage in card["stages"]:
            yield {**{key: value for key, value in card.items() if key != "stages"}, **stage}
