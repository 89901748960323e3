"""A plan in a file: the `request` of any JSON answer, as the options that ask it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zeroplan.errors import Faults, InputError, one_line, printable, unknown_name
from zeroplan.formats.files import read_json
from zeroplan.units import GB

LARGEST_PLAN = 2**20
"""Bytes; an answer without its ledgers is a few thousand."""
WITH_ACTIVATIONS, WITHOUT = "0.0", "0.1"
"""The headroom where nothing is said of it, as it is saved."""
ECHOED = ("bytes_per_parameter", "assumed")
"""What follows from the rest of a request."""
Value = str | tuple[str, ...] | None


def read_plan(path: str) -> dict[str, Value]:
    """The options, by their names, that the file's request holds; raises InputError with every fault.

    The file is a JSON answer of zeroplan, or the `request` object alone.
    """
    data = read_json(path, LARGEST_PLAN * 64)
    if isinstance(data, dict) and "request" in data:
        data = data["request"]
    if not isinstance(data, dict):
        raise InputError(one_line(path), "holds no request.", "Save one: zeroplan fit ... --format json > plan.json.")
    faults = Faults()
    options: dict[str, Value] = {}
    for key, value in data.items():
        if key in ECHOED:
            continue
        found = faults.attempt(lambda key=key, value=value: _option(path, str(key), value))  # type: ignore[misc]
        options |= found or {}
    faults.report()
    if options.get("model"):
        options["params"] = None
    if options.get("memory"):
        options["gpu"] = ()
    if options.get("headroom") == (WITH_ACTIVATIONS if options.get("seq_len") else WITHOUT):
        options["headroom"] = None
    return options


def _option(path: str, key: str, value: object) -> dict[str, Value]:
    reader = _READERS.get(key)
    where = one_line(f"{path}, {key[:40]}")
    if reader is None:
        raise unknown_name(where, "part of a request", key, _READERS)
    name, read = reader
    return {name: None if value is None else read(where, value)}


def _text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError(where, f"{printable(value)} is not a text.")
    return value


def _number(where: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(where, f"{printable(value)} is not a number.")
    return str(value)


def _bytes(where: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(where, f"{printable(value)} is not a number of bytes.")
    return f"{value // GB}.{value % GB:09d}GB"


def _list(item: Callable[[str, object], str]) -> Callable[[str, object], tuple[str, ...]]:
    def read(where: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise InputError(where, f"{printable(value)} is not a list.")
        return tuple(item(where, each) for each in value)

    return read


def _fused(where: str, value: object) -> str:
    return ",".join(_list(_text)(where, value)) or "none"


def _pairs(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, dict):
        raise InputError(where, f"{printable(value)} is not a table.")
    return tuple(f"{key}={_word(where, inner)}" for key, inner in value.items())


def _word(where: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else _number(where, value)


_READERS: dict[str, tuple[str, Callable[[str, object], Any]]] = {
    "model": ("model", _text),
    "params": ("params", _number),
    "gpus": ("gpus", _number),
    "gpu": ("gpu", _list(_text)),
    "memory_bytes": ("memory", _bytes),
    "node": ("node", _text),
    "stages": ("stage", _list(_number)),
    "recipe": ("recipe", _text),
    "framework": ("framework", _text),
    "grad_accum": ("grad_accum", _number),
    "headroom": ("headroom", _number),
    "offload": ("offload", _pairs),
    "shard_group": ("shard_group", _number),
    "hpz": ("hpz", _number),
    "quantize": ("quantize", _list(_text)),
    "settings": ("set", _pairs),
    "optimizer_kernel": ("optimizer_kernel", _text),
    "seq_len": ("seq_len", _number),
    "micro_batch": ("micro_batch", _number),
    "recompute": ("recompute", _text),
    "attention": ("attention", _text),
    "loss": ("loss", _text),
    "fused": ("fused", _fused),
    "experts": ("experts", _text),
    "compiled": ("compiled", _text),
}
"""The option that each part of a request is, and how its value is typed."""
