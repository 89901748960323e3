"""The rules that a framework is made of: its stages, what it holds, what it sends, what its estimators say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zeroplan.core.checks import check_member, check_members, check_range, check_text
from zeroplan.core.hardware import STRICT
from zeroplan.core.moments import BACKWARD, MOMENT_NAMES, PHASES, STREAMS, moments_of
from zeroplan.core.recipe import ROLES
from zeroplan.core.scheme import OFFLOAD, PLACES, QUANTIZE, SECONDARY, SHARD_GROUP, TIERS

STAGES = (0, 1, 2, 3)
PLAIN_STAGE = 0
"""Plain data parallelism, the yardstick of traffic."""
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all")
COPIES = ("copy to CPU", "copy to GPU", "write to NVMe", "read from NVMe")
"""What moves between a GPU, its host and the host's disks."""
GROUPS = ("all", "shard", "replicas", "gather", "node", "across")
"""Over which GPUs: all; those that divide the states, or have the same part of them; those that weights are gathered
from once there is a second copy; those of one node, or the same one of each node."""
TYPES = ("compute", "gradients", "weights", "optimizer", "fp32", "fp64", "gather", "int4")
"""Element types of buffers and transfers: the recipe's compute, gradient or weight type, or all its optimizer states;
so many bits; or what weights are gathered in, the compute type or 8 bits with scales."""
COUNTS = (
    *("params", "shard", "secondary", "reuse_kept", "live_kept", "unkept_shard"),
    *("matrices", "node_matrices", "vectors", "gradient_scales", "node_scales"),
)
"""Element counts that every plan has; a framework adds its own limits."""
MODEL_COUNTS = (
    "root",
    "head",
    "embedding",
    "embedding_shard",
    "top",
    "top_shard",
    "block",
    "block_shard",
    "blocks_shard",
    "blocks_secondary",
    "root_shard",
    "down",
    "later",
    "later_blocks_shard",
    "first_blocks",
    "linear",
    "regathered",
    "regathered_shard",
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
TIMES = ("step", "micro-batch", "later")
"""How often: once a step, in each micro-batch, or in each but the first."""
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
    when: tuple[str, ...] = ()
    """Only where these traits of the plan are there, or are `not`; see Plan.traits."""
    stream: str = "compute"
    """The CUDA stream that allocates it, one of STREAMS."""
    tier: str = "gpu"
    """Where it is: a tier, or one of PLACES, which it is with."""
    copies: int = 1
    source: str

    def __post_init__(self) -> None:
        check_text(f"{self.name}, source", self.source)
        check_member(f"{self.name}, type", self.type, TYPES)
        check_members(f"{self.name}, phases", self.phases, MOMENT_NAMES)
        check_range(f"{self.name}, copies", self.copies, 1, 100)
        check_member(f"{self.name}, stream", self.stream, STREAMS)
        check_member(f"{self.name}, tier", self.tier, (*TIERS, *PLACES))

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
    """One kind of collective, or of copy, of some stages."""

    __pydantic_config__ = STRICT

    collective: str
    what: str
    stages: tuple[int, ...]
    families: tuple[str, ...] = ()
    type: str
    phase: str
    per: str
    """One of TIMES."""
    over: str = "shard"
    """One of GROUPS."""
    elements: str = "params"
    """What is sent, one of COUNTS or MODEL_COUNTS; the latter with activations only."""
    less: str = ""
    """A limit: so many elements at most are still there and need not be sent."""
    less_of_model: str = ""
    """One of MODEL_COUNTS: so many elements are still there, where activations are counted."""
    when: tuple[str, ...] = ()
    """Only where these traits of the plan are there, or are `not`."""
    source: str

    @property
    def needs_model(self) -> bool:
        """Whether it is counted in elements that only the model's modules tell."""
        return self.elements in MODEL_COUNTS

    def __post_init__(self) -> None:
        where = f"{self.collective} of {self.what}"
        check_text(f"{where}, source", self.source)
        check_member("collective", self.collective, (*COLLECTIVES, *COPIES))
        check_member(f"{where}, over", self.over, GROUPS)
        check_member(f"{where}, type", self.type, TYPES)
        check_member(f"{where}, phase", self.phase, PHASES)
        check_member(f"{where}, per", self.per, TIMES)


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
    host_bytes: int = 0
    """Of host memory: bytes per parameter, at least; a claim of the host has nothing of the above."""
    host_gpus_bytes: int = 0
    """Of host memory: bytes per parameter and GPU, of all nodes."""
    host_divided: bool = False
    """Whether the host memory is divided over the nodes."""
    host_percent: int = 100
    when: tuple[str, ...] = ()
    """Only where these traits of the plan are there, or are `not`."""
    judgement: str
    """Whether it is right against measurement, and why."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Feature:
    """Something that a framework does beside its stages, when asked: offload, a group, quantisation, a switch."""

    __pydantic_config__ = STRICT

    name: str
    """As in Scheme.features: `offload-optimizer`, `shard-group`, `hpz`, `quantize-weights`, or a setting's own name."""
    what: str
    stages: tuple[int, ...]
    families: tuple[str, ...] = ()
    """The families of recipes it works with; empty: all."""
    tiers: tuple[str, ...] = ()
    """Of an offload: where to."""
    without: tuple[str, ...] = ()
    """What it does not work with, or is not modelled with."""
    accumulates_with: str = ""
    """The feature without which it does not work with several micro-batches a step."""
    source: str

    @property
    def switch(self) -> bool:
        """Whether it is a setting of the framework's own."""
        return self.name not in (SHARD_GROUP, SECONDARY) and not self.name.startswith((OFFLOAD, QUANTIZE))

    def __post_init__(self) -> None:
        check_text(f"{self.name}, source", self.source)
        check_members(f"{self.name}, tiers", self.tiers, TIERS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Stage:
    """One stage as a framework offers it, for some families of recipes (none named: for all)."""

    __pydantic_config__ = STRICT

    stage: int
    title: str
    families: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    """Only where these traits of the plan are there, or are `not`."""
    shards: tuple[str, ...] = ()
    """The roles whose states are divided over the GPUs."""
    like: int | None = None
    """The stage whose rules it follows, where not its own."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where the states of a role are, a tier or one of PLACES, where not with their own."""
    saves: tuple[str, ...] = ("parameters", "optimizer")
    """The roles whose states a checkpoint to resume from has."""
    gradients_alive: tuple[str, ...] = ("backward", "step")
    gradients_alive_accumulating: tuple[str, ...] = ("forward", "backward", "step")
    gradients_stream: str = "compute"
    """The CUDA stream that allocates the gradients."""
    gradients_in_backward: tuple[str, ...] = ("end",)
    """The moments of the backward in which all of them exist, where it is the backward that makes them."""
    notes: str = ""

    def __post_init__(self) -> None:
        check_member("stage", self.stage, STAGES)
        check_members(f"stage {self.stage}, places", self.places.values(), (*TIERS, *PLACES))
        check_members(f"stage {self.stage}, shards", self.shards, ROLES)
        check_members(f"stage {self.stage}, saves", self.saves, ROLES)
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
