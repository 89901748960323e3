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
TRL = (
    *("use_peft", "packing", "max_length", "dataset_text_field", "assistant_only_loss", "completion_only_loss"),
    *("padding_free", "dataset_config"),
)
"""Keys that only such a script has; dataset_name is of transformers' own examples too."""
FACTORY_LENGTH = 2048
ALONE = ("pt", "sft", "", "null")
"""Values of LLaMA-Factory's `stage` at which one model is trained, and none stands beside it."""
OTHERWISE = (
    *("use_galore", "use_apollo", "use_badam", "use_adam_mini", "use_muon", "fp8", "use_unsloth_gc"),
    *("mixture_of_depths", "load_in_4bit", "load_in_8bit", "activation_offloading", "use_vllm"),
    *("teacher_model_name_or_path", "ref_model", "num_generations", "beta", "use_llama_pro"),
    *("max_prompt_length", "max_completion_length", "reward_funcs", "sync_ref_model", "reward_model_path"),
)
"""Keys that train, keep or compute otherwise than is modelled, or with a second model."""
ALONE_LOSSES = ("nll", "chunked_nll", "dft")
"""Values of TRL's `loss_type` of one model."""
OFF = ("null", "", "false", "0", "0.0")
EAGER = {"attn_implementation": "eager", "flash_attn": "disabled"}
"""Keys of attention, and the value at which scores are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a script takes where its file says nothing."""

    name: str = ""
    """Empty: the Trainer itself."""
    checkpoints: bool = False
    decides: bool = False
    """Whether it switches checkpoints itself, whatever the Trainer's argument says."""
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
            name="LLaMA-Factory",
            checkpoints=word_of(data.get("disable_gradient_checkpointing", False)) not in YES,
            decides=True,
            seq_len=FACTORY_LENGTH,
            adapter="" if "finetuning_type" in data else "finetuning_type",
            beside="" if word_of(data.get("stage", "")) in ALONE else "stage",
        )
    if any(key in data for key in TRL):
        return Script(name="TRL", checkpoints=True, bf16=True)
    return Script()
