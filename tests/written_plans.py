"""Plans to write as configurations, and how the frameworks have to read them."""

from typing import Any

PLAIN = ["--params", "7.5e9", "--gpus", "64", "--gpu", "a100-80gb"]
LLAMA = ["--model", "llama-3.1-8b", "--gpus", "16", "--gpu", "h100", "--seq-len", "4096"]
DEEPSPEED: list[tuple[list[str], dict[str, Any], bool]] = [
    (PLAIN, {"stage": 1, "offload_optimizer": None, "reduce_bucket_size": 500_000_000}, True),
    ([*PLAIN, "--stage", "2", "--set", "overlap_comm=true,reduce_bucket_size=2e8"], {"overlap_comm": True}, True),
    ([*PLAIN, "--stage", "3", "--set", "sub_group_size=1e8,stage3_max_live_parameters=3e8"], {"stage": 3}, True),
    ([*PLAIN, "--stage", "3", "--hpz", "8", "--quantize", "weights,gradients"], {"zero_hpz_partition_size": 8}, True),
    ([*PLAIN, "--recipe", "deepspeed-fp32-accum", "--stage", "2"], {"stage": 2}, True),
    ([*PLAIN, "--recipe", "fp32-adam", "--stage", "3"], {"stage": 3}, False),
    (["--params", "1e9", "--gpus", "8", "--gpu", "v100-32gb"], {"stage": 0}, False),
    (
        ["--params", "30e9", "--gpus", "16", "--node", "dgx-h100", "--stage", "3", "--offload", "optimizer=cpu"],
        {"stage": 3, "offload_param": None},
        True,
    ),
    (
        [*LLAMA, "--stage", "3", "--grad-accum", "4", "--micro-batch", "2", "--recompute", "full"],
        {"stage": 3},
        True,
    ),
]
"""What is asked, what DeepSpeed has to find in zero_optimization, and whether bf16 is on."""
FSDP2 = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "ACCELERATE_MIXED_PRECISION": "bf16"}
ACCELERATE: list[tuple[list[str], dict[str, str | None]]] = [
    (["fsdp2", *LLAMA, "--stage", "3"], {**FSDP2, "FSDP_RESHARD_AFTER_FORWARD": "true"}),
    (["fsdp2", *LLAMA, "--stage", "2"], {**FSDP2, "FSDP_RESHARD_AFTER_FORWARD": "false"}),
    (
        ["fsdp2", *LLAMA, "--shard-group", "8", "--recompute", "full", "--stage", "3"],
        {
            **FSDP2,
            "FSDP_ACTIVATION_CHECKPOINTING": "true",
            "PARALLELISM_CONFIG_DP_SHARD_SIZE": "8",
            "PARALLELISM_CONFIG_DP_REPLICATE_SIZE": "2",
        },
    ),
    (
        ["fsdp2", *LLAMA[:-2], "--stage", "3", "--offload", "params=cpu"],
        {**FSDP2, "FSDP_OFFLOAD_PARAMS": "true"},
    ),
    (
        ["accelerate", *LLAMA, "--framework", "fsdp1", "--stage", "2", "--shard-group", "8"],
        {"FSDP_VERSION": "1", "FSDP_SHARDING_STRATEGY": "HYBRID_SHARD_ZERO2"},
    ),
    (
        ["accelerate", *LLAMA, "--framework", "fsdp1", "--stage", "3", "--recipe", "fp32-adam", "--recompute", "full"],
        {"FSDP_SHARDING_STRATEGY": "FULL_SHARD", "ACCELERATE_MIXED_PRECISION": "no"},
    ),
    (
        ["accelerate", *PLAIN, "--stage", "2", "--grad-accum", "4"],
        {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"},
    ),
    (
        ["accelerate", *PLAIN, "--stage", "3", "--node", "dgx-a100-80gb", "--offload", "optimizer=nvme,params=cpu"],
        {
            "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE": "nvme",
            "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE": "cpu",
        },
    ),
    (["accelerate", "--params", "1e9", "--gpus", "8", "--gpu", "h100", "--framework", "ddp"], {"WORLD_SIZE": None}),
    (
        ["accelerate", "--params", "1e9", "--gpus", "8", "--gpu", "t4", "--framework", "fsdp2", "--stage", "3"],
        {"ACCELERATE_MIXED_PRECISION": "fp16"},
    ),
]
"""What is asked, and what has to stand in the environment that accelerate launches with."""
