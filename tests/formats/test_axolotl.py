"""axolotl's YAML: what it asks for, and what its schemas drop without a word (axolotl 0.18)."""

import json
from pathlib import Path

import pytest

from tests.command import run
from tests.formats.told import told, written

BASE = (
    "base_model: meta-llama/Llama-3.1-8B\nlearning_rate: 2e-5\nsequence_len: 4096\n"
    "micro_batch_size: 2\ngradient_accumulation_steps: 4\n"
)
FSDP2 = "fsdp_version: 2\nfsdp_config:\n  offload_params: false\n  reshard_after_forward: true\n"


def test_a_whole_model_under_fsdp2_keeps_16_bits(tmp_path: Path) -> None:
    found = written(tmp_path, BASE + "optimizer: adamw_torch_fused\ngradient_checkpointing: true\n" + FSDP2)
    assert (found.kind, found.half) == ("axolotl", "bf16")
    assert found.options == {
        "framework": "fsdp2",
        "model": "meta-llama/Llama-3.1-8B",
        "seq_len": "4096",
        "micro_batch": "2",
        "grad_accum": "4",
        "loss": "hf",
        "optimizer_kernel": "fused",
        "recompute": "full",
        "stage": ("3",),
        "offload": (),
        "recipe": "pure-bf16",
    }
    assert told(found) == set()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (FSDP2.replace("true", "false"), {"stage": ("2",)}),
        (FSDP2.replace("false", "true"), {"offload": ("params=cpu",)}),
        ("fsdp_config: {fsdp_version: 1}\n", {"framework": "fsdp1", "recipe": "fsdp-mixed", "stage": ("3",)}),
        ("", {"framework": "ddp", "recipe": "pure-bf16", "stage": ("0",)}),
        ("bf16: false\n", {"recipe": "fp32-adam"}),
        ("attn_implementation: eager\n", {"attention": "eager"}),
        (FSDP2 + "bf16: false\n", {"recipe": "fp32-adam"}),
        (FSDP2 + "dp_shard_size: 4\ndp_replicate_size: 2\n", {"shard_group": "4"}),
        ("plugins:\n  - axolotl.integrations.liger.LigerPlugin\nliger_rms_norm: true\n", {"fused": "norm"}),
        (
            "plugins:\n  - axolotl.integrations.liger.LigerPlugin\nliger_fused_linear_cross_entropy: true\n",
            {"loss": "linear"},
        ),
        ("liger_fused_linear_cross_entropy: true\n", {"loss": "hf"}),
        ("deepspeed: {zero_optimization: {stage: 3}, bf16: {enabled: true}}\n", {"framework": "deepspeed"}),
        ("wandb_project:\nadapter:\ndeepspeed:\nfsdp:\n", {"framework": "ddp"}),
        ("optimizer: adamw_torch\n", {"optimizer_kernel": "foreach"}),
    ],
)
def test_what_is_asked_for(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    found = written(tmp_path, BASE + text)
    assert options.items() <= found.options.items()
    assert not found.unmodelled


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("sample_packng: true\n", ("ZP201", "note", "sample_packng")),
        ("fsdp_config: {activation_checkpointing: true}\n", ("ZP302", "note", "fsdp_config")),
        (
            FSDP2 + "  sharding_strategy: SHARD_GRAD_OP\n",
            ("ZP206", "warning", "fsdp_config.sharding_strategy"),
        ),
        (FSDP2 + "  sharding_strategy: FULL_SHARD\n", ("ZP206", "note", "fsdp_config.sharding_strategy")),
        (FSDP2 + "  fsdp_cpu_offload: true\n", ("ZP206", "warning", "fsdp_config.cpu_offload")),
        (FSDP2 + "  limit_all_gathers: true\n", ("ZP201", "note", "fsdp_config.limit_all_gathers")),
        (FSDP2 + "  fsdp_version: 1\n", ("ZP201", "error", "fsdp_version")),
        (FSDP2 + "fsdp: full_shard\n", ("ZP201", "error", "fsdp")),
        ("fsdp: [full_shard]\n", ("ZP201", "error", "fsdp")),
        (
            "fsdp_config: {version: 1, reshard_after_forward: true}\n",
            ("ZP201", "error", "fsdp_config.reshard_after_forward"),
        ),
        (FSDP2 + "  auto_wrap_policy: NO_WRAP\n", ("ZP201", "error", "fsdp_config.auto_wrap_policy")),
        (FSDP2 + "deepspeed: ds.json\n", ("ZP201", "error", "deepspeed")),
        ("dp_shard_size: 4\n", ("ZP201", "error", "dp_shard_size")),
        ("tensor_parallel_size: 2\n", ("ZP301", "warning", "tensor_parallel_size")),
        ("adapter: qlora\n", ("ZP301", "warning", "adapter")),
        ("optimizer: adamw_bnb_8bit\n", ("ZP301", "warning", "optimizer")),
        ("gradient_checkpointing: offload\n", ("ZP301", "warning", "gradient_checkpointing")),
        ("qat: {activation_dtype: int8}\n", ("ZP301", "warning", "qat")),
        ("rl: dpo\n", ("ZP301", "warning", "rl")),
        ("activation_offloading: true\n", ("ZP201", "error", "activation_offloading")),
        (FSDP2 + "optimizer: adamw_8bit\n", ("ZP201", "error", "optimizer")),
        (FSDP2 + "  state_dict_type: LOCAL_STATE_DICT\n", ("ZP201", "error", "fsdp_config.state_dict_type")),
        (
            FSDP2 + "  transformer_layer_cls_to_wrap: [LlamaDecoderLayer]\n",
            ("ZP201", "error", "fsdp_config.transformer_layer_cls_to_wrap"),
        ),
        (FSDP2 + "  auto_wrap_policy: SIZE_BASED_WRAP\n", ("ZP201", "error", "fsdp_config.auto_wrap_policy")),
        ("bf16: full\n", ("ZP201", "error", "bf16")),
        ("batch_size: 8\n", ("ZP201", "error", "batch_size")),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, text: str, finding: tuple[str, str, str]) -> None:
    assert finding in told(written(tmp_path, BASE + text))


def test_two_of_the_batch_sizes_are_needed(tmp_path: Path) -> None:
    found = written(tmp_path, "base_model: gpt2\nmicro_batch_size: 2\n")
    assert ("ZP201", "error", "micro_batch_size") in told(found)
    ignored = written(tmp_path, "base_model: gpt2\nmicro_batch_size: 2\nbatch_size: 8\n")
    assert ignored.options["grad_accum"] == "1"
    assert ("ZP206", "warning", "batch_size") in told(ignored)


def test_whole_gradients_stay_between_micro_batches(tmp_path: Path) -> None:
    """The Trainer reduces in the last micro-batch of a step only."""
    file = tmp_path / "fft.yaml"
    file.write_text(BASE + FSDP2, "utf-8")
    ran = run("check", str(file), "--gpus", "8", "--gpu", "h100", "--format", "json")
    assert json.loads(ran.stdout)["results"][0]["request"]["settings"] == {"no_sync": True}


def test_a_sync_in_each_batch_leaves_no_whole_gradients(tmp_path: Path) -> None:
    kwargs = "accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}\n"
    assert not written(tmp_path, BASE + FSDP2 + kwargs).quiet
    assert written(tmp_path, BASE + FSDP2 + "torch_compile: auto\n").quiet


def test_merge_keys_are_refused_and_do_not_blow_up(tmp_path: Path) -> None:
    levels = "\n".join(f"k{n}: &k{n}\n  <<: [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(1, 12))
    file = tmp_path / "bomb.yaml"
    file.write_text(f"{BASE}k0: &k0 {{a: 1}}\n{levels}\n", "utf-8")
    ran = run("check", str(file))
    assert (ran.status, "merge key" in ran.stderr) == (2, True)


def test_whether_it_fits(tmp_path: Path) -> None:
    file = tmp_path / "fft.yaml"
    file.write_text(BASE + "gradient_checkpointing: true\n" + FSDP2, "utf-8")
    ran = run("check", str(file), "--gpus", "8", "--gpu", "h100", "--format", "json")
    [found] = json.loads(ran.stdout)["results"]
    assert (ran.status, found["request"]["bytes_per_parameter"]) == (0, 8)
    assert found["verdicts"][0]["verdict"] == "fits"
