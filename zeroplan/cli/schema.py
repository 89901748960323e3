"""`zeroplan schema`: the JSON schema of a command's output."""

import click

from zeroplan.cli import ANSWERED, COMMANDS
from zeroplan.cli.options import GroupedCommand, starting
from zeroplan.errors import InputError, unknown_name


@click.command("schema", cls=GroupedCommand, short_help="The JSON schema of an answer.")
@click.argument("name", metavar="COMMAND", required=False, shell_complete=starting(lambda: COMMANDS))
def command(name: str | None) -> int:
    """The JSON schema of what COMMAND prints with --format json.

    \b
    Example: zeroplan schema fit
    """
    from zeroplan.render.contract_others import ANSWERS

    if name is None:
        raise InputError(
            "COMMAND", "is missing.", f"Example: zeroplan schema fit; also {', '.join(list(ANSWERS)[1:])}."
        )
    if name not in ANSWERS:
        raise unknown_name("COMMAND", "answer", name, ANSWERS, f"There are {', '.join(ANSWERS)}.")
    import json

    from zeroplan.render.schema import json_schema

    click.echo(json.dumps(json_schema(name), indent=2))
    return ANSWERED
