"""Cards side by side: what fits on each, how many are needed, how long the traffic takes, what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from zeroplan.core.hardware import Cluster, Node
from zeroplan.core.question import Card, Question
from zeroplan.core.solve import min_gpus
from zeroplan.core.verdict import CardAnswer, StageAnswer, fit

SORTS = ("asked", "name", "memory", "stage", "time", "spare", "price")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """One card of a comparison, in the node that both its time and its price are of."""

    answer: CardAnswer
    min_gpus: dict[int, int | None]
    """The fewest GPUs at which each offered stage fits; None: no number does."""
    usd_per_hour: float | None
    """All nodes together; None: no price is known."""


def compare(question: Question, sort: str = "asked") -> list[Comparison]:
    """Every card of the question, sorted; where nothing fits or a value is unknown comes last."""
    rows = [_comparison(question, answer) for answer in fit(question)]
    return sorted(rows, key=lambda row: _rank(row, sort))


class Strategic(NamedTuple):
    """One strategy on one card."""

    name: str
    """As it was asked for."""
    question: Question
    answer: CardAnswer

    @property
    def shown(self) -> StageAnswer:
        """The stage that fits, or the highest."""
        return self.answer.recommended or self.answer.offered[-1]


def answers_to(name: str, question: Question) -> list[Strategic]:
    """The answers to one strategy's question, a card each."""
    return [Strategic(name, question, answer) for answer in fit(question)]


def nodes_usd_per_hour(card: Card, gpus: int) -> float | None:
    """What the nodes for so many GPUs cost; None when the node or its price is not known."""
    nodes = Cluster(gpus=gpus, gpu=card.gpu, node=card.node).nodes
    if nodes is None or card.node is None or card.node.price_usd_per_hour is None:
        return None
    return nodes * card.node.price_usd_per_hour


def in_cheapest_node(card: Card, nodes: Iterable[Node], gpus: int) -> Card:
    """The card in the node with the lowest known price for so many GPUs; as it is where none is known."""
    names = (card.gpu.name, *card.gpu.aliases)
    cards = [replace(card, node=node) for node in nodes if node.gpu in names]
    priced = [(price, other) for other in cards if (price := nodes_usd_per_hour(other, gpus)) is not None]
    return min(priced, key=lambda pair: pair[0])[1] if priced else card


def _comparison(question: Question, answer: CardAnswer) -> Comparison:
    offered = [stage.stage for stage in answer.offered]
    return Comparison(
        answer=answer,
        min_gpus={stage: min_gpus(question, answer.card, stage) for stage in offered},
        usd_per_hour=nodes_usd_per_hour(answer.card, question.gpus),
    )


def _rank(row: Comparison, sort: str) -> tuple[bool, bool, float | str]:
    answer, best = row.answer, row.answer.recommended
    keys: dict[str, float | str | None] = {
        "asked": 0,
        "name": answer.card.gpu.name,
        "memory": -answer.usable_bytes,
        "stage": best.stage if best else None,
        "time": best.estimate.time.link if best and best.estimate else None,
        "spare": -best.spare_bytes if best and best.spare_bytes is not None else None,
        "price": row.usd_per_hour,
    }
    key = keys[sort]
    return best is None and sort == "price", key is None, key if key is not None else 0
