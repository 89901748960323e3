"""`zeroplan presets`: what is in the catalog, with its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from zeroplan.cli import ANSWERED
from zeroplan.cli.options import SHARED, GroupedCommand, output_only, starting
from zeroplan.cli.output import show
from zeroplan.errors import unknown_name
from zeroplan.formats.kinds import KINDS
from zeroplan.formats.presets import Presets

if TYPE_CHECKING:  # a JSON answer needs no screen
    from zeroplan.render.blocks import Block
    from zeroplan.render.rows.style import Style


@click.command("presets", cls=GroupedCommand, short_help="GPUs, nodes, recipes, frameworks, models.")
@click.argument("kind", required=False, shell_complete=starting(lambda: KINDS))
@click.argument("name", required=False)
@SHARED["presets"]
@output_only
def command(kind: str | None, name: str | None, presets: str | None, **options: Any) -> int:
    """List and show GPUs, nodes, recipes, frameworks, models and words with their sources.

    \b
    Example: zeroplan presets gpu
    Example: zeroplan presets gpu a100-80gb
    """
    catalog = Presets(presets)
    if kind is not None and kind not in KINDS:
        raise unknown_name("presets", "kind", kind, KINDS, f"Kinds are {', '.join(KINDS)}.")
    show(
        options["format"],
        options["unit"],
        lambda style: _blocks(catalog, kind, name, style),
        lambda: _json(_found(catalog, kind, name)),
        lambda: _rows(_json(_found(catalog, kind, name))["results"]),
    )
    return ANSWERED


def _rows(results: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [{"kind": kind, **record} for kind, records in results.items() for record in records]


def _found(catalog: Presets, kind: str | None, name: str | None) -> dict[str, list[Any]]:
    if kind is None:
        return {each: catalog.all(each) for each in KINDS}
    return {kind: [catalog.get(kind, name)] if name is not None else catalog.all(kind)}


def _blocks(catalog: Presets, kind: str | None, name: str | None, style: Style) -> list[Block]:
    from zeroplan.render.rows.presets import kind_blocks, kinds_blocks, preset_blocks

    if kind is None:
        return kinds_blocks({each: len(catalog.names(each)) for each in KINDS})
    found = _found(catalog, kind, name)
    return preset_blocks(kind, found[kind][0], style) if name is not None else kind_blocks(kind, found[kind], style)


def _json(found: dict[str, list[Any]]) -> dict[str, Any]:
    from zeroplan.render.answers import preset_json
    from zeroplan.render.machine import header

    return {
        **header("presets"),
        "results": {kind: [preset_json(r) for r in records] for kind, records in found.items()},
    }
