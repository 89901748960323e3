"""The screen of `zeroplan explain`: each number with its formula, its inputs and its source."""

from collections.abc import Mapping, Sequence

from zeroplan.core.claims import ClaimedBytes
from zeroplan.core.estimate import Estimate, in_psi
from zeroplan.core.ledger import Term, Transfer
from zeroplan.core.moments import MOMENTS, PHASES, phase_of
from zeroplan.core.question import Question
from zeroplan.core.timing import link_bound, measured_by
from zeroplan.core.verdict import CardAnswer, StageAnswer
from zeroplan.render.blocks import DIM, STRONG, Block, Column, Grid, Paragraph, cell
from zeroplan.render.hosts import host
from zeroplan.render.labels import stage_name
from zeroplan.render.rows.card import psi_text
from zeroplan.render.rows.style import TIER_NAMES, Style
from zeroplan.render.sentences import TIER_WORDS, assumptions, usable_memory
from zeroplan.units import format_exact, format_ratio, format_seconds


def plan_blocks(
    question: Question,
    found: Estimate,
    terms: Sequence[Term],
    transfers: Sequence[Transfer],
    claims: Sequence[ClaimedBytes],
    style: Style,
) -> list[Block]:
    """Every term, transfer and claim of one stage: a row each, then their inputs and sources."""
    sources = _Sources()
    grids = [_terms_grid(found, terms, sources, style), _transfers_grid(found, transfers, sources, style)]
    inputs = {name: value for given in _inputs(terms, transfers) for name, value in given.items()}
    notes = [note for note in (found.plan.stage.notes, found.plan.framework.notes) if note]
    return [
        Paragraph(f"{stage_name(question, found.plan.strategy.stage)}: {_totals(found, style)}", STRONG),
        Paragraph(assumptions(question)),
        *(grid for grid in grids if grid.rows),
        *([Paragraph(f"With {_given(inputs)}.")] if inputs else []),
        *peak_blocks(found, style),
        *(block for claim in claims for block in _claim(claim, style)),
        *sources.blocks(),
        *([Paragraph(" ".join(notes), DIM)] if notes else []),
    ]


def part_blocks(
    found: Estimate,
    terms: Sequence[Term],
    transfers: Sequence[Transfer],
    claims: Sequence[ClaimedBytes],
    style: Style,
) -> list[Block]:
    """A few terms, transfers and claims, each in full."""
    return [
        *(block for term in terms for block in _term(term, style)),
        *(block for transfer in transfers for block in _transfer(found, transfer, style)),
        *(block for claim in claims for block in _claim(claim, style)),
    ]


def peak_blocks(found: Estimate, style: Style) -> list[Block]:
    """What is alive in each phase, with activations at each moment of it, and where the peak is."""
    memory = found.memory
    columns = (Column("alive in"), Column(style.unit, right=True), Column("bytes", right=True), Column(""))
    if found.plan.workload is None:
        parts = [(phase, memory.alive_bytes(phase), phase in memory.peak_phases) for phase in PHASES]
    else:
        named = {moment: phase_of(moment) for moment in MOMENTS}
        parts = [
            (phase if phase == moment else f"{phase}, {moment}", memory.bytes_at(moment), moment == memory.peak_moment)
            for moment, phase in named.items()
        ]
    rows = tuple(
        (cell(name), cell(style.size(size)), cell(format_exact(size)), cell("peak" if peak else "", STRONG))
        for name, size, peak in parts
    )
    return [Grid(columns, rows)]


def time_blocks(found: Estimate) -> list[Block]:
    """Where the time of the traffic comes from."""
    bound = link_bound(found.plan.cluster)
    if bound is None:
        return [Paragraph("Time of the traffic: unknown; name a GPU whose node is known, or --node.")]
    sent, rate = found.traffic.wire_bytes, bound.bytes_per_s
    worked = f"{format_exact(sent)} bytes sent / {format_exact(rate)} bytes per second: {bound.what}"
    if any(transfer.gpus != found.plan.gpus for transfer in found.traffic.transfers):
        worked = "each transfer's bytes over what bounds the rings of its groups, one transfer after the other"
    source = "nobody measured all of them" if found.time.measured is None else measured_by(found.plan.cluster)
    return [
        Paragraph(f"time by a ring at link speed: {_seconds(found.time.link)}", STRONG),
        Paragraph(worked, tight=True, indent=2),
        Paragraph(f"time at measured bandwidth: {_seconds(found.time.measured)}", STRONG),
        Paragraph("each collective's bytes over the bus bandwidth measured on so many GPUs", tight=True, indent=2),
        Paragraph(f"Source: {source}", DIM, tight=True, indent=2),
    ]


def memory_blocks(question: Question, answer: CardAnswer, style: Style) -> list[Block]:
    """Where a card's budget comes from."""
    gpu = answer.card.gpu
    return [
        Paragraph(f"usable memory, {gpu.title}", STRONG),
        Paragraph(usable_memory(answer, question, style.unit), tight=True, indent=2),
        Paragraph(_verdict(answer.stages[0], style), tight=True, indent=2),
        *([Paragraph(off, tight=True, indent=2)] if (off := host(answer.stages[0], style.unit)) else []),
        Paragraph(f"Source: {gpu.memory_source}", DIM, tight=True, indent=2),
    ]


def _seconds(seconds: float | None) -> str:
    return format_seconds(seconds) if seconds is None else f"{format_seconds(seconds)} s"


def _verdict(stage: StageAnswer, style: Style) -> str:
    if stage.estimate is None or stage.spare_bytes is None:
        return f"verdict: {stage.verdict}"
    spare = style.size(stage.spare_bytes)
    reserved = stage.meters.reserved if stage.meters else None
    if reserved:
        low, expected, high = map(style.size, reserved)
        taken = f"the {expected} that the allocator is expected to take ({low} to {high})"
    else:
        taken = f"the peak of {style.size(stage.estimate.memory.peak_bytes)}"
    return f"verdict: {stage.verdict}; the budget less {taken} is {spare} {style.unit}"


def _totals(found: Estimate, style: Style) -> str:
    memory, moved = found.memory, found.traffic
    ratio = found.ratio_to_data_parallel
    sent = f"{style.size(moved.wire_bytes)} {style.unit} sent per step"
    return (
        f"{style.size(memory.resident_bytes)} {style.unit} of states, peak {style.size(memory.peak_bytes)} "
        f"{style.unit} per GPU; {sent}{f', {format_ratio(ratio)} of plain data parallelism' if ratio else ''}."
    )


def _inputs(terms: Sequence[Term], transfers: Sequence[Transfer]) -> list[Mapping[str, int]]:
    return [*(term.inputs for term in terms), *(transfer.inputs for transfer in transfers)]


class _Sources:
    """Numbers sources in the order in which they are named."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, source: str) -> str:
        return f"[{self._numbers.setdefault(source, len(self._numbers) + 1)}]"

    def blocks(self) -> list[Block]:
        lines = [f"[{number}] {source}" for source, number in self._numbers.items()]
        return [Paragraph(line, DIM, tight=bool(place)) for place, line in enumerate(lines)]


def _terms_grid(found: Estimate, terms: Sequence[Term], sources: _Sources, style: Style) -> Grid:
    counted, moment = found.plan.workload is not None, found.memory.peak_moment
    columns = (
        Column("memory"),
        Column(style.unit, right=True),
        Column("formula", wraps=True),
        Column("at peak"),
        Column("source"),
    )
    rows = tuple(
        (
            cell(term.name),
            cell(style.size(term.bytes)),
            cell(term.formula),
            cell(TIER_NAMES.get(term.tier, "yes" if moment in term.moments else "")),
            cell(sources.number(term.source), DIM),
        )
        for term in terms
    )
    peak = (
        cell("peak", STRONG),
        cell(style.size(found.memory.peak_bytes), STRONG),
        cell("sum of the terms alive"),
    )
    when = moment if counted else f"in {', '.join(found.memory.peak_phases)}"
    return Grid(columns, (*rows, (*peak, cell(when), cell(""))), padding=1)


def _transfers_grid(found: Estimate, transfers: Sequence[Transfer], sources: _Sources, style: Style) -> Grid:
    columns = (
        Column("traffic"),
        Column(f"{style.unit} sent", right=True),
        Column("times * passes * bytes * elements", wraps=True),
        Column("elements", right=True),
        Column("source"),
    )
    rows = tuple(
        (
            cell(f"{transfer.collective} {transfer.what}"),
            cell(style.size(transfer.wire_bytes)),
            cell(transfer.formula),
            cell(psi_text(in_psi(transfer.elements, found.plan.params))),
            cell(sources.number(transfer.source), DIM),
        )
        for transfer in transfers
    )
    return Grid(columns, rows, padding=1)


def _term(term: Term, style: Style) -> list[Block]:
    kind = "one shard" if term.sharded else "whole"
    where = f", on {TIER_WORDS[term.tier]}" if term.tier != "gpu" else ""
    return [
        Paragraph(f"{term.name} ({term.what}): {style.size(term.bytes)} {style.unit}", STRONG),
        Paragraph(_worked(term.formula, term.inputs, term.bytes), tight=True, indent=2),
        Paragraph(f"{kind}{where}; alive in {', '.join(term.phases)}", tight=True, indent=2),
        Paragraph(f"Source: {term.source}", DIM, tight=True, indent=2),
    ]


def _transfer(found: Estimate, transfer: Transfer, style: Style) -> list[Block]:
    psi = psi_text(in_psi(transfer.elements, found.plan.params))
    size = f"{style.size(transfer.wire_bytes)} {style.unit} sent, {psi}"
    return [
        Paragraph(f"{transfer.collective} of {transfer.what} ({transfer.phase}): {size}", STRONG),
        Paragraph(_worked(transfer.formula, transfer.inputs, transfer.wire_bytes), tight=True, indent=2),
        Paragraph("times per step * passes of the ring * bytes per element * elements", tight=True, indent=2),
        Paragraph(f"Source: {transfer.source}", DIM, tight=True, indent=2),
    ]


def _claim(claim: ClaimedBytes, style: Style) -> list[Block]:
    return [
        Paragraph(f"{claim.claim.name} says {style.size(claim.bytes)} {style.unit}", STRONG),
        Paragraph(_worked(claim.formula, claim.inputs, claim.bytes), tight=True, indent=2),
        Paragraph(claim.claim.judgement, tight=True, indent=2),
        Paragraph(f"Source: {claim.claim.source}", DIM, tight=True, indent=2),
    ]


def _worked(formula: str, inputs: Mapping[str, int], value: int) -> str:
    return f"{formula} = {format_exact(value)} bytes, with {_given(inputs)}"


def _given(inputs: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {format_exact(number)}" for name, number in inputs.items())
