"""The screens of `zeroplan presets`: the kinds, the presets of a kind, one preset with its sources."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from zeroplan.core.framework import Framework
from zeroplan.core.hardware import Gpu, Node
from zeroplan.core.loss import Loss
from zeroplan.core.recipe import Recipe
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.rows.style import Style
from zeroplan.units import GB, counted, format_exact, format_number, format_rate

BUSBW = "busbw_gb_per_s"
BILLION = 10**9
UNSAID = (
    *(
        ("torch_derived", False),
        ("link_domain_gpus", 0),
        ("several_gpus", False),
        ("fusible_bytes", 0),
        ("tier", "gpu"),
        ("copies", 1),
        ("recomputing", False),
    ),
    *(("stream", "compute"), ("gradients_stream", "compute"), ("gradients_in_backward", ("end",))),
)
"""Fields that say nothing at their default."""


def kinds_blocks(counts: Mapping[str, int]) -> list[Block]:
    """How many presets there are of each kind."""
    rows = tuple((cell(kind, STRONG), cell(count), cell(f"zeroplan presets {kind}")) for kind, count in counts.items())
    return [Grid((Column("kind"), Column("presets", right=True), Column("list them")), rows)]


def kind_blocks(kind: str, records: list[Any], style: Style) -> list[Block]:
    """All presets of a kind, a row each."""
    columns, row = _LISTS.get(kind, (_plain_columns, _plain_row))
    heads = tuple(Column(h, right=h in _NUMBERS, wraps=h in ("title", "states")) for h in columns(style))
    rows = tuple((cell(record.name, STRONG), *row(record, style)) for record in records)
    return [
        Grid((Column("name"), *heads), rows),
        Paragraph(f"One with its sources: zeroplan presets {kind} {records[0].name}", DIM),
    ]


def preset_blocks(kind: str, record: Any, style: Style) -> list[Block]:
    """Every field of one preset that is set."""
    heading = ("name", "title")
    simple = [(key, value) for key, value in _set_fields(record) if key not in heading and not _is_table(value)]
    tables = [(key, value) for key, value in _set_fields(record) if _is_table(value)]
    unit = "GPU" if isinstance(record, Gpu) else "node"
    said = [(key, _busbw(value, unit) if key == BUSBW else _shown(value)) for key, value in simple]
    rows = tuple((cell(key, DIM), cell(text)) for key, text in said)
    blocks: list[Block] = [
        Paragraph(f"{kind} {record.name}: {record.title}", STRONG),
        *([Paragraph(_usable(record, style), tight=True)] if isinstance(record, Gpu) else []),
        *([_model_counts(record)] if kind == "model" else []),
        Grid((Column("field"), Column("value", wraps=True)), rows),
    ]
    for key, value in tables:
        blocks += _table(key, value)
    return blocks


def _busbw(figures: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Measured bandwidths by collective and by the number of GPUs or nodes."""
    return "; ".join(
        f"{collective} on {', '.join(f'{counted(int(n), unit)} {rate:g}' for n, rate in by_count.items())}"
        for collective, by_count in figures.items()
    )


def _usable(gpu: Gpu, style: Style) -> str:
    usable, total, context = map(style.size, (gpu.usable_bytes, gpu.torch_total_bytes, gpu.context_bytes))
    return (
        f"{usable} {style.unit} usable ({gpu.provenance}): PyTorch's total of {total} less {context} of CUDA context."
    )


def _gpu_columns(style: Style) -> tuple[str, ...]:
    return (f"usable {style.unit}", "known", "link", "usual node")


def _gpu_row(gpu: Gpu, style: Style) -> tuple[Cell, ...]:
    link = format_rate(gpu.link_gb_per_s * GB) if gpu.link_gb_per_s is not None else "-"
    return cell(style.size(gpu.usable_bytes)), cell(gpu.provenance), cell(link), cell(gpu.node or "-")


def _node_columns(_style: Style) -> tuple[str, ...]:
    return ("GPU", "GPUs", "link", "NICs", "USD/h")


def _node_row(node: Node, _style: Style) -> tuple[Cell, ...]:
    network = format_rate(node.network_bytes_per_s) if node.network_bytes_per_s is not None else "unknown"
    price = format_number(node.price_usd_per_hour, 2) if node.price_usd_per_hour is not None else "unknown"
    return (
        cell(node.gpu),
        cell(node.gpus_per_node),
        cell(format_rate(node.link_gb_per_s * GB)),
        cell(network),
        cell(price),
    )


def _recipe_columns(_style: Style) -> tuple[str, ...]:
    return ("bytes", "states", "title")


def _recipe_row(recipe: Recipe, _style: Style) -> tuple[Cell, ...]:
    states = " + ".join(str(state.bytes) for state in recipe.states)
    return cell(recipe.bytes_per_parameter), cell(states), cell(recipe.title)


def _framework_columns(_style: Style) -> tuple[str, ...]:
    return ("stages", "default recipe", "title")


def _framework_row(framework: Framework, _style: Style) -> tuple[Cell, ...]:
    return (
        cell(", ".join(map(str, framework.stage_numbers))),
        cell(framework.default_recipe),
        cell(framework.title),
    )


def _model_columns(_style: Style) -> tuple[str, ...]:
    return ("billions", "active", "blocks", "title")


def _model_row(preset: Any, _style: Style) -> tuple[Cell, ...]:
    model = preset.model
    active = _billions(model.active_params) if model.active_params != model.params else "-"
    blocks = " + ".join(str(sum(run.count for run in stack.runs)) for stack in model.stacks)
    return cell(_billions(model.params)), cell(active), cell(blocks), cell(preset.title)


def _billions(count: int) -> str:
    return format_number(count / BILLION, 3)


def _model_counts(preset: Any) -> Paragraph:
    """A model's parameters, and where they sit."""
    model = preset.model
    runs = [(run.count, run.block.params) for stack in model.stacks for run in stack.runs]
    sizes = dict.fromkeys(size for _, size in runs)
    blocks = [(sum(count for count, each in runs if each == size), size) for size in sizes]
    inside = " + ".join(f"{format_exact(count)} x {format_exact(size)}" for count, size in blocks)
    active = f", {format_exact(model.active_params)} active" if model.active_params != model.params else ""
    total, outside = map(format_exact, (model.params, model.root_params))
    return Paragraph(f"{total} parameters{active}: blocks {inside}, outside them {outside}.", tight=True)


def _loss_columns(_style: Style) -> tuple[str, ...]:
    return ("kept", "forward", "backward", "chunks", "title")


def _loss_row(loss: Loss, _style: Style) -> tuple[Cell, ...]:
    chunks = loss.chunks or "V/h"
    return tuple(map(cell, (loss.kept_bytes, loss.forward_bytes, loss.backward_bytes, chunks, loss.title)))


def _plain_columns(_style: Style) -> tuple[str, ...]:
    return ("title",)


def _plain_row(record: Any, _style: Style) -> tuple[Cell, ...]:
    return (cell(record.title),)


_LISTS: dict[str, Any] = {
    "gpu": (_gpu_columns, _gpu_row),
    "node": (_node_columns, _node_row),
    "recipe": (_recipe_columns, _recipe_row),
    "framework": (_framework_columns, _framework_row),
    "model": (_model_columns, _model_row),
    "loss": (_loss_columns, _loss_row),
}
_NUMBERS = {
    "kept",
    "forward",
    "backward",
    "chunks",
    "billions",
    "active",
    "blocks",
    "usable GB",
    "usable GiB",
    "link",
    "NICs",
    "USD/h",
    "GPUs",
    "bytes",
}


def _set_fields(record: Any) -> list[tuple[str, Any]]:
    pairs = [(field.name, getattr(record, field.name)) for field in fields(record)]
    return [(key, value) for key, value in pairs if value not in (None, "", (), {}) and (key, value) not in UNSAID]


def _is_table(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and hasattr(value[0], "__dataclass_fields__")


def _table(key: str, records: tuple[Any, ...]) -> list[Block]:
    """A paragraph for each record of a list: what it is, what else it says, its source."""
    blocks: list[Block] = [Paragraph(key, STRONG)]
    for record in records:
        (_, first), *rest = [(name, value) for name, value in _set_fields(record) if name != "source"]
        said = "; ".join(f"{name} {_shown(value)}" for name, value in rest)
        blocks.append(Paragraph(f"{_shown(first)}: {said}", tight=True, indent=2))
        source = getattr(record, "source", "")
        blocks += [Paragraph(source, DIM, tight=True, indent=4)] if source else []
    return blocks


def _shown(value: Any) -> str:
    if hasattr(value, "__dataclass_fields__"):
        return "; ".join(f"{key} {_shown(inner)}" for key, inner in _set_fields(value))
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_shown(inner)}" for key, inner in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_exact(value) if isinstance(value, int) else str(value)
