"""The screens of the words of the trade: one in full, or all with their meanings."""

from collections.abc import Iterable

from zeroplan.core.word import Word
from zeroplan.render.blocks import DIM, STRONG, Block, Column, Grid, Paragraph, cell


def word_blocks(words: Iterable[Word]) -> list[Block]:
    """A word of the trade: what it means, its formula, its source."""
    blocks: list[Block] = []
    for word in words:
        blocks += [Paragraph(word.title, STRONG), Paragraph(word.text, tight=True)]
        blocks += [Paragraph(word.formula, tight=True, indent=2)] if word.formula else []
        see = f" See also: {', '.join(word.see)}." if word.see else ""
        blocks += [Paragraph(f"Source: {word.source}.{see}", DIM, tight=True)]
    return blocks


def words_grid(words: Iterable[Word]) -> list[Block]:
    """All words that can be explained."""
    rows = tuple((cell(word.name, STRONG), cell(word.title)) for word in words)
    return [
        Paragraph("Words that `zeroplan explain WORD` explains:"),
        Grid((Column("word"), Column("meaning", wraps=True)), rows),
        Paragraph("The numbers of a plan: zeroplan explain --params 7.5e9 --gpus 64 --stage 2", DIM),
    ]
