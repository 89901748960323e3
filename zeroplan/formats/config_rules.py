"""The few facts of an architecture that are not one key, and what its row does not cover."""

from collections.abc import Callable, Mapping
from typing import Any

from zeroplan.formats.config_values import MOST_LAYERS, ConfigValues, shown

Found = dict[str, Any]

LM_HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
DRAFTS = ("eagle", "medusa", "mtp")
"""Draft models and extra heads under the model_type of the model they help."""


def apply_rules(values: ConfigValues, found: Found) -> None:
    """Complete the dimensions that a row gives; raises InputError for what it does not cover."""
    found["head"] = _head(values)
    if values.config.get("add_cross_attention"):
        raise values.fault("add_cross_attention", "is set, and cross-attention of a decoder is not counted")
    rule = _RULES.get(values.model_type)
    if rule is not None:
        rule(values, found)
    if not found.get("qk_normed", True):
        found["qk_norm"] = ""
    _check(values, found)


def class_name(values: ConfigValues) -> str:
    """The first entry of `architectures`, or "" where the file names none."""
    named = values.config.get("architectures")
    if not named:
        return ""
    if not isinstance(named, (list, tuple)) or not isinstance(named[0], str):
        raise values.fault("architectures", f"is {shown(named)}, expected a list of class names")
    return named[0]


def _head(values: ConfigValues) -> str:
    name = class_name(values)
    if any(draft in name.lower() for draft in DRAFTS):
        raise _unknown_head(values, name)
    if values.model_type == "bert":
        return name.removeprefix("Bert").removeprefix("For") or "Model"
    if values.model_type == "vit" and name == "ViTForImageClassification":
        return "none"
    if not name or name.endswith(LM_HEADS):
        return "lm"
    if _plain(name.removesuffix("Model")) != _plain(values.model_type.removesuffix("_model")):
        raise _unknown_head(values, name)
    return "none"


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _unknown_head(values: ConfigValues, name: str) -> Exception:
    return values.fault("architectures", f"names {shown(name)}, whose head is not counted")


def _check(values: ConfigValues, found: Found) -> None:
    """Raise where dimensions do not go together."""
    heads, kv_heads = found["heads"], found["kv_heads"]
    if heads % kv_heads:
        raise values.fault("num_key_value_heads", f"is {kv_heads}, which does not divide {heads} heads")
    if found.get("experts_per_token", 0) > found.get("experts", 0):
        many, all_of = found["experts_per_token"], found["experts"]
        raise values.fault("num_experts_per_tok", f"is {many}, more than the {all_of} experts")
    if found.get("patch", 0) > found.get("image", 0):
        raise values.fault("patch_size", f"is {found['patch']}, more than the image's {found['image']}")
    if found.get("sparse") == "after_first" and found["first_dense"] > MOST_LAYERS:
        raise values.fault("first_k_dense_replace", f"is {found['first_dense']}, more than any model's layers")


def _falcon(values: ConfigValues, found: Found) -> None:
    new = values.flag("new_decoder_architecture")
    if not new:
        found["kv_heads"] = 1 if values.flag("multi_query") else found["heads"]
    found["parallel"] = values.flag("parallel_attn")
    if found["parallel"]:
        found["norms"] = _falcon_norms(values) or 1 + new


def _falcon_norms(values: ConfigValues) -> int:
    key = "num_ln_in_parallel_attn"
    count = values.config.get(key)
    if count is not None and (type(count) is not int or count not in (1, 2)):
        raise values.fault(key, f"is {shown(count)}, expected 1 or 2")
    return count or 0


def _stablelm(values: ConfigValues, found: Found) -> None:
    found["parallel"] = values.flag("use_parallel_residual")
    if found["parallel"]:
        found["norms"] = 1
    if values.flag("qk_layernorm"):
        raise values.fault("qk_layernorm", "is set, and its norms are not counted")


def _mpt(values: ConfigValues, found: Found) -> None:
    if not values.flag("no_bias"):
        raise values.fault("no_bias", "is false, and the biases of MPT are not counted")
    attn = values.config.get("attn_config")
    attn = attn if isinstance(attn, Mapping) else {}
    if attn.get("attn_type", "multihead_attention") != "multihead_attention":
        raise values.fault("attn_config.attn_type", f"is {shown(attn['attn_type'])}, expected multihead_attention")
    inner = ConfigValues(attn, "", values.where, f"{values.prefix}attn_config.")
    found["attention_dropout"] = inner.dropout("attn_pdrop")


def _opt(values: ConfigValues, found: Found) -> None:
    if not values.flag("layer_norm_elementwise_affine", True):
        raise values.fault("layer_norm_elementwise_affine", "is false, and norms without weights are not counted")
    if values.flag("_remove_final_layer_norm"):
        found["final_norm"] = False


def _t5(values: ConfigValues, found: Found) -> None:
    found["gated"] = values.text("feed_forward_proj").startswith("gated")


def _bert(values: ConfigValues, found: Found) -> None:
    if found["head"] not in ("MaskedLM", "Model"):
        raise _unknown_head(values, class_name(values))
    if values.text("position_embedding_type", "absolute") != "absolute":
        raise values.fault("position_embedding_type", "is not absolute, and relative positions are not counted")


def _vit(values: ConfigValues, found: Found) -> None:
    name = class_name(values)
    found["pooler"] = name in ("ViTModel", "")
    if name == "ViTForImageClassification":
        labels = values.config.get("id2label")
        named = len(labels) if isinstance(labels, Mapping) else 0
        found["labels"] = values.number("num_labels") if "num_labels" in values.config else named or 2


def _siglip(values: ConfigValues, _found: Found) -> None:
    if values.flag("vision_use_head", True):
        raise values.fault("vision_use_head", "is set, and the pooling head of SigLIP is not counted")


def _qwen3_next(values: ConfigValues, found: Found) -> None:
    types = found["layer_types"]
    if types is None:
        return
    if len(types) != found["layers"]:
        raise values.fault("layer_types", f"has {len(types)} entries for {found['layers']} layers")
    if not set(types) <= {"full_attention", "linear_attention"}:
        raise values.fault("layer_types", "holds other than full_attention and linear_attention")


def _deepseek(values: ConfigValues, _found: Found) -> None:
    step = values.config.get("moe_layer_freq", 1)
    if step != 1 or type(step) is not int:
        raise values.fault("moe_layer_freq", f"is {shown(step)}, and transformers puts experts in every layer")


_RULES: dict[str, Callable[[ConfigValues, Found], None]] = {
    "falcon": _falcon,
    "stablelm": _stablelm,
    "mpt": _mpt,
    "opt": _opt,
    "t5": _t5,
    "bert": _bert,
    "vit": _vit,
    "siglip_vision_model": _siglip,
    "qwen3_next": _qwen3_next,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
}
