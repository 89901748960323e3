"""What each framework holds in each phase, as closed forms in bytes per parameter.

The forms were measured with DeepSpeed 0.19.8 and torch 2.13 on 2 and 4 ranks: bf16 weights, fp32 master and
moments, 16-bit gradients, fused Adam, many small tensors, no activations. Here N = 64 and 7.5e9 parameters, so
that every default limit counts: B = 5e8 elements a bucket, L = 1e9 kept gathered, a sub-group above a shard.
"""

from collections.abc import Callable

import pytest

from tests.conftest import AskQuestion
from zeroplan.core.estimate import memory

P, N = 7_500_000_000, 64
B = 500_000_000 / P  # one bucket, in elements per parameter
L = 1_000_000_000 / P  # what prefetching keeps gathered
S = 1 / N

Table = dict[str, float]
ROWS: list[tuple[str, str, int, int, Table]] = [
    # framework, recipe, stage, micro-batches: bytes per parameter in each phase
    ("deepspeed", "deepspeed-16bit", 0, 1, {"forward": 14, "backward": 16 + 2 * B, "step": 24, "save": 14}),
    ("deepspeed", "deepspeed-16bit", 0, 4, {"forward": 16, "backward": 16 + 2 * B, "step": 24, "save": 14}),
    (
        *("deepspeed", "deepspeed-16bit", 1, 1),
        {"forward": 2 + 12 * S, "backward": 4 + 12 * S + 2 * B, "step": 2 + 20 * S, "save": 2 + 12 * S},
    ),
    (
        *("deepspeed", "deepspeed-16bit", 1, 4),
        {"forward": 4 + 12 * S + 2 * B, "backward": 4 + 12 * S + 2 * B, "step": 2 + 20 * S, "save": 2 + 12 * S},
    ),
    (
        *("deepspeed", "deepspeed-16bit", 2, 1),
        {"forward": 2 + 12 * S, "backward": 2 + 14 * S + 4 * B, "step": 2 + 20 * S, "save": 2 + 12 * S},
    ),
    (
        *("deepspeed", "deepspeed-16bit", 2, 4),
        {"forward": 2 + 14 * S, "backward": 2 + 16 * S + 4 * B, "step": 2 + 20 * S, "save": 2 + 12 * S},
    ),
    (
        *("deepspeed", "deepspeed-16bit", 3, 1),
        {
            "forward": 16 * S + 2 * B + 2 * L,
            "backward": 16 * S + 4 * B + 2 * L,
            "step": 22 * S + 2 * B,
            "save": 16 * S + 2 * B,
        },
    ),
    (
        *("deepspeed", "deepspeed-16bit", 3, 4),
        {
            "forward": 16 * S + 2 * B + 2 * L,
            "backward": 16 * S + 4 * B + 2 * L,
            "step": 22 * S + 2 * B,
            "save": 16 * S + 2 * B,
        },
    ),
    (
        *("deepspeed", "deepspeed-fp32-accum", 1, 1),
        {"forward": 6 + 12 * S, "backward": 8 + 12 * S + 2 * B, "step": 8 + 12 * S, "save": 6 + 12 * S},
    ),
    (
        *("deepspeed", "deepspeed-fp32-accum", 1, 4),
        {"forward": 8 + 12 * S, "backward": 8 + 12 * S + 2 * B, "step": 8 + 12 * S, "save": 6 + 12 * S},
    ),
    (
        *("deepspeed", "deepspeed-fp32-accum", 2, 1),
        {"forward": 2 + 12 * S, "backward": 2 + 16 * S + 6 * B, "step": 2 + 16 * S, "save": 2 + 12 * S},
    ),
    (
        *("deepspeed", "deepspeed-fp32-accum", 3, 1),
        {
            "forward": 18 * S + 2 * B + 2 * L,
            "backward": 18 * S + 4 * B + 2 * L,
            "step": 22 * S + 2 * B,
            "save": 18 * S + 2 * B,
        },
    ),
    ("deepspeed", "fp32-adam", 0, 1, {"forward": 12, "backward": 16 + 4 * B, "step": 16, "save": 12}),
    (
        *("deepspeed", "fp32-adam", 2, 1),
        {"forward": 4 + 12 * S, "backward": 4 + 16 * S + 8 * B, "step": 4 + 20 * S, "save": 4 + 12 * S},
    ),
    (
        *("deepspeed", "fp32-adam", 3, 1),
        {
            "forward": 20 * S + 4 * B + 4 * L,
            "backward": 20 * S + 8 * B + 4 * L,
            "step": 24 * S + 4 * B,
            "save": 20 * S + 4 * B,
        },
    ),
    ("fsdp2", "fsdp-mixed", 0, 1, {"forward": 18, "backward": 20, "step": 20, "save": 16}),
    ("fsdp2", "fsdp-mixed", 0, 4, {"forward": 22, "backward": 22, "step": 20, "save": 16}),
    ("fsdp2", "fp32-adam", 0, 1, {"forward": 16, "backward": 20, "step": 20, "save": 16}),
    ("fsdp2", "fsdp-mixed", 2, 1, {"forward": 12 * S + 2, "backward": 12 * S + 2, "step": 16 * S, "save": 12 * S}),
    ("fsdp2", "fsdp-mixed", 2, 4, {"forward": 16 * S + 2, "backward": 16 * S + 2, "step": 16 * S, "save": 12 * S}),
    ("fsdp2", "fsdp-mixed", 3, 1, {"forward": 12 * S, "backward": 16 * S, "step": 16 * S, "save": 12 * S}),
    ("fsdp1", "fsdp-mixed", 0, 1, {"forward": 18, "backward": 20, "step": 20, "save": 16}),
    ("fsdp1", "fsdp-mixed", 2, 1, {"forward": 12 * S + 2, "backward": 12 * S + 2, "step": 16 * S, "save": 16 * S}),
    ("fsdp1", "fsdp-mixed", 3, 4, {"forward": 16 * S, "backward": 16 * S, "step": 16 * S, "save": 16 * S}),
    ("megatron", "megatron-bf16", 0, 1, {"forward": 18, "backward": 18, "step": 18, "save": 18}),
    (
        *("megatron", "megatron-bf16", 1, 8),
        {"forward": 6 + 12 * S, "backward": 6 + 12 * S, "step": 6 + 12 * S, "save": 6 + 12 * S},
    ),
    ("zero", "zero-adam", 2, 1, {"forward": 2 + 12 * S, "backward": 2 + 14 * S, "step": 2 + 14 * S}),
]


@pytest.mark.parametrize(
    ("framework", "recipe", "stage", "grad_accum", "table"), ROWS, ids=["-".join(map(str, row[:4])) for row in ROWS]
)
def test_what_is_alive_in_each_phase(
    question: AskQuestion, framework: str, recipe: str, stage: int, grad_accum: int, table: Table
) -> None:
    asked = question(params=P, gpus=N, framework=framework, recipe=recipe, grad_accum=grad_accum)
    ledger = memory(asked.plan(None, stage))
    assert {phase: ledger.alive_bytes(phase) / P for phase in table} == pytest.approx(table, rel=1e-9)


SENDS: list[tuple[str, str, int, Callable[[int], list[tuple[str, str, int, float]]]]] = [
    # framework, recipe, stage: (collective, phase, times, bytes per parameter) with a micro-batches
    ("zero", "zero-adam", 0, lambda _: [("all-reduce", "backward", 1, 2)]),
    ("zero", "zero-adam", 1, lambda _: [("reduce-scatter", "backward", 1, 2), ("all-gather", "step", 1, 2)]),
    ("zero", "zero-adam", 2, lambda a: [("reduce-scatter", "backward", a, 2), ("all-gather", "step", 1, 2)]),
    (
        *("zero", "zero-adam", 3),
        lambda a: [
            ("all-gather", "forward", a, 2),
            ("all-gather", "backward", a, 2),
            ("reduce-scatter", "backward", a, 2),
        ],
    ),
    ("deepspeed", "deepspeed-16bit", 0, lambda _: [("all-reduce", "backward", 1, 2)]),
    ("deepspeed", "deepspeed-16bit", 1, lambda _: [("all-reduce", "backward", 1, 2), ("all-gather", "step", 1, 2)]),
    ("deepspeed", "deepspeed-16bit", 2, lambda a: [("all-reduce", "backward", a, 2), ("all-gather", "step", 1, 2)]),
    (
        "deepspeed",
        "deepspeed-fp32-accum",
        2,
        lambda a: [("all-reduce", "backward", a, 2), ("all-gather", "step", 1, 2)],
    ),
    (
        *("deepspeed", "deepspeed-16bit", 3),
        lambda a: [
            ("all-gather", "forward", a, 2),
            ("all-gather", "backward", a, 2 - 2 * B),
            ("reduce-scatter", "backward", a, 2),
        ],
    ),
    ("fsdp2", "fsdp-mixed", 0, lambda _: [("all-reduce", "backward", 1, 4)]),
    ("fsdp2", "fsdp-mixed", 2, lambda a: [("all-gather", "forward", a, 2), ("reduce-scatter", "backward", a, 4)]),
    (
        *("fsdp2", "fsdp-mixed", 3),
        lambda a: [
            ("all-gather", "forward", a, 2),
            ("all-gather", "backward", a, 2),
            ("reduce-scatter", "backward", a, 4),
        ],
    ),
    ("fsdp1", "fsdp-mixed", 2, lambda a: [("all-gather", "forward", a, 2), ("reduce-scatter", "backward", a, 2)]),
    ("megatron", "megatron-bf16", 0, lambda _: [("all-reduce", "backward", 1, 4)]),
    ("megatron", "megatron-bf16", 1, lambda _: [("reduce-scatter", "backward", 1, 4), ("all-gather", "step", 1, 2)]),
]


@pytest.mark.parametrize("grad_accum", [1, 4])
@pytest.mark.parametrize(
    ("framework", "recipe", "stage", "expected"), SENDS, ids=[f"{r[0]}-{r[1]}-{r[2]}" for r in SENDS]
)
def test_what_is_sent(
    question: AskQuestion,
    framework: str,
    recipe: str,
    stage: int,
    grad_accum: int,
    expected: Callable[[int], list[tuple[str, str, int, float]]],
) -> None:
    from zeroplan.core.traffic import traffic

    asked = question(params=P, gpus=N, framework=framework, recipe=recipe, grad_accum=grad_accum)
    moved = traffic(asked.plan(None, stage)).transfers
    found = [(t.collective, t.phase, t.times_per_step, t.payload_bytes / P) for t in moved]
    assert [f[:3] for f in found] == [e[:3] for e in expected(grad_accum)]
    assert [f[3] for f in found] == pytest.approx([e[3] for e in expected(grad_accum)])
