"""What is not counted exactly is refused, in one line that says what to give instead."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.configs import DEEPSEEK, FALCON, GPT2, LLAMA, MIXTRAL, MODELS
from zeroplan.errors import InputError
from zeroplan.formats.architectures import ROWS
from zeroplan.formats.huggingface import read_config

LLAVA: dict[str, Any] = MODELS["llava-1.5-7b"]["config"]
REFUSED: dict[str, tuple[object, str]] = {
    "no table": ([LLAMA], "is a list, expected a table"),
    "nothing": ({}, "model_type is missing"),
    "unknown type": ({"model_type": "mamba2"}, "model_type 'mamba2' is not one this version can count"),
    "type of another type": ({"model_type": ["llama"]}, "model_type a list is not one"),
    "null": ({**LLAMA, "hidden_size": None}, "hidden_size: is null"),
    "list": ({**LLAMA, "intermediate_size": [48, 64]}, "intermediate_size: is a list, expected one whole number"),
    "float": ({**LLAMA, "hidden_size": 32.0}, "hidden_size: is '32.0', expected one whole number"),
    "bool": ({**LLAMA, "hidden_size": True}, "hidden_size: is 'True', expected one whole number"),
    "text": ({**LLAMA, "hidden_size": "32"}, "hidden_size: is '32', expected one whole number"),
    "negative": ({**LLAMA, "vocab_size": -1}, "vocab_size: is '-1', outside 1 to"),
    "zero": ({**LLAMA, "num_attention_heads": 0}, "num_attention_heads: is '0', outside 1 to"),
    "huge": ({**LLAMA, "hidden_size": 10**40}, "hidden_size: is '1000"),
    "NaN": ({**LLAMA, "hidden_size": float("nan")}, "hidden_size: is 'nan'"),
    "many layers": ({**LLAMA, "num_hidden_layers": 10_001}, "num_hidden_layers: is '10001', outside 1 to 10000"),
    "more than any model": ({**LLAMA, "hidden_size": 10**9, "intermediate_size": 10**9}, "outside 1 to 1e"),
    "flag": ({**LLAMA, "tie_word_embeddings": "yes"}, "tie_word_embeddings: is 'yes', expected true or false"),
    "null flag": ({**LLAMA, "attention_bias": None}, "attention_bias: is null"),
    "heads do not divide": ({**LLAMA, "num_attention_heads": 5}, "is 32, which 5 heads do not divide"),
    "groups do not divide": ({**LLAMA, "num_key_value_heads": 3}, "is 3, which does not divide 4 heads"),
    "dropout": ({**LLAMA, "attention_dropout": "no"}, "expected a number from 0 to 1"),
    "too many experts a token": ({**MIXTRAL, "num_experts_per_tok": 5}, "is 5, more than the 4 experts"),
    "no experts": ({**MIXTRAL, "num_local_experts": 0}, "num_local_experts: is '0'"),
    "expert key missing": ({"model_type": "deepseek_v2"}, "num_experts_per_tok: is null"),
    "misspelt": (
        {**{k: v for k, v in LLAMA.items() if k != "intermediate_size"}, "intermediate_sise": 64},
        "'intermediate_sise' is no key of llama. Did you mean intermediate_size?",
    ),
    "other head": ({**LLAMA, "architectures": ["LlamaForSequenceClassification"]}, "whose head is not counted"),
    "draft": ({**LLAMA, "architectures": ["LlamaForCausalLMEagle3"]}, "whose head is not counted"),
    "encoder only": ({"model_type": "t5", "architectures": ["T5EncoderModel"]}, "whose head is not counted"),
    "heads of another type": ({**LLAMA, "architectures": "LlamaForCausalLM"}, "expected a list of class names"),
    "bert head": ({"model_type": "bert", "architectures": ["BertForPreTraining"]}, "whose head is not counted"),
    "cross-attention": ({**GPT2, "add_cross_attention": True}, "cross-attention"),
    "MPT biases": ({"model_type": "mpt", "no_bias": False}, "biases of MPT"),
    "SigLIP head": ({"model_type": "siglip_vision_model"}, "pooling head"),
    "StableLM norms": ({"model_type": "stablelm", "qk_layernorm": True}, "qk_layernorm"),
    "Falcon norms": ({**FALCON, "num_ln_in_parallel_attn": 3}, "expected 1 or 2"),
    "experts in some layers": ({**DEEPSEEK, "moe_layer_freq": 2}, "moe_layer_freq: is '2'"),
    "layer types": ({"model_type": "qwen3_next", "layer_types": ["full_attention"]}, "1 entries for 48 layers"),
    "layers listed as text": (
        {"model_type": "qwen3_moe", "mlp_only_layers": ["0"]},
        "expected a list of layer numbers",
    ),
    "no text_config": ({"model_type": "llava"}, "text_config is missing"),
    "no inner type": ({**LLAVA, "text_config": {"vocab_size": 10}}, "text_config.model_type is missing"),
    "text as a tower": ({**LLAVA, "vision_config": LLAMA}, "not a part of this wrapper"),
    "wrapper in a wrapper": ({**LLAVA, "text_config": LLAVA}, "is not one this version can count"),
    "inner key": ({**LLAVA, "text_config": {**LLAMA, "hidden_size": None}}, "text_config.hidden_size: is null"),
    "projector": ({**LLAVA, "vision_feature_layer": [-1, -2]}, "several layers"),
    "predicted layers": ({**DEEPSEEK, "num_nextn_predict_layers": "1"}, "expected a count of layers"),
    "image": ({"model_type": "vit", "image_size": 8}, "more than the image's 8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    config, words = REFUSED[name]
    with pytest.raises(InputError) as caught:
        read_config(config)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_every_refusal_offers_the_ways_out() -> None:
    for name, (config, _) in REFUSED.items():
        with pytest.raises(InputError) as caught:
            read_config(config)
        if name != "more than any model":
            assert "safetensors headers" in caught.value.hint, name
            assert "--params" in caught.value.hint, name


@pytest.mark.parametrize("kind", ["lama", "qwen4", "x" * 10_000, "\x1b[31m", "[red]"])
def test_an_unknown_type_is_said_in_one_line(kind: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config({"model_type": kind})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_unknown_keys_are_no_reason_to_refuse() -> None:
    assert read_config({**LLAMA, "some_new_key": {"a": [1]}}).params == read_config(LLAMA).params


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 64),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-2, 9), max_size=4),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)


def counted_or_refused(config: object) -> None:
    try:
        model = read_config(config)
    except InputError as error:
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert model.params == model.root_params + sum(run.count * run.block.params for run in model.runs)
        assert model.active_params <= model.params


@given(st.sampled_from(sorted(MODELS)), st.data())
@settings(max_examples=400, deadline=None)
def test_any_change_of_a_real_file_is_counted_or_refused(name: str, data: st.DataObject) -> None:
    config = json.loads(json.dumps(MODELS[name]["config"]))
    tables = [config, *(value for value in config.values() if isinstance(value, dict))]
    for _ in range(data.draw(st.integers(1, 4))):
        table = data.draw(st.sampled_from(tables))
        key = data.draw(st.sampled_from([*sorted(table), "architectures", "num_nextn_predict_layers"]))
        if data.draw(st.booleans()):
            table.pop(key, None)
        else:
            table[key] = data.draw(JUNK)
    counted_or_refused(config)


@given(st.sampled_from(sorted(ROWS)), st.dictionaries(st.sampled_from(sorted(LLAMA)), JUNK, max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_values_are_counted_or_refused(kind: str, values: dict[str, Any]) -> None:
    counted_or_refused({**values, "model_type": kind})
