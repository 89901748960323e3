"""The arguments of the Hugging Face Trainer that decide memory, as of transformers 5.24 with accelerate 1.15."""

MEMORY = (
    *("per_device_train_batch_size", "gradient_accumulation_steps", "bf16", "fp16", "fsdp", "fsdp_config", "deepspeed"),
    *("gradient_checkpointing", "activation_checkpointing", "optim", "torch_compile", "use_liger_kernel"),
)
"""Keys that are read here."""
LIGER = {"rms_norm": "norm", "swiglu": "mlp"}
"""Fused parts by the keys of liger_kernel_config, which are on unless it says otherwise."""
REMOVED = {
    "per_gpu_train_batch_size": " for per_device_train_batch_size",
    "evaluation_strategy": " for eval_strategy",
    "overwrite_output_dir": "",
    "fsdp_min_num_params": " for fsdp_config.min_num_params",
    "fsdp_transformer_layer_cls_to_wrap": " for fsdp_config.transformer_layer_cls_to_wrap",
}
"""Arguments that were, and what stands for them."""
MODEL = ("model_name_or_path",)
SEQUENCE = ("max_length", "max_seq_length", "cutoff_len", "block_size")
"""How scripts around the Trainer call the model and its length: TRL, LLaMA-Factory."""
ADAPTERS = {"finetuning_type": ("full",), "use_peft": ("false", "null"), "quantization_bit": ("null",)}
"""Arguments of such scripts that train a part of the model, but for these values."""
BATCH = 8
"""per_device_train_batch_size where nothing is said."""
OPTIMIZERS = {"adamw_torch": "foreach", "adamw_torch_fused": "fused"}
"""The kernels of torch.optim.AdamW by `optim`."""
WORDS = ("full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2", "offload", "auto_wrap")
"""What `fsdp` can say."""
ONLY_VERSION_1 = ("no_shard", "hybrid_shard", "hybrid_shard_zero2")
FSDP = frozenset(
    (
        *("version", "cpu_offload", "auto_wrap_policy", "min_num_params", "transformer_layer_cls_to_wrap"),
        *("cpu_ram_efficient_loading", "state_dict_type", "activation_checkpointing", "reshard_after_forward"),
        *("xla", "xla_fsdp_settings", "xla_fsdp_v2", "xla_fsdp_grad_ckpt", "forward_prefetch", "backward_prefetch"),
        *("use_orig_params", "sync_module_states", "limit_all_gathers"),
    )
)
"""The keys of fsdp_config, after an `fsdp_` in front is taken off; others are ignored without a word."""
MEANT = {"offload_params": "cpu_offload", "sharding_strategy": "the word of `fsdp`"}
"""accelerate's keys that the Trainer ignores, and what it has instead."""
POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")
KNOWN = frozenset(
    """
    output_dir per_device_train_batch_size num_train_epochs max_steps learning_rate lr_scheduler_type
    lr_scheduler_kwargs warmup_steps optim optim_args weight_decay adam_beta1 adam_beta2 adam_epsilon
    optim_target_modules gradient_accumulation_steps average_tokens_across_devices max_grad_norm
    label_smoothing_factor bf16 fp16 bf16_full_eval fp16_full_eval tf32 activation_checkpointing
    activation_checkpointing_kwargs gradient_checkpointing gradient_checkpointing_kwargs torch_compile
    torch_compile_backend torch_compile_mode use_liger_kernel liger_kernel_config use_cache neftune_noise_alpha
    torch_empty_cache_steps auto_find_batch_size logging_strategy logging_steps logging_first_step
    log_on_each_node logging_nan_inf_filter include_num_input_tokens_seen log_level log_level_replica
    disable_tqdm report_to run_name project trackio_space_id trackio_bucket_id trackio_static_space_id
    eval_strategy eval_steps eval_delay per_device_eval_batch_size prediction_loss_only eval_on_start
    eval_do_concat_batches eval_use_gather_object eval_accumulation_steps include_for_metrics batch_eval_metrics
    save_only_model save_strategy save_steps save_on_each_node save_total_limit enable_jit_checkpoint
    push_to_hub hub_token hub_private_repo hub_model_id hub_strategy hub_always_push hub_revision
    load_best_model_at_end metric_for_best_model greater_is_better ignore_data_skip
    restore_callback_states_from_checkpoint full_determinism seed data_seed use_cpu accelerator_config
    parallelism_config dataloader_drop_last dataloader_num_workers dataloader_pin_memory
    dataloader_persistent_workers dataloader_prefetch_factor dataloader_multiprocessing_context
    dataloader_in_order remove_unused_columns label_names train_sampling_strategy length_column_name
    ddp_find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers ddp_static_graph ddp_backend ddp_timeout
    fsdp fsdp_config deepspeed debug skip_memory_metrics do_train do_eval do_predict resume_from_checkpoint
    local_rank
    """.split()  # noqa: SIM905
)
"""The arguments themselves."""
