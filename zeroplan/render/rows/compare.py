"""The screen of `zeroplan compare`: cards side by side."""

from zeroplan.core.compare import Comparison
from zeroplan.core.question import Question
from zeroplan.core.verdict import TIGHT
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.labels import stage_label
from zeroplan.render.rows.style import VERDICT_STYLES, Style, left_cell
from zeroplan.render.sentences import assumptions, cards_summary, tight_means
from zeroplan.units import format_count, format_number, format_seconds

ROOMY = 100
"""Columns from which the node has a column of its own."""


def compare_blocks(question: Question, rows: list[Comparison], style: Style) -> list[Block]:
    """The screen: the answer, the cards, what the columns mean."""
    answers = tuple(row.answer for row in rows)
    summary = cards_summary(question, answers) if len(answers) <= 8 else _counted(rows)
    cheapest = _cheapest(rows)
    return [
        Paragraph(summary, STRONG),
        *([Paragraph(cheapest, tight=True)] if cheapest else []),
        Paragraph(assumptions(question)),
        _grid(question, rows, style),
        Paragraph(_footer(question, style), DIM),
    ]


def _grid(question: Question, rows: list[Comparison], style: Style) -> Grid:
    stages = [stage for stage in question.stages if question.offers(stage)]
    columns = (
        Column("GPU"),
        Column("usable", right=True),
        Column("lowest", right=True),
        Column("left", right=True),
        Column("link s", right=True),
        *(Column(f"Z{stage}", right=True) for stage in stages),
        Column("USD/h", right=True),
        *((Column("node"),) if style.width >= ROOMY else ()),
    )
    return Grid(columns, tuple(_row(row, stages, style) for row in rows))


def _row(row: Comparison, stages: list[int], style: Style) -> tuple[Cell, ...]:
    answer, best = row.answer, row.answer.recommended
    if best is None or best.estimate is None:
        lowest, left, seconds = cell("none"), cell("no"), cell("-")
    else:
        lowest = cell(stage_label(best.stage), VERDICT_STYLES[best.verdict])
        left = left_cell(best.verdict, best.spare_bytes, style, best.short)
        seconds = cell(format_seconds(best.estimate.time.link))
    node = answer.card.node.name if answer.card.node else "unknown"
    return (
        cell(answer.card.gpu.name),
        cell(style.size(answer.usable_bytes, 1)),
        lowest,
        left,
        seconds,
        *(_least(row.min_gpus[stage]) for stage in stages),
        cell(_price(row)),
        *((cell(node),) if style.width >= ROOMY else ()),
    )


def _price(row: Comparison) -> str:
    return "unknown" if row.usd_per_hour is None else format_number(row.usd_per_hour, 0)


def _least(gpus: int | None) -> Cell:
    return cell("never", DIM) if gpus is None else cell(format_count(gpus))


def _counted(rows: list[Comparison]) -> str:
    """How many cards have which lowest stage."""
    stages: dict[str, int] = {}
    for row in rows:
        best = row.answer.recommended
        tight = ", tight," if best and best.verdict == TIGHT else ""
        name = f"{stage_label(best.stage)}{tight} is the lowest stage" if best else "nothing fits"
        stages[name] = stages.get(name, 0) + 1
    return "; ".join(f"{name} on {count} of {len(rows)} cards" for name, count in sorted(stages.items())) + "."


def _cheapest(rows: list[Comparison]) -> str:
    """The card that costs least by the hour among those where something fits."""
    priced = [row for row in rows if row.usd_per_hour is not None and row.answer.recommended]
    if len(priced) < 2:
        return ""
    best = min(priced, key=lambda row: row.usd_per_hour or 0)
    card, stage = best.answer.card, best.answer.recommended
    node = card.node.name if card.node else "unknown"
    tight = ", tight" if stage and stage.verdict == TIGHT else ""
    where = f"{card.gpu.name} in {node}" + (f", {stage_label(stage.stage)}{tight}" if stage else "")
    return f"Cheapest by the hour, of {len(priced)} with a known price: {where}, {_price(best)} USD/h."


def _footer(question: Question, style: Style) -> str:
    counted = question.counts_activations
    whole = "it fits, tight apart" if counted else "the states fit; --headroom leaves room for activations"
    return (
        f"usable, left: {style.unit} per GPU, left of the budget at the lowest stage"
        f"{'' if counted else ' for activations'}. {tight_means(question)} link s: the step's traffic by a ring at "
        f"link speed. Z0 to Z3: the fewest GPUs at which {whole}. USD/h: all nodes, on demand. It "
        "and link s are of the same node: that of --node, else the cheapest to rent, else the usual one; json and csv "
        "name it. Sort with --sort."
    )
