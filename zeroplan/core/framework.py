"""How an implementation of data parallelism behaves: what it shards, holds and sends at each stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zeroplan.core.checks import check_member, check_members, check_range, check_text
from zeroplan.core.choices import FUSIBLE
from zeroplan.core.hardware import STRICT
from zeroplan.core.rules import (
    COUNTS,
    MODEL_COUNTS,
    PLAIN_STAGE,
    SELECTIVE,
    Claim,
    Feature,
    Holding,
    Slack,
    Stage,
    TransferRule,
)
from zeroplan.core.scheme import NEVER_ZERO, met
from zeroplan.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Framework:
    """An implementation: its stages, its default recipe, its limits, and what it holds and sends."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    default_recipe: str
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The recipes it runs, by how it treats them; empty: it runs any recipe."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Named element counts, such as a bucket size."""
    stages: tuple[Stage, ...]
    holds: tuple[Holding, ...] = ()
    sends: tuple[TransferRule, ...]
    claims: tuple[Claim, ...] = ()
    features: tuple[Feature, ...] = ()
    default_loss: str = "fp32"
    """How the loss is computed in the code that is usually trained with it."""
    selective: str = "attention"
    """What `--recompute selective` means in it, one of SELECTIVE."""
    autocast_stages: tuple[int, ...] = ()
    """The stages at which fp32 weights run under autocast, rather than as 16-bit copies."""
    fused: tuple[str, ...] = ()
    """The parts of a block that run as fused kernels: `norm`, `mlp`."""
    slack: Slack | None = None
    """None: no allocator, as in a paper; what tensors hold is what is taken."""
    not_counted: str = ""
    """What `--params` alone cannot tell of this framework's memory."""
    notes: str = ""
    source: str

    def __post_init__(self) -> None:
        where = f"framework {self.name}"
        check_text(f"{where}, source", self.source)
        for name, limit in self.limits.items():
            check_range(f"{where}, limits.{name}", limit, name in NEVER_ZERO, 10**18, "elements")
        if PLAIN_STAGE not in self.stage_numbers:
            raise InputError(where, "has no stage 0, the yardstick of its traffic.")
        if not any(PLAIN_STAGE in rule.stages for rule in self.sends):
            raise InputError(where, "sends nothing at stage 0, the yardstick of its traffic.")
        check_member(f"{where}, selective", self.selective, SELECTIVE)
        check_members(f"{where}, fused", self.fused, FUSIBLE)
        counts = (*COUNTS, *MODEL_COUNTS, *self.limits)
        for holding in self.holds:
            named = [holding.elements, *filter(None, (holding.at_most, holding.at_least))]
            check_members(f"{where}, {holding.name}", named, counts)
        for rule in self.sends:
            name = f"{where}, {rule.collective}"
            check_members(name, [rule.less] if rule.less else [], counts)
            check_members(name, [rule.less_of_model] if rule.less_of_model else [], MODEL_COUNTS)
            check_member(f"{name}, elements", rule.elements, counts)
        parts: tuple[Stage | Holding | TransferRule | Claim | Feature, ...]
        parts = (*self.stages, *self.holds, *self.sends, *self.claims, *self.features)
        for part in parts:
            check_members(f"{where}, families", part.families, tuple(self.families))
        if not self.runs(self.default_recipe):
            raise InputError(where, f"does not run its default recipe {self.default_recipe}.")

    @property
    def stage_numbers(self) -> tuple[int, ...]:
        return tuple(sorted({stage.stage for stage in self.stages}))

    @property
    def switches(self) -> tuple[str, ...]:
        """Its own settings that are on or off."""
        return tuple(dict.fromkeys(feature.name for feature in self.features if feature.switch))

    @property
    def recipes(self) -> tuple[str, ...]:
        """The recipes it names, in order; empty when it runs any."""
        return tuple(recipe for family in self.families.values() for recipe in family)

    def runs(self, recipe: str) -> bool:
        """Whether it runs this recipe."""
        return not self.families or recipe in self.recipes

    def stage(self, number: int, recipe: str, traits: frozenset[str] = frozenset()) -> Stage | None:
        """A stage under a recipe, as it is with these traits; None when the framework does not offer it."""
        return next((s for s in self.stages if s.stage == number and self._treats(s, recipe, traits)), None)

    def held(self, stage: int, recipe: str, traits: frozenset[str]) -> tuple[Holding, ...]:
        """What it keeps beside the states at a stage under a recipe."""
        return tuple(h for h in self.holds if stage in h.stages and self._treats(h, recipe, traits))

    def sent(self, stage: int, recipe: str, traits: frozenset[str]) -> tuple[TransferRule, ...]:
        """What it sends at a stage under a recipe."""
        return tuple(r for r in self.sends if stage in r.stages and self._treats(r, recipe, traits))

    def claimed(self, stage: int, recipe: str, traits: frozenset[str]) -> tuple[Claim, ...]:
        """What its own estimators say of a stage under a recipe."""
        return tuple(c for c in self.claims if stage in c.stages and self._treats(c, recipe, traits))

    def offered(self, name: str, recipe: str) -> tuple[Feature, ...]:
        """The features of a name under a recipe, each at other stages; none where the framework lacks it."""
        return tuple(f for f in self.features if f.name == name and self._runs_as(f.families, recipe))

    def _treats(self, rule: Stage | Holding | TransferRule | Claim, recipe: str, traits: frozenset[str]) -> bool:
        return met(rule.when, traits) and self._runs_as(rule.families, recipe)

    def _runs_as(self, families: tuple[str, ...], recipe: str) -> bool:
        return not families or any(recipe in self.families[family] for family in families)
