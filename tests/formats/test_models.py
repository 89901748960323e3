"""What --model names: a path wins over a preset; whatever else is said to be neither."""

import json
import os
from pathlib import Path

import pytest

from tests.formats.checkpoints import header_bytes, llama_shapes, write_checkpoint
from tests.formats.configs import LLAMA, MIXTRAL, MODELS
from zeroplan.errors import InputError
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.models import read_model
from zeroplan.formats.presets import Presets

COUNT = read_config(LLAMA).params


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, value: object) -> str:
    path.write_text(json.dumps(value), "utf-8")
    return str(path)


def test_a_preset_by_name_alias_and_id(presets: Presets) -> None:
    for name in ("llama-3.1-8b", "llama-3-8b", "meta-llama/Llama-3.1-8B", " LLAMA-3.1-8B "):
        model = read_model(name, presets)
        assert model.params == 8_030_261_248
        assert model.name == "llama-3.1-8b"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("https://huggingface.co/meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("Llama 3.1 8B", "llama-3.1-8b"),
    ],
)
def test_names_as_people_write_them(asked: str, found: str, presets: Presets) -> None:
    assert read_model(asked, presets).name == found


def test_a_cache_entry_of_the_hub_is_its_main_snapshot(folder: Path, presets: Presets) -> None:
    entry = folder / "models--a--b"
    (entry / "refs").mkdir(parents=True)
    (entry / "refs" / "main").write_text("abc123\n", "utf-8")
    (entry / "snapshots" / "abc123").mkdir(parents=True)
    write(entry / "snapshots" / "abc123" / "config.json", LLAMA)
    assert read_model("models--a--b", presets).params == COUNT
    (entry / "refs" / "main").write_text("../../elsewhere", "utf-8")
    with pytest.raises(InputError, match="holds no model"):
        read_model("models--a--b", presets)


def test_home_is_where_the_heart_is(folder: Path, presets: Presets, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "mine.json", LLAMA)
    monkeypatch.setenv("HOME", str(folder))
    assert read_model("~/mine.json", presets).params == COUNT


def test_a_folder_that_hides_a_preset_says_so(folder: Path, presets: Presets) -> None:
    (folder / "gpt2").mkdir()
    with pytest.raises(InputError, match="hides the preset"):
        read_model("gpt2", presets)


def test_shapes_alone_will_do(folder: Path, presets: Presets) -> None:
    model = read_model(write(folder / "s.json", {"layers.0.a.weight": [10, 20], "layers.0.b.weight": [3]}), presets)
    assert (model.params, model.layers) == (203, 1)
    assert "shapes alone" in model.why_unmodelled


def test_a_config_file(folder: Path, presets: Presets) -> None:
    model = read_model(write(folder / "mine.json", LLAMA), presets)
    assert (model.params, model.name, model.model_type) == (COUNT, "mine", "llama")


def test_a_folder_with_a_config(folder: Path, presets: Presets) -> None:
    (folder / "my-llama").mkdir()
    path = write(folder / "my-llama" / "config.json", LLAMA)
    assert read_model("my-llama", presets).params == COUNT
    assert read_model("my-llama", presets).name == "my-llama"
    assert read_model(path, presets).name == "my-llama"


def test_a_checkpoint(folder: Path, presets: Presets) -> None:
    write_checkpoint(folder / "saved", LLAMA, llama_shapes(LLAMA), 2)
    model = read_model("saved", presets)
    assert model.params == COUNT
    assert "checked against the safetensors headers" in model.notes
    assert read_model(str(folder / "saved") + "/", presets).name == "saved"


def test_one_safetensors_file(folder: Path, presets: Presets) -> None:
    (folder / "one.safetensors").write_bytes(header_bytes(llama_shapes(LLAMA)))
    model = read_model("one.safetensors", presets)
    assert (model.params, model.name) == (COUNT, "one")


def test_a_shapes_file(folder: Path, presets: Presets) -> None:
    shapes = {name: {"shape": shape, "dtype": "torch.float32"} for name, shape in llama_shapes(LLAMA).items()}
    model = read_model(write(folder / "shapes.json", shapes), presets)
    assert (model.params, model.name, model.layers) == (COUNT, "shapes", 3)


def test_a_path_wins_over_a_preset(folder: Path, presets: Presets) -> None:
    (folder / "gpt2").mkdir()
    write(folder / "gpt2" / "config.json", LLAMA)
    assert read_model("gpt2", presets).params == COUNT


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "consolidated.00.pth"])
def test_pickled_weights_are_refused(name: str, folder: Path, presets: Presets) -> None:
    (folder / name).write_bytes(b"")
    (folder / "pytorch_model.bin.index.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match=r"pickled weights only.*config\.json"):
        read_model(str(folder), presets)


@pytest.mark.usefixtures("folder")
def test_a_folder_of_nothing(presets: Presets) -> None:
    with pytest.raises(InputError, match="holds no model"):
        read_model(".", presets)


def test_an_unknown_name_gets_the_nearest(presets: Presets) -> None:
    with pytest.raises(InputError, match=r"no model is named 'lama-3.1-8b'. Did you mean llama-3.1-8b.*config\.json"):
        read_model("lama-3.1-8b", presets)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("path", ["nowhere.json", "./nowhere", "/nowhere/at/all", "~/nowhere"])
def test_a_path_to_nothing(path: str, presets: Presets) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_model(path, presets)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["", "a\0b", "\x1b[31m", "x" * 10_000, "../presets/model/gpt2", "[red]"])
def test_strange_names(text: str, presets: Presets) -> None:
    with pytest.raises(InputError) as caught:
        read_model(text, presets)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


BAD_FILES = {
    "no JSON": (b"{", "is not JSON"),
    "no UTF-8": (b"\xff\xfe\xff", "is not JSON"),
    "nothing": (b"", "is not JSON"),
    "deep": (b'{"a":' * 100_000, "nested too deeply"),
    "long number": (b'{"model_type": "llama", "vocab_size": ' + b"1" * 5000 + b"}", "is not JSON"),
    "list": (b"[]", "is a list"),
    "text": (b'"llama"', "expected a table"),
    "number": (b"NaN", "expected a table"),
    "infinity": (b'{"model_type": "llama", "vocab_size": Infinity}', "is 'inf'"),
    "escape": (b'{"model_type": "\\u001b[31m"}', "is not one this version can count"),
    "no type": (b"{}", "model_type is missing"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(name: str, folder: Path, presets: Presets) -> None:
    raw, words = BAD_FILES[name]
    (folder / "bad.json").write_bytes(raw)
    with pytest.raises(InputError) as caught:
        read_model("bad.json", presets)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_file_of_more_than_64_megabytes(folder: Path, presets: Presets) -> None:
    with (folder / "big.json").open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(InputError, match="larger than 64 MiB"):
        read_model("big.json", presets)


def test_a_pipe_is_no_file(folder: Path, presets: Presets) -> None:
    os.mkfifo(folder / "pipe.json")
    with pytest.raises(InputError, match="is not a regular file"):
        read_model("pipe.json", presets)


def test_a_folder_of_strange_name(folder: Path, presets: Presets) -> None:
    strange = folder / "a\x1b[31m"
    write_checkpoint(strange, None, llama_shapes(LLAMA))
    model = read_model(str(strange), presets)
    assert model.name.isprintable()
    assert model.source.isprintable()


PRESET = """
title = "Ours"
[config]
model_type = "mixtral"
"""


def own_presets(folder: Path, text: str) -> Presets:
    (folder / "ours" / "model").mkdir(parents=True)
    (folder / "ours" / "model" / "our-model.toml").write_text(text, "utf-8")
    return Presets(str(folder / "ours"))


def test_a_users_model(folder: Path) -> None:
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in MIXTRAL.items() if key != "model_type")
    mine = own_presets(folder, PRESET + lines)
    model = read_model("our-model", mine)
    assert model.params == read_config(MIXTRAL).params
    assert model.source == "your preset our-model"
    assert read_model("gpt2", mine).params == MODELS["gpt2"]["total"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PRESET.replace("mixtral", "mamba2"), "model_type 'mamba2' is not one"),
        (f"params = 5\n{PRESET}", "counts to 46,702,792,704, and params says 5"),
        (f"parms = 5\n{PRESET}", "parms"),
        ('title = "Ours"', "config"),
        (f"null_keys = [3]\n{PRESET}", "null_keys"),
        (f"params = 0\n{PRESET}", "params"),
        (f"{PRESET}released = 2024-01-01", "date"),
        (f"{PRESET}hidden_size = '32'", "hidden_size: is '32'"),
    ],
)
def test_a_users_model_that_is_wrong(text: str, words: str, folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        own_presets(folder, text)
    assert words in str(caught.value)
