"""The keys of accelerate's configuration, as of accelerate 1.15: known, refused, and what they mean."""

from zeroplan.core.plan import EMBEDDING_UNIT

DEEPSPEED, FSDP, PARALLEL = "deepspeed_config", "fsdp_config", "parallelism_config"
KNOWN_TOP = frozenset(
    (
        *("compute_environment", "distributed_type", "mixed_precision", "use_cpu", "debug", "num_processes"),
        *("machine_rank", "num_machines", "gpu_ids", "main_process_ip", "main_process_port", "rdzv_backend"),
        *("same_network", "main_training_function", "enable_cpu_affinity", "fp8_config", DEEPSPEED, FSDP, PARALLEL),
        *("megatron_lm_config", "mpirun_config", "downcast_bf16", "tpu_name", "tpu_zone", "tpu_use_cluster"),
        *("tpu_use_sudo", "command_file", "commands", "tpu_vm", "tpu_env", "dynamo_config", "dynamo_backend", "fp16"),
    )
)
KNOWN_DEEPSPEED = frozenset(
    (
        *("zero_stage", "offload_optimizer_device", "offload_param_device", "offload_optimizer_nvme_path"),
        *("offload_param_nvme_path", "gradient_accumulation_steps", "gradient_clipping", "zero3_init_flag"),
        *("zero3_save_16bit_model", "deepspeed_config_file", "deepspeed_hostfile", "deepspeed_multinode_launcher"),
        *("deepspeed_exclusion_filter", "deepspeed_inclusion_filter", "deepspeed_moe_layer_cls_names"),
        "seq_parallel_communication_data_type",
    )
)
REFUSED_BESIDE_FILE = (
    *("gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device"),
    *("offload_param_device", "offload_param_nvme_path", "offload_optimizer_nvme_path", "zero3_save_16bit_model"),
)
"""Keys of deepspeed_config that accelerate refuses beside deepspeed_config_file."""
KNOWN_FSDP = frozenset(
    f"fsdp_{name}"
    for name in (
        *("version", "sharding_strategy", "reshard_after_forward", "offload_params", "min_num_params"),
        *("auto_wrap_policy", "transformer_layer_cls_to_wrap", "backward_prefetch", "forward_prefetch"),
        *("state_dict_type", "use_orig_params", "cpu_ram_efficient_loading", "sync_module_states"),
        *("activation_checkpointing", "activation_checkpointing_offload", "ignored_modules"),
    )
)
KNOWN_PARALLEL = frozenset(
    f"parallelism_config_{name}"
    for name in (
        *("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "cp_backend", "cp_comm_strategy", "sp_size"),
        *("sp_backend", "sp_seq_length", "sp_seq_length_is_variable", "sp_attn_implementation"),
    )
)
STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""In the order of their numbers, from 1."""
STAGES = {"FULL_SHARD": 3, "SHARD_GRAD_OP": 2, "NO_SHARD": 0, "HYBRID_SHARD": 3, "HYBRID_SHARD_ZERO2": 2}
UNMODELLED = ("tp", "cp", "sp")
"""Ways of parallelism_config that zeroplan does not model."""
REDUCE_16BIT, NO_SYNC = "reduce_16bit", "no_sync"
"""Settings of FSDP that accelerate's mixed precision, and its accumulation, always are; utils/dataclasses.py,
accelerator.py."""


def fsdp2_settings(mixed: bool) -> tuple[str, ...]:
    """What accelerate 1.14 and later do under FSDP2 (utils/fsdp_utils.py), as settings of the framework."""
    return (f"{EMBEDDING_UNIT}=true", *((f"{REDUCE_16BIT}=true",) if mixed else ()))
