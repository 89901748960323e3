"""A plan in a file under what is typed: the file's request first, environment variables where it is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from zeroplan.cli.typed import typed
from zeroplan.errors import InputError, printable

if TYPE_CHECKING:
    from zeroplan.cli.given import Given

CLASHES = (
    ("model", "params"),
    ("params", "model"),
    ("memory", "gpu"),
    ("gpu", "memory"),
    ("node", "gpu"),
    ("gpu", "node"),
    ("memory", "node"),
    ("recipe", "optimizer_bytes"),
    ("optimizer_bytes", "recipe"),
)
"""Options of which the first, when typed, sets aside the second from a plan or an environment variable."""
FOLLOW = ("recipe", "loss", "fused", "set")
"""Options that are of a framework: another framework has its own."""


def planned(given: Given) -> Given:
    """What was given, with the request of `--plan` where nothing else was typed."""
    if given["plan"] is None:
        return given
    from zeroplan.formats.plan_file import read_plan

    found: dict[str, object] = {**read_plan(given["plan"])}
    aside = {second for first, second in CLASHES if typed(first)}
    aside |= set(FOLLOW) if typed("framework") else set()
    plain = {name: default(name) if value is None else value for name, value in found.items()}
    kept = {name: value for name, value in plain.items() if not typed(name) and name not in aside}
    untold = {second for first, second in CLASHES if found.get(first) and second not in found and not typed(second)}
    reset = {name: default(name) for name in {*aside, *untold} if not typed(name)}
    for name, value in kept.items():
        _check_choice(given["plan"], name, value)
    return cast("Given", {**given, **reset, **kept, "plan": None})


def default(name: str) -> object:
    """An option's value where nothing is said of it."""
    option = _option(name)
    if option is None or isinstance(option.default, str):
        return option.default if option else None
    return () if option.multiple else None


def _check_choice(path: str, name: str, value: object) -> None:
    """Raise for a word that the option itself would refuse."""
    option = _option(name)
    if option is None or not isinstance(option.type, click.Choice) or value is None:
        return
    if value not in option.type.choices:
        known = ", ".join(map(str, option.type.choices))
        raise InputError(printable(path).strip("'"), f"{name} {printable(value)} is not one of {known}.")


def _option(name: str) -> click.Option | None:
    parameters = click.get_current_context().command.params
    return next((each for each in parameters if each.name == name and isinstance(each, click.Option)), None)
