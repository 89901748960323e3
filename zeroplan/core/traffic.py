"""The traffic ledger of a plan, from the framework's rules."""

from zeroplan.core.buffers import element_bytes
from zeroplan.core.collectives import PASSES
from zeroplan.core.counts import sent
from zeroplan.core.ledger import CHECKPOINTS, Ledger, Traffic, Transfer
from zeroplan.core.moments import PHASES
from zeroplan.core.plan import Plan
from zeroplan.core.rules import COPIES, PLAIN_STAGE, TransferRule
from zeroplan.core.scheme import QUANTIZE
from zeroplan.core.sharding import Elements, group_of, halved, in_eight_bits, ring_share


def traffic(plan: Plan) -> Traffic:
    """What each GPU sends in one optimizer step; nothing on one GPU."""
    rules = plan.framework.sent(plan.rules_of, plan.recipe.name, plan.traits)
    applied = sorted((rule for rule in rules if _applies(plan, rule)), key=lambda rule: PHASES.index(rule.phase))
    moved = [_transfer(plan, rule) for rule in applied]
    return Traffic(
        transfers=tuple(each for each in moved if each.collective not in COPIES),
        copies=tuple(each for each in moved if each.collective in COPIES),
    )


def plain_traffic(plan: Plan) -> Traffic:
    """The yardstick: plain data parallelism under the same framework, recipe and accumulation."""
    rules = plan.framework.sent(PLAIN_STAGE, plan.recipe.name, plan.traits - plan.scheme.traits)
    return Traffic(tuple(_transfer(plan, rule, over="all") for rule in rules if plan.gpus > 1))


def plain_gradient_bytes(plan: Plan) -> int:
    """Bytes of one gradient in the all-reduce of plain data parallelism under this plan's framework and recipe."""
    rules = plan.framework.sent(PLAIN_STAGE, plan.recipe.name, plan.traits - plan.scheme.traits)
    return element_bytes(plan.recipe, rules[0].type)


def activation_copies(plan: Plan, memory: Ledger) -> list[Transfer]:
    """The inputs of recomputed blocks on their way to the host and back, where they are kept there."""
    found = [term for term in memory.terms if term.name == CHECKPOINTS and term.tier == "cpu"]
    times = plan.strategy.grad_accum
    return [
        Transfer(
            collective=kind,
            what="block inputs",
            phase=phase,
            payload_bytes=term.bytes,
            times_per_step=times,
            wire_bytes=times * term.bytes,
            elements=0,
            formula=f"{times} * {term.formula}",
            inputs=term.inputs,
            source=term.source,
            gpus=1,
        )
        for term in found
        for kind, phase in (("copy to CPU", "forward"), ("copy to GPU", "backward"))
    ]


def _applies(plan: Plan, rule: TransferRule) -> bool:
    """Whether there is anybody to send to, anything to send, and what tells how much."""
    if rule.needs_model and plan.workload is None:
        return False
    if _times(plan, rule) == 0 or sent(plan, rule).count == 0:
        return False
    return rule.collective in COPIES or group_of(plan, rule.over).gpus > 1


def _times(plan: Plan, rule: TransferRule) -> int:
    accumulated = plan.strategy.grad_accum
    return {"step": 1, "micro-batch": accumulated, "later": accumulated - 1}[rule.per]


def ratio_to_data_parallel(plan: Plan, moved: Traffic) -> float | None:
    """Bytes on the wire over those of plain data parallelism; None on one GPU."""
    plain = plain_traffic(plan).wire_bytes
    return moved.wire_bytes / plain if plain else None


def _transfer(plan: Plan, rule: TransferRule, over: str = "") -> Transfer:
    payload = sent(plan, rule)
    moved, size = _sized(plan, rule, payload)
    group = group_of(plan, over or rule.over)
    copied = rule.collective in COPIES
    share = moved if copied else ring_share(moved, group)
    passes, times = PASSES.get(rule.collective, 1), _times(plan, rule)
    return Transfer(
        collective=rule.collective,
        what=rule.what,
        phase=rule.phase,
        payload_bytes=size * moved.count,
        times_per_step=times,
        wire_bytes=times * passes * size * share.count,
        elements=times * passes * payload.count,
        formula=f"{times} * {passes} * {size} * {share.formula}",
        inputs=share.inputs,
        source=rule.source,
        gpus=1 if copied else group.gpus,
        stride=group.stride,
    )


def _sized(plan: Plan, rule: TransferRule, payload: Elements) -> tuple[Elements, int]:
    """What is sent, and the bytes of one of it: elements of the rule's type, or bytes of quantised ones."""
    if rule.type == "int4":
        return halved(payload), 1
    if rule.type == "gather" and QUANTIZE + "weights" in plan.scheme.features:
        return in_eight_bits(payload, plan.limit("quantize_group_size")), 1
    return payload, element_bytes(plan.recipe, rule.type)
