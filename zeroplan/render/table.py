"""Blocks on a terminal, with rich: colour where there is a terminal and NO_COLOR is not set."""

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from zeroplan.render.blocks import BAD, DIM, GOOD, STRONG, WARN, Block, Cell, Grid, Paragraph

STYLES = {GOOD: "green", WARN: "magenta", BAD: "red", DIM: "dim", STRONG: "bold", "": ""}
"""Sixteen-colour names that read on light and dark backgrounds."""


NARROWEST_TEXT = 12
"""Columns below which text that wraps is not squeezed."""


def print_blocks(blocks: Iterable[Block]) -> None:
    """Write the blocks to stdout, an empty line between them."""
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for place, block in enumerate(blocks):
            if place and not (isinstance(block, Paragraph) and block.tight):
                console.print()
            _print(console, block)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def terminal() -> tuple[int, bool]:
    """The width of the terminal, and whether it shows block characters."""
    console = Console()
    return console.width, console.encoding.lower().startswith("utf")


def _print(console: Console, block: Block) -> None:
    if isinstance(block, Paragraph):
        console.print(Padding(_text(block), (0, 0, 0, block.indent)))
        return
    # A figure is never cut: a grid that does not fit is printed wider than the screen.
    width = console.width
    padding = block.padding if _needed(block, block.padding) <= width else 1
    console.width = max(width, _needed(block, padding))
    console.print(_table(block, padding))
    console.width = width


def _needed(grid: Grid, padding: int) -> int:
    """The columns that the grid cannot do without."""
    texts = [[column.header, *(row[place].plain for row in grid.rows)] for place, column in enumerate(grid.columns)]
    widths = [
        min(_longest_word(cells), NARROWEST_TEXT) if column.wraps else max(map(len, cells))
        for column, cells in zip(grid.columns, texts, strict=True)
    ]
    return sum(widths) + padding * len(widths)


def _longest_word(texts: Iterable[str]) -> int:
    return max((len(word) for text in texts for word in text.split()), default=0)


def _table(grid: Grid, padding: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, padding, 0, 0), header_style="bold")
    for column in grid.columns:
        table.add_column(
            column.header,
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
    for row in grid.rows:
        table.add_row(*map(_text, row))
    return table


def _text(said: Cell | Paragraph) -> Text:
    if said.pieces:
        return Text.assemble(*((text, STYLES.get(style, style)) for text, style in said.pieces))
    return Text(said.text, style=STYLES[said.style])
