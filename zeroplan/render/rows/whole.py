"""The parts of a screen that show the whole memory: every term at every moment, the meters, what binds."""

from collections.abc import Sequence

from zeroplan.core.checkpoint import checkpoint
from zeroplan.core.estimate import Estimate
from zeroplan.core.ledger import Term
from zeroplan.core.mends import Binding, Mend
from zeroplan.core.meters import Meters
from zeroplan.core.moments import FIRST, LAST, STEP
from zeroplan.core.verdict import DOES_NOT_FIT, FITS
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.labels import listed, stage_label
from zeroplan.render.rows.style import TIER_NAMES, Style
from zeroplan.units import format_size

SHOWN_MOMENTS = (
    ("logits", ("logits",)),
    ("loss", ("loss",)),
    ("blocks", (*FIRST, *LAST)),
    ("end", ("end",)),
    ("step", STEP),
)
"""The columns of the table of moments; of several moments it shows the largest."""
MOMENT_WORDS = {
    "load": "while loading",
    "start": "at the start of the forward pass",
    "logits": "at the logits, as the forward pass ends",
    "loss": "at the loss, as the backward pass starts",
    "first_block": "in backward, inside one of its first blocks",
    "first_block_done": "in backward, as one of its first blocks is done",
    "last_block": "in backward, inside one of its last blocks",
    "last_block_done": "in backward, as one of its last blocks is done",
    "end": "at the end of the backward pass",
    "norm": "in the step, at the norm of the gradients",
    "update": "in the optimizer's update",
    "save": "while saving",
}
METER_WORDS = {
    "resident": "model states",
    "allocated": "tensors at the peak",
    "reserved": "allocator, max_memory_reserved",
    "device": "nvidia-smi: context and NCCL too",
}


def moments_grid(found: Estimate, style: Style) -> Grid:
    """A row a term, a column a moment; what is not alive is a dot."""
    peak = found.memory.peak_moment
    shown_as = {max(among, key=found.memory.bytes_at): head for head, among in SHOWN_MOMENTS}
    moments = [*shown_as, *([peak] if peak not in shown_as else [])]
    columns = (
        Column(f"{stage_label(found.plan.strategy.stage)}, {style.unit} alive at", wraps=True),
        Column(""),
        *(Column(shown_as.get(moment, moment), right=True) for moment in moments),
    )
    shown = [term for term in found.memory.terms if any(moment in term.moments for moment in moments)]
    rows = [_term_row(term, moments, style) for term in shown]
    sums = tuple(_sum(found, moment, style) for moment in moments)
    return Grid(columns, (*rows, (cell("together", STRONG), cell(""), *sums)))


def saving(found: Estimate, style: Style) -> str:
    """What a checkpoint is on disk, and what writing one of whole weights takes beside the states."""
    sizes = checkpoint(found.plan, found.memory)
    resume, each, first, weights = (style.size(size) for size in sizes[:4])
    whose = f"each of {sizes.ranks} GPUs" if sizes.ranks < found.plan.gpus else "each GPU"
    by = f"{each} from {whose}" if first == each else f"{each} from {whose}, {first} from the first"
    by = by if sizes.each_rank else "all from the first GPU"
    shares = f" ({by})" if found.plan.gpus > 1 else ""
    on = {"gpu": "GPU", **TIER_NAMES}
    at_save = [term for term in found.memory.terms if term.moments == ("save",)]
    parts = [f"{style.size(term.bytes)} {style.unit} {term.what} ({on[term.tier]})" for term in at_save]
    takes = f"; writing them takes {listed(parts)} on the first rank" if parts else ""
    return (
        f"A checkpoint to resume from is {resume} {style.unit} on disk{shares}; the weights alone are {weights} "
        f"{style.unit}{takes}."
    )


def _term_row(term: Term, moments: Sequence[str], style: Style) -> tuple[Cell, ...]:
    kind = TIER_NAMES.get(term.tier, "SHARD" if term.sharded else "")
    size, absent = cell(style.size(term.bytes)), cell("·" if style.unicode else ".", DIM)
    return cell(term.what), cell(kind, DIM), *(size if moment in term.moments else absent for moment in moments)


def _sum(found: Estimate, moment: str, style: Style) -> Cell:
    text = style.size(found.memory.bytes_at(moment))
    return (
        cell(f"▸{text}" if style.unicode else f">{text}", STRONG) if moment == found.memory.peak_moment else cell(text)
    )


def meters_grid(shown: Meters, style: Style) -> Grid:
    """What each meter would show."""
    columns = (
        Column(f"{style.unit} on each meter"),
        *(Column(head, right=True) for head in ("low", "expected", "high")),
        Column("", wraps=True),
    )
    rows = []
    for name, words in METER_WORDS.items():
        bounds = getattr(shown, name)
        if bounds is not None:
            sizes = (bounds.low, bounds.expected, bounds.high)
            rows.append((cell(name), *(cell(style.size(size)) for size in sizes), cell(words, DIM)))
    return Grid(columns, tuple(rows))


def binding_blocks(found: Binding, unit: str) -> list[Block]:
    """Which moment and terms make the peak, and the cheapest mends."""
    largest = listed(f"{format_size(term.bytes, unit)} {unit} {term.what}" for term in found.terms)
    lines = [f"The peak is {MOMENT_WORDS[found.moment]}; largest there: {largest}."]
    if found.mends:
        lines.append("To mend it: " + "; ".join(_mend(mend, unit) for mend in found.mends) + ".")
    if found.mends and found.higher_saves_bytes is not None and not _helps(found):
        lines.append(f"A higher stage does not help: {found.terms[0].what} binds.")
    return [Paragraph(" ".join(lines), tight=True)]


def _helps(found: Binding) -> bool:
    return any(mend.option.startswith("--stage") for mend in found.mends)


def _mend(mend: Mend, unit: str) -> str:
    ends = {FITS: ", fits", DOES_NOT_FIT: ", not enough alone"}.get(mend.verdict, ", tight")
    saved, left = format_size(mend.saved_bytes, unit), format_size(mend.taken_bytes, unit)
    return f"{mend.option} saves {saved} {unit}: {left}{ends} ({mend.price})"
