"""DeepSpeed's JSON configuration as a plan: what it says, and what is wrong with it.

Read as DeepSpeed 0.19.8 reads it: comments and trailing commas are allowed (hjson), keys of zero_optimization are a
closed set, unknown ones elsewhere are ignored. Source: deepspeedai/DeepSpeed runtime/config.py, runtime/constants.py,
runtime/zero/config.py and offload_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats import deepspeed_keys as keys
from zeroplan.formats.files import read_bytes
from zeroplan.formats.lenient_json import parse_lenient
from zeroplan.formats.reading import AUTO, LARGEST_CONFIG, MOST_KEYS, Reader, Reading, alike, misspelt
from zeroplan.units import format_size


def read_deepspeed(path: str, hidden: int | None = None, precision: str | None = None) -> Reading:
    """A configuration file as a plan; `hidden`: the model's width, of which `auto` sizes are made; `precision`: what a
    launcher says of it: no, fp16 or bf16.

    Raises InputError where it is no JSON object, too large or nested too deeply.
    """
    return deepspeed_text(
        read_bytes(path, LARGEST_CONFIG).decode("utf-8-sig", errors="replace"), path, hidden, precision
    )


def deepspeed_text(
    text: str, path: str, hidden: int | None = None, precision: str | None = None, shown: str | None = None
) -> Reading:
    """The same of a text that stands in the file `path`; `shown`: that file's text, for line numbers."""
    data, twice = parse_lenient(text, path)
    if data and not (keys.KNOWN_TOP | keys.KNOWN_ZERO).intersection(data):
        raise InputError(one_line(path), "has no key of a DeepSpeed configuration.", "Say the format: --from.")
    reader = _Reader(path, shown if shown is not None else text, hidden, precision)
    for key in twice:
        reader.found("ZP203", ERROR, key, "stands twice; DeepSpeed refuses the file.", "Keep one of them.")
    reader.read(data)
    return reader.reading


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
        zero = data.get(keys.ZERO, {})
        if isinstance(zero, bool):
            if zero:
                self.found(
                    "ZP204", WARNING, keys.ZERO, "as true or false is an old form of stage 1.", 'Write {"stage": 1}.'
                )
            zero = {"stage": int(zero)}
        if not isinstance(zero, Mapping):
            self.found("ZP201", ERROR, keys.ZERO, f"{printable(zero)} is not an object.")
            zero = {}
        self._zero(zero)
        for name in ("bf16", "fp16"):
            self._section(data, name, name)
        self._precision(data)
        self._batch(data)
        options = self.reading.options
        options["offload"] = tuple(f"{place}={tier}" for place, tier in self._offload.items())
        options["set"] = tuple(f"{name}={value}" for name, value in self._settings.items())

    def _top(self, data: Mapping[str, Any]) -> None:
        for key in data:
            name = str(key)
            if name in keys.REMOVED_TOP:
                self.found("ZP205", ERROR, name, "was removed from DeepSpeed, which refuses the file.", "Leave it out.")
            elif name in keys.UNMODELLED:
                if _on(data[key]):
                    self.not_modelled(name)
            elif name in keys.KNOWN_ZERO:
                said = f"has no effect at the top level; it belongs in {keys.ZERO}."
                self.found("ZP202", WARNING, name, said, f"Move it into {keys.ZERO}.")
            elif not name.startswith("_") and name not in keys.KNOWN_TOP:
                severity = WARNING if misspelt(name, keys.DECIDING) else NOTE
                self.found("ZP201", severity, name, f"is unknown; DeepSpeed ignores it.{alike(name, keys.KNOWN_TOP)}")
        optimizer = data.get("optimizer")
        kind = optimizer.get("type", keys.ADAMS[0]) if isinstance(optimizer, Mapping) else keys.ADAMS[0]
        if str(kind).lower() not in keys.ADAMS:
            self.not_modelled("optimizer.type")
        checkpoints = data.get("activation_checkpointing")
        for name in ("cpu_checkpointing", "partition_activations"):
            if isinstance(checkpoints, Mapping) and checkpoints.get(name) is True:
                said = "changes activations where the model uses deepspeed.checkpointing, and is not modelled."
                self.found("ZP301", WARNING, f"activation_checkpointing.{name}", said)

    def _section(self, parent: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
        """A section with a closed set of keys; empty where it is none."""
        section = parent.get(name)
        if section is None or section == AUTO:
            return {}
        if not isinstance(section, Mapping):
            self.found("ZP201", ERROR, path, f"{printable(section)} is not an object; DeepSpeed refuses the file.")
            return {}
        for key in list(map(str, section))[:MOST_KEYS]:
            if key not in keys.SECTIONS[name]:
                said = f"is unknown; DeepSpeed refuses the file.{alike(key, keys.SECTIONS[name])}"
                self.found("ZP201", ERROR, f"{path}.{key}", said)
            elif key in keys.NARROW and section[key] is True:
                self.not_modelled(f"{path}.{key}")
        return section

    def _zero(self, zero: Mapping[str, Any]) -> None:
        for key in list(zero)[:MOST_KEYS]:
            self._zero_key(str(key))
        stage = zero.get("stage", 0)
        if stage == AUTO:
            self.reading.options["stage"] = ("0" if self._precision_given is None else "2",)
            said = "is auto: accelerate takes 2, DeepSpeed itself 0."
            self.found("ZP302", NOTE, f"{keys.ZERO}.stage", said, "Say the stage.")
        else:
            known = int(stage) if isinstance(stage, bool) or stage in ("0", "1", "2", "3") else stage
            self.reading.options["stage"] = (str(self._whole({"stage": known}, "stage", 0, most=3)),)
        persistent = zero.get("stage3_param_persistence_threshold", zero.get("param_persistence_threshold", 0))
        if isinstance(persistent, int | float) and persistent > keys.PERSISTENT:
            self.not_modelled(f"{keys.ZERO}.stage3_param_persistence_threshold")
        if _on(zero.get("zenflow")):
            self.not_modelled(f"{keys.ZERO}.zenflow")
        self._places(zero)
        for key, name in keys.NUMBERS.items():
            value = zero.get(key, zero.get(key.removeprefix("stage3_")))
            if value is not None:
                self._number(key, name, value)
        self._prefetch()
        self._twins(zero)
        overlap = zero.get("overlap_comm")
        if isinstance(overlap, bool):
            self._settings["overlap_comm"] = str(overlap).lower()
        self._plus_plus(zero)

    def _prefetch(self) -> None:
        """Warn of a prefetch bucket that alone is as much as may be gathered at once."""
        stage = self.reading.options["stage"][0]
        ahead = int(self._settings.get(keys.PREFETCH, 0))
        alive = int(self._settings.get(keys.MAX_LIVE, keys.DEFAULT_MAX_LIVE))
        if stage == "3" and ahead >= alive > 0:
            said = f"gathers up to {ahead:,} elements in advance, as many as may be gathered at all ({alive:,})"
            mend = "Use less: DeepSpeed's default is 5e7."
            self.found(
                "ZP109", WARNING, f"{keys.ZERO}.{keys.PREFETCH}", f"{said}: {format_size(2 * ahead, 'GB')} GB.", mend
            )

    def _twins(self, zero: Mapping[str, Any]) -> None:
        """A key with and without stage3_, of which DeepSpeed takes one; and sizes below nothing."""
        for name in keys.STAGE3:
            if name in zero and f"stage3_{name}" in zero:
                said = f"stands beside stage3_{name}; DeepSpeed refuses the file."
                self.found("ZP203", ERROR, f"{keys.ZERO}.{name}", said, "Keep one of them.")
        size = zero.get("allgather_bucket_size", 0)
        if isinstance(size, int | float) and size < 0:
            self.found("ZP201", ERROR, f"{keys.ZERO}.allgather_bucket_size", "is below 0; DeepSpeed refuses the file.")

    def _zero_key(self, name: str) -> None:
        path = f"{keys.ZERO}.{name}"
        if name in keys.OLD:
            self.found("ZP204", WARNING, path, f"is deprecated for {keys.OLD[name]}.", f"Use {keys.OLD[name]}.")
        elif name == "cpu_offload_use_pin_memory":
            self.found("ZP204", WARNING, path, "is deprecated and has no effect.", "Use offload_optimizer.pin_memory.")
        elif name in keys.REMOVED_ZERO:
            self.found("ZP205", ERROR, path, "was removed from DeepSpeed, which refuses the file.", "Leave it out.")
        elif name in keys.TOP_ONLY:
            self.found("ZP202", ERROR, path, "belongs at the top level; DeepSpeed refuses it here.", "Move it there.")
        elif name not in keys.KNOWN_ZERO:
            meant = f" Did you mean {keys.MEANT[name]}?" if name in keys.MEANT else alike(name, keys.KNOWN_ZERO)
            self.found("ZP201", ERROR, path, f"is unknown; DeepSpeed refuses the file.{meant}")

    def _places(self, zero: Mapping[str, Any]) -> None:
        if zero.get("cpu_offload") is True:
            self._offload["optimizer"] = "cpu"
        if zero.get("cpu_offload_param") is True:
            self._offload["params"] = "cpu"
        for key, place in (("offload_optimizer", "optimizer"), ("offload_param", "params")):
            section = self._section(zero, key, f"{keys.ZERO}.{key}")
            if section and zero.get(f"cpu_{'offload' if place == 'optimizer' else 'offload_param'}") is not None:
                self.found("ZP201", ERROR, f"{keys.ZERO}.{key}", "stands beside its old form; DeepSpeed refuses both.")
            self._device(f"{keys.ZERO}.{key}.device", place, str(section.get("device", "none")), section)
            ratio = section.get("ratio", 1)
            if not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
                self.found("ZP201", ERROR, f"{keys.ZERO}.{key}.ratio", f"{printable(ratio)} is not from 0 to 1.")
            elif ratio != 1 or section.get("super_offload") is True:
                self.not_modelled(f"{keys.ZERO}.{key}.{'ratio' if ratio != 1 else 'super_offload'}")
        stage = self.reading.options["stage"][0]
        if "params" in self._offload and stage != "3":
            said = f"does nothing at stage {stage}: weights are divided at stage 3 alone."
            self.found("ZP206", WARNING, f"{keys.ZERO}.offload_param", said, "Use stage 3, or leave it out.")
            del self._offload["params"]

    def _device(self, path: str, place: str, device: str, section: Mapping[str, Any]) -> None:
        if device in ("cpu", "nvme"):
            self._offload[place] = device
        elif device not in ("none", AUTO):
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
        path = f"{keys.ZERO}.{key}"
        if value == AUTO:
            self._auto(path, name)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18 or value % 1:
            self.found("ZP201", ERROR, path, f"{printable(value)} is not a number of elements.")
        elif value == 0 and name == "reduce_bucket_size":
            self.found("ZP201", ERROR, path, "0 is refused by DeepSpeed; the least is 1.")
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
        half = {"bf16": True in enabled[:2], "fp16": enabled[2] is True}
        open_still = AUTO in enabled or not {"bf16", "bfloat16", "fp16"} & set(data)
        given = self._precision_given if open_still and self._precision_given in half else ""
        self.reading.half = next((name for name, on in half.items() if on), given or "")
        if "bfloat16" in data:
            self.found("ZP204", WARNING, "bfloat16", "is the old name of bf16.", "Use bf16.")
        types = data.get("data_types")
        wide = isinstance(types, Mapping) and str(types.get("grad_accum_dtype", "")).lower() in ("fp32", "float32")
        if enabled[2] is True and True in enabled[:2]:
            self.found("ZP201", ERROR, "fp16", "and bf16 are both on; DeepSpeed stops.", "Keep one.")
        narrow = "deepspeed-fp32-accum" if wide else "deepspeed-16bit"
        if True in enabled or (
            self._precision_given in ("bf16", "fp16") and (AUTO in enabled or not {"bf16", "fp16"} & set(data))
        ):
            self.reading.options["recipe"] = narrow
        elif AUTO in enabled and self._precision_given is None:
            said = "auto follows from the launcher's mixed_precision; 16 bits are taken."
            self.found("ZP302", NOTE, "bf16" if "bf16" in data else "fp16", said, "Say true or false.")
            self.reading.options["recipe"] = narrow
        else:
            self.reading.options["recipe"] = "fp32-adam"

    def _batch(self, data: Mapping[str, Any]) -> None:
        found = {}
        for key, option in {**keys.BATCH, "train_batch_size": "train_batch"}.items():
            value = data.get(key)
            if value == AUTO and option != "train_batch":
                mend = f"Give --{option.replace('_', '-')}."
                self.found("ZP302", NOTE, key, "is auto: the launcher says it; 1 is taken.", mend)
            elif value is not None and value != AUTO:
                found[option] = self._whole(data, key, 1, least=1, most=10**9)
        self.reading.train_batch = found.pop("train_batch", None)
        self.reading.options.update({option: str(value) for option, value in found.items()})
        self.reading.derives_batch = AUTO not in (data.get(key) for key in (*keys.BATCH, "train_batch_size"))
        sizes = self.reading.train_batch or found.get("micro_batch")
        if self.reading.derives_batch and not sizes and self._precision_given is None:
            said = "and train_micro_batch_size_per_gpu are both missing; DeepSpeed itself stops."
            self.found("ZP207", NOTE, "train_batch_size", said, "Say one of them.")

    def _whole(self, section: Mapping[str, Any], key: str, default: int, least: int = 0, most: int = 10**6) -> int:
        value = section.get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.found("ZP201", ERROR, key, f"{printable(value)} is not a whole number from {least} to {most}.")
            return default
        return value


def _enabled(section: object) -> object:
    """true, false or auto."""
    value = section.get("enabled", False) if isinstance(section, Mapping) else False
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


def _on(value: object) -> bool:
    """Whether a section or a degree of parallelism does anything."""
    if isinstance(value, Mapping):
        sizes = [size for name, size in value.items() if str(name).endswith("size")]
        return value.get("enabled") is not False and (not sizes or any(size != 1 for size in sizes)) and bool(value)
    return value not in (None, False, 0, 1)
