"""Memory terms of the model states: weights, gradients and optimizer states.

Source: ZeRO (Rajbhandari et al., arXiv 1910.02054v3), sections 3.1 and 5, for `bytes * params`
and what each stage divides; each recipe's own source for the bytes.
"""

from zeroplan.core.ledger import STATES, Term
from zeroplan.core.moments import MOMENTS, moments_of
from zeroplan.core.plan import Plan
from zeroplan.core.recipe import State
from zeroplan.core.sharding import shard_of, whole

OPTIMIZER_MOMENTS = MOMENTS[1:]


def model_states(plan: Plan) -> list[Term]:
    """One term for each state of the recipe that is ever there whole, bytes per GPU."""
    terms = (_state_term(plan, state) for state in plan.recipe.states)
    return [term for term in terms if term.moments]


def _state_term(plan: Plan, state: State) -> Term:
    sharded = state.role in plan.stage.shards
    elements = shard_of(plan) if sharded else whole(plan.params)
    return Term(
        name=_name(plan, state),
        what=f"{state.name}, {state.type}",
        role=state.role,
        sharded=sharded and elements.count < plan.params,
        bytes=state.bytes * elements.count,
        tier=plan.tier(state.role),
        moments=_moments(plan, state.role),
        formula=f"{state.bytes} * {elements.formula}",
        inputs=elements.inputs,
        source=state.source or plan.recipe.source,
        stream=plan.stage.gradients_stream if state.role == "gradients" else "compute",
    )


def _name(plan: Plan, state: State) -> str:
    if len(plan.recipe.states_of(state.role)) == 1 and state.role != "optimizer":
        return STATES + state.role
    return f"{STATES}{state.role}.{state.name.replace(' ', '_')}"


def _moments(plan: Plan, role: str) -> tuple[str, ...]:
    if role == "parameters":
        return MOMENTS
    if role == "optimizer":
        return OPTIMIZER_MOMENTS
    stage = plan.stage
    phases = stage.gradients_alive_accumulating if plan.accumulating else stage.gradients_alive
    made_in_backward = "backward" in phases and "forward" not in phases
    if plan.workload and made_in_backward:
        phases = (*stage.gradients_in_backward, *(phase for phase in phases if phase != "backward"))
    return tuple(moment for phase in phases for moment in moments_of(phase))
