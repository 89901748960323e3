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
    return [_worked(claim, plan) for claim in plan.framework.claimed(plan.strategy.stage, plan.recipe.name)]


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
