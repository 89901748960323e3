"""The keys of DeepSpeed's JSON configuration, as of DeepSpeed 0.19.8: known, old, removed, and what they set."""

ZERO = "zero_optimization"
NUMBERS = {
    "reduce_bucket_size": "reduce_bucket_size",
    "sub_group_size": "sub_group_size",
    "stage3_max_live_parameters": "stage3_max_live_parameters",
    "stage3_max_reuse_distance": "stage3_max_reuse_distance",
    "stage3_prefetch_bucket_size": "stage3_prefetch_bucket_size",
}
"""The keys of zero_optimization that are settings of the framework `deepspeed`."""
PREFETCH, MAX_LIVE = "stage3_prefetch_bucket_size", "stage3_max_live_parameters"
DEFAULT_MAX_LIVE = 1_000_000_000
"""stage3_max_live_parameters where nothing is said; runtime/zero/config.py."""
BATCH = {"train_micro_batch_size_per_gpu": "micro_batch", "gradient_accumulation_steps": "grad_accum"}
STAGE3 = (
    *("prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold", "max_live_parameters"),
    *("max_reuse_distance", "gather_16bit_weights_on_model_save", "module_granularity_threshold"),
    *("use_all_reduce_for_fetch_params", "allgather_sequential"),
)
"""Keys that stand with and without `stage3_`."""
KNOWN_ZERO = frozenset(
    (
        *("stage", "contiguous_gradients", "reduce_scatter", "reduce_bucket_size", "use_multi_rank_bucket_allreduce"),
        *("allgather_partitions", "allgather_bucket_size", "overlap_comm", "compute_grad_norm"),
        *("load_from_fp32_weights", "elastic_checkpoint", "offload_param", "offload_optimizer", "zenflow"),
        *("sub_group_size", "ignore_unused_parameters", "legacy_stage1", "round_robin_gradients"),
        *("parameter_alignment", "zero_hpz_partition_size", "zero_quantized_weights"),
        *("zero_quantized_nontrainable_weights", "zero_quantized_gradients", "memory_efficient_linear"),
        *("pipeline_loading_checkpoint", "override_module_apply", "log_trace_cache_warnings"),
        *("enable_sanity_checks", "save_muon_momentum_buffer_in_memory", "leaf_module"),
        *("cpu_offload_param", "cpu_offload_use_pin_memory", "cpu_offload"),
        "stage3_gather_fp16_weights_on_model_save",
        *STAGE3,
        *(f"stage3_{name}" for name in STAGE3),
    )
)
REMOVED_ZERO = ("mics_shard_size", "mics_hierarchical_params_gather", "zeropp_loco_param")
OLD = {
    "cpu_offload": "offload_optimizer",
    "cpu_offload_param": "offload_param",
    "stage3_gather_fp16_weights_on_model_save": "stage3_gather_16bit_weights_on_model_save",
}
TOP_ONLY = (
    *("aio", "bf16", "fp16", "bfloat16", "activation_checkpointing"),
    *("gradient_clipping", "optimizer", "scheduler"),
)
"""Sections that work at the top level alone."""
MEANT = {"cpu_offload_params": "cpu_offload_param, today offload_param"}
KNOWN_TOP = frozenset(
    (
        *("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "optimizer"),
        *("scheduler", "bf16", "bfloat16", "fp16", "torch_autocast", "data_types", ZERO),
        *("communication_data_type", "seq_parallel_communication_data_type", "prescale_gradients"),
        *("gradient_predivide_factor", "gradient_clipping", "gradient_allreduce_op", "steps_per_print"),
        *("zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "wall_clock_breakdown", "dump_state"),
        *("disable_allgather", "disable_python_gc", "checkpoint", "aio", "activation_checkpointing"),
        *("flops_profiler", "comms_logger", "tensorboard", "wandb", "csv_monitor", "comet", "monitor_config"),
        *("data_efficiency", "tensor_parallel", "autotp_size", "pipeline"),
        *("dataloader_drop_last", "memory_breakdown", "hybrid_engine", "managed_gradient_accumulation"),
        *("use_data_before_expert_parallelism", "check_overflow", "log_level", "data_parallel_group"),
        *("sequence_parallel_size", "compile", "autotuning", "timers", "weight_quantization", "expert_parallel"),
        *("allgather_size", "checkpoint_tag_validation"),
    )
)
DECIDING = (
    *(ZERO, "bf16", "fp16", "bfloat16", "train_batch_size", "train_micro_batch_size_per_gpu"),
    *("gradient_accumulation_steps", "data_types", "optimizer"),
)
"""Top-level keys on which memory depends: misspelt ones are worth more than a note."""
UNMODELLED = (
    *("tensor_parallel", "autotp_size", "pipeline", "sequence_parallel_size", "expert_parallel"),
    "torch_autocast",
)
"""Top-level keys that change memory or traffic and that zeroplan does not model."""
REMOVED_TOP = (
    *("nebula", "compression_training", "amp", "quantize_training", "sparse_gradients", "eigenvalue"),
    *("sparse_attention", "elasticity", "graph_harvesting", "curriculum_learning", "progressive_layer_drop"),
)
SECTIONS = {
    "offload_optimizer": frozenset(
        (
            *("device", "nvme_path", "buffer_count", "pin_memory", "pipeline_read", "pipeline_write", "fast_init"),
            *("ratio", "super_offload", "cpuadam_cores_perc"),
        )
    ),
    "offload_param": frozenset(("device", "nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "pin_memory")),
    "bf16": frozenset(
        (
            *("enabled", "immediate_grad_update", "check_grad_overflow", "bf16_master_weights_and_grads"),
            "bf16_optimizer_states",
        )
    ),
    "fp16": frozenset(
        (
            *("enabled", "auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis"),
            *("consecutive_hysteresis", "min_loss_scale", "fp16_master_weights_and_grads"),
        )
    ),
}
"""The closed sets of keys of some sections; runtime/precision_config.py, runtime/zero/offload_config.py."""
FP32 = ("fp32", "float32", "float", "torch.float32", "torch.float")
"""How a type of 32 bits is written; runtime/config_utils.py, DtypeEnum."""
OTHERWISE = (("compile", "deepcompile"), ("compile", "offload_opt_states"), ("hybrid_engine", "enabled"))
"""Sections and keys that move or keep states in ways that are not modelled."""
TRAFFIC = {
    "stage3_use_all_reduce_for_fetch_params": True,
    "use_multi_rank_bucket_allreduce": False,
    "contiguous_gradients": False,
    "reduce_scatter": False,
}
"""Keys of zero_optimization that change collectives or their buffers, at these values."""
NARROW = ("bf16_master_weights_and_grads", "bf16_optimizer_states", "fp16_master_weights_and_grads")
"""Keys of bf16 and fp16 that keep states in 16 bits."""
ADAMS = ("adam", "adamw", "auto")
"""Optimizers whose states are those of the recipes."""
PERSISTENT = 10**6
"""Elements up to which a tensor that is kept whole on each GPU (stage3_param_persistence_threshold) changes little:
norms and biases are kept at DeepSpeed's default of 1e5 too, a matrix of 1e6 has a width of 1,000. Ours, not measured.
"""
