"""What a framework's own estimator says of a plan, beside the ledger that the verdict uses."""

from collections.abc import Mapping
from dataclasses import dataclass

from zeroplan.core.plan import Plan
from zeroplan.core.rules import Claim
from zeroplan.core.sharding import shard


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ClaimedBytes:
    """A claim worked out, bytes per GPU."""

    claim: Claim
    bytes: int
    formula: str
    inputs: Mapping[str, int]


def claimed(plan: Plan) -> list[ClaimedBytes]:
    """The estimators' figures for this plan."""
    found = plan.framework.claimed(plan.strategy.stage, plan.recipe.name, plan.traits)
    return [_host(claim, plan) if claim.host_bytes else _worked(claim, plan) for claim in found]


def _host(claim: Claim, plan: Plan) -> ClaimedBytes:
    """What it says of the host memory of one node."""
    least, each, percent = claim.host_bytes, claim.host_gpus_bytes, claim.host_percent
    inputs = {"params": plan.params}
    if claim.host_divided:
        nodes = plan.cluster.likely_nodes
        size = -(-plan.params * least * percent // (100 * nodes))
        formula, inputs = f"ceil(params * {least} * {percent} / (100 * nodes))", {**inputs, "nodes": nodes}
    else:
        size = -(-plan.params * max(each * plan.gpus, least) * percent // 100)
        formula = f"ceil(params * max({each} * gpus, {least}) * {percent} / 100)"
        inputs["gpus"] = plan.gpus
    return ClaimedBytes(claim=claim, bytes=size, formula=formula, inputs=inputs)


def _worked(claim: Claim, plan: Plan) -> ClaimedBytes:
    part = shard(plan.params, plan.gpus)
    layer = plan.model.largest_module().params if claim.layer_bytes and plan.model.known else 0
    sums = (
        (claim.whole_bytes, plan.params, "params"),
        (claim.shard_bytes, part.count, part.formula),
        (claim.layer_bytes, layer, "largest_module"),
    )
    return ClaimedBytes(
        claim=claim,
        bytes=sum(size * count for size, count, _ in sums),
        formula=" + ".join(f"{size} * {name}" for size, count, name in sums if size and count) or "0",
        inputs={**part.inputs, **({"largest_module": layer} if layer else {})},
    )
