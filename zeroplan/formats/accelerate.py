"""Hugging Face accelerate's configuration as a plan: what it says, and what is wrong with it.

Read as accelerate 1.15 reads it: huggingface/accelerate commands/config/config_args.py, commands/launch.py,
utils/launch.py, utils/dataclasses.py, parallelism_config.py. Scalars are read as text, so that no tag of YAML makes
anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.accelerate_keys import (
    DEEPSPEED,
    FSDP,
    KNOWN_DEEPSPEED,
    KNOWN_FSDP,
    KNOWN_PARALLEL,
    KNOWN_TOP,
    PARALLEL,
    REFUSED_BESIDE_FILE,
    STAGES,
    STRATEGIES,
    UNMODELLED,
    fsdp2_settings,
)
from zeroplan.formats.deepspeed import read_deepspeed
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import AUTO, NO, UNFUSED, YES, Reader, Reading, alike, text_of, word_of
from zeroplan.formats.yaml_mapping import LARGEST_YAML, mapping

UNQUOTED_NO = re.compile(r"mixed_precision:[ \t]*(no|No|NO|off|Off|OFF|false|False|FALSE)[ \t]*(#.*)?$")


def read_accelerate(path: str, hidden: int | None = None) -> Reading:
    """A configuration file as a plan; `hidden`: the model's width, of which `auto` sizes are made.

    Raises InputError where it is no mapping, too large or nested too deeply, or refers to a file that is not there or
    not in its own folder.
    """
    text = read_bytes(path, LARGEST_YAML).decode("utf-8-sig", errors="replace")
    return _Reader(path, text, hidden).read(mapping(text, path))


class _Reader(Reader):
    """Goes through one file once, section by section."""

    def __init__(self, path: str, text: str, hidden: int | None) -> None:
        super().__init__(path, text, "accelerate", "ddp")
        self._hidden = hidden

    def read(self, data: Mapping[str, Any]) -> Reading:
        for key in map(str, data):
            if key not in KNOWN_TOP:
                said = f"is unknown; accelerate refuses the file.{alike(key, KNOWN_TOP)}"
                self.found("ZP201", ERROR, key, said)
        options = self.reading.options
        precision = self._precision(data)
        self.reading.half = precision if precision in ("bf16", "fp16") else ""
        self.reading.quiet = True
        if "num_processes" in data:
            options["gpus"] = str(self.whole(data, "num_processes", 1, least=1))
        kind = text_of(data.get("distributed_type", ""))
        if word_of(data.get("use_cpu", "no")) in YES:
            self.not_modelled("use_cpu", "training on CPUs is not modelled")
        if kind == "DEEPSPEED":
            self._deepspeed(self.section(data, DEEPSPEED), data, precision)
        elif kind == "FSDP":
            self._fsdp(self.section(data, FSDP), data)
            options["recipe"] = "fp32-adam" if precision == "no" else "fsdp-mixed"
            if options["framework"] == "fsdp2":
                options["set"] = fsdp2_settings(precision != "no")
        elif kind in ("MULTI_GPU", "NO"):
            options.update(stage=("0",), recipe="fp32-adam" if precision == "no" else "fsdp-mixed")
            options.update({"gpus": "1"} if kind == "NO" else {})
        elif kind.upper() in ("DEEPSPEED", "FSDP", "MULTI_GPU", "NO"):
            said = f"{printable(kind)} is refused by accelerate: names are in capitals."
            self.found("ZP201", ERROR, "distributed_type", said, f"Write {kind.upper()}.")
            self.reading.unmodelled = True
        elif kind:
            self.not_modelled("distributed_type", f"{printable(kind)} is not modelled")
        else:
            self.found("ZP201", ERROR, "distributed_type", "is missing; accelerate refuses the file.")
            self.reading.unmodelled = True
        self._parallel(self.section(data, PARALLEL))
        dynamo = self.section(data, "dynamo_config").get("dynamo_backend", data.get("dynamo_backend"))
        if word_of(dynamo) not in (*NO, *UNFUSED):
            options["compiled"] = "model"
        return self.reading

    def _precision(self, data: Mapping[str, Any]) -> str:
        precision = word_of(data.get("mixed_precision", "no"))
        if "mixed_precision" not in data and word_of(data.get("fp16", "no")) in YES:
            precision = "fp16"
        if any(UNQUOTED_NO.match(line) for line in self.lines):
            said = "unquoted, is false in YAML, at which accelerate 1.15 stops."
            self.found("ZP201", ERROR, "mixed_precision", said, "Write 'no' in quotes, or leave it out.")
        if precision in NO:
            return "no"
        if precision == "fp8":
            self.not_modelled("mixed_precision", "fp8 is not modelled")
        elif precision not in ("bf16", "fp16"):
            self.found("ZP201", ERROR, "mixed_precision", f"{printable(precision)} is not no, fp16, bf16 or fp8.")
        return precision

    def _deepspeed(self, section: Mapping[str, Any], data: Mapping[str, Any], precision: str) -> None:
        for key in map(str, section):
            if key not in KNOWN_DEEPSPEED:
                said = f"is unknown; accelerate ignores it.{alike(key, KNOWN_DEEPSPEED)}"
                self.found("ZP201", NOTE, f"{DEEPSPEED}.{key}", said)
        if word_of(section.get("deepspeed_config_file", "null")) not in NO:
            self._referenced(section, data, precision)
            return
        stage = self.whole(section, "zero_stage", 2, most=3)
        offload = []
        for key, place in (("offload_optimizer_device", "optimizer"), ("offload_param_device", "params")):
            tier = word_of(section.get(key, "none"))
            tier = "none" if tier in NO else tier
            if tier == "nvme" and f"{key.removesuffix('_device')}_nvme_path" not in section:
                said = "nvme without its path: accelerate takes a folder called none."
                self.found("ZP201", ERROR, f"{DEEPSPEED}.{key}", said, "Say the nvme_path.")
            if tier not in ("none", "cpu", "nvme"):
                self.found("ZP201", ERROR, f"{DEEPSPEED}.{key}", f"{printable(tier)} is not none, cpu or nvme.")
            elif tier != "none" and place == "params" and stage != 3:
                said = f"does nothing at stage {stage}: weights are divided at stage 3 alone."
                self.found("ZP206", WARNING, f"{DEEPSPEED}.{key}", said, "Use stage 3, or leave it out.")
            elif tier != "none":
                offload.append(f"{place}={tier}")
        options = self.reading.options
        options.update(framework="deepspeed", stage=(str(stage),), offload=tuple(offload))
        options["recipe"] = "fp32-adam" if precision == "no" else "deepspeed-16bit"
        if word_of(section.get("gradient_accumulation_steps", "1")) != AUTO:
            options["grad_accum"] = str(self.whole(section, "gradient_accumulation_steps", 1, least=1))

    def _referenced(self, section: Mapping[str, Any], data: Mapping[str, Any], precision: str) -> None:
        """The plan of the DeepSpeed file that it refers to, beside it or below."""
        for key in REFUSED_BESIDE_FILE:
            if key in section:
                said = "is refused by accelerate beside deepspeed_config_file."
                self.found("ZP210", ERROR, f"{DEEPSPEED}.{key}", said, "Say it in the DeepSpeed file.")
        if "mixed_precision" in data and word_of(data["mixed_precision"]) not in ("null", "~", ""):
            said = "is refused by accelerate 1.15 beside deepspeed_config_file."
            self.found("ZP210", ERROR, "mixed_precision", said, "Say it in the DeepSpeed file, or --mixed_precision.")
        folder, name = Path(self.reading.path).parent, text_of(section["deepspeed_config_file"])
        try:
            inside = (folder / name).resolve().is_relative_to(folder.resolve())
        except (OSError, ValueError, RuntimeError) as error:  # a null byte, or links in a circle
            raise InputError(
                one_line(self.reading.path), f"deepspeed_config_file: {printable(name)} is no path."
            ) from error
        if not inside:
            said = f"deepspeed_config_file: {printable(name)} is not in the file's folder."
            raise InputError(one_line(self.reading.path), said, "Check that file by itself.")
        told = precision if "mixed_precision" in data else None  # else the code says it
        found = read_deepspeed(str(folder / name), self._hidden, told)
        self.reading.findings += found.findings
        self.reading.options.update(found.options)
        self.reading.train_batch, self.reading.unmodelled = found.train_batch, found.unmodelled
        self.reading.half = found.half

    def _fsdp(self, section: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        section = {key if key.startswith("fsdp_") else f"fsdp_{key}": value for key, value in section.items()}
        for key in section:
            if key not in KNOWN_FSDP:
                said = f"is unknown; accelerate ignores it.{alike(key, KNOWN_FSDP)}"
                self.found("ZP201", NOTE, f"{FSDP}.{key}", said)
        options = self.reading.options
        version = self.whole(section, "fsdp_version", 1, least=1, most=2)
        options["framework"] = f"fsdp{version}"
        stage = self._resharding(section) if version == 2 else self._strategy(section, data)
        options["stage"] = (str(stage),)
        checkpoints = self.flag(section, "fsdp_activation_checkpointing")
        if checkpoints:
            options["recompute"] = "full"
        offload = ["params=cpu"] if self.flag(section, "fsdp_offload_params") else []
        if checkpoints and self.flag(section, "fsdp_activation_checkpointing_offload"):
            offload += ["activations=cpu"] if version == 2 else []
            if version == 1:
                key = f"{FSDP}.fsdp_activation_checkpointing_offload"
                self.found("ZP201", ERROR, key, "needs fsdp_version 2; accelerate stops.", "Leave it out.")
        syncs = self.flag(section, "fsdp_sync_module_states", default=True)
        if self.flag(section, "fsdp_cpu_ram_efficient_loading", default=True) and not syncs:
            said = "false needs fsdp_cpu_ram_efficient_loading: false; accelerate stops."
            self.found("ZP201", ERROR, f"{FSDP}.fsdp_sync_module_states", said, "Leave it out.")
        options["offload"] = tuple(offload)
        if version == 2 and text_of(section.get("fsdp_state_dict_type", "")) == "LOCAL_STATE_DICT":
            said = "LOCAL_STATE_DICT is refused at version 2."
            self.found("ZP201", ERROR, f"{FSDP}.fsdp_state_dict_type", said, "Use SHARDED_STATE_DICT.")
        if word_of(section.get("fsdp_ignored_modules")) not in NO:
            self.not_modelled(f"{FSDP}.fsdp_ignored_modules", "modules that are not sharded are not modelled")
        policy = word_of(section.get("fsdp_auto_wrap_policy", "no_wrap"))
        if policy == "no_wrap":
            said = "without a policy, or with NO_WRAP, the whole model is one unit, which is not modelled"
            self.not_modelled(f"{FSDP}.fsdp_auto_wrap_policy", said)
        elif policy == "size_based_wrap":
            said = "units are taken to be blocks; those of SIZE_BASED_WRAP are of other sizes."
            self.found("ZP301", WARNING, f"{FSDP}.fsdp_auto_wrap_policy", said)

    def _resharding(self, section: Mapping[str, Any]) -> int:
        """The stage that FSDP2 is like."""
        if "fsdp_sharding_strategy" in section:
            said = "has no effect at fsdp_version 2."
            self.found("ZP206", NOTE, f"{FSDP}.fsdp_sharding_strategy", said, "Use fsdp_reshard_after_forward.")
        return 3 if self.flag(section, "fsdp_reshard_after_forward", default=True) else 2

    def _strategy(self, section: Mapping[str, Any], data: Mapping[str, Any]) -> int:
        """The stage that FSDP1's sharding strategy is like; a hybrid one divides over a node."""
        said = text_of(section.get("fsdp_sharding_strategy", STRATEGIES[0])).upper()
        if re.fullmatch("[1-5]", said):
            said = STRATEGIES[int(said) - 1]
        if said not in STAGES:
            what = f"{printable(said)} is not one of {', '.join(STRATEGIES)}."
            self.found("ZP201", ERROR, f"{FSDP}.fsdp_sharding_strategy", what)
            said = STRATEGIES[0]
        meant = text_of(section.get("fsdp_reshard_after_forward", said)).upper()
        if meant != said and "fsdp_sharding_strategy" not in section:
            what = f"{printable(meant)} has no effect: at fsdp_version 1 accelerate 1.15 launches FULL_SHARD."
            mend = f"Write fsdp_sharding_strategy: {meant}." if meant in STAGES else "Use fsdp_sharding_strategy."
            self.found("ZP206", WARNING, f"{FSDP}.fsdp_reshard_after_forward", what, mend)
        gpus = int(self.reading.options.get("gpus", 0))
        group = gpus // self.whole(data, "num_machines", 1, least=1)
        if said.startswith("HYBRID") and 1 < group < gpus:
            self.reading.options["shard_group"] = str(group)
        return STAGES[said]

    def _parallel(self, section: Mapping[str, Any]) -> None:
        for key in section:
            if key not in KNOWN_PARALLEL:
                said = f"is unknown; accelerate ignores it.{alike(f'{PARALLEL}_{key}', KNOWN_PARALLEL)}"
                self.found("ZP201", WARNING, f"{PARALLEL}.{key}", said)
        ways = ("dp_replicate", "dp_shard", *UNMODELLED)
        sizes = {way: self.whole(section, f"{PARALLEL}_{way}_size", 1, least=1) for way in ways}
        for way in UNMODELLED:
            if sizes[way] > 1:
                self.not_modelled(f"{PARALLEL}.{PARALLEL}_{way}_size", "is not modelled")
        total, gpus = prod(sizes.values()), self.reading.options.get("gpus")
        if total > 1 and gpus is not None and int(gpus) != total:
            said = f"the sizes multiply to {total}, and num_processes is {gpus}."
            self.found("ZP209", ERROR, PARALLEL, said, "Make them the same.")
        if total > 1 and self.reading.options["framework"] == "fsdp1":
            self.found("ZP201", ERROR, PARALLEL, "needs fsdp_version 2; accelerate stops.", "Say fsdp_version: 2.")
        if sizes["dp_replicate"] > 1 and sizes["dp_shard"] > 1:
            self.reading.options["shard_group"] = str(sizes["dp_shard"])
        elif sizes["dp_replicate"] > 1 and self.reading.options["framework"] != "ddp":
            said = "leaves FSDP nothing to divide over; accelerate stops."
            self.found("ZP201", ERROR, f"{PARALLEL}.{PARALLEL}_dp_replicate_size", said, "Say the dp_shard_size.")
