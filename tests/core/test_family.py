"""Laws of offload, groups and quantisation, over frameworks and schemes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import AskQuestion
from tests.core.test_laws import worked
from zeroplan.core.checkpoint import checkpoint
from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.ledger import STATES
from zeroplan.core.question import Question
from zeroplan.core.scheme import TIERS, Scheme
from zeroplan.core.timing import node_bytes, rings_across, transfer_time
from zeroplan.core.workload import Workload
from zeroplan.errors import InputError
from zeroplan.formats.presets import Presets

SCHEMES: dict[str, tuple[Scheme, ...]] = {
    "zero": (
        Scheme(optimizer="cpu"),
        Scheme(optimizer="nvme", params="nvme"),
        Scheme(optimizer="cpu", params="cpu"),
        Scheme(gradients="cpu"),
        Scheme(params="cpu"),
        Scheme(shard_group=8),
        Scheme(hpz=8),
        Scheme(quantize=("weights",)),
        Scheme(hpz=8, quantize=("weights", "gradients")),
    ),
    "deepspeed": (
        Scheme(optimizer="cpu"),
        Scheme(optimizer="nvme", params="nvme"),
        Scheme(optimizer="cpu", params="cpu", quantize=("weights",)),
        Scheme(params="nvme"),
        Scheme(hpz=8, quantize=("weights", "gradients")),
        Scheme(switches=("overlap_comm",), limits=(("reduce_bucket_size", 0),)),
    ),
    "fsdp2": (
        Scheme(params="cpu"),
        Scheme(shard_group=8),
        Scheme(hpz=8),
        Scheme(shard_group=8, switches=("no_sync",)),
        Scheme(shard_group=8, params="cpu", switches=("no_sync",)),
    ),
    "fsdp1": (Scheme(params="cpu", switches=("no_sync",)), Scheme(shard_group=8), Scheme(switches=("no_sync",))),
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
    on_gpu = replace(scheme, optimizer="gpu", gradients="", params="gpu")
    plain = found(question(framework=framework, scheme=on_gpu))
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
        weights = [copy for copy in each.traffic.copies if copy.what.startswith("weights")]
        goes = {copy.collective for copy in weights}
        assert "copy to GPU" in goes or each.plan.tier("optimizer") == "gpu"
        assert ("copy to CPU" in goes) == (each.plan.tier("parameters") != "gpu" == each.plan.tier("optimizer"))


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


@pytest.mark.parametrize(
    ("gpus", "group", "rings"),
    [(64, 8, 0), (48, 6, 2), (24, 12, 2), (64, 16, 1), (64, 64, 1), (10, 5, 1), (8, 8, 0), (16, 16, 1)],
)
def test_rings_across_the_edge_of_a_node(question: AskQuestion, gpus: int, group: int, rings: int) -> None:
    """Nodes of 8: groups of 12 end and start inside the second; of 10 GPUs in fives the second group crosses."""
    asked = question(cards=("h100",), gpus=gpus)
    assert rings_across(asked.plan(asked.cards[0], 3).cluster, group) == rings


def test_the_same_gpu_of_every_group_shares_the_nics(question: AskQuestion) -> None:
    asked = question(cards=("h100",), gpus=64)
    cluster = asked.plan(asked.cards[0], 3).cluster
    assert [rings_across(cluster, 64 // stride, stride) for stride in (4, 8, 16)] == [4, 8, 8]


def test_weights_off_the_gpu_come_for_every_gather(question: AskQuestion, presets: Presets) -> None:
    """A shard for each all-gather, the third of recomputation included; less what the reuse distance keeps."""
    model = presets.model("llama-3.1-70b").model
    work = Workload(seq_len=1024, recompute="full", loss=presets.loss("fp32"))
    for distance in (0, 1_000_000_000, 40_000_000_000):
        scheme = Scheme(optimizer="cpu", params="cpu", limits=(("stage3_max_reuse_distance", distance),))
        asked = question(framework="deepspeed", model=model, workload=work, gpus=8, scheme=scheme)
        moved = estimate(asked.plan(None, 3)).traffic
        gathered = sum(each.payload_bytes for each in moved.transfers if each.collective == "all-gather")
        copied = sum(each.wire_bytes for each in moved.copies if each.what.startswith("weights"))
        assert copied * 8 == pytest.approx(gathered, rel=1e-6)


@pytest.mark.parametrize(
    ("framework", "recipe", "stage", "each"),
    [
        ("deepspeed", None, 3, 12),
        ("deepspeed", None, 1, 14),
        ("deepspeed", "fp32-adam", 1, 16),
        ("deepspeed", "fp32-adam", 3, 12),
        ("fsdp2", None, 3, 12),
        ("zero", None, 2, 14),
    ],
)
def test_a_checkpoint_has_what_the_framework_saves(
    question: AskQuestion, framework: str, recipe: str | None, stage: int, each: int
) -> None:
    """DeepSpeed 0.19.8 on one rank wrote 12, 14, 16 and 12 bytes per parameter."""
    found_at = estimate(question(framework=framework, recipe=recipe, params=64_000_000).plan(None, stage))
    sizes = checkpoint(found_at.plan, found_at.memory)
    assert sizes.resume == each * 64_000_000
    assert sizes.first_rank + (sizes.ranks - 1) * sizes.each_rank == sizes.resume


def test_a_checkpoint_is_written_by_one_group(question: AskQuestion) -> None:
    found_at = estimate(question(framework="fsdp2", scheme=Scheme(shard_group=8)).plan(None, 3))
    sizes = checkpoint(found_at.plan, found_at.memory)
    assert (sizes.ranks, sizes.resume) == (8, 12 * 7_500_000_000)


def test_fsdp1_accumulates_offloaded_gradients_under_no_sync_alone(question: AskQuestion) -> None:
    with pytest.raises(InputError, match="--set no_sync"):
        question(framework="fsdp1", scheme=Scheme(params="cpu"), grad_accum=4)
    assert question(framework="fsdp1", scheme=Scheme(params="cpu", switches=("no_sync",)), grad_accum=4).offers(3)


@pytest.mark.parametrize("stage", [2, 3])
@pytest.mark.parametrize(("switches", "grad_accum"), [((), 1), (("no_sync",), 4)])
def test_fsdp1_copies_offloaded_weights_before_forward_and_backward(
    question: AskQuestion, stage: int, switches: tuple[str, ...], grad_accum: int
) -> None:
    """FlatParamHandle.pre_unshard copies also where the weights are still gathered: 4 bytes a parameter of a shard."""
    asked = question(framework="fsdp1", scheme=Scheme(params="cpu", switches=switches), grad_accum=grad_accum)
    plan = asked.plan(None, stage)
    copies = [each for each in estimate(plan).traffic.copies if each.collective == "copy to GPU"]
    assert [each.phase for each in copies] == ["forward", "backward"]
    assert {each.wire_bytes for each in copies} == {grad_accum * 4 * 7_500_000_000 // plan.gpus}


def test_overlap_at_stage_1_frees_gradients_with_one_micro_batch(question: AskQuestion) -> None:
    """2 + 12/N + 2/N and two buckets with a copy, as at stage 2; with several, whole gradients stay."""
    overlap = Scheme(switches=("overlap_comm",))
    once, often = (found(question(framework="deepspeed", scheme=overlap, grad_accum=a)) for a in (1, 4))
    assert once[1].memory.peak_bytes == once[2].memory.peak_bytes
    assert often[1].memory.peak_bytes > often[2].memory.peak_bytes


def test_activations_off_the_gpu_are_copied_there_and_back(question: AskQuestion, presets: Presets) -> None:
    model = presets.model("llama-3.1-8b").model
    work = Workload(seq_len=8192, recompute="full", loss=presets.loss("fp32"), checkpoints="cpu")
    asked = question(framework="fsdp2", model=model, workload=work, gpus=8, grad_accum=2)
    copies = estimate(asked.plan(None, 3)).traffic.copies
    assert [(copy.collective, copy.wire_bytes) for copy in copies] == [
        ("copy to CPU", 2 * 32 * 8192 * 2 * 4096),
        ("copy to GPU", 2 * 32 * 8192 * 2 * 4096),
    ]
    assert all(worked(copy) == copy.wire_bytes for copy in copies)
