"""A checkpoint folder as a model: shapes from its safetensors headers, no tensor read.

A file is 8 bytes of length, little-endian, then that many bytes of JSON, then the data
(the format's description in huggingface/safetensors).
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zeroplan.core.model import Model, Module
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.config_values import WAYS_OUT, class_defaults
from zeroplan.formats.files import parse_json, read_bytes, read_json
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.named_shapes import Shapes, block_of, model_of_shapes, parameter_shapes

INDEX = ".safetensors.index.json"
ENDING = ".safetensors"
LARGEST_HEADER = 10**8
LARGEST_SHARD = 10**15
LENGTH_BYTES = 8
MOST_FILES = 100_000
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "shared.weight", "embed_in.weight")
HEADS = ("lm_head.weight", "proj_out.weight")
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
"""T5's embedding under its other names."""
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk")


def has_headers(folder: str) -> bool:
    """Whether a folder holds safetensors files."""
    return any(name.endswith((ENDING, INDEX)) for name in _entries(folder))


def read_checkpoint(folder: str, name: str = "") -> Model:
    """The model in a folder: its headers, checked against its config.json where that can be counted."""
    where = one_line(folder)
    config = _config(folder)
    shapes, notes = _trained(read_headers(folder), config, where)
    stored = model_of_shapes(shapes, where, _experts_per_token(config))
    stored = replace(
        stored, name=name or os.path.basename(one_line(os.path.abspath(folder))), source=f"{where}, headers"
    )
    stored = replace(stored, notes=(*stored.notes, *notes))
    counted = _counted(folder, config)
    return (
        _agreed(stored, counted)
        if isinstance(counted, Model)
        else replace(stored, notes=(*stored.notes, *([counted] if counted else [])))
    )


def read_headers(folder: str) -> dict[str, Any]:
    """Name and description of every tensor in the headers of a folder."""
    found: dict[str, Any] = {}
    for file in _files(folder):
        found.update(read_header(os.path.join(folder, file)))
    return found


def _agreed(stored: Model, counted: Model) -> Model:
    """The config's model where both count the same, else the headers' with both counts."""
    if counted.params == stored.params:
        notes = (*counted.notes, *stored.notes, "checked against the safetensors headers")
        return replace(counted, name=stored.name, notes=notes, source=stored.source)
    differ = f"the headers hold {stored.params:,} parameters, config.json counts to {counted.params:,}; the headers win"
    return replace(stored, model_type=counted.model_type, notes=(*stored.notes, differ))


def _config(folder: str) -> dict[str, Any]:
    path = os.path.join(folder, "config.json")
    config = read_json(path) if os.path.exists(path) else {}
    return config if isinstance(config, dict) else {}


def _counted(folder: str, config: dict[str, Any]) -> Model | str:
    """The config's model, or why there is none."""
    if not config:
        return ""
    try:
        return read_config(config, os.path.join(one_line(folder), "config.json"))
    except InputError as error:
        return f"not checked against config.json: {error.problem.removesuffix('.')}"


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


def _trained(tensors: dict[str, Any], config: dict[str, Any], where: str) -> tuple[Shapes, list[str]]:
    """The shapes of what is trained, without what is stored beside it, and notes of what was left out."""
    shapes = parameter_shapes(tensors, where)
    shapes, notes = _without_prediction(shapes, config)
    tied = _is_tied(config)
    for name in _copies(shapes, tied):
        del shapes[name]
        notes.append(f"{printable(name)} is stored again, and tied to the embedding: counted once")
    return shapes, notes


def _without_prediction(shapes: Shapes, config: dict[str, Any]) -> tuple[Shapes, list[str]]:
    """Without multi-token-prediction blocks, which transformers does not build."""
    layers = config.get("num_hidden_layers")
    last = layers if type(layers) is int else None
    kept = {name: shape for name, shape in shapes.items() if not _predicts(name, last)}
    if len(kept) == len(shapes):
        return kept, []
    dropped = {name: shape for name, shape in shapes.items() if name not in kept}
    size = sum(Module(name=name, shapes=(shape,)).params for name, shape in dropped.items())
    return kept, [f"left out: {size:,} parameters of multi-token prediction, which transformers does not build"]


def _predicts(name: str, layers: int | None) -> bool:
    if name.startswith(("mtp.", "model.mtp.")):
        return True
    place = block_of(name)
    return layers is not None and place is not None and place[0] == "model.layers" and place[1] >= layers


def _copies(shapes: Shapes, tied: bool) -> list[str]:
    """The names under which the embedding is stored a second time."""
    sizes = {shape for name, shape in shapes.items() if name.endswith(EMBEDDINGS)}
    heads = [name for name in shapes if tied and name.endswith(HEADS) and shapes[name] in sizes]
    shared = shapes.get("shared.weight")
    return heads + [name for name in COPIES if shared is not None and shapes.get(name) == shared]


def _is_tied(config: dict[str, Any]) -> bool:
    """Whether the config, or its class, says that the head is the embedding."""
    inner = config.get("text_config")
    for table in (inner if isinstance(inner, dict) else {}, config):
        if "tie_word_embeddings" in table:
            return table["tie_word_embeddings"] is True
    kind = inner.get("model_type") if isinstance(inner, dict) else config.get("model_type")
    defaults = class_defaults().get(kind, {}) if isinstance(kind, str) else {}
    return isinstance(defaults, dict) and defaults.get("tie_word_embeddings", kind == "t5") is True


def _experts_per_token(config: dict[str, Any]) -> int:
    inner = config.get("text_config")
    for table in (config, inner if isinstance(inner, dict) else {}):
        for key in EXPERTS_PER_TOKEN:
            if type(table.get(key)) is int and table[key] > 0:
                return int(table[key])
    return 0
