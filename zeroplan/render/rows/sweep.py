"""The screen of `zeroplan sweep`: the paper's Table 1, and the traffic beside it."""

from zeroplan.core.question import Question
from zeroplan.core.sweep import SweepPoint
from zeroplan.core.verdict import DOES_NOT_FIT, FITS, NOT_OFFERED, TIGHT
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.rows.style import VERDICT_STYLES, Style
from zeroplan.render.sentences import assumptions, listed, stage_label
from zeroplan.units import format_count, format_ratio

MARKS = {FITS: "", TIGHT: " tight", DOES_NOT_FIT: " no", NOT_OFFERED: ""}


def sweep_blocks(question: Question, over: str, points: list[SweepPoint], style: Style) -> list[Block]:
    """A row a value: the peak of every stage, then its traffic."""
    cards = question.cards
    return [
        Paragraph(f"Peak memory and traffic per GPU over {len(points)} values of {over}.", STRONG),
        Paragraph(f"At the first value: {assumptions(points[0].question)}"),
        _memory_grid(over, points, style),
        _traffic_grid(over, points, style),
        *([Paragraph(_fit_note(question), DIM)] if cards else []),
    ]


def _memory_grid(over: str, points: list[SweepPoint], style: Style) -> Grid:
    stages = list(points[0].estimates)
    columns = (
        Column(f"peak {style.unit}, {over}", right=True),
        *(Column(stage_label(s), right=True) for s in stages),
    )
    return Grid(columns, tuple(_row(p, [_peak(p, s, style) for s in stages]) for p in points))


def _traffic_grid(over: str, points: list[SweepPoint], style: Style) -> Grid:
    stages = list(points[0].estimates)
    columns = (
        Column(f"{style.unit} sent, {over}", right=True),
        *(Column(stage_label(s), right=True) for s in stages),
    )
    return Grid(columns, tuple(_row(p, [_sent(p, s, style) for s in stages]) for p in points))


def _row(point: SweepPoint, cells: list[Cell]) -> tuple[Cell, ...]:
    return (cell(format_count(point.value), STRONG), *cells)


def _peak(point: SweepPoint, stage: int, style: Style) -> Cell:
    found = point.estimates[stage]
    if found is None:
        return cell("-", DIM)
    size = style.size(found.memory.peak_bytes)
    if len(point.question.cards) != 1:
        return cell(size)
    verdict = point.verdict(stage, point.question.cards[0])
    return cell(f"{size}{MARKS[verdict]}", VERDICT_STYLES[verdict])


def _sent(point: SweepPoint, stage: int, style: Style) -> Cell:
    found = point.estimates[stage]
    if found is None:
        return cell("-", DIM)
    ratio = format_ratio(found.ratio_to_data_parallel) if found.ratio_to_data_parallel is not None else "-"
    return cell(f"{style.size(found.traffic.wire_bytes)} {ratio:>5}")


def _fit_note(question: Question) -> str:
    names = listed(card.gpu.name for card in question.cards)
    if len(question.cards) == 1:
        return f"no: does not fit on {names}. tight: fits only by using the headroom."
    return f"Verdicts for {names}: --format json or csv."
