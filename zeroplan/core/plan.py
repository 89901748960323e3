"""A plan: the five inputs together, legal by construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zeroplan.core.checks import check_member, check_range
from zeroplan.core.choices import KERNELS
from zeroplan.core.framework import Framework
from zeroplan.core.hardware import Cluster
from zeroplan.core.model import Model
from zeroplan.core.recipe import Recipe
from zeroplan.core.rules import STAGES, Feature, Holding, Stage
from zeroplan.core.scheme import OFFLOAD, PLAIN, QUANTIZE, SECONDARY, SHARD_GROUP, TIERS, Scheme
from zeroplan.errors import InputError

if TYPE_CHECKING:  # activations are not always counted
    from zeroplan.core.workload import Workload

MOST_MICRO_BATCHES = 10**6
EMBEDDING_UNIT, UNITS = "embedding_unit", "units"
"""The switch that makes units of the embedding and of the head, and the trait that it has: not where they are one."""
QGZ = "qgZ"
"""The trait of gradients that go in 4 bits: as asked, and on several nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Strategy:
    """How the model is trained: the ZeRO stage, the scheme, and the micro-batches of one optimizer step."""

    stage: int
    grad_accum: int = 1
    kernel: str = "fused"
    """Of the optimizer's step, one of KERNELS."""
    scheme: Scheme = PLAIN

    def __post_init__(self) -> None:
        check_member("--stage", self.stage, STAGES)
        check_member("--optimizer-kernel", self.kernel, KERNELS)
        check_range("--grad-accum", self.grad_accum, 1, MOST_MICRO_BATCHES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan:
    """Model, recipe, framework, cluster and strategy.

    Raises InputError when the framework does not run the recipe or lacks the stage.
    """

    model: Model
    recipe: Recipe
    framework: Framework
    cluster: Cluster
    strategy: Strategy
    workload: Workload | None = None
    """What a micro-batch is and how it is computed; None: activations are not counted."""

    def __post_init__(self) -> None:
        check_runs(self.framework, self.recipe)
        if self.framework.stage(self.strategy.stage, self.recipe.name) is None:
            raise stage_lacking(self.framework, self.recipe, self.strategy.stage)
        check_scheme(self.framework, self.recipe, self.strategy, self.gpus)

    @property
    def scheme(self) -> Scheme:
        return self.strategy.scheme

    @property
    def stage(self) -> Stage:
        """The stage as the framework offers it under the recipe and the scheme."""
        found = self.framework.stage(self.strategy.stage, self.recipe.name, self.traits)
        assert found is not None  # a plan is legal
        return found

    @property
    def rules_of(self) -> int:
        """The stage whose rules say what is held and sent."""
        return self.strategy.stage if self.stage.like is None else self.stage.like

    @property
    def traits(self) -> frozenset[str]:
        """What the rules of a framework depend on: the scheme, settings that are 0 (`name=0`), `accumulating`,
        `activations`, `recomputing`, `several-gpus`, `qgZ` and the optimizer's kernel."""
        there = {
            self.strategy.kernel: True,
            "accumulating": self.accumulating,
            "activations": self.workload is not None,
            "recomputing": self.workload is not None and self.workload.recomputes,
            "several-gpus": self.gpus > 1,
            UNITS: EMBEDDING_UNIT in self.scheme.switches and not self.model.tied,
            QGZ: QUANTIZE + "gradients" in self.scheme.features and self.cluster.whole_nodes > 1,
        }
        nothing = (f"{name}=0" for name in self.framework.limits if self.limit(name) == 0)
        return self.scheme.traits.union(nothing, (name for name, holds in there.items() if holds))

    def limit(self, name: str) -> int:
        """A number of the framework's, in elements, as it is set or by default."""
        return dict(self.scheme.limits).get(name, self.framework.limits[name])

    @property
    def holdings(self) -> tuple[Holding, ...]:
        """What the framework keeps beside the states under this plan."""
        held = self.framework.held(self.rules_of, self.recipe.name, self.traits)
        return tuple(holding for holding in held if self.workload is not None or not holding.needs_model)

    def tier(self, role: str) -> str:
        """Where the states of a role are."""
        own = {"parameters": "params", "gradients": "gradients", "optimizer": "optimizer"}[role]
        return self.tier_of(self.stage.places.get(role, own))

    def tier_of(self, place: str) -> str:
        """A tier itself, or the tier of what a rule follows."""
        return place if place in TIERS else self.scheme.tier(place)

    @property
    def autocast(self) -> bool:
        """Whether fp32 weights are cast operator by operator."""
        wider = self.recipe.bytes_of("parameters") > self.recipe.compute_bytes
        return wider and self.strategy.stage in self.framework.autocast_stages

    @property
    def params(self) -> int:
        return self.model.params

    @property
    def gpus(self) -> int:
        return self.cluster.gpus

    @property
    def accumulating(self) -> bool:
        return self.strategy.grad_accum > 1


def check_scheme(framework: Framework, recipe: Recipe, strategy: Strategy, gpus: int) -> None:
    """Raise for what the framework does not do at this stage with this recipe, or not over so many GPUs."""
    scheme = strategy.scheme
    for name in scheme.features:
        feature = _offered(framework, recipe, name, strategy.stage)
        _check_tier(framework, scheme, feature)
        for other in feature.without:
            if other in scheme.features:
                raise InputError(option_of(name), f"is not modelled together with {option_of(other)}.")
        needed = feature.accumulates_with
        if needed and strategy.grad_accum > 1 and needed not in scheme.features:
            problem = f"{framework.name} does not accumulate gradients with it unless {needed}."
            raise InputError(option_of(name), problem, f"Add {option_of(needed)}=true, or leave out --grad-accum.")
    for name, size in ((SHARD_GROUP, scheme.shard_group), (SECONDARY, scheme.hpz)):
        if size and gpus % size:
            raise InputError(option_of(name), f"{gpus} GPUs are not a multiple of {size}.", "Choose a divisor.")


def _offered(framework: Framework, recipe: Recipe, name: str, stage: int) -> Feature:
    """A feature at a stage; raises where the framework has it elsewhere only, or not at all."""
    offered = framework.offered(name, recipe.name)
    if not offered:
        raise _lacking(framework, recipe, name)
    found = [feature for feature in offered if stage in feature.stages]
    if not found:
        stages = sorted({number for feature in offered for number in feature.stages})
        has = f"{framework.name} has it at stage {', '.join(map(str, stages))}, not {stage}."
        raise InputError(option_of(name), has, f"Add --stage {stages[-1]}.")
    return found[0]


def option_of(feature: str) -> str:
    """The option that asks for a feature."""
    if feature.startswith(OFFLOAD):
        return f"--offload {feature.removeprefix(OFFLOAD)}"
    if feature.startswith(QUANTIZE):
        return f"--quantize {feature.removeprefix(QUANTIZE)}"
    return f"--{feature}" if feature in (SHARD_GROUP, SECONDARY) else f"--set {feature}"


def _check_tier(framework: Framework, scheme: Scheme, feature: Feature) -> None:
    if not feature.tiers:
        return
    tier = scheme.tier(feature.name.removeprefix(OFFLOAD))
    if tier not in feature.tiers:
        stages = " and ".join(map(str, feature.stages))
        has = f"{framework.name} at stage {stages} offers {' or '.join(feature.tiers)}, not {tier}."
        raise InputError(option_of(feature.name), has)


def _lacking(framework: Framework, recipe: Recipe, name: str) -> InputError:
    known = {f.name: f.what for f in framework.features if framework.offered(f.name, recipe.name)}
    alike = next((other for other in known if name.startswith(OFFLOAD) and other.startswith(OFFLOAD)), None)
    problem = f"not modelled for {framework.name} with recipe {recipe.name}."
    if alike:
        return InputError(option_of(name), problem, f"It has {option_of(alike)}: {known[alike]}.")
    has = f"Modelled are {', '.join(map(option_of, known))}." if known else ""
    return InputError(option_of(name), problem, has)


def check_runs(framework: Framework, recipe: Recipe) -> None:
    """Raise when no stage of the framework runs the recipe."""
    if not framework.runs(recipe.name):
        raise InputError(
            "recipe",
            f"{framework.name} with {recipe.name} is not modelled.",
            f"It is modelled with {', '.join(framework.recipes)}.",
        )


def stage_lacking(framework: Framework, recipe: Recipe, stage: int) -> InputError:
    """The error for a stage that the framework does not have, or not with this recipe."""
    offered = [n for n in framework.stage_numbers if framework.stage(n, recipe.name)]
    with_recipe = f" with recipe {recipe.name}" if stage in framework.stage_numbers else ""
    return InputError(
        "--stage",
        f"{framework.name} has no stage {stage}{with_recipe}.",
        f"It has {', '.join(map(str, offered))}.",
    )
