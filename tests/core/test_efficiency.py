"""ZeRO-Infinity's efficiency, and what of a GPU's compute its copies leave."""

from typing import Any

import pytest

from tests.conftest import AskQuestion
from zeroplan.core.efficiency import efficiency, left_by_copies, step_flops
from zeroplan.core.estimate import estimate
from zeroplan.core.scheme import Scheme
from zeroplan.core.workload import Workload
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.presets import Presets

PEAK = 70e12  # FLOP/s of a V100, as the paper takes it


@pytest.mark.parametrize(
    ("intensity", "bytes_per_s", "share"),
    [
        (1024, 70e9, 0.5059),  # weights and gradients, batch 1 of 1024 tokens
        (512, 1.5e12, 0.9165),  # optimizer states, batch 2
        (24 * 2048, 2e9, 0.5841),  # activation checkpoints, hidden 2048
    ],
)
def test_the_papers_worked_values(intensity: float, bytes_per_s: float, share: float) -> None:
    assert efficiency(intensity, bytes_per_s, PEAK) == pytest.approx(share, abs=5e-5)


def workload(presets: Presets, **changes: Any) -> Workload:
    return Workload(seq_len=1024, loss=presets.loss("fp32"), **changes)


def test_a_step_is_eight_operations_per_parameter_and_token_with_recomputation(
    question: AskQuestion, presets: Presets
) -> None:
    """2 x 4 x 12 batch seq layers hidden^2, and six without recomputation."""
    model = presets.model("llama-2-7b").model
    for recompute, each in (("full", 8), ("none", 6)):
        asked = question(model=model, workload=workload(presets, recompute=recompute), grad_accum=4)
        assert step_flops(asked.plan(None, 3)) == each * model.params * 1024 * 4
    assert step_flops(question().plan(None, 3)) is None


def test_copies_leave_less_with_less_work(question: AskQuestion, presets: Presets) -> None:
    def left(**changes: Any) -> float:
        asked = question(
            model=presets.model("llama-2-7b").model,
            framework="deepspeed",
            scheme=Scheme(optimizer="cpu"),
            cards=("h100",),
            gpus=8,
            **changes,
        )
        found = left_by_copies(estimate(asked.plan(asked.cards[0], 3)))
        assert found is not None
        return found

    short, long = (left(workload=workload(presets, micro_batch=size)) for size in (1, 16))
    assert 0 < short < long < 1


def test_working_memory_of_a_1t_model(question: AskQuestion, presets: Presets) -> None:
    """ZeRO-Infinity Figure 2a, 1.01T: the largest h x 4h matrix and its gradient 9.77 GiB; checkpoints of a node's 32
    sequences of 1024 tokens 0.20 TiB."""
    gpt = {"model_type": "gpt2", "n_embd": 25600, "n_layer": 128, "n_head": 256, "vocab_size": 50257}
    model = read_config(gpt)
    assert 4 * model.largest_tensor() / 2**30 == pytest.approx(9.765625)
    asked = question(model=model, workload=workload(presets, recompute="full", micro_batch=32))
    terms = {term.name: term.bytes for term in estimate(asked.plan(None, 3)).memory.terms}
    assert terms["activations.checkpoints"] / 2**40 == pytest.approx(0.1953125, rel=0.01)
