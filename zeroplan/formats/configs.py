"""Configuration files of several tools, told apart by their content."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import PurePath
from typing import cast

from zeroplan.core.findings import WARNING, Finding, Place
from zeroplan.errors import InputError, one_line
from zeroplan.formats import accelerate_keys, axolotl_keys, deepspeed_keys, torchtitan_keys, trainer_keys
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import LARGEST_CONFIG, Reading
from zeroplan.formats.trainer_scripts import FACTORY, TRL

KINDS = ("deepspeed", "accelerate", "trainer", "axolotl", "torchtitan")
KNOWN = {
    "deepspeed": deepspeed_keys.KNOWN_TOP,
    "accelerate": accelerate_keys.KNOWN_TOP,
    "trainer": trainer_keys.KNOWN.union(trainer_keys.MODEL, trainer_keys.REMOVED, FACTORY, TRL),
    "axolotl": axolotl_keys.KNOWN,
}
"""The top-level keys of each format: a file is of that which knows most of its keys, the first of equals."""
TABLE = re.compile(rf"(?m)^[ \t]*\[ *({'|'.join(name for name in torchtitan_keys.SECTIONS if '.' not in name)}) *[\].]")
KEY = re.compile(r"""(?m)^["']?([\w-]+)["']?[ \t]*:""")
KEY_ANYWHERE = re.compile(r"""(?<![\w-])([\w-]{1,80})["']?[ \t]*:""")


def read_config(path: str, hidden: int | None = None, kind: str | None = None) -> Reading:
    """A configuration file as a plan; `hidden`: the model's width, of which `auto` sizes are made; `kind`: its
    format, of KINDS, where that is known.

    Raises InputError where it cannot be read.
    """
    kind = kind or kind_of(read_bytes(path, LARGEST_CONFIG).decode("utf-8-sig", errors="replace"), path)
    read = getattr(import_module(f"zeroplan.formats.{kind}"), f"read_{kind}")
    reading = cast("Reading", read(path, hidden))
    if "offload" in PurePath(path).name.lower() and not reading.options.get("offload"):
        said = "the file's name says offload, and its content offloads nothing."
        mend = "Offload in the file, or rename it."
        reading.findings.append(Finding("ZP208", WARNING, Place(one_line(path)), said, mend))
    return reading


def kind_of(text: str, path: str) -> str:
    """The format of a text, one of KINDS; raises InputError naming `path` where it is none of them."""
    keys = _top_keys(text)
    if (TABLE.search(text) or path.endswith(".toml")) and not text.lstrip().startswith("{"):
        return "torchtitan"
    counts = {kind: len(keys & known) for kind, known in KNOWN.items()}
    found = max(counts, key=lambda kind: counts[kind])
    if not counts[found] and keys and not text.lstrip().startswith(("{", "/")):
        raise InputError(
            one_line(path), "is of no format that is read.", f"They are {', '.join(KINDS)}; --from says it."
        )
    return found


def _top_keys(text: str) -> set[str]:
    """The keys at the top; of JSON with comments all keys."""
    if not text.lstrip().startswith("{"):
        return set(KEY.findall(text))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return set(KEY_ANYWHERE.findall(text))
    return set(data) if isinstance(data, dict) else set()
