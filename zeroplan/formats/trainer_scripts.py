"""Scripts around the Trainer, and what they take where a file says nothing: LLaMA-Factory and TRL.

hiyouga/LLaMA-Factory src/llamafactory/hparams (finetuning_args.py, model_args.py, data_args.py): LoRA and checkpoints
by default, 2,048 tokens. huggingface/trl trl/trainer/base_config.py: checkpoints and bf16 by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zeroplan.formats.reading import YES, word_of

FACTORY = ("finetuning_type", "template", "cutoff_len", "dataset_dir", "disable_gradient_checkpointing")
TRL = ("dataset_name", "dataset_config", "packing", "use_peft", "lora_r", "max_length")
FACTORY_LENGTH = 2048
ALONE = ("pt", "sft", "", "null")
"""Values of LLaMA-Factory's `stage` at which one model is trained, and none stands beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a script takes where its file says nothing."""

    checkpoints: bool = False
    bf16: bool = False
    seq_len: int = 0
    """0: not known."""
    adapter: str = ""
    """The key, said or not, by which a part of the model is trained."""
    beside: str = ""
    """The key by which another model may stand beside the trained one."""

    def defaults(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that it sets otherwise than the Trainer."""
        return {"bf16": True} if self.bf16 and word_of(data.get("fp16", False)) not in YES else {}


def script_of(data: Mapping[str, Any]) -> Script:
    """The script that a file is for; the Trainer's own defaults where no key of one is in it."""
    if any(key in data for key in FACTORY):
        return Script(
            checkpoints=word_of(data.get("disable_gradient_checkpointing", False)) not in YES,
            seq_len=FACTORY_LENGTH,
            adapter="" if "finetuning_type" in data else "finetuning_type",
            beside="" if word_of(data.get("stage", "")) in ALONE else "stage",
        )
    if any(key in data for key in TRL):
        return Script(checkpoints=True, bf16=True)
    return Script()
