"""The checks that records make of themselves."""

from collections.abc import Iterable

from zeroplan.errors import InputError, printable


def check_range(where: str, value: float, low: float, high: float, unit: str = "") -> None:
    """Raise unless low <= value <= high."""
    if not low <= value <= high:
        tail = f" {unit}" if unit else ""
        raise InputError(where, f"{printable(value, 24)} is outside {low:g} to {high:g}{tail}.")


def check_member(where: str, value: object, allowed: Iterable[object]) -> None:
    """Raise unless `value` is one of `allowed`."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise InputError(where, f"{printable(value)} is not one of {', '.join(map(str, allowed))}.")


def check_members(where: str, values: Iterable[object], allowed: Iterable[object]) -> None:
    """Raise unless every one of `values` is one of `allowed`."""
    allowed = tuple(allowed)
    for value in values:
        check_member(where, value, allowed)


def check_text(where: str, value: str) -> None:
    """Raise for an empty text: a preset without a title or source is not a preset."""
    if not value.strip():
        raise InputError(where, "is empty.")
