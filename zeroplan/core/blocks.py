"""What a model is made of: modules, the blocks they form, and the dimensions that activations follow from."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Module:
    """A module with parameters of its own; those of its children belong to them."""

    name: str
    shapes: tuple[Shape, ...]
    experts: int = 1
    """How many experts it holds; one for what every token goes through."""
    experts_per_token: int = 1
    packed: bool = True
    """Whether the experts are one module in every version; before transformers 5 most were a list."""

    @property
    def params(self) -> int:
        return sum(map(prod, self.shapes))

    @property
    def active_params(self) -> int:
        """The parameters that one token uses."""
        return self.params * self.experts_per_token // self.experts

    @property
    def listed_params(self) -> int:
        """The largest module it is made of when each expert is a module of its own: one of its matrices."""
        return self.params if self.packed else max(_expert_matrices(self.shapes))

    def row_share(self, ranks: int) -> int:
        """What the first of so many ranks holds, of whole rows of every tensor."""
        return sum(-(-shape[0] // ranks) * prod(shape[1:]) if shape else 1 for shape in self.shapes)

    def tensor_count(self, packed: bool = True) -> int:
        """How many tensors it holds."""
        return len(self.shapes) if packed or self.packed else self.experts * len(list(_expert_matrices(self.shapes)))

    def largest_tensor(self, packed: bool = True) -> int:
        """The most parameters of one of them."""
        sizes = map(prod, self.shapes) if packed or self.packed else _expert_matrices(self.shapes)
        return max(sizes, default=0)

    def tensor_sizes(self, packed: bool = True) -> Iterator[int]:
        """The parameters of each tensor; of experts that are a list of modules, of each expert's matrices."""
        if packed or self.packed:
            yield from map(prod, self.shapes)
        else:
            yield from (size for _ in range(self.experts) for size in _expert_matrices(self.shapes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Attention:
    """Attention of one block; dimensions in elements."""

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    """Of one head's value; equal to head_dim except in latent attention."""
    qk_norm: str = ""
    """`head`: each head's query and key are normalised; `full`: all heads together."""
    query_rank: int = 0
    """Latent attention: the width of the compressed query; 0: not compressed."""
    kv_rank: int = 0
    """Latent attention: the width of the compressed key and value; 0: ordinary attention."""
    rope_dim: int = 0
    """Latent attention: the part of a head that carries the position."""
    fused: bool = False
    """Whether query, key and value are one matrix."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FeedForward:
    """The feed-forward part of one block: an MLP, or experts of which a token uses some."""

    width: int
    """Of the MLP, or of one expert."""
    gated: bool
    fused: bool = False
    """Whether gate and up are one matrix."""
    experts: int = 0
    experts_per_token: int = 0
    shared_width: int = 0
    """Of the experts that every token uses, together."""
    shared_gate: bool = False
    """Whether a gate weighs the shared experts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Block:
    """One repeated block: its modules, and what its activations follow from where that is known."""

    modules: tuple[Module, ...]
    attention: Attention | None = None
    """None: not ordinary attention, or dimensions not known."""
    feed: FeedForward | None = None
    norms: int = 2
    """Over the hidden width; 1 where attention and feed-forward share one, 4 with post-norms."""
    parallel: bool = False
    """Attention and feed-forward side by side, added to the residual together."""

    @property
    def params(self) -> int:
        return sum(module.params for module in self.modules)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Run:
    """Equal blocks in a row."""

    block: Block
    count: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Stack:
    """A repeated part of the model: its blocks in order, equal neighbours together."""

    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Architecture:
    """What the activations of a decoder follow from, beside its blocks; widths in elements."""

    hidden: int
    vocab: int
    norm: str
    """`rms`; `rms-fp32`, with the weight applied in fp32; `layer`; or `layer-eager`, written out in Python."""
    post_norms: int = 0
    """Of a block's norms, those after its parts."""
    residuals: int = 0
    """Inputs of a block's parts that are kept beside its norms; an eager RMSNorm keeps a copy instead."""
    activation: str = "silu"
    """Of the feed-forward parts, as ACTIVATION_TENSORS in kept_feed.py names it."""
    keeps_projection: bool = False
    """Whether the one matrix of query, key and value leaves its whole output, of which the value is a part."""
    copies_output: bool = False
    """Rotary positions that leave the query in an order for which flash attention's output is copied."""
    fp32_query: bool = False
    """Whether an eager attention keeps query and key in fp32."""
    softmax: str = "fp32"
    """Of an eager attention: `fp32` or `16-bit`."""
    softcap: bool = False
    """Whether its scores go through a tanh."""
    head_softcap: bool = False
    """Whether the logits do."""
    sinks: bool = False
    """Whether each head has a learned sink beside its scores."""
    router: str = ""
    """`softmax`, `softmax-fp32` (input cast), `sigmoid` (input cast) or `top-k` (softmax of the chosen)."""
    renormalised: bool = False
    """Whether the weights of a token's experts are made to add up to 1."""
    route_bytes: int = 4
    """Of the weight of one expert of a token."""
    positions: int = 0
    """Learned positions, the longest sequence; 0: none are learned."""
    residual_dropout: bool = False
    residual_masks: int = 2
    """Dropout masks of a block, of the hidden width."""
    attention_dropout: bool = False


def _expert_matrices(shapes: tuple[Shape, ...]) -> Iterator[int]:
    """Parameters of each matrix of one expert; gate and up, which are packed together, count apart."""
    for place, shape in enumerate(shapes[:2]):
        yield prod(shape[1:]) // (2 if place == 0 else 1)


def largest_pair(modules: tuple[Module, ...], packed: bool) -> int:
    """The most parameters of two modules that follow each other."""
    sizes = [module.params if packed else module.listed_params for module in modules]
    return max((sum(pair) for pair in pairwise(sizes)), default=sum(sizes))
