"""What a user asks: one model on some cards, under one recipe and framework."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from zeroplan.core.checks import check_member
from zeroplan.core.framework import Framework
from zeroplan.core.hardware import MIB, Cluster, Gpu, Node
from zeroplan.core.meters import NCCL_MIB
from zeroplan.core.model import Model
from zeroplan.core.plan import Plan, Strategy, check_runs, check_scheme, stage_lacking
from zeroplan.core.recipe import Recipe
from zeroplan.core.rules import STAGES
from zeroplan.core.scheme import PLAIN, Scheme
from zeroplan.errors import InputError
from zeroplan.units import Share

if TYPE_CHECKING:  # activations are not always counted
    from zeroplan.core.loss import Loss
    from zeroplan.core.workload import Workload

WORKLOAD_FIELDS = ("seq_len", "micro_batch")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Card:
    """A GPU to plan for, in the node it sits in (None: not known)."""

    gpu: Gpu
    node: Node | None = None
    asked: str = ""
    """The name the user gave, where it was an alias."""


def on_card(plan: Plan, card: Card) -> Plan:
    """The same plan on a card in its node."""
    return replace(plan, cluster=replace(plan.cluster, gpu=card.gpu, node=card.node))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Question:
    """Everything that an answer depends on, defaults included."""

    model: Model
    gpus: int
    recipe: Recipe
    framework: Framework
    cards: tuple[Card, ...]
    headroom: Share
    grad_accum: int = 1
    stages: tuple[int, ...] = STAGES
    kernel: str = "fused"
    """Of the optimizer's step."""
    scheme: Scheme = PLAIN
    workload: Workload | None = None
    """What a micro-batch is; None: activations are not asked for."""
    chunked: Loss | None = None
    """The loss in chunks, which a mend may offer."""

    def __post_init__(self) -> None:
        check_runs(self.framework, self.recipe)
        for stage in self.stages:
            check_member("--stage", stage, STAGES)
        known = [stage for stage in self.stages if self.framework.stage(stage, self.recipe.name)]
        if not known:
            raise stage_lacking(self.framework, self.recipe, self.stages[0])
        if not any(map(self.offers, known)):
            check_scheme(self.framework, self.recipe, self._strategy(known[-1], self.scheme), self.gpus)

    @property
    def params(self) -> int:
        return self.model.params

    @property
    def counts_activations(self) -> bool:
        """Whether the activations are asked for, and are known for this architecture."""
        return self.workload is not None and self.model.architecture is not None

    def offers(self, stage: int, scheme: Scheme | None = None) -> bool:
        """Whether the framework has this stage under the recipe, with the scheme asked for, or another one."""
        if self.framework.stage(stage, self.recipe.name) is None:
            return False
        try:
            check_scheme(self.framework, self.recipe, self._strategy(stage, scheme or self.scheme), self.gpus)
        except InputError:
            return False
        return True

    def plan(self, card: Card | None, stage: int) -> Plan:
        """The plan of one stage on one card, or on GPUs of no particular kind."""
        return Plan(
            model=self.model,
            recipe=self.recipe,
            framework=self.framework,
            cluster=self._cluster(card),
            strategy=self._strategy(stage, self.scheme),
            workload=self.workload if self.counts_activations else None,
        )

    def _strategy(self, stage: int, scheme: Scheme) -> Strategy:
        return Strategy(stage=stage, grad_accum=self.grad_accum, kernel=self.kernel, scheme=scheme)

    def gpus_per_node(self, card: Card) -> int:
        """Of what the ledgers depend on in the card's node, where they do; else 0."""
        return self._cluster(card).gpus_per_node if "gradients" in self.scheme.quantize else 0

    def _cluster(self, card: Card | None) -> Cluster:
        return Cluster(gpus=self.gpus, gpu=card.gpu, node=card.node) if card else Cluster(gpus=self.gpus)

    def nccl_bytes(self, card: Card) -> int:
        """What NCCL is expected to take beside the tensors; 0 where the headroom covers it, or memory is as stated."""
        apart = self.counts_activations and self.gpus > 1 and card.gpu.usable_bytes_stated is None
        return NCCL_MIB[1] * MIB if apart else 0

    def usable_bytes(self, card: Card) -> int:
        """What tensors can take: the card's usable memory less what NCCL takes."""
        return card.gpu.usable_bytes - self.nccl_bytes(card)

    def budget_bytes(self, card: Card) -> int:
        """The usable memory less the headroom."""
        usable = self.usable_bytes(card)
        return usable - self.headroom.of(usable)

    def at(self, field: str, value: int) -> Question:
        """The same question with another number in `params`, `gpus`, `grad_accum`, `seq_len` or `micro_batch`."""
        changed: dict[str, Any] = {field: value}
        if field == "params":
            return replace(self, model=Model(params=value))
        if self.workload is not None and field in WORKLOAD_FIELDS:
            return replace(self, workload=replace(self.workload, **changed))
        return replace(self, **changed)

    def under(self, framework: Framework, recipe: Recipe) -> Question:
        """The same question to another framework."""
        return replace(self, framework=framework, recipe=recipe)
