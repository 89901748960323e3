"""What can go wrong with a question, said so that the user can mend it."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

LONGEST_ECHO = 60
"""Characters of a user's own text that a message repeats."""


class ZeroplanError(Exception):
    """Any error that zeroplan raises on purpose."""


class InputError(ZeroplanError, ValueError):
    """A question that cannot be answered: where the fault is, what it is, how to mend it.

    Several faults found together are one error whose `faults` lists them.
    """

    def __init__(self, where: str, problem: str, hint: str = "", faults: "tuple[InputError, ...]" = ()) -> None:
        self.where, self.problem, self.hint = where, problem, hint
        self.faults = faults or (self,)
        super().__init__(" ".join(part for part in (f"{where}: {problem}", hint) if part))

    @classmethod
    def together(cls, faults: "Iterable[InputError]") -> "InputError":
        """One error that reports every fault of `faults` (at least one)."""
        flat = tuple(fault for error in faults for fault in error.faults)
        if len(flat) == 1:
            return flat[0]
        return cls("input", f"{len(flat)} faults", faults=flat)


class Faults:
    """Collects the faults of independent steps, so that a user sees all of them at once."""

    def __init__(self) -> None:
        self._found: list[InputError] = []

    def attempt(self, step: Callable[[], T]) -> T | None:
        """The result of `step`, or None when it raised an InputError (which is kept)."""
        try:
            return step()
        except InputError as error:
            self._found.append(error)
            return None

    def report(self) -> None:
        """Raise what was found, if anything was."""
        if self._found:
            raise InputError.together(self._found)


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` of the known names that look most like `name`, best first."""
    from difflib import get_close_matches

    known = list(known)
    starts = sorted((other for other in known if name and other.startswith(name)), key=len)
    close = get_close_matches(name, known, n=count, cutoff=0.5)
    parts = [other for other in known if name and (name in other or other in name)]
    return list(dict.fromkeys(starts + close + parts))[:count]


def unknown_name(where: str, kind: str, name: str, known: Iterable[str], see: str = "") -> InputError:
    """The error for a name that nothing has, with the nearest names."""
    close = nearest(name[:LONGEST_ECHO].lower(), known)
    hint = f"Did you mean {' or '.join(close)}?" if close else ""
    if see:
        hint = f"{hint} {see}".strip()
    return InputError(where, f"no {kind} is named {printable(name)}.", hint)


def printable(text: object, limit: int = LONGEST_ECHO) -> str:
    """A user's text in quotes: one line, no control characters or escapes, at most `limit` characters."""
    raw = str(text)
    return f"'{one_line(raw[:limit])}{'...' if len(raw) > limit else ''}'"


def one_line(text: str) -> str:
    """The text with every control character, line breaks and escapes among them, replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
