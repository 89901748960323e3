"""The screen of `zeroplan solve`: the largest model, or the fewest GPUs, per stage and card."""

from zeroplan.core.question import Question
from zeroplan.core.solve import Solution
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell
from zeroplan.render.labels import stage_label, stage_name
from zeroplan.render.rows.style import Style
from zeroplan.render.sentences import accounting
from zeroplan.units import counted, format_count, format_share

TITLES = {"max-params": "Most parameters whose states fit", "min-gpus": "Fewest GPUs on which the states fit"}


def solve_blocks(question: Question, what: str, solutions: list[Solution], style: Style) -> list[Block]:
    """The screen: what was asked, a row a card, a column a stage."""
    if what == "max-params":
        given = f"on {counted(question.gpus, 'GPU')}"
    else:
        given = f"for {counted(question.params, 'parameter')}"
    return [
        Paragraph(f"{TITLES[what]}, per stage, {given}.", STRONG),
        Paragraph(
            f"{accounting(question)} Headroom {format_share(float(question.headroom))}. Not counted: "
            f"{question.framework.not_counted}; a larger --headroom leaves room for them."
        ),
        _grid(question, what, solutions, style),
        Paragraph(_footer(what, question), DIM),
    ]


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
        rows.append((cell(card.gpu.title), budget, *(_answer(answers[stage], what) for stage in stages)))
    return Grid(columns, tuple(rows))


def _answer(solution: Solution, what: str) -> Cell:
    answer = solution.answer
    if answer is None:
        return cell("none" if what == "max-params" else "never", DIM)
    if solution.at_limit:
        return cell("1e18 or more")
    return cell(_billions(answer) if what == "max-params" and answer >= 10**7 else format_count(answer))


def _billions(params: int) -> str:
    """Billions to three decimals, rounded down so that what is printed fits."""
    return f"{params // 10**6 / 1000:,.3f}e9"


def _footer(what: str, question: Question) -> str:
    names = ", ".join(stage_name(question, stage) for stage in question.stages if question.offers(stage))
    exact = (
        "Exact numbers: --format json; one parameter more does not fit."
        if what == "max-params"
        else "never: the part that no GPU shares is over the budget. One GPU less does not fit."
    )
    return f"{exact} Stages: {names}."
