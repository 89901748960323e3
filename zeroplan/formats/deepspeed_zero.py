"""The section zero_optimization of DeepSpeed's JSON configuration.

As of DeepSpeed 0.19.8: runtime/zero/config.py and offload_config.py. Its keys are a closed set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING
from zeroplan.errors import printable
from zeroplan.formats import deepspeed_keys as keys
from zeroplan.formats.reading import AUTO, MOST_KEYS, YES, Reader, alike, word_of
from zeroplan.units import format_size


class ZeroReader(Reader):
    """Reads the section, and others with a closed set of keys."""

    def __init__(self, path: str, text: str, hidden: int | None, precision: str | None) -> None:
        super().__init__(path, text, "deepspeed", "deepspeed")
        self._hidden = hidden
        self._precision_given = precision
        self._offload: dict[str, str] = {}
        self._settings: dict[str, str] = {}

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
            elif key in keys.NARROW and word_of(section[key]) in YES:
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
            self.reading.options["stage"] = (str(self.whole({"stage": known}, "stage", 0, most=3)),)
        persistent = zero.get("stage3_param_persistence_threshold", zero.get("param_persistence_threshold", 0))
        if isinstance(persistent, int | float) and persistent > keys.PERSISTENT:
            self.not_modelled(f"{keys.ZERO}.stage3_param_persistence_threshold")
        if is_on(zero.get("zenflow")):
            self.not_modelled(f"{keys.ZERO}.zenflow")
        self._places(zero)
        for key, name in keys.NUMBERS.items():
            value = zero.get(key, zero.get(key.removeprefix("stage3_")))
            if value is not None:
                self._number(key, name, value)
        self._prefetch()
        self._twins(zero)
        if zero.get("overlap_comm") is not None:
            self._settings["overlap_comm"] = str(word_of(zero["overlap_comm"]) in YES).lower()
        for key, at in keys.TRAFFIC.items():
            plain = key != "reduce_scatter" or stage in (3, "3")
            if zero.get(key) is not None and (word_of(zero[key]) in YES) is at and plain:
                said = "changes collectives or their buffers, and is not modelled."
                self.found("ZP301", WARNING, f"{keys.ZERO}.{key}", said)
        self._plus_plus(zero)

    def _prefetch(self) -> None:
        """Warn of a prefetch bucket that alone is as much as may be gathered at once."""
        stage = self.reading.options["stage"][0]
        ahead = int(self._settings.get(keys.PREFETCH, 0))
        alive = int(self._settings.get(keys.MAX_LIVE, keys.DEFAULT_MAX_LIVE))
        if stage == "3" and ahead >= alive > 0:
            said = f"gathers up to {ahead:,} elements in advance, as many as may be gathered at all ({alive:,})"
            mend = "Use less: DeepSpeed's default is 5e7."
            said = f"{said}: {format_size(2 * ahead, 'GB')} GB in 16 bits."
            self.found("ZP109", WARNING, f"{keys.ZERO}.{keys.PREFETCH}", said, mend)

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
        if word_of(zero.get("cpu_offload")) in YES:
            self._offload["optimizer"] = "cpu"
        if word_of(zero.get("cpu_offload_param")) in YES:
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
        name = "zero_hpz_partition_size"
        group = self.whole(zero, name, 1, least=1, path=f"{keys.ZERO}.{name}")
        if group > 1:
            self.reading.options["hpz"] = str(group)
        quantized = {"weights": "zero_quantized_weights", "gradients": "zero_quantized_gradients"}
        self.reading.options["quantize"] = tuple(
            name for name, key in quantized.items() if word_of(zero.get(key)) in YES
        )

    def _number(self, key: str, name: str, value: object) -> None:
        path = f"{keys.ZERO}.{key}"
        if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value):
            value = int(value)
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


def is_on(value: object) -> bool:
    """Whether a section or a degree of parallelism does anything."""
    if isinstance(value, Mapping):
        sizes = [size for name, size in value.items() if str(name).endswith("size")]
        return value.get("enabled") is not False and (not sizes or any(size != 1 for size in sizes)) and bool(value)
    return value not in (None, False, 0, 1)
