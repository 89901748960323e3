"""`zeroplan solve`: the inverse questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import click

from zeroplan.cli import ANSWERED, NOTHING_FITS
from zeroplan.cli.asking import Asked, ask, typed
from zeroplan.cli.options import GroupedCommand, shared, starting
from zeroplan.cli.output import show
from zeroplan.core.solve import SOLVERS, Solution, solve
from zeroplan.errors import InputError, unknown_name

if TYPE_CHECKING:
    from zeroplan.cli.asking import Given


@click.command("solve", cls=GroupedCommand, short_help="The largest model or fewest GPUs that fit.")
@click.argument("what", metavar="[max-params|min-gpus]", shell_complete=starting(lambda: SOLVERS))
@shared()
def command(what: str, **given: Unpack[Given]) -> int:
    """The largest model, or the fewest GPUs, that fit; exact, per stage.

    \b
    Example: zeroplan solve max-params --gpus 64 --gpu v100-32gb
    Example: zeroplan solve min-gpus --params 70e9 --gpu h100
    Exit status: 0 some stage has an answer, 1 none has, 2 a bad question.
    """
    if what not in SOLVERS:
        raise unknown_name("solve", "question", what, SOLVERS, f"It is {' or '.join(SOLVERS)}.")
    field = SOLVERS[what][0]
    if typed(field):
        raise InputError(f"--{field}", f"solve {what} finds it.", f"Leave --{field} out.")
    asked = ask(given, assumed={field: 1})
    solutions = solve(asked.question, what)

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
    return ANSWERED if any(solution.answer is not None for solution in solutions) else NOTHING_FITS


def _json(asked: Asked, what: str, solutions: list[Solution]) -> dict[str, Any]:
    from zeroplan.render.answers import solved_card_json
    from zeroplan.render.machine import header, request_json

    request = {**request_json(asked.question, asked.node), SOLVERS[what][0]: None}
    results = [solved_card_json(asked.question, card, solutions) for card in asked.question.cards]
    return {**header("solve"), "request": request, "solve": what, "results": results}


def _records(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """A row for each GPU and stage."""
    for card in answer["results"]:
        for stage in card["stages"]:
            yield {**{key: value for key, value in card.items() if key != "stages"}, **stage}
