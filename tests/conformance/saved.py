"""What one block keeps for the backward pass: bytes that autograd saves in three blocks, less those in two.

`python -m tests.conformance.saved [--light] OUT.json` measures the rows of tests/core/data/activations.json anew.
Dropout keeps masks of one byte, as on CUDA; on a CPU it would keep them in the compute type.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.core.kept_rows import DATA, NO_FLASH

LIGHT = 12
"""Rows that CI measures, evenly spread."""
NO_MATH = (*NO_FLASH, "deepseek_v2", "deepseek_v3")
"""Types whose attention takes the math path on a CPU, for its unlike head sizes, and so not what CUDA keeps."""


def measured(config: dict[str, Any], attention: str, autocast: bool, seq: int, batch: int) -> int:
    """Bytes that one block saves, beside the parameters."""
    return _saved(config, attention, autocast, seq, batch, 3) - _saved(config, attention, autocast, seq, batch, 2)


def _saved(config: dict[str, Any], attention: str, autocast: bool, seq: int, batch: int, layers: int) -> int:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    names: list[str] = [name for name in ("num_hidden_layers", "n_layer", "n_layers") if name in config] or [
        "num_hidden_layers"
    ]
    sized: dict[str, Any] = {**config, **dict.fromkeys(names, layers), "use_cache": False}
    kind = sized.pop("model_type")
    made = AutoConfig.for_model(kind, **sized, attn_implementation=attention)
    with torch.device("cpu"):
        model = AutoModelForCausalLM.from_config(made).train()
    if not autocast:
        model = model.to(torch.bfloat16)
    own = {p.untyped_storage()._cdata for p in model.parameters()}
    found: dict[int, Any] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            found[storage._cdata] = storage
        return tensor

    with _as_on_cuda(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        cast = torch.autocast("cpu", torch.bfloat16, enabled=autocast)
        with cast:
            model(input_ids=torch.zeros((batch, seq), dtype=torch.long)).logits.sum()
    return sum(storage.nbytes() for storage in found.values())


@contextmanager
def _as_on_cuda() -> Iterator[None]:
    """Dropout masks of one byte, and none kept by a fused attention."""
    import torch

    functional = torch.nn.functional
    dropout, attention = functional.dropout, functional.scaled_dot_product_attention

    def masked(value: Any, p: float = 0.5, training: bool = True, _inplace: bool = False) -> Any:
        return torch.native_dropout(value, p, training)[0] if training and p > 0 else value

    def without_masks(*args: Any, **options: Any) -> Any:
        return attention(*args, **{**options, "dropout_p": 0.0})

    functional.dropout, functional.scaled_dot_product_attention = masked, without_masks
    try:
        yield
    finally:
        functional.dropout, functional.scaled_dot_product_attention = dropout, attention


def rows(light: bool) -> Iterator[tuple[int, int]]:
    """The number of a row and the bytes measured."""
    usable = [number for number, row in enumerate(DATA["rows"]) if _usable(row)]
    for number in usable[:: max(1, len(usable) // LIGHT)] if light else usable:
        place, attention, autocast, seq, batch, _ = DATA["rows"][number]
        yield number, measured(DATA["configs"][place], attention, autocast, seq, batch)


def _usable(row: list[Any]) -> bool:
    """Whether a CPU keeps what CUDA does, but for dropout."""
    place, attention, autocast, *_ = row
    return not autocast and not (attention == "sdpa" and DATA["configs"][place]["model_type"] in NO_MATH)


if __name__ == "__main__":
    Path(sys.argv[-1]).write_text(json.dumps(list(rows(light="--light" in sys.argv))), "utf-8")
