"""The GPUs of this machine, as `nvidia-smi` lists them."""

import subprocess
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from zeroplan.core.hardware import MIB, Gpu
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.presets import Presets

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,mig.mode.current", "--format=csv,noheader,nounits")
PATIENCE_S = 30
"""It takes seconds on a machine with many GPUs and no persistence daemon."""
SAME_CARD = 0.03
"""How far the driver's total may be from a preset's: 32510 and 32768 MiB of one V100 with two drivers."""
MAKERS = ("nvidia ", "tesla ")
"""What newer or older drivers write before a name."""


class Listed(NamedTuple):
    """One GPU as the driver names it."""

    name: str
    memory_mib: int


def listed_gpus(where: str, hint: str) -> tuple[Listed, ...]:
    """Every GPU of this machine; raises InputError, with the hint, where nvidia-smi does not say it."""
    return tuple(_listed(line, where, hint) for line in _lines(where, hint))


def count_gpus(where: str, hint: str) -> int:
    """How many GPUs this machine has, whatever they are."""
    return len(_lines(where, hint))


def _lines(where: str, hint: str) -> list[str]:
    text, problem = _said()
    found = [line for line in text.splitlines() if "," in line]
    if problem or not found:
        raise InputError(where, problem or "nvidia-smi lists no GPU.", hint)
    return found


@cache
def _said() -> tuple[str, str]:
    """What nvidia-smi prints, or why it does not: asked once."""
    try:
        done = subprocess.run(QUERY, capture_output=True, timeout=PATIENCE_S, check=False)
    except OSError:
        return "", "asks nvidia-smi, which is not on this machine."
    except subprocess.TimeoutExpired:
        return "", f"nvidia-smi said nothing in {PATIENCE_S} s."
    text = done.stdout.decode("utf-8", errors="replace")
    if done.returncode:
        why = " ".join((text.strip() or done.stderr.decode("utf-8", errors="replace")).split())
        return "", f"nvidia-smi failed: {printable(why, 100)}."
    return text, ""


def _listed(line: str, where: str, hint: str) -> Listed:
    name, memory, mig = ([part.strip() for part in line.rsplit(",", 2)] + ["", ""])[:3]
    if mig == "Enabled":
        raise InputError(where, f"{printable(name)} is divided by MIG.", "Say what an instance has: --memory 38GiB.")
    if not memory.isdecimal() or not 0 < int(memory[:9]) < 10**8:
        raise InputError(where, f"nvidia-smi does not say the memory: {printable(line, 100)}.", hint)
    return Listed(name, int(memory[:9]))


def gpu_of(listed: Listed, presets: Presets) -> Gpu:
    """The preset of that name and memory; else a card with the driver's total, less what the driver and a context
    take."""
    for record in presets.all("gpu"):
        assert isinstance(record, Gpu)
        total = record.memory_mib or record.torch_total_bytes / MIB
        if _bare(listed.name) in map(_bare, record.driver_names) and abs(listed.memory_mib / total - 1) < SAME_CARD:
            return record
    derived = Gpu(name="custom", title=one_line(listed.name)[:60], memory_mib=listed.memory_mib, bf16=None)
    return replace(derived, memory_mib=None, usable_bytes_stated=derived.usable_bytes)


def _bare(name: str) -> str:
    name = name.lower()
    for maker in MAKERS:
        name = name.removeprefix(maker)
    return name
