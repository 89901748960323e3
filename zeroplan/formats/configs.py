"""Configuration files of several tools, told apart by their content."""

from __future__ import annotations

import re
from pathlib import PurePath

from zeroplan.core.findings import WARNING, Finding, Place
from zeroplan.errors import one_line
from zeroplan.formats.accelerate import read_accelerate
from zeroplan.formats.accelerate_keys import MARKS
from zeroplan.formats.deepspeed import read_deepspeed
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import LARGEST_CONFIG, Reading

MARK = re.compile(rf"""(?m)(^|[{{,])[ \t]*["']?({"|".join(MARKS)})["']?[ \t]*:""")


def read_config(path: str, hidden: int | None = None, kind: str | None = None) -> Reading:
    """A configuration file as a plan; `kind`: its format, where that is known.

    Raises InputError where it cannot be read.
    """
    reading = (read_accelerate if (kind or _kind(path)) == "accelerate" else read_deepspeed)(path, hidden)
    if "offload" in PurePath(path).name.lower() and not reading.options.get("offload"):
        said = "the file's name says offload, and its content offloads nothing."
        mend = "Offload in the file, or rename it."
        reading.findings.append(Finding("ZP208", WARNING, Place(one_line(path)), said, mend))
    return reading


def _kind(path: str) -> str:
    """accelerate's where one of its keys starts a line or an object, without zero_optimization; else DeepSpeed's."""
    text = read_bytes(path, LARGEST_CONFIG).decode("utf-8", errors="replace")
    return "accelerate" if MARK.search(text) and '"zero_optimization"' not in text else "deepspeed"
