"""The options of the scheme: offload, groups, quantisation, and a framework's own settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from zeroplan.cli.typed import parts
from zeroplan.core.scheme import LARGEST_GROUP, NEVER_ZERO, PLACES, QUANTIZED, TIERS, Scheme
from zeroplan.errors import Faults, InputError, printable, unknown_name
from zeroplan.units import parse_count

if TYPE_CHECKING:
    from zeroplan.cli.given import Given
    from zeroplan.core.framework import Framework

ACTIVATIONS = "activations"
LIKE = {
    **dict.fromkeys(("param", "parameters", "weights"), "params"),
    **dict.fromkeys(("opt", "optim", "states"), "optimizer"),
    **dict.fromkeys(("grads", "gradient"), "gradients"),
    **dict.fromkeys(("checkpoints", "acts"), ACTIVATIONS),
}
"""What others call what can be offloaded."""
NOWHERE = "none"
ON, OFF = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
LARGEST_SETTING = 10**18


def offloads(texts: tuple[str, ...]) -> dict[str, str]:
    """What goes where: `optimizer=cpu`; without a place, to the CPU."""
    found = {}
    for text in parts(texts):
        name, equals, tier = text.partition("=")
        if equals and not tier.strip():
            raise InputError("--offload", f"{printable(text)} names no place.", f"Places: {', '.join(TIERS)}.")
        what, where = LIKE.get(name.lower(), name.lower()), tier.strip().lower() or "cpu"
        if what not in (*PLACES, ACTIVATIONS):
            raise unknown_name("--offload", "state", name, (*PLACES, ACTIVATIONS), "Example: --offload optimizer=cpu.")
        where = "gpu" if where == NOWHERE else where
        if where not in TIERS:
            raise InputError("--offload", f"{printable(tier)} is not a place.", f"Places: {', '.join(TIERS)}.")
        if what == ACTIVATIONS and where == "nvme":
            raise InputError("--offload activations", "to NVMe is not modelled.", "Modelled is cpu.")
        found[what] = where
    return found


def read_scheme(given: Given, framework: Framework) -> Scheme:
    """The scheme; raises InputError with every fault."""
    faults = Faults()
    places = faults.attempt(partial(offloads, given["offload"])) or {}
    group = faults.attempt(partial(_group, given["shard_group"], "--shard-group"))
    second = faults.attempt(partial(_group, given["hpz"], "--hpz"))
    quantize = faults.attempt(partial(_quantize, given["quantize"])) or ()
    settings = faults.attempt(partial(_settings, given["set"], framework))
    faults.report()
    assert settings is not None
    switches, limits = settings
    places.pop(ACTIVATIONS, None)
    return Scheme(
        **places, shard_group=group or 0, hpz=second or 0, quantize=quantize, switches=switches, limits=limits
    )


def _group(text: str | None, where: str) -> int:
    if text is None or text.strip() == "0":
        return 0
    size = parse_count(text, where, LARGEST_GROUP, f"{where} 8")
    if where == "--hpz" and size == 1:
        raise InputError(where, "a copy that one GPU has for itself divides nothing.", "0 is off; example: --hpz 8.")
    return size


def _quantize(texts: tuple[str, ...]) -> tuple[str, ...]:
    found = [text.lower() for text in parts(texts)]
    for text in found:
        if text not in QUANTIZED:
            raise unknown_name("--quantize", "traffic", text, QUANTIZED, "Example: --quantize weights,gradients.")
    return tuple(dict.fromkeys(found))


def _settings(texts: tuple[str, ...], framework: Framework) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    switches: dict[str, bool] = {}
    limits: dict[str, int] = {}
    for text in parts(texts):
        name, equals, value = (piece.strip() for piece in text.partition("="))
        where = f"--set {name}" if name.isidentifier() else "--set"
        if name in framework.switches:
            switches[name] = _is_on(value, where, bool(equals))
        elif name in framework.limits:
            nothing = value == "0" and name not in NEVER_ZERO
            limits[name] = 0 if nothing else parse_count(value, where, LARGEST_SETTING, f"{where}=2e8")
        else:
            raise _unknown(name, framework)
    return tuple(name for name, on in switches.items() if on), tuple(limits.items())


def _is_on(value: str, where: str, given: bool) -> bool:
    if not given or value.lower() in ON:
        return True
    if value.lower() in OFF:
        return False
    raise InputError(where, f"{printable(value)} is neither true nor false.")


def _unknown(name: str, framework: Framework) -> InputError:
    known = (*framework.switches, *framework.limits)
    if not known:
        return InputError("--set", f"{framework.name} has no settings.", "Choose another --framework.")
    return unknown_name("--set", f"setting of {framework.name}", name, known, f"It has {', '.join(known)}.")
