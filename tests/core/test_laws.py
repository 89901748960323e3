"""The laws of the design over grids of plans, and formula honesty."""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import AskQuestion
from zeroplan.core.estimate import estimate
from zeroplan.core.ledger import Term, Transfer
from zeroplan.core.question import Question
from zeroplan.core.recipe import ROLES
from zeroplan.core.sharding import Group, ring_share, shard, whole

FRAMEWORKS = ("zero", "deepspeed", "fsdp2", "fsdp1", "ddp", "megatron")
PARAMS = (1, 6, 1_000_003, 350_000_000, 7_500_000_000, 10**15)
GPUS = (1, 2, 7, 64, 1000, 10**6)
GRID = list(itertools.product(PARAMS, GPUS))


def resident(question: Question) -> dict[int, int]:
    return {
        stage: estimate(question.plan(None, stage)).memory.resident_bytes
        for stage in question.stages
        if question.offers(stage)
    }


def peaks(question: Question) -> dict[int, int]:
    return {
        stage: estimate(question.plan(None, stage)).memory.peak_bytes
        for stage in question.stages
        if question.offers(stage)
    }


@pytest.mark.parametrize(("params", "gpus"), GRID)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_higher_stage_holds_no_more_states(question: AskQuestion, framework: str, params: int, gpus: int) -> None:
    held = list(resident(question(framework=framework, params=params, gpus=gpus)).values())
    assert held == sorted(held, reverse=True)


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_all_stages_are_equal_on_one_gpu(question: AskQuestion, framework: str, params: int) -> None:
    """With the default recipes; DeepSpeed's stages 1 to 3 copy even fp32 weights."""
    held = set(resident(question(framework=framework, params=params, gpus=1)).values())
    assert len(held) == 1


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("grad_accum", [1, 4])
def test_more_gpus_never_need_more_memory_each(
    question: AskQuestion, framework: str, params: int, grad_accum: int
) -> None:
    """But for DistributedDataParallel, whose buckets come with the second GPU."""
    by_gpus = [peaks(question(framework=framework, params=params, gpus=n, grad_accum=grad_accum)) for n in GPUS]
    for gpus, (fewer, more) in zip(GPUS, itertools.pairwise(by_gpus), strict=False):
        alone = gpus == 1 and framework in ("fsdp1", "fsdp2", "ddp")
        assert all(more[stage] <= fewer[stage] for stage in fewer if stage > 1 or not alone)


@given(params=st.integers(1, 10**18), gpus=st.integers(1, 10**9))
def test_shards_cover_the_whole(params: int, gpus: int) -> None:
    part = shard(params, gpus).count
    assert part * gpus >= params > (part - 1) * gpus


@pytest.mark.parametrize("grad_accum", [1, 8])
@pytest.mark.parametrize(("params", "gpus"), GRID)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_formulas_are_honest(question: AskQuestion, framework: str, params: int, gpus: int, grad_accum: int) -> None:
    """Every term's and transfer's formula, worked out on its inputs, is its bytes."""
    asked = question(framework=framework, params=params, gpus=gpus, grad_accum=grad_accum)
    for stage in filter(asked.offers, asked.stages):
        found = estimate(asked.plan(None, stage))
        for term in found.memory.terms:
            assert worked(term) == term.bytes, term.name
        for transfer in found.traffic.transfers:
            assert worked(transfer) == transfer.wire_bytes, transfer.collective


def worked(part: Term | Transfer) -> int:
    """The formula on exact fractions; it names nothing but its inputs."""
    names: dict[str, Any] = {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max, "__builtins__": {}}
    value = eval(part.formula, names, {name: Fraction(value) for name, value in part.inputs.items()})
    assert value == int(value)
    return int(value)


@given(params=st.integers(1, 10**18), gpus=st.integers(2, 10**9))
def test_a_ring_sends_the_exact_share_rounded_up(params: int, gpus: int) -> None:
    sent = ring_share(whole(params), Group("gpus", gpus)).count
    assert 0 <= sent - Fraction(params * (gpus - 1), gpus) < 1
    assert sent <= params


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_moves_on_one_gpu(question: AskQuestion, framework: str) -> None:
    asked = question(framework=framework, gpus=1)
    for stage in filter(asked.offers, asked.stages):
        found = estimate(asked.plan(None, stage))
        assert found.traffic.wire_bytes == 0
        assert found.psi == 0
        assert found.ratio_to_data_parallel is None


@pytest.mark.parametrize("recipe", ["deepspeed-16bit", "deepspeed-fp32-accum", "fp32-adam"])
def test_the_roles_of_the_states_are_all_of_them(question: AskQuestion, recipe: str) -> None:
    """Weights, gradients and optimizer columns add up to the states, copies that a framework adds among them."""
    asked = question(framework="deepspeed", recipe=recipe)
    for stage in filter(asked.offers, asked.stages):
        ledger = estimate(asked.plan(None, stage)).memory
        assert sum(map(ledger.bytes_of, ROLES)) == ledger.resident_bytes


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_is_a_shard_on_one_gpu(question: AskQuestion, framework: str) -> None:
    for gpus in (1, 2):
        asked = question(framework=framework, gpus=gpus)
        terms = [
            t for stage in filter(asked.offers, asked.stages) for t in estimate(asked.plan(None, stage)).memory.terms
        ]
        assert any(term.sharded for term in terms) == (gpus > 1)


def test_one_parameter_on_seven_gpus(question: AskQuestion) -> None:
    asked = question(params=1, gpus=7)
    assert resident(asked) == {0: 16, 1: 16, 2: 16, 3: 16}
    assert estimate(asked.plan(None, 0)).traffic.wire_bytes == 2 * 2 * 1  # ceil(6/7) element, 2 passes, 2 bytes


def test_1e15_parameters_on_1e6_gpus_stay_exact(question: AskQuestion) -> None:
    asked = question(params=10**15 + 1, gpus=10**6)
    assert resident(asked)[3] == 16 * (10**9 + 1)
    assert resident(asked)[0] == 16 * (10**15 + 1)


@pytest.mark.parametrize(
    ("framework", "grad_accum", "psi"),
    [
        ("zero", 1, [2, 2, 2, 3]),
        ("zero", 8, [2, 2, 9, 24]),
        ("deepspeed", 1, [2, 3, 3, 3 - 0.5 / 7.5]),
        ("deepspeed", 8, [2, 3, 17, 8 * (3 - 0.5 / 7.5)]),
        ("fsdp2", 1, [2, 2, 3]),
        ("ddp", 4, [2, 3]),
        ("megatron", 8, [2, 2]),
    ],
)
def test_traffic_in_psi(question: AskQuestion, framework: str, grad_accum: int, psi: list[float]) -> None:
    asked = question(framework=framework, grad_accum=grad_accum)
    found = [estimate(asked.plan(None, stage)) for stage in asked.stages if asked.offers(stage)]
    assert [one.psi for one in found] == pytest.approx(psi)


def test_the_ratio_is_of_bytes_on_the_wire(question: AskQuestion) -> None:
    """Megatron reduces fp32 gradients and gathers bf16 weights: 6 bytes against the 8 of its own all-reduce."""
    assert estimate(question(framework="megatron").plan(None, 1)).ratio_to_data_parallel == 0.75
    assert estimate(question().plan(None, 3)).ratio_to_data_parallel == 1.5
