"""What readers of configuration files share: the plan that a file asks for, and what was found on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from zeroplan.core.findings import ERROR, WARNING, Finding, Place
from zeroplan.errors import InputError, nearest, one_line, printable

LARGEST_CONFIG = 2**20
"""Bytes; real ones are a few thousand."""
NAMES = re.compile(r"""\"([^\"]{1,200})\"|^[ \t]*\[?[ \t]*([\w-]{1,200})[ \t]*[:=\]]""")
"""Names in a line: in double quotes, or bare at its start."""
DEEPEST, MOST_KEYS = 40, 300
"""Levels, and keys of one section; real ones have 3 and some dozens."""
AUTO = "auto"
UNFUSED = ("eager", "aot_eager")
"""Backends of torch.compile that fuse nothing, so that as much is kept as without it."""
MOST_BITS = 64
"""Of a number worth printing; Python refuses to print one of thousands of digits."""
SLIP = 0.85
"""How alike a key is to one that is read, so that it is taken for a slip of it."""
YES, NO = ("true", "yes", "on", "1", "y", "t"), ("false", "no", "off", "0", "n", "f", "", "null", "none", "~")
"""What YAML, and the parsers behind it, take for true and for false or nothing."""


@dataclass(slots=True)
class Reading:
    """What a file says as options of a plan, and what was found on the way."""

    path: str
    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    unmodelled: bool = False
    """Whether a key divides or moves states in a way that zeroplan does not model: no verdict is right then."""
    train_batch: int | None = None
    """Sequences of a step over all GPUs, where the file says it."""
    derives_batch: bool = False
    """Whether what is not said of batch sizes follows from what is, and not from a launcher."""
    replicas: int = 1
    """Groups that each divide the states among themselves, where the file says it but not how large they are."""
    quiet: bool = False
    """Whether gradients are reduced in the last micro-batch of a step only, where the framework leaves the choice."""
    half: str = ""
    """bf16 or fp16, where the file says in which 16 bits it computes."""


class Reader:
    """Goes through one file once, section by section."""

    def __init__(self, path: str, text: str, kind: str, framework: str) -> None:
        self.reading = Reading(path=path, kind=kind, options={"framework": framework})
        self.lines = text.splitlines()
        self._seen: set[Finding] = set()
        self._lines_of: dict[str, int] = {}
        for at, line in enumerate(self.lines, 1):
            for name in NAMES.findall(line):
                self._lines_of.setdefault(next(filter(None, name)), at)

    def found(self, code: str, severity: str, key: str, said: str, mend: str = "") -> None:
        """Note a finding at a key."""
        place = Place(one_line(self.reading.path), one_line(key[:200]), self._line(key))
        found = Finding(code, severity, place, said, mend)
        if found not in self._seen:
            self._seen.add(found)
            self.reading.findings.append(found)

    def not_modelled(self, key: str, said: str = "is not modelled") -> None:
        """Note what divides or moves states in a way that no verdict is right about."""
        self.found("ZP301", WARNING, key, f"{said}; whether it fits is not judged.")
        self.reading.unmodelled = True

    def section(self, data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """A mapping in a mapping; empty where it is none."""
        section = data.get(key, {})
        if isinstance(section, Mapping):
            return section
        if word_of(section) not in NO:
            self.found("ZP201", ERROR, key, f"{printable(text_of(section))} is not a mapping.")
        return {}

    def flag(self, section: Mapping[str, Any], key: str, default: bool = False, path: str = "") -> bool:
        """A value that is true or false."""
        word = word_of(section.get(key, default))
        if word not in (*YES, *NO):
            self.found("ZP201", ERROR, path or key, f"{printable(word)} is neither true nor false.")
            return default
        return word in YES

    def whole(
        self,
        section: Mapping[str, Any],
        key: str,
        default: int,
        least: int = 0,
        most: int = 10**6,
        path: str = "",
    ) -> int:
        """A value that is a whole number within bounds; the default where it is none, or not there."""
        word = word_of(section.get(key, default)).removesuffix(".0")
        if re.fullmatch("-?[0-9]{1,10}", word) and least <= int(word) <= most:
            return int(word)
        said = f"{printable(word)} is not a whole number from {least} to {most}."
        self.found("ZP201", ERROR, path or key, said)
        return default

    def _line(self, key: str) -> int | None:
        """The first line that has the last part of a dotted key, in quotes or bare."""
        return self._lines_of.get(key.rpartition(".")[2])


def text_of(value: object) -> str:
    """A scalar's text; of anything else a word that is none: a few aliases can make a text of billions."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return "a huge number"
    return str(value).strip() if isinstance(value, str | int | float) else "a list or mapping"


def word_of(value: object) -> str:
    """A scalar's text in lower case."""
    return text_of(value).lower()


def check_depth(text: str, path: str) -> None:
    """Raise InputError where brackets are nested too deeply; those in strings count too."""
    depth = 0
    for char in text:
        depth += (char in "{[") - (char in "}]")
        if depth > DEEPEST:
            raise InputError(one_line(path), "is nested too deeply.")


def misspelt(name: str, known: Sequence[str]) -> bool:
    """Whether a key looks like a slip of a known one."""
    return bool(get_close_matches(name[:60].lower(), [each.lower() for each in known], n=1, cutoff=SLIP))


def alike(name: str, known: frozenset[str]) -> str:
    """The likeliest of known names, as a question; empty where none is near."""
    close = nearest(name[:60].lower(), sorted(known), count=1)
    return f" Did you mean {close[0]}?" if close else ""
