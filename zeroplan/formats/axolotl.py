"""axolotl's YAML as a plan.

As of axolotl 0.18 (axolotl-ai-cloud/axolotl, src/axolotl/utils/schemas, utils/trainer.py, core/builders/base.py,
monkeypatch/accelerate/fsdp2.py, utils/distributed.py): keys that its schemas lack are dropped without a word, weights
are loaded in 16 bits, and FSDP2 leaves them so, with gradients and both moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING
from zeroplan.errors import printable
from zeroplan.formats import axolotl_keys as keys
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import AUTO, UNFUSED, Reader, Reading, alike, misspelt, text_of, word_of
from zeroplan.formats.trainer import NOTHING, read_deepspeed_argument, read_optimizer
from zeroplan.formats.trainer_fsdp import CONFIG, bare, check_policy, read_words, stage_of_words, synchronises
from zeroplan.formats.yaml_mapping import LARGEST_YAML, mapping

SEQUENCE = 512
"""sequence_len where nothing is said."""
BATCH = ("micro_batch_size", "gradient_accumulation_steps", "batch_size")


def read_axolotl(path: str, hidden: int | None = None) -> Reading:
    """A configuration file as a plan; raises InputError where it is no mapping."""
    text = read_bytes(path, LARGEST_YAML).decode("utf-8-sig", errors="replace")
    return _Reader(path, text, hidden).read(mapping(text, path, typed=True))


class _Reader(Reader):
    """Goes through one file once."""

    def __init__(self, path: str, text: str, hidden: int | None) -> None:
        super().__init__(path, text, "axolotl", "ddp")
        self._hidden = hidden

    def read(self, data: Mapping[str, Any]) -> Reading:
        options = self.reading.options
        for key in data:
            if key not in keys.KNOWN and not key.startswith(keys.PLUGINS):
                said = (
                    "is not axolotl's own: a plugin's, or dropped."
                    if data.get("plugins")
                    else "is unknown; axolotl drops it."
                )
                hint = alike(key, keys.KNOWN) if misspelt(key, sorted(keys.KNOWN)) else ""
                self.found("ZP201", NOTE, key, said + hint)
        if data.get("learning_rate") is None:
            self.found("ZP201", ERROR, "learning_rate", "is missing; axolotl refuses the file.")
        if word_of(data.get("base_model")) in NOTHING:
            self.found("ZP201", ERROR, "base_model", "is missing; axolotl refuses the file.")
        else:
            options["model"] = text_of(data["base_model"])
        options["seq_len"] = str(self.whole(data, "sequence_len", SEQUENCE, least=1))
        self._batch(data)
        self._loss(data)
        self._whole_model(data)
        precision = self._precision(data)
        read_optimizer(self, data, "optimizer")
        kept = word_of(data.get("gradient_checkpointing"))
        moved = word_of(data.get("activation_offloading")) not in NOTHING
        if moved and kept in NOTHING:
            said = "needs gradient_checkpointing; axolotl refuses the file."
            self.found("ZP201", ERROR, "activation_offloading", said, "Say gradient_checkpointing: true.")
        if kept in ("offload", "offload_disk") or moved:
            said = "offloads the inputs of blocks as well, which is left out."
            key = "activation_offloading" if moved else "gradient_checkpointing"
            self.found("ZP301", WARNING, key, said, "See --offload activations=cpu.")
            options["recompute"] = "full"
        elif self.flag(data, "gradient_checkpointing"):
            options["recompute"] = "full"
        unfused = word_of(data.get("torch_compile_backend")) in UNFUSED
        if word_of(data.get("torch_compile")) != AUTO and self.flag(data, "torch_compile") and not unfused:
            options["compiled"] = "model"
        self.reading.quiet = not synchronises(self, data)
        self._parallel(data, precision)
        return self.reading

    def _batch(self, data: Mapping[str, Any]) -> None:
        said = [key for key in BATCH if data.get(key) is not None]
        if len(said) < 2:
            what = "two of micro_batch_size, gradient_accumulation_steps and batch_size are needed; axolotl stops."
            self.found("ZP201", ERROR, said[0] if said else "", what, "Say two of them.")
        micro = self.whole(data, "micro_batch_size", 1, least=1)
        accum = self.whole(data, "gradient_accumulation_steps", 1, least=1)
        if "batch_size" in said and "gradient_accumulation_steps" in said:
            self.found("ZP201", ERROR, "batch_size", "and gradient_accumulation_steps exclude each other.", "Keep one.")
        elif "batch_size" in said:
            what = "has no effect: axolotl 0.18 has filled in 1 accumulation step before it looks at it."
            self.found("ZP206", WARNING, "batch_size", what, "Say gradient_accumulation_steps.")
        self.reading.options.update(micro_batch=str(micro), grad_accum=str(accum))

    def _loss(self, data: Mapping[str, Any]) -> None:
        plugins = data.get("plugins")
        named = " ".join(map(text_of, plugins)).lower() if isinstance(plugins, list) else ""
        options, loss = self.reading.options, "hf"
        if "liger" in named:
            if self.flag(data, "liger_fused_linear_cross_entropy"):
                loss = "linear"
            parts = [part for key, part in keys.LIGER.items() if self.flag(data, key)]
            options.update({"fused": ",".join(parts)} if parts else {})
        if "cut_cross_entropy" in named and self.flag(data, "cut_cross_entropy", default=True):
            loss = "linear"
        if self.flag(data, "chunked_cross_entropy"):
            loss = "chunked"
        options["loss"] = loss

    def _whole_model(self, data: Mapping[str, Any]) -> None:
        """Note where only a part of the model is trained, or it is quantised."""
        if word_of(data.get("adapter")) not in NOTHING:
            self.not_modelled("adapter", f"{printable(text_of(data['adapter']))} trains a part of the model")
        for key in ("load_in_8bit", "load_in_4bit", "relora", "fp8"):
            if self.flag(data, key):
                self.not_modelled(key)
        for key in keys.OTHERWISE:
            if word_of(data.get(key)) not in NOTHING:
                self.not_modelled(key)
        if word_of(data.get("attn_implementation")) == "eager" or self.flag(data, "eager_attention"):
            self.reading.options["attention"] = "eager"
        if word_of(data.get("rl")) not in (*NOTHING, *keys.ALONE):
            self.not_modelled("rl", "a second model stands beside the trained one, which is not modelled")
        if data.get("unfrozen_parameters"):
            self.not_modelled("unfrozen_parameters", "training a part of the model is not modelled")

    def _precision(self, data: Mapping[str, Any]) -> str:
        said = word_of(data.get("bf16", "auto"))
        if said not in ("auto", "true", "false", "null"):
            self.found("ZP201", ERROR, "bf16", f"{printable(said)} is not true, false or auto; axolotl refuses it.")
        if said in ("auto", "true") or self.flag(data, "bfloat16"):
            self.reading.half = "bf16"
        elif self.flag(data, "fp16") or self.flag(data, "float16"):
            self.reading.half = "fp16"
        return self.reading.half or "no"

    def _parallel(self, data: Mapping[str, Any], precision: str) -> None:
        options, half = self.reading.options, precision != "no"
        for key in keys.SIZES:
            if (size := self.whole({**data, key: data.get(key) or 1}, key, 1, least=1)) > 1:
                self.not_modelled(key, f"{size} is not modelled")
        words, section = data.get("fsdp") or [], self.section(data, CONFIG)
        deepspeed = word_of(data.get("deepspeed")) not in NOTHING
        if deepspeed and (words or section):
            self.found("ZP201", ERROR, "deepspeed", "stands beside fsdp; axolotl refuses both.", "Keep one.")
        elif deepspeed:
            read_deepspeed_argument(self, data["deepspeed"], self._hidden, precision)
            return
        if words or section:
            version = self._fsdp(words, section, data)
            options["recipe"] = {(2, True): "pure-bf16", (1, True): "fsdp-mixed"}.get((version, half), "fp32-adam")
        else:
            options.update(stage=("0",), recipe="pure-bf16" if half else "fp32-adam")
        self._groups(data)

    def _fsdp(self, value: object, section: Mapping[str, Any], data: Mapping[str, Any]) -> int:
        """The plan that fsdp and fsdp_config ask for; returns the version."""
        config, options = bare(section), self.reading.options
        for key in config:
            if key in keys.MEANT:
                said = "is not axolotl's, which drops it."
                severity = NOTE if text_of(config[key]).upper() in keys.AS_ALWAYS else WARNING
                self.found("ZP206", severity, f"{CONFIG}.{key}", said, f"Use {keys.MEANT[key]}.")
            elif key not in keys.FSDP:
                self.found("ZP201", NOTE, f"{CONFIG}.{key}", f"is unknown; axolotl drops it.{alike(key, keys.FSDP)}")
        if not isinstance(value, list):
            self.found("ZP201", ERROR, "fsdp", "is not a list; axolotl refuses it.", "Use fsdp_config alone.")
            value = []
        elif value and not section:
            self.found("ZP201", ERROR, "fsdp", "without fsdp_config stops axolotl.", "Use fsdp_config alone.")
        version = self._version(data, config)
        options["framework"] = f"fsdp{version}"
        options["stage"] = (str(stage_of_words(self, read_words(self, value), config, version)),)
        offload = self.flag(config, "offload_params", path=f"{CONFIG}.offload_params")
        options["offload"] = ("params=cpu",) if offload else ()
        check_policy(self, config, keys.POLICIES)
        self._refused(config, version, word_of(data.get("optimizer")))
        if self.flag(config, "activation_checkpointing", path=f"{CONFIG}.activation_checkpointing"):
            options["recompute"] = "full"
        return version

    def _refused(self, config: Mapping[str, Any], version: int, optimizer: str) -> None:
        """What its schemas, or the Trainer behind them, refuse."""
        if isinstance(config.get("transformer_layer_cls_to_wrap"), list):
            self.found("ZP201", ERROR, f"{CONFIG}.transformer_layer_cls_to_wrap", "is a list; axolotl takes a text.")
        if config.get("auto_wrap_policy") == "SIZE_BASED_WRAP" and config.get("min_num_params") is None:
            self.found("ZP201", ERROR, f"{CONFIG}.auto_wrap_policy", "SIZE_BASED_WRAP needs min_num_params.")
        if version == 2 and text_of(config.get("state_dict_type", "")) == "LOCAL_STATE_DICT":
            said = "LOCAL_STATE_DICT is refused at version 2."
            self.found("ZP201", ERROR, f"{CONFIG}.state_dict_type", said, "Use SHARDED_STATE_DICT.")
        if version == 2 and optimizer in keys.NOT_FSDP2:
            self.found("ZP201", ERROR, "optimizer", f"{optimizer} is refused with FSDP2.", "Use adamw_torch_8bit.")

    def _version(self, data: Mapping[str, Any], config: Mapping[str, Any]) -> int:
        """1 where nothing is said, against the Trainer's 2."""
        inside = self.whole(config, "version", 1, least=1, most=2, path=f"{CONFIG}.fsdp_version")
        if data.get("fsdp_version") is None:
            if "version" not in config:
                said = "does not say its version: axolotl takes 1, which is deprecated."
                self.found("ZP302", NOTE, CONFIG, said, "Say fsdp_version: 2.")
            return inside
        version = self.whole(data, "fsdp_version", 1, least=1, most=2)
        if "fsdp_version" in self.section(data, CONFIG) and inside != version:
            said = f"is {version}, and {inside} in {CONFIG}: axolotl follows the first, the Trainer the second."
            self.found("ZP201", ERROR, "fsdp_version", said, "Say it once.")
        return version

    def _groups(self, data: Mapping[str, Any]) -> None:
        shard, replicate = (
            self.whole({**data, key: data.get(key) or 1}, key, 1, least=1)
            for key in ("dp_shard_size", "dp_replicate_size")
        )
        sharded = self.reading.options["framework"] != "ddp"
        if shard > 1 and not sharded:
            said = "needs fsdp_config; axolotl stops."
            self.found("ZP201", ERROR, "dp_shard_size", said, "Add fsdp_config, or leave it out.")
        elif shard > 1:
            self.reading.options["shard_group"] = str(shard)
        elif replicate > 1 and sharded:
            self.reading.replicas = replicate
