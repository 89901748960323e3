"""Out-of-memory messages of public reports, decoded.

A-01: hiyouga/LLaMA-Factory issue 260. A-02: hiyouga/LLaMA-Factory issue 1158. B-12: NVIDIA/Megatron-LM issue 525.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command import run
from zeroplan.errors import InputError
from zeroplan.formats.oom import read_message

GIB = 2**30
OLD = (
    "CUDA out of memory. Tried to allocate {} (GPU 0; {} total capacity; {} already allocated; {} free; {} reserved in "
    "total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
)
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU 3 has a total capacity of {} of which {} is "
    "free. Process 123 has 78.10 GiB memory in use. Of the allocated memory {} is allocated by PyTorch, and {} is "
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
A_01 = OLD.format("26.08 GiB", "31.75 GiB", "26.14 GiB", "4.80 GiB", "26.15 GiB")
A_02 = NEW.format("12.94 GiB", "79.35 GiB", "1.20 GiB", "77.65 GiB", "20.00 MiB")
B_12 = OLD.format("786.00 MiB", "31.74 GiB", "28.80 GiB", "500.00 MiB", "29.97 GiB")
BAICHUAN_13B = ["--params", "13896668160", "--gpus", "4", "--framework", "deepspeed"]
GPT2_LARGE = {
    "model_type": "gpt2",
    "n_embd": 1280,
    "n_layer": 36,
    "n_head": 20,
    "n_positions": 1024,
    "vocab_size": 50257,
}


def diagnosed(*args: str) -> dict[str, Any]:
    [found] = json.loads(run("diagnose", *args, "--format", "json").stdout)["results"]
    assert isinstance(found, dict)
    return found


def test_both_forms_are_read() -> None:
    old, new = read_message(A_01), read_message(A_02)
    assert [
        round(size.bytes / GIB, 2) for size in (old.requested, old.total, old.allocated, old.free, old.reserved) if size
    ]
    assert old.cached == round(26.15 * GIB) - round(26.14 * GIB)
    assert (new.total, new.cached) == ((round(79.35 * GIB), -(-GIB // 200)), 20 * 2**20)


def test_a_whole_fp32_copy_is_named() -> None:
    """26.08 GiB are 4 bytes times all parameters: no plan at stage 2 on 8 GPUs holds that."""
    found = diagnosed(A_01, "--params", "7000559616", "--gpus", "8", "--framework", "deepspeed", "--stage", "2")
    assert [each["formula"] for each in found["matches"]] == ["4 * params"]
    assert found["recommended_stage"] == 3


def test_the_gradient_copy_at_the_step_is_named() -> None:
    """4 bytes times a shard, asked for with 77.65 GiB in tensors, which is what the ledger has before it."""
    found = diagnosed(A_02, *BAICHUAN_13B, "--stage", "2")
    assert found["matches"][0]["what"] == "fp32 gradient copy"
    assert found["recommended_stage"] == 3
    table = run("diagnose", A_02, *BAICHUAN_13B, "--stage", "2").stdout
    assert "fp32 gradient copy    12.94  4 * ceil(params / gpus)              77.65  ZeRO-2" in table


def test_logits_are_named_and_a_plan_that_the_run_was_not(tmp_path: Path) -> None:
    """50,257 x 4,096 x 4 bytes, in whole 2 MiB. The report's run had no flash attention."""
    model = tmp_path / "config.json"
    model.write_text(json.dumps(GPT2_LARGE), "utf-8")
    args = ["--model", str(model), "--gpus", "1", "--framework", "megatron", "--seq-len", "1024", "--micro-batch", "4"]
    assert diagnosed(B_12, *args)["matches"][0]["what"] == "logits, fp32"
    assert "the run was another. Check --attention" in " ".join(run("diagnose", B_12, *args).stdout.split())


def test_fragmentation_is_told_from_shortage() -> None:
    apart = NEW.format("2.00 GiB", "79.35 GiB", "0.50 GiB", "50.00 GiB", "28.00 GiB")
    assert "Fragmentation: PyTorch held 28.00 GiB in pieces;" in run("diagnose", apart).stdout
    assert "Too little: 11.72 GiB more are needed" in run("diagnose", A_02).stdout


def test_a_small_request_is_no_tensor() -> None:
    message = A_02.replace("12.94 GiB", "20.00 MiB")
    assert diagnosed(message, *BAICHUAN_13B)["matches"] == []
    assert "a small block" in run("diagnose", message).stdout


def test_a_log_and_standard_input(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"step 1\n[rank0]: {A_02}\nnoise\n[rank1]: {A_02}\n", "utf-8")
    found = diagnosed(str(log))
    assert (found["requested_bytes"], found["messages"]) == (round(12.94 * GIB), 2)
    command = [sys.executable, "-m", "zeroplan", "diagnose", "-", "--format", "json"]
    piped = subprocess.run(command, input=log.read_text("utf-8"), capture_output=True, text=True, check=True)
    assert json.loads(piped.stdout)["results"] == [found]


@pytest.mark.parametrize(
    ("message", "said"),
    [("out of paper", "neither an out-of-memory message nor a file"), ("/dev/null", "not a regular file")],
)
def test_what_is_no_message_is_said_in_a_line(message: str, said: str) -> None:
    ran = run("diagnose", message)
    assert (ran.status, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert said in ran.stderr


def test_a_log_without_a_message_is_said(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("all is well", "utf-8")
    assert "no CUDA out of memory message" in run("diagnose", str(log)).stderr


@given(text=st.text(max_size=60), number=st.floats(0, 1e9), unit=st.sampled_from(["bytes", "MiB", "GiB", "TiB"]))
def test_any_text_around_a_message_is_read(text: str, number: float, unit: str) -> None:
    found = read_message(f"{text}Tried to allocate {number:.2f} {unit}{text}")
    assert found.requested.bytes >= 0
    if "Tried" not in text:
        with pytest.raises(InputError):
            read_message(text)


def test_without_what_was_allocated_nothing_is_likelier() -> None:
    table = run("diagnose", "Tried to allocate 12.94 GiB", *BAICHUAN_13B, "--stage", "2").stdout
    first = " ".join(table.split("\n\n")[0].split())
    assert first.startswith("Out of memory at 12.94 GiB: master weights, fp32, momentum, fp32")
    assert first.endswith("all of that size.")


def test_absurd_sizes_are_no_device() -> None:
    assert diagnosed("Tried to allocate 0.00 bytes. 0.00 GiB total capacity", *BAICHUAN_13B)["total_bytes"] == 0


def test_a_row_is_a_match() -> None:
    lines = run("diagnose", A_02, *BAICHUAN_13B, "--stage", "2", "--format", "csv").stdout.splitlines()
    assert lines[0].split(",")[-4:] == ["what", "formula", "bytes", "stages"]
    assert "fp32 gradient copy" in lines[1]


def test_old_messages_say_what_is_cached_beside_tensors() -> None:
    """torch 1.0 to 1.3: cached less allocated."""
    old = "Tried to allocate 2.00 GiB (GPU 0; 15.90 GiB total capacity; 12.10 GiB already allocated; 1.20 GiB free; {})"
    assert read_message(old.format("2.50 GiB cached")).cached == round(2.5 * GIB)
    assert "Fragmentation" in run("diagnose", old.format("2.50 GiB cached")).stdout


def test_a_limit_of_the_program_is_told() -> None:
    message = A_01.replace("4.80 GiB free", "40.00 GiB free; 26.20 GiB allowed").replace("31.75", "79.15")
    assert "own limit of 26.20 GiB is reached" in run("diagnose", message).stdout
    assert "So much was free" in run("diagnose", A_01.replace("4.80 GiB free", "40.00 GiB free")).stdout


def test_the_misspelling_and_wrapped_lines_are_read() -> None:
    found = read_message(A_02.replace("capacity", "capacty").replace("12.94 GiB", "12.94\nGiB"))
    assert found.total == read_message(A_02).total
    assert found.requested == read_message(A_02).requested


def test_an_absurd_request_is_a_bug_of_the_program() -> None:
    ran = run("diagnose", "CUDA out of memory. Tried to allocate more than 1EB memory.")
    assert (ran.status, "wrong or negative size" in ran.stderr) == (2, True)


def test_memory_of_others_is_not_there_for_the_plan() -> None:
    """23 GiB outside PyTorch: ZeRO-3's 58 GiB do not fit beside them, and are not the way out of a run at stage 3."""
    message = NEW.format("12.95 GiB", "79.15 GiB", "1.12 GiB", "54.73 GiB", "0.10 GiB")
    assert diagnosed(message, *BAICHUAN_13B)["recommended_stage"] is None
    assert "ZeRO-3 fits" not in run("diagnose", message, *BAICHUAN_13B, "--stage", "3").stdout


def test_rounded_parameters_still_match() -> None:
    rounded = ["--params", "13.9e9", *BAICHUAN_13B[2:], "--stage", "2"]
    assert diagnosed(A_02, *rounded)["matches"][0]["what"] == "fp32 gradient copy"


def test_bytes_that_are_no_text_are_read() -> None:
    command = [sys.executable, "-X", "utf8=1", "-m", "zeroplan", "diagnose", "-"]
    raw = b"\xff\xfe CUDA out of memory. Tried to allocate 12.95 GiB."
    piped = subprocess.run(
        command, input=raw, capture_output=True, check=False, env={"PYTHONIOENCODING": "utf-8:strict"}
    )
    assert (piped.returncode, piped.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("free", "allocated", "cached", "cause"),
    [
        ("0.50 GiB", "50.00 GiB", "28.00 GiB", "fragmented"),
        ("1.50 GiB", "76.00 GiB", "1.00 GiB", "fragmented"),
        ("3.00 GiB", "70.00 GiB", "0.10 GiB", "taken"),
        ("0.50 GiB", "78.00 GiB", "0.10 GiB", "too-little"),
    ],
)
def test_the_cause_is_in_the_answer(free: str, allocated: str, cached: str, cause: str) -> None:
    assert diagnosed(NEW.format("2.00 GiB", "79.35 GiB", free, allocated, cached))["cause"] == cause


def test_the_cause_is_unknown_where_the_message_is_short() -> None:
    assert diagnosed("Tried to allocate 2.00 GiB")["cause"] is None


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("RuntimeError: CUDA error: out of memory", "is the CUDA driver's, which says no size"),
        ("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory", "is of the host's memory"),
    ],
)
def test_messages_of_another_kind_are_told_apart(message: str, said: str) -> None:
    ran = run("diagnose", message)
    assert (ran.status, ran.stdout) == (2, "")
    assert said in ran.stderr
