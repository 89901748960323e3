"""What a framework's own estimator says of a plan, beside the ledger that the verdict uses."""

from collections.abc import Mapping
from dataclasses import dataclass

from zeroplan.core.framework import Claim
from zeroplan.core.plan import Plan
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
    return ClaimedBytes(
        claim=claim,
        bytes=claim.whole_bytes * plan.params + claim.shard_bytes * part.count,
        formula=f"{claim.whole_bytes} * params + {claim.shard_bytes} * {part.formula}",
        inputs=part.inputs,
    )
