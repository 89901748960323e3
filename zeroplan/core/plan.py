"""A plan: the five inputs together, legal by construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zeroplan.core.checks import check_member, check_range
from zeroplan.core.choices import KERNELS
from zeroplan.core.framework import STAGES, Framework, Holding, Stage
from zeroplan.core.hardware import Cluster
from zeroplan.core.model import Model
from zeroplan.core.recipe import Recipe
from zeroplan.errors import InputError

if TYPE_CHECKING:  # activations are not always counted
    from zeroplan.core.workload import Workload

MOST_MICRO_BATCHES = 10**6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Strategy:
    """How the model is trained: the ZeRO stage and the micro-batches of one optimizer step."""

    stage: int
    grad_accum: int = 1
    kernel: str = "fused"
    """Of the optimizer's step, one of KERNELS."""

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
        _ = self.stage

    @property
    def stage(self) -> Stage:
        """The stage as the framework offers it under the recipe."""
        found = self.framework.stage(self.strategy.stage, self.recipe.name)
        if found is None:
            raise stage_lacking(self.framework, self.recipe, self.strategy.stage)
        return found

    @property
    def holdings(self) -> tuple[Holding, ...]:
        """What the framework keeps beside the states under this plan."""
        held = self.framework.held(self.strategy.stage, self.recipe.name)
        return tuple(holding for holding in held if self._holds(holding))

    def _holds(self, holding: Holding) -> bool:
        counted = self.workload is not None
        return (
            holding.accumulating in (None, self.accumulating)
            and holding.with_activations in (None, counted)
            and (counted or not holding.needs_model)
            and (self.gpus > 1 or not holding.several_gpus)
            and (not holding.kernels or self.strategy.kernel in holding.kernels)
        )

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
