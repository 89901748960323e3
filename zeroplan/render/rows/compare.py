"""The screen of `zeroplan compare`: cards side by side."""

from zeroplan.core.compare import Comparison
from zeroplan.core.question import Question
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.rows.style import VERDICT_STYLES, Style, left_cell
from zeroplan.render.sentences import assumptions, cards_summary, stage_label
from zeroplan.units import format_count, format_number, format_seconds


def compare_blocks(question: Question, rows: list[Comparison], style: Style) -> list[Block]:
    """The screen: the answer, the cards, what the columns mean."""
    answers = tuple(row.answer for row in rows)
    summary = cards_summary(answers) if len(answers) <= 8 else _counted(rows)
    return [
        Paragraph(summary, STRONG),
        Paragraph(assumptions(question)),
        _grid(question, rows, style),
        Paragraph(_footer(style), DIM),
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
    )
    return Grid(columns, tuple(_row(row, stages, style) for row in rows))


def _row(row: Comparison, stages: list[int], style: Style) -> tuple[Cell, ...]:
    answer, best = row.answer, row.answer.recommended
    if best is None or best.estimate is None:
        lowest, left, seconds = cell("none"), cell("no"), cell("-")
    else:
        lowest = cell(stage_label(best.stage), VERDICT_STYLES[best.verdict])
        left = left_cell(best.verdict, best.spare_bytes, style)
        seconds = cell(format_seconds(best.estimate.time.link))
    price = cell(format_number(row.price.usd_per_hour, 0) if row.price else "unknown")
    return (
        cell(answer.card.gpu.name),
        cell(style.size(answer.usable_bytes, 1)),
        lowest,
        left,
        seconds,
        *(_least(row.min_gpus[stage]) for stage in stages),
        price,
    )


def _least(gpus: int | None) -> Cell:
    return cell("never", DIM) if gpus is None else cell(format_count(gpus))


def _counted(rows: list[Comparison]) -> str:
    """How many cards have which lowest stage."""
    stages: dict[str, int] = {}
    for row in rows:
        best = row.answer.recommended
        name = f"{stage_label(best.stage)} is the lowest stage" if best else "nothing fits"
        stages[name] = stages.get(name, 0) + 1
    return "; ".join(f"{name} on {count} of {len(rows)} cards" for name, count in sorted(stages.items())) + "."


def _footer(style: Style) -> str:
    return (
        f"usable, left: {style.unit} per GPU, left of the budget at the lowest stage. tight: fits only by using the "
        "headroom. link s: a bound on the step's traffic. Z0 to Z3: the fewest GPUs at which the stage fits. USD/h: "
        "all nodes, at the cheapest on-demand price known of a node with this GPU; --format json names it. "
        "Sort with --sort."
    )
