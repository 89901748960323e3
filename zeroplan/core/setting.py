"""How a block is computed, and bytes per token as sums with their formulas: what kept.py and flight.py are made of."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from zeroplan.core.blocks import Architecture, Attention, Block, FeedForward
from zeroplan.core.sharding import Elements
from zeroplan.core.workload import Workload

FP32_BYTES = 4  # IEEE 754 binary32
INDEX_BYTES = 8  # int64
MASK_BYTES = 1  # of native_dropout, per element
Piece = tuple[int, Mapping[str, int]]
"""A number of bytes times the dimensions that it is multiplied with."""


class Setting(NamedTuple):
    """How a block is computed."""

    shape: Architecture
    work: Workload
    size: int
    """Bytes of a value in the compute type."""
    autocast: bool
    """fp32 weights under autocast: the residual stream stays fp32, and every matrix keeps its own cast of its input."""

    @property
    def hidden(self) -> dict[str, int]:
        return {"hidden": self.shape.hidden}

    def fuses(self, part: str) -> bool:
        return part in self.work.fused


class Part(NamedTuple):
    """Bytes per token that one part of a block keeps."""

    name: str
    kept: Elements


def total(pieces: Iterable[Piece]) -> Elements:
    """Pieces added up, with the formula."""
    count, words = 0, []
    inputs: dict[str, int] = {}
    for factor, dims in pieces:
        value = factor
        for dim in dims.values():
            value *= dim
        if value:
            count += value
            words.append(" * ".join((str(factor), *dims)))
            inputs.update(dims)
    return Elements(count, " + ".join(words) or "0", inputs)


def added(sums: Iterable[Elements]) -> Elements:
    """Sums added up, with the formula."""
    sums = list(sums)
    inputs = {name: value for each in sums for name, value in each.inputs.items()}
    return Elements(sum(each.count for each in sums), " + ".join(each.formula for each in sums), inputs)


def parts_of(block: Block) -> tuple[Attention, FeedForward]:
    """The attention and feed-forward part, which every block has whose activations are modelled."""
    assert block.attention is not None
    assert block.feed is not None
    return block.attention, block.feed
