"""What one CUDA GPU holds: context, allocated against reserved, activations, logits and steps of five models.

Self-contained: `python gpu_probe.py OUT.json` needs torch and transformers only, and under eight minutes.
`--dry-run` goes the same way on a CPU with tiny models, and measures nothing.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

LLAMA: dict[str, Any] = {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64}
MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", "n_embd": 1280, "n_layer": 36, "n_head": 20, "n_positions": 4096},
    "llama": {"model_type": "llama", **LLAMA, "num_hidden_layers": 16, "intermediate_size": 8192, "vocab_size": 128256},
    "qwen2": {"model_type": "qwen2", **LLAMA, "num_hidden_layers": 16, "intermediate_size": 8960, "vocab_size": 151936},
    "gemma2": {
        "model_type": "gemma2",
        **LLAMA,
        "num_hidden_layers": 12,
        "intermediate_size": 8192,
        "vocab_size": 256000,
    },
    "mixtral": {
        "model_type": "mixtral",
        **LLAMA,
        "num_hidden_layers": 6,
        "intermediate_size": 4096,
        "num_local_experts": 8,
        "vocab_size": 32000,
    },
}
EAGER = ("gemma2",)
"""Their scores go through a tanh, which no fused attention takes."""
TINY = {"num_hidden_layers": 2, "n_layer": 2, "hidden_size": 128, "n_embd": 128, "head_dim": 32}
TINY |= {"num_attention_heads": 4, "n_head": 4, "num_key_value_heads": 2, "intermediate_size": 256, "vocab_size": 512}
SHAPES = ((1024, 1), (2048, 2), (4096, 2))
KERNELS = ("fused", "foreach", "loop")
LONGEST = 450
"""Seconds; what is not measured by then is left out and said."""


class Card:
    """The meters of one GPU; on a CPU all of them are at zero."""

    def __init__(self, dry: bool) -> None:
        self.device = torch.device("cpu" if dry else "cuda")
        self._dry = dry

    def start(self) -> None:
        gc.collect()
        if not self._dry:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def allocated(self) -> int:
        return 0 if self._dry else torch.cuda.memory_allocated()

    def peaks(self) -> dict[str, int]:
        """Of allocated and reserved memory since the last start or peaks."""
        if self._dry:
            return {"allocated": 0, "reserved": 0, "device": 0}
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        found = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
        torch.cuda.reset_peak_memory_stats()
        return {**found, "device": total - free}

    def about(self) -> dict[str, Any]:
        """The card, its software, and what is taken before any tensor is."""
        found: dict[str, Any] = {"torch": torch.__version__, "transformers": transformers.__version__}
        if self._dry:
            return {**found, "card": "none, a dry run", "context_bytes": 0, "total_bytes": 0}
        torch.zeros(1, device=self.device) @ torch.zeros(1, device=self.device)  # makes the context and cuBLAS's handle
        free, total = torch.cuda.mem_get_info()
        return {
            **found,
            "card": torch.cuda.get_device_name(),
            "cuda": torch.version.cuda,
            "total_bytes": total,
            "context_bytes": total - free - torch.cuda.memory_reserved(),
        }


def runs(dry: bool) -> Iterator[dict[str, Any]]:
    """Every training to measure: the shapes and recomputations first, then the optimizer's kernels."""
    for name in MODELS:
        for recompute in ("none", "full"):
            for seq_len, batch in SHAPES[:1] if dry else SHAPES:
                yield {"model": name, "recompute": recompute, "seq_len": seq_len, "batch": batch, "kernel": "fused"}
    for kernel in KERNELS[1:]:
        yield {"model": "llama", "recompute": "full", "seq_len": 1024, "batch": 1, "kernel": kernel}


def measured(run: dict[str, Any], card: Card, dry: bool, layers_less: int = 0) -> dict[str, Any]:
    """Bytes of two steps of a training: the second one counts."""
    config = {**MODELS[run["model"]]}
    if dry:
        config = {key: TINY.get(key, value) for key, value in config.items()} | {"vocab_size": TINY["vocab_size"]}
    layers = next(key for key in ("n_layer", "num_hidden_layers") if key in config)
    config[layers] -= layers_less
    attention = "eager" if run["model"] in EAGER else "sdpa"
    seq_len = 32 if dry else run["seq_len"]
    made = AutoConfig.for_model(**config, attn_implementation=attention, use_cache=False)
    card.start()
    model: Any = AutoModelForCausalLM.from_config(made, dtype=torch.bfloat16).to(card.device).train()
    if run["recompute"] == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    how = {"fused": {"fused": True}, "foreach": {"foreach": True}, "loop": {"foreach": False}}[run["kernel"]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **how)
    ids = torch.randint(0, made.vocab_size, (run["batch"], seq_len), device=card.device)
    found: dict[str, Any] = {"weights": card.allocated()}
    for _ in range(2):
        card.start()
        before = card.allocated()
        loss = model(input_ids=ids, labels=ids).loss
        found |= {"before": before, "after_forward": card.allocated(), "forward": card.peaks()}
        loss.backward()
        del loss
        found |= {"after_backward": card.allocated(), "backward": card.peaks()}
        optimizer.step()
        found["step"] = card.peaks()
        optimizer.zero_grad()
    return {**run, "config": config, "attention": attention, "bytes": found}


def main() -> int:
    """Measure everything and write it; 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", metavar="OUT.json")
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args()
    began, card = time.monotonic(), Card(given.dry_run)
    answer: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat(), **card.about(), "runs": [], "left_out": []}
    for run in runs(given.dry_run):
        for less in (0,) if given.dry_run else (0, 1):
            if time.monotonic() - began > LONGEST:
                answer["left_out"].append(run)
                continue
            try:
                answer["runs"].append(measured(run, card, given.dry_run, less))
            except torch.OutOfMemoryError as error:
                answer["runs"].append({**run, "out_of_memory": str(error)[:500]})
    Path(given.out).write_text(json.dumps(answer, indent=1) + "\n", "utf-8")
    print(f"{len(answer['runs'])} runs on {answer['card']}, {len(answer['left_out'])} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
