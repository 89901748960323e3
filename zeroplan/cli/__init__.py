"""The command line: parse, call, render, exit status. Commands are imported when they are run."""

import io
import os
import sys
from contextlib import suppress
from importlib import import_module

import click

from zeroplan import __version__
from zeroplan.errors import InputError, one_line, unknown_name

COMMANDS = ("fit", "check", "config", "diagnose", "compare", "sweep", "solve", "explain", "presets", "schema")
ANSWERED, NOTHING_FITS, BAD_QUESTION = 0, 1, 2
CANNOT_WRITE = 74  # EX_IOERR of sysexits.h
INTERRUPTED, PIPE_CLOSED = 130, 141  # 128 + SIGINT, 128 + SIGPIPE
SHORT_HELP = """zeroplan says what sits in each GPU's memory, what moves over the links,
and the lowest ZeRO stage that fits.

  zeroplan fit --params 7.5e9 --gpus 64                  every stage, common GPUs
  zeroplan fit --params 7.5e9 --gpus 64 --gpu h100       one GPU in detail
  zeroplan solve max-params --gpus 8 --gpu h100          the largest that fits

All commands: zeroplan --help. Words of the trade: zeroplan explain zero-2."""


class Commands(click.Group):
    """A group that imports a command only to run it or to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"zeroplan.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise unknown_name("zeroplan", "command", args[0], COMMANDS, "`zeroplan --help` lists them.")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@click.version_option(__version__, message="zeroplan %(version)s")
@click.pass_context
def zeroplan(ctx: click.Context) -> int:
    """Plan ZeRO training before a GPU-hour is spent.

    \b
    Example: zeroplan fit --params 7.5e9 --gpus 64
    """
    if ctx.invoked_subcommand is None:
        click.echo(SHORT_HELP)
    return ANSWERED


def run(args: list[str]) -> int:
    """Run the command line and return its exit status; every error becomes a line on stderr."""
    if sys.stdout is None:  # closed by the caller, who wants the status alone
        sys.stdout = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that it cannot encode becomes a question mark
            stream.reconfigure(errors="replace")
    try:
        status = _status(args)
        sys.stdout.flush()
    except OSError as error:
        return _unwritable(error)
    return status


def _status(args: list[str]) -> int:
    try:
        status = zeroplan.main(args=args, prog_name="zeroplan", standalone_mode=False)
    except InputError as error:
        return _bad_question(error)
    except click.UsageError as error:
        return _bad_question(_usage(error))
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except SystemExit as closed:  # how click ends when nobody reads stdout
        raise BrokenPipeError from closed
    return status if isinstance(status, int) else ANSWERED


def _bad_question(error: InputError) -> int:
    """Say what is wrong, without control characters, whatever file or argument the words came from."""
    with suppress(OSError):  # nobody listens; the status still says it
        for fault in error.faults:
            click.echo(f"zeroplan: {one_line(str(fault))}", err=True)
    return BAD_QUESTION


def _usage(error: click.UsageError) -> InputError:
    """click's own complaint in our form."""
    command = error.ctx.command_path if error.ctx else "zeroplan"
    if isinstance(error, click.NoSuchOption):
        from zeroplan.cli.options import hint_for

        if hint := hint_for(error.option_name):
            return InputError(command.removeprefix("zeroplan "), f"No such option: {error.option_name}.", hint)
    message = " ".join(error.format_message().split())
    return InputError(command.removeprefix("zeroplan ") or command, message, f"`{command} --help` shows an example.")


def _unwritable(error: OSError) -> int:
    """Nobody reads the answer, or it cannot be written: the rest of it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    with suppress(OSError):
        click.echo(f"zeroplan: stdout: the answer cannot be written: {error.strerror}.", err=True)
    return CANNOT_WRITE
