"""The model to train: its parameters, in which modules and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from zeroplan.core.checks import check_range

if TYPE_CHECKING:  # a count alone has no blocks
    from zeroplan.core.blocks import Architecture, Module, Run, Shape, Stack

LARGEST_MODEL = 10**18
LAST_MODULES = ("final_norm", "embed_out", "lm_head")
"""What a decoder registers after its blocks."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Model:
    """`params` trained parameters and where they sit; without blocks only their number is known."""

    params: int
    name: str = ""
    root: tuple[Module, ...] = ()
    """What belongs to no block: embeddings, final norm, head."""
    stacks: tuple[Stack, ...] = ()
    architecture: Architecture | None = None
    """None: its activations are not modelled."""
    unmodelled: str = ""
    """Why they are not, where it is not for its model_type."""
    model_type: str = ""
    assumed: tuple[tuple[str, str], ...] = ()
    """(key, value) pairs that its file leaves out and its class fills in."""
    notes: tuple[str, ...] = ()
    path: str = ""
    """The file or folder it was read from; empty for a preset."""
    source: str = ""

    def __post_init__(self) -> None:
        check_range("--params", self.params, 1, LARGEST_MODEL)

    @property
    def known(self) -> bool:
        """Whether its modules are known, not only how many parameters it has."""
        return bool(self.root or self.stacks)

    @property
    def why_unmodelled(self) -> str:
        """Why its activations are not modelled, as the end of a sentence."""
        return self.unmodelled or f"those of {self.model_type or 'this model'} are not modelled yet"

    @property
    def runs(self) -> tuple[Run, ...]:
        """All blocks in order, equal neighbours together."""
        return tuple(run for stack in self.stacks for run in stack.runs)

    @property
    def layers(self) -> int:
        return sum(run.count for run in self.runs)

    def modules(self) -> Iterator[Module]:
        """Each kind of module once per run of equal blocks."""
        yield from self.root
        for run in self.runs:
            yield from run.block.modules

    @property
    def active_params(self) -> int:
        """The parameters that one token uses, input embedding included."""
        inside = sum(run.count * sum(m.active_params for m in run.block.modules) for run in self.runs)
        return sum(module.active_params for module in self.root) + inside

    @property
    def root_params(self) -> int:
        return sum(module.params for module in self.root)

    @property
    def largest_block(self) -> int:
        return max((run.block.params for run in self.runs), default=0)

    @property
    def largest_down(self) -> int:
        """The last matrix of a feed-forward part, of all its experts: the first weight whose gradient a block makes."""
        feeds = (run.block.feed for run in self.runs)
        hidden = self.architecture.hidden if self.architecture else 0
        return max((hidden * feed.width * max(1, feed.experts) for feed in feeds if feed), default=0)

    @property
    def first_blocks_params(self) -> int:
        """The two blocks that the backward pass reaches last; of two blocks, one."""
        left, found = min(2, max(1, self.layers - 1)), 0
        for run in self.runs:
            taken = min(left, run.count)
            found, left = found + taken * run.block.params, left - taken
        return found

    @property
    def later_params(self) -> int:
        """What has a gradient when the backward pass reaches the last but one block: the head and the blocks before."""
        return self.params - self.root_params + self.head_params - self.first_blocks_params

    @property
    def linear_params(self) -> int:
        """The weights of matrix products: all but vectors, and embeddings that are not also the head."""
        tables = self.root_params - self.head_params
        vectors = sum(
            run.count * sum(prod(shape) for module in run.block.modules for shape in module.shapes if len(shape) < 2)
            for run in self.runs
        )
        return self.params - tables - vectors

    def largest_tensor(self, packed: bool = True) -> int:
        """The most parameters of one tensor; of experts that are a list of modules, of one expert's matrix."""
        return max((module.largest_tensor(packed) for module in self.modules()), default=0)

    def row_share(self, ranks: int) -> int:
        """What the first of so many ranks holds where each takes whole rows of every tensor, as FSDP2 does."""
        inside = sum(run.count * sum(m.row_share(ranks) for m in run.block.modules) for run in self.runs)
        return inside + sum(module.row_share(ranks) for module in self.root)

    def tensor_count(self, packed: bool = True) -> int:
        """How many tensors there are."""
        inside = sum(run.count * sum(m.tensor_count(packed) for m in run.block.modules) for run in self.runs)
        return inside + sum(module.tensor_count(packed) for module in self.root)

    def tensor_sizes(self, packed: bool = True) -> Iterator[int]:
        """Every tensor's elements, in the order in which the model registers them."""
        last = tuple(module for module in self.root if module.name in LAST_MODULES)
        first = tuple(module for module in self.root if module.name not in LAST_MODULES)
        blocks = (run.block.modules for run in self.runs for _ in range(run.count))
        for modules in (first, *blocks, last):
            for module in modules:
                yield from module.tensor_sizes(packed)

    def tensor_shapes(self) -> Iterator[tuple[Shape, int]]:
        """Every shape of a tensor and how many of them there are, equal blocks together."""
        yield from ((shape, 1) for module in self.root for shape in module.shapes)
        for run in self.runs:
            yield from ((shape, run.count) for module in run.block.modules for shape in module.shapes)

    @property
    def tied(self) -> bool:
        """Whether the embedding is the head too."""
        return self.known and all(module.name != "lm_head" for module in self.root)

    @property
    def embedding_params(self) -> int:
        """The largest table before the blocks."""
        return max((module.params for module in self.root if module.name not in LAST_MODULES), default=0)

    @property
    def head_params(self) -> int:
        """The module that makes the logits: the head, or the embedding it is tied to."""
        return max((module.params for module in self.root), default=0)

    def adjacent_modules(self, packed: bool = True) -> int:
        """The most parameters of two modules that run one after the other."""
        from zeroplan.core.blocks import largest_pair

        sequences = (self.root, *(run.block.modules for run in self.runs))
        return max((largest_pair(modules, packed) for modules in sequences), default=0)

    def largest_module(self, packed: bool = True) -> Module:
        """The module with most parameters of its own, as DeepSpeed gathers them."""
        return max(self.modules(), key=lambda m: m.params if packed else m.listed_params)
