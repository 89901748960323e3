"""What divides what: the only place that divides by the number of GPUs.

Shards round up, as frameworks pad (DeepSpeed pads flat groups, FSDP1 flat parameters).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapreplace

from zeroplan.core.framework import MODEL_COUNTS, TransferRule
from zeroplan.core.model import Model
from zeroplan.core.plan import Plan

MOST_TENSORS = 100_000
"""Of a model whose tensors are laid on slices one by one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Elements:
    """A count of elements with the formula it came from and that formula's inputs."""

    count: int
    formula: str
    inputs: Mapping[str, int]


def whole(params: int) -> Elements:
    """All parameters of the model."""
    return Elements(params, "params", {"params": params})


def shard(params: int, gpus: int) -> Elements:
    """One GPU's part of the parameters, rounded up."""
    return Elements(-(-params // gpus), "ceil(params / gpus)", {"params": params, "gpus": gpus})


def elements(plan: Plan, count: str, at_most: str = "", at_least: str = "") -> Elements:
    """The elements that a framework's rule names: `params`, `shard` or a limit, bounded by others."""
    found = _named(plan, count)
    if at_most:
        found = _bounded(found, "min", _named(plan, at_most))
    if at_least:
        found = _bounded(found, "max", _named(plan, at_least))
    return found


def sent(plan: Plan, rule: TransferRule) -> Elements:
    """The elements of one collective, less those that are still in place."""
    everything = _named(plan, rule.elements)
    less = rule.less or (rule.less_of_model if plan.workload else "")
    if not less:
        return everything
    kept = _bounded(everything, "min", _named(plan, less))
    inputs = {**everything.inputs, **kept.inputs}
    return Elements(everything.count - kept.count, f"{everything.formula} - {kept.formula}", inputs)


def ring_share(payload: Elements, gpus: int) -> Elements:
    """What one GPU sends in one pass of a ring: (N-1)/N of the payload, rounded up to whole elements.

    Source: nccl-tests doc/PERFORMANCE.md.
    """
    inner = payload.formula if payload.formula.isidentifier() else f"({payload.formula})"
    return Elements(
        -(-payload.count * (gpus - 1) // gpus),
        f"ceil({inner} * (gpus - 1) / gpus)",
        {**payload.inputs, "gpus": gpus},
    )


def _named(plan: Plan, count: str) -> Elements:
    if count == "params":
        return whole(plan.params)
    if count == "shard":
        return shard(plan.params, plan.gpus)
    if count in ("row_padding", "tensor_padding"):
        return _padding(plan, count, shard(plan.params, plan.gpus))
    if count == "regathered":
        return _regathered(plan)
    if count == "overhang":
        return _overhang(plan, shard(plan.params, plan.gpus))
    if count in MODEL_COUNTS:
        part = count.removesuffix("_shard")
        name, found = size_of(plan.model, part, _packed(plan))
        if part == count:
            return Elements(found, name, {name: found})
        return Elements(-(-found // plan.gpus), f"ceil({name} / gpus)", {name: found, "gpus": plan.gpus})
    limit = plan.framework.limits[count]
    return Elements(limit, count, {count: limit})


@lru_cache(maxsize=64)
def size_of(model: Model, part: str, packed: bool) -> tuple[str, int]:
    """A part of the model, named in a formula, and its parameters; `packed`: the experts of a block are one module."""
    sizes: dict[str, tuple[str, Callable[[], int]]] = {
        "root": ("root_params", lambda: model.root_params),
        "head": ("head_params", lambda: model.head_params),
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


def _padding(plan: Plan, count: str, part: Elements) -> Elements:
    """What the largest share is above an even one, where ranks take whole rows of tensors, or whole tensors."""
    if count == "row_padding":
        name, share = "row_share", plan.model.row_share(plan.gpus)
    else:
        name, share = "tensor_share", _tensor_share(plan)
    share = max(share, part.count)
    return Elements(share - part.count, f"({name} - {part.formula})", {name: share, **part.inputs})


def _tensor_share(plan: Plan) -> int:
    """The largest share where whole tensors, the largest first, go to the rank that has least so far."""
    packed = _packed(plan)
    tensors, largest = plan.model.tensor_count(packed), plan.model.largest_tensor(packed)
    if plan.gpus >= tensors:
        return largest
    if tensors > MOST_TENSORS:  # no rank is further above the even share than one tensor
        return largest + plan.params // plan.gpus
    return largest_share(plan.model, plan.gpus, packed)


@lru_cache(maxsize=16)
def largest_share(model: Model, ranks: int, packed: bool) -> int:
    """Parameters of the rank with most of them, tensors dealt as ZeroRedundancyOptimizer deals them."""
    shares = [0] * ranks
    for size in sorted(model.tensor_sizes(packed), reverse=True):
        heapreplace(shares, shares[0] + size)
    return max(shares)


def _regathered(plan: Plan) -> Elements:
    """What stage 3 gathers a third time to compute blocks again: all of their weights but the last matrix, which is
    still there; nothing where a whole block stays gathered until its own backward pass."""
    model, kept = plan.model, plan.framework.limits["reuse_kept"]
    if model.largest_block <= kept:
        return Elements(0, "0", {})
    blocks, down = model.params - model.root_params, model.layers * model.largest_down
    inputs = {"block_params": blocks, "layers": model.layers, "down_projection": model.largest_down}
    return Elements(blocks - down, "block_params - layers * down_projection", inputs)


def _packed(plan: Plan) -> bool:
    assert plan.workload is not None  # what needs modules is counted with the activations only
    return plan.workload.packed_experts


def _overhang(plan: Plan, part: Elements) -> Elements:
    """What whole tensors that touch a rank's slice of the flat parameters hold beyond it, on the worst rank."""
    packed = _packed(plan)
    if plan.model.tensor_count(packed) > MOST_TENSORS:  # at most one neighbour at each end
        touched = min(part.count + 2 * plan.model.largest_tensor(packed), plan.params)
    else:
        touched = max(touched_elements(plan.model, part.count, packed), part.count)
    return Elements(
        touched - part.count, f"(touched_tensors - {part.formula})", {"touched_tensors": touched, **part.inputs}
    )


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


def _bounded(left: Elements, function: str, right: Elements) -> Elements:
    pick = min if function == "min" else max
    formula = f"{function}({left.formula}, {right.formula})"
    return Elements(pick(left.count, right.count), formula, {**left.inputs, **right.inputs})
