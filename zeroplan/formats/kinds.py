"""The kinds of presets, and how the tables of a TOML file become a record."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from zeroplan.core.framework import Framework
from zeroplan.core.hardware import Gpu, Node
from zeroplan.core.recipe import Recipe, State
from zeroplan.core.rules import Claim, Feature, Holding, Slack, Stage, TransferRule

if TYPE_CHECKING:  # not every question names a model, and words are seldom asked for
    from zeroplan.core.loss import Loss
    from zeroplan.core.word import Word
    from zeroplan.formats.model_preset import ModelPreset

Record: TypeAlias = "Gpu | Node | Recipe | Framework | Loss | ModelPreset | Word"
R = TypeVar("R", bound="Record")

KINDS = ("gpu", "node", "model", "recipe", "framework", "loss", "word")
PARTS: dict[str, type[Any]] = {
    "states": State,
    "stages": Stage,
    "holds": Holding,
    "sends": TransferRule,
    "claims": Claim,
    "features": Feature,
}
"""The keys whose tables are records of their own."""


def record_type(kind: str) -> "type[Record]":
    """The record that presets of this kind become."""
    if kind == "word":
        from zeroplan.core.word import Word

        return Word
    if kind == "loss":
        from zeroplan.core.loss import Loss

        return Loss
    if kind == "model":
        from zeroplan.formats.model_preset import ModelPreset

        return ModelPreset
    return {"gpu": Gpu, "node": Node, "recipe": Recipe, "framework": Framework}[kind]


def build(record: Callable[..., R], name: str, data: dict[str, Any]) -> R:
    """A record from the parsed TOML of a bundled preset."""
    return record(name=name, **{key: _built(key, value) for key, value in data.items()})


def _built(key: str, value: Any) -> Any:
    if key == "slack":
        return Slack(**value)
    if isinstance(value, dict):
        return {k: _built("", v) for k, v in value.items()}
    if not isinstance(value, list):
        return value
    part = PARTS.get(key)
    if part is None or not (value and isinstance(value[0], dict)):
        return tuple(value)
    return tuple(part(**{k: _built(k, v) for k, v in table.items()}) for table in value)
