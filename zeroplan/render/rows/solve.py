"""The screen of `zeroplan solve`: the answer per stage and card."""

from zeroplan.core.question import Question
from zeroplan.core.scheme import PLACES
from zeroplan.core.solve import SOLVERS, Solution
from zeroplan.render.blocks import DIM, STRONG, WARN, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.labels import stage_label, stage_name
from zeroplan.render.rows.style import TIER_NAMES, Style
from zeroplan.render.sentences import accounting, batch, model_name, not_counted, scheme, tight_means
from zeroplan.units import counted, format_count, format_share

STATES = {"max-params": "Most parameters whose states fit", "min-gpus": "Fewest GPUs on which the states fit"}
WHOLE = {
    "max-params": "Most parameters that fit",
    "min-gpus": "Fewest GPUs on which it fits",
    "max-micro-batch": "Largest micro-batch that fits, sequences per GPU",
    "max-seq-len": "Longest sequence that fits, tokens",
}
FINE = {
    "max-params": "Exact numbers: --format json; one parameter more does not fit.",
    "min-gpus": "One GPU less does not fit.",
    "max-micro-batch": "One sequence more does not fit.",
    "max-seq-len": "One token more does not fit.",
}


def solve_blocks(question: Question, what: str, solutions: list[Solution], style: Style) -> list[Block]:
    """The screen: what was asked, a row a card, a column a stage."""
    counted_too = question.counts_activations
    title = (WHOLE if counted_too else STATES)[what]
    return [
        Paragraph(f"{title}, per stage, {_given(question, what)}.", STRONG),
        Paragraph(_setting(question, what)),
        _grid(question, what, solutions, style),
        Paragraph(_footer(what, question, solutions), DIM),
    ]


def _given(question: Question, what: str) -> str:
    if what == "max-params":
        return f"on {counted(question.gpus, 'GPU')}"
    if what == "min-gpus":
        return f"for {model_name(question).rstrip(',')}"
    return f"for {model_name(question)} on {counted(question.gpus, 'GPU')}"


def _setting(question: Question, what: str) -> str:
    headroom = f"Headroom {format_share(float(question.headroom))}."
    if question.counts_activations:
        whole = (accounting(question), scheme(question), batch(question, SOLVERS[what].field), headroom)
        return " ".join(filter(None, whole))
    said = " ".join(filter(None, (accounting(question), scheme(question), headroom)))
    return f"{said} Not counted: {not_counted(question)}; a larger --headroom leaves room for them."


def _grid(question: Question, what: str, solutions: list[Solution], style: Style) -> Grid:
    stages = sorted({solution.stage for solution in solutions})
    columns = (
        Column("GPU"),
        Column(f"budget {style.unit}", right=True),
        *(Column(stage_label(stage), right=True) for stage in stages),
    )
    rows = []
    for card in question.cards:
        answers = {s.stage: s for s in solutions if s.card is card}
        budget = cell(style.size(question.budget_bytes(card)))
        rows.append((cell(card.gpu.title), budget, *(_answer(answers[stage].answer, what) for stage in stages)))
        if _ranges(question, list(answers.values())):
            tight = (_answer(answers[stage].tight_answer, what) for stage in stages)
            rows.append((cell("  tight", WARN), cell(""), *tight))
        if any(each.scheme.offloads for each in answers.values()):
            rows += _offload_rows(answers, stages)
    return Grid(columns, tuple(rows))


def _offload_rows(answers: dict[int, Solution], stages: list[int]) -> list[tuple[Cell, ...]]:
    """What is off the GPU for each answer, by state, and what binds it."""
    rows = []
    for place in PLACES:
        tiers = [answers[stage].scheme.offloads.get(place) for stage in stages]
        if any(tiers):
            names = (cell(TIER_NAMES.get(tier or "", "GPU"), DIM) for tier in tiers)
            rows.append((cell(f"  {place}", DIM), cell("on", DIM), *names))
    binding = (cell(answers[stage].binding or _unbound(answers[stage]), DIM) for stage in stages)
    return [*rows, (cell("  bound by", DIM), cell(""), *binding)]


def _unbound(solution: Solution) -> str:
    """Why nothing binds: the answer is all that is counted to, with RAM of unknown size; or one GPU is enough."""
    return "unknown RAM" if solution.at_limit else "-"


def _ranges(question: Question, solutions: list[Solution]) -> bool:
    host = any(s.scheme.offloads for s in solutions)
    return (question.counts_activations or host) and any(s.answer != s.tight_answer for s in solutions)


def _answer(answer: int | None, what: str) -> Cell:
    if answer is None:
        return cell("never" if what == "min-gpus" else "none", DIM)
    if answer == SOLVERS[what].last and not SOLVERS[what].fewest:
        return cell(f"{format_count(answer)} or more")
    return cell(_billions(answer) if what == "max-params" and answer >= 10**7 else format_count(answer))


def _billions(params: int) -> str:
    """Billions or trillions to three decimals, rounded down so that what is printed fits."""
    if params >= 10**12:
        return f"{params // 10**9 / 1000:,.3f}e12"
    return f"{params // 10**6 / 1000:,.3f}e9"


def _footer(what: str, question: Question, solutions: list[Solution]) -> str:
    names = ", ".join(stage_name(question, stage) for stage in question.stages if question.offers(stage))
    off = any(solution.scheme.offloads for solution in solutions)
    spread = f"{tight_means(question, off)} " if _ranges(question, solutions) else ""
    if SOLVERS[what].fewest and any(solution.answer is None for solution in solutions):
        parts = [
            f"what a group of {counted(question.scheme.shard_group, 'GPU')} shares"
            if question.scheme.shard_group
            else "the part that no GPU shares",
            *(["what a host has"] if off else []),
        ]
        spread += f"never: {' or '.join(parts)} is over, with any number. "
    shape = question.model.architecture
    learned = what == "max-seq-len" and shape and any(s.at_limit and s.answer == shape.positions for s in solutions)
    fine = f"The model has no more than {format_count(shape.positions)} positions." if shape and learned else FINE[what]
    return f"{spread}{fine} Stages: {names}."
