"""Laws of offload, groups and quantisation, over frameworks and schemes."""

from typing import Any

import pytest

from tests.conftest import AskQuestion
from tests.core.test_laws import worked
from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.ledger import STATES
from zeroplan.core.question import Question
from zeroplan.core.scheme import TIERS, Scheme
from zeroplan.core.timing import node_bytes, transfer_time

SCHEMES: dict[str, tuple[Scheme, ...]] = {
    "zero": (
        Scheme(optimizer="cpu"),
        Scheme(optimizer="nvme", params="nvme"),
        Scheme(optimizer="cpu", params="cpu"),
        Scheme(gradients="cpu"),
        Scheme(shard_group=8),
        Scheme(hpz=8),
        Scheme(quantize=("weights",)),
        Scheme(hpz=8, quantize=("weights", "gradients")),
    ),
    "deepspeed": (
        Scheme(optimizer="cpu"),
        Scheme(optimizer="nvme", params="nvme"),
        Scheme(optimizer="cpu", params="cpu", quantize=("weights",)),
        Scheme(hpz=8, quantize=("weights", "gradients")),
        Scheme(switches=("overlap_comm",), limits=(("reduce_bucket_size", 0),)),
    ),
    "fsdp2": (
        Scheme(params="cpu"),
        Scheme(shard_group=8),
        Scheme(hpz=8),
        Scheme(shard_group=8, switches=("no_sync",)),
    ),
    "fsdp1": (Scheme(params="cpu"), Scheme(shard_group=8), Scheme(switches=("no_sync",))),
    "ddp": (Scheme(switches=("gradient_as_bucket_view",)),),
}
EVERY = [(framework, scheme) for framework, schemes in SCHEMES.items() for scheme in schemes]
OFFLOADS = [(framework, scheme) for framework, scheme in EVERY if scheme.offloads]


def found(question: Question) -> dict[int, Estimate]:
    return {stage: estimate(question.plan(None, stage)) for stage in question.stages if question.offers(stage)}


@pytest.mark.parametrize("grad_accum", [1, 4])
@pytest.mark.parametrize(("framework", "scheme"), EVERY)
def test_formulas_are_honest(question: AskQuestion, framework: str, scheme: Scheme, grad_accum: int) -> None:
    asked = question(framework=framework, scheme=scheme, params=7_500_000_001, gpus=64, grad_accum=grad_accum)
    for each in found(asked).values():
        for term in each.memory.terms:
            assert worked(term) == term.bytes, term.name
        for transfer in (*each.traffic.transfers, *each.traffic.copies):
            assert worked(transfer) == transfer.wire_bytes, transfer.collective


@pytest.mark.parametrize(("framework", "scheme"), OFFLOADS)
def test_offload_conserves_the_states(question: AskQuestion, framework: str, scheme: Scheme) -> None:
    """What leaves the GPU is elsewhere; DeepSpeed keeps fp32 gradients beside, and at stage 2 no 16-bit ones."""
    plain = found(question(framework=framework))
    for stage, each in found(question(framework=framework, scheme=scheme)).items():
        added = ("states.gradients.fp32", "states.gradients")
        ours, before = (
            sum(t.bytes for t in which.memory.terms if t.name.startswith(STATES) and t.name not in added)
            for which in (each, plain[stage])
        )
        assert ours == before
        gradients = [term for term in each.memory.terms if term.name in added]
        assert gradients
        assert all(term.tier in TIERS for term in each.memory.terms)
        assert each.memory.peak_bytes < plain[stage].memory.peak_bytes
        assert each.traffic.copies


@pytest.mark.parametrize("grad_accum", [1, 4])
def test_a_group_of_all_is_stage_3_and_a_group_of_one_is_plain(question: AskQuestion, grad_accum: int) -> None:
    plain = found(question(grad_accum=grad_accum))
    whole, alone = (found(question(grad_accum=grad_accum, scheme=Scheme(shard_group=k)))[3] for k in (64, 1))
    assert whole.memory.resident_bytes == plain[3].memory.resident_bytes
    assert whole.traffic.wire_bytes == plain[3].traffic.wire_bytes
    assert alone.memory.resident_bytes == plain[0].memory.resident_bytes
    assert alone.traffic.wire_bytes == plain[0].traffic.wire_bytes


@pytest.mark.parametrize("framework", ["zero", "fsdp2", "fsdp1"])
def test_larger_groups_hold_less(question: AskQuestion, framework: str) -> None:
    held = [
        found(question(framework=framework, scheme=Scheme(shard_group=k)))[3].memory.resident_bytes
        for k in (1, 2, 8, 64)
    ]
    assert held == sorted(held, reverse=True)
    assert held[0] > held[-1]


@pytest.mark.parametrize("framework", ["zero", "deepspeed"])
@pytest.mark.parametrize("params", [1, 7999, 8001, 7_500_000_000])
@pytest.mark.parametrize("quantize", [("weights",), ("gradients",), ("weights", "gradients")])
def test_quantised_traffic_is_never_more_but_for_its_scales(
    question: AskQuestion, framework: str, params: int, quantize: tuple[str, ...]
) -> None:
    asked: dict[str, Any] = {"framework": framework, "params": params, "gpus": 64}
    less = found(question(**asked, scheme=Scheme(quantize=quantize)))[3].traffic
    more = found(question(**asked))[3].traffic
    scales = 2 * 4 * -(-params // 8000) + 64
    assert less.wire_bytes <= more.wire_bytes + scales
    if params > 10**6:
        assert less.wire_bytes < 0.9 * more.wire_bytes


@pytest.mark.parametrize(("framework", "scheme"), EVERY)
@pytest.mark.parametrize("gpu", ["a100-80gb", "h100"])
def test_no_transfer_beats_its_slowest_link(question: AskQuestion, framework: str, scheme: Scheme, gpu: str) -> None:
    asked = question(framework=framework, scheme=scheme, cards=(gpu,), gpus=64)
    [card] = asked.cards
    assert card.node is not None
    network = card.node.network_bytes_per_s
    assert network
    for stage in filter(asked.offers, asked.stages):
        plan = asked.plan(card, stage)
        for transfer in estimate(plan).traffic.transfers:
            across = node_bytes(transfer, plan.cluster)
            seconds = transfer_time(transfer, plan.cluster).link
            assert across is not None
            assert seconds is not None
            assert seconds >= 0.999 * across / network
            assert seconds >= 0.999 * transfer.wire_bytes / (card.node.link_gb_per_s * 1e9)


def test_neighbours_in_a_node_send_nothing_across(question: AskQuestion) -> None:
    asked = question(scheme=Scheme(shard_group=8), cards=("h100",))
    plan = asked.plan(asked.cards[0], 3)
    across = {transfer.what: node_bytes(transfer, plan.cluster) for transfer in estimate(plan).traffic.transfers}
    assert across["weights"] == 0
    assert across["gradients of the group"]


def test_groups_that_do_not_fill_a_node_cross_its_edge(question: AskQuestion) -> None:
    asked = question(scheme=Scheme(shard_group=6), cards=("h100",), gpus=48)
    plan = asked.plan(asked.cards[0], 3)
    [gather, *_] = estimate(plan).traffic.transfers
    assert node_bytes(gather, plan.cluster) == 2 * gather.wire_bytes
