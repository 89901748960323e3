"""The kinds of presets, and how the tables of a TOML file become a record."""

from collections.abc import Callable
from typing import Any, TypeVar

from zeroplan.core.framework import Claim, Framework, Holding, Stage, TransferRule
from zeroplan.core.hardware import Gpu, Node
from zeroplan.core.recipe import Recipe, State
from zeroplan.core.word import Word

Record = Gpu | Node | Recipe | Framework | Word
R = TypeVar("R", bound=Record)

KINDS: dict[str, type[Record]] = {
    "gpu": Gpu,
    "node": Node,
    "recipe": Recipe,
    "framework": Framework,
    "word": Word,
}
PARTS: dict[str, type[Any]] = {
    "states": State,
    "stages": Stage,
    "holds": Holding,
    "sends": TransferRule,
    "claims": Claim,
}
"""The keys whose tables are records of their own."""


def build(record: Callable[..., R], name: str, data: dict[str, Any]) -> R:
    """A record from the parsed TOML of a bundled preset."""
    return record(name=name, **{key: _built(key, value) for key, value in data.items()})


def _built(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _built("", v) for k, v in value.items()}
    if not isinstance(value, list):
        return value
    part = PARTS.get(key)
    if part is None or not (value and isinstance(value[0], dict)):
        return tuple(value)
    return tuple(part(**{k: _built(k, v) for k, v in table.items()}) for table in value)
