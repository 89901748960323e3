"""The counts of elements that the rules of a framework name: parts of the model, limits, and what follows from both."""

from collections.abc import Callable

from zeroplan.core.plan import Plan
from zeroplan.core.rules import MODEL_COUNTS, TransferRule
from zeroplan.core.sharding import MOST_TENSORS, Elements, group_of, shard_of, tensor_share, whole
from zeroplan.core.tensors import quantized_matrices, size_of, touched_elements


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


def _named(plan: Plan, count: str) -> Elements:
    if count == "params":
        return whole(plan.params)
    if count == "shard":
        return shard_of(plan)
    if count in _SPECIAL:
        return _SPECIAL[count](plan)
    if count in MODEL_COUNTS:
        part = count.removesuffix("_shard").removesuffix("_secondary")
        name, found = size_of(plan.model, part, _packed(plan))
        some = Elements(found, name, {name: found})
        if part == count:
            return some
        return some.over(group_of(plan, "shard" if count.endswith("_shard") else "gather"))
    limit = plan.limit(count)
    return Elements(limit, count, {count: limit})


def _row_padding(plan: Plan) -> Elements:
    """What the first rank holds above an even share, where each takes whole rows of every tensor."""
    return _above(plan, "row_share", plan.model.row_share(group_of(plan, "shard").gpus))


def _tensor_padding(plan: Plan) -> Elements:
    """What the largest share is above an even one, where ranks take whole tensors."""
    return _above(plan, "tensor_share", tensor_share(plan, _packed(plan)))


def _above(plan: Plan, name: str, share: int) -> Elements:
    part = shard_of(plan)
    share = max(share, part.count)
    return Elements(share - part.count, f"({name} - {part.formula})", {name: share, **part.inputs})


def _regathered(plan: Plan) -> Elements:
    """What stage 3 gathers a third time to compute blocks again: all of their weights but the last matrix, which is
    still there; nothing where a whole block stays gathered until its own backward pass."""
    model, kept = plan.model, _reuse_kept(plan).count
    if model.largest_block <= kept:
        return Elements(0, "0", {})
    blocks, down = model.params - model.root_params, model.layers * model.largest_down
    inputs = {"block_params": blocks, "layers": model.layers, "down_projection": model.largest_down}
    return Elements(blocks - down, "(block_params - layers * down_projection)", inputs)


def _packed(plan: Plan) -> bool:
    assert plan.workload is not None  # what needs modules is counted with the activations only
    return plan.workload.packed_experts


def _overhang(plan: Plan) -> Elements:
    """What whole tensors that touch a rank's slice of the flat parameters hold beyond it, on the worst rank."""
    packed, part = _packed(plan), shard_of(plan)
    if plan.model.tensor_count(packed) > MOST_TENSORS:  # at most one neighbour at each end
        touched = min(part.count + 2 * plan.model.largest_tensor(packed), plan.params)
    else:
        touched = max(touched_elements(plan.model, part.count, packed), part.count)
    return Elements(
        touched - part.count, f"(touched_tensors - {part.formula})", {"touched_tensors": touched, **part.inputs}
    )


def _bounded(left: Elements, function: str, right: Elements) -> Elements:
    pick = min if function == "min" else max
    formula = f"{function}({left.formula}, {right.formula})"
    return Elements(pick(left.count, right.count), formula, {**left.inputs, **right.inputs})


def _reuse_kept(plan: Plan) -> Elements:
    """What stays gathered from the forward to the backward pass: half the reuse distance, as measured."""
    distance = plan.limit("stage3_max_reuse_distance")
    return Elements(distance // 2, "floor(reuse_distance / 2)", {"reuse_distance": distance})


def _secondary(plan: Plan) -> Elements:
    """One GPU's part of a second copy of the parameters."""
    return whole(plan.params).over(group_of(plan, "gather"))


def _matrices(plan: Plan) -> Elements:
    """The gradients that go in 4 bits; all where the tensors are not known."""
    if not plan.model.known:
        return whole(plan.params)
    found = quantized_matrices(plan.model, plan.gpus)
    return Elements(found.elements, "matrices", {"matrices": found.elements})


def _node_matrices(plan: Plan) -> Elements:
    """What is left of them once the GPUs of a node have reduced theirs together."""
    return _matrices(plan).over(group_of(plan, "node"))


def _vectors(plan: Plan) -> Elements:
    """The gradients that go as they are."""
    matrices = _matrices(plan)
    return Elements(
        plan.params - matrices.count, f"params - {matrices.formula}", {"params": plan.params, **matrices.inputs}
    )


def _gradient_scales(plan: Plan) -> Elements:
    """The scales of 4-bit gradients, one for a row or column; unknown, and left out, where the tensors are."""
    scales = quantized_matrices(plan.model, plan.gpus).scales if plan.model.known else 0
    return Elements(scales, "scales", {"scales": scales})


def _node_scales(plan: Plan) -> Elements:
    return _gradient_scales(plan).over(group_of(plan, "node"))


def _unkept_shard(plan: Plan) -> Elements:
    """One GPU's part of what the backward pass gathers again: all but what the reuse distance keeps."""
    everything = whole(plan.params)
    kept = _bounded(everything, "min", _reuse_kept(plan))
    left = Elements(everything.count - kept.count, f"(params - {kept.formula})", kept.inputs)
    return left.over(group_of(plan, "shard"))


def _regathered_shard(plan: Plan) -> Elements:
    """One GPU's part of what is gathered a third time."""
    found = _regathered(plan)
    return found.over(group_of(plan, "shard"))


def _live_kept(plan: Plan) -> Elements:
    """What stays gathered with prefetching: as much as may be alive, or what the reuse distance keeps."""
    most = plan.limit("stage3_max_live_parameters")
    live = Elements(most, "max_live_parameters", {"max_live_parameters": most})
    return _bounded(live, "max", _reuse_kept(plan))


_SPECIAL: dict[str, Callable[[Plan], Elements]] = {
    "row_padding": _row_padding,
    "tensor_padding": _tensor_padding,
    "regathered": _regathered,
    "regathered_shard": _regathered_shard,
    "unkept_shard": _unkept_shard,
    "overhang": _overhang,
    "reuse_kept": _reuse_kept,
    "live_kept": _live_kept,
    "secondary": _secondary,
    "matrices": _matrices,
    "node_matrices": _node_matrices,
    "vectors": _vectors,
    "gradient_scales": _gradient_scales,
    "node_scales": _node_scales,
}
"""The counts that have a rule of their own."""
