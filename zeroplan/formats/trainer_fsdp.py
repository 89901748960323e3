"""`fsdp` and `fsdp_config` as the Hugging Face Trainer takes them; axolotl hands them on.

As of transformers 5.10 to 5.24: training_args.py (_process_fsdp_args), trainer.py; huggingface/accelerate 1.15
utils/dataclasses.py and utils/fsdp_utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zeroplan.core.findings import ERROR, NOTE, WARNING
from zeroplan.errors import printable
from zeroplan.formats import trainer_keys as keys
from zeroplan.formats.reading import MOST_KEYS, NO, Reader, alike, text_of, word_of

CONFIG = "fsdp_config"
FULL, GRAD_OP = "full_shard", "shard_grad_op"


def bare(section: Mapping[str, Any]) -> dict[str, Any]:
    """The keys without `fsdp_`; one written with it wins over one without."""
    plain = {key: value for key, value in section.items() if not key.startswith("fsdp_")}
    return plain | {key.removeprefix("fsdp_"): value for key, value in section.items() if key.startswith("fsdp_")}


def synchronises(reader: Reader, data: Mapping[str, Any]) -> bool:
    """Whether accelerator_config asks for gradients to be reduced in every micro-batch."""
    accelerator = data.get("accelerator_config")
    inner = accelerator.get("gradient_accumulation_kwargs") if isinstance(accelerator, Mapping) else None
    return isinstance(inner, Mapping) and reader.flag(inner, "sync_each_batch")


def read_words(reader: Reader, value: object) -> list[str]:
    """The words of `fsdp`: a text of words with blanks between, or a list."""
    if value is True:
        return [FULL]
    words = [text_of(each) for each in value] if isinstance(value, list) else text_of(value).split()
    for word in words[:MOST_KEYS]:
        if word.lower() not in keys.WORDS:
            hint = "Separate words by blanks." if "," in word else f"It takes {', '.join(keys.WORDS)}."
            reader.found("ZP201", ERROR, "fsdp", f"{printable(word)} is refused by the Trainer.", hint)
    return [word for word in words if word.lower() in keys.WORDS]


def stage_of_words(reader: Reader, words: Sequence[str], config: Mapping[str, Any], version: int) -> int:
    """The stage that the words and reshard_after_forward ask for."""
    said = next((word for word in words if word.lower() not in ("offload", "auto_wrap")), FULL)
    path = f"{CONFIG}.reshard_after_forward"
    if version == 2:
        if said.lower() in keys.ONLY_VERSION_1 or said != said.lower():
            mend = "Use full_shard or shard_grad_op, in small letters."
            reader.found("ZP201", ERROR, "fsdp", f"{said} is refused at version 2.", mend)
        default = said.lower() != GRAD_OP
        if "reshard_after_forward" not in config:
            return 3 if default else 2
        if word_of(config["reshard_after_forward"]) in ("null", ""):
            reader.found("ZP201", ERROR, path, "is empty, at which the Trainer stops.", "Say true or false.")
            return 3 if default else 2
        return 3 if reader.flag(config, "reshard_after_forward", default, path) else 2
    if word_of(config.get("reshard_after_forward", FULL)) in ("true", "false"):
        reader.found("ZP201", ERROR, path, "true or false is of version 2; at version 1 it stops.", "Say version: 2.")
    elif said.lower() != FULL or word_of(config.get("reshard_after_forward", FULL)) != FULL:
        what = "has no effect at version 1: accelerate 1.10 to 1.15 runs FULL_SHARD."
        reader.found("ZP206", WARNING, "fsdp", what, "Use version 2, or set FSDP_SHARDING_STRATEGY.")
    return 3


def check_policy(reader: Reader, config: Mapping[str, Any], known: Sequence[str]) -> None:
    """Note where units are not blocks."""
    path, said = f"{CONFIG}.auto_wrap_policy", text_of(config.get("auto_wrap_policy", known[0]))
    if said not in known:
        reader.found("ZP201", ERROR, path, f"{printable(said)} is not one of {', '.join(known)}.")
    elif said == "NO_WRAP":
        reader.not_modelled(path, "NO_WRAP makes the whole model one unit, which is not modelled")
    elif said == "SIZE_BASED_WRAP":
        said = "units are taken to be blocks; those of SIZE_BASED_WRAP are of other sizes."
        reader.found("ZP301", WARNING, path, said)


def read_trainer_fsdp(reader: Reader, value: object, section: Mapping[str, Any]) -> None:
    """The plan that the Trainer's `fsdp` and `fsdp_config` ask for."""
    config, options = bare(section), reader.reading.options
    for key in config:
        if key in keys.MEANT:
            mend = f"Use {keys.MEANT[key]}."
            reader.found("ZP206", WARNING, f"{CONFIG}.{key}", "is accelerate's; the Trainer ignores it.", mend)
        elif key not in keys.FSDP:
            said = f"is unknown; the Trainer ignores it.{alike(key, keys.FSDP)}"
            reader.found("ZP201", NOTE, f"{CONFIG}.{key}", said)
    version = reader.whole(config, "version", 2, least=1, most=2, path=f"{CONFIG}.version")
    if "version" not in config:
        said = "does not say its version: 2 since transformers 5.10, which is taken, 1 before."
        reader.found("ZP302", NOTE, CONFIG if section else "fsdp", said, "Say fsdp_config.version.")
    words = read_words(reader, value)
    options["framework"] = f"fsdp{version}"
    options["stage"] = (str(stage_of_words(reader, words, config, version)),)
    offload = config.get("cpu_offload", "offload" in map(str.lower, words))
    if isinstance(offload, str) and word_of(offload) in NO and offload:
        said = f"the text {printable(offload)} turns offload on: any text does."
        reader.found("ZP206", WARNING, f"{CONFIG}.cpu_offload", said, "Write false without quotes.")
    options["offload"] = ("params=cpu",) if offload else ()
    check_policy(reader, config, keys.POLICIES)
    if reader.flag(config, "activation_checkpointing", path=f"{CONFIG}.activation_checkpointing"):
        if options.get("recompute"):
            said = "stands beside gradient_checkpointing; the Trainer refuses both."
            reader.found("ZP201", ERROR, f"{CONFIG}.activation_checkpointing", said, "Keep this one.")
        options["recompute"] = "full"
    if reader.flag(config, "xla", path=f"{CONFIG}.xla"):
        reader.not_modelled(f"{CONFIG}.xla", "FSDP of XLA is not modelled")
    if version == 2 and text_of(config.get("state_dict_type", "")) == "LOCAL_STATE_DICT":
        said = "LOCAL_STATE_DICT is refused at version 2."
        reader.found("ZP201", ERROR, f"{CONFIG}.state_dict_type", said, "Use SHARDED_STATE_DICT.")
