"""PyTorch's "CUDA out of memory" messages, in the forms of torch 1.x and 2.x, found in whole logs.

Source: pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp, format_size and the text of OutOfMemoryError.
"""

from __future__ import annotations

import re

from zeroplan.core.oom import Message, Size
from zeroplan.errors import InputError

UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
SIZE = r"(\d{1,12}(?:\.\d{1,6})?) (bytes|KiB|MiB|GiB|TiB)"
REQUESTED = re.compile(rf"Tried to allocate {SIZE}")
TOTAL = (rf"{SIZE} total capacity", rf"total capaci?ty of {SIZE}")  # capacty: torch 2.0 and 2.1
FREE = (rf"; {SIZE} free", rf"of which {SIZE} is free")
ALLOCATED = (rf"{SIZE} already allocated", rf"Of the allocated memory {SIZE} is allocated by PyTorch")
RESERVED = (rf"{SIZE} reserved in total by PyTorch",)
UNALLOCATED = (rf"{SIZE} is reserved by PyTorch but unallocated", rf"{SIZE} cached")  # cached: torch 1.0 to 1.3
ALLOWED = (rf"{SIZE} allowed",)
OTHERS = (
    (
        "Tried to allocate more than 1EB",
        "PyTorch was asked for more than an exabyte: a wrong or negative size in the program, no lack of memory.",
        "",
    ),
    (
        "CUDA error: out of memory",
        "is the CUDA driver's, which says no size: memory outside of PyTorch's allocator ran out.",
        "See nvidia-smi: a context, NCCL, or another process on the GPU.",
    ),
    (
        "DefaultCPUAllocator: ",
        "is of the host's memory, not of a GPU's.",
        "zeroplan fit says what a node needs: --framework deepspeed --offload optimizer=cpu.",
    ),
)
"""Messages of another kind: how they are told, what they are, and what to do."""
LONGEST = 4000
"""Characters of a message after its request."""


def is_message(text: str) -> bool:
    """Whether a text is a message, rather than the name of a file."""
    plain = " ".join(text.split())
    return REQUESTED.search(plain) is not None or any(mark in plain for mark, *_ in OTHERS)


def read_message(text: str) -> Message:
    """The message of a text that asks for most, the first of them; raises InputError where there is none."""
    text = " ".join(text.split())
    found = list(REQUESTED.finditer(text))
    for mark, said, what in OTHERS:
        if not found and mark in text:
            raise InputError("MESSAGE", said, what)
    if not found:
        hint = 'It has "Tried to allocate 12.94 GiB"; give the whole line, or the log as a file.'
        raise InputError("MESSAGE", "no CUDA out of memory message is in it.", hint)
    at = max(range(len(found)), key=lambda index: _size(found[index]).bytes)
    end = found[at + 1].start() if at + 1 < len(found) else len(text)
    part = text[found[at].start() : min(end, found[at].start() + LONGEST)]
    total, free, allocated, reserved, unallocated, allowed = (
        _first(part, forms) for forms in (TOTAL, FREE, ALLOCATED, RESERVED, UNALLOCATED, ALLOWED)
    )
    if reserved is None and allocated and unallocated:
        reserved = Size(allocated.bytes + unallocated.bytes, allocated.half + unallocated.half)
    return Message(_size(found[at]), total, free, allocated, reserved, allowed, len(found))


def _first(text: str, forms: tuple[str, ...]) -> Size | None:
    return next((_size(found) for form in forms if (found := re.search(form, text))), None)


def _size(found: re.Match[str]) -> Size:
    number, unit = found[1], UNITS[found[2]]
    digits = len(number.partition(".")[2])
    return Size(round(float(number) * unit), -(-unit // (2 * 10**digits)) if unit > 1 else 0)
