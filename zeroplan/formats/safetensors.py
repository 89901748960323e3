"""The headers of safetensors files: names and shapes of tensors, no tensor read.

A file is 8 bytes of length, little-endian, then that many bytes of JSON, then the data
(the format's description in huggingface/safetensors).
"""

import os
from collections.abc import Mapping
from typing import Any

from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.config_values import WAYS_OUT
from zeroplan.formats.files import parse_json, read_bytes, read_json

INDEX = ".safetensors.index.json"
ENDING = ".safetensors"
LARGEST_HEADER = 10**8
LARGEST_SHARD = 10**15
LENGTH_BYTES = 8
MOST_FILES = 100_000


def has_headers(folder: str) -> bool:
    """Whether a folder holds safetensors files."""
    return any(name.endswith((ENDING, INDEX)) for name in _entries(folder))


def read_headers(folder: str) -> dict[str, Any]:
    """Name and description of every tensor in the headers of a folder."""
    found: dict[str, Any] = {}
    for file in _files(folder):
        found.update(read_header(os.path.join(folder, file)))
    return found


def _files(folder: str) -> list[str]:
    """The shards: those of the index, else the one file, else all."""
    entries = _entries(folder)
    indexes = [entry for entry in entries if entry.endswith(INDEX)]
    if indexes:
        best = "model" + INDEX
        return _shards(folder, best if best in indexes else indexes[0])
    single = [entry for entry in entries if entry.endswith(ENDING)]
    if "model" + ENDING in single:
        return ["model" + ENDING]
    if not [entry for entry in single if not entry.startswith("adapter")]:
        what = "an adapter, not the model it adapts" if single else "no safetensors file"
        raise InputError(one_line(folder), f"holds {what}.", "Give its config.json, a shapes JSON, or --params N.")
    return single


def _shards(folder: str, index: str) -> list[str]:
    path = os.path.join(folder, index)
    content = read_json(path)
    mapped = content.get("weight_map") if isinstance(content, Mapping) else None
    if not isinstance(mapped, Mapping) or not all(isinstance(file, str) for file in mapped.values()):
        raise InputError(one_line(path), "has no weight_map of tensor names to files.", WAYS_OUT)
    files = sorted(set(mapped.values()))
    if len(files) > MOST_FILES:
        raise InputError(one_line(path), f"names more than {MOST_FILES} files.")
    for file in files:
        _check_inside(file, path)
    missing = [file for file in files if not os.path.isfile(os.path.join(folder, file))]
    if missing:
        raise InputError(one_line(path), f"{len(missing)} of {len(files)} files are missing: {printable(missing[0])}.")
    return files


def _check_inside(file: str, path: str) -> None:
    parts = file.replace("\\", "/").split("/")
    if ".." in parts or "" in parts or ":" in file or not file.isprintable():
        raise InputError(one_line(path), f"names {printable(file)}, which is not inside the folder.")


def read_header(path: str) -> dict[str, Any]:
    """Name and description of every tensor in one file."""
    size = _size(path)
    length = int.from_bytes(read_bytes(path, LARGEST_SHARD, count=LENGTH_BYTES), "little")
    if size < LENGTH_BYTES or length > size - LENGTH_BYTES:
        raise InputError(one_line(path), "is cut short: its header is longer than the file.")
    if length > LARGEST_HEADER:
        raise InputError(one_line(path), f"says its header is {length:,} bytes, more than {LARGEST_HEADER:,}.")
    header = parse_json(read_bytes(path, LARGEST_SHARD, LENGTH_BYTES, length), path)
    if not isinstance(header, dict):
        raise InputError(one_line(path), "has no header of named tensors.")
    return header


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise InputError(one_line(path), f"cannot be read: {error.strerror}.") from error


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise InputError(one_line(folder), f"cannot be read: {error.strerror}.") from error
