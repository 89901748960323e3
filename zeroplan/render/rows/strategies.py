"""The screen of `zeroplan compare --strategy`: strategies side by side."""

from zeroplan.core.compare import Strategic
from zeroplan.core.host import RAM
from zeroplan.core.meters import taken_bytes
from zeroplan.core.timing import node_bytes
from zeroplan.core.verdict import FITS, TIGHT
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.labels import listed, short_title, stage_label
from zeroplan.render.rows.compare import ROOMY
from zeroplan.render.rows.style import VERDICT_STYLES, Style, left_cell
from zeroplan.render.sentences import accounting, model_name, tight_means
from zeroplan.units import counted, format_seconds


def strategies_blocks(rows: list[Strategic], outside: str, style: Style) -> list[Block]:
    """The screen: which fit, a row a strategy, what the columns mean; `outside`: the options of them all."""
    question = rows[0].question
    frameworks = sorted({row.question.framework.name for row in rows})
    said = [f"{model_name(question)} on {counted(question.gpus, 'data-parallel GPU')}."]
    said += [accounting(question)] if len(frameworks) == 1 else [f"Frameworks: {listed(frameworks)}."]
    said += [f"Unless a strategy says otherwise: {outside}."] if outside else []
    return [
        Paragraph(_summary(rows), STRONG),
        Paragraph(" ".join(said)),
        _grid(rows, style),
        Paragraph(_footer(rows, style), DIM),
    ]


def _summary(rows: list[Strategic]) -> str:
    """What fits, and which of it moves its bytes in the least time."""
    fitting, tight = (
        [row for row in rows if row.answer.recommended and row.answer.recommended.verdict == verdict]
        for verdict in (FITS, TIGHT)
    )
    several = _several(rows)
    if not fitting:
        some = [_named(row, several) for row in tight]
        return f"Only {listed(some)} may fit." if some else "No strategy fits."
    timed = [(seconds, _named(row, several)) for row in fitting if (seconds := _seconds(row)) is not None]
    if len(fitting) == 1 or len(timed) < len(fitting) or len(set(map(_tokens, rows))) > 1:
        return f"{listed(_named(row, several) for row in fitting)} fit{'s' if len(fitting) == 1 else ''}."
    least = min(seconds for seconds, _ in timed)
    best = [name for seconds, name in timed if seconds == least]
    moves = "moves its bytes" if len(best) == 1 else "move their bytes"
    return f"{len(fitting)} of {len(rows)} fit; {listed(best)} {moves} in the least time, links and copies in turn."


def _several(rows: list[Strategic]) -> bool:
    return len({row.answer.card.gpu.name for row in rows}) > 1


def _named(row: Strategic, several: bool) -> str:
    return f"{row.name} on {short_title(row.answer)}" if several else row.name


def _tokens(row: Strategic) -> tuple[int, int]:
    """What a step of it is: the tokens of a GPU, or its micro-batches where they are not known."""
    work = row.question.workload
    return row.question.grad_accum, work.tokens if work else 0


def _seconds(row: Strategic) -> float | None:
    """Of its traffic and its copies together."""
    found = row.shown.estimate
    if found is None or found.time.link is None or found.copy_time.link is None:
        return None
    return found.time.link + found.copy_time.link


def _grid(rows: list[Strategic], style: Style) -> Grid:
    several = _several(rows)
    off = any(row.shown.host for row in rows)
    columns = (
        Column("strategy", wraps=True),
        *((Column("GPU"),) if several else ()),
        Column("stage", right=True),
        Column(f"{style.unit} taken", right=True),
        Column("left", right=True),
        *((Column("host RAM", right=True), Column("copies s", right=True)) if off else ()),
        *(() if off and style.width < ROOMY else (Column("sent", right=True),)),
        Column("across", right=True),
        Column("link s", right=True),
    )
    return Grid(columns, tuple(_row(row, several, off, style) for row in rows))


def _row(row: Strategic, several: bool, off: bool, style: Style) -> tuple[Cell, ...]:
    shown, found = row.shown, row.shown.estimate
    assert found is not None  # a question has a stage that the framework offers
    ram = next((style.size(each.needed.expected, 0) for each in shown.host if each.name == RAM), "-")
    seconds = format_seconds(found.copy_time.link) if found.traffic.copies else "-"
    across = [node_bytes(transfer, found.plan.cluster) for transfer in found.traffic.transfers]
    leaves = "unknown" if None in across else style.size(sum(size or 0 for size in across))
    return (
        cell(row.name.replace(",", ", ")),
        *((cell(short_title(row.answer)),) if several else ()),
        cell(stage_label(shown.stage), VERDICT_STYLES[shown.verdict]),
        cell(style.size(taken_bytes(found))),
        left_cell(shown.verdict, shown.spare_bytes, style, shown.short),
        *((cell(ram), cell(seconds)) if off else ()),
        *(() if off and style.width < ROOMY else (cell(style.size(found.traffic.wire_bytes)),)),
        cell(leaves),
        cell(format_seconds(found.time.link)),
    )


def _footer(rows: list[Strategic], style: Style) -> str:
    question = rows[0].question
    taken = "what the allocator is expected to take" if question.counts_activations else "the peak"
    host = "host RAM: expected, per node. copies s: to the host and back. " if any(r.shown.host for r in rows) else ""
    return (
        f"stage: the lowest that fits, else the highest. taken: {taken}, {style.unit} per GPU; left: of the budget. "
        f"sent: by each GPU per step; across: through the NICs of each node. {host}link s: at datasheet link speed. "
        f"{tight_means(question)}"
    )
