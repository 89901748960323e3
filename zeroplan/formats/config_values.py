"""Reading config.json as its class would: the file first, an explicit null included, then the class default."""

import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from zeroplan.core.dimensions import Dims
from zeroplan.errors import InputError, printable
from zeroplan.formats.architectures import FACTS, NULLABLE, ZERO_ALLOWED, Row, row

WAYS_OUT = "Give the checkpoint folder (shapes are read from its safetensors headers), a shapes JSON, or --params N."
LARGEST_DIMENSION = 10**9
MOST_LAYERS = 10_000
LAYER_COUNTS = ("layers", "decoder_layers")
ALIKE, LONG = 0.9, 60
"""How much of two keys is equal where one is the other misspelt, and the longest key that is looked at."""
DROPOUTS = ("residual_dropout", "attention_dropout")

ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_pytorch_tanh", "gelu_python", "gelu_10"), "gelu"),
    **{name: name for name in ("gelu_new", "gelu_fast", "quick_gelu", "relu", "silu", "relu2")},
    "swish": "silu",
}
"""The names of huggingface/transformers activations.py, ACT2FN, by what they keep."""

Config = Mapping[str, Any]


@cache
def class_defaults() -> dict[str, dict[str, Any]]:
    """By model_type, what its configuration class fills in for the keys that are read."""
    path = os.path.join(os.path.dirname(__file__), "class_defaults.json")
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return {kind: values for kind, values in found.items() if kind != "_about"}


class ConfigValues:
    """The values of one config, checked; what the class fills in is collected in `assumed`."""

    def __init__(self, config: Config, model_type: str, where: str, prefix: str = "") -> None:
        self.config, self.model_type = config, model_type
        self.where, self.prefix = where, prefix
        self.defaults = class_defaults().get(model_type, {})
        self.assumed: dict[str, str] = {}

    def dims(self) -> dict[str, Any]:
        """Every dimension of the row of its model_type, by name."""
        found: dict[str, Any] = {}
        for name, spec in _whole_row(self.model_type).items():
            if name != "like":
                found[name] = spec if name in FACTS or not isinstance(spec, str) else self._dim(name, spec, found)
        return found

    def flag(self, key: str, default: bool = False) -> bool:
        """A key that is true or false."""
        return self._flag(key, self._raw(key, default))

    def text(self, key: str, default: str = "") -> str:
        """A key that is a text."""
        value = self._raw(key, default)
        if not isinstance(value, str):
            raise self.fault(key, f"is {shown(value)}, expected a text")
        return value

    def number(self, key: str) -> int:
        """A key that is a dimension."""
        return self._number(key, key, self._raw(key))

    def dropout(self, key: str) -> bool:
        """Whether a key that is a probability is above 0; absent it is 0."""
        return self._dropout(key, self.config.get(key, 0))

    def fault(self, key: str, problem: str) -> InputError:
        """The refusal of one key."""
        return InputError(f"{self.where}, {self.prefix}{key}", f"{problem}.", WAYS_OUT)

    def refuse_misspelt(self) -> None:
        """Raise for a key that nothing reads, next to a key that is absent and much like it."""
        absent = [key for key in self.defaults if key not in self.config]
        for key in self.config:
            close = [] if key in _read_keys() else alike(str(key)[:LONG], absent)
            if close:
                problem = f"{printable(key, LONG)} is no key of {self.model_type}."
                raise InputError(self.where, problem, f"Did you mean {self.prefix}{close[0]}? {WAYS_OUT}")

    def _raw(self, key: str, default: Any = None) -> Any:
        if key in self.config:
            return self.config[key]
        value = self.defaults.get(key, default)
        if key in self.defaults and value is not None:
            self.assumed[self.prefix + key] = str(value).lower() if isinstance(value, bool) else str(value)
        return value

    def _dim(self, name: str, spec: str, found: Mapping[str, Any]) -> Any:
        keys, _, formula = spec.partition("=")
        options = [key for key in keys.split("|") if key]
        if name == "activation":
            return self._activation(options, formula)
        checked = _checker(self, name)
        for key in self._known(options):
            value = self._raw(key)
            if value is not None:
                return checked(key, value)
        if formula and name in DROPOUTS:
            return self._usual_dropout(options[0], formula)
        if formula:
            value = self._from_formula(name, formula, found)
            if name == "kv_heads" and options and options[0] not in self.config:
                self.assumed[self.prefix + options[0]] = str(value)
            return value
        if name in NULLABLE:
            return None if name.endswith(("layers", "types")) else 0
        if not self._known(options):
            raise self.fault(options[0], f"is missing, and {self.model_type} has no default for it")
        raise self.fault(self._known(options)[0], "is null, expected a value")

    def _activation(self, keys: list[str], usual: str) -> str:
        """The activation function by the name of its kernel; "" for one that is not known."""
        key = next((key for key in keys if self.config.get(key) is not None), None)
        named = usual if key is None else self.config[key]
        if not isinstance(named, str):
            raise self.fault(key or "", f"is {shown(named)}, expected a text")
        return ACTIVATIONS.get(named, "")

    def _known(self, options: list[str]) -> list[str]:
        written = [key for key in options if key in self.config]
        return written or [key for key in options if key in self.defaults]

    def _usual_dropout(self, key: str, probability: str) -> bool:
        """Whether the class drops out by default, which is said where it does."""
        if float(probability) > 0:
            self.assumed[self.prefix + key] = probability
            return True
        return False

    def _from_formula(self, name: str, formula: str, found: Mapping[str, Any]) -> Any:
        if "/" in formula:
            whole, _, parts = formula.partition("/")
            return self._quotient(whole, parts, found)
        value = 1
        for factor in formula.split("*"):
            value *= int(factor) if factor.isdigit() else found[factor]
        return bool(value) if _is_flag(name) else value

    def _quotient(self, whole: str, parts: str, found: Mapping[str, Any]) -> int:
        value, rest = divmod(found[whole], found[parts])
        if rest:
            key = _whole_row(self.model_type)[whole].split("|")[0]
            raise self.fault(key, f"is {found[whole]}, which {found[parts]} heads do not divide")
        return int(value)

    def _number(self, name: str, key: str, value: Any) -> int:
        if type(value) is not int:
            raise self.fault(key, f"is {shown(value)}, expected one whole number")
        most = MOST_LAYERS if name in LAYER_COUNTS else LARGEST_DIMENSION
        least = 0 if name in ZERO_ALLOWED else 1
        if not least <= value <= most:
            raise self.fault(key, f"is {shown(value)}, outside {least} to {most}")
        return value

    def _flag(self, key: str, value: Any) -> bool:
        if type(value) is not bool and not (type(value) is int and value in (0, 1)):
            raise self.fault(key, f"is {shown(value)}, expected true or false")
        return bool(value)

    def _dropout(self, key: str, value: Any) -> bool:
        if value is None:
            return False
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise self.fault(key, f"is {shown(value)}, expected a number from 0 to 1")
        return bool(value > 0)

    def _list(self, key: str, value: Any, item: type) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)) or not all(type(each) is item for each in value):
            raise self.fault(
                key, f"is {shown(value)}, expected a list of {'texts' if item is str else 'layer numbers'}"
            )
        if len(value) > MOST_LAYERS:
            raise self.fault(key, f"has more than {MOST_LAYERS} entries")
        return tuple(value)


def alike(key: str, known: list[str]) -> list[str]:
    """The known key that `key` is most likely meant to be."""
    from difflib import get_close_matches  # only where a key is unknown

    return get_close_matches(key, known, n=1, cutoff=ALIKE)


def shown(value: object) -> str:
    """A config value as a message names it."""
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "a table" if isinstance(value, dict) else printable(value, 24)


@cache
def _read_keys() -> frozenset[str]:
    """Every key that some configuration class has, of those that are read."""
    return frozenset(key for defaults in class_defaults().values() for key in defaults)


@cache
def _whole_row(model_type: str) -> Row:
    return row(model_type)


def _is_flag(name: str) -> bool:
    return type(getattr(Dims, name)) is bool


def _checker(values: ConfigValues, name: str) -> Callable[[str, Any], Any]:
    """How the value of one dimension is checked, by key and value."""
    if name in DROPOUTS:
        return values._dropout
    if _is_flag(name):
        return values._flag
    if name == "layer_types":
        return lambda key, value: values._list(key, value, str)
    if name in ("sparse_layers", "dense_layers"):
        return lambda key, value: values._list(key, value, int)
    return lambda key, value: values._number(name, key, value)
