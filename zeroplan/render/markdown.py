"""Blocks as Markdown, for issues, pull requests and job summaries."""

from collections.abc import Iterable

from zeroplan.render.blocks import Block, Grid, Paragraph

ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#"})


def markdown_text(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown paragraphs and pipe tables."""
    return "\n\n".join(_paragraph(b) if isinstance(b, Paragraph) else _grid(b) for b in blocks) + "\n"


def _paragraph(block: Paragraph) -> str:
    return _escape(block.text)


def _grid(grid: Grid) -> str:
    head = [column.header for column in grid.columns]
    rule = ["---:" if column.right else "---" for column in grid.columns]
    rows = [[_escape(cell.plain.strip()) for cell in row] for row in grid.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in ([_escape(text) for text in head], rule, *rows))


def _escape(text: str) -> str:
    return " ".join(text.split()).translate(ESCAPED)
