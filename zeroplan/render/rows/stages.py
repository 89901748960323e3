"""The grid of all stages: what each holds per state, and what it sends."""

from zeroplan.core.estimate import Estimate
from zeroplan.core.meters import taken_bytes
from zeroplan.core.question import Question
from zeroplan.core.recipe import ROLES
from zeroplan.core.sharding import group_of
from zeroplan.render.blocks import DIM, STRONG, Cell, Column, Grid, cell
from zeroplan.render.labels import stage_name
from zeroplan.render.rows.style import TIER_NAMES, Style
from zeroplan.units import format_ratio

HEADERS = {"parameters": "weights", "gradients": "gradients", "optimizer": "optimizer"}


def stages_grid(question: Question, estimates: dict[int, Estimate | None], style: Style, peaks: bool = True) -> Grid:
    """A row a stage: bytes per GPU of each state, FULL or SHARD, their sum, the peak and the traffic.

    With activations the peak is what the allocator is expected to take for it.

    The peak is left out where it is shown elsewhere (`peaks` is false) or is the sum at every stage.
    """
    found = [estimate for estimate in estimates.values() if estimate]
    peaks = peaks and any(one.memory.peak_bytes != one.memory.resident_bytes for one in found)
    style = style.for_sizes(size for one in found for size in (one.memory.peak_bytes, one.traffic.wire_bytes))
    widths = {role: max(len(style.size(_held(e, role))) for e in found) for role in ROLES}
    columns = (
        Column(f"{style.unit} per GPU"),
        *(Column(HEADERS[role].rjust(widths[role] + 6)) for role in ROLES),
        Column("states", right=True),
        *((Column("reserved" if question.counts_activations else "peak", right=True),) if peaks else ()),
        Column("sent/step", right=True),
    )
    rows = tuple(_row(question, stage, found, widths, peaks, style) for stage, found in estimates.items())
    return Grid(columns, rows)


def _row(
    question: Question,
    stage: int,
    found: Estimate | None,
    widths: dict[str, int],
    peaks: bool,
    style: Style,
) -> tuple[Cell, ...]:
    name = cell(stage_name(question, stage), STRONG)
    if found is None:
        return (name, cell("not offered", DIM), *(cell("-", DIM) for _ in range(4 + peaks)))
    ratio = format_ratio(found.ratio_to_data_parallel) if found.ratio_to_data_parallel is not None else "-"
    return (
        name,
        *(_state(found, role, widths[role], style) for role in ROLES),
        cell(style.size(found.memory.resident_bytes)),
        *((cell(style.size(taken_bytes(found))),) if peaks else ()),
        cell(f"{style.size(found.traffic.wire_bytes)} {ratio:>5}"),
    )


def _state(found: Estimate, role: str, width: int, style: Style) -> Cell:
    sharded = role in found.plan.stage.shards and group_of(found.plan, "shard").gpus > 1
    kind = TIER_NAMES.get(found.plan.tier(role), "SHARD" if sharded else "FULL")
    return cell(f"{style.size(_held(found, role)):>{width}} {kind}")


def _held(found: Estimate, role: str) -> int:
    """Bytes of the states with this role, where they are."""
    return found.memory.bytes_of(role, found.plan.tier(role))
