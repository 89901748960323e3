"""A model of the catalog: its config.json, and what that counts to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from zeroplan.core.checks import check_range, check_text
from zeroplan.core.hardware import STRICT
from zeroplan.errors import InputError

if TYPE_CHECKING:  # a list of names needs no counting
    from zeroplan.core.model import Model

LARGEST_MODEL = 10**18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ModelPreset:
    """A published model: the facts of its config.json that its shapes follow from."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    params: int | None = None
    """The exact count, checked; None: whatever the config counts to."""
    config: Mapping[str, Any]
    null_keys: tuple[str, ...] = ()
    """Keys that config.json sets to null, which TOML cannot say."""
    source: str

    def __post_init__(self) -> None:
        check_text(f"model {self.name}, source", self.source)
        if self.params is not None:
            check_range(f"model {self.name}, params", self.params, 1, LARGEST_MODEL)

    @property
    def model(self) -> "Model":
        """The model, counted; raises InputError when the config cannot be counted, or to another number."""
        from zeroplan.formats.huggingface import read_config

        where = f"model {self.name}, config"
        model = read_config({**self.config, **dict.fromkeys(self.null_keys)}, where, self.name, self.source)
        if self.params not in (None, model.params):
            problem = f"counts to {model.params:,}, and params says {self.params:,}."
            raise InputError(where, problem, "Mend one of them, or leave params out.")
        return replace(model, name=self.name)
