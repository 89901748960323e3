"""The architectures: for every model_type where its dimensions are in config.json, and how it differs from another.

A row's names are those of Dims. A text names config keys, the first that is set wins; after `=` comes a formula over
the dimensions before it, for when none is. Other values are facts of the class. Sources: the modelling and
configuration files of transformers 5.24, one folder a model_type.
"""

from typing import Any

Row = dict[str, Any]

FACTS = ("like", "skeleton", "norm", "qk_norm", "sparse", "softmax", "router")
"""Names whose text is a fact and not a key."""
NULLABLE = ("query_rank", "dense_layers", "sparse_layers", "layer_types")
"""What null leaves out."""
ZERO_ALLOWED = ("first_dense", "shared_experts", "shared_width")
WRAPPERS = ("llava", "gemma3", "llama4")
"""A language model with a vision tower and a projector between them."""


def _row(like: str | Row, **own: Any) -> Row:
    """A row of its own values, and for the rest those of another: a model_type or a group of values."""
    return {"like": like, **own} if isinstance(like, str) else {**like, **own}


# fmt: off
_DECODER: Row = _row(
    {}, skeleton="decoder", vocab="vocab_size", hidden="hidden_size", layers="num_hidden_layers",
    heads="num_attention_heads", kv_heads="num_key_value_heads|=heads", head_dim="head_dim|=hidden/heads",
    width="intermediate_size", tied="tie_word_embeddings", attention_dropout="attention_dropout|=0",
)
_EQUAL_HEADS: Row = _row(_DECODER, kv_heads="=heads", head_dim="=hidden/heads")
_LAYER_NORM: Row = _row({}, norm="layer", norm_bias=True, residuals=2)
_PLAIN: Row = _row(_LAYER_NORM, gated=False, activation="hidden_act|activation_function=gelu")
_BIASES: Row = _row({}, qkv_bias=True, output_bias=True, mlp_bias=True)

ROWS: dict[str, Row] = {
    # RMSNorm, rotary positions, gated MLP
    "llama": _row(_DECODER, qkv_bias="attention_bias", output_bias="attention_bias", mlp_bias="mlp_bias"),
    "granite": _row("llama"),
    "smollm3": _row("llama"),
    "arcee": _row("llama", gated=False, activation="hidden_act=relu2"),
    "seed_oss": _row("llama", output_bias="attention_out_bias",
                     residual_dropout="residual_dropout|=0.1", attention_dropout="attention_dropout|=0.1"),
    "mistral": _row("llama", qkv_bias=False, output_bias=False, mlp_bias=False),
    "ministral3": _row("mistral"),
    "qwen2": _row("mistral", qkv_bias=True),
    "qwen3": _row("llama", mlp_bias=False, qk_norm="head"),
    "gemma": _row("llama", mlp_bias=False, norm="rms-fp32"),
    "gemma2": _row("gemma", norms=4, post_norms=2, softcap=True, head_softcap=True),
    "gemma3_text": _row("gemma2", qk_norm="head", softcap=False, head_softcap=False),
    "olmo2": _row("llama", mlp_bias=False, qk_norm="full", norm="rms-fp32", post_norms=2, residuals=2),
    "olmo3": _row("olmo2"),
    "phi3": _row("mistral", fused=True, copies_output=True, keeps_projection=True, residual_dropout="resid_pdrop|=0"),
    # LayerNorm
    "cohere": _row("llama", mlp_bias=False, norm="layer-eager", norms=1, parallel=True,
                   qk_norm="full", qk_normed="use_qk_norm"),
    "cohere2": _row("cohere", qk_normed=False),
    "phi": _row(_DECODER | _PLAIN | _BIASES, norms=1, parallel=True, head_bias=True,
                qk_norm="head", qk_normed="qk_layernorm", residual_dropout="resid_pdrop|=0",
                activation="hidden_act=gelu_new", copies_output=True),
    "stablelm": _row(_DECODER | _LAYER_NORM, qkv_bias="use_qkv_bias", copies_output=True,
                     residual_dropout="hidden_dropout|=0", residual_masks=1),
    "starcoder2": _row(_DECODER | _PLAIN, qkv_bias="use_bias", output_bias="use_bias", mlp_bias="use_bias",
                       residual_dropout="residual_dropout|=0"),
    "gpt2": _row(_EQUAL_HEADS | _PLAIN | _BIASES, hidden="n_embd|hidden_size", layers="n_layer|num_hidden_layers",
                 heads="n_head|num_attention_heads", width="n_inner|=4*hidden", positions="n_positions", fused=True,
                 activation="activation_function=gelu_new", softmax="16-bit",
                 residual_dropout="resid_pdrop|=0.1", attention_dropout="attn_pdrop|=0.1"),
    "gptj": _row("gpt2", positions=0, fused=False, qkv_bias=False, output_bias=False, norms=1, parallel=True,
                 softmax="fp32", fp32_query=True,
                 head_bias=True, residual_dropout="resid_pdrop|=0", attention_dropout="attn_pdrop|=0"),
    "gpt_neox": _row(_EQUAL_HEADS | _PLAIN, fused=True, qkv_bias="attention_bias", output_bias="attention_bias",
                     mlp_bias=True, parallel="use_parallel_residual|=1", residual_dropout="hidden_dropout|=0",
                     copies_output=True, keeps_projection=True),
    "opt": _row(_EQUAL_HEADS | _PLAIN, width="ffn_dim", positions="max_position_embeddings", extra_positions=2,
                embed_width="word_embed_proj_dim|=hidden", final_norm="do_layer_norm_before", qkv_bias="enable_bias",
                output_bias="enable_bias", mlp_bias="enable_bias", residual_dropout="dropout|=0.1",
                activation="activation_function=relu"),
    "bloom": _row("gpt2", hidden="n_embed|hidden_size", positions=0, width="=4*hidden", embed_norm=True,
                  activation="=gelu", softmax="fp32",
                  residual_dropout="hidden_dropout|=0", attention_dropout="attention_dropout|=0"),
    "falcon": _row(_EQUAL_HEADS | _PLAIN, kv_heads="num_kv_heads|=heads", width="ffn_hidden_size|=4*hidden",
                   fused=True, qkv_bias="bias", output_bias="bias", mlp_bias="bias",
                   activation="activation=gelu", softmax="16-bit", residual_dropout="hidden_dropout|=0",
                   residual_masks=1, attention_dropout=False),
    "mpt": _row(_EQUAL_HEADS, hidden="d_model", layers="n_layers", heads="n_heads", width="=4*hidden", gated=False,
                fused=True, norm="layer", residuals=2, activation="=gelu",
                residual_dropout="resid_pdrop|=0", attention_dropout=False),
    # experts
    "mixtral": _row("mistral", experts="num_local_experts", experts_per_token="num_experts_per_tok",
                    expert_width="intermediate_size", router="softmax", renormalised=True),
    "minimax_m2": _row("mixtral", qk_norm="full", modelled=False),
    "gpt_oss": _row("mixtral", qkv_bias="attention_bias", output_bias="attention_bias", router_bias=True,
                    expert_bias=True, sinks=True, packed=True, norm="rms-fp32", router="top-k", renormalised=False,
                    route_bytes=2),
    "olmoe": _row("olmo2", experts="num_experts", experts_per_token="num_experts_per_tok",
                  expert_width="intermediate_size", modelled=False),
    "qwen3_moe": _row("qwen3", experts="num_experts|num_local_experts", experts_per_token="num_experts_per_tok",
                      expert_width="moe_intermediate_size", sparse="every", sparse_step="decoder_sparse_step",
                      dense_layers="mlp_only_layers", router="softmax", renormalised="norm_topk_prob|=0",
                      route_bytes=2),
    "qwen2_moe": _row("qwen3_moe", qk_norm="", qkv_bias="qkv_bias", output_bias=False,
                      shared_width="shared_expert_intermediate_size", shared_gate=True),
    "qwen3_next": _row("qwen3_moe", query_gate=True, shared_width="shared_expert_intermediate_size",
                       shared_gate=True, linear_attention=True, modelled=False, full_every="full_attention_interval|=4",
                       layer_types="layer_types", linear_key_heads="linear_num_key_heads",
                       linear_value_heads="linear_num_value_heads", linear_key_dim="linear_key_head_dim",
                       linear_value_dim="linear_value_head_dim", linear_conv="linear_conv_kernel_dim"),
    "glm4_moe": _row("llama", output_bias=False, mlp_bias=False, qk_norm="head", qk_normed="use_qk_norm",
                     experts="n_routed_experts", experts_per_token="num_experts_per_tok",
                     expert_width="moe_intermediate_size", shared_experts="n_shared_experts",
                     shared_width="=shared_experts*expert_width", sparse="after_first",
                     first_dense="first_k_dense_replace", copies_output=True, router="sigmoid",
                     renormalised=True),
    "deepseek_v3": _row("glm4_moe", kv_heads="=heads", head_dim=0, qk_norm="", qk_normed=False,
                        output_bias="attention_bias", query_rank="q_lora_rank", kv_rank="kv_lora_rank",
                        nope_dim="qk_nope_head_dim", rope_dim="qk_rope_head_dim", value_dim="v_head_dim",
                        copies_output=False),
    "deepseek_v2": _row("deepseek_v3", router="softmax-fp32", renormalised=False),
    "kimi_k2": _row("deepseek_v3"),
    "llama4_text": _row("llama", mlp_bias=False, width="intermediate_size_mlp", experts="num_local_experts",
                        experts_per_token="num_experts_per_tok", expert_width="intermediate_size",
                        shared_width="=expert_width", packed=True, sparse="listed",
                        sparse_step="interleave_moe_layer_step", sparse_layers="moe_layers", modelled=False),
    # encoder-decoders, encoders, vision towers
    "t5": _row(_EQUAL_HEADS, skeleton="encoder_decoder", hidden="d_model", layers="num_layers", heads="num_heads",
               head_dim="d_kv", width="d_ff", decoder_layers="num_decoder_layers|=layers", decoder_width="=width",
               relative_buckets="relative_attention_num_buckets",
               attention_dropout=False),
    "whisper": _row(_EQUAL_HEADS | _PLAIN | _BIASES, skeleton="encoder_decoder", hidden="d_model",
                    layers="encoder_layers", heads="encoder_attention_heads", width="encoder_ffn_dim",
                    decoder_layers="decoder_layers", decoder_width="decoder_ffn_dim", mel_bins="num_mel_bins",
                    positions="max_source_positions", decoder_positions="max_target_positions", key_bias=False),
    "bert": _row(_EQUAL_HEADS | _PLAIN | _BIASES, skeleton="bert", tied=True, positions="max_position_embeddings",
                 token_types="type_vocab_size", attention_dropout=False),
    "vit": _row(_EQUAL_HEADS | _PLAIN | _BIASES, skeleton="tower", vocab=0, tied=True, qkv_bias="qkv_bias",
                image="image_size", patch="patch_size", channels="num_channels", patch_bias=True, class_token=True,
                class_with_positions=True, tower_norms=1, attention_dropout=False),
    "clip_vision_model": _row("vit", patch_bias=False, class_with_positions=False, tower_norms=2, qkv_bias=True),
    "siglip_vision_model": _row("vit", class_token=False, qkv_bias=True),
    "llama4_vision_model": _row("clip_vision_model", class_with_positions=True,
                                adapter_in="projector_input_dim", adapter_out="projector_output_dim"),
}
# fmt: on


def known_types() -> list[str]:
    """Every model_type that can be counted, sorted."""
    return sorted((*ROWS, *WRAPPERS))


def row(model_type: str) -> Row:
    """The whole row of a model_type, with what it takes from the row it is like."""
    own = ROWS[model_type]
    return {**row(own["like"]), **own} if "like" in own else own
