"""A user's own presets, validated with pydantic, each fault with its file and key."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from zeroplan.errors import Faults, InputError, printable, unknown_name
from zeroplan.formats.kinds import KINDS, Record, record_type

MOST_FILES = 1000
LARGEST_FILE = 256 * 1024
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def read_folder(folder: str) -> dict[str, dict[str, Record]]:
    """Every preset below `folder`, by kind and name; all faults are reported together."""
    if not os.path.isdir(folder):
        raise InputError("--presets", f"{printable(folder)} is not a folder.", _layout())
    kinds = [kind for kind in KINDS if os.path.isdir(os.path.join(folder, kind))]
    if not kinds:
        raise InputError("--presets", f"{printable(folder)} holds no presets.", _layout())
    faults = Faults()
    for entry in [entry for entry in _entries(folder) if entry not in KINDS]:
        faults.attempt(lambda name=entry: _no_other_kind(folder, name))  # type: ignore[misc]
    found: dict[str, dict[str, Record]] = {}
    for kind in kinds:
        records = [faults.attempt(lambda k=kind, p=path: read_preset(k, p)) for path in _files(folder, kind)]  # type: ignore[misc]
        found[kind] = {record.name: record for record in records if record is not None}
    faults.report()
    return found


def read_preset(kind: str, path: str) -> Record:
    """One validated preset; its name is the file's name."""
    name = os.path.basename(path).removesuffix(".toml")
    if not NAME.fullmatch(name):
        raise InputError(path, "its file name is not a preset's name.", "Use a-z, 0-9, '.', '_' and '-'.")
    data = read_toml(path)
    for key, text in _texts(data):
        if not text.isprintable():
            raise InputError(f"{path}, {key}", "holds control characters.", "Write plain text on one line.")
    if data.pop("name", name) != name:
        raise InputError(f"{path}, name", "a preset is named by its file.", "Leave the key out.")
    return validated(kind, name, {**_unsaid(kind, name), **data}, path)


def _unsaid(kind: str, name: str) -> dict[str, str]:
    """What a user need not say of a preset of their own."""
    own = {"title": name}
    return own if kind == "gpu" else {**own, "source": f"your preset {name}"}


def validated(kind: str, name: str, data: dict[str, Any], path: str) -> Record:
    """The record of `data`, checked strictly; raises InputError naming every bad key."""
    adapter: TypeAdapter[Record] = TypeAdapter(record_type(kind))
    try:
        return adapter.validate_json(json.dumps({"name": name, **data}))
    except TypeError as error:  # json knows no dates, and TOML nothing else that it does not know
        raise InputError(path, "holds a date or time.", "Put it in quotes.") from error
    except ValidationError as error:
        raise InputError.together(_fault(path, dict(item)) for item in error.errors()) from error


def read_toml(path: str) -> dict[str, Any]:
    """The tables of a TOML file that nobody vouches for."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(path, "is not a regular file.")
        with open(path, "rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}.") from error
    if len(raw) > LARGEST_FILE:
        raise InputError(path, f"is larger than {LARGEST_FILE // 1024} KiB; a preset is a small file.")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(path, "is not UTF-8 text.") from error
    except RecursionError as error:
        raise InputError(path, "is nested too deeply.") from error
    except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
        raise InputError(path, f"is not TOML that zeroplan reads: {printable(error, 120)}.") from error


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise InputError(folder, f"cannot be read: {error.strerror}.") from error


def _no_other_kind(folder: str, entry: str) -> None:
    """Raise for a folder of presets of no known kind: a misspelling would leave them unread."""
    inside = os.path.join(folder, entry)
    if os.path.isdir(inside) and any(name.endswith(".toml") for name in _entries(inside)):
        raise unknown_name("--presets", "kind of preset", entry, KINDS, f"Kinds are {', '.join(KINDS)}.")


def _texts(data: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text below `data`, keys included, with its dotted key."""
    if isinstance(data, str):
        yield key, data
    elif isinstance(data, dict):
        for name, inner in data.items():
            yield key, name
            yield from _texts(inner, f"{key}.{name}".lstrip("."))
    elif isinstance(data, list):
        for inner in data:
            yield from _texts(inner, key)


def _fault(path: str, item: dict[str, Any]) -> InputError:
    inner = item.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        return InputError(path, f"{inner.where}: {inner.problem}", inner.hint)
    key = ".".join(map(str, item["loc"]))
    hint = "Remove it, or look for a misspelling." if item["type"] == "unexpected_keyword_argument" else ""
    return InputError(f"{path}, {key}", f"{item['msg']}.", hint)


def _files(folder: str, kind: str) -> list[str]:
    inside = os.path.join(folder, kind)
    files = [entry for entry in _entries(inside) if entry.endswith(".toml")]
    if len(files) > MOST_FILES:
        raise InputError("--presets", f"{printable(inside)} holds more than {MOST_FILES} presets.")
    return [os.path.join(inside, entry) for entry in files]


def _layout() -> str:
    return f"It should hold folders such as gpu/ with one TOML file a preset; kinds: {', '.join(KINDS)}."
