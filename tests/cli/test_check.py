"""`zeroplan check`: exit statuses, formats, and findings of whether it fits."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.command import run

DATA = Path(__file__).parents[1] / "formats" / "data" / "deepspeed"
GOOD: dict[str, Any] = {
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3},
    "train_micro_batch_size_per_gpu": 1,
}
CARD = ["--params", "8e9", "--gpus", "8", "--gpu", "a100-80gb"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "ds_config.json"
    file.write_text(json.dumps(GOOD, indent=1), "utf-8")
    return file


def codes(*args: str) -> list[tuple[str, str]]:
    found = json.loads(run("check", *args, "--format", "json").stdout)
    return [
        (each["code"], each["severity"])
        for row in found["results"]
        for each in row["findings"]
        if "activations are not counted" not in each["said"]
    ]


def test_a_clean_file_ends_with_0(config: Path) -> None:
    ran = run("check", str(config), *CARD)
    assert (ran.status, ran.stderr) == (0, "")
    assert "clean" in ran.stdout
    assert "--stage 3" in ran.stdout


def test_what_does_not_fit_ends_with_1(config: Path) -> None:
    assert codes(str(config), "--params", "800e9", *CARD[2:]) == [("ZP101", "error")]
    assert run("check", str(config), "--params", "800e9", *CARD[2:]).status == 1


def test_warnings_fail_where_asked_for(config: Path) -> None:
    one = [str(config), "--params", "1e9", "--gpus", "1", "--gpu", "a100-80gb"]
    assert codes(*one) == [("ZP105", "warning")]
    assert run("check", *one).status == 0
    assert run("check", *one, "--fail-on", "warning").status == 1


def test_a_short_host_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    file.write_text(json.dumps({**GOOD, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}))
    args = [str(file), "--params", "70e9", "--gpus", "8"]
    assert codes(*args, "--node", "gcp-a2-ultragpu-8g") == [("ZP104", "warning")]
    assert codes(*args, "--node", "coreweave-hgx-h100") == [("ZP104", "error")]


def test_without_a_model_it_is_not_judged(config: Path) -> None:
    assert codes(str(config)) == [("ZP303", "note")]
    assert run("check", str(config)).status == 0


def test_what_is_typed_wins_over_the_file(config: Path) -> None:
    found = json.loads(run("check", str(config), *CARD, "--grad-accum", "4", "--format", "json").stdout)
    assert found["results"][0]["request"]["grad_accum"] == 4
    assert [each["code"] for each in found["results"][0]["findings"]] == ["ZP106", "ZP303"]


def test_combinations_that_are_not_modelled_are_findings(tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    file.write_text(json.dumps({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}), "utf-8")
    assert ("ZP301", "warning") in codes(str(file), *CARD)  # fp32 with offload


@pytest.mark.parametrize("args", [["/nonexistent.json"], [str(DATA)], []])
def test_unreadable_files_end_with_2(args: list[str]) -> None:
    ran = run("check", *args)
    assert ran.status == 2
    assert ran.stderr
    assert not ran.stdout


@pytest.mark.parametrize(
    "args",
    [
        ["--params", "x", "--gpus", "8", "--gpu", "h100"],
        *(["--gpus", "abc"], ["--gpu", "h1000"], ["--seq-len", "foo"], ["--micro-batch", "-3"], ["--grad-accum", "0"]),
    ],
)
def test_what_is_typed_wrong_ends_with_2(config: Path, args: list[str]) -> None:
    """Whether enough is said to judge the file, or not."""
    assert run("check", str(config), *args).status == 2


def test_what_is_typed_against_the_file_is_said() -> None:
    file = DATA.parent / "accelerate" / "fsdp2.yaml"
    asked = ["--model", "llama-3.1-8b", "--gpus", "8", "--gpu", "h100", "--seq-len", "4096", "--format", "json"]
    [found] = json.loads(run("check", str(file), *asked).stdout)["results"]
    assert [each["said"] for each in found["findings"]] == [
        "says --gpus 16; 8 is typed, and taken.",
        "the batch of a GPU is not in the file: 1 sequence, and 1 micro-batch a step where it says no other.",
    ]


def test_json_matches_its_schema() -> None:
    schema = json.loads(run("schema", "check").stdout)
    found = json.loads(run("check", *map(str, sorted(DATA.glob("*.json"))), *CARD, "--format", "json").stdout)
    jsonschema.validate(found, schema)
    assert len(found["results"]) == 6


def test_github_annotations_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "a,b:50%.json"
    file.write_text('{\n"zero_optimization": {"stag\\u000ae": 1}}', "utf-8")
    [line, *_] = run("check", str(file), "--format", "github").stdout.splitlines()
    assert line.startswith("::error file=")
    assert "a%2Cb%3A50%25.json" in line
    assert "title=ZP201::" in line


def test_a_file_that_cannot_be_read_is_annotated_too(config: Path) -> None:
    ran = run("check", str(config), "gone.json", "--format", "github")
    assert ran.status == 2
    assert "::error file=gone.json,title=unreadable::gone.json: cannot be read" in ran.stdout


def test_sarif_has_a_rule_for_every_result() -> None:
    ran = run("check", str(DATA / "misplaced.json"), "--format", "sarif")
    found = json.loads(ran.stdout)
    assert (ran.status, found["version"]) == (1, "2.1.0")
    [one] = found["runs"]
    rules = {rule["id"] for rule in one["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in one["results"]} == rules
    [error] = [result for result in one["results"] if result["level"] == "error"]
    assert error["locations"][0]["physicalLocation"]["region"] == {"startLine": 6}


def test_a_file_that_cannot_be_read_hides_no_other(config: Path) -> None:
    ran = run("check", str(config), "nowhere.json")
    assert (ran.status, "ds_config.json: 1 note" in " ".join(ran.stdout.split())) == (2, True)
    assert "nowhere.json: cannot be read" in ran.stderr


@pytest.mark.parametrize("code", ["ZP101", "zp202", "ZP303"])
def test_every_code_is_explained(code: str) -> None:
    text = run("explain", code).stdout
    assert code.upper() in text


def test_every_code_in_use_is_a_word() -> None:
    package = Path(__file__).parents[2] / "zeroplan"
    used = {
        word
        for path in package.rglob("*.py")
        for word in path.read_text("utf-8").replace('"', " ").split()
        if word.startswith("ZP") and word[2:].isdigit()
    }
    assert len(used) >= 15
    for code in used:
        assert run("explain", code).status == 0, code


def test_what_divides_states_otherwise_is_not_judged() -> None:
    """autotp_size 2 halves the data-parallel ranks: a verdict without it would be wrong."""
    [found] = json.loads(run("check", str(DATA / "autotp.json"), *CARD, "--format", "json").stdout)["results"]
    assert (found["request"], found["verdicts"]) == (None, [])


def test_a_bucket_larger_than_the_model(tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    for size, codes in ((5e8, ["ZP107"]), (1e8, [])):
        zero = {"stage": 2, "reduce_bucket_size": size}
        file.write_text(
            json.dumps({"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero, "bf16": {"enabled": True}}),
            "utf-8",
        )
        asked = ["--params", "1e8", "--gpus", "8", "--gpu", "h100", "--format", "json"]
        [found] = json.loads(run("check", str(file), *asked).stdout)["results"]
        assert [each["code"] for each in found["findings"]] == [*codes, "ZP303"]


@pytest.mark.parametrize(("half", "codes"), [("bf16", {"ZP108"}), ("fp16", set())])
def test_bf16_on_a_card_without_it(tmp_path: Path, half: str, codes: set[str]) -> None:
    file = tmp_path / "ds_config.json"
    config = {half: {"enabled": True}, "zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1}
    file.write_text(json.dumps(config), "utf-8")
    asked = ["--params", "1e9", "--gpus", "8", "--gpu", "v100-32gb", "--format", "json"]
    [found] = json.loads(run("check", str(file), *asked).stdout)["results"]
    assert {each["code"] for each in found["findings"]} & {"ZP108"} == codes


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.json", '{"a": "\\n[training]", "zero_optimization": {}}', "deepspeed"),
        ("a.yaml", "\ufeffoutput_dir: x\nsave_strategy: no\n", "trainer"),
        ("a.yaml", "output_dir: x\nper_device_train_batch_size: 1\nmixed_precision: bf16\n", "trainer"),
        ("a.toml", "[ training ]\n", "torchtitan"),
        ("a.yaml", "base_model: x\nmicro_batch_size: 1\nnum_processes: 8\n", "axolotl"),
        ("a.json", '{"fsdp_config": {}, "distributed_type": "FSDP"}', "accelerate"),
    ],
)
def test_the_format_is_that_of_most_keys(tmp_path: Path, name: str, text: str, kind: str) -> None:
    file = tmp_path / name
    file.write_text(text, "utf-8")
    assert json.loads(run("check", str(file), "--format", "json").stdout)["results"][0]["kind"] == kind


def test_no_format_takes_long(tmp_path: Path) -> None:
    """Texts that make a careless pattern or lookup take minutes; each ends well within the minute of a test's run."""
    for number, text in enumerate(("{" + "a" * 10**6, "{" + "a " * 10**5, "[training]\n" + "a.\n" * 10**4)):
        file = tmp_path / f"{number}.json"
        file.write_text(text, "utf-8")
        assert run("check", str(file)).status == 2


def test_a_file_with_errors_gets_no_verdict(tmp_path: Path) -> None:
    """Stage 'three' is read as 0: a verdict on it would be of another plan."""
    file = tmp_path / "ds_config.json"
    file.write_text(json.dumps({**GOOD, "zero_optimization": {"stage": "three"}}), "utf-8")
    [found] = json.loads(run("check", str(file), *CARD, "--format", "json").stdout)["results"]
    assert (found["verdicts"], [each["code"] for each in found["findings"]]) == ([], ["ZP201", "ZP303"])


def test_a_derived_batch_is_echoed_and_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "ds_config.json"
    config = {**GOOD, "train_batch_size": 256}
    del config["train_micro_batch_size_per_gpu"]
    file.write_text(json.dumps(config), "utf-8")
    asked = ["--model", "llama-3.1-8b", "--gpus", "8", "--gpu", "h100", "--seq-len", "512", "--format", "json"]
    [found] = json.loads(run("check", str(file), *asked).stdout)["results"]
    assert (found["understood"]["micro_batch"], found["request"]["micro_batch"]) == ("32", 32)
