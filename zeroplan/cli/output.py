"""One answer in the format asked for; nothing is written before all of it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # a JSON answer needs no screen
    from zeroplan.render.blocks import Block
    from zeroplan.render.rows.style import Style


def show(
    form: str,
    unit: str,
    blocks: Callable[[Style], Iterable[Block]],
    data: Callable[[], Mapping[str, Any]],
    records: Callable[[], Iterable[Mapping[str, Any]]],
) -> None:
    """Print the answer as a table, JSON, CSV or Markdown."""
    if form == "table":
        from zeroplan.render.rows.style import Style
        from zeroplan.render.table import print_blocks, terminal

        width, unicode = terminal()
        print_blocks(list(blocks(Style(unit=unit, width=width, unicode=unicode))))
        return
    click.echo(_text(form, unit, blocks, data, records), nl=False)


def _text(
    form: str,
    unit: str,
    blocks: Callable[[Style], Iterable[Block]],
    data: Callable[[], Mapping[str, Any]],
    records: Callable[[], Iterable[Mapping[str, Any]]],
) -> str:
    if form == "markdown":
        from zeroplan.render.markdown import markdown_text
        from zeroplan.render.rows.style import Style

        return markdown_text(blocks(Style(unit=unit)))
    from zeroplan.render.machine import csv_text, json_text

    return json_text(data()) if form == "json" else csv_text(records())
