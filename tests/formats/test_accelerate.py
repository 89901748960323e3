"""Configurations of accelerate from public repositories: what they say, and what is wrong with them.

zero3_cpu_offload: huggingface/peft examples/causal_language_modeling/accelerate_ds_zero3_cpu_offload_config.yaml.
fsdp1: huggingface/trl trl/accelerate_configs/fsdp1.yaml. fsdp2: hiyouga/LLaMA-Factory
examples/accelerate/fsdp2_config.yaml. sp, cp: huggingface/trl examples/accelerate_configs. launch, ds:
huggingface/accelerate examples/config_yaml_templates/deepspeed.yaml. What
accelerate refuses and ignores was tried with accelerate 1.15.
"""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.command import run
from zeroplan.core.findings import SEVERITIES
from zeroplan.errors import InputError
from zeroplan.formats.configs import read_config
from zeroplan.formats.reading import Reading

DATA = Path(__file__).parent / "data" / "accelerate"
CARD = ["--model", "llama-3.1-8b", "--gpu", "h100", "--seq-len", "4096"]


def read(name: str) -> Reading:
    found = read_config(str(DATA / f"{name}.yaml"), hidden=4096)
    assert found.kind == "accelerate"
    return found


def told(reading: Reading) -> set[tuple[str, str, str]]:
    return {(found.code, found.severity, found.place.key) for found in reading.findings}


def written(folder: Path, text: str) -> Reading:
    file = folder / "accelerate.yaml"
    file.write_text(text, "utf-8")
    return read_config(str(file))


def test_the_content_counts_and_not_the_name() -> None:
    found = read("zero3_cpu_offload")
    assert found.options == {
        "framework": "deepspeed",
        "stage": ("3",),
        "offload": (),
        "recipe": "fp32-adam",
        "grad_accum": "2",
        "gpus": "1",
    }
    assert told(found) == {("ZP208", "warning", "")}


def test_fsdp1_is_launched_with_full_shard_where_only_resharding_is_said() -> None:
    found = read("fsdp1")
    assert found.options["framework"] == "fsdp1"
    assert (found.options["stage"], found.options["gpus"]) == (("3",), "8")
    assert told(found) == {("ZP206", "warning", "fsdp_config.fsdp_reshard_after_forward")}


@pytest.mark.parametrize(
    ("strategy", "stage"), [("FULL_SHARD", "3"), ("SHARD_GRAD_OP", "2"), ("NO_SHARD", "0"), ("2", "2")]
)
def test_sharding_strategies_by_name_and_number(tmp_path: Path, strategy: str, stage: str) -> None:
    text = f"distributed_type: FSDP\nfsdp_config: {{fsdp_sharding_strategy: {strategy}}}"
    assert written(tmp_path, text).options["stage"] == (stage,)


def test_hybrid_strategies_divide_over_a_node(tmp_path: Path) -> None:
    text = "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}"
    assert written(tmp_path, f"{text}\nnum_processes: 32\nnum_machines: 4").options["shard_group"] == "8"


def test_fsdp2_without_resharding_is_like_stage_2() -> None:
    found = read("fsdp2")
    assert found.options == {
        "framework": "fsdp2",
        "gpus": "16",
        "stage": ("2",),
        "recompute": "full",
        "offload": (),
        "recipe": "fsdp-mixed",
        "set": ("embedding_unit=true", "reduce_16bit=true"),
    }
    assert not found.findings


@pytest.mark.parametrize("name", ["sp", "cp"])
def test_ways_that_are_not_modelled_are_said_and_not_judged(name: str) -> None:
    found = read(name)
    assert found.unmodelled
    assert ("ZP301", "warning", f"parallelism_config.parallelism_config_{name}_size") in told(found)
    ran = run("check", str(DATA / f"{name}.yaml"), *CARD, "--format", "json")
    assert json.loads(ran.stdout)["results"][0]["verdicts"] == []


def test_a_deepspeed_file_is_found_beside_its_own() -> None:
    """mixed_precision fills the auto of the file, though accelerate refuses to launch so."""
    found = read("launch")
    assert (found.options["stage"], found.options["recipe"], found.options["gpus"]) == (("1",), "deepspeed-16bit", "4")
    assert found.options["set"] == ("reduce_bucket_size=16777216",)
    assert ("ZP210", "error", "mixed_precision") in told(found)
    assert ("ZP302", "note", "bf16") not in told(found)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ds/none.json", "none.json: cannot be read"),
        ("../other.json", "not in the file's folder"),
        ("/etc/hosts", "not in"),
    ],
)
def test_files_elsewhere_are_not_read(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        written(tmp_path, f"distributed_type: DEEPSPEED\ndeepspeed_config: {{deepspeed_config_file: {name}}}")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "ds.json").write_text("{}", "utf-8")
    (folder / "ds.json").symlink_to(tmp_path / "ds.json")
    with pytest.raises(InputError, match="not in the file's folder"):
        written(folder, "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}")


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ("distributed_type: FSDP\nnum_procs: 8", "ZP201", "num_procs"),
        ("num_processes: 8", "ZP201", "distributed_type"),
        ("distributed_type: TPU", "ZP301", "distributed_type"),
        ("distributed_type: fsdp", "ZP201", "distributed_type"),
        ("distributed_type: FSDP\nfsdp_config: [1]", "ZP201", "fsdp_config"),
        ("distributed_type: FSDP\nmixed_precision: fp8", "ZP301", "mixed_precision"),
        ("distributed_type: FSDP\nnum_processes: many", "ZP201", "num_processes"),
        ("distributed_type: FSDP\nfsdp_config: {fsdp_version: 3}", "ZP201", "fsdp_version"),
        ("distributed_type: FSDP\nfsdp_config: {fsdp_ofload_params: true}", "ZP201", "fsdp_config.fsdp_ofload_params"),
        (
            "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: FULL_SHARD}",
            "ZP201",
            "fsdp_reshard_after_forward",
        ),
        (
            "distributed_type: FSDP\nnum_processes: 8\nparallelism_config: {parallelism_config_dp_shard_size: 4}",
            "ZP209",
            "parallelism_config",
        ),
        (
            "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2, offload_param_device: cpu}",
            "ZP206",
            "deepspeed_config.offload_param_device",
        ),
    ],
)
def test_what_is_wrong_has_a_code_and_a_place(tmp_path: Path, text: str, code: str, key: str) -> None:
    assert (code, key) in {(each.code, each.place.key) for each in written(tmp_path, text).findings}


def test_no_is_fp32_and_stops_accelerate_where_it_is_not_quoted(tmp_path: Path) -> None:
    for text, codes in (("no", ["ZP201"]), ("'no'", []), ('"no"', [])):
        found = written(tmp_path, f"distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: {text}")
        assert (found.options["recipe"], [each.code for each in found.findings]) == ("fp32-adam", codes)


def test_no_wrapping_policy_is_one_unit_and_not_judged(tmp_path: Path) -> None:
    found = written(tmp_path, "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}")
    assert found.unmodelled
    assert ("ZP301", "warning", "fsdp_config.fsdp_auto_wrap_policy") in told(found)


def test_keys_without_their_prefix_are_honoured(tmp_path: Path) -> None:
    text = "distributed_type: FSDP\nfsdp_config: {sharding_strategy: SHARD_GRAD_OP, offload_params: true}"
    options = written(tmp_path, text).options
    assert (options["stage"], options["offload"]) == (("2",), ("params=cpu",))


def test_the_old_fp16_is_a_precision(tmp_path: Path) -> None:
    assert written(tmp_path, "distributed_type: MULTI_GPU\nfp16: true").options["recipe"] == "fsdp-mixed"


def test_findings_of_a_referenced_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 7}}', "utf-8")
    file = tmp_path / "accelerate.yaml"
    file.write_text("distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}", "utf-8")
    assert f"::error file={tmp_path}/ds.json,line=1," in run("check", str(file), "--format", "github").stdout


def test_aliases_that_multiply_are_no_text(tmp_path: Path) -> None:
    """Ten to the twelfth leaves from a kilobyte."""
    lines = ["distributed_type: FSDP", "gpu_ids: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"command_file: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    lines += [f"{key}: *a11" for key in ("num_processes", "mixed_precision", "fsdp_config")]
    found = written(tmp_path, "\n".join(lines))
    assert {each.place.key for each in found.findings} >= {"num_processes", "mixed_precision", "fsdp_config"}


def test_json_is_read_as_well_and_a_format_can_be_forced(tmp_path: Path) -> None:
    file = tmp_path / "accelerate.json"
    file.write_text(json.dumps({"distributed_type": "MULTI_GPU", "num_processes": 8}), "utf-8")
    assert read_config(str(file)).options["gpus"] == "8"
    ran = run("check", str(file), "--from", "deepspeed")
    assert (ran.status, "no key of a DeepSpeed configuration" in ran.stderr) == (2, True)


@pytest.mark.parametrize(
    "tail", ["{" * 1000, "&a [*a]", "? [a]: b", "!!python/object/apply:os.system [id]", "\t- x", "'", "\x00"]
)
def test_hostile_yaml_is_refused_or_harmless(tmp_path: Path, tail: str) -> None:
    with contextlib.suppress(InputError):
        assert written(tmp_path, f"distributed_type: FSDP\nfsdp_config: {tail}").kind == "accelerate"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(tail=st.text(max_size=100))
def test_any_text_is_read_or_refused(tmp_path: Path, tail: str) -> None:
    with contextlib.suppress(InputError):
        found = written(tmp_path, f"distributed_type: FSDP\n{tail}")
        assert all(each.severity in SEVERITIES and str(each.place.key).isprintable() for each in found.findings)


def test_a_plan_that_is_not_modelled_is_said_with_the_gpus_of_the_file(tmp_path: Path) -> None:
    """What was typed is not at fault: no --gpus is missing."""
    zero = {"stage": 2, "overlap_comm": True, "offload_optimizer": {"device": "cpu"}}
    config = {"zero_optimization": zero, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": 1}
    (tmp_path / "ds.json").write_text(json.dumps(config), "utf-8")
    file = tmp_path / "accelerate.yaml"
    text = "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config: {deepspeed_config_file: ds.json}"
    file.write_text(text, "utf-8")
    ran = run("check", str(file), *CARD, "--format", "json")
    assert (ran.status, ran.stderr) == (0, "")
    assert [each["code"] for each in json.loads(ran.stdout)["results"][0]["findings"]] == ["ZP301"]
