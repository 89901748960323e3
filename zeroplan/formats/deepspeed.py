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
from zeroplan.formats.deepspeed_zero import ZeroReader, is_on
from zeroplan.formats.files import read_bytes
from zeroplan.formats.lenient_json import parse_lenient
from zeroplan.formats.reading import AUTO, LARGEST_CONFIG, YES, Reading, alike, misspelt, word_of


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


class _Reader(ZeroReader):
    """Goes through one file once, section by section."""

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
                if is_on(data[key]):
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
        settings = optimizer.get("params") if isinstance(optimizer, Mapping) else None
        settings = settings if isinstance(settings, Mapping) else {}
        if word_of(settings.get("amsgrad")) in YES or word_of(settings.get("fp32_optimizer_states", True)) not in YES:
            self.not_modelled("optimizer.params", "another set of states is not modelled")
        if word_of(data.get("communication_data_type")) in keys.FP32:
            self.not_modelled("communication_data_type", "reducing in fp32 is not modelled")
        for section, key in keys.OTHERWISE:
            inner = data.get(section)
            if isinstance(inner, Mapping) and word_of(inner.get(key)) in YES:
                self.not_modelled(f"{section}.{key}")
        checkpoints = data.get("activation_checkpointing")
        for name in ("cpu_checkpointing", "partition_activations"):
            if isinstance(checkpoints, Mapping) and checkpoints.get(name) is True:
                said = "changes activations where the model uses deepspeed.checkpointing, and is not modelled."
                self.found("ZP301", WARNING, f"activation_checkpointing.{name}", said)

    def _precision(self, data: Mapping[str, Any]) -> None:
        old = data.get("bfloat16") if data.get("bf16") is None else None  # read where bf16 is not there
        enabled = [_enabled(data.get("bf16")), _enabled(old), _enabled(data.get("fp16"))]
        half = {"bf16": True in enabled[:2], "fp16": enabled[2] is True}
        open_still = AUTO in enabled or not {"bf16", "bfloat16", "fp16"} & set(data)
        given = self._precision_given if open_still and self._precision_given in half else ""
        self.reading.half = next((name for name, on in half.items() if on), given or "")
        if "bfloat16" in data:
            self.found("ZP204", WARNING, "bfloat16", "is the old name of bf16.", "Use bf16.")
        types = data.get("data_types")
        wide = isinstance(types, Mapping) and word_of(types.get("grad_accum_dtype")) in keys.FP32
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
                found[option] = self.whole(data, key, 1, least=1, most=10**9)
        self.reading.train_batch = found.pop("train_batch", None)
        self.reading.options.update({option: str(value) for option, value in found.items()})
        self.reading.derives_batch = AUTO not in (data.get(key) for key in (*keys.BATCH, "train_batch_size"))
        sizes = self.reading.train_batch or found.get("micro_batch")
        if self.reading.derives_batch and not sizes and self._precision_given is None:
            said = "and train_micro_batch_size_per_gpu are both missing; DeepSpeed itself stops."
            self.found("ZP207", NOTE, "train_batch_size", said, "Say one of them.")


def _enabled(section: object) -> object:
    """true, false or auto."""
    value = word_of(section.get("enabled", False)) if isinstance(section, Mapping) else "false"
    return AUTO if value == AUTO else value in YES
