"""DeepSpeed's JSON configuration as a plan: what it says, and what is wrong with it.

Read as DeepSpeed 0.19.8 reads it: comments and trailing commas are allowed (hjson), keys of zero_optimization are a
closed set, unknown ones elsewhere are ignored. Source: deepspeedai/DeepSpeed runtime/config.py, runtime/constants.py,
runtime/zero/config.py and offload_config.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING, Finding, Place
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import AUTO, LARGEST_CONFIG, Reader, Reading, alike, check_depth

ZERO = "zero_optimization"
NUMBERS = {
    "reduce_bucket_size": "reduce_bucket_size",
    "sub_group_size": "sub_group_size",
    "stage3_max_live_parameters": "stage3_max_live_parameters",
    "stage3_max_reuse_distance": "stage3_max_reuse_distance",
    "stage3_prefetch_bucket_size": "stage3_prefetch_bucket_size",
}
"""The keys of zero_optimization that are settings of the framework `deepspeed`."""
BATCH = {"train_micro_batch_size_per_gpu": "micro_batch", "gradient_accumulation_steps": "grad_accum"}
STAGE3 = (
    *("prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold", "max_live_parameters"),
    *("max_reuse_distance", "gather_16bit_weights_on_model_save", "module_granularity_threshold"),
    *("use_all_reduce_for_fetch_params", "allgather_sequential"),
)
"""Keys that stand with and without `stage3_`."""
KNOWN_ZERO = frozenset(
    (
        *("stage", "contiguous_gradients", "reduce_scatter", "reduce_bucket_size", "use_multi_rank_bucket_allreduce"),
        *("allgather_partitions", "allgather_bucket_size", "overlap_comm", "compute_grad_norm"),
        *("load_from_fp32_weights", "elastic_checkpoint", "offload_param", "offload_optimizer", "zenflow"),
        *("sub_group_size", "ignore_unused_parameters", "legacy_stage1", "round_robin_gradients"),
        *("parameter_alignment", "zero_hpz_partition_size", "zero_quantized_weights"),
        *("zero_quantized_nontrainable_weights", "zero_quantized_gradients", "memory_efficient_linear"),
        *("pipeline_loading_checkpoint", "override_module_apply", "log_trace_cache_warnings"),
        *("enable_sanity_checks", "save_muon_momentum_buffer_in_memory", "leaf_module"),
        *("cpu_offload_param", "cpu_offload_use_pin_memory", "cpu_offload"),
        "stage3_gather_fp16_weights_on_model_save",
        *STAGE3,
        *(f"stage3_{name}" for name in STAGE3),
    )
)
REMOVED_ZERO = ("mics_shard_size", "mics_hierarchical_params_gather", "zeropp_loco_param")
OLD = {
    "cpu_offload": "offload_optimizer",
    "cpu_offload_param": "offload_param",
    "stage3_gather_fp16_weights_on_model_save": "stage3_gather_16bit_weights_on_model_save",
}
TOP_ONLY = (
    *("aio", "bf16", "fp16", "bfloat16", "activation_checkpointing"),
    *("gradient_clipping", "optimizer", "scheduler"),
)
"""Sections that work at the top level alone."""
MEANT = {"cpu_offload_params": "cpu_offload_param, today offload_param"}
KNOWN_TOP = frozenset(
    (
        *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "optimizer"),
        *("scheduler", "bf16", "bfloat16", "fp16", "amp", "torch_autocast", "data_types", ZERO),
        *("communication_data_type", "seq_parallel_communication_data_type", "prescale_gradients"),
        *("gradient_predivide_factor", "gradient_clipping", "gradient_allreduce_op", "steps_per_print"),
        *("zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "wall_clock_breakdown", "dump_state"),
        *("disable_allgather", "disable_python_gc", "checkpoint", "aio", "activation_checkpointing"),
        *("flops_profiler", "comms_logger", "tensorboard", "wandb", "csv_monitor", "comet", "monitor_config"),
        *("data_efficiency", "compression_training", "tensor_parallel", "autotp_size", "pipeline"),
        *("dataloader_drop_last", "memory_breakdown", "nebula", "hybrid_engine", "managed_gradient_accumulation"),
        *("use_data_before_expert_parallelism", "check_overflow", "log_level", "data_parallel_group"),
        *("sequence_parallel_size", "compile", "autotuning", "timers", "weight_quantization", "expert_parallel"),
        *("allgather_size", "checkpoint_tag_validation"),
    )
)
UNMODELLED = ("tensor_parallel", "pipeline", "sequence_parallel_size", "expert_parallel", "compression_training", "amp")
"""Top-level keys that change memory or traffic and that zeroplan does not model."""


def read_deepspeed(path: str, hidden: int | None = None, precision: str | None = None) -> Reading:
    """A configuration file as a plan; `hidden`: the model's width, of which `auto` sizes are made; `precision`: what a
    launcher says of it: no, fp16 or bf16.

    Raises InputError where it is no JSON object, too large or nested too deeply.
    """
    raw = read_bytes(path, LARGEST_CONFIG)
    text = raw.decode("utf-8", errors="replace")
    reader = _Reader(path, text, hidden, precision)
    reader.read(_parsed(text, path, reader))
    return reader.reading


def _parsed(text: str, path: str, reader: _Reader) -> Mapping[str, Any]:
    twice: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in found:
            if key in seen:
                twice.append(key)
            seen[key] = value
        return seen

    if not text.strip():
        raise InputError(one_line(path), "is empty.")
    check_depth(text, path)
    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        twice.clear()
        data = _human(text, path, pairs)
    if not isinstance(data, Mapping):
        raise InputError(one_line(path), "is not a JSON object.")
    if data and not (KNOWN_TOP | KNOWN_ZERO).intersection(data):
        raise InputError(one_line(path), "has no key of a DeepSpeed configuration.", "Other formats are not read yet.")
    for key in twice:
        reader.found("ZP203", ERROR, key, "stands twice; DeepSpeed refuses the file.", "Keep one of them.")
    return data


def _human(text: str, path: str, pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> object:
    """JSON with comments, trailing commas and bare keys."""
    import hjson

    try:
        return hjson.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError, IndexError) as error:  # IndexError: hjson, at some broken ends
        raise InputError(one_line(path), f"is not JSON: {printable(str(error), 100)}.") from error


class _Reader(Reader):
    """Goes through one file once, section by section."""

    def __init__(self, path: str, text: str, hidden: int | None, precision: str | None) -> None:
        super().__init__(path, text, "deepspeed", "deepspeed")
        self._hidden = hidden
        self._precision_given = precision
        self._offload: dict[str, str] = {}
        self._settings: dict[str, str] = {}

    def read(self, data: Mapping[str, Any]) -> None:
        self._top(data)
        zero = data.get(ZERO, {})
        if isinstance(zero, bool):
            if zero:
                self.found("ZP204", WARNING, ZERO, "as true or false is an old form of stage 1.", 'Write {"stage": 1}.')
            zero = {"stage": int(zero)}
        if not isinstance(zero, Mapping):
            self.found("ZP201", ERROR, ZERO, f"{printable(zero)} is not an object.")
            zero = {}
        self._zero(zero)
        self._precision(data)
        self._batch(data)
        options = self.reading.options
        options["offload"] = tuple(f"{place}={tier}" for place, tier in self._offload.items())
        options["set"] = tuple(f"{name}={value}" for name, value in self._settings.items())

    def _top(self, data: Mapping[str, Any]) -> None:
        for key in data:
            name = str(key)
            if name.startswith("_") or name in KNOWN_TOP:
                if name in UNMODELLED and data[key] not in (None, False, {}, 1):
                    self.found("ZP301", WARNING, name, "is not modelled; whether it fits is not judged.")
                    self.reading.unmodelled = True
            elif name in KNOWN_ZERO:
                said = f"has no effect at the top level; it belongs in {ZERO}."
                self.found("ZP202", WARNING, name, said, f"Move it into {ZERO}.")
            else:
                self.found("ZP201", NOTE, name, f"is unknown; DeepSpeed ignores it.{alike(name, KNOWN_TOP)}")

    def _zero(self, zero: Mapping[str, Any]) -> None:
        for key in zero:
            self._zero_key(str(key))
        self.reading.options["stage"] = (str(self._whole(zero, "stage", 0, most=3)),)
        self._places(zero)
        for key, name in NUMBERS.items():
            value = zero.get(key, zero.get(key.removeprefix("stage3_")))
            if value is not None:
                self._number(key, name, value)
        overlap = zero.get("overlap_comm")
        if isinstance(overlap, bool):
            self._settings["overlap_comm"] = str(overlap).lower()
        self._plus_plus(zero)

    def _zero_key(self, name: str) -> None:
        path = f"{ZERO}.{name}"
        if name in OLD:
            self.found("ZP204", WARNING, path, f"is deprecated for {OLD[name]}.", f"Use {OLD[name]}.")
        elif name == "cpu_offload_use_pin_memory":
            self.found("ZP204", WARNING, path, "is deprecated and has no effect.", "Use offload_optimizer.pin_memory.")
        elif name in REMOVED_ZERO:
            self.found("ZP205", ERROR, path, "was removed from DeepSpeed, which refuses the file.", "Leave it out.")
        elif name in TOP_ONLY:
            self.found("ZP202", ERROR, path, "belongs at the top level; DeepSpeed refuses it here.", "Move it there.")
        elif not name.startswith("_") and name not in KNOWN_ZERO:
            meant = f" Did you mean {MEANT[name]}?" if name in MEANT else alike(name, KNOWN_ZERO)
            self.found("ZP201", ERROR, path, f"is unknown; DeepSpeed refuses the file.{meant}")

    def _places(self, zero: Mapping[str, Any]) -> None:
        if zero.get("cpu_offload") is True:
            self._offload["optimizer"] = "cpu"
        if zero.get("cpu_offload_param") is True:
            self._offload["params"] = "cpu"
        for key, place in (("offload_optimizer", "optimizer"), ("offload_param", "params")):
            section = zero.get(key)
            if isinstance(section, Mapping):
                device = str(section.get("device", "none")).lower()
                self._device(f"{ZERO}.{key}.device", place, device, section)
        stage = self.reading.options["stage"][0]
        if "params" in self._offload and stage != "3":
            said = f"does nothing at stage {stage}: weights are divided at stage 3 alone."
            self.found("ZP206", WARNING, f"{ZERO}.offload_param", said, "Use stage 3, or leave it out.")
            del self._offload["params"]

    def _device(self, path: str, place: str, device: str, section: Mapping[str, Any]) -> None:
        if device in ("cpu", "nvme"):
            self._offload[place] = device
        elif device != "none":
            self.found("ZP201", ERROR, path, f"{printable(device)} is not none, cpu or nvme.")
        if device == "nvme" and not section.get("nvme_path"):
            self.found("ZP201", ERROR, path, "nvme needs nvme_path.", "Add nvme_path.")
        if place == "params" and device == "nvme":
            for key in ("buffer_size", "max_in_cpu"):
                if key in section:
                    self._number(f"offload_param.{key}", key, section[key])

    def _plus_plus(self, zero: Mapping[str, Any]) -> None:
        group = zero.get("zero_hpz_partition_size", 1)
        if isinstance(group, int) and not isinstance(group, bool) and group > 1:
            self.reading.options["hpz"] = str(group)
        quantized = {"weights": "zero_quantized_weights", "gradients": "zero_quantized_gradients"}
        self.reading.options["quantize"] = tuple(name for name, key in quantized.items() if zero.get(key) is True)

    def _number(self, key: str, name: str, value: object) -> None:
        path = f"{ZERO}.{key}"
        if value == AUTO:
            self._auto(path, name)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
            self.found("ZP201", ERROR, path, f"{printable(value)} is not a number of elements.")
        else:
            self._settings[name] = str(int(value))

    def _auto(self, path: str, name: str) -> None:
        """What the Trainer and accelerate fill in: hidden^2 and nine tenths of it."""
        sizes = {"reduce_bucket_size": (10, 10), "stage3_prefetch_bucket_size": (9, 10)}
        if name in sizes and self._hidden:
            part, of = sizes[name]
            self._settings[name] = str(self._hidden**2 * part // of)
        else:
            said = "is auto, which follows from the model's width; DeepSpeed's default is taken."
            self.found("ZP302", NOTE, path, said, "Give --model.")

    def _precision(self, data: Mapping[str, Any]) -> None:
        enabled = [_enabled(data.get(name)) for name in ("bf16", "bfloat16", "fp16")]
        if "bfloat16" in data:
            self.found("ZP204", WARNING, "bfloat16", "is the old name of bf16.", "Use bf16.")
        types = data.get("data_types")
        wide = isinstance(types, Mapping) and str(types.get("grad_accum_dtype", "")).lower() in ("fp32", "float32")
        if True in enabled:
            self.reading.options["recipe"] = "deepspeed-fp32-accum" if wide else "deepspeed-16bit"
        elif self._precision_given in ("bf16", "fp16") and (AUTO in enabled or not {"bf16", "fp16"} & set(data)):
            self.reading.options["recipe"] = "deepspeed-16bit"
        elif AUTO in enabled and self._precision_given is None:
            said = "auto follows from the launcher's mixed_precision; 16 bits are taken."
            self.found("ZP302", NOTE, "bf16" if "bf16" in data else "fp16", said, "Say true or false.")
            self.reading.options["recipe"] = "deepspeed-16bit"
        else:
            self.reading.options["recipe"] = "fp32-adam"

    def _batch(self, data: Mapping[str, Any]) -> None:
        for key, option in BATCH.items():
            value = data.get(key)
            if value == AUTO:
                mend = f"Give --{option.replace('_', '-')}."
                self.found("ZP302", NOTE, key, "is auto: the launcher says it; 1 is taken.", mend)
            elif value is not None:
                self.reading.options[option] = str(self._whole(data, key, 1, least=1))
        total = data.get("train_batch_size")
        if isinstance(total, int) and not isinstance(total, bool):
            self.reading.train_batch = total

    def _whole(self, section: Mapping[str, Any], key: str, default: int, least: int = 0, most: int = 10**6) -> int:
        value = section.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.found("ZP201", ERROR, key, f"{printable(value)} is not a whole number from {least} to {most}.")
            return default
        return value


def _enabled(section: object) -> object:
    """true, false or auto."""
    return section.get("enabled", False) if isinstance(section, Mapping) else False


def batch_findings(reading: Reading, gpus: int) -> Iterator[Finding]:
    """Whether train_batch = micro_batch * accumulation * ranks."""
    micro, accum = reading.options.get("micro_batch"), reading.options.get("grad_accum")
    if reading.train_batch is None or micro is None or accum is None:
        return
    product = int(micro) * int(accum) * gpus
    if product != reading.train_batch:
        place = Place(one_line(reading.path), "train_batch_size")
        said = f"is {reading.train_batch}, and {micro} x {accum} x {gpus} ranks are {product}; DeepSpeed stops."
        yield Finding("ZP207", ERROR, place, said, f"Say {product}, or leave one of the three out.")
