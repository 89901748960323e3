"""torchtitan's TOML in the spellings of 2024 and 2025: what it says, and what later versions make of it.

The two files have synthetic values; keys, defaults and meanings are those of pytorch/torchtitan
torchtitan/config_manager.py (2024) and torchtitan/config/job_config.py (until 2026-02-23).
"""

import json
from pathlib import Path

import pytest

from tests.command import run
from tests.formats.told import told, written
from zeroplan.errors import InputError
from zeroplan.formats.configs import read_config

DATA = Path(__file__).parent / "data" / "torchtitan"
NO_AC = "[activation_checkpoint]\nmode = 'none'\n"


def test_the_spelling_of_2024() -> None:
    found = read_config(str(DATA / "2024.toml"))
    assert found.kind == "torchtitan"
    assert found.options == {
        "framework": "fsdp2",
        "model": "llama-3.1-8b",
        "micro_batch": "2",
        "seq_len": "8192",
        "stage": ("3",),
        "recipe": "fsdp-mixed",
        "recompute": "full",
        "optimizer_kernel": "foreach",
    }
    old = ("batch_size", "data_parallel_degree", "tensor_parallel_degree", "pipeline_parallel_degree", "compile")
    assert told(found) == {
        *(("ZP204", "warning", f"training.{key}") for key in old),
        ("ZP301", "warning", "training.tensor_parallel_degree"),
    }
    assert found.unmodelled
    [tensor] = [each for each in found.findings if each.code == "ZP301"]
    assert "2 is not modelled; data-parallel ranks are world / (tensor 2)" in tensor.said
    assert tensor.place.line == 11


def test_the_spelling_of_2025() -> None:
    found = read_config(str(DATA / "2025.toml"))
    assert found.options["recompute"] == "selective"
    assert (found.options["micro_batch"], found.options["seq_len"]) == ("2", "8192")
    assert found.options["optimizer_kernel"] == "fused"
    assert found.replicas == 2
    assert told(found) == {("ZP301", "warning", "parallelism.tensor_parallel_degree")}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("[parallelism]\n" + NO_AC, {"stage": ("3",), "micro_batch": "8", "seq_len": "2048", "recipe": "fsdp-mixed"}),
        ("[parallelism]\nfsdp_reshard_after_forward = 'never'\n" + NO_AC, {"stage": ("2",)}),
        (
            "[parallelism]\ndata_parallel_shard_degree = 8\ndata_parallel_replicate_degree = 4\n" + NO_AC,
            {"shard_group": "8", "gpus": "32"},
        ),
        (
            "[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8\n[training]\n"
            "local_batch_size = 1\n" + NO_AC,
            {"framework": "ddp", "stage": ("0",), "gpus": "8", "recipe": "fsdp-mixed"},
        ),
        (
            "[training]\ndata_parallel_degree = 8\ndata_parallel_type = 'ddp'\n" + NO_AC,
            {"framework": "ddp", "gpus": "8", "recipe": "fp32-adam"},
        ),
        ("[training]\ndtype = 'bfloat16'\n" + NO_AC, {"recipe": "pure-bf16"}),
        ("[training]\nmixed_precision_param = 'float32'\n" + NO_AC, {"recipe": "fp32-adam"}),
        ("[training]\nenable_cpu_offload = true\n" + NO_AC, {"offload": ("params=cpu",)}),
        ("[activation_checkpoint]\nmode = 'selective'\nselective_ac_option = '1'\n", {"recompute": "full"}),
        ("[compile]\nenable = true\n[training]\n" + NO_AC, {"compiled": "all"}),
        ("[compile]\nenable = true\ncomponents = ['model']\n[training]\n" + NO_AC, {"compiled": "model"}),
        ("[training]\ncompile = true\n" + NO_AC, {"compiled": "model"}),
        ("[optimizer]\nimplementation = 'for-loop'\n" + NO_AC, {"optimizer_kernel": "loop"}),
        ("[model]\nname = 'qwen3'\nflavor = '14B'\n[training]\n" + NO_AC, {"params": "14768307200"}),
    ],
)
def test_settings_and_defaults(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    found = written(tmp_path, text, "job.toml")
    assert options.items() <= found.options.items()
    assert not found.unmodelled


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("[training]\nseq_length = 8192\n", ("ZP201", "warning", "training.seq_length")),
        ("[trainning]\n[training]\n", ("ZP201", "warning", "trainning")),
        ("[training]\n", ("ZP301", "warning", "activation_checkpoint")),
        ("[activation_checkpoint]\nmode = 'some'\n", ("ZP201", "error", "activation_checkpoint.mode")),
        ("[training]\nlocal_batch_size = 0\n", ("ZP201", "error", "training.local_batch_size")),
        ("[parallelism]\ntensor_parallel_degree = -1\n", ("ZP201", "error", "parallelism.tensor_parallel_degree")),
        (
            "[parallelism]\nfsdp_reshard_after_forward = true\n",
            ("ZP201", "error", "parallelism.fsdp_reshard_after_forward"),
        ),
        (
            "[parallelism]\ntensor_parallel_degree = 2\n[training]\ntensor_parallel_degree = 4\n",
            ("ZP206", "warning", "training.tensor_parallel_degree"),
        ),
        ("[model]\nconverters = ['float8']\n[training]\n", ("ZP301", "warning", "model.converters")),
        (
            "[training]\ndtype = 'bfloat16'\nmixed_precision_param = 'float32'\n",
            ("ZP301", "warning", "training.mixed_precision_param"),
        ),
        ("[optimizer]\nname = 'SGD'\n", ("ZP301", "warning", "optimizer.name")),
        ("[model]\nflavor = '9B'\n[training]\n", ("ZP302", "note", "model.flavor")),
        ("training = 3\n[optimizer]\n", ("ZP201", "error", "training")),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, text: str, finding: tuple[str, str, str]) -> None:
    assert finding in told(written(tmp_path, text, "job.toml"))


@pytest.mark.parametrize(
    "text", ["[training\n", "[training]\na = " + "[" * 99, "[training]\na = 1\na = 2\n", "a." * 9999 + "a = 1"]
)
def test_what_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"job.toml: (is n|has a key)"):
        written(tmp_path, text, "job.toml", kind="torchtitan")


def test_one_fault_is_one_finding(tmp_path: Path) -> None:
    found = written(tmp_path, "model = 3\nparallelism = 4\n[training]\n", "job.toml")
    assert [each.place.key for each in found.findings].count("parallelism") == 1


def test_a_typed_batch_is_what_the_accumulation_follows_from(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(
        "[model]\nflavor = '8B'\n[training]\nlocal_batch_size = 1\nglobal_batch_size = 16\n"
        "[activation_checkpoint]\nmode = 'full'\n",
        "utf-8",
    )
    asked = ["check", str(file), "--gpus", "8", "--gpu", "h100", "--format", "json"]
    for micro, accum, codes in (("1", 2, set()), ("2", 1, set()), ("3", None, {"ZP207"})):
        [found] = json.loads(run(*asked, "--micro-batch", micro).stdout)["results"]
        assert {each["code"] for each in found["findings"]} & {"ZP207"} == codes
        assert (found["request"] or {"grad_accum": None})["grad_accum"] == accum


def test_replicas_and_a_global_batch_follow_from_the_gpus(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text(
        "[model]\nflavor = '8B'\n[training]\nlocal_batch_size = 1\nglobal_batch_size = 64\n"
        "[parallelism]\ndata_parallel_replicate_degree = 2\n[activation_checkpoint]\nmode = 'full'\n",
        "utf-8",
    )
    asked = ["--gpu", "h100", "--format", "json"]
    [found] = json.loads(run("check", str(file), "--gpus", "16", *asked).stdout)["results"]
    assert (found["request"]["shard_group"], found["request"]["grad_accum"]) == (8, 4)
    [odd] = json.loads(run("check", str(file), "--gpus", "15", *asked).stdout)["results"]
    assert {each["code"] for each in odd["findings"]} >= {"ZP209", "ZP207"}
