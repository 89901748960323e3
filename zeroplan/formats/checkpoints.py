"""A checkpoint folder as a model: what its headers hold, checked against the config beside them."""

import os
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

from zeroplan.core.model import Model
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.config_values import class_defaults
from zeroplan.formats.files import read_json
from zeroplan.formats.huggingface import PREDICTED, read_config
from zeroplan.formats.named_shapes import Shapes, block_of, model_of_shapes, parameter_shapes
from zeroplan.formats.safetensors import read_headers

EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "shared.weight", "embed_in.weight")
HEADS = ("lm_head.weight", "proj_out.weight")
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
"""T5's embedding under its other names."""
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk")
PREDICTION = ("mtp.", "model.mtp.")
CHECKED = "checked against the safetensors headers"

Config = dict[str, Any]


def read_checkpoint(folder: str, name: str = "") -> Model:
    """The model in a folder: its headers, checked against its config.json where that can be counted."""
    return model_of_headers(read_headers(folder), _config(folder), one_line(folder), name or _name(folder))


def model_of_headers(headers: Config, config: Config, where: str, name: str) -> Model:
    """The model that the headers of safetensors files hold, checked against a config (empty: there is none)."""
    shapes, notes = _trained(parameter_shapes(headers, where), config)
    stored = model_of_shapes(shapes, where, _experts_per_token(config))
    stored = replace(stored, name=name, source=f"{where}, headers")
    try:
        counted = read_config(config, where) if config else None
    except InputError as error:
        notes.append(f"not checked against config.json: {error.problem.removesuffix('.')}")
        counted = None
    return _checked(stored, counted, notes)


def _checked(stored: Model, counted: Model | None, notes: list[str]) -> Model:
    """The config's model where both count the same, else the headers'; with both counts where they differ."""
    if counted is None:
        return replace(stored, notes=(*stored.notes, *notes))
    if counted.params == stored.params:
        left_out = any(PREDICTED in note for note in notes)
        own = [note for note in counted.notes if not (left_out and PREDICTED in note)]
        return replace(counted, name=stored.name, notes=(*own, *notes, CHECKED), source=stored.source)
    differ = f"the headers hold {stored.params:,} parameters, config.json counts to {counted.params:,}; the headers win"
    return replace(
        stored,
        model_type=counted.model_type,
        notes=(*stored.notes, *notes, differ),
        unmodelled="the headers and config.json disagree, so how it computes is not known",
    )


def _name(folder: str) -> str:
    return os.path.basename(one_line(os.path.abspath(folder)))


def _config(folder: str) -> Config:
    path = os.path.join(folder, "config.json")
    config = read_json(path) if os.path.exists(path) else {}
    return config if isinstance(config, dict) else {}


def _trained(shapes: Shapes, config: Config) -> tuple[Shapes, list[str]]:
    """The shapes of what is trained, without what is stored beside it, and notes of what was left out."""
    shapes, notes = _without_prediction(shapes, config)
    for name in list(_copies(shapes)):
        del shapes[name]
        notes.append(f"{printable(name)} is the embedding, stored again: counted once")
    for name in list(_embedding_like_heads(shapes)):
        tied = _is_tied(config)
        if tied:
            del shapes[name]
            notes.append(f"{printable(name)} is tied to the embedding and stored again: counted once")
        elif tied is None:
            notes.append(f"no config says whether {printable(name)} is tied to the embedding: both count")
    return shapes, notes


def _without_prediction(shapes: Shapes, config: Config) -> tuple[Shapes, list[str]]:
    """Without multi-token-prediction blocks, which transformers does not build."""
    layers = config.get("num_hidden_layers")
    last = layers if type(layers) is int else None
    kept = {name: shape for name, shape in shapes.items() if not _predicts(name, last)}
    size = sum(map(prod, shapes.values())) - sum(map(prod, kept.values()))
    note = f"left out: {size:,} parameters in {PREDICTED} blocks, which transformers does not build"
    return kept, [note] if size else []


def _predicts(name: str, layers: int | None) -> bool:
    if name.startswith(PREDICTION):
        return True
    place = block_of(name)
    return layers is not None and place is not None and place[0] == "model.layers" and place[1] >= layers


def _copies(shapes: Shapes) -> Iterator[str]:
    """The names under which an embedding of both sides is stored again."""
    shared = shapes.get("shared.weight")
    yield from (name for name in COPIES if shared is not None and shapes.get(name) == shared)


def _embedding_like_heads(shapes: Shapes) -> Iterator[str]:
    """Heads of the same shape as the embedding."""
    sizes = {shape for name, shape in shapes.items() if name.endswith(EMBEDDINGS)}
    yield from (name for name in shapes if name.endswith(HEADS) and shapes[name] in sizes)


def _is_tied(config: Config) -> bool | None:
    """Whether the config, or its class, says that the head is the embedding; None: neither does."""
    text = _text_config(config)
    for table in (text, config):
        if "tie_word_embeddings" in table:
            return table["tie_word_embeddings"] is True
    kind = text.get("model_type", config.get("model_type"))
    defaults = class_defaults().get(kind, {}) if isinstance(kind, str) else {}
    found = defaults.get("tie_word_embeddings")
    return found if isinstance(found, bool) else None


def _experts_per_token(config: Config) -> int:
    for table in (config, _text_config(config)):
        for key in EXPERTS_PER_TOKEN:
            if type(table.get(key)) is int and table[key] > 0:
                return int(table[key])
    return 0


def _text_config(config: Config) -> Config:
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else {}
