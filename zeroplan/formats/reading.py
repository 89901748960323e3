"""What readers of configuration files share: the plan that a file asks for, and what was found on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from zeroplan.core.findings import Finding, Place
from zeroplan.errors import InputError, nearest, one_line

LARGEST_CONFIG = 2**20
"""Bytes; real ones are a few thousand."""
DEEPEST, MOST_KEYS = 40, 300
"""Levels, and keys of one section; real ones have 3 and some dozens."""
AUTO = "auto"


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


class Reader:
    """Goes through one file once, section by section."""

    def __init__(self, path: str, text: str, kind: str, framework: str) -> None:
        self.reading = Reading(path=path, kind=kind, options={"framework": framework})
        self._lines = text.splitlines()

    def found(self, code: str, severity: str, key: str, said: str, mend: str = "") -> None:
        """Note a finding at a key."""
        place = Place(one_line(self.reading.path), one_line(key[:200]), self._line(key))
        self.reading.findings.append(Finding(code, severity, place, said, mend))

    def _line(self, key: str) -> int | None:
        """The first line that has the last part of a dotted key, in quotes or bare."""
        name = key.rpartition(".")[2]
        return next((at for at, line in enumerate(self._lines, 1) if _names(line, name)), None)


def check_depth(text: str, path: str) -> None:
    """Raise InputError where brackets are nested too deeply; those in strings count too."""
    depth = 0
    for char in text:
        depth += (char in "{[") - (char in "}]")
        if depth > DEEPEST:
            raise InputError(one_line(path), "is nested too deeply.")


def _names(line: str, name: str) -> bool:
    return f'"{name}"' in line or line.lstrip().startswith(f"{name}:")


def alike(name: str, known: frozenset[str]) -> str:
    """The likeliest of known names, as a question; empty where none is near."""
    close = nearest(name[:60].lower(), sorted(known), count=1)
    return f" Did you mean {close[0]}?" if close else ""
