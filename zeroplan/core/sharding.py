"""What divides what: the only place that divides by the number of GPUs.

Shards round up, as frameworks pad (DeepSpeed pads flat groups, FSDP1 flat parameters).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from zeroplan.core.framework import MODEL_COUNTS
from zeroplan.core.model import Model
from zeroplan.core.plan import Plan


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


def sent(plan: Plan, less: str = "") -> Elements:
    """The elements of one collective over all parameters, less those that `less` keeps in place."""
    everything = whole(plan.params)
    if not less:
        return everything
    kept = _bounded(everything, "min", _named(plan, less))
    return Elements(everything.count - kept.count, f"params - {kept.formula}", kept.inputs)


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
    model = plan.model
    if count == "params":
        return whole(plan.params)
    if count == "shard":
        return shard(plan.params, plan.gpus)
    if count == "block_shard":
        return _shard_of("largest_block", model.largest_block, plan.gpus)
    if count == "blocks_shard":
        return _shard_of("block_params", plan.params - model.root_params, plan.gpus)
    if count == "tensor_shard":
        return _shard_of("largest_tensor", model.largest_tensor, plan.gpus)
    if count == "overhang":
        return _overhang(model, shard(plan.params, plan.gpus))
    if count in MODEL_COUNTS:
        name, found = _modules(plan, count)
        return Elements(found, name, {name: found})
    limit = plan.framework.limits[count]
    return Elements(limit, count, {count: limit})


def _modules(plan: Plan, count: str) -> tuple[str, int]:
    model = plan.model
    if count == "root":
        return "root_params", model.root_params
    if count == "head":
        return "head_params", model.head_params
    if count == "block":
        return "largest_block", model.largest_block
    if count == "tensor":
        return "largest_tensor", model.largest_tensor
    assert plan.workload is not None  # what needs modules is counted with the activations only
    return "adjacent_modules", model.adjacent_modules(plan.workload.packed_experts)


def _overhang(model: Model, part: Elements) -> Elements:
    """What whole tensors that touch a rank's slice of the flat parameters hold beyond it, on the worst rank."""
    touched = max(touched_elements(model, part.count), part.count)
    return Elements(
        touched - part.count, f"(touched_tensors - {part.formula})", {"touched_tensors": touched, **part.inputs}
    )


@lru_cache(maxsize=16)
def touched_elements(model: Model, slice_elements: int) -> int:
    """The most elements of whole tensors that touch one slice of the flat parameters, the tensors in their order."""
    sums: dict[int, int] = {}
    start = most = 0
    for size in model.tensor_sizes():
        first, last = start // slice_elements, (start + size - 1) // slice_elements
        for rank in {first, last}:
            sums[rank] = sums.get(rank, 0) + size
        if last - first > 1:
            most = max(most, size)
        start += size
    return max(most, *sums.values())


def _shard_of(name: str, params: int, gpus: int) -> Elements:
    return Elements(-(-params // gpus), f"ceil({name} / gpus)", {name: params, "gpus": gpus})


def _bounded(left: Elements, function: str, right: Elements) -> Elements:
    pick = min if function == "min" else max
    formula = f"{function}({left.formula}, {right.formula})"
    return Elements(pick(left.count, right.count), formula, {**left.inputs, **right.inputs})
