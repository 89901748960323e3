"""Configuration files of several tools, told apart by their content."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import PurePath
from typing import cast

from zeroplan.core.findings import WARNING, Finding, Place
from zeroplan.errors import InputError, one_line
from zeroplan.formats import accelerate_keys, axolotl_keys, torchtitan_keys, trainer_keys
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import LARGEST_CONFIG, Reading

KINDS = ("deepspeed", "accelerate", "trainer", "axolotl", "torchtitan")
DEEPSPEED = ("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size")
MARKS = (
    ("deepspeed", DEEPSPEED),
    ("accelerate", accelerate_keys.MARKS),
    ("axolotl", axolotl_keys.MARKS),
    ("trainer", trainer_keys.MARKS),
    ("accelerate", (accelerate_keys.FSDP, accelerate_keys.PARALLEL)),
)
"""Top-level keys by which a format is recognised, the surest first; JSON without one is DeepSpeed's."""
TABLE = re.compile(rf"(?m)^[ \t]*\[({'|'.join(torchtitan_keys.MARKS)})\]")
KEY = re.compile(r"""(?m)^["']?([\w-]+)["']?[ \t]*:""")
KEY_ANYWHERE = re.compile(r"""["']?([\w-]+)["']?[ \t]*:""")


def read_config(path: str, hidden: int | None = None, kind: str | None = None) -> Reading:
    """A configuration file as a plan; `hidden`: the model's width, of which `auto` sizes are made; `kind`: its
    format, of KINDS, where that is known.

    Raises InputError where it cannot be read.
    """
    kind = kind or kind_of(read_bytes(path, LARGEST_CONFIG).decode("utf-8", errors="replace"), path)
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
    if TABLE.search(text) and not text.lstrip().startswith("{"):
        return "torchtitan"
    found = next((kind for kind, marks in MARKS if keys.intersection(marks)), None)
    if found is None and keys and not text.lstrip().startswith(("{", "/")):
        raise InputError(
            one_line(path), "is of no format that is read.", f"They are {', '.join(KINDS)}; --from says it."
        )
    return found or "deepspeed"


def _top_keys(text: str) -> set[str]:
    """The keys at the top; of JSON with comments all keys."""
    if not text.lstrip().startswith("{"):
        return set(KEY.findall(text))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return set(KEY_ANYWHERE.findall(text))
    return set(data) if isinstance(data, dict) else set()
