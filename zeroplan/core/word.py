"""A word of the trade, explained."""

from dataclasses import dataclass

from zeroplan.core.checks import check_text
from zeroplan.core.hardware import STRICT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Word:
    """What a term means, the formula behind it, and who says so."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    text: str
    formula: str = ""
    see: tuple[str, ...] = ()
    source: str

    def __post_init__(self) -> None:
        check_text(f"word {self.name}, text", self.text)
        check_text(f"word {self.name}, source", self.source)
