"""The traffic ledger of a plan, from the framework's rules."""

from zeroplan.core.buffers import element_bytes
from zeroplan.core.collectives import PASSES
from zeroplan.core.framework import PLAIN_STAGE, TransferRule
from zeroplan.core.ledger import Traffic, Transfer
from zeroplan.core.plan import Plan
from zeroplan.core.sharding import ring_share, sent


def traffic(plan: Plan) -> Traffic:
    """What each GPU sends in one optimizer step; nothing on one GPU."""
    return _stage_traffic(plan, plan.strategy.stage)


def plain_traffic(plan: Plan) -> Traffic:
    """The yardstick: plain data parallelism under the same framework, recipe and accumulation."""
    return _stage_traffic(plan, PLAIN_STAGE)


def plain_gradient_bytes(plan: Plan) -> int:
    """Bytes of one gradient in the all-reduce of plain data parallelism under this plan's framework and recipe."""
    rules = plan.framework.sent(PLAIN_STAGE, plan.recipe.name)
    return element_bytes(plan.recipe, rules[0].type)


def _stage_traffic(plan: Plan, stage: int) -> Traffic:
    if plan.gpus == 1:
        return Traffic(())
    rules = plan.framework.sent(stage, plan.recipe.name)
    return Traffic(tuple(_transfer(plan, rule) for rule in rules if _applies(plan, rule)))


def _applies(plan: Plan, rule: TransferRule) -> bool:
    return not rule.recomputing or (plan.workload is not None and plan.workload.recomputes)


def ratio_to_data_parallel(plan: Plan, moved: Traffic) -> float | None:
    """Bytes on the wire over those of plain data parallelism; None on one GPU."""
    plain = plain_traffic(plan).wire_bytes
    return moved.wire_bytes / plain if plain else None


def _transfer(plan: Plan, rule: TransferRule) -> Transfer:
    payload = sent(plan, rule)
    share = ring_share(payload, plan.gpus)
    size = element_bytes(plan.recipe, rule.type)
    passes = PASSES[rule.collective]
    times = plan.strategy.grad_accum if rule.per == "micro-batch" else 1
    return Transfer(
        collective=rule.collective,
        what=rule.what,
        phase=rule.phase,
        payload_bytes=size * payload.count,
        times_per_step=times,
        wire_bytes=times * passes * size * share.count,
        elements=times * passes * payload.count,
        formula=f"{times} * {passes} * {size} * {share.formula}",
        inputs=share.inputs,
        source=rule.source,
    )
