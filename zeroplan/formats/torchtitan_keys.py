"""The keys of torchtitan's TOML, of all its versions until TOML was removed on 2026-02-23: pytorch/torchtitan
torchtitan/config_manager.py and torchtitan/config/job_config.py."""

SECTIONS = {
    "job": frozenset(
        """
        config_file dump_folder description use_for_integration_test print_args print_config
        custom_config_module save_config_folder save_config_file
        """.split()  # noqa: SIM905
    ),
    "profiling": frozenset(
        """
        run_profiler save_traces_folder profile_every_x_iter profile_freq enable_profiling
        enable_memory_snapshot save_memory_snapshot_folder profiler_active profiler_warmup
        """.split()  # noqa: SIM905
    ),
    "metrics": frozenset(
        """
        log_freq enable_tensorboard save_tb_folder enable_color_printing rank_0_only enable_wandb
        disable_color_printing disable_logging_from_checkpoint save_for_all_ranks
        """.split()  # noqa: SIM905
    ),
    "model": frozenset(
        """
        name flavor tokenizer_path norm_type converters print_after_conversion use_flex_attn attn_mask_type
        hf_assets_path
        """.split()  # noqa: SIM905
    ),
    "optimizer": frozenset(
        """
        name lr fused early_step_in_backward implementation eps beta1 beta2 weight_decay
        """.split()  # noqa: SIM905
    ),
    "lr_scheduler": frozenset(
        """
        warmup_steps decay_ratio decay_type lr_min min_lr_factor total_steps
        """.split()  # noqa: SIM905
    ),
    "training": frozenset(
        """
        dataset dataset_path batch_size local_batch_size global_batch_size seq_len max_norm steps warmup_pct
        warmup_steps data_parallel_degree data_parallel_type data_parallel_replicate_degree
        data_parallel_shard_degree sequence_parallel_degree tensor_parallel_degree pipeline_parallel_degree
        fsdp_reshard_after_forward enable_loss_parallel disable_loss_parallel compile dtype
        mixed_precision_param mixed_precision_reduce enable_cpu_offload enable_selective_ac gc_freq gc_debug
        seed deterministic debug_moe_force_load_balance checkpoint_interval checkpoint_interval_type
        checkpoint_folder fp8_linear enable_fp8_linear enable_fsdp_fp8_all_gather enable_float8_linear
        enable_fsdp_float8_all_gather precompute_float8_dynamic_scale_for_fsdp float8_scaling_type_input
        float8_scaling_type_weight float8_scaling_type_grad_output dataloader
        """.split()  # noqa: SIM905
    ),
    "training.dataloader": frozenset(
        """
        num_workers persistent_workers pin_memory prefetch_factor
        """.split()  # noqa: SIM905
    ),
    "parallelism": frozenset(
        """
        data_parallel_replicate_degree data_parallel_shard_degree fsdp_reshard_after_forward
        tensor_parallel_degree disable_loss_parallel enable_async_tensor_parallel enable_compiled_autograd
        pipeline_parallel_degree pipeline_parallel_split_points pipeline_parallel_schedule
        pipeline_parallel_schedule_csv pipeline_parallel_microbatches pipeline_parallel_microbatch_size
        pipeline_parallel_layers_per_stage module_fqns_per_model_part
        pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers
        pipeline_parallel_expert_parallel_overlap context_parallel_degree context_parallel_rotate_method
        context_parallel_load_balancer expert_parallel_degree expert_tensor_parallel_degree
        expert_parallel_comm_backend
        """.split()  # noqa: SIM905
    ),
    "experimental": frozenset(
        """
        pipeline_parallel_degree pipeline_parallel_split_points pipeline_parallel_schedule
        pipeline_parallel_schedule_csv pipeline_parallel_split_mode pipeline_parallel_microbatches
        enable_async_tensor_parallel enable_compiled_autograd context_parallel_degree
        context_parallel_rotate_method custom_model_path custom_import custom_args_module
        """.split()  # noqa: SIM905
    ),
    "checkpoint": frozenset(
        """
        enable enable_checkpoint folder interval interval_type model_weights_only export_dtype async_mode
        create_seed_checkpoint keep_latest_k load_step load_only exclude_from_loading initial_load_path
        initial_load_model_only initial_load_model_weights_only initial_load_in_hf
        initial_load_in_hf_quantized last_save_model_only last_save_model_weights_only last_save_in_hf
        last_save_in_safetensors_format enable_first_step_checkpoint enable_ft_dataloader_checkpoints
        """.split()  # noqa: SIM905
    ),
    "activation_checkpoint": frozenset(
        """
        mode selective_ac_option per_op_sac_force_recompute_mm_shapes_by_fqns early_stop memory_budget
        visualize_memory_budget_pareto preserve_rng_state determinism_check debug
        """.split()  # noqa: SIM905
    ),
    "compile": frozenset(
        """
        enable components backend
        """.split()  # noqa: SIM905
    ),
    "float8": frozenset(
        """
        enable_float8_linear enable_fsdp_float8_all_gather precompute_float8_dynamic_scale_for_fsdp
        scaling_type_input scaling_type_weight scaling_type_grad_output force_recompute_fp8_weight_in_bwd
        recipe_name filter_fqns emulate moe_fqns_prototype
        """.split()  # noqa: SIM905
    ),
    "mx": frozenset(
        """
        use_fp8_dim1_cast_triton_kernel mxfp8_dim1_cast_kernel_choice recipe_name filter_fqns
        moe_fqns_prototype
        """.split()  # noqa: SIM905
    ),
    "quantize": frozenset(
        """
        linear grouped_mm dense moe
        """.split()  # noqa: SIM905
    ),
    "comm": frozenset(
        """
        timeout_seconds init_timeout_seconds train_timeout_seconds trace_buf_size save_traces_folder
        save_traces_file_prefix mode
        """.split()  # noqa: SIM905
    ),
    "memory_estimation": frozenset(
        """
        enabled enable disable_fake_mode
        """.split()  # noqa: SIM905
    ),
    "estimate": frozenset(
        """
        memory mode
        """.split()  # noqa: SIM905
    ),
    "fault_tolerance": frozenset(
        """
        enable replica_id group_size min_replica_size semi_sync_method process_group
        process_group_timeout_ms sync_steps should_quantize fragment_sync_delay fragment_update_alpha
        module_fqns_per_model_fragment num_fragments
        """.split()  # noqa: SIM905
    ),
    "validation": frozenset(
        """
        enabled enable dataset dataset_path local_batch_size seq_len freq steps dataloader
        """.split()  # noqa: SIM905
    ),
    "debug": frozenset(
        """
        seed deterministic deterministic_warn_only moe_force_load_balance
        """.split()  # noqa: SIM905
    ),
}
"""Keys by section; keys with a dot are tables in tables."""
FREE = ("hf_transformers", "data", "encoder", "inference", "float8", "mx")
"""Sections of extensions, and of quantisation, whose keys are not looked at."""
PARALLEL = "parallelism"
OLD = {
    ("training", "sequence_parallel_degree"): ("parallelism.tensor_parallel_degree", "2024-03-25"),
    ("training", "tensor_parallel_degree"): ("parallelism.tensor_parallel_degree", "2025-03-18"),
    ("training", "pipeline_parallel_degree"): ("parallelism.pipeline_parallel_degree", "2024-05-21"),
    ("experimental", "pipeline_parallel_degree"): ("parallelism.pipeline_parallel_degree", "2025-03-18"),
    ("experimental", "context_parallel_degree"): ("parallelism.context_parallel_degree", "2025-03-18"),
    ("training", "data_parallel_degree"): ("parallelism.data_parallel_shard_degree", "2024-09-10"),
    ("training", "data_parallel_replicate_degree"): ("parallelism.data_parallel_replicate_degree", "2025-03-18"),
    ("training", "data_parallel_shard_degree"): ("parallelism.data_parallel_shard_degree", "2025-03-18"),
    ("training", "fsdp_reshard_after_forward"): ("parallelism.fsdp_reshard_after_forward", "2025-03-18"),
    ("training", "batch_size"): ("training.local_batch_size", "2025-06-05"),
    ("training", "compile"): ("compile.enable", "2025-08-20"),
    ("training", "enable_selective_ac"): ("activation_checkpoint.mode", "2024-03-14"),
    ("optimizer", "fused"): ("optimizer.implementation", "2025-02-24"),
}
"""Keys that moved: to where, and when. Later versions ignored the old ones until 2025-08-28, and refused them since."""
DEGREES = {
    "shard": ("data_parallel_shard_degree", "data_parallel_degree"),
    "replicate": ("data_parallel_replicate_degree",),
    "tensor": ("tensor_parallel_degree", "sequence_parallel_degree"),
    "pipeline": ("pipeline_parallel_degree",),
    "context": ("context_parallel_degree",),
    "expert": ("expert_parallel_degree",),
}
"""Degrees of parallelism, and their keys."""
DIVIDING = ("tensor", "pipeline", "context")
"""Degrees that divide the ranks; that of experts borrows them."""
NAMES = ("llama", "llama2", "llama3", "llama4", "qwen3", "deepseek_v3", "gpt_oss")
"""Models whose sections are these; others bring keys of their own."""
BATCH, SEQUENCE = 8, 2048
"""local_batch_size and seq_len where nothing is said."""
RESHARD = {"default": 3, "always": 3, "never": 2}
"""The stage that FSDP2 is like by fsdp_reshard_after_forward, without pipeline parallelism."""
KERNELS = {"fused": "fused", "foreach": "foreach", "for-loop": "loop"}
MODELS = {
    ("llama", "7B"): "llama-2-7b",
    ("llama2", "7B"): "llama-2-7b",
    ("llama2", "13B"): "llama-2-13b",
    ("llama2", "70B"): "llama-2-70b",
    ("llama3", "8B"): "llama-3.1-8b",
    ("llama3", "8B_flex"): "llama-3.1-8b",
    ("llama3", "8B_varlen"): "llama-3.1-8b",
    ("llama3", "70B"): "llama-3.1-70b",
    ("llama3", "405B"): "llama-3.1-405b",
    ("qwen3", "0.6B"): "qwen3-0.6b",
    ("qwen3", "8B"): "qwen3-8b",
    ("qwen3", "32B"): "qwen3-32b",
    ("qwen3", "30B-A3B"): "qwen3-30b-a3b",
    ("qwen3", "235B-A22B"): "qwen3-235b-a22b",
    ("deepseek_v3", "16B"): "deepseek-v2-lite",
    ("deepseek_v3", "236B"): "deepseek-v2",
    ("gpt_oss", "20b"): "gpt-oss-20b",
    ("gpt_oss", "120b"): "gpt-oss-120b",
}
"""Presets of the same shape by name and flavor; torchtitan/models/*/__init__.py."""
PARAMS = {
    ("qwen3", "1.7B"): 1_720_574_976,
    ("qwen3", "4B"): 4_022_468_096,
    ("qwen3", "14B"): 14_768_307_200,
    ("deepseek_v3", "671B"): 671_026_404_352,
    ("llama4", "17bx16e"): 107_769_861_120,
    ("llama4", "17bx128e"): 400_711_848_960,
}
"""Parameters of those that no preset is like: torchtitan/models/*/model/args.py, counted by its formulas."""
