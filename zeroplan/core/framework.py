"""How an implementation of data parallelism behaves: what it shards, holds and sends at each stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zeroplan.core.checks import check_member, check_members, check_range, check_text
from zeroplan.core.choices import FUSIBLE, KERNELS
from zeroplan.core.hardware import STRICT
from zeroplan.core.moments import BACKWARD, MOMENT_NAMES, PHASES, STREAMS, moments_of
from zeroplan.core.recipe import ROLES
from zeroplan.errors import InputError

STAGES = (0, 1, 2, 3)
PLAIN_STAGE = 0
"""Plain data parallelism, the yardstick of traffic."""
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "broadcast")
TYPES = ("compute", "gradients", "weights", "fp32", "fp64")
"""Element types of buffers and transfers: the recipe's compute, gradient or weight type, 4 or 8 bytes."""
COUNTS = ("params", "shard")
"""Element counts that every plan has; a framework adds its own limits."""
MODEL_COUNTS = (
    "root",
    "head",
    "block",
    "block_shard",
    "blocks_shard",
    "down",
    "later",
    "later_blocks_shard",
    "first_blocks",
    "linear",
    "regathered",
    "tied_block",
    "tied_head",
    "module_pair",
    "other_modules",
    "tensor",
    "tensor_shard",
    "overhang",
    "row_padding",
    "tensor_padding",
)
"""Element counts that need the model's modules: what uses them is counted only with the activations."""
SELECTIVE = ("attention", "matmuls")
"""What selective recomputation keeps: all but the attention core, or every second matrix product."""


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
    """`params`, `shard`, one of the framework's limits, or one of MODEL_COUNTS."""
    at_most: str = ""
    at_least: str = ""
    phases: tuple[str, ...]
    """Phases, groups of moments or moments, of MOMENT_NAMES."""
    accumulating: bool | None = None
    """True: only with several micro-batches a step; False: only with one; None: both."""
    with_activations: bool | None = None
    """True: only where activations are counted; False: only where they are not; None: both."""
    several_gpus: bool = False
    """Only with more than one GPU."""
    stream: str = "compute"
    """The CUDA stream that allocates it, one of STREAMS."""
    tier: str = "gpu"
    """Where it is, gpu or cpu."""
    kernels: tuple[str, ...] = ()
    """The optimizer kernels it applies to; empty: all."""
    copies: int = 1
    source: str

    def __post_init__(self) -> None:
        check_text(f"{self.name}, source", self.source)
        check_member(f"{self.name}, type", self.type, TYPES)
        check_members(f"{self.name}, phases", self.phases, MOMENT_NAMES)
        check_members(f"{self.name}, kernels", self.kernels, KERNELS)
        check_range(f"{self.name}, copies", self.copies, 1, 100)
        check_member(f"{self.name}, stream", self.stream, STREAMS)
        check_member(f"{self.name}, tier", self.tier, ("gpu", "cpu"))

    @property
    def needs_model(self) -> bool:
        """Whether it is counted in elements that only the model's modules tell."""
        named = (self.elements, self.at_most, self.at_least)
        return any(count in MODEL_COUNTS for count in named)

    @property
    def moments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(moment for name in self.phases for moment in moments_of(name)))


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
    elements: str = "params"
    """What is sent, one of COUNTS or MODEL_COUNTS; the latter with activations only."""
    less: str = ""
    """A limit: so many elements at most are still there and need not be sent."""
    less_of_model: str = ""
    """One of MODEL_COUNTS: so many elements are still there, where activations are counted."""
    recomputing: bool = False
    """Only where whole blocks are computed again."""
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
    layer_bytes: int = 0
    """Bytes per parameter of the largest module, where the model is known."""
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
    gradients_stream: str = "compute"
    """The CUDA stream that allocates the gradients."""
    gradients_in_backward: tuple[str, ...] = ("end",)
    """The moments of the backward in which all of them exist, where it is the backward that makes them."""
    notes: str = ""

    def __post_init__(self) -> None:
        check_member("stage", self.stage, STAGES)
        check_members(f"stage {self.stage}, shards", self.shards, ROLES)
        check_members(f"stage {self.stage}, gradients_alive", self.gradients_alive, PHASES)
        check_members(f"stage {self.stage}, gradients_alive", self.gradients_alive_accumulating, PHASES)
        check_members(f"stage {self.stage}, gradients_in_backward", self.gradients_in_backward, BACKWARD)
        check_member(f"stage {self.stage}, gradients_stream", self.gradients_stream, STREAMS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Slack:
    """What the allocator takes from the card, as percent of the peaks of all streams' tensors together."""

    __pydantic_config__ = STRICT

    low: int
    expected: int
    high: int
    squeezed: int
    """Of the peak, where the run needs nearly the whole card: cached blocks are given back before it fails."""
    source: str

    def __post_init__(self) -> None:
        check_text("slack, source", self.source)
        for name, value in (("low", self.low), ("high", self.high), ("squeezed", self.squeezed)):
            check_range(f"slack, {name}", value, 50, 1000, "percent")
        check_range("slack, expected", self.expected, self.low, self.high, "percent")


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
            check_range(f"{where}, limits.{name}", limit, 1, 10**18, "elements")
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
            check_members(name, [rule.less] if rule.less else [], tuple(self.limits))
            check_members(name, [rule.less_of_model] if rule.less_of_model else [], MODEL_COUNTS)
            check_member(f"{name}, elements", rule.elements, (*COUNTS, *MODEL_COUNTS))
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
