"""Options of offload, groups, quantisation and settings; strategies side by side; plans in files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import GOOD, answer, run

DEEPSPEED = [*GOOD, "--framework", "deepspeed", "--gpu", "h100"]
PLAN: dict[str, list[str]] = {
    "plain": [*GOOD, "--gpu", "h100"],
    "offload": [*DEEPSPEED, "--offload", "optimizer=cpu", "--offload", "params=cpu"],
    "groups": [*GOOD, "--framework", "fsdp2", "--shard-group", "8", "--set", "no_sync=true", "--grad-accum", "4"],
    "zero++": [*DEEPSPEED, "--hpz", "8", "--quantize", "weights,gradients", "--set", "reduce_bucket_size=2e8"],
    "own card": [*GOOD, "--memory", "44.35GiB", "--headroom", "5%", "--stage", "2,3"],
    "whole": [
        *("--model", "llama-3.1-8b", "--gpus", "8", "--seq-len", "4096", "--recompute", "full", "--node", "dgx-h100"),
        *("--framework", "fsdp1", "--offload", "activations=cpu", "--fused", "none", "--experts", "listed"),
    ],
}


@pytest.mark.parametrize("name", PLAN)
def test_a_plan_in_a_file_is_the_same_question(name: str, tmp_path: Path) -> None:
    saved = run("fit", *PLAN[name], "--format", "json")
    whole, request = tmp_path / "answer.json", tmp_path / "request.json"
    whole.write_text(saved.stdout, "utf-8")
    request.write_text(json.dumps(json.loads(saved.stdout)["request"]), "utf-8")
    for file in (whole, request):
        again = run("fit", "--plan", str(file), "--format", "json")
        assert (again.status, again.stdout) == (saved.status, saved.stdout)


def test_what_is_typed_wins_over_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(run("fit", *PLAN["offload"], "--format", "json").stdout, "utf-8")
    found = answer("fit", "--plan", str(file), "--gpus", "32", "--gpu", "a100-80gb", "--offload", "optimizer=cpu")
    assert found["request"]["gpus"] == 32
    assert found["request"]["gpu"] == ["a100-sxm4-80gb"]
    assert found["request"]["offload"] == {"optimizer": "cpu"}
    assert answer("explain", "--plan", str(file), "--stage", "3", "momentum")["request"]["gpus"] == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds no request"),
        ("{}", "--params: is missing"),
        ("not json", "is not JSON"),
        ('{"request": {"gpus": "many", "params": 1}}', "gpus: 'many' is not a number"),
        ('{"gpus": true}', "is not a number"),
        ('{"gpuz": 8}', "Did you mean gpu or gpus"),
        ('{"params": 1e9, "gpus": 8, "offload": "cpu"}', "is not a table"),
        ('{"params": 1e9, "gpus": 8, "stages": 3}', "is not a list"),
        ('{"params": 1e9, "gpus": 8, "memory_bytes": 1.5}', "is not a number of bytes"),
        ('{"params": 7e9, "gpus": 8, "\\u001b[31m": 1}', "no part of a request"),
        ("[" * 100000, "nested too deeply"),
    ],
)
def test_bad_plans_are_said_in_a_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text, "utf-8")
    ran = run("fit", "--plan", str(file))
    assert ran.status == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "\x1b" not in ran.stderr
    assert not ran.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--offload", "optimiser=cpu"], "Did you mean optimizer"),
        (["--offload", "optimizer=tape"], "is not a place"),
        (["--offload", "optimizer=nvme", "--stage", "2"], "at stage 1 and 2 offers cpu, not nvme"),
        (["--offload", "params=cpu", "--stage", "2"], "deepspeed has it at stage 3, not 2"),
        (["--shard-group", "8"], "not modelled for deepspeed"),
        (["--hpz", "7"], "64 GPUs are not a multiple of 7"),
        (["--hpz", "8", "--offload", "params=cpu"], "is not modelled together with --hpz"),
        (["--quantize", "weight"], "Did you mean weights"),
        (["--set", "reduce_bucket=1"], "Did you mean reduce_bucket_size"),
        (["--set", "overlap_comm=perhaps"], "neither true nor false"),
        (["--set", "quantize_group_size=0"], "outside 1 to"),
        (["--offload", "activations=nvme"], "to NVMe is not modelled"),
        (["--offload", "activations=cpu"], "changes nothing without --seq-len"),
        (["--cpu-offload"], "Did you mean --offload?"),
        (["--hpz", "1"], "divides nothing"),
        (["--framework", "fsdp2", "--offload", "optimizer"], "It has --offload params: weights, gradients"),
    ],
)
def test_options_that_cannot_be_are_said_in_a_line(args: list[str], said: str) -> None:
    ran = run("fit", *DEEPSPEED, *args)
    assert ran.status == 2
    assert said in ran.stderr
    assert not ran.stdout


def only(found: dict[str, Any]) -> dict[int, dict[str, Any]]:
    [card] = found["results"]
    return {stage["stage"]: stage for stage in card["stages"]}


def test_settings_change_the_ledgers() -> None:
    plain = only(answer("fit", *DEEPSPEED))
    less = only(answer("fit", *DEEPSPEED, "--set", "reduce_bucket_size=1e8"))
    more = only(answer("fit", *DEEPSPEED, "--set", "overlap_comm=true"))
    reused = only(answer("fit", *DEEPSPEED, "--set", "stage3_max_reuse_distance=0"))
    off = only(answer("fit", *DEEPSPEED, "--set", "overlap_comm=false"))
    assert less[2]["peak_bytes"] < plain[2]["peak_bytes"] < more[2]["peak_bytes"]
    assert reused[3]["traffic_psi"] == 3
    assert reused[3]["traffic_psi"] > plain[3]["traffic_psi"]
    assert off == plain


def test_offload_says_the_host_and_its_price() -> None:
    text = " ".join(run("fit", *DEEPSPEED, "--offload", "optimizer").stdout.split())
    assert "A node of 8 GPUs needs 16.88 to 25.31 of 2,000.00 GB host RAM; its copies take at least" in text
    assert "Offloaded: optimizer on the CPU." in text
    assert "--offload optimizer=cpu" in text


def test_groups_split_the_traffic_by_link() -> None:
    text = " ".join(run("fit", *GOOD, "--framework", "fsdp2", "--shard-group", "8", "--gpu", "h100").stdout.split())
    assert "Inside nodes" in text
    assert "across them" in text


def test_deepspeeds_host_estimator_counts_all_gpus() -> None:
    """2,880 GB per node for 7.5B on 64 GPUs: 4 bytes per GPU of all nodes, and half on top."""
    found = answer("explain", *DEEPSPEED, "--stage", "2", "--offload", "optimizer", "estimator")
    gpu, host = found["claims"]
    assert (gpu["bytes"], host["bytes"]) == (15 * 10**9, 2880 * 10**9)
    assert "counts the GPUs of all nodes" in host["judgement"]


def test_strategies_stand_side_by_side() -> None:
    strategies = ["stage=3", "stage=3,offload=optimizer", "stage=3,framework=fsdp2,shard-group=8"]
    args = [word for strategy in strategies for word in ("--strategy", strategy)]
    found = answer("compare", *DEEPSPEED, *args)["results"]
    assert [row["strategy"] for row in found] == strategies
    plain, off, hybrid = found
    assert off["taken_bytes"] < plain["taken_bytes"] < hybrid["taken_bytes"]
    assert off["host"]
    assert hybrid["request"]["shard_group"] == 8
    text = run("compare", *DEEPSPEED, *args).stdout
    assert "moves its bytes in the least time" in text
    assert "host_ram_low" in run("compare", *DEEPSPEED, *args, "--format", "csv").stdout


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("stage=3,foo=1", "no part of a strategy is named 'foo'"),
        ("", "has an empty part"),
        ("stage", "has no value"),
        ("stage=7", "is not a ZeRO stage"),
        ("stage=3,hpz=8,hpz=4", "stands twice"),
        ("gpu=h100", "no part of a strategy"),
        ("stage=3,recompute=full", "changes nothing without --seq-len"),
        ("stage=3,seq-len=4096", "needs the model's shape"),
    ],
)
def test_bad_strategies_are_said_in_a_line(strategy: str, said: str) -> None:
    ran = run("compare", *DEEPSPEED, "--strategy", strategy)
    assert ran.status == 2
    assert said in ran.stderr
    assert not ran.stdout


def test_strategies_need_a_card_and_have_an_order_of_their_own() -> None:
    assert "--gpu: is missing" in run("compare", *GOOD, "--strategy", "stage=3").stderr
    assert "--sort" in run("compare", *DEEPSPEED, "--strategy", "stage=3", "--sort", "price").stderr


def test_strategies_win_over_a_plan(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(
        run("fit", *DEEPSPEED, "--offload", "optimizer", "--stage", "3", "--format", "json").stdout, "utf-8"
    )
    names = ["stage=2,grad-accum=4", "offload=optimizer=gpu", "framework=fsdp2,stage=3,offload=params"]
    args = [word for name in names for word in ("--strategy", name)]
    two, on_gpu, torch = answer("compare", "--plan", str(file), *args)["results"]
    assert (two["stage"], two["request"]["grad_accum"]) == (2, 4)
    assert on_gpu["request"]["offload"] == {}
    assert (torch["request"]["framework"], torch["request"]["recipe"]) == ("fsdp2", "fsdp-mixed")


def test_a_plan_is_the_same_whatever_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plan.json"
    saved = run("fit", *PLAN["offload"], "--format", "json").stdout
    file.write_text(saved, "utf-8")
    for name, value in {
        "ZEROPLAN_HPZ": "8",
        "ZEROPLAN_NODE": "dgx-a100-80gb",
        "ZEROPLAN_SEQ_LEN": "4096",
        "ZEROPLAN_MODEL": "llama-3.1-8b",
        "ZEROPLAN_OPTIMIZER_BYTES": "8",
        "ZEROPLAN_MEMORY": "40GB",
        "ZEROPLAN_SET": "overlap_comm=true",
    }.items():
        monkeypatch.setenv(name, value)
    assert run("fit", "--plan", str(file), "--format", "json").stdout == saved


def test_what_followed_from_the_rest_of_a_plan_follows_again(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(run("fit", *DEEPSPEED, "--hpz", "8", "--format", "json").stdout, "utf-8")
    plan = ["--plan", str(file)]
    assert answer("fit", *plan, "--framework", "fsdp2")["request"]["recipe"] == "fsdp-mixed"
    assert answer("fit", *plan, "--model", "llama-3.1-8b", "--seq-len", "4096")["request"]["headroom"] == 0
    assert answer("fit", *plan, "--hpz", "0")["request"]["hpz"] is None


def test_words_of_a_plan_are_checked_as_those_of_options(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    request = json.loads(run("fit", *PLAN["whole"], "--format", "json").stdout)["request"]
    file.write_text(json.dumps({**request, "experts": "z"}), "utf-8")
    ran = run("fit", "--plan", str(file))
    assert ran.status == 2
    assert "experts 'z' is not one of packed, listed" in ran.stderr


def test_the_last_setting_wins() -> None:
    off = answer("fit", *DEEPSPEED, "--set", "overlap_comm=true", "--set", "overlap_comm=false")
    assert off["request"]["settings"] == {}


def test_parts_of_strategies_can_be_joined() -> None:
    [row] = answer("compare", *DEEPSPEED, "--strategy", "stage=3,hpz=8,quantize=weights+gradients")["results"]
    assert row["request"]["quantize"] == ["weights", "gradients"]


def test_hosts_that_are_short_are_named_on_every_screen() -> None:
    big = ["--params", "200e9", "--gpus", "8", "--framework", "fsdp2", "--offload", "params=cpu"]
    assert "no RAM" in run("fit", *big, "--gpu", "h100,h200").stdout
    assert "no RAM" in run("compare", *big, "--gpu", "h100", "--strategy", "stage=3").stdout
    swept = run("sweep", *big[2:], "--over", "params=50e9,200e9", "--gpu", "h100").stdout
    assert "no RAM" in swept


def test_the_same_fewest_gpus_everywhere() -> None:
    big = ["--params", "200e9", "--gpus", "8", "--framework", "fsdp2", "--offload", "params=cpu", "--gpu", "h100"]
    [row] = answer("compare", *big)["results"]
    [solved] = answer("solve", "min-gpus", *big[:2], *big[4:])["results"]
    assert {each["stage"]: each["gpus"] for each in row["min_gpus"]} == {
        each["stage"]: each["answer"] for each in solved["stages"]
    }


def test_allow_needs_an_offload_to_allow() -> None:
    ran = run("solve", "max-params", "--gpus", "8", "--framework", "megatron", "--allow", "offload")
    assert ran.status == 2
    assert "no offload is modelled for megatron" in ran.stderr


@pytest.mark.parametrize(
    ("command", "args", "variable", "value", "option"),
    [
        ("solve", ["max-params", "--gpus", "8"], "ZEROPLAN_ALLOW", "offload", ["--allow", "offload"]),
        ("compare", GOOD, "ZEROPLAN_STRATEGY", "stage=3 stage=2", ["--strategy", "stage=3", "--strategy", "stage=2"]),
        ("sweep", GOOD, "ZEROPLAN_OVER", "grad-accum=1,8", ["--over", "grad-accum=1,8"]),
    ],
)
def test_every_option_has_a_variable(
    command: str, args: list[str], variable: str, value: str, option: list[str]
) -> None:
    asked = [command, *args, "--framework", "deepspeed", "--gpu", "h100"]
    found = run(*asked, *option)
    assert found.stdout
    assert run(*asked, **{variable: value}).stdout == found.stdout != run(*asked).stdout


def test_strategies_say_what_the_command_says_of_them_all() -> None:
    ran = run("compare", *DEEPSPEED, "--offload", "optimizer=nvme", "--strategy", "stage=3")
    assert "Unless a strategy says otherwise: --offload optimizer=nvme." in " ".join(ran.stdout.split())


def test_the_buffer_that_is_asked_for_is_enough() -> None:
    asked = ["--model", "llama-3.1-70b", "--seq-len", "4096", "--recompute", "full", "--gpus", "8", "--gpu", "h100"]
    asked += ["--framework", "deepspeed", "--offload", "optimizer=nvme,params=nvme"]
    ran = run("fit", *asked)
    [mend, *_] = [word for word in ran.stdout.replace(")", " ").split() if word.startswith("buffer_size=")]
    less = f"buffer_size={int(mend.partition('=')[2]) - 1}"
    assert [run("fit", *asked, *more).status for more in ([], ["--set", less], ["--set", mend])] == [1, 1, 0]


def test_one_gpu_is_bound_by_nothing() -> None:
    ran = run("solve", "min-gpus", "--params", "70e9", *DEEPSPEED[4:], "--allow", "offload")
    assert "unknown RAM" not in ran.stdout
    assert ran.stdout.split("bound by")[1].split("\n")[0].endswith(" -")
