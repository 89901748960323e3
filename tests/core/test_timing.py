"""Time of the traffic: bounds from links, figures from measurements, unknown where there is none."""

import pytest

from tests.conftest import AskQuestion
from zeroplan.core.hardware import Cluster, Gpu, Node
from zeroplan.core.ledger import Traffic, Transfer
from zeroplan.core.question import Card
from zeroplan.core.timing import link_bound, measured_busbw, traffic_time
from zeroplan.core.verdict import fit
from zeroplan.formats.presets import Presets


def gpu(**changes: object) -> Gpu:
    return Gpu(**{"name": "g", "title": "g", "torch_total_gib": 80.0, **changes})  # type: ignore[arg-type]


def node(**changes: object) -> Node:
    fields = {"name": "n", "title": "n", "gpu": "g", "gpus_per_node": 8, "link_gb_per_s": 300, "source": "test"}
    return Node(**{**fields, **changes})  # type: ignore[arg-type]


def transfer(collective: str, wire_bytes: int) -> Transfer:
    return Transfer(
        collective=collective,
        what="x",
        phase="step",
        payload_bytes=0,
        times_per_step=1,
        wire_bytes=wire_bytes,
        elements=0,
        formula="",
        inputs={},
        source="",
        gpus=0,
    )


@pytest.mark.parametrize(
    ("collective", "passes", "ms"),
    [("all-reduce", 2, 81.667), ("all-gather", 1, 40.833)],
)
def test_inside_a_node_the_link_bounds(collective: str, passes: int, ms: float) -> None:
    """14 GB over 8 GPUs at 300 GB/s (nccl-tests doc/PERFORMANCE.md)."""
    moved = Traffic((transfer(collective, passes * 14 * 10**9 * 7 // 8),))
    time = traffic_time(moved, Cluster(gpus=8, gpu=gpu(), node=node()))
    assert time.link == pytest.approx(ms / 1000, rel=1e-4)


def test_across_nodes_all_nics_of_a_node_bound_the_parallel_rings() -> None:
    """14 GB over 8 x 8 GPUs, 300 GB/s inside and 8 NICs of 25 GB/s: 137.8 ms, not the 1102.5 ms of one NIC."""
    moved = Traffic((transfer("all-reduce", 2 * 14 * 10**9 * 63 // 64),))
    time = traffic_time(moved, Cluster(gpus=64, gpu=gpu(), node=node(network_gbit_per_s=1600)))
    assert time.link == pytest.approx(0.1378125, rel=1e-6)


def test_a_network_faster_than_the_link_leaves_the_link_as_the_bound() -> None:
    bound = link_bound(Cluster(gpus=16, gpu=gpu(), node=node(network_gbit_per_s=10_000)))
    assert bound is not None
    assert bound.bytes_per_s == 300 * 10**9


@pytest.mark.parametrize(("gpus", "rate"), [(2, 64), (4, 192), (8, 448)])
def test_a_mesh_gives_few_gpus_few_links(presets: Presets, gpus: int, rate: int) -> None:
    card = presets.card(presets.gpu("mi300x"))
    bound = link_bound(Cluster(gpus=gpus, gpu=card.gpu, node=card.node))
    assert bound is not None
    assert bound.bytes_per_s == rate * 10**9


@pytest.mark.parametrize(
    ("gpus", "rate", "what"), [(3, 100, "2 of the mesh's links"), (7, 300, "NVLink"), (8, 300, "NVLink")]
)
def test_a_mesh_is_never_faster_than_the_card(gpus: int, rate: int, what: str) -> None:
    mesh = gpu(link_gb_per_s=300, pair_link_gb_per_s=50)
    bound = link_bound(Cluster(gpus=gpus, gpu=mesh, node=node(link="NVLink")))
    assert bound is not None
    assert bound.bytes_per_s == rate * 10**9
    assert f"({what}, node" in bound.what


def test_a_rack_is_one_fast_domain(presets: Presets) -> None:
    card = presets.card(presets.gpu("gb200"))
    inside = link_bound(Cluster(gpus=72, gpu=card.gpu, node=card.node))
    assert inside is not None
    assert inside.bytes_per_s == 900 * 10**9


@pytest.mark.parametrize("gpus", [2, 64])
def test_without_a_node_the_time_is_unknown(presets: Presets, gpus: int) -> None:
    assert link_bound(Cluster(gpus=gpus, gpu=presets.gpu("rtx-3090"))) is None


def test_a_node_without_a_network_has_no_time_beyond_itself(presets: Presets) -> None:
    card = presets.card(presets.gpu("rtx-4090"))
    assert link_bound(Cluster(gpus=4, gpu=card.gpu, node=card.node)) is not None
    assert link_bound(Cluster(gpus=8, gpu=card.gpu, node=card.node)) is None


def test_gathers_do_not_get_the_bandwidth_of_in_switch_reduction(presets: Presets) -> None:
    """NVLS lifts all-reduce alone: H100 reaches 445 there, 335 in gathers (aiconfigurator, 512 MiB)."""
    card = presets.card(presets.gpu("h100"))
    cluster = Cluster(gpus=8, gpu=card.gpu, node=card.node)
    assert measured_busbw("all-reduce", cluster) == 445.0
    assert measured_busbw("all-gather", cluster) == 335.2
    assert measured_busbw("reduce-scatter", cluster) == 335.7


def test_a_number_of_gpus_that_nobody_measured_is_unknown(presets: Presets) -> None:
    card = presets.card(presets.gpu("h100"))
    assert measured_busbw("all-gather", Cluster(gpus=6, gpu=card.gpu, node=card.node)) is None


def test_a_node_that_is_not_full_was_not_measured(presets: Presets) -> None:
    """p5en: 16 full nodes were measured, 121 GPUs on 16 nodes were not."""
    node, h200 = presets.node("aws-p5en.48xlarge"), presets.gpu("h200")
    assert measured_busbw("all-reduce", Cluster(gpus=121, gpu=h200, node=node)) is None


def test_across_nodes_only_what_was_measured_counts(presets: Presets) -> None:
    """p5en: an all-reduce on 16 nodes (369.9 GB/s); no gather, and no other number of nodes."""
    node, h200 = presets.node("aws-p5en.48xlarge"), presets.gpu("h200")
    sixteen = Cluster(gpus=128, gpu=h200, node=node)
    assert measured_busbw("all-reduce", sixteen) == 369.9
    assert measured_busbw("all-gather", sixteen) is None
    assert measured_busbw("all-reduce", Cluster(gpus=64, gpu=h200, node=node)) is None


def test_one_unknown_transfer_makes_the_sum_unknown(presets: Presets, question: AskQuestion) -> None:
    """MI300X has a measured all-reduce on 8 GPUs, and no measured gather."""
    card: Card = presets.card(presets.gpu("mi300x"))
    answer = fit(question(gpus=8, cards=[card]))[0]
    times = {stage.stage: stage.estimate.time for stage in answer.stages if stage.estimate}
    assert times[0].measured == pytest.approx(2 * 7 / 8 * 15e9 / 312.912e9)
    assert times[1].measured is None
    assert times[1].link is not None


def test_one_gpu_needs_no_time(presets: Presets, question: AskQuestion) -> None:
    card = presets.card(presets.gpu("h100"))
    answer = fit(question(gpus=1, cards=[card]))[0]
    assert {(s.estimate.time.link, s.estimate.time.measured) for s in answer.stages if s.estimate} == {(0, 0)}
