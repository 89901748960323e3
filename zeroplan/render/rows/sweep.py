"""The screen of `zeroplan sweep`: the paper's Table 1, and the traffic beside it."""

from zeroplan.core.meters import taken_bytes
from zeroplan.core.question import Card, Question
from zeroplan.core.sweep import FIELDS, SweepPoint
from zeroplan.core.verdict import DOES_NOT_FIT, FITS, NOT_OFFERED, TIGHT
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.labels import stage_label
from zeroplan.render.rows.style import SHORT_NAMES, VERDICT_STYLES, Style
from zeroplan.render.sentences import assumptions, tight_means
from zeroplan.units import counted, format_count, format_ratio

MARKS = {FITS: "", TIGHT: " tight", DOES_NOT_FIT: " no", NOT_OFFERED: ""}


def sweep_blocks(question: Question, over: str, points: list[SweepPoint], style: Style) -> list[Block]:
    """A row a value: the peak of every stage, on each card named, then the traffic."""
    values = [point.value for point in points]
    setting = assumptions(question, FIELDS[over], (min(values), max(values)))
    cards: list[Card | None] = list(question.cards) or [None]
    return [
        Paragraph(f"Memory and traffic per GPU over {counted(len(points), 'value')} of {over}.", STRONG),
        Paragraph(setting),
        *(block for card in cards for block in _memory_blocks(over, points, card, style)),
        _traffic_grid(over, points, style),
        *([Paragraph(f"no: does not fit. {tight_means(question)}", DIM)] if question.cards else []),
    ]


def _memory_blocks(over: str, points: list[SweepPoint], card: Card | None, style: Style) -> list[Block]:
    stages = list(points[0].estimates)
    columns = (
        Column(f"{_what(points)} {style.unit}, {over}", right=True),
        *(Column(stage_label(s), right=True) for s in stages),
    )
    grid = Grid(columns, tuple(_row(p, [_peak(p, s, card, style) for s in stages]) for p in points))
    if card is None:
        return [grid]
    budgets = dict.fromkeys(style.size(point.question.budget_bytes(card)) for point in points)
    return [Paragraph(f"On {card.gpu.title}, a budget of {' or '.join(budgets)} {style.unit}:"), grid]


def _what(points: list[SweepPoint]) -> str:
    return "reserved" if points[0].question.counts_activations else "peak"


def _traffic_grid(over: str, points: list[SweepPoint], style: Style) -> Grid:
    stages = list(points[0].estimates)
    columns = (
        Column(f"{style.unit} sent, {over}", right=True),
        *(Column(stage_label(s), right=True) for s in stages),
    )
    return Grid(columns, tuple(_row(p, [_sent(p, s, style) for s in stages]) for p in points))


def _row(point: SweepPoint, cells: list[Cell]) -> tuple[Cell, ...]:
    return (cell(format_count(point.value), STRONG), *cells)


def _peak(point: SweepPoint, stage: int, card: Card | None, style: Style) -> Cell:
    found = point.estimates[stage]
    if found is None:
        return cell("-", DIM)
    size = style.size(taken_bytes(found))
    if card is None:
        return cell(size)
    verdict = point.verdict(stage, card)
    short = point.short(stage, card)
    why = f" {SHORT_NAMES[short.name]}" if short else ""
    return cell(f"{size}{MARKS[verdict]}{why}", VERDICT_STYLES[verdict])


def _sent(point: SweepPoint, stage: int, style: Style) -> Cell:
    found = point.estimates[stage]
    if found is None:
        return cell("-", DIM)
    ratio = format_ratio(found.ratio_to_data_parallel) if found.ratio_to_data_parallel is not None else "-"
    return cell(f"{style.size(found.traffic.wire_bytes)} {ratio:>5}")
