"""`--strategy "stage=3,offload=optimizer"`: the options of one strategy among several."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from zeroplan.errors import InputError, printable, unknown_name

if TYPE_CHECKING:
    from zeroplan.cli.given import Given

VARIES = (
    *("stage", "offload", "shard_group", "hpz", "quantize", "set", "framework", "recipe", "grad_accum"),
    *("seq_len", "micro_batch", "recompute", "attention", "loss", "fused", "optimizer_kernel", "compiled"),
)
"""The options that can be of one strategy and not of another."""
SEVERAL = ("stage", "offload", "quantize", "set")
"""Those that can be given more than once."""


def strategy(given: Given, text: str) -> Given:
    """What was given, with the options of one strategy in place of the same ones outside it."""
    found: dict[str, object] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        option = name.removeprefix("--").replace("-", "_").lower()
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
    return cast("Given", {**given, **found})
