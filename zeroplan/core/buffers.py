"""Memory terms of what a framework keeps beside the states: buckets, gathered weights, copies at the step.

Each is a rule of the framework preset with its own source.
"""

from zeroplan.core.counts import elements
from zeroplan.core.ledger import STATES, Term
from zeroplan.core.plan import Plan
from zeroplan.core.recipe import ROLES, Recipe
from zeroplan.core.rules import Holding
from zeroplan.core.sharding import group_of

FIXED_BYTES = {"fp32": 4, "fp64": 8}  # IEEE 754 binary32, binary64


def framework_buffers(plan: Plan) -> list[Term]:
    """One term for each thing that the framework holds at this stage, bytes per GPU; none for what the model lacks."""
    terms = ((holding, _buffer_term(plan, holding)) for holding in plan.holdings)
    return [term for holding, term in terms if term.bytes or not holding.needs_model]


def element_bytes(recipe: Recipe, kind: str) -> int:
    """Bytes of one element of a buffer or transfer of this type under the recipe."""
    if kind in FIXED_BYTES:
        return FIXED_BYTES[kind]
    if kind in ("compute", "gather"):
        return recipe.compute_bytes
    return recipe.bytes_of("parameters" if kind == "weights" else kind)


def _buffer_term(plan: Plan, holding: Holding) -> Term:
    count = elements(plan, holding.elements, holding.at_most, holding.at_least)
    size = holding.copies * element_bytes(plan.recipe, holding.type)
    role = holding.name.removeprefix(STATES).split(".")[0]
    return Term(
        name=holding.name,
        what=holding.what,
        role=role if role in ROLES else "buffers",
        sharded=any("shard" in count for count in (holding.elements, holding.at_most))
        and group_of(plan, "shard").gpus > 1,
        bytes=size * count.count,
        tier=plan.tier_of(holding.tier),
        moments=holding.moments,
        formula=f"{size} * {count.formula}",
        inputs=count.inputs,
        source=holding.source,
        stream=holding.stream,
    )
