"""Parameter counts of transformers on the meta device, and DeepSpeed's own estimators, beside zeroplan's.

`python -m tests.conformance.counts [--light] OUT.json` writes what they give.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zeroplan.formats.model_preset import ModelPreset
from zeroplan.formats.presets import Presets

SIZES = ((7.5e9, 64, 8), (1.3e9, 16, 8), (70e9, 512, 8))
"""Parameters, GPUs and GPUs of a node at which the estimators are asked."""
SAME_CLASS = {"kimi_k2": "deepseek_v3"}
"""Model types of remote code that transformers builds under another name."""
TIED_WHEN_FRESH = ("flan-t5-xxl",)
"""transformers 5 ties the head of a fresh build; the published file has one of its own."""


def models(light: bool) -> Iterator[tuple[str, int]]:
    """Every bundled model; `light`: the smallest of each model type."""
    presets = Presets()
    found = [record for record in presets.all("model") if isinstance(record, ModelPreset)]
    if light:
        smallest = {record.config["model_type"]: record for record in sorted(found, key=lambda r: -r.model.params)}
        found = list(smallest.values())
    for record in found:
        if record.name not in TIED_WHEN_FRESH:
            config = {**record.config, **dict.fromkeys(record.null_keys)}
            yield record.name, _on_meta(_listed(config))


def _listed(value: Any) -> Any:
    """Lists for tuples, as JSON has them."""
    if isinstance(value, dict):
        return {key: _listed(inner) for key, inner in value.items()}
    return [_listed(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _on_meta(config: dict[str, Any]) -> int:
    import torch
    import transformers

    kind = config.pop("model_type")
    [name] = config.pop("architectures", None) or [""]
    made = transformers.AutoConfig.for_model(SAME_CLASS.get(kind, kind), **config)
    named = getattr(transformers, name, None)
    build = named._from_config if named else transformers.AutoModelForCausalLM.from_config
    with torch.device("meta"):
        model = build(made)
    return sum(parameter.numel() for parameter in model.parameters())


def estimators() -> Iterator[tuple[list[int], int]]:
    """What is asked, [parameters, GPUs, stage, place], and the GPU memory that DeepSpeed's estimators give."""
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as stage_3
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as stage_2

    for size, gpus, of_node in SIZES:
        params = int(size)
        nodes = {"num_gpus_per_node": of_node, "num_nodes": gpus // of_node}
        for place, offload in enumerate((False, True)):
            yield [params, gpus, 2, place], stage_2(params, **nodes, cpu_offload=offload)[1]
        for place, (optimizer, everything) in enumerate(((False, False), (True, False), (True, True))):
            found = stage_3(params, 0, **nodes, cpu_offload=optimizer, cpu_offload_params=everything)
            yield [params, gpus, 3, place], found[1]


if __name__ == "__main__":
    found = {"models": list(models("--light" in sys.argv)), "estimators": list(estimators())}
    Path(sys.argv[-1]).write_text(json.dumps(found), "utf-8")
