"""The screen of `zeroplan diagnose`: what failed, where the memory was, what would fit."""

from zeroplan.core.diagnosis import LEAST_KNOWN, Matched
from zeroplan.core.oom import FRAGMENTED, LIMITED, TAKEN, Message
from zeroplan.core.question import Question
from zeroplan.core.verdict import CardAnswer
from zeroplan.render.blocks import DIM, STRONG, Block, Column, Grid, Paragraph, cell
from zeroplan.render.labels import listed, stage_label
from zeroplan.render.rows.style import Style
from zeroplan.render.sentences import card_summary
from zeroplan.units import counted

LARGE = 2**30
USUAL_OUTSIDE = 3 * 2**30
"""Bytes, from which on more than this process is told of: its own context and NCCL take about 1.1 GB on an H100."""
EXPAND = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets it grow one block instead."


def diagnose_blocks(
    found: Message, question: Question | None, same: list[Matched], answer: CardAnswer | None, style: Style
) -> list[Block]:
    """The screen: the tensor, the numbers, fragmentation or shortage, and the way out."""
    blocks: list[Block] = [Paragraph(_which(found, question, same, style), STRONG)]
    blocks += [_tensors(same, style)] if same else []
    blocks.append(_numbers(found, style))
    blocks += [Paragraph(text) for text in (_cause(found, style), _way_out(found, question, answer, style)) if text]
    more = f" The largest of {counted(found.times, 'message')} in the text." if found.times > 1 else ""
    rounding = "Sizes are as printed, rounded to two decimals; PyTorch asks for whole 2 MiB."
    return [*blocks, Paragraph(f"{rounding}{more}", DIM)]


def _which(found: Message, question: Question | None, same: list[Matched], style: Style) -> str:
    size = f"{style.size(found.requested.bytes)} GiB"
    if found.requested.bytes <= LEAST_KNOWN:
        return f"Out of memory at {size}: a small block; the memory was full before it."
    if question is None:
        return f"Out of memory at {size}. With --model or --params, and --gpus, the tensor of that size is looked up."
    if not same:
        return f"Out of memory at {size}: nothing of that size is known in this plan."
    names = list(dict.fromkeys(each.candidate.what for each in same))
    if len(names) == 1:
        return f"Out of memory at {size}: {names[0]}."
    if found.allocated is None:
        return f"Out of memory at {size}: {listed(names, 'or')}, all of that size."
    best = list(dict.fromkeys(each.candidate.what for each in same if each.distance == same[0].distance))
    return f"Out of memory at {size}: {listed(best, 'or')}, the likeliest of that size."


def _tensors(same: list[Matched], style: Style) -> Grid:
    columns = (
        Column("of that size", wraps=True),
        Column("GiB", right=True),
        Column("bytes", wraps=True),
        Column("in tensors before", right=True),
        Column("at"),
    )
    rows = tuple(
        (
            cell(each.candidate.what),
            cell(style.size(each.candidate.bytes)),
            cell(each.candidate.formula),
            cell("-" if each.candidate.before is None else style.size(each.candidate.before)),
            cell(", ".join(map(stage_label, each.stages))),
        )
        for each in same
    )
    return Grid(columns, rows)


def _numbers(found: Message, style: Style) -> Grid:
    sizes = (
        ("asked for", found.requested.bytes),
        ("in tensors", found.allocated.bytes if found.allocated else None),
        ("held by PyTorch, in no tensor", found.cached),
        ("free on the device", found.free.bytes if found.free else None),
        ("contexts, NCCL, other processes", found.outside),
        ("device", found.total.bytes if found.total else None),
        ("allowed by the program", found.allowed.bytes if found.allowed else None),
    )
    rows = tuple((cell(name), cell(style.size(size))) for name, size in sizes if size is not None)
    return Grid((Column("memory"), Column("GiB", right=True)), rows)


def _cause(found: Message, style: Style) -> str:
    cached = f"{style.size(found.cached or 0)} GiB"
    if found.cause == LIMITED and found.allowed:
        limit = style.size(found.allowed.bytes)
        return f"The program's own limit of {limit} GiB is reached (set_per_process_memory_fraction). Raise it."
    if found.cause == TAKEN:
        return "So much was free: another process had the memory just then, or the driver a limit."
    if found.cause == FRAGMENTED:
        return f"Fragmentation: PyTorch held {cached} in pieces; with what was free it would be enough in one. {EXPAND}"
    if found.there is None or found.cause is None:
        return ""
    pieces = f", even with all {cached} in pieces. {EXPAND}" if (found.cached or 0) >= LARGE else ", however it is cut."
    return f"Too little: {style.size(found.requested.bytes - found.there)} GiB more are needed{pieces}"


def _way_out(found: Message, question: Question | None, answer: CardAnswer | None, style: Style) -> str:
    """Where the plan would fit; or that the run was another, where it had more in tensors than the plan ever has."""
    if question is None or answer is None:
        return ""
    best = answer.recommended
    if best and best.estimate and (best.stage,) == question.stages and not question.counts_activations:
        states = style.size(best.estimate.memory.peak_bytes)
        return (
            f"At {stage_label(best.stage)} states and buffers take {states} GiB: what filled the rest is beyond them. "
            "--model and --seq-len count activations."
        )
    if best and best.estimate and found.allocated and best.stage in question.stages and question.counts_activations:
        peak = best.estimate.memory.peak_bytes
        if found.allocated.bytes - found.allocated.half > peak:
            had, has = style.size(found.allocated.bytes), style.size(peak)
            return (
                f"The run had {had} GiB in tensors, and this plan at {stage_label(best.stage)} has {has} at most: "
                "the run was another. Check --attention, --recompute, --micro-batch, --seq-len, --stage, --framework."
            )
    others = ""
    if found.outside and found.outside > USUAL_OUTSIDE:
        others = f"Other processes or contexts hold {style.size(found.outside)} GiB; without those there is more. "
    lacking = "" if question.counts_activations else " Activations are not counted: --model and --seq-len add them."
    return f"{others}{card_summary(question, answer, style.unit)}{lacking}"
