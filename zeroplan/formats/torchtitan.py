"""torchtitan's TOML as a plan, in the spellings of 2024 and of 2025.

As pytorch/torchtitan read it until TOML was removed on 2026-02-23: torchtitan/config_manager.py,
torchtitan/config/job_config.py, distributed/parallel_dims.py, models/llama3/infra/parallelize.py,
distributed/activation_checkpoint.py, train.py.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats import torchtitan_keys as keys
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import DEEPEST, MOST_KEYS, UNFUSED, Reader, Reading, alike, check_depth, text_of, word_of
from zeroplan.formats.yaml_mapping import LARGEST_YAML


def read_torchtitan(path: str, hidden: int | None = None) -> Reading:  # noqa: ARG001
    """A configuration file as a plan; nothing in it follows from the model's width.

    Raises InputError where it is no TOML, or nested too deeply.
    """
    text = read_bytes(path, LARGEST_YAML).decode("utf-8-sig", errors="replace")
    check_depth(text, path)
    if DOTTED.search(text):
        raise InputError(one_line(path), f"has a key of more than {DEEPEST} parts.")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(one_line(path), f"is not TOML: {printable(error, 100)}.") from error
    if len(data) > MOST_KEYS:
        raise InputError(one_line(path), f"has more than {MOST_KEYS} tables.")
    return _Reader(path, text, "torchtitan", "fsdp2").read(data)


DOTTED = re.compile(rf"(?<![\w.-])(?:[\w-]+[ \t]*\.[ \t]*){{{DEEPEST}}}")


class _Reader(Reader):
    """Goes through one file once."""

    def read(self, data: Mapping[str, Any]) -> Reading:
        self._known(data)
        options = self.reading.options
        self._model(self.section(data, "model"))
        training = self.section(data, "training")
        batch = "local_batch_size" if "local_batch_size" in training else "batch_size"
        options["micro_batch"] = str(self.whole(training, batch, keys.BATCH, least=1, path=f"training.{batch}"))
        options["seq_len"] = str(self.whole(training, "seq_len", keys.SEQUENCE, least=1, path="training.seq_len"))
        if word_of(training.get("global_batch_size", -1)) != "-1":
            self.reading.train_batch = (
                self.whole(training, "global_batch_size", 0, least=1, most=10**7, path="training.global_batch_size")
                or None
            )
        self.reading.derives_batch = True
        self._parallel(data)
        self._precision(training)
        self._checkpointing(self.section(data, "activation_checkpoint"), training)
        self._compile(data, training)
        recent = keys.PARALLEL in data or "compile" in data or "local_batch_size" in training
        self._optimizer(self.section(data, "optimizer"), recent)
        self._quantised(data)
        return self.reading

    def _known(self, data: Mapping[str, Any]) -> None:
        """Note keys that no version knows, and those of old ones."""
        own = text_of(self.section(data, "model").get("name", "llama3")) in keys.NAMES
        for name, section in data.items():
            if name in keys.FREE or not own:
                continue
            if name not in keys.SECTIONS:
                said = f"is unknown; torchtitan ignores it, or refuses the file.{alike(name, frozenset(keys.SECTIONS))}"
                self.found("ZP201", WARNING, name, said)
                continue
            for key in list(section)[:MOST_KEYS] if isinstance(section, Mapping) else ():
                if key not in keys.SECTIONS[name]:
                    said = "is unknown; torchtitan ignores it, since 2025-08-28 it refuses the file."
                    self.found("ZP201", WARNING, f"{name}.{key}", said + alike(key, keys.SECTIONS[name]))
                elif (name, key) in keys.OLD:
                    place, when = keys.OLD[name, key]
                    said = f"is the spelling of before {when}; later versions ignore it or refuse the file."
                    self.found("ZP204", WARNING, f"{name}.{key}", said, f"For those write {place}.")

    def _model(self, section: Mapping[str, Any]) -> None:
        which = text_of(section.get("name", "llama3")), text_of(section.get("flavor", "debugmodel"))
        if which in keys.MODELS:
            self.reading.options["model"] = keys.MODELS[which]
        elif which in keys.PARAMS:
            self.reading.options["params"] = str(keys.PARAMS[which])
        else:
            said = f"{printable(' '.join(which))} is not a model that zeroplan knows."
            self.found("ZP302", NOTE, "model.flavor", said, "Give --model.")

    def _parallel(self, data: Mapping[str, Any]) -> None:
        size = {way: self._degree(data, way) for way in keys.DEGREES}
        rest = " x ".join(f"{way} {size[way]}" for way in keys.DIVIDING if size[way] > 1)
        for way in (*keys.DIVIDING, "expert"):
            if size[way] > 1:
                what = "" if way == "expert" else f"; data-parallel ranks are world / ({rest})"
                self.not_modelled(".".join(self._places(data, way)[0]), f"{size[way]} is not modelled{what}")
        shard, replicate, options = size["shard"], size["replicate"], self.reading.options
        training = self.section(data, "training")
        ddp = text_of(training.get("data_parallel_type", "fsdp")) == "ddp"
        if ddp or shard == 1:
            options.update(framework="ddp", stage=("0",))
            ranks = shard * replicate if shard > 0 else replicate
            if ranks > 1 and not rest:
                options["gpus"] = str(ranks)
        else:
            options["stage"] = (str(self._reshard(data)),)
            if shard > 1 and not rest:
                options["gpus"] = str(shard * replicate)
            if replicate > 1 and shard > 1:
                options["shard_group"] = str(shard)
            elif replicate > 1:
                self.reading.replicas = replicate
        if self.flag(training, "enable_cpu_offload", path="training.enable_cpu_offload"):
            options["offload"] = ("params=cpu",) if options["framework"] == "fsdp2" else ()

    def _degree(self, data: Mapping[str, Any], way: str) -> int:
        """A degree of parallelism, wherever its version has it; -1 for the rest, 1 where nothing is said."""
        found = self._places(data, way)
        if not found:
            return -1 if way == "shard" else 1
        (section, key), *others = found
        for other in others:
            said = f"stands beside {section}.{key}, which is read."
            self.found("ZP206", WARNING, ".".join(other), said, "Keep one of them.")
        path, value = f"{section}.{key}", data[section][key]
        if way == "shard" and word_of(value) == "-1":
            return -1
        return self.whole(data[section], key, 1, least=1, path=path)

    def _places(self, data: Mapping[str, Any], way: str) -> list[tuple[str, str]]:
        """The sections and keys that say a degree."""
        return [
            (section, key)
            for section in (keys.PARALLEL, "experimental", "training")
            for key in keys.DEGREES[way]
            if key in self.section(data, section)
        ]

    def _reshard(self, data: Mapping[str, Any]) -> int:
        key = "fsdp_reshard_after_forward"
        section = next((name for name in (keys.PARALLEL, "training") if key in self.section(data, name)), "")
        said = text_of(data[section][key]) if section else "default"
        if said not in keys.RESHARD:
            known = ", ".join(keys.RESHARD)
            self.found("ZP201", ERROR, f"{section}.{key}", f"{printable(said)} is not one of {known}.")
        return keys.RESHARD.get(said, 3)

    def _precision(self, training: Mapping[str, Any]) -> None:
        options = self.reading.options
        stored = word_of(training.get("dtype", "float32"))
        param = word_of(training.get("mixed_precision_param", "bfloat16"))
        for name, kind in (("dtype", stored), ("mixed_precision_param", param)):
            if kind not in ("float32", "bfloat16"):
                self.found("ZP201", ERROR, f"training.{name}", f"{printable(kind)} is not bfloat16 or float32.")
        self.reading.half = "" if param == "float32" else "bf16"
        options["recipe"] = "fsdp-mixed" if param == "bfloat16" else "fp32-adam"
        if stored == "bfloat16":
            options["recipe"] = "pure-bf16"
            if param == "float32":
                self.not_modelled("training.mixed_precision_param", "fp32 products of 16-bit weights are not modelled")
        elif options["framework"] == "ddp" and "local_batch_size" not in training:
            options["recipe"], self.reading.half = "fp32-adam", ""  # autocast only since 2025-06-16

    def _checkpointing(self, section: Mapping[str, Any], training: Mapping[str, Any]) -> None:
        mode = text_of(section.get("mode", "selective"))
        option = text_of(section.get("selective_ac_option", "2"))
        path = "activation_checkpoint.mode"
        if mode == "selective" and not isinstance(section.get("selective_ac_option", "2"), str):
            said = f"{option} is a number; torchtitan takes a text, and stops."
            self.found("ZP201", ERROR, "activation_checkpoint.selective_ac_option", said, f'Write "{option}".')
        if not section and "enable_selective_ac" in training:
            self.not_modelled("training.enable_selective_ac", "selective checkpointing of that version is not modelled")
        elif mode == "full" or (mode == "selective" and option in ("0", "1")):
            self.reading.options["recompute"] = "full"
        elif mode == "selective" and option == "op":
            self.reading.options["recompute"] = "selective"
        elif mode == "selective" and option.isdecimal():
            said = f"checkpoints every block of {option}, the default being 2, which is not modelled"
            self.not_modelled("activation_checkpoint.selective_ac_option" if section else "activation_checkpoint", said)
        elif mode == "memory_budget":
            self.not_modelled(path, "memory_budget is not modelled")
        elif mode == "selective":
            said = f"{printable(option)} is neither op nor a number."
            self.found("ZP201", ERROR, "activation_checkpoint.selective_ac_option", said)
        elif mode != "none":
            said = f"{printable(mode)} is not none, selective, full or memory_budget."
            self.found("ZP201", ERROR, path, said)

    def _compile(self, data: Mapping[str, Any], training: Mapping[str, Any]) -> None:
        section, options = self.section(data, "compile"), self.reading.options
        parts = section.get("components", ["model", "loss"])
        if text_of(section.get("backend", "inductor")) in UNFUSED:
            return
        if self.flag(training, "compile", path="training.compile"):
            options["compiled"] = "all" if keys.PARALLEL in data else "model"
        elif self.flag(section, "enable", path="compile.enable") and isinstance(parts, list) and "model" in parts:
            options["compiled"] = "all" if "loss" in parts else "model"

    def _optimizer(self, section: Mapping[str, Any], recent: bool) -> None:
        if text_of(section.get("name", "AdamW")) not in ("Adam", "AdamW"):
            self.not_modelled("optimizer.name", f"{printable(text_of(section['name']))} is not modelled")
        if self.flag(section, "early_step_in_backward", path="optimizer.early_step_in_backward"):
            self.not_modelled("optimizer.early_step_in_backward")
        default = "fused" if recent or self.flag(section, "fused", path="optimizer.fused") else "foreach"
        kernel = word_of(section.get("implementation", default))
        if kernel not in keys.KERNELS:
            self.found("ZP201", ERROR, "optimizer.implementation", f"{printable(kernel)} is not one of torchtitan's.")
        self.reading.options["optimizer_kernel"] = keys.KERNELS.get(kernel, "fused")

    def _quantised(self, data: Mapping[str, Any]) -> None:
        converters = self.section(data, "model").get("converters", [])
        if converters:
            self.not_modelled("model.converters", "8-bit products are not modelled")
        elif self.flag(self.section(data, "float8"), "enable_float8_linear", path="float8.enable_float8_linear"):
            self.not_modelled("float8.enable_float8_linear", "8-bit products are not modelled")
