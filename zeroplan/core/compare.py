"""Cards side by side: what fits on each, how many are needed, what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass

from zeroplan.core.hardware import Node
from zeroplan.core.question import Question
from zeroplan.core.solve import min_gpus
from zeroplan.core.verdict import CardAnswer, fit

SORTS = ("asked", "name", "memory", "stage", "time", "spare", "price")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Price:
    """What the nodes for all GPUs cost, at the cheapest known price of a node with this GPU."""

    node: Node
    nodes: int

    @property
    def usd_per_hour(self) -> float:
        return self.nodes * (self.node.price_usd_per_hour or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """One card of a comparison."""

    answer: CardAnswer
    min_gpus: dict[int, int | None]
    """The fewest GPUs at which each offered stage fits; None: no number does."""
    price: Price | None
    """None: no price is known."""


def compare(question: Question, nodes: Iterable[Node], sort: str = "asked") -> list[Comparison]:
    """Every card of the question, with the prices of `nodes`, sorted; unknown values come last."""
    priced = [node for node in nodes if node.price_usd_per_hour is not None]
    rows = [_comparison(question, answer, priced) for answer in fit(question)]
    return sorted(rows, key=lambda row: _rank(row, sort))


def _comparison(question: Question, answer: CardAnswer, priced: list[Node]) -> Comparison:
    offered = [stage.stage for stage in answer.offered]
    return Comparison(
        answer=answer,
        min_gpus={stage: min_gpus(question, answer.card, stage) for stage in offered},
        price=_cheapest(answer.card.gpu.name, question.gpus, priced),
    )


def _cheapest(gpu: str, gpus: int, priced: list[Node]) -> Price | None:
    prices = [Price(node=node, nodes=-(-gpus // node.gpus_per_node)) for node in priced if node.gpu == gpu]
    return min(prices, key=lambda price: price.usd_per_hour, default=None)


def _rank(row: Comparison, sort: str) -> tuple[bool, float | str]:
    answer, best = row.answer, row.answer.recommended
    keys: dict[str, float | str | None] = {
        "asked": 0,
        "name": answer.card.gpu.name,
        "memory": -answer.usable_bytes,
        "stage": best.stage if best else None,
        "time": best.estimate.time.link if best and best.estimate else None,
        "spare": -best.spare_bytes if best and best.spare_bytes is not None else None,
        "price": row.price.usd_per_hour if row.price else None,
    }
    key = keys[sort]
    return key is None, key if key is not None else 0
