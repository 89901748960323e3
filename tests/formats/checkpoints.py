"""Checkpoints without weights: files that hold a safetensors header and nothing else."""

import json
from pathlib import Path
from typing import Any

Shapes = dict[str, tuple[int, ...]]


def header_bytes(shapes: Shapes, dtypes: dict[str, str] | None = None) -> bytes:
    """A file of these tensors, its data left out."""
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for name, shape in shapes.items():
        table[name] = {"dtype": (dtypes or {}).get(name, "BF16"), "shape": list(shape), "data_offsets": [0, 0]}
    raw = json.dumps(table).encode()
    return len(raw).to_bytes(8, "little") + raw


def write_checkpoint(
    folder: Path, config: dict[str, Any] | None, shapes: Shapes, shards: int = 1, dtypes: dict[str, str] | None = None
) -> Path:
    """A folder with config.json and one file, or an index and several."""
    folder.mkdir(exist_ok=True)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if shards == 1:
        (folder / "model.safetensors").write_bytes(header_bytes(shapes, dtypes))
        return folder
    names = list(shapes)
    index: dict[str, str] = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        mine = {name: shapes[name] for name in names[shard::shards]}
        (folder / file).write_bytes(header_bytes(mine, dtypes))
        index.update(dict.fromkeys(mine, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}), "utf-8")
    return folder


def llama_shapes(config: dict[str, Any]) -> Shapes:
    """The tensors of a saved llama."""
    hidden, width, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    key = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes: Shapes = {"model.embed_tokens.weight": (vocab, hidden), "lm_head.weight": (vocab, hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        shapes |= _attention(at, hidden, key) | _norms(at, hidden)
        shapes |= _mlp(f"{at}.mlp", hidden, width)
    return {**shapes, "model.norm.weight": (hidden,)}


def mixtral_shapes(config: dict[str, Any]) -> Shapes:
    """The tensors of a saved Mixtral: its experts one by one."""
    hidden, width = config["hidden_size"], config["intermediate_size"]
    shapes = {name: shape for name, shape in llama_shapes(config).items() if ".mlp." not in name}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}.block_sparse_moe"
        shapes[f"{at}.gate.weight"] = (config["num_local_experts"], hidden)
        for expert in range(config["num_local_experts"]):
            shapes[f"{at}.experts.{expert}.w1.weight"] = (width, hidden)
            shapes[f"{at}.experts.{expert}.w2.weight"] = (hidden, width)
            shapes[f"{at}.experts.{expert}.w3.weight"] = (width, hidden)
    return shapes


def gpt2_shapes(config: dict[str, Any]) -> Shapes:
    """The tensors of a saved GPT-2: matrices the other way round, and a causal mask in every block."""
    hidden, positions = config["n_embd"], config["n_positions"]
    shapes: Shapes = {"wte.weight": (config["vocab_size"], hidden), "wpe.weight": (positions, hidden)}
    for layer in range(config["n_layer"]):
        at = f"h.{layer}"
        shapes[f"{at}.attn.bias"] = (1, 1, positions, positions)
        for name, out in {"attn.c_attn": 3 * hidden, "attn.c_proj": hidden, "mlp.c_fc": 4 * hidden}.items():
            shapes |= {f"{at}.{name}.weight": (hidden, out), f"{at}.{name}.bias": (out,)}
        shapes |= {f"{at}.mlp.c_proj.weight": (4 * hidden, hidden), f"{at}.mlp.c_proj.bias": (hidden,)}
        for name in ("ln_1", "ln_2"):
            shapes |= {f"{at}.{name}.weight": (hidden,), f"{at}.{name}.bias": (hidden,)}
    return {**shapes, "ln_f.weight": (hidden,), "ln_f.bias": (hidden,)}


def deepseek_shapes(config: dict[str, Any]) -> Shapes:
    """The tensors of a saved DeepSeek-V3: latent attention, router corrections, a block of multi-token prediction."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    shapes: Shapes = {"model.embed_tokens.weight": (vocab, hidden), "lm_head.weight": (vocab, hidden)}
    last = config["num_hidden_layers"]
    for layer in range(last + config["num_nextn_predict_layers"]):
        at = f"model.layers.{layer}"
        shapes |= _latent(f"{at}.self_attn", config) | _norms(at, hidden)
        dense = layer < config["first_k_dense_replace"]
        shapes |= _mlp(f"{at}.mlp", hidden, config["intermediate_size"]) if dense else _moe(f"{at}.mlp", config)
    shapes[f"model.layers.{last}.eh_proj.weight"] = (hidden, 2 * hidden)
    shapes[f"model.layers.{last}.embed_tokens.weight"] = (vocab, hidden)
    return {**shapes, "model.norm.weight": (hidden,)}


def gpt_oss_shapes(config: dict[str, Any]) -> Shapes:
    """The tensors of a saved gpt-oss: its experts packed, each matrix with its biases."""
    hidden, width, experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    heads, dim = config["num_attention_heads"], config["head_dim"]
    key = config["num_key_value_heads"] * dim
    shapes: Shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    shapes["lm_head.weight"] = shapes["model.embed_tokens.weight"]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        shapes |= _norms(at, hidden) | {f"{at}.self_attn.sinks": (heads,)}
        for name, out in {"q_proj": heads * dim, "k_proj": key, "v_proj": key}.items():
            shapes |= {f"{at}.self_attn.{name}.weight": (out, hidden), f"{at}.self_attn.{name}.bias": (out,)}
        shapes |= {f"{at}.self_attn.o_proj.weight": (hidden, heads * dim), f"{at}.self_attn.o_proj.bias": (hidden,)}
        shapes |= {f"{at}.mlp.router.weight": (experts, hidden), f"{at}.mlp.router.bias": (experts,)}
        shapes |= {
            f"{at}.mlp.experts.gate_up_proj": (experts, hidden, 2 * width),
            f"{at}.mlp.experts.gate_up_proj_bias": (experts, 2 * width),
            f"{at}.mlp.experts.down_proj": (experts, width, hidden),
            f"{at}.mlp.experts.down_proj_bias": (experts, hidden),
        }
    return shapes


def falcon_shapes(config: dict[str, Any]) -> Shapes:
    """The tensors of a saved Falcon-7B: one norm a block, and the tied head stored again."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    dim = hidden // config["num_attention_heads"]
    shapes: Shapes = {"transformer.word_embeddings.weight": (vocab, hidden), "lm_head.weight": (vocab, hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"transformer.h.{layer}"
        shapes |= {
            f"{at}.self_attention.query_key_value.weight": (hidden + 2 * dim, hidden),
            f"{at}.self_attention.dense.weight": (hidden, hidden),
            f"{at}.mlp.dense_h_to_4h.weight": (4 * hidden, hidden),
            f"{at}.mlp.dense_4h_to_h.weight": (hidden, 4 * hidden),
            f"{at}.input_layernorm.weight": (hidden,),
            f"{at}.input_layernorm.bias": (hidden,),
        }
    return {**shapes, "transformer.ln_f.weight": (hidden,), "transformer.ln_f.bias": (hidden,)}


def _attention(at: str, hidden: int, key: int) -> Shapes:
    return {
        f"{at}.self_attn.q_proj.weight": (hidden, hidden),
        f"{at}.self_attn.k_proj.weight": (key, hidden),
        f"{at}.self_attn.v_proj.weight": (key, hidden),
        f"{at}.self_attn.o_proj.weight": (hidden, hidden),
    }


def _norms(at: str, hidden: int) -> Shapes:
    return {f"{at}.input_layernorm.weight": (hidden,), f"{at}.post_attention_layernorm.weight": (hidden,)}


def _mlp(at: str, hidden: int, width: int) -> Shapes:
    return {
        f"{at}.gate_proj.weight": (width, hidden),
        f"{at}.up_proj.weight": (width, hidden),
        f"{at}.down_proj.weight": (hidden, width),
    }


def _latent(at: str, config: dict[str, Any]) -> Shapes:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    query, key = config["q_lora_rank"], config["kv_lora_rank"]
    nope, rope, value = config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]
    return {
        f"{at}.q_a_proj.weight": (query, hidden),
        f"{at}.q_a_layernorm.weight": (query,),
        f"{at}.q_b_proj.weight": (heads * (nope + rope), query),
        f"{at}.kv_a_proj_with_mqa.weight": (key + rope, hidden),
        f"{at}.kv_a_layernorm.weight": (key,),
        f"{at}.kv_b_proj.weight": (heads * (nope + value), key),
        f"{at}.o_proj.weight": (hidden, heads * value),
    }


def _moe(at: str, config: dict[str, Any]) -> Shapes:
    hidden, width, experts = config["hidden_size"], config["moe_intermediate_size"], config["n_routed_experts"]
    shapes: Shapes = {f"{at}.gate.weight": (experts, hidden), f"{at}.gate.e_score_correction_bias": (experts,)}
    shapes |= _mlp(f"{at}.shared_experts", hidden, width * config["n_shared_experts"])
    for expert in range(experts):
        shapes |= _mlp(f"{at}.experts.{expert}", hidden, width)
    return shapes
