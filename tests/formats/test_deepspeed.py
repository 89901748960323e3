"""DeepSpeed configurations of public repositories and bug reports: what they say, and what is wrong with them.

autotp: hiyouga/LLaMA-Factory examples/deepspeed/ds_z2_autotp_config.json. unprefixed: axolotl-ai-cloud/axolotl
deepspeed_configs/zero3.json. old-offload, unknown-key, boolean-stage: deepspeedai/DeepSpeed runtime/zero/config.py and
issue 610. misplaced: deepspeedai/DeepSpeed issues 5349 and 2721.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zeroplan.core.findings import ERROR, SEVERITIES
from zeroplan.errors import InputError
from zeroplan.formats.deepspeed import read_deepspeed
from zeroplan.formats.deepspeed_keys import DEFAULT_MAX_LIVE, MAX_LIVE
from zeroplan.formats.derived import batch_findings, derived_batch
from zeroplan.formats.presets import Presets
from zeroplan.formats.reading import Reading

DATA = Path(__file__).parent / "data" / "deepspeed"


def read(name: str, hidden: int | None = None) -> Reading:
    return read_deepspeed(str(DATA / f"{name}.json"), hidden)


def told(reading: Reading) -> set[tuple[str, str, str]]:
    return {(found.code, found.severity, found.place.key) for found in reading.findings}


def written(path: Path, data: object) -> Reading:
    file = path / "ds_config.json"
    file.write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    return read_deepspeed(str(file))


def test_comments_auto_and_what_is_not_modelled() -> None:
    found = read("autotp")
    assert found.options["stage"] == ("2",)
    assert found.options["set"] == ("reduce_bucket_size=200000000", "overlap_comm=false")
    assert ("ZP301", "warning", "tensor_parallel") in told(found)
    assert ("ZP302", "note", "bf16") in told(found)
    assert ("ZP302", "note", "train_micro_batch_size_per_gpu") in told(found)
    assert not any(found.code == "ZP201" for found in found.findings)


def test_zero_is_a_value_and_prefixes_are_optional() -> None:
    found = read("unprefixed")
    assert set(found.options["set"]) == {
        "sub_group_size=0",
        "stage3_max_live_parameters=0",
        "stage3_max_reuse_distance=0",
    }
    assert ("ZP302", "note", "zero_optimization.reduce_bucket_size") in told(found)
    assert all(found.severity == "note" for found in found.findings)


def test_auto_sizes_are_of_the_width() -> None:
    """hidden^2 and nine tenths of it, rounded down."""
    options = read("unprefixed", hidden=4096).options["set"]
    assert "reduce_bucket_size=16777216" in options
    assert "stage3_prefetch_bucket_size=15099494" in options


def test_old_spellings_with_comments_and_trailing_commas() -> None:
    found = read("old-offload")
    assert found.options["offload"] == ("optimizer=cpu",)
    assert set(found.options["set"]) == {"reduce_bucket_size=200000000", "overlap_comm=true"}
    assert told(found) == {
        ("ZP204", "warning", "zero_optimization.cpu_offload"),
        ("ZP204", "warning", "zero_optimization.cpu_offload_use_pin_memory"),
    }
    assert [found.place.line for found in found.findings] == [6, 7]


def test_an_unknown_key_of_zero_is_an_error_with_the_likely_one() -> None:
    found = read("unknown-key")
    [error] = [each for each in found.findings if each.severity == ERROR]
    assert error.place.key == "zero_optimization.cpu_offload_params"
    assert "offload_param" in error.said
    assert found.options["offload"] == ("optimizer=cpu",)


def sizes_of(reading: Reading) -> dict[str, int]:
    """The batch sizes in the file."""
    said = (name for name in ("micro_batch", "grad_accum") if name in reading.options)
    return {name: int(reading.options[name]) for name in said}


def test_a_boolean_is_stage_1() -> None:
    found = read("boolean-stage")
    assert found.options["stage"] == ("1",)
    assert found.options["recipe"] == "deepspeed-16bit"
    assert ("ZP204", "warning", "zero_optimization") in told(found)
    assert ("ZP204", "warning", "bfloat16") in told(found)


def test_keys_in_the_wrong_place() -> None:
    found = read("misplaced")
    assert found.options["offload"] == ("optimizer=nvme",)
    assert ("ZP202", "error", "zero_optimization.aio") in told(found)
    assert ("ZP202", "warning", "offload_param") in told(found)
    assert "stage3_prefetch_bucket_size=1000000000" in found.options["set"]
    [prefetch] = [each for each in found.findings if each.code == "ZP109"]
    assert (prefetch.severity, "2.00 GB" in prefetch.said) == ("warning", True)


@pytest.mark.parametrize(
    ("config", "code", "key"),
    [
        ('{"bf16": {}, "bf16": {"enabled": true}}', "ZP203", "bf16"),
        ({"zero_optimization": {"stage": 3, "mics_shard_size": 8}}, "ZP205", "zero_optimization.mics_shard_size"),
        (
            {"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}},
            "ZP206",
            "zero_optimization.offload_param",
        ),
        ({"zero_optimization": {"stage": 4}}, "ZP201", "stage"),
        ({"zero_optimization": 7}, "ZP201", "zero_optimization"),
        (
            {"zero_optimization": {"reduce_bucket_size": "big"}},
            "ZP201",
            "zero_optimization.reduce_bucket_size",
        ),
        (
            {"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}},
            "ZP201",
            "zero_optimization.offload_param.device",
        ),
        ({"gradient_accumulation_steps": -1}, "ZP201", "gradient_accumulation_steps"),
        ({"bf16": {}, "train_micro_batch": 4}, "ZP201", "train_micro_batch"),
    ],
)
def test_what_is_wrong_has_a_code_and_a_place(tmp_path: Path, config: object, code: str, key: str) -> None:
    assert (code, key) in {(each.code, each.place.key) for each in written(tmp_path, config).findings}


@pytest.mark.parametrize(
    ("batch", "micro", "accum", "gpus", "right"),
    [(256, 2, 18, 7, False), (64, 4, 8, 2, True), (9, 1, 3, 1, False), (256, 2, 16, 8, True)],
)
def test_batch_sizes_multiply(tmp_path: Path, batch: int, micro: int, accum: int, gpus: int, right: bool) -> None:
    config = {
        "train_batch_size": batch,
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": accum,
    }
    found = list(batch_findings(reading := written(tmp_path, config), sizes_of(reading), gpus))
    assert [each.code for each in found] == ([] if right else ["ZP207"])


def test_zero_plus_plus_and_precision(tmp_path: Path) -> None:
    zero: dict[str, Any] = {"stage": 3, "zero_hpz_partition_size": 8, "zero_quantized_weights": True}
    config = {"zero_optimization": zero, "bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}
    options = written(tmp_path, config).options
    assert (options["hpz"], options["quantize"], options["recipe"]) == ("8", ("weights",), "deepspeed-fp32-accum")
    assert written(tmp_path, {"zero_optimization": {"stage": 1}}).options["recipe"] == "fp32-adam"


@pytest.mark.parametrize("text", ["", "[]", "7", '"x"', "{" * 1000, "[" * 100_000, "\x00", "{a: [}"])
def test_what_is_no_configuration_is_said_in_a_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        written(tmp_path, text)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
KEYS = st.sampled_from(
    ["zero_optimization", "stage", "offload_param", "device", "bf16", "enabled", "reduce_bucket_size", "aio", "auto"]
) | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS | st.just("auto"), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(config=st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_object_is_read_without_a_traceback(tmp_path: Path, config: dict[str, Any]) -> None:
    found = written(tmp_path, {"bf16": {}, **config})
    assert all(each.severity in SEVERITIES for each in found.findings)
    assert all(str(each.place.key).isprintable() or not each.place.key for each in found.findings)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path: Path, raw: bytes) -> None:
    file = tmp_path / "ds_config.json"
    file.write_bytes(raw)
    with contextlib.suppress(InputError):
        assert read_deepspeed(str(file)).kind == "deepspeed"


def test_what_has_no_key_of_deepspeed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no key of a DeepSpeed configuration"):
        written(tmp_path, {"hidden_size": 4096})


@pytest.mark.parametrize(
    ("config", "code", "key"),
    [
        ({"bf16": {"enabled": True, "bf16_optimizer_states": True}}, "ZP301", "bf16.bf16_optimizer_states"),
        (
            {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3}}},
            "ZP301",
            "zero_optimization.offload_optimizer.ratio",
        ),
        (
            {"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 1e12}},
            "ZP301",
            "zero_optimization.stage3_param_persistence_threshold",
        ),
        ({"zero_optimization": {"stage": 2, "zenflow": {"topk_ratio": 0.1}}}, "ZP301", "zero_optimization.zenflow"),
        ({"optimizer": {"type": "SGD"}}, "ZP301", "optimizer.type"),
        ({"torch_autocast": {"enabled": True}}, "ZP301", "torch_autocast"),
        ({"tensor_parallel": {"autotp_size": 2}}, "ZP301", "tensor_parallel"),
    ],
)
def test_what_changes_memory_and_is_not_modelled_gets_no_verdict(
    tmp_path: Path, config: dict[str, Any], code: str, key: str
) -> None:
    found = written(tmp_path, config)
    assert found.unmodelled
    assert (code, key) in {(each.code, each.place.key) for each in found.findings}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"bf16": {}, "elasticity": {}}, "elasticity"),
        ({"bf16": {}, "nebula": {}}, "nebula"),
        ({"bf16": {"enabled": True}, "fp16": {"enabled": True}}, "fp16"),
        ({"bf16": {"enabled": True, "loss_scale": 0}}, "bf16.loss_scale"),
        ({"zero_optimization": {"_comment": ""}}, "zero_optimization._comment"),
        ({"zero_optimization": {"offload_optimizer": "cpu"}}, "zero_optimization.offload_optimizer"),
        ({"zero_optimization": {"offload_optimizer": {"device": "CPU"}}}, "zero_optimization.offload_optimizer.device"),
        (
            {"zero_optimization": {"offload_optimizer": {"pinmemory": True}}},
            "zero_optimization.offload_optimizer.pinmemory",
        ),
        ({"zero_optimization": {"reduce_bucket_size": 0}}, "zero_optimization.reduce_bucket_size"),
        ({"zero_optimization": {"reduce_bucket_size": 1.5}}, "zero_optimization.reduce_bucket_size"),
        (
            {"zero_optimization": {"cpu_offload": True, "offload_optimizer": {"device": "cpu"}}},
            "zero_optimization.offload_optimizer",
        ),
    ],
)
def test_what_deepspeed_refuses_is_an_error(tmp_path: Path, config: dict[str, Any], key: str) -> None:
    assert key in {each.place.key for each in written(tmp_path, config).findings if each.severity == ERROR}


def test_what_deepspeed_takes_is_no_error(tmp_path: Path) -> None:
    for stage in ("3", 3.0):
        config = {
            "zero_optimization": {"stage": stage},
            "bf16": {"enabled": "true"},
            "tensor_parallel": {"autotp_size": 1},
        }
        found = written(tmp_path, {**config, "gradient_accumulation_steps": 2.0, "train_micro_batch_size_per_gpu": 1})
        assert (found.options["stage"], found.options["grad_accum"]) == (("3",), "2")
        assert (found.options["recipe"], found.findings) == ("deepspeed-16bit", [])


@pytest.mark.parametrize(
    ("config", "derived"),
    [
        ({"train_batch_size": 256}, {"micro_batch": "32"}),
        ({"train_batch_size": 256, "gradient_accumulation_steps": 4}, {"micro_batch": "8"}),
        ({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 2}, {"grad_accum": "16"}),
        ({"train_micro_batch_size_per_gpu": 2}, {}),
        ({"train_batch_size": 256, "train_micro_batch_size_per_gpu": "auto"}, {}),
    ],
)
def test_batch_sizes_that_are_not_said_follow(tmp_path: Path, config: dict[str, Any], derived: dict[str, str]) -> None:
    found = written(tmp_path, config)
    assert derived_batch(found, sizes_of(found), 8) == derived
    assert not list(batch_findings(found, sizes_of(found), 8))


def test_a_total_that_does_not_divide_is_refused(tmp_path: Path) -> None:
    found = written(tmp_path, {"train_batch_size": 100, "train_micro_batch_size_per_gpu": 1})
    assert [each.code for each in batch_findings(found, sizes_of(found), 8)] == ["ZP207"]


def test_huge_numbers_and_many_keys_are_refused_in_a_line(tmp_path: Path) -> None:
    for text in (
        '{"zero_optimization": {"stage": 1e400, "sub_group_size": ' + "9" * 5000 + "}}",
        "{" + "a:1\n" * 5000 + "}",
    ):
        with pytest.raises(InputError):
            written(tmp_path, text)


def test_an_empty_stage_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    assert ("ZP201", "error", "stage") in told(written(tmp_path, {"zero_optimization": {"stage": ""}}))


def test_fp32_accumulation_counts_where_a_launcher_says_the_precision(tmp_path: Path) -> None:
    wide = {"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"enabled": "auto"}}
    assert written(tmp_path, wide).options["recipe"] == "deepspeed-fp32-accum"
    given_by = read_deepspeed(str(tmp_path / "ds_config.json"), precision="bf16")
    assert given_by.options["recipe"] == "deepspeed-fp32-accum"


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({"bf16": {"enabled": "yes"}}, {"recipe": "deepspeed-16bit"}),
        ({"bf16": {"enabled": False}, "bfloat16": {"enabled": True}}, {"recipe": "fp32-adam"}),
        (
            {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "torch.float32"}},
            {"recipe": "deepspeed-fp32-accum"},
        ),
        ({"zero_optimization": {"stage": 2, "cpu_offload": "true"}}, {"offload": ("optimizer=cpu",)}),
        ({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": "8"}}, {"hpz": "8"}),
        ({"zero_optimization": {"stage": 3, "zero_quantized_weights": "true"}}, {"quantize": ("weights",)}),
        ({"zero_optimization": {"stage": 2, "reduce_bucket_size": "1000"}}, {"set": ("reduce_bucket_size=1000",)}),
        ({"zero_optimization": {"stage": 2, "overlap_comm": "false"}}, {"set": ("overlap_comm=false",)}),
    ],
)
def test_what_deepspeed_takes_for_a_value_is_one(
    tmp_path: Path, config: dict[str, Any], options: dict[str, Any]
) -> None:
    """Its records coerce texts and numbers; tried with 0.19.8."""
    assert options.items() <= written(tmp_path, config).options.items()


@pytest.mark.parametrize(
    ("config", "key", "judged"),
    [
        ({"bf16": {"enabled": True, "bf16_master_weights_and_grads": 1}}, "bf16.bf16_master_weights_and_grads", False),
        ({"communication_data_type": "fp32"}, "communication_data_type", False),
        ({"compile": {"deepcompile": True}}, "compile.deepcompile", False),
        ({"optimizer": {"type": "AdamW", "params": {"amsgrad": True}}}, "optimizer.params", False),
        (
            {"zero_optimization": {"stage": 1, "contiguous_gradients": False}},
            "zero_optimization.contiguous_gradients",
            True,
        ),
    ],
)
def test_what_changes_memory_or_traffic_is_said(tmp_path: Path, config: dict[str, Any], key: str, judged: bool) -> None:
    found = written(tmp_path, config)
    assert ("ZP301", "warning", key) in told(found)
    assert found.unmodelled is not judged


def test_the_limit_of_gathered_weights_is_the_frameworks_own() -> None:
    assert Presets().framework("deepspeed").limits[MAX_LIVE] == DEFAULT_MAX_LIVE
