"""The arguments of the Hugging Face Trainer that decide memory, as of transformers 5.24 with accelerate 1.15."""

MARKS = (
    *("per_device_train_batch_size", "gradient_checkpointing", "activation_checkpointing", "save_strategy"),
    *("lr_scheduler_type", "output_dir", "num_train_epochs", "fsdp", "deepspeed"),
)
"""Keys by which the format is recognised."""
MEMORY = (
    *("per_device_train_batch_size", "gradient_accumulation_steps", "bf16", "fp16", "fsdp", "fsdp_config", "deepspeed"),
    *("gradient_checkpointing", "activation_checkpointing", "optim", "torch_compile", "use_liger_kernel"),
)
"""Keys that are read here."""
MODEL = ("model_name_or_path",)
SEQUENCE = ("max_length", "max_seq_length", "cutoff_len")
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
