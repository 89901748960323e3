"""What is measured: small trainings under every framework, and how zeroplan is asked for the same."""

from dataclasses import dataclass, field
from typing import Any

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 1024,
    "tie_word_embeddings": False,
}
"""The model of every training: small enough for gloo, its dimensions divisible by the ranks."""
SEQ_LEN, MICRO_BATCH = 32, 2
BUCKET = 300_000
"""reduce_bucket_size, in elements: below the model's size, so that several buckets are filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One training: what runs, and the framework, recipe and stage that zeroplan knows it by."""

    name: str
    runtime: str
    """deepspeed, ddp, fsdp1 or fsdp2."""
    framework: str
    recipe: str
    stage: int
    ranks: int = 2
    grad_accum: int = 1
    recompute: str = "none"
    options: dict[str, Any] = field(default_factory=dict)
    """Of the runtime: zero_optimization keys, a bucket view, a shard group."""
    scheme: dict[str, Any] = field(default_factory=dict)
    """As Scheme takes it."""
    light: bool = False
    """Whether CI runs it."""


def _deepspeed() -> list[Case]:
    found = []
    for stage in range(4):
        for recipe, kind in (
            ("deepspeed-16bit", "bf16"),
            ("fp32-adam", "fp32"),
            ("deepspeed-fp32-accum", "bf16, fp32 accumulation"),
        ):
            if kind.endswith("accumulation") and stage == 0:
                continue
            for ranks in (2, 4) if kind == "bf16" else (2,):
                found += [
                    Case(
                        name=f"DeepSpeed {stage}, {kind}, {ranks} ranks, {accum} micro-batches",
                        runtime="deepspeed",
                        framework="deepspeed",
                        recipe=recipe,
                        stage=stage,
                        ranks=ranks,
                        grad_accum=accum,
                        light=kind == "bf16" and ranks == 2,
                    )
                    for accum in (1, 4)
                ]
        common: dict[str, Any] = {"runtime": "deepspeed", "framework": "deepspeed", "recipe": "deepspeed-16bit"}
        common["stage"] = stage
        found.append(Case(name=f"DeepSpeed {stage}, bf16, 2 ranks, checkpointing", recompute="full", **common))
        if stage in (1, 2):
            overlap = {"overlap_comm": True}
            found.append(
                Case(
                    name=f"DeepSpeed {stage}, bf16, 2 ranks, overlap",
                    options=overlap,
                    scheme={"switches": ("overlap_comm",)},
                    **common,
                )
            )
    return [*found, *_family()]


def _family() -> list[Case]:
    """Offload and hpZ, under DeepSpeed."""
    found = []
    common: dict[str, Any] = {"runtime": "deepspeed", "framework": "deepspeed", "recipe": "deepspeed-16bit"}
    to_cpu = {"device": "cpu", "pin_memory": False}
    for stage, accum in ((1, 1), (1, 4), (2, 1), (2, 4), (3, 1), (3, 4)):
        found.append(
            Case(
                name=f"DeepSpeed {stage}, optimizer on the CPU, 2 ranks, {accum} micro-batches",
                stage=stage,
                grad_accum=accum,
                options={"offload_optimizer": to_cpu},
                scheme={"optimizer": "cpu"},
                **common,
            )
        )
    found.append(
        Case(
            name="DeepSpeed 3, optimizer and parameters on the CPU, 2 ranks",
            stage=3,
            options={"offload_optimizer": to_cpu, "offload_param": to_cpu},
            scheme={"optimizer": "cpu", "params": "cpu"},
            **common,
        )
    )
    found += [
        Case(
            name=f"DeepSpeed 3, hpZ over 2, 4 ranks, {accum} micro-batches",
            stage=3,
            ranks=4,
            grad_accum=accum,
            options={"zero_hpz_partition_size": 2},
            scheme={"hpz": 2},
            **common,
        )
        for accum in (1, 4)
    ]
    found += [
        Case(
            name=f"DeepSpeed 3, bucket of {bucket} to prefetch, {live} alive, 2 ranks",
            stage=3,
            options={"stage3_prefetch_bucket_size": bucket, "stage3_max_live_parameters": live},
            scheme={
                "limits": (("stage3_prefetch_bucket_size", bucket), ("stage3_max_live_parameters", live)),
            },
            **common,
        )
        for bucket, live in ((300_000, 600_000), (1_000, 1_500_000), (300_000, 10**9))
    ]
    return found


def _torch() -> list[Case]:
    found = []
    for accum in (1, 4):
        of = f"{accum} micro-batches"
        plain: dict[str, Any] = {"framework": "ddp", "recipe": "fp32-adam", "stage": 0, "grad_accum": accum}
        mixed: dict[str, Any] = {"recipe": "fsdp-mixed", "grad_accum": accum}
        found += [
            Case(name=f"DDP, fp32, 2 ranks, {of}", runtime="ddp", light=accum == 1, **plain),
            Case(
                name=f"DDP, fp32, bucket view, 2 ranks, {of}",
                runtime="ddp",
                options={"bucket_view": True},
                scheme={"switches": ("gradient_as_bucket_view",)},
                **plain,
            ),
            Case(
                name=f"ZeroRedundancyOptimizer, fp32, 2 ranks, {of}",
                runtime="ddp",
                options={"zero": True},
                **{**plain, "stage": 1},
            ),
        ]
        for ranks in (2, 4):
            light = ranks == 2 and accum == 1
            on = f"{ranks} ranks, {of}"
            for runtime in ("fsdp1", "fsdp2"):
                title = runtime.upper()
                for stage, kind in ((3, "resharding"), (2, "not resharding")):
                    found.append(
                        Case(
                            name=f"{title} {kind}, {on}",
                            runtime=runtime,
                            framework=runtime,
                            stage=stage,
                            ranks=ranks,
                            light=light and (runtime == "fsdp2" or stage == 3),
                            **mixed,
                        )
                    )
        for runtime in ("fsdp1", "fsdp2"):
            under: dict[str, Any] = {"runtime": runtime, "framework": runtime, **mixed}
            found += [
                Case(
                    name=f"{runtime.upper()}, groups of 2, 4 ranks, {of}",
                    stage=3,
                    ranks=4,
                    options={"shard_group": 2},
                    scheme={"shard_group": 2},
                    **under,
                )
            ]
            if accum > 1:
                found += [
                    Case(
                        name=f"{runtime.upper()} {kind}, not synchronised, 2 ranks, {of}",
                        stage=stage,
                        options={"no_sync": True},
                        scheme={"switches": ("no_sync",)},
                        **under,
                    )
                    for stage, kind in ((3, "resharding"), (2, "not resharding"))
                ]
        if accum > 1:
            found += [
                Case(
                    name=f"FSDP2, kept gathered, not synchronised, 2 ranks, {of}",
                    runtime="fsdp2",
                    framework="fsdp2",
                    stage=2,
                    options={"no_sync": True, "keep": True},
                    scheme={"switches": ("no_sync", "keep_gathered")},
                    **mixed,
                )
            ]
        found += [
            Case(
                name=f"FSDP2, resharding to groups of 2, 4 ranks, {of}",
                runtime="fsdp2",
                framework="fsdp2",
                stage=3,
                ranks=4,
                options={"reshard": 2},
                scheme={"hpz": 2},
                **mixed,
            ),
            Case(
                name=f"FSDP2, reduced in 16 bits, groups of 2, 4 ranks, {of}",
                runtime="fsdp2",
                framework="fsdp2",
                stage=3,
                ranks=4,
                options={"reduce": "bfloat16", "shard_group": 2},
                scheme={"switches": ("reduce_16bit",), "shard_group": 2},
                **mixed,
            ),
            *(
                Case(
                    name=f"FSDP2 {kind}, reduced in 16 bits, 2 ranks, {of}",
                    runtime="fsdp2",
                    framework="fsdp2",
                    stage=stage,
                    options={"reduce": "bfloat16", "no_sync": stage == 2},
                    scheme={"switches": ("reduce_16bit", *(("no_sync",) if stage == 2 else ()))},
                    light=accum == 1 and stage == 3,
                    **mixed,
                )
                for stage, kind in ((3, "resharding"), (2, "not resharding, not synchronised"))
            ),
            *(
                Case(
                    name=f"FSDP2 {kind}, as accelerate, 2 ranks, {of}",
                    runtime="fsdp2",
                    framework="fsdp2",
                    stage=stage,
                    options={"reduce": "bfloat16", "units": True, "no_sync": True},
                    scheme={"switches": ("reduce_16bit", "embedding_unit", "no_sync")},
                    light=accum > 1 and stage == 3,
                    **mixed,
                )
                for stage, kind in ((3, "resharding"), (2, "not resharding"))
            ),
            Case(
                name=f"FSDP2, on the CPU, 2 ranks, {of}",
                runtime="fsdp2",
                framework="fsdp2",
                stage=3,
                options={"offload": True},
                scheme={"params": "cpu"},
                **mixed,
            ),
        ]
    plain = {"runtime": "ddp", "framework": "ddp", "stage": 0}
    found += [
        Case(name="DDP, fp32, 2 ranks, checkpointing", recipe="fp32-adam", recompute="full", **plain),
        Case(name="DDP, bf16 autocast, 2 ranks", recipe="fsdp-mixed", options={"autocast": True}, **plain),
    ]
    for runtime in ("fsdp1", "fsdp2"):
        common: dict[str, Any] = {"runtime": runtime, "framework": runtime, "recipe": "fsdp-mixed", "stage": 3}
        found.append(Case(name=f"{runtime.upper()} resharding, 2 ranks, checkpointing", recompute="full", **common))
    return found


MATRIX = [*_deepspeed(), *_torch()]
