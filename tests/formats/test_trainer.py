"""Arguments of the Hugging Face Trainer: what `fsdp` and `fsdp_config` mean, and what is ignored without a word.

What is refused, and what is ignored, was tried with transformers 5.24 and accelerate 1.15.
"""

import contextlib
import json
from pathlib import Path

import pytest

from tests.command import run
from tests.formats.told import told, written
from zeroplan.errors import InputError

UNITS = {"embedding_unit": True, "reduce_16bit": True}
"""What accelerate does under FSDP2."""
BASE = "output_dir: out\nbf16: true\nper_device_train_batch_size: 2\n"


def test_the_arguments_of_a_run(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        BASE + "gradient_accumulation_steps: 4\ngradient_checkpointing: true\noptim: adamw_torch\n"
        "fsdp: full_shard auto_wrap offload\nfsdp_config:\n  fsdp_version: 2\n  reshard_after_forward: false\n",
    )
    assert (found.kind, found.half) == ("trainer", "bf16")
    assert found.options == {
        "framework": "fsdp2",
        "micro_batch": "2",
        "grad_accum": "4",
        "loss": "hf",
        "recompute": "full",
        "optimizer_kernel": "foreach",
        "stage": ("2",),
        "offload": ("params=cpu",),
        "recipe": "fsdp-mixed",
        "set": ("embedding_unit=true", "reduce_16bit=true"),
    }
    assert told(found) == set()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("fsdp: true\n", {"framework": "fsdp2", "stage": ("3",), "offload": ()}),
        ("fsdp: [shard_grad_op, auto_wrap]\n", {"stage": ("2",)}),
        ("fsdp: shard_grad_op full_shard\n", {"stage": ("2",)}),
        ("fsdp: full_shard\nfsdp_config: {version: 1}\n", {"framework": "fsdp1", "recipe": "fsdp-mixed"}),
        ("fsdp: full_shard\nfsdp_config: {activation_checkpointing: true}\n", {"recompute": "full"}),
        ("fsdp: full_shard\nfsdp_config: '{\"cpu_offload\": true}'\n", {"offload": ("params=cpu",)}),
        ("", {"framework": "ddp", "stage": ("0",)}),
        ("fsdp: ''\n", {"framework": "ddp"}),
        ("use_liger_kernel: true\n", {"loss": "linear", "fused": "norm,mlp"}),
        (
            "model_name_or_path: meta-llama/Llama-3.1-8B\ncutoff_len: 4096\nfinetuning_type: full\n",
            {"seq_len": "4096", "recompute": "full"},
        ),
        ("template: llama3\nfinetuning_type: full\n", {"seq_len": "2048", "recompute": "full"}),
        (
            "template: llama3\nfinetuning_type: full\nfsdp: full_shard\npure_bf16: true\n",
            {"recipe": "pure-bf16", "set": ("embedding_unit=true",)},
        ),
        ("packing: true\nmax_length: 4096\n", {"seq_len": "4096", "recompute": "full"}),
        ("loss_type: chunked_nll\nmax_length: 4096\n", {"loss": "chunked"}),
        ("dataset_name: x\nblock_size: 1024\n", {"seq_len": "1024"}),
        (
            "template: llama3\nfinetuning_type: full\ngradient_checkpointing: false\nflash_attn: disabled\n",
            {"recompute": "full", "attention": "eager"},
        ),
        ("template: llama3\nfinetuning_type: full\npure_bf16: true\n", {"recipe": "pure-bf16", "framework": "ddp"}),
        (
            "use_liger_kernel: true\nliger_kernel_config: {fused_linear_cross_entropy: false, swiglu: false}\n",
            {"loss": "hf", "fused": "norm"},
        ),
        ("torch_compile_backend: inductor\n", {"compiled": "model"}),
        ("torch_compile_mode: max-autotune\n", {"compiled": "model"}),
        ("accelerator_config: '{\"split_batches\": false}'\n", {"framework": "ddp"}),
    ],
)
def test_what_is_asked_for(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    found = written(tmp_path, BASE + text)
    assert options.items() <= found.options.items()
    assert not found.unmodelled


def test_a_backend_that_fuses_nothing_saves_nothing(tmp_path: Path) -> None:
    assert "compiled" not in written(tmp_path, BASE + "torch_compile_backend: eager\n").options


def test_examples_of_transformers_are_not_taken_for_trls(tmp_path: Path) -> None:
    """run_clm.py has a dataset_name too, and the Trainer's own defaults."""
    found = written(tmp_path, "output_dir: out\ndataset_name: x\nper_device_train_batch_size: 8\n")
    assert "recompute" not in found.options
    assert found.options["recipe"] == "fp32-adam"


def test_the_batch_of_a_gpu_is_8_where_nothing_is_said(tmp_path: Path) -> None:
    assert written(tmp_path, "output_dir: out\nsave_strategy: no\n").options["micro_batch"] == "8"


def test_whole_gradients_stay_between_micro_batches(tmp_path: Path) -> None:
    """The Trainer reduces in the last micro-batch of a step only, unless it is told to in each."""
    text = BASE + "gradient_accumulation_steps: 8\nfsdp: full_shard\nfsdp_config: {version: 2}\n"
    each = "accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}\n"
    file, asked = tmp_path / "sft.yaml", ["--params", "1e9", "--gpus", "8", "--gpu", "h100", "--format", "json"]
    for more, settings in (("", {**UNITS, "no_sync": True}), (each, UNITS)):
        file.write_text(text + more, "utf-8")
        [found] = json.loads(run("check", str(file), *asked).stdout)["results"]
        assert found["request"]["settings"] == settings


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("fsdp: full_shard,auto_wrap\n", ("ZP201", "error", "fsdp")),
        ("fsdp: FULL_SHARD\nfsdp_config: {version: 2}\n", ("ZP201", "error", "fsdp")),
        ("fsdp: hybrid_shard\nfsdp_config: {version: 2}\n", ("ZP201", "error", "fsdp")),
        ("fsdp: shard_grad_op\nfsdp_config: {version: 1}\n", ("ZP206", "warning", "fsdp")),
        ("fsdp: full_shard\n", ("ZP302", "note", "fsdp")),
        ("fsdp: full_shard\nfsdp_config: {version: 3}\n", ("ZP201", "error", "fsdp_config.version")),
        (
            "fsdp: full_shard\nfsdp_config: {version: 1, reshard_after_forward: true}\n",
            ("ZP201", "error", "fsdp_config.reshard_after_forward"),
        ),
        (
            "fsdp: full_shard\nfsdp_config: {reshard_after_forward: }\n",
            ("ZP201", "error", "fsdp_config.reshard_after_forward"),
        ),
        (
            "fsdp: full_shard\nfsdp_config: {fsdp_offload_params: true}\n",
            ("ZP206", "warning", "fsdp_config.offload_params"),
        ),
        ("fsdp: full_shard\nfsdp_config: {cpu_offload: 'false'}\n", ("ZP206", "warning", "fsdp_config.cpu_offload")),
        ("fsdp: full_shard\nfsdp_config: {min_params: 1}\n", ("ZP201", "note", "fsdp_config.min_params")),
        (
            "fsdp: full_shard\nfsdp_config: {auto_wrap_policy: NO_WRAP}\n",
            ("ZP301", "warning", "fsdp_config.auto_wrap_policy"),
        ),
        (
            "fsdp: full_shard\nfsdp_config: {auto_wrap_policy: no_wrap}\n",
            ("ZP201", "error", "fsdp_config.auto_wrap_policy"),
        ),
        (
            "fsdp: full_shard\ngradient_checkpointing: true\nfsdp_config: {activation_checkpointing: true}\n",
            ("ZP201", "error", "fsdp_config.activation_checkpointing"),
        ),
        ("fsdp_config: {version: 2}\n", ("ZP206", "warning", "fsdp_config")),
        ("fsdp: full_shard\nfsdp_config: other.json\n", ("ZP301", "warning", "fsdp_config")),
        ("accelerator_config: other.json\n", ("ZP301", "warning", "accelerator_config")),
        ("fsdp: full_shard\ndeepspeed: '{\"zero_optimization\": {}}'\n", ("ZP201", "error", "fsdp")),
        ("fp16: true\n", ("ZP201", "error", "fp16")),
        ("optim: adamw_bnb_8bit\n", ("ZP301", "warning", "optim")),
        ("finetuning_type: lora\n", ("ZP301", "warning", "finetuning_type")),
        ("template: llama3\n", ("ZP301", "warning", "finetuning_type")),
        ("template: llama3\nfinetuning_type: full\nuse_galore: true\n", ("ZP301", "warning", "use_galore")),
        ("packing: true\n", ("ZP302", "note", "")),
        ("packing: true\nloss_type: sigmoid\n", ("ZP301", "warning", "loss_type")),
        ("max_prompt_length: 512\n", ("ZP301", "warning", "max_prompt_length")),
        ("parallelism_config: {dp_shard_size: 4}\n", ("ZP301", "warning", "parallelism_config")),
        ("accelerator_config: {split_batches: true}\n", ("ZP301", "warning", "accelerator_config.split_batches")),
        ("auto_find_batch_size: true\n", ("ZP301", "warning", "auto_find_batch_size")),
        ("max_length: 9\nteacher_model_name_or_path: x\n", ("ZP301", "warning", "teacher_model_name_or_path")),
        (
            "template: x\nfinetuning_type: full\npure_bf16: true\ndeepspeed: {zero_optimization: {stage: 3}}\n",
            ("ZP201", "error", "pure_bf16"),
        ),
        ("template: llama3\nfinetuning_type: full\nstage: dpo\n", ("ZP301", "warning", "stage")),
        ("evaluation_strategy: steps\n", ("ZP205", "warning", "evaluation_strategy")),
        ("bf_16: true\n", ("ZP201", "warning", "bf_16")),
        ("gradient_acumulation_steps: 4\n", ("ZP201", "warning", "gradient_acumulation_steps")),
        ("", ("ZP302", "note", "bf16")),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, text: str, finding: tuple[str, str, str]) -> None:
    assert finding in told(written(tmp_path, BASE + text))


def test_auto_in_a_deepspeed_file_is_filled_from_the_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds").mkdir()
    zero = {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto"}
    config = {
        "zero_optimization": zero,
        "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "train_batch_size": "auto",
    }
    (tmp_path / "ds" / "z3.json").write_text(json.dumps(config), "utf-8")
    found = written(tmp_path, BASE + "deepspeed: ds/z3.json\n")
    assert told(found) == set()
    assert found.options["framework"] == "deepspeed"
    assert (found.options["micro_batch"], found.options["recipe"]) == ("2", "deepspeed-16bit")
    assert found.options["set"] == ("reduce_bucket_size=16777216", "stage3_prefetch_bucket_size=15099494")


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": 4}, "train_micro_batch_size_per_gpu"),
        ({"bf16": {"enabled": False}}, "deepspeed"),
        ({"fp16": {"enabled": True}}, "deepspeed"),
    ],
)
def test_a_deepspeed_file_that_says_otherwise_stops_the_trainer(
    tmp_path: Path, config: dict[str, object], key: str
) -> None:
    found = written(tmp_path, BASE + f"deepspeed: {json.dumps({'zero_optimization': {'stage': 2}, **config})}\n")
    assert ("ZP207", "error", key) in told(found)


def test_a_deepspeed_file_outside_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}', "utf-8")
    (tmp_path / "inside").mkdir()
    with pytest.raises(InputError, match="not a file here or below"):
        written(tmp_path / "inside", BASE + "deepspeed: ../ds.json\n")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "missing.json", "'a\\0b'", "a\x1b[31m"])
def test_files_elsewhere_are_not_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as error:
        written(tmp_path, BASE + f"deepspeed: {name}\n")
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    "tail",
    [
        "fsdp: full_shard\nfsdp_config: {~: 1, 2: 3, true: 4}\n",
        "deepspeed: {~: 1, 2001-01-01: 2}\n",
        "deepspeed: &a {zero_optimization: *a}\n",
        "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9 if n else ['1'] * 9)}]" for n in range(12))
        + "\ndeepspeed: {zero_optimization: *k11}\n",
        "fsdp: &b [*b]\n",
        "null: 3\n",
        f"gradient_accumulation_steps: 0x{'f' * 6000}\n",
        f"gradient_accumulation_steps: {':'.join(['1'] * 4000)}\n",
        f"fsdp: [{', '.join(['zz'] * 20000)}]\n",
    ],
)
def test_hostile_yaml_is_refused_or_harmless(tmp_path: Path, tail: str) -> None:
    with contextlib.suppress(InputError):
        assert written(tmp_path, BASE + tail, kind="trainer").kind == "trainer"


def test_the_model_of_the_file_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "sft.yaml"
    file.write_text(BASE + "model_name_or_path: meta-llama/Llama-3.1-8B\nmax_length: 2048\nfsdp: full_shard\n")
    ran = run("check", str(file), "--gpus", "8", "--gpu", "h100", "--format", "json")
    [found] = json.loads(ran.stdout)["results"]
    assert (found["request"]["params"], found["request"]["seq_len"]) == (8_030_261_248, 2048)
    [typed] = json.loads(
        run("check", str(file), "--params", "1e9", "--gpus", "8", "--gpu", "h100", "--format", "json").stdout
    )["results"]
    assert typed["request"]["params"] == 10**9


def test_a_model_of_the_file_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "sft.yaml").write_text(BASE + "model_name_or_path: gpt2\n")
    ran = run("check", "sft.yaml", "--format", "json")
    assert ran.status == 0
    assert "ZP302" in ran.stdout


def test_an_unknown_model_is_said(tmp_path: Path) -> None:
    file = tmp_path / "sft.yaml"
    file.write_text(BASE + "model_name_or_path: me/mine\n")
    [found] = json.loads(run("check", str(file), "--format", "json").stdout)["results"]
    assert sorted({each["code"] for each in found["findings"]}) == ["ZP302", "ZP303"]
