"""What the model's tensors and modules add up to, where a framework deals with them one by one."""

from collections.abc import Callable
from functools import lru_cache
from heapq import heapreplace
from math import prod
from typing import NamedTuple

from zeroplan.core.model import Model


@lru_cache(maxsize=64)
def size_of(model: Model, part: str, packed: bool) -> tuple[str, int]:
    """A part of the model, named in a formula, and its parameters; `packed`: the experts of a block are one module."""
    sizes: dict[str, tuple[str, Callable[[], int]]] = {
        "root": ("root_params", lambda: model.root_params),
        "head": ("head_params", lambda: model.head_params),
        "embedding": ("embedding_params", lambda: model.embedding_params),
        "top": ("top_params", lambda: model.root_params - model.embedding_params),
        "tied_head": ("head_params", lambda: model.head_params * model.tied),
        "block": ("largest_block", lambda: model.largest_block),
        "tied_block": ("largest_block", lambda: model.largest_block * model.tied),
        "blocks": ("block_params", lambda: model.params - model.root_params),
        "down": ("down_projection", lambda: model.largest_down),
        "first_blocks": ("first_blocks", lambda: model.first_blocks_params),
        "later": ("later_params", lambda: model.later_params),
        "later_blocks": ("later_blocks", lambda: model.later_params - model.head_params),
        "linear": ("linear_params", lambda: model.linear_params),
        "module_pair": ("adjacent_modules", lambda: model.adjacent_modules(packed)),
        "other_modules": ("other_modules", lambda: model.params - model.adjacent_modules(packed)),
        "tensor": ("largest_tensor", lambda: model.largest_tensor(packed)),
    }
    name, size = sizes[part]
    return name, size()


@lru_cache(maxsize=16)
def largest_share(model: Model, ranks: int, packed: bool) -> int:
    """Parameters of the rank with most of them, tensors dealt as ZeroRedundancyOptimizer deals them."""
    shares = [0] * ranks
    for size in sorted(model.tensor_sizes(packed), reverse=True):
        heapreplace(shares, shares[0] + size)
    return max(shares)


@lru_cache(maxsize=16)
def touched_elements(model: Model, slice_elements: int, packed: bool) -> int:
    """The most elements of whole tensors that touch one slice of the flat parameters, the tensors in their order."""
    sums: dict[int, int] = {}
    start = most = 0
    for size in model.tensor_sizes(packed):
        first, last = start // slice_elements, (start + size - 1) // slice_elements
        for rank in {first, last}:
            sums[rank] = sums.get(rank, 0) + size
        if last - first > 1:
            most = max(most, size)
        start += size
    return max(most, *sums.values())


class Quantized(NamedTuple):
    """The gradients that go in 4 bits, and the scales that go with them."""

    elements: int
    scales: int


@lru_cache(maxsize=16)
def quantized_matrices(model: Model, gpus: int) -> Quantized:
    """Matrices that twice the GPUs divide; a scale for each row or column, whichever are more, or each GPU.

    Source: deepspeedai/DeepSpeed 0.19.8 runtime/comm/coalesced_collectives.py, all_to_all_quant_reduce.
    """
    elements = scales = 0
    for shape, count in model.tensor_shapes():
        size = prod(shape)
        if len(shape) > 1 and size % (2 * gpus) == 0:
            elements += count * size
            scales += count * max(shape[0], shape[1], gpus)
    return Quantized(elements, scales)
