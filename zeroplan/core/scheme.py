"""How states are placed and sent, beside the stage: offload, groups, quantisation, and a framework's own switches."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

from zeroplan.core.checks import check_member, check_members, check_range

TIERS = ("gpu", "cpu", "nvme")
PLACES = ("optimizer", "gradients", "params")
"""What can be kept off the GPU; gradients go with the optimizer where nothing else is said."""
QUANTIZED = ("weights", "gradients")
SHARD_GROUP, SECONDARY, OFFLOAD, QUANTIZE = "shard-group", "hpz", "offload-", "quantize-"
LARGEST_GROUP = 10**6
NEVER_ZERO = ("quantize_group_size",)
"""Settings that something is divided by."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Scheme:
    """Where states are and how they are sent; nothing set: all on the GPU, over all GPUs."""

    optimizer: str = "gpu"
    gradients: str = ""
    """Empty: with the optimizer."""
    params: str = "gpu"
    shard_group: int = 0
    """GPUs over which states are divided, and replicated beyond; 0: all."""
    hpz: int = 0
    """GPUs over which a second 16-bit copy of the weights is divided; 0: there is none."""
    quantize: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    """What is on of the framework's own settings, such as overlap_comm."""
    limits: tuple[tuple[str, int], ...] = ()
    """The framework's own numbers that are set, such as reduce_bucket_size, in elements."""

    def __post_init__(self) -> None:
        check_member("--offload optimizer", self.optimizer, TIERS)
        check_member("--offload gradients", self.gradients, ("", *TIERS))
        check_member("--offload params", self.params, TIERS)
        check_range("--shard-group", self.shard_group, 0, LARGEST_GROUP, "GPUs")
        check_range("--hpz", self.hpz, 0, LARGEST_GROUP, "GPUs")
        check_members("--quantize", self.quantize, QUANTIZED)

    def tier(self, place: str) -> str:
        """The tier of the optimizer, the gradients or the parameters."""
        return getattr(self, place) or self.optimizer

    @property
    def unit(self) -> int:
        """What the number of GPUs is a multiple of: its groups."""
        return lcm(self.shard_group or 1, self.hpz or 1)

    @property
    def offloads(self) -> dict[str, str]:
        """What is asked to be off the GPU, and where."""
        return {place: tier for place in PLACES if (tier := getattr(self, place)) not in ("", "gpu")}

    @property
    def features(self) -> tuple[str, ...]:
        """What a framework must offer for it."""
        return tuple(self._features())

    def _features(self) -> Iterable[str]:
        yield from (OFFLOAD + place for place in self.offloads)
        if self.shard_group:
            yield SHARD_GROUP
        if self.hpz:
            yield SECONDARY
        yield from (QUANTIZE + name for name in self.quantize)
        yield from self.switches

    @property
    def traits(self) -> frozenset[str]:
        """What the rules of a framework can depend on: its features, and `off-` and `nvme-` with what is there."""
        places = {place: self.tier(place) for place in PLACES}
        off = (f"off-{place}" for place, tier in places.items() if tier != "gpu")
        nvme = (f"nvme-{place}" for place, tier in places.items() if tier == "nvme")
        return frozenset((*self.features, *off, *nvme))


PLAIN = Scheme()


def met(when: Iterable[str], traits: frozenset[str]) -> bool:
    """Whether every condition holds: a trait is there, or, after `not`, is not."""
    return all((name.removeprefix("not ") in traits) != name.startswith("not ") for name in when)
