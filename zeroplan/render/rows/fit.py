"""The screen of `zeroplan fit` with several GPUs: the answer, the stages, the cards."""

from collections.abc import Sequence

from zeroplan.core.advice import Advice
from zeroplan.core.question import Question
from zeroplan.core.verdict import CardAnswer
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.labels import stage_label
from zeroplan.render.notes import cards_notes
from zeroplan.render.rows.stages import stages_grid
from zeroplan.render.rows.style import VERDICT_STYLES, Style, left_cell
from zeroplan.render.sentences import assumptions, cards_summary, not_counted, tight_means, yardstick
from zeroplan.units import format_seconds


def fit_blocks(
    question: Question, answers: tuple[CardAnswer, ...], advices: Sequence[Advice], style: Style
) -> list[Block]:
    """The screen for several GPUs."""
    estimates = {stage.stage: stage.estimate for stage in answers[0].stages}
    notes = cards_notes(question, answers, advices, style.unit)
    return [
        Paragraph(cards_summary(question, answers), STRONG),
        *([Paragraph(" ".join(notes), tight=True)] if notes else []),
        Paragraph(assumptions(question)),
        stages_grid(question, estimates, style),
        _cards_grid(answers, style),
        Paragraph(_footer(question, answers, style), DIM),
    ]


def _cards_grid(answers: tuple[CardAnswer, ...], style: Style) -> Grid:
    stages = [stage.stage for stage in answers[0].stages]
    columns = (
        Column(f"{style.unit} left per GPU"),
        Column("usable", right=True),
        *(Column(stage_label(stage), right=True) for stage in stages),
        Column("lowest", right=True),
        Column("link s", right=True),
    )
    return Grid(columns, tuple(_card_row(answer, style) for answer in answers))


def _card_row(answer: CardAnswer, style: Style) -> tuple[Cell, ...]:
    best = answer.recommended
    seconds = best.estimate.time.link if best and best.estimate else None
    return (
        cell(answer.card.gpu.title),
        cell(style.size(answer.usable_bytes)),
        *(left_cell(stage.verdict, stage.spare_bytes, style, stage.short) for stage in answer.stages),
        cell(stage_label(best.stage), VERDICT_STYLES[best.verdict]) if best else cell("none"),
        cell(format_seconds(seconds) if best else "-"),
    )


def _left(question: Question) -> str:
    if question.counts_activations:
        return f"left: of usable memory, with what the allocator is expected to take. {tight_means(question)}"
    return f"left: of usable memory less the headroom. Not counted: {not_counted(question)}. {tight_means(question)}"


def _footer(question: Question, answers: tuple[CardAnswer, ...], style: Style) -> str:
    size = "GB is 1e9 bytes." if style.unit == "GB" else "GiB is 2^30 bytes."
    aliases = [f"{a.card.asked} is {a.card.gpu.name}. " for a in answers if a.card.asked]
    found = answers[0].offered[0].estimate
    scale = f"{yardstick(found)} " if found and question.gpus > 1 else ""
    return (
        f"{''.join(aliases)}{_left(question)} {scale}link s: the step's "
        "traffic at the lowest stage by a ring at datasheet link speed, in each card's usual node "
        f"(zeroplan presets gpu). {size} One GPU in detail: --gpu a100-80gb."
    )
