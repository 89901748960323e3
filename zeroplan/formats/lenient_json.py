"""JSON as people write it: comments, trailing commas and bare keys, by hjson where it is not plain JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.reading import MOST_KEYS, check_depth

Pairs = Callable[[list[tuple[str, Any]]], dict[str, Any]]


def parse_lenient(text: str, path: str) -> tuple[Mapping[str, Any], list[str]]:
    """The object of a text, and the keys that stand twice in it; raises InputError naming `path`."""
    twice: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in found:
            if key in seen:
                twice.append(key)
            seen[key] = value
        return seen

    if not text.strip():
        raise InputError(one_line(path), "is empty.")
    check_depth(text, path)
    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        twice.clear()
        data = _human(text, path, pairs)
    if not isinstance(data, Mapping):
        raise InputError(one_line(path), "is not a JSON object.")
    if len(data) > MOST_KEYS:
        raise InputError(one_line(path), f"has more than {MOST_KEYS} keys.")
    return data, twice[:MOST_KEYS]


def _human(text: str, path: str, pairs: Pairs) -> object:
    import hjson

    try:
        return hjson.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError, IndexError, OverflowError) as error:  # the last two: hjson, of broken texts
        raise InputError(one_line(path), f"is not JSON: {printable(' '.join(str(error).split()), 100)}.") from error
