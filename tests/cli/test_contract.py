"""The answers for machines: what other programs read, against the schemas."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.command import GOOD, JSON, answer, run
from zeroplan import __version__

CONFIGS = Path(__file__).parents[1] / "formats" / "data" / "deepspeed"
ANSWERS: dict[str, list[list[str]]] = {
    "fit": [
        ["fit", *GOOD],
        ["fit", *GOOD, "--gpu", "a100-80gb", "--framework", "deepspeed", "--grad-accum", "4"],
        ["fit", *GOOD, "--memory", "48GB", "--framework", "fsdp2"],
        ["fit", *GOOD, "--gpu", "h100", "--framework", "deepspeed", "--offload", "optimizer=nvme,params=nvme"],
        ["fit", *GOOD, "--gpu", "h100", "--hpz", "8", "--quantize", "weights,gradients"],
        ["fit", "--params", "1", "--gpus", "1"],
        ["fit", "--params", "1e18", "--gpus", "7"],
    ],
    "check": [["check", str(CONFIGS / "misplaced.json"), str(CONFIGS / "unprefixed.json"), *GOOD, "--gpu", "h100"]],
    "diagnose": [
        ["diagnose", "Tried to allocate 2.00 GiB"],
        ["diagnose", "Tried to allocate 27.94 GiB. 40 GiB total capacity", *GOOD, "--stage", "2"],
    ],
    "compare": [
        ["compare", "--params", "70e9", "--gpus", "512"],
        ["compare", "--params", "1e18", "--gpus", "1"],
        ["compare", *GOOD, "--gpu", "h100", "--strategy", "stage=3", "--strategy", "stage=3,offload=optimizer"],
    ],
    "sweep": [
        ["sweep", "--params", "7.5e9", "--over", "gpus=1,4,16"],
        ["sweep", *GOOD, "--over", "grad-accum=1,8", "--gpu", "h100", "--framework", "fsdp2"],
    ],
    "solve": [
        ["solve", "max-params", "--gpus", "64"],
        ["solve", "min-gpus", "--params", "70e9", "--gpu", "h100", "--allow", "offload"],
    ],
    "explain": [
        ["explain", "zero-2"],
        ["explain"],
        ["explain", *GOOD, "--stage", "2", "--framework", "deepspeed"],
        ["explain", *GOOD, "--stage", "3", "momentum", "--gpu", "h100"],
    ],
    "presets": [["presets"], ["presets", "gpu"], ["presets", "framework", "deepspeed"]],
}


@pytest.mark.parametrize("command", ANSWERS)
def test_json_answers_match_their_schema(command: str) -> None:
    schema = json.loads(run("schema", command).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    for args in ANSWERS[command]:
        found = answer(*args)
        jsonschema.validate(found, schema)
        assert found["schema"] == f"zeroplan.{command}/1"
        assert found["version"] == __version__


def test_the_schema_refuses_what_is_not_an_answer() -> None:
    schema = json.loads(run("schema", "fit").stdout)
    found = answer("fit", *GOOD)
    found["results"][0]["stages"][0]["peak_bytes"] = "much"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, schema)


def test_the_fit_contract() -> None:
    """The fields that other programs read."""
    found = answer("fit", *GOOD, "--gpu", "v100-32gb")
    assert found["request"] == {
        "params": 7_500_000_000,
        "gpus": 64,
        "gpu": ["v100-sxm2-32gb"],
        "memory_bytes": None,
        "node": None,
        "stages": [0, 1, 2, 3],
        "recipe": "zero-adam",
        "bytes_per_parameter": 16,
        "framework": "zero",
        "grad_accum": 1,
        "headroom": 0.1,
        "model": None,
        "optimizer_kernel": "fused",
        **dict.fromkeys(
            ("seq_len", "micro_batch", "recompute", "attention", "loss", "experts", "compiled", "shard_group", "hpz")
        ),
        "fused": [],
        "offload": {},
        "quantize": [],
        "settings": {},
        "assumed": {},
    }
    [card] = found["results"]
    assert (card["gpu"], card["recommended_stage"]) == ("v100-sxm2-32gb", 2)
    stages = {stage["stage"]: stage for stage in card["stages"]}
    assert [stages[s]["resident_bytes"] for s in stages] == [
        120_000_000_000,
        31_406_250_000,
        16_640_625_000,
        1_875_000_000,
    ]
    assert [stages[s]["verdict"] for s in stages] == ["does-not-fit", "tight", "fits", "fits"]
    assert stages[2]["spare_bytes"] == card["budget_bytes"] - stages[2]["peak_bytes"]
    assert stages[2]["seconds"] == {"link": pytest.approx(2.3625), "measured": None}
    assert {term["name"] for term in stages[2]["memory"]} >= {"states.parameters", "states.optimizer.momentum"}
    assert sum(term["bytes"] for term in stages[2]["memory"]) == 16_640_625_000
    assert stages[3]["traffic_psi"] == 3
    assert stages[3]["ratio_to_data_parallel"] == 1.5
    assert sum(entry["wire_bytes"] for entry in stages[3]["traffic"]) == stages[3]["wire_bytes"] == 44_296_875_000


def test_integers_stay_integers() -> None:
    text = run("fit", "--params", "1e18", "--gpus", "3", *JSON).stdout
    assert '"params": 1000000000000000000' in text
    assert "e+" not in text


def test_a_stage_that_is_not_offered_is_in_the_answer_without_figures() -> None:
    [card] = answer("fit", *GOOD, "--gpu", "h100", "--framework", "fsdp2")["results"]
    stage = card["stages"][1]
    assert (stage["stage"], stage["verdict"], stage["peak_bytes"], stage["memory"]) == (1, "not-offered", None, [])


@pytest.mark.parametrize(("m", "total"), [("8", 12), ("12", 16), ("16", 20)])
def test_optimizer_bytes_are_the_m_of_the_lecture(m: str, total: int) -> None:
    found = answer("fit", *GOOD, "--gpu", "h100", "--optimizer-bytes", m)
    assert found["request"]["bytes_per_parameter"] == total
    stages = found["results"][0]["stages"]
    k, n = int(m), 64
    expected = [(4 + k) * 7.5e9, 4 * 7.5e9 + k * 7.5e9 / n, 2 * 7.5e9 + (2 + k) * 7.5e9 / n, (4 + k) * 7.5e9 / n]
    assert [stage["resident_bytes"] for stage in stages] == pytest.approx(expected)


def test_a_node_alone_names_its_gpu() -> None:
    found = answer("fit", *GOOD, "--node", "dgx-2")
    assert found["request"]["gpu"] == ["v100-sxm2-32gb"]
    assert found["results"][0]["node"] == "dgx-2-v100"
    assert found["results"][0]["stages"][2]["seconds"]["link"] == pytest.approx(29.53125 / 100)


def test_a_card_of_ones_own_in_a_known_node_gets_its_time() -> None:
    [card] = answer("fit", *GOOD, "--memory", "40GiB", "--node", "dgx-h100")["results"]
    assert card["gpu"] == "custom"
    assert card["usable_bytes"] == 40 * 2**30
    assert card["stages"][0]["seconds"]["link"] == pytest.approx(29.53125 / 400)


def test_naming_a_gpu_twice_shows_it_once() -> None:
    assert len(answer("fit", *GOOD, "--gpu", "h100", "--gpu", "h100-sxm5-80gb")["results"]) == 1


def test_csv_has_a_row_for_each_gpu_and_stage() -> None:
    lines = run("fit", *GOOD, "--format", "csv").stdout.splitlines()
    assert len(lines) == 1 + 7 * 4
    assert lines[0].startswith("gpu,title,usable_bytes,")


def test_solve_says_where_zeroplan_stops_counting() -> None:
    args = ["solve", "max-params", "--gpus", "1000000000", "--gpu", "h100", "--stage", "3"]
    [solution] = answer(*args)["results"][0]["stages"]
    assert (solution["answer"], solution["at_limit"]) == (10**18, True)
    assert "1e18 or more" in run(*args).stdout


def test_phase_sums_are_in_the_answer() -> None:
    [card] = answer("fit", *GOOD, "--gpu", "h100", "--framework", "deepspeed", "--stage", "2")["results"]
    [stage] = card["stages"]
    assert stage["phase_bytes"]["step"] == 2 * 7_500_000_000 + 20 * 7_500_000_000 // 64
    assert max(stage["phase_bytes"].values()) == stage["peak_bytes"]


def test_several_names_in_one_option() -> None:
    found = answer("fit", *GOOD, "--gpu", "h100,a100-80gb", "--stage", "2,3")
    assert found["request"]["gpu"] == ["h100-sxm5-80gb", "a100-sxm4-80gb"]
    assert found["request"]["stages"] == [2, 3]


@pytest.mark.parametrize(
    ("field", "args"),
    [
        ("gpus", ["sweep", "--params", "1e9", "--over", "gpus=4,8"]),
        ("params", ["sweep", "--gpus", "8", "--over", "params=1e9,2e9"]),
        ("grad_accum", ["sweep", *GOOD, "--over", "grad-accum=4,8"]),
        ("params", ["solve", "max-params", "--gpus", "8"]),
        ("gpus", ["solve", "min-gpus", "--params", "1e9"]),
    ],
)
def test_what_varies_or_is_sought_is_not_said_to_be_assumed(field: str, args: list[str]) -> None:
    request = answer(*args)["request"]
    assert [key for key in ("params", "gpus", "grad_accum") if request[key] is None] == [field]
