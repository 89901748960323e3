"""Config files counted exactly: every published model against what transformers builds."""

from itertools import pairwise
from typing import Any

import pytest

from tests.formats.configs import DEEPSEEK, FALCON, GPT2, GPT_OSS, LLAMA, MIXTRAL, MODELS, REPORTED
from zeroplan.core.dimensions import Dims
from zeroplan.core.model import Model
from zeroplan.formats.architectures import ROWS, row
from zeroplan.formats.config_values import class_defaults
from zeroplan.formats.huggingface import read_config


def runs(model: Model) -> list[list[list[int]]]:
    return sorted([[run.block.params, run.count] for run in stack.runs] for stack in model.stacks)


@pytest.mark.parametrize("name", MODELS)
def test_published_models_are_exact(name: str) -> None:
    expected = MODELS[name]
    model = read_config(expected["config"])
    assert model.params == expected["total"]
    assert model.active_params == (expected["active"] or expected["total"])
    assert runs(model) == sorted(expected["blocks"])
    assert model.root_params == expected["outside"]
    assert model.largest_block == expected["largest_block"]
    assert model.largest_tensor() == expected["largest_tensor"]
    assert model.largest_module().params == expected["largest_module"]


@pytest.mark.parametrize("name", [name for name, expected in MODELS.items() if expected["listed_module"]])
def test_the_largest_module_where_each_expert_is_one(name: str) -> None:
    model = read_config(MODELS[name]["config"])
    assert model.largest_module(packed=False).listed_params == MODELS[name]["listed_module"]


@pytest.mark.parametrize("name", MODELS)
def test_what_is_inside_and_outside_is_all(name: str) -> None:
    model = read_config(MODELS[name]["config"])
    assert model.root_params + sum(run.count * run.block.params for run in model.runs) == model.params


@pytest.mark.parametrize("name", MODELS)
def test_neighbouring_runs_differ_and_equal_blocks_are_one_object(name: str) -> None:
    model = read_config(MODELS[name]["config"])
    for stack in model.stacks:
        assert all(before.block is not after.block for before, after in pairwise(stack.runs))
        assert len({id(run.block) for run in stack.runs}) <= 2


@pytest.mark.parametrize("name", REPORTED)
def test_files_of_public_reports(name: str) -> None:
    expected = REPORTED[name]
    model = read_config(expected["config"])
    assert model.params == expected["total"]
    assert model.active_params == (expected["active"] or expected["total"])
    if expected["note"]:
        assert expected["note"] in " ".join(model.notes)


def test_what_the_class_fills_in_is_said() -> None:
    model = read_config(REPORTED["llava-sparse-text-config"]["config"])
    assert dict(model.assumed)["text_config.hidden_size"] == "4096"
    assert dict(read_config({"model_type": "gpt2"}).assumed)["tie_word_embeddings"] == "true"
    assert dict(read_config(GPT2).assumed) == {
        "tie_word_embeddings": "true",
        "resid_pdrop": "0.1",
        "attn_pdrop": "0.1",
    }
    assert "vocab_size" not in dict(read_config(LLAMA).assumed)


def test_notes() -> None:
    assert any("1 multi-token-prediction block," in note for note in read_config(DEEPSEEK).notes)
    v3 = {
        **MODELS["deepseek-v3"]["config"],
        "num_nextn_predict_layers": 1,
        "quantization_config": {"quant_method": "fp8"},
    }
    notes = " ".join(read_config(v3).notes)
    assert "about 13,463,426,048 parameters" in notes
    assert "unquantised" in notes
    assert "1,920,000 of them are frozen" in " ".join(read_config(MODELS["whisper-large-v3"]["config"]).notes)
    assert not read_config(MODELS["t5-11b"]["config"]).notes


def test_t5_follows_the_tie_of_its_file() -> None:
    config = MODELS["flan-t5-xxl"]["config"]
    assert read_config(config).params == 11_135_332_352
    assert read_config({**config, "tie_word_embeddings": True}).params == 11_003_736_064


def test_attention_of_a_block() -> None:
    grouped = read_config(LLAMA).runs[0].block.attention
    assert grouped is not None
    assert (grouped.heads, grouped.kv_heads, grouped.head_dim, grouped.value_dim, grouped.kv_rank) == (4, 2, 8, 8, 0)
    latent = read_config(DEEPSEEK).runs[0].block.attention
    assert latent is not None
    assert (latent.heads, latent.kv_heads, latent.head_dim, latent.value_dim) == (4, 4, 8, 10)
    assert (latent.query_rank, latent.kv_rank, latent.rope_dim) == (12, 8, 2)
    one = read_config(FALCON).runs[0].block.attention
    assert one is not None
    assert one.kv_heads == 1
    for name, norm in {"qwen3-8b": "head", "olmo2-7b": "full", "llama-7b": "", "command-r": ""}.items():
        found = read_config(MODELS[name]["config"]).runs[0].block.attention
        assert found is not None
        assert found.qk_norm == norm


def test_feed_forward_of_a_block() -> None:
    dense, sparse = (run.block.feed for run in read_config(DEEPSEEK).runs)
    assert dense is not None
    assert sparse is not None
    assert (dense.width, dense.gated, dense.experts) == (48, True, 0)
    assert (sparse.width, sparse.experts, sparse.experts_per_token, sparse.shared_width) == (8, 4, 2, 8)
    plain = read_config(GPT2).runs[0].block.feed
    assert plain is not None
    assert (plain.width, plain.gated, plain.fused) == (128, False, False)
    fused = read_config(MODELS["phi-4"]["config"]).runs[0].block.feed
    assert fused is not None
    assert fused.fused


PARALLEL = {"gptj": True, "phi": True, "cohere": True, "gpt_neox": True, "falcon": True, "llama": False, "gpt2": False}


@pytest.mark.parametrize(("kind", "parallel"), PARALLEL.items())
def test_parallel_blocks(kind: str, parallel: bool) -> None:
    assert read_config({"model_type": kind}).runs[0].block.parallel is parallel


def test_flags_of_parallel_blocks() -> None:
    assert not read_config({"model_type": "gpt_neox", "use_parallel_residual": False}).runs[0].block.parallel
    assert not read_config({**FALCON, "parallel_attn": False}).runs[0].block.parallel
    stablelm = read_config({"model_type": "stablelm", "use_parallel_residual": True}).runs[0].block
    assert (stablelm.parallel, stablelm.norms) == (True, 1)
    assert read_config({"model_type": "gemma2"}).runs[0].block.norms == 4


DROPOUTS: list[tuple[dict[str, Any], tuple[bool, bool]]] = [
    ({"model_type": "gpt2"}, (True, True)),
    ({"model_type": "gpt2", "resid_pdrop": 0.0, "attn_pdrop": 0}, (False, False)),
    ({"model_type": "gptj"}, (False, False)),
    ({"model_type": "opt"}, (True, False)),
    ({"model_type": "bloom", "hidden_dropout": 0.1}, (True, False)),
    ({"model_type": "seed_oss"}, (True, True)),
    ({"model_type": "mpt", "attn_config": {"attn_pdrop": 0.1}}, (False, True)),
    ({"model_type": "llama", "attention_dropout": 0.1}, (False, True)),
    ({"model_type": "llama"}, (False, False)),
]


@pytest.mark.parametrize(("config", "expected"), DROPOUTS, ids=str)
def test_dropouts(config: dict[str, Any], expected: tuple[bool, bool]) -> None:
    found = read_config(config).architecture
    assert found is not None
    assert (found.residual_dropout, found.attention_dropout) == expected


def test_architecture_of_decoders_only() -> None:
    found = read_config(GPT2).architecture
    assert found is not None
    assert (found.hidden, found.vocab, found.norm, found.positions) == (32, 100, "layer", 16)
    assert read_config(LLAMA).architecture.norm == "rms"  # type: ignore[union-attr]
    for name in ("bert-large", "t5-11b", "whisper-large-v3", "vit-large-16-224", "llava-1.5-7b", "qwen3-next-80b-a3b"):
        assert read_config(MODELS[name]["config"]).architecture is None
    assert read_config({**LLAMA, "architectures": ["LlamaModel"]}).architecture is None


def test_a_bare_model_has_no_head() -> None:
    with_head = read_config({**LLAMA, "architectures": ["LlamaForCausalLM"]})
    assert with_head.params - read_config({**LLAMA, "architectures": ["LlamaModel"]}).params == 100 * 32


def test_null_is_not_absent() -> None:
    config = MODELS["deepseek-v2-lite"]["config"]
    assert config["q_lora_rank"] is None
    without = {key: value for key, value in config.items() if key != "q_lora_rank"}
    assert read_config(without).params != read_config(config).params


def test_experts_that_were_a_list_before_transformers_5() -> None:
    mixtral, oss = read_config(MIXTRAL), read_config(GPT_OSS)
    assert mixtral.largest_module().name == "moe.experts"
    assert mixtral.largest_module(packed=False).listed_params == 100 * 32
    assert oss.largest_module(packed=False).listed_params == oss.largest_module().params


def test_long_models_stay_short_lists() -> None:
    model = read_config({**LLAMA, "num_hidden_layers": 10_000})
    assert [run.count for run in model.runs] == [10_000]


def test_every_row_names_dimensions_and_reads_known_keys() -> None:
    for kind in ROWS:
        assert all(hasattr(Dims, name) for name in row(kind) if name != "like"), kind
        assert kind in class_defaults()
