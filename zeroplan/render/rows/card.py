"""The screen of `zeroplan fit` with one GPU: what fills it, what is in its memory, what moves, how long."""

from zeroplan.core.advice import Advice
from zeroplan.core.estimate import Estimate, in_psi
from zeroplan.core.ledger import Ledger, Term, Transfer
from zeroplan.core.moments import PHASES
from zeroplan.core.question import Question
from zeroplan.core.timing import link_bound, measured_by, split, traffic_time, transfer_time
from zeroplan.core.verdict import CardAnswer, StageAnswer
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.hosts import host
from zeroplan.render.labels import stage_label, stage_name
from zeroplan.render.notes import card_notes
from zeroplan.render.rows.bar import bar, legend, letters
from zeroplan.render.rows.stages import stages_grid
from zeroplan.render.rows.style import TIER_NAMES, VERDICT_STYLES, Style, left_cell
from zeroplan.render.rows.whole import binding_blocks, meters_grid, moments_grid, saving
from zeroplan.render.sentences import (
    asked_batch,
    asked_model,
    asked_scheme,
    assumptions,
    card_summary,
    not_counted,
    usable_memory,
    yardstick,
)
from zeroplan.units import GB, format_count, format_rate, format_ratio, format_seconds, format_size

SHOWN_PHASES = ("forward", "backward", "step")
"""The phases whose sums the screen shows; nothing more is alive while loading or saving."""


def card_blocks(question: Question, answer: CardAnswer, advice: Advice, style: Style) -> list[Block]:
    """The screen for one GPU."""
    shown = answer.recommended or answer.offered[-1]
    notes = card_notes(question, answer, advice, style.unit)
    return [
        Paragraph(card_summary(question, answer, style.unit), STRONG),
        *(binding_blocks(advice.binding, style.unit) if advice.binding else []),
        *([Paragraph(off, tight=True)] if (off := host(shown, style.unit)) else []),
        *([Paragraph(" ".join(notes), tight=True)] if notes else []),
        Paragraph(assumptions(question)),
        Paragraph(usable_memory(answer, question, style.unit), tight=True),
        _bars_grid(question, answer, style),
        _legend(question, style),
        stages_grid(question, {stage.stage: stage.estimate for stage in answer.stages}, style, peaks=False),
        *(ledger_blocks(shown, style) if shown.estimate else []),
        Paragraph(_footer(question, answer, shown), DIM),
    ]


def ledger_blocks(shown: StageAnswer, style: Style) -> list[Block]:
    """The memory and traffic ledgers of one stage."""
    found = shown.estimate
    assert found is not None  # the caller checked
    counted = found.plan.workload is not None and shown.meters is not None
    memory = [meters_grid(shown.meters, style), moments_grid(found, style)] if counted and shown.meters else []
    return [
        *(memory or [memory_grid(found, style)]),
        Paragraph(saving(found, style), tight=True),
        *_traffic_blocks(found, style),
    ]


def memory_grid(found: Estimate, style: Style) -> Grid:
    """The terms of one stage with the phases they live in and their formulas."""
    stage = found.plan.strategy.stage
    columns = (
        Column(f"{stage_label(stage)}, memory", wraps=True),
        Column(""),
        Column(style.unit, right=True),
        Column("alive", wraps=True),
        Column("formula", wraps=True),
    )
    rows = [_term_row(term, style) for term in found.memory.terms]
    return Grid(columns, (*rows, *(_phase_row(found, phase, style) for phase in SHOWN_PHASES)))


def _phase_row(found: Estimate, phase: str, style: Style) -> tuple[Cell, ...]:
    """What is alive in one phase; the peak stands out."""
    peak = phase in found.memory.peak_phases
    weight = STRONG if peak else ""
    size = style.size(found.memory.alive_bytes(phase))
    return cell(f"in {phase}", weight), cell(""), cell(size, weight), cell("peak" if peak else "", weight), cell("")


def _term_row(term: Term, style: Style) -> tuple[Cell, ...]:
    full = "SHARD" if term.sharded else "FULL" if term.role != "buffers" else ""
    full = full if term.tier == "gpu" else TIER_NAMES[term.tier]
    size = cell(style.size(term.bytes))
    return cell(term.what), cell(full), size, cell(_phases(term.phases)), cell(term.formula)


def _traffic_blocks(found: Estimate, style: Style) -> list[Block]:
    moved = (*found.traffic.transfers, *found.traffic.copies)
    if not moved:
        return [Paragraph("No traffic on one GPU.")]
    columns = (
        Column("Traffic per step", wraps=True),
        Column(f"{style.unit} sent", right=True),
        Column("elements", right=True),
        Column("phase"),
        Column("link s", right=True),
        Column("measured s", right=True),
    )
    rows = [_transfer_row(found, transfer, style) for transfer in found.traffic.transfers]
    rows += [_traffic_total(found, style)] if rows else []
    rows += [_transfer_row(found, copy, style) for copy in found.traffic.copies]
    return [Grid(columns, tuple(rows)), Paragraph(_bound(found, style.unit), tight=True)]


def _transfer_row(found: Estimate, transfer: Transfer, style: Style) -> tuple[Cell, ...]:
    time = transfer_time(transfer, found.plan.cluster)
    times = f" x {transfer.times_per_step}" if transfer.times_per_step > 1 else ""
    return (
        cell(f"{transfer.collective} {transfer.what}{times}{_over(found, transfer)}"),
        cell(style.size(transfer.wire_bytes)),
        cell(psi_text(in_psi(transfer.elements, found.plan.params))),
        cell(transfer.phase),
        cell(format_seconds(time.link)),
        cell(format_seconds(time.measured)),
    )


def _over(found: Estimate, transfer: Transfer) -> str:
    """Over how many GPUs, where that is not all: neighbours, or so many apart."""
    if transfer.gpus in (1, found.plan.gpus):
        return ""
    return f", over {format_count(transfer.gpus)}" + (", across" if transfer.stride > 1 else "")


def _traffic_total(found: Estimate, style: Style) -> tuple[Cell, ...]:
    return tuple(
        cell(text, STRONG)
        for text in (
            f"total ({format_ratio(found.ratio_to_data_parallel)} plain DP)",
            style.size(found.traffic.wire_bytes),
            psi_text(found.psi),
            "",
            format_seconds(found.time.link),
            format_seconds(found.time.measured),
        )
    )


def psi_text(psi: float) -> str:
    """Elements in units of the parameters: 2 Psi."""
    return f"{psi:.4g} Psi"


def _bound(found: Estimate, unit: str) -> str:
    cluster = found.plan.cluster
    bound = link_bound(cluster)
    if bound is None:
        return "Time is unknown: no node is known for this GPU and number. Give one with --node."
    measured = f" Measured{_faster(found)}: {'; '.join(sources)}." if (sources := _measured(found)) else ""
    return f"{_split(found, unit)}Bound by {bound.what}; --node to change.{_host_link(found)}{measured}"


def _measured(found: Estimate) -> list[str]:
    """Who measured the transfers whose time is known so."""
    cluster = found.plan.cluster
    known = [each for each in found.traffic.transfers if transfer_time(each, cluster).measured is not None]
    return list(dict.fromkeys(measured_by(cluster, each.gpus) for each in known))


def _faster(found: Estimate) -> str:
    link, measured = found.time
    return " (the switch reduces, faster than a ring)" if link and measured and measured < link else ""


def _host_link(found: Estimate) -> str:
    """What copies go over."""
    gpu = found.plan.cluster.gpu
    if not found.traffic.copies or gpu is None or gpu.host_link_gb_per_s is None:
        return ""
    return f" Copies at {format_rate(gpu.host_link_gb_per_s * GB)} ({gpu.host_link})."


def _split(found: Estimate, unit: str) -> str:
    """What stays in a node and what leaves it, with the time of each; empty where all goes the same way."""
    cluster = found.plan.cluster
    parts = split(found.traffic, cluster)
    if parts is None or not parts.inside.transfers or not parts.across.transfers:
        return ""
    inside, across = (traffic_time(moved, cluster).link for moved in (parts.inside, parts.across))
    sent, leaves = (format_size(size, unit) for size in (parts.inside.wire_bytes, parts.across_bytes))
    return (
        f"Inside nodes {sent} {unit} a GPU, {format_seconds(inside)} s; across them {leaves} {unit} "
        f"a node, {format_seconds(across)} s. "
    )


def _legend(question: Question, style: Style) -> Paragraph:
    shown = legend(question.counts_activations)
    pieces = shown if style.unicode else letters(shown)
    return Paragraph("".join(text for text, _ in pieces), tight=True, pieces=pieces)


def _bars_grid(question: Question, answer: CardAnswer, style: Style) -> Grid:
    width = min(max(style.width - (53 if question.counts_activations else 43), 12), 60)
    columns = (
        Column(""),
        Column("peak", right=True),
        *((Column("reserved", right=True),) if question.counts_activations else ()),
        Column(f"0 .. {style.size(answer.usable_bytes)} {style.unit} usable"),
        Column(f"left {style.unit}", right=True),
    )
    return Grid(columns, tuple(_bar_row(question, answer, stage, width, style) for stage in answer.stages))


def _bar_row(question: Question, answer: CardAnswer, stage: StageAnswer, width: int, style: Style) -> tuple[Cell, ...]:
    name = cell(stage_name(question, stage.stage), STRONG)
    if stage.estimate is None:
        unknown = (cell("-", DIM),) * (2 if question.counts_activations else 1)
        return name, *unknown, cell("not offered", DIM), cell("-", DIM)
    ledger: Ledger = stage.estimate.memory
    taken = stage.meters.reserved if stage.meters else None
    held = taken.expected if taken else ledger.peak_bytes
    shades = bar(ledger, held, answer.usable_bytes, answer.budget_bytes, width)
    drawn = Cell("", pieces=shades if style.unicode else letters(shades))
    peak = cell(style.size(ledger.peak_bytes), VERDICT_STYLES[stage.verdict])
    reserved = (cell(style.size(taken.expected), VERDICT_STYLES[stage.verdict]),) if taken else ()
    return name, peak, *reserved, drawn, left_cell(stage.verdict, stage.spare_bytes, style, stage.short)


def _phases(phases: tuple[str, ...]) -> str:
    return "always" if phases in (PHASES, PHASES[1:]) else ", ".join(phases)


def _footer(question: Question, answer: CardAnswer, shown: StageAnswer) -> str:
    framework = question.framework
    asked = [f"{asked_model(question)} --gpus {question.gpus} --stage {shown.stage}"]
    asked += [f"--framework {framework.name}"] if framework.name != "zero" else []
    asked += [f"--recipe {question.recipe.name}"] if question.recipe.name != framework.default_recipe else []
    asked += [f"--grad-accum {question.grad_accum}"] if question.grad_accum > 1 else []
    asked += [*asked_scheme(question), *asked_batch(question)]
    scale = f"{yardstick(shown.estimate)} " if shown.estimate and question.gpus > 1 else ""
    lacking = "" if question.counts_activations else f"Not counted: {not_counted(question)}. "
    asked += [f"--gpu {answer.card.gpu.name}"] if answer.card.gpu.usable_bytes_stated is None else []
    node = answer.card.node
    asked += [f"--node {node.name}"] if node and node.name != answer.card.gpu.node else []
    return f"{scale}{lacking}The formulas and sources: zeroplan explain {' '.join(asked)}"
