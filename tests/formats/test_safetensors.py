"""Checkpoint folders: shapes from headers, checked against the config beside them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.formats.checkpoints import (
    Shapes,
    deepseek_shapes,
    falcon_shapes,
    gpt2_shapes,
    gpt_oss_shapes,
    header_bytes,
    llama_shapes,
    mixtral_shapes,
    write_checkpoint,
)
from tests.formats.configs import DEEPSEEK, FALCON, GPT2, GPT_OSS, LLAMA, MIXTRAL
from zeroplan.core.model import Model
from zeroplan.errors import InputError
from zeroplan.formats.checkpoints import CHECKED, read_checkpoint
from zeroplan.formats.huggingface import read_config

SAVED: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], Shapes]]] = {
    "llama": (LLAMA, llama_shapes),
    "gpt2": (GPT2, gpt2_shapes),
    "mixtral": (MIXTRAL, mixtral_shapes),
    "deepseek_v3": (DEEPSEEK, deepseek_shapes),
    "gpt_oss": (GPT_OSS, gpt_oss_shapes),
    "falcon": (FALCON, falcon_shapes),
}


def sizes(model: Model) -> list[tuple[int, int]]:
    return [(run.block.params, run.count) for run in model.runs]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", SAVED)
def test_headers_agree_with_the_config(kind: str, shards: int, tmp_path: Path) -> None:
    config, shapes = SAVED[kind]
    model = read_checkpoint(str(write_checkpoint(tmp_path / "model", config, shapes(config), shards)))
    assert model.params == read_config(config).params
    assert CHECKED in model.notes
    assert model.architecture is not None
    assert model.name == "model"


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mixtral", "gpt_oss"])
def test_headers_alone_give_the_same_blocks(kind: str, tmp_path: Path) -> None:
    config, shapes = SAVED[kind]
    stored = read_checkpoint(str(write_checkpoint(tmp_path / "model", None, shapes(config), 2)))
    counted = read_config(config)
    assert stored.params == counted.params
    assert sizes(stored) == sizes(counted)
    assert stored.root_params == counted.root_params
    assert stored.largest_module().params == counted.largest_module().params
    assert stored.largest_module(packed=False).listed_params == counted.largest_module(packed=False).listed_params
    assert stored.architecture is None


def test_experts_saved_one_by_one_become_one_module(tmp_path: Path) -> None:
    stored = read_checkpoint(str(write_checkpoint(tmp_path / "model", None, mixtral_shapes(MIXTRAL))))
    experts = next(module for module in stored.runs[0].block.modules if module.experts > 1)
    assert experts.shapes == ((4, 96, 32), (4, 32, 48))
    assert not experts.packed
    assert experts.name == "block_sparse_moe.experts"


def test_active_experts_come_from_the_config(tmp_path: Path) -> None:
    config = {**MIXTRAL, "model_type": "new_type"}
    stored = read_checkpoint(str(write_checkpoint(tmp_path / "model", config, mixtral_shapes(MIXTRAL))))
    assert stored.active_params == read_config(MIXTRAL).active_params
    assert any("not checked against config.json: model_type 'new_type'" in note for note in stored.notes)
    alone = read_checkpoint(str(write_checkpoint(tmp_path / "alone", None, mixtral_shapes(MIXTRAL))))
    assert alone.active_params == alone.params
    assert any("all count as active" in note for note in alone.notes)


def test_prediction_blocks_are_left_out_with_a_note(tmp_path: Path) -> None:
    model = read_checkpoint(str(write_checkpoint(tmp_path / "model", DEEPSEEK, deepseek_shapes(DEEPSEEK))))
    (note,) = (note for note in model.notes if "multi-token-prediction" in note)
    assert note.startswith("left out: ")
    other = {**llama_shapes(LLAMA), "mtp.fc.weight": (32, 64)}
    assert read_checkpoint(str(write_checkpoint(tmp_path / "other", LLAMA, other))).params == read_config(LLAMA).params


def test_a_tied_head_stored_again_counts_once(tmp_path: Path) -> None:
    model = read_checkpoint(str(write_checkpoint(tmp_path / "model", FALCON, falcon_shapes(FALCON))))
    assert any("'lm_head.weight' is tied to the embedding" in note for note in model.notes)
    untied = read_checkpoint(str(write_checkpoint(tmp_path / "alone", None, falcon_shapes(FALCON))))
    assert untied.params == model.params + 100 * 32


def test_a_head_that_nobody_calls_tied_counts_and_is_noted(tmp_path: Path) -> None:
    alone = read_checkpoint(str(write_checkpoint(tmp_path / "alone", None, llama_shapes(LLAMA))))
    assert any("no config says whether 'lm_head.weight' is tied" in note for note in alone.notes)
    untied = read_checkpoint(str(write_checkpoint(tmp_path / "model", LLAMA, llama_shapes(LLAMA))))
    assert not any("tied" in note for note in untied.notes)


def test_an_embedding_stored_for_both_sides_counts_once(tmp_path: Path) -> None:
    names = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    shapes: Shapes = {**dict.fromkeys(names, (100, 32)), "encoder.block.0.layer.0.SelfAttention.q.weight": (32, 32)}
    config = {"model_type": "t5", "d_model": 32}
    assert read_checkpoint(str(write_checkpoint(tmp_path / "model", config, shapes))).params == 100 * 32 + 32 * 32


def test_where_they_differ_the_headers_win_and_both_counts_are_said(tmp_path: Path) -> None:
    shapes = {**llama_shapes(LLAMA), "model.extra.weight": (7,)}
    model = read_checkpoint(str(write_checkpoint(tmp_path / "model", LLAMA, shapes)))
    counted = read_config(LLAMA).params
    assert model.params == counted + 7
    assert any(f"{counted + 7:,}" in note and f"{counted:,}" in note for note in model.notes)


def test_blocks_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    shapes: Shapes = {f"model.layers.{layer}.mlp.weight": (2 if layer < 10 else 3, 4) for layer in reversed(range(12))}
    model = read_checkpoint(str(write_checkpoint(tmp_path / "model", None, shapes, 5)))
    assert sizes(model) == [(8, 10), (12, 2)]


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "cut short"),
    "cut": (b"\x10\x00", "cut short"),
    "longer than the file": ((1000).to_bytes(8, "little") + b"{}", "cut short"),
    "lying": (b"\xff" * 8 + b"{}", "cut short"),
    "no JSON": ((2).to_bytes(8, "little") + b"{]", "is not JSON"),
    "no UTF-8": ((2).to_bytes(8, "little") + b"\xff\xfe", "is not JSON"),
    "no table": ((2).to_bytes(8, "little") + b"[]", "no header of named tensors"),
    "deep": ((200_000).to_bytes(8, "little") + b"[" * 200_000, "nested too deeply"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(name: str, tmp_path: Path) -> None:
    raw, words = BAD_FILES[name]
    (tmp_path / "model.safetensors").write_bytes(raw)
    with pytest.raises(InputError, match=words):
        read_checkpoint(str(tmp_path))


def test_a_header_of_more_than_100_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes((10**8 + 1).to_bytes(8, "little"))
    with path.open("r+b") as file:
        file.truncate(2 * 10**8)
    with pytest.raises(InputError, match="100,000,001 bytes"):
        read_checkpoint(str(tmp_path))


OUTSIDE = ("../secret.safetensors", "/etc/passwd", "a/../../b", "C:\\x", "..\\x", "a\x1b[31m", "")


@pytest.mark.parametrize("file", OUTSIDE)
def test_an_index_stays_inside_its_folder(file: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": file}}), "utf-8")
    with pytest.raises(InputError, match="not inside the folder") as caught:
        read_checkpoint(str(tmp_path))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("index", [[], {}, {"weight_map": []}, {"weight_map": {"a": 1}}])
def test_a_bad_index(index: object, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    with pytest.raises(InputError, match="has no weight_map"):
        read_checkpoint(str(tmp_path))


def test_missing_shards_are_counted(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", LLAMA, llama_shapes(LLAMA), 3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(InputError, match="1 of 3 files are missing"):
        read_checkpoint(str(folder))


def test_an_adapter_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(header_bytes({"a.weight": (2, 2)}))
    with pytest.raises(InputError, match="an adapter"):
        read_checkpoint(str(tmp_path))
