"""`--strategy "stage=3,offload=optimizer"`: the options of one strategy among several."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from zeroplan.cli.batch import NEEDS_SEQ_LEN
from zeroplan.cli.planned import FOLLOW, default
from zeroplan.cli.typed import typed
from zeroplan.errors import InputError, one_line, printable, unknown_name

if TYPE_CHECKING:
    from zeroplan.cli.given import Given

VARIES = (
    *("stage", "offload", "shard_group", "hpz", "quantize", "set", "framework", "recipe", "grad_accum"),
    *("seq_len", "micro_batch", "recompute", "attention", "loss", "fused", "optimizer_kernel", "compiled"),
    *("experts", "headroom"),
)
"""The options that can be of one strategy and not of another."""
LIKE = {"compile": "compiled"}
JOINED = "+"
"""Between the parts of one value, as a comma is in an option: quantize=weights+gradients."""
SEVERAL = ("stage", "offload", "quantize", "set")
"""Those that can be given more than once."""


def strategy(given: Given, text: str) -> Given:
    """What was given, with the options of one strategy in place of the same ones outside it."""
    found: dict[str, object] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        option = name.removeprefix("--").replace("-", "_").lower()
        option, value = LIKE.get(option, option), value.replace(JOINED, ",")
        if not name:
            raise InputError("--strategy", "has an empty part.", 'Example: --strategy "stage=3,offload=optimizer".')
        if option not in VARIES:
            known = [each.replace("_", "-") for each in VARIES]
            raise unknown_name("--strategy", "part of a strategy", name, known, f"Parts: {', '.join(known)}.")
        if not equals or not value:
            raise InputError("--strategy", f"{printable(name)} has no value.", "Example: stage=3.")
        if option in SEVERAL:
            found[option] = (*cast("tuple[str, ...]", found.get(option, ())), value)
        elif option in found:
            raise InputError("--strategy", f"{printable(name)} stands twice in one strategy.")
        else:
            found[option] = value
    _check_idle(given, found)
    follows = [name for name in FOLLOW if "framework" in found and name not in found and not typed(name)]
    return cast("Given", {**given, **{name: default(name) for name in follows}, **found})


def outside(given: Given) -> str:
    """What a strategy may say and the command itself says, as options."""
    said = []
    for name in VARIES:
        value = given[name]  # type: ignore[literal-required]
        if value and value != default(name) and name != "framework":
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            said.append(f"--{name.replace('_', '-')} {one_line(text)}")
    return " ".join(said)


def _check_idle(given: Given, found: dict[str, object]) -> None:
    """Raise for a part that changes nothing, as the option itself would."""
    seq_len = found.get("seq_len", given["seq_len"])
    idle = [name for name in NEEDS_SEQ_LEN if name in found]
    if seq_len is None and idle:
        name = idle[0].replace("_", "-")
        raise InputError("--strategy", f"{name} changes nothing without --seq-len.", "Add --seq-len 4096.")
    if "seq_len" in found and given["model"] is None:
        raise InputError("--strategy", "seq-len needs the model's shape.", "Give --model instead of --params.")
