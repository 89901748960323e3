"""What a screen is made of: paragraphs and grids. table.py and markdown.py print them."""

from dataclasses import dataclass

GOOD, WARN, BAD, DIM, STRONG = "good", "warn", "bad", "dim", "strong"
"""Meanings a cell can have; colour only repeats what the text says."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cell:
    """Text with a meaning; a bar is a sequence of such pieces."""

    text: str
    style: str = ""
    pieces: tuple[tuple[str, str], ...] = ()
    """(text, style) pairs instead of text."""

    @property
    def plain(self) -> str:
        return "".join(text for text, _ in self.pieces) or self.text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """A header, and on which side the cells line up."""

    header: str
    right: bool = False
    wraps: bool = False
    """Whether long text may take several lines."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Paragraph:
    """A few sentences."""

    text: str
    style: str = ""
    tight: bool = False
    """No empty line before it."""
    indent: int = 0
    pieces: tuple[tuple[str, str], ...] = ()
    """(text, style) pairs that together are the text."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grid:
    """A table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    padding: int = 2
    """Spaces between columns; one where there is no room for more."""


Block = Paragraph | Grid


def cell(text: object, style: str = "") -> Cell:
    """A cell of one meaning."""
    return Cell(str(text), style)
