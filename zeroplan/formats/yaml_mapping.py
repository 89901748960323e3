"""The mapping that a YAML or JSON file is, read safely: no tag makes anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.reading import MOST_KEYS, check_depth, text_of

LARGEST_YAML = 2**17
"""Bytes; real ones are a few thousand, and YAML is slow to read."""


def mapping(text: str, path: str, typed: bool = False) -> Mapping[str, Any]:
    """The mapping of a text; scalars are texts, or `typed` as YAML has them.

    Raises InputError where it is none, is nested too deeply, or has a merge key.
    """
    check_depth(text, path)
    data = _json(text, typed) or _yaml(text, path, typed)
    if not isinstance(data, Mapping):
        raise InputError(one_line(path), "is not a mapping.")
    for section in (data, *(value for value in data.values() if isinstance(value, Mapping))):
        if len(section) > MOST_KEYS:
            raise InputError(one_line(path), f"has more than {MOST_KEYS} keys.")
        if "<<" in section:
            raise InputError(one_line(path), "has a merge key (<<), which is not read.", "Write the keys out.")
    return {text_of(key): _texted(value) for key, value in data.items()}


def json_of(value: Mapping[str, Any], path: str) -> str:
    """A mapping inside a file as JSON; raises InputError where aliases make it endless, or much of little."""
    parts, size = [], 0
    try:
        for part in json.JSONEncoder(default=text_of).iterencode(value):
            parts.append(part)
            size += len(part)
            if size > LARGEST_YAML:
                raise InputError(one_line(path), "has aliases that make too much of it.", "Write values out.")
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(one_line(path), "has a section that is no plain mapping.") from error
    return "".join(parts)


def _texted(value: object) -> object:
    """A section with texts as keys."""
    return {text_of(key): inner for key, inner in value.items()} if isinstance(value, Mapping) else value


def _json(text: str, typed: bool) -> object:
    """The value of JSON, which can hold tabs that YAML refuses; None where it is not JSON."""
    if not text.lstrip().startswith("{"):
        return None
    as_text: dict[str, Any] = {} if typed else dict.fromkeys(("parse_int", "parse_float", "parse_constant"), str)
    try:
        value: object = json.loads(text, **as_text)
    except (ValueError, RecursionError):
        return None
    return value if typed else _texts(value)


def _texts(value: object) -> object:
    if isinstance(value, dict):
        return {key: _texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_texts(inner) for inner in value]
    return value if isinstance(value, str) else json.dumps(value)


def _yaml(text: str, path: str, typed: bool) -> object:
    import yaml

    class Plain(yaml.SafeLoader):
        """Without merge keys, which can make much of little."""

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            if any(key.tag.endswith(":merge") for key, _ in node.value):
                raise InputError(one_line(path), "has a merge key (<<), which is not read.", "Write the keys out.")

    try:
        return yaml.load(text, Loader=Plain if typed else yaml.BaseLoader)
    except InputError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:  # the last: a list as a key
        raise InputError(one_line(path), f"is not YAML: {printable(' '.join(str(error).split()), 100)}.") from error
