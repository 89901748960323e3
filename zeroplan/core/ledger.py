"""The two ledgers: what sits in memory, and what moves over the links."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from zeroplan.core.moments import MOMENTS, PHASES, STREAMS, moments_of, phase_of
from zeroplan.core.scheme import TIERS

STATES = "states."
"""The prefix of the terms that are model states; the rest are buffers and copies."""
CHECKPOINTS = "activations.checkpoints"
"""The inputs of all blocks that are computed again."""


class Term(NamedTuple):
    """One thing that occupies memory on each GPU."""

    name: str
    """Dotted, general to special: `states.optimizer.momentum`."""
    what: str
    role: str
    """parameters, gradients, optimizer, buffers or activations."""
    sharded: bool
    bytes: int
    """Per GPU."""
    tier: str
    moments: tuple[str, ...]
    """The moments at which it is alive."""
    formula: str
    inputs: Mapping[str, int]
    source: str
    stream: str = "compute"
    """The CUDA stream that allocates it."""

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in which it is alive, for a part of each at least."""
        return tuple(dict.fromkeys(map(phase_of, self.moments)))


@dataclass(frozen=True, eq=False, repr=False)
class Ledger:
    """All terms of a plan; sums are remembered."""

    terms: tuple[Term, ...]

    def alive_at(self, moment: str) -> list[Term]:
        """The terms on the GPU at a moment."""
        return [term for term in self.terms if term.tier == "gpu" and moment in term.moments]

    def bytes_at(self, moment: str, tier: str = "gpu") -> int:
        """Bytes per GPU at a moment, on the GPU or off it."""
        return self._sums[tier][moment]

    def peak_of(self, tier: str) -> int:
        """The largest sum of bytes per GPU alive at one moment in a tier."""
        return max(self._sums[tier].values())

    def alive_bytes(self, phase: str) -> int:
        """The most bytes per GPU at a moment of a phase."""
        return max(map(self.bytes_at, moments_of(phase)))

    @property
    def peak_bytes(self) -> int:
        """The largest sum of bytes alive at one moment."""
        return self.peak_of("gpu")

    @property
    def peak_moment(self) -> str:
        """The first moment that reaches the peak."""
        return max(MOMENTS, key=self.bytes_at)

    def peak_without(self, role: str) -> int:
        """The largest sum at one moment of all terms but those of a role."""
        return max(sum(term.bytes for term in self.alive_at(moment) if term.role != role) for moment in MOMENTS)

    @cached_property
    def pooled_bytes(self) -> int:
        """The peaks of each stream's terms together: what pools that lend each other nothing grow to."""
        pools: dict[tuple[str, str], int] = {}
        for term in self.terms:
            if term.tier == "gpu":
                for moment in term.moments:
                    pools[term.stream, moment] = pools.get((term.stream, moment), 0) + term.bytes
        return sum(max((size for (of, _), size in pools.items() if of == stream), default=0) for stream in STREAMS)

    @property
    def peak_phases(self) -> tuple[str, ...]:
        """The phases that reach the peak."""
        peak = self.peak_bytes
        return tuple(p for p in PHASES if any(self.bytes_at(moment) == peak for moment in moments_of(p)))

    @cached_property
    def _sums(self) -> dict[str, dict[str, int]]:
        """Bytes by tier and moment."""
        sums = {tier: dict.fromkeys(MOMENTS, 0) for tier in TIERS}
        for term in self.terms:
            for moment in term.moments:
                sums[term.tier][moment] += term.bytes
        return sums

    @property
    def resident_bytes(self) -> int:
        """The model states held while gradients exist: weights, gradients, optimizer; no buffers or copies."""
        return sum(term.bytes for term in self._states("gpu"))

    def bytes_of(self, role: str, tier: str = "gpu") -> int:
        """Bytes per GPU of the model states with this role in a tier."""
        return sum(term.bytes for term in self._states(tier) if term.role == role)

    def _states(self, tier: str) -> list[Term]:
        return [term for term in self.terms if term.tier == tier and term.name.startswith(STATES)]


class Transfer(NamedTuple):
    """One kind of collective in one optimizer step."""

    collective: str
    what: str
    phase: str
    payload_bytes: int
    """The full array of one call (all calls of one pass over the model together)."""
    times_per_step: int
    wire_bytes: int
    """Sent by each GPU per step, all times together."""
    elements: int
    """Elements moved per step without the ring's (N-1)/N; an all-reduce counts twice."""
    formula: str
    """Of wire_bytes."""
    inputs: Mapping[str, int]
    source: str
    gpus: int
    """How many send to each other."""
    stride: int = 1
    """From one of them to the next; 1: neighbours."""


class Traffic(NamedTuple):
    """All transfers of one optimizer step."""

    transfers: tuple[Transfer, ...]
    """Over the links between GPUs."""
    copies: tuple[Transfer, ...] = ()
    """Between a GPU, its host and the host's disks."""

    @property
    def wire_bytes(self) -> int:
        """Bytes that each GPU sends per optimizer step."""
        return sum(transfer.wire_bytes for transfer in self.transfers)

    @property
    def elements(self) -> int:
        """Elements moved per optimizer step, without (N-1)/N."""
        return sum(transfer.elements for transfer in self.transfers)
