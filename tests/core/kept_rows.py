"""Bytes that autograd was seen to keep of a block, and what zeroplan says of the same; no pytest, no torch here."""

import json
from pathlib import Path
from typing import Any

from zeroplan.core.kept import block_parts
from zeroplan.core.setting import Setting
from zeroplan.core.workload import Workload
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.presets import Presets

DATA = json.loads((Path(__file__).parent / "data" / "activations.json").read_text("utf-8"))
LOSS = Presets().loss("hf")
NO_FLASH = ("falcon",)
"""Their scaled-dot-product attention does not take the flash kernel, which is what zeroplan counts."""


def kept(config: dict[str, Any], attention: str, autocast: bool, seq: int, batch: int) -> int:
    """Bytes of one block of the model's last run."""
    sizes = {"n_layer": 2, "n_layers": 2, "num_hidden_layers": 2, "vocab_size": 512}
    model = read_config({**config, **sizes})
    assert model.architecture is not None
    work = Workload(seq_len=seq, micro_batch=batch, attention="flash" if attention == "sdpa" else attention, loss=LOSS)
    how = Setting(shape=model.architecture, work=work, size=2, autocast=autocast)
    return work.tokens * sum(part.kept.count for part in block_parts(model.runs[-1].block, how))
