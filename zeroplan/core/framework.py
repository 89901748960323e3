"""How an implementation of data parallelism behaves: what it shards, holds and sends at each stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zeroplan.core.checks import check_member, check_members, check_range, check_text
from zeroplan.core.hardware import STRICT
from zeroplan.core.recipe import ROLES
from zeroplan.errors import InputError

PHASES = ("load", "forward", "backward", "step", "save")
STAGES = (0, 1, 2, 3)
PLAIN_STAGE = 0
"""Plain data parallelism, the yardstick of traffic."""
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather")
TYPES = ("compute", "gradients", "fp32")
"""Element types of buffers and transfers: the recipe's compute type, its gradient type, or 4 bytes."""
COUNTS = ("params", "shard")
"""Element counts that every plan has; a framework adds its own limits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Holding:
    """Something a framework keeps beside the recipe's states: a copy or a buffer."""

    __pydantic_config__ = STRICT

    name: str
    what: str
    stages: tuple[int, ...]
    families: tuple[str, ...] = ()
    """The families of recipes it applies to; empty: all."""
    type: str
    elements: str
    """`params`, `shard`, or one of the framework's limits."""
    at_most: str = ""
    at_least: str = ""
    phases: tuple[str, ...]
    accumulating: bool | None = None
    """True: only with several micro-batches a step; False: only with one; None: both."""
    source: str

    def __post_init__(self) -> None:
        check_text(f"{self.name}, source", self.source)
        check_member(f"{self.name}, type", self.type, TYPES)
        check_members(f"{self.name}, phases", self.phases, PHASES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TransferRule:
    """One kind of collective of some stages, over all GPUs."""

    __pydantic_config__ = STRICT

    collective: str
    what: str
    stages: tuple[int, ...]
    families: tuple[str, ...] = ()
    type: str
    phase: str
    per: str
    """`step` or `micro-batch`."""
    less: str = ""
    """A limit: so many elements at most are still there and need not be sent."""
    source: str

    def __post_init__(self) -> None:
        where = f"{self.collective} of {self.what}"
        check_text(f"{where}, source", self.source)
        check_member("collective", self.collective, COLLECTIVES)
        check_member(f"{where}, type", self.type, TYPES)
        check_member(f"{where}, phase", self.phase, PHASES)
        check_member(f"{where}, per", self.per, ("step", "micro-batch"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Claim:
    """What the framework's own estimator says; shown beside the ledger, used for no verdict."""

    __pydantic_config__ = STRICT

    name: str
    stages: tuple[int, ...]
    families: tuple[str, ...] = ()
    whole_bytes: int
    """Bytes per parameter."""
    shard_bytes: int
    """Bytes per parameter of a shard."""
    judgement: str
    """Whether it is right against measurement, and why."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Stage:
    """One stage as a framework offers it, for some families of recipes (none named: for all)."""

    __pydantic_config__ = STRICT

    stage: int
    title: str
    families: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    """The roles whose states are divided over the GPUs."""
    gradients_alive: tuple[str, ...] = ("backward", "step")
    gradients_alive_accumulating: tuple[str, ...] = ("forward", "backward", "step")
    notes: str = ""

    def __post_init__(self) -> None:
        check_member("stage", self.stage, STAGES)
        check_members(f"stage {self.stage}, shards", self.shards, ROLES)
        check_members(f"stage {self.stage}, gradients_alive", self.gradients_alive, PHASES)
        check_members(f"stage {self.stage}, gradients_alive", self.gradients_alive_accumulating, PHASES)


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
    not_counted: str = ""
    """What `--params` alone cannot tell of this framework's memory."""
    notes: str = ""
    source: str

    def __post_init__(self) -> None:
        where = f"framework {self.name}"
        check_text(f"{where}, source", self.source)
        for name, limit in self.limits.items():
            check_range(f"{where}, limits.{name}", limit, 1, 10**18, "elements")
        if PLAIN_STAGE not in self.stage_numbers:
            raise InputError(where, "has no stage 0, the yardstick of its traffic.")
        if not any(PLAIN_STAGE in rule.stages for rule in self.sends):
            raise InputError(where, "sends nothing at stage 0, the yardstick of its traffic.")
        counts = (*COUNTS, *self.limits)
        for holding in self.holds:
            named = [holding.elements, *filter(None, (holding.at_most, holding.at_least))]
            check_members(f"{where}, {holding.name}", named, counts)
        for rule in self.sends:
            check_members(f"{where}, {rule.collective}", [rule.less] if rule.less else [], tuple(self.limits))
        parts: tuple[Stage | Holding | TransferRule | Claim, ...]
        parts = (*self.stages, *self.holds, *self.sends, *self.claims)
        for part in parts:
            check_members(f"{where}, families", part.families, tuple(self.families))
        if not self.runs(self.default_recipe):
            raise InputError(where, f"does not run its default recipe {self.default_recipe}.")

    @property
    def stage_numbers(self) -> tuple[int, ...]:
        return tuple(sorted({stage.stage for stage in self.stages}))

    @property
    def recipes(self) -> tuple[str, ...]:
        """The recipes it names, in order; empty when it runs any."""
        return tuple(recipe for family in self.families.values() for recipe in family)

    def runs(self, recipe: str) -> bool:
        """Whether it runs this recipe."""
        return not self.families or recipe in self.recipes

    def stage(self, number: int, recipe: str) -> Stage | None:
        """A stage under a recipe; None when the framework does not offer it."""
        return next((s for s in self.stages if s.stage == number and self._treats(s.families, recipe)), None)

    def held(self, stage: int, recipe: str) -> tuple[Holding, ...]:
        """What it keeps beside the states at a stage under a recipe."""
        return tuple(h for h in self.holds if stage in h.stages and self._treats(h.families, recipe))

    def sent(self, stage: int, recipe: str) -> tuple[TransferRule, ...]:
        """What it sends at a stage under a recipe."""
        return tuple(r for r in self.sends if stage in r.stages and self._treats(r.families, recipe))

    def claimed(self, stage: int, recipe: str) -> tuple[Claim, ...]:
        """What its own estimators say of a stage under a recipe."""
        return tuple(c for c in self.claims if stage in c.stages and self._treats(c.families, recipe))

    def _treats(self, families: tuple[str, ...], recipe: str) -> bool:
        return not families or any(recipe in self.families[family] for family in families)
