"""Arguments of the Hugging Face Trainer in a YAML or JSON file, as a plan.

As of transformers 5.24: training_args.py, trainer.py, integrations/deepspeed.py. Scripts around the Trainer (TRL,
LLaMA-Factory) have arguments of their own beside them, of which the model, its length and adapters are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats import trainer_keys as keys
from zeroplan.formats.accelerate_keys import fsdp2_settings
from zeroplan.formats.deepspeed import deepspeed_text, read_deepspeed
from zeroplan.formats.deepspeed_keys import BATCH
from zeroplan.formats.files import read_bytes
from zeroplan.formats.reading import UNFUSED, Reader, Reading, alike, misspelt, text_of, word_of
from zeroplan.formats.trainer_fsdp import CONFIG, read_trainer_fsdp, synchronises
from zeroplan.formats.trainer_scripts import ALONE_LOSSES, EAGER, OFF, OTHERWISE, Script, script_of
from zeroplan.formats.yaml_mapping import LARGEST_YAML, json_of, mapping

NOTHING = ("null", "", "false")
TEXTS = (CONFIG, "accelerator_config")
"""Arguments that can be JSON in a text, or the path of a file."""


def read_trainer(path: str, hidden: int | None = None) -> Reading:
    """A file of training arguments as a plan; raises InputError where it is no mapping."""
    text = read_bytes(path, LARGEST_YAML).decode("utf-8-sig", errors="replace")
    return _Reader(path, text, hidden).read(mapping(text, path, typed=True))


class _Reader(Reader):
    """Goes through one file once."""

    def __init__(self, path: str, text: str, hidden: int | None) -> None:
        super().__init__(path, text, "trainer", "ddp")
        self._hidden = hidden
        self.pure = False

    def read(self, data: Mapping[str, Any]) -> Reading:
        self._slips(data)
        script = script_of(data)
        self._beside(data, script)
        data = {**script.defaults(data), **data}
        data |= {key: self._parsed(key, data[key]) for key in TEXTS if isinstance(data.get(key), str)}
        options = self.reading.options
        options["micro_batch"] = str(self.whole(data, "per_device_train_batch_size", keys.BATCH, least=1))
        options["grad_accum"] = str(self.whole(data, "gradient_accumulation_steps", 1, least=1))
        self._liger(data)
        self._compute(data, script)
        self._otherwise(data)
        self.reading.quiet = not synchronises(self, data)
        read_optimizer(self, data, "optim")
        self._parallel(data, self._precision(data))
        return self.reading

    def _slips(self, data: Mapping[str, Any]) -> None:
        """Note arguments that were, and those that look like one that is read."""
        for key in data:
            if key in keys.REMOVED:
                said = f"was removed from transformers before 5.24{keys.REMOVED[key]}."
                self.found("ZP205", WARNING, key, said)
            elif key not in keys.KNOWN and misspelt(key, keys.MEMORY):
                self.found("ZP201", WARNING, key, f"is not read.{alike(key, frozenset(keys.MEMORY))}")

    def _compute(self, data: Mapping[str, Any], script: Script) -> None:
        """Compilation, checkpoints, attention and the loss."""
        options = self.reading.options
        backend, mode = (word_of(data.get(key)) for key in ("torch_compile_backend", "torch_compile_mode"))
        compiles = self.flag(data, "torch_compile") or backend not in NOTHING or mode not in NOTHING
        if compiles and backend not in UNFUSED:
            options["compiled"] = "model"
        said = [key for key in ("activation_checkpointing", "gradient_checkpointing") if data.get(key) is not None]
        own = bool(said) and not script.decides
        if self.flag(data, said[0]) if own else script.checkpoints:
            options["recompute"] = "full"
        if any(word_of(data.get(key)) == value for key, value in EAGER.items()):
            options["attention"] = "eager"
        loss = word_of(data.get("loss_type"))
        if loss == "chunked_nll":
            options["loss"] = "chunked"
        elif loss not in (*NOTHING, *ALONE_LOSSES):
            self.not_modelled("loss_type", f"{printable(loss)} may be of a second model, which is not modelled")

    def _parallel(self, data: Mapping[str, Any], precision: str) -> None:
        """DeepSpeed, FSDP or DDP, and the recipe under it."""
        said = [key for key in ("fsdp", "deepspeed") if word_of(data.get(key)) not in NOTHING and data[key] != []]
        if len(said) > 1:
            self.found("ZP201", ERROR, "fsdp", "stands beside deepspeed; the Trainer refuses both.", "Keep one.")
        section = self.section(data, CONFIG)
        if "deepspeed" in said:
            read_deepspeed_argument(self, data["deepspeed"], self._hidden, precision)
            if self.pure and self.reading.options["stage"] == ("3",):
                self.found("ZP201", ERROR, "pure_bf16", "is refused with ZeRO-3 by LLaMA-Factory.", "Say bf16.")
            return
        if "fsdp" in said:
            read_trainer_fsdp(self, data["fsdp"], section)
        elif section:
            self.found("ZP206", WARNING, CONFIG, "has no effect without fsdp.", "Say fsdp: full_shard.")
        self._recipe(precision)

    def _liger(self, data: Mapping[str, Any]) -> None:
        """Fused kernels: all that liger applies by itself, or those of its configuration."""
        options = self.reading.options
        options["loss"] = "hf"
        if not (self.flag(data, "use_liger_kernel") or self.flag(data, "enable_liger_kernel")):
            return
        said = self.section(data, "liger_kernel_config")
        if self.flag(said, "fused_linear_cross_entropy", default=True):
            options["loss"] = "linear"
        elif self.flag(said, "cross_entropy"):
            options["loss"] = "fused"
        parts = [part for key, part in keys.LIGER.items() if self.flag(said, key, default=True)]
        options.update({"fused": ",".join(parts)} if parts else {})

    def _beside(self, data: Mapping[str, Any], script: Script) -> None:
        """The model, its length and adapters, where a script says them or has them by default."""
        for option, names in (("model", keys.MODEL), ("seq_len", keys.SEQUENCE)):
            found = [text_of(data[name]) for name in names if word_of(data.get(name)) not in NOTHING]
            if found:
                self.reading.options[option] = found[0]
        for key in OTHERWISE:
            if word_of(data.get(key)) not in OFF:
                self.not_modelled(key)
        if script.name:
            taken = "checkpoints and bf16 are on" if script.bf16 else "checkpoints are on"
            said = f"keys of {script.name} are in it, whose defaults are taken: {taken} unless it says otherwise."
            self.found("ZP302", NOTE, "", said)
        if script.seq_len:
            self.reading.options.setdefault("seq_len", str(script.seq_len))
        if script.adapter:
            self.not_modelled(script.adapter, "training a part of the model is not modelled")
        if script.beside:
            self.not_modelled(script.beside, "a second model may stand beside the trained one, which is not modelled")
        for key, whole in keys.ADAPTERS.items():
            if key in data and word_of(data[key]) not in whole:
                self.not_modelled(key, "training a part of the model is not modelled")

    def _parsed(self, key: str, text: str) -> object:
        """A mapping that is JSON in a text."""
        if text.strip().startswith("{"):
            return mapping(text, self.reading.path, typed=True)
        if text.strip():
            self.not_modelled(key, f"{printable(text)} is another file, which is not read")
        return None

    def _otherwise(self, data: Mapping[str, Any]) -> None:
        """Note arguments under which another plan runs than the one that is read."""
        if word_of(data.get("parallelism_config")) not in NOTHING:
            self.not_modelled("parallelism_config")
        if self.flag(data, "use_cpu"):
            self.not_modelled("use_cpu", "training on CPUs is not modelled")
        if self.flag(self.section(data, "accelerator_config"), "split_batches"):
            self.not_modelled("accelerator_config.split_batches", "a batch that is split over the GPUs is not modelled")
        if self.flag(data, "auto_find_batch_size"):
            said = "tries smaller batches after an out-of-memory error; judged is the one in the file."
            self.found("ZP301", WARNING, "auto_find_batch_size", said)

    def _precision(self, data: Mapping[str, Any]) -> str:
        on = [name for name in ("bf16", "fp16") if self.flag(data, name)]
        if len(on) > 1:
            self.found("ZP201", ERROR, "fp16", "and bf16 are both on; the Trainer refuses both.", "Keep one.")
        self.pure = self.flag(data, "pure_bf16")
        self.reading.half = "bf16" if self.pure else on[0] if on else ""
        return self.reading.half or "no"

    def _recipe(self, precision: str) -> None:
        """Weights: fp32 under FSDP with mixed precision, else as the checkpoint has them."""
        options = self.reading.options
        mixed = precision != "no"
        options["recipe"] = "pure-bf16" if self.pure else "fsdp-mixed" if mixed else "fp32-adam"
        if options["framework"] == "ddp":
            options["stage"] = ("0",)
        elif options["framework"] == "fsdp2":
            options["set"] = fsdp2_settings(mixed and not self.pure)
        if self.pure or (mixed and options["framework"] != "ddp"):
            return
        said = "weights keep the checkpoint's type: taken are fp32 ones; 16-bit ones take half."
        self.found("ZP302", NOTE, "bf16" if not mixed else precision, said)


def read_optimizer(reader: Reader, data: Mapping[str, Any], key: str) -> None:
    """The kernel of the optimizer's step; other optimizers than Adam are not modelled."""
    name = word_of(data.get(key))
    if name in keys.OPTIMIZERS:
        reader.reading.options["optimizer_kernel"] = keys.OPTIMIZERS[name]
    elif name not in NOTHING:
        reader.not_modelled(key, f"{printable(name)} is not modelled")


def read_deepspeed_argument(reader: Reader, value: object, hidden: int | None, precision: str) -> None:
    """The plan of a DeepSpeed configuration: a mapping, JSON in a text, or a file that is here or below.

    Raises InputError where it is none of these.
    """
    reading = reader.reading
    found = _deepspeed(reader, value, hidden, precision)
    batch = {option: key for key, option in BATCH.items()}
    reading.findings += [each for each in found.findings if not (each.code == "ZP302" and each.place.key in BATCH)]
    for option, key in batch.items():
        theirs, ours = found.options.pop(option, None), reading.options[option]
        if theirs is not None and theirs != ours:
            said = f"is {theirs} in the DeepSpeed configuration, and {ours} here; the Trainer stops."
            reader.found("ZP207", ERROR, key, said, "Say auto there.")
    half = found.half if found.half in ("bf16", "fp16") else ""
    if half != reading.half:
        said = f"the DeepSpeed configuration says {half or 'fp32'}, and {reading.half or 'fp32'} is said here"
        reader.found("ZP207", ERROR, "deepspeed", f"{said}; the Trainer stops.", "Say auto there.")
    reading.options.update(found.options)
    reading.train_batch = found.train_batch
    reading.unmodelled = reading.unmodelled or found.unmodelled


def _deepspeed(reader: Reader, value: object, hidden: int | None, precision: str) -> Reading:
    path = reader.reading.path
    text = json_of(value, path) if isinstance(value, Mapping) else text_of(value)
    if text.startswith("{"):
        return deepspeed_text(text, path, hidden, precision, "\n".join(reader.lines))
    return read_deepspeed(_near(path, text), hidden, precision)


def _near(path: str, name: str) -> str:
    """A file named in another one, found from here or from that file; raises InputError where it is elsewhere."""
    here, beside = Path.cwd(), Path(path).parent
    try:
        for folder in (here, beside):
            found = (folder / name).resolve()
            inside = found.is_relative_to(here.resolve()) or found.is_relative_to(beside.resolve())
            if inside and found.is_file():
                return str(folder / name if folder is beside else name)
    except (OSError, ValueError, RuntimeError) as error:  # a null byte, or links in a circle
        raise InputError(one_line(path), f"deepspeed: {printable(name)} is no path.") from error
    said = f"deepspeed: {printable(name)} is not a file here or below."
    raise InputError(one_line(path), said, "Run it where the training starts, or check that file by itself.")
