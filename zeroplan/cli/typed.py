"""What was typed: where an option's value comes from, the parts of one, and one that is not there."""

import click
from click.core import ParameterSource

from zeroplan.errors import InputError


def typed(*options: str) -> bool:
    """Whether any of these options stands on the command line, rather than in an environment variable."""
    source = click.get_current_context().get_parameter_source
    return any(source(option) is ParameterSource.COMMANDLINE for option in options)


def parts(texts: tuple[str, ...]) -> list[str]:
    """The parts of repeated options and of comma-separated ones."""
    return [part.strip() for text in texts for part in text.split(",")]


def missing(option: str, example: str) -> InputError:
    """The error for a required option."""
    return InputError(option, "is missing.", f"Example: {example}.")
