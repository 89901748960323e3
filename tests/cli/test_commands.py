"""The commands as users and CI jobs use them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from tests.command import SCREEN, run
from zeroplan import __version__

GOOD = ["--params", "7.5e9", "--gpus", "64"]
JSON = ["--format", "json"]
ANSWERS: dict[str, list[list[str]]] = {
    "fit": [
        ["fit", *GOOD],
        ["fit", *GOOD, "--gpu", "a100-80gb", "--framework", "deepspeed", "--grad-accum", "4"],
        ["fit", *GOOD, "--memory", "48GB", "--framework", "fsdp2"],
        ["fit", "--params", "1", "--gpus", "1"],
        ["fit", "--params", "1e18", "--gpus", "7"],
    ],
    "compare": [["compare", "--params", "70e9", "--gpus", "512"], ["compare", "--params", "1e18", "--gpus", "1"]],
    "sweep": [
        ["sweep", "--params", "7.5e9", "--over", "gpus=1,4,16"],
        ["sweep", *GOOD, "--over", "grad-accum=1,8", "--gpu", "h100", "--framework", "fsdp2"],
    ],
    "solve": [["solve", "max-params", "--gpus", "64"], ["solve", "min-gpus", "--params", "70e9", "--gpu", "h100"]],
    "explain": [
        ["explain", "zero-2"],
        ["explain"],
        ["explain", *GOOD, "--stage", "2", "--framework", "deepspeed"],
        ["explain", *GOOD, "--stage", "3", "momentum", "--gpu", "h100"],
    ],
    "presets": [["presets"], ["presets", "gpu"], ["presets", "framework", "deepspeed"]],
}


def answer(*args: str) -> Any:
    return json.loads(run(*args, *JSON).stdout)


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


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["fit", *GOOD], 0),
        (["fit", *GOOD, "--memory", "2GB"], 0),
        (["fit", *GOOD, "--memory", "1.9GB"], 0),
        (["fit", *GOOD, "--memory", "1GB"], 1),
        (["fit", *GOOD, "--memory", "1GB", "--format", "json"], 1),
        (["compare", "--params", "1e18", "--gpus", "1"], 1),
        (["compare", *GOOD, "--gpu", "t4"], 0),
        (["solve", "min-gpus", "--params", "1e18", "--memory", "1GB"], 1),
        (["solve", "max-params", "--gpus", "8", "--memory", "15MB", "--framework", "deepspeed", "--stage", "3"], 1),
        (["sweep", "--params", "1e18", "--over", "gpus=1", "--gpu", "t4"], 0),
        (["explain", "--params", "1e18", "--gpus", "1", "--stage", "0", "--gpu", "t4"], 0),
        ([], 0),
        (["--version"], 0),
        (["--help"], 0),
        (["fit", "--help"], 0),
    ],
)
def test_exit_status(args: list[str], status: int) -> None:
    ran = run(*args)
    assert ran.status == status
    assert ran.stdout
    assert ran.stderr == ""


def test_bare_zeroplan_shows_three_examples() -> None:
    assert run().stdout.count("  zeroplan ") == 3


@pytest.mark.parametrize("command", ["fit", "compare", "sweep", "solve", "explain", "presets", "schema"])
def test_help_is_short_and_has_an_example(command: str) -> None:
    text = run(command, "--help").stdout
    assert "Example: zeroplan" in text
    options = [line for line in text.splitlines() if line.startswith("  -")]
    assert len(options) <= 15, options


def test_help_groups_its_options() -> None:
    text = run("fit", "--help").stdout
    assert [text.index(f"{heading}:\n") for heading in ("Question", "Hardware", "Accounting", "Output")]


@pytest.mark.parametrize("name", ["ZEROPLAN_GPU", "ZEROPLAN_FIT_GPU"])
def test_environment_variables(name: str) -> None:
    found = json.loads(run("fit", "--params", "1e9", "--gpus", "8", *JSON, **{name: "h100 t4"}).stdout)
    assert found["request"]["gpu"] == ["h100-sxm5-80gb", "t4"]


def test_an_option_wins_over_its_variable() -> None:
    found = json.loads(run("fit", "--params", "1e9", "--gpus", "8", *JSON, ZEROPLAN_GPUS="64").stdout)
    assert found["request"]["gpus"] == 8


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


def test_compare_sorts_and_puts_the_unknown_last() -> None:
    prices = [row["usd_per_hour"] for row in answer("compare", *GOOD, "--sort", "price")["results"]]
    known = [price for price in prices if price is not None]
    assert known == sorted(known)
    assert prices == known + [None] * (len(prices) - len(known))


SORT_KEYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda row: row["gpu"],
    "memory": lambda row: -row["usable_bytes"],
    "stage": lambda row: row["recommended_stage"],
    "spare": lambda row: -row["spare_bytes"],
}


@pytest.mark.parametrize("key", SORT_KEYS)
def test_compare_sorts_by(key: str) -> None:
    rows = answer("compare", *GOOD, "--gpu", "v100-32gb,t4,mi355x,b200,a10", "--sort", key)["results"]
    values = [SORT_KEYS[key](row) for row in rows]
    assert values == sorted(values)
    assert len(set(values)) > 1


def test_compare_by_time_puts_the_fastest_first() -> None:
    rows = answer("compare", *GOOD, "--gpu", "v100-32gb,rtx-3090,b200", "--sort", "time")["results"]
    assert [row["gpu"] for row in rows] == ["b200-sxm", "v100-sxm2-32gb", "rtx-3090"]


def test_compare_pays_for_whole_nodes_of_the_cheapest_kind() -> None:
    """12 GPUs are 2 nodes of 8; of the L40S nodes with a price AWS's is the only one."""
    [row] = answer("compare", "--params", "7e9", "--gpus", "12", "--gpu", "v100-sxm2-16gb")["results"]
    assert (row["node"], row["usd_per_hour"]) == ("aws-p3.16xlarge", 2 * 24.48)


def test_compare_by_price_puts_cards_where_nothing_fits_last() -> None:
    rows = answer("compare", "--params", "8e9", "--gpus", "1", "--sort", "price")["results"]
    verdicts = [row["recommended_stage"] is not None for row in rows]
    assert verdicts == sorted(verdicts, reverse=True)
    assert set(verdicts) == {True, False}


def test_compare_names_the_fewest_gpus_per_stage() -> None:
    [row] = answer("compare", "--params", "70e9", "--gpus", "512", "--gpu", "h100")["results"]
    assert {entry["stage"]: entry["gpus"] for entry in row["min_gpus"]} == {0: None, 1: None, 2: None, 3: 15}
    assert row["node"] == "aws-p5.48xlarge"
    assert row["usd_per_hour"] == pytest.approx(64 * 55.04)


def test_compare_takes_time_and_price_of_one_node() -> None:
    """p4de has 50 GB/s of NICs and a price; the DGX 200 GB/s and none."""
    args = ["compare", "--params", "70e9", "--gpus", "512", "--gpu", "a100-80gb"]
    [rented] = answer(*args)["results"]
    [owned] = answer(*args, "--node", "dgx-a100-80gb")["results"]
    assert (rented["node"], owned["node"]) == ("aws-p4de.24xlarge", "dgx-a100-80gb")
    assert rented["seconds"]["link"] == pytest.approx(4 * owned["seconds"]["link"])
    assert rented["usd_per_hour"] is not None
    assert owned["usd_per_hour"] is None


def test_compare_csv_has_a_column_for_each_stage() -> None:
    head, row = run("compare", *GOOD, "--gpu", "h100", "--format", "csv").stdout.splitlines()
    assert "min_gpus_0,min_gpus_1,min_gpus_2,min_gpus_3" in head
    assert "{" not in row


def test_solve_says_where_zeroplan_stops_counting() -> None:
    args = ["solve", "max-params", "--gpus", "1000000000", "--gpu", "h100", "--stage", "3"]
    [solution] = answer(*args)["results"][0]["stages"]
    assert (solution["answer"], solution["at_limit"]) == (10**18, True)
    assert "1e18 or more" in run(*args).stdout


def test_on_one_gpu_no_stage_is_said_to_free_memory() -> None:
    """DeepSpeed's FusedAdam copies more at stage 0, but the question is of sharding."""
    text = run("fit", "--params", "7.5e9", "--gpus", "1", "--gpu", "b300-sxm", "--framework", "deepspeed").stdout
    assert "sharding saves nothing" in text
    assert "frees" not in text


@pytest.mark.parametrize(("framework", "size"), [("zero", 2), ("fsdp2", 4), ("megatron", 4)])
def test_the_yardstick_of_traffic_is_said(framework: str, size: int) -> None:
    text = " ".join(run("fit", *GOOD, "--framework", framework, "--gpu", "h200").stdout.split())
    assert f"1.0x is plain data parallelism: an all-reduce of {size}-byte gradients" in text


def test_phase_sums_are_in_the_answer() -> None:
    [card] = answer("fit", *GOOD, "--gpu", "h100", "--framework", "deepspeed", "--stage", "2")["results"]
    [stage] = card["stages"]
    assert stage["phase_bytes"]["step"] == 2 * 7_500_000_000 + 20 * 7_500_000_000 // 64
    assert max(stage["phase_bytes"].values()) == stage["peak_bytes"]


def test_the_variable_of_a_command_wins_over_that_of_all() -> None:
    found = run("fit", *GOOD, *JSON, ZEROPLAN_FIT_GPU="h200", ZEROPLAN_GPU="h100").stdout
    assert json.loads(found)["request"]["gpu"] == ["h200-sxm5-141gb"]


@pytest.mark.parametrize(
    ("args", "variables"),
    [
        (["solve", "max-params", "--gpus", "8"], {"ZEROPLAN_PARAMS": "1e9"}),
        (["sweep", "--params", "1e9", "--over", "gpus=1,2"], {"ZEROPLAN_GPUS": "8"}),
        (["fit", *GOOD, "--memory", "48GB"], {"ZEROPLAN_GPU": "h100"}),
        (["fit", *GOOD, "--node", "dgx-a100-80gb"], {"ZEROPLAN_GPU": "h100"}),
        (["fit", *GOOD, "--gpu", "a100-80gb"], {"ZEROPLAN_NODE": "dgx-h100"}),
        (["explain", "zero-2"], {"ZEROPLAN_PARAMS": "1e9", "ZEROPLAN_GPUS": "8"}),
    ],
)
def test_a_variable_gives_way_to_the_command_line(args: list[str], variables: dict[str, str]) -> None:
    assert run(*args, **variables).status == 0


def test_several_names_in_one_option() -> None:
    found = answer("fit", *GOOD, "--gpu", "h100,a100-80gb", "--stage", "2,3")
    assert found["request"]["gpu"] == ["h100-sxm5-80gb", "a100-sxm4-80gb"]
    assert found["request"]["stages"] == [2, 3]


@pytest.mark.parametrize("form", ["table", "json"])
def test_an_answer_that_cannot_be_written_is_said(form: str) -> None:
    command = [sys.executable, "-m", "zeroplan", "fit", *GOOD, "--format", form]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=SCREEN, check=False)
    assert ran.returncode == 74
    assert ran.stderr.count("\n") == 1
    assert "cannot be written" in ran.stderr


def test_a_closed_stdout_leaves_the_status() -> None:
    code = f"{sys.executable} -m zeroplan fit --params 7.5e9 --gpus 64 --memory 1GB >&-"
    ran = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env=SCREEN, check=False)
    assert (ran.returncode, ran.stderr) == (1, "")


@pytest.mark.parametrize("term", ["peak", "usable", "link"])
def test_explain_has_a_number_for_every_figure_of_the_screen(term: str) -> None:
    text = run("explain", *GOOD, "--stage", "2", "--gpu", "h100", term).stdout
    expected = {"peak": "16,640,625,000", "usable": "84.41", "link": "29,531,250,000 bytes sent / 400,000,000,000"}
    assert expected[term] in text


def test_sweep_shows_verdicts_for_every_card() -> None:
    text = run("sweep", "--params", "7.5e9", "--over", "gpus=4,64", "--gpu", "h100,v100-32gb").stdout
    assert text.count("On ") == 2
    assert "tight" in text
    assert "on 4 to 64 data-parallel GPUs" in " ".join(text.split())


def test_deepspeeds_own_estimators_are_shown_by_explain_alone() -> None:
    """2 + 18/N and 18/N are the estimators' figures; the verdict uses 2 + 20/N."""
    found = answer("explain", "--params", "8e9", "--gpus", "8", "--stage", "2", "--framework", "deepspeed")
    [claim] = found["claims"]
    assert claim["bytes"] == 2 * 8 * 10**9 + 18 * 10**9
    assert found["stage"]["peak_bytes"] == 2 * 8 * 10**9 + 20 * 10**9
    assert "claims" not in answer("fit", *GOOD, "--framework", "deepspeed")["results"][0]


@pytest.mark.parametrize(
    "word", ["zero-0", "zero-1", "zero-2", "zero-3", "k", "psi", "all-reduce", "headroom", "ZeRO-2"]
)
def test_words_are_explained(word: str) -> None:
    assert "Source: " in run("explain", word).stdout


def test_explain_shows_why_an_all_reduce_costs_two() -> None:
    assert "a reduce-scatter and an all-gather" in " ".join(run("explain", "all-reduce").stdout.split())


def test_explain_a_term_shows_formula_inputs_and_source() -> None:
    text = " ".join(run("explain", *GOOD, "--stage", "2", "momentum").stdout.split())
    assert "4 * ceil(params / gpus) = 468,750,000 bytes, with params = 7,500,000,000, gpus = 64" in text
    assert "Source: ZeRO" in text


def test_on_one_gpu_it_says_that_sharding_saves_nothing() -> None:
    assert "sharding saves nothing" in run("fit", "--params", "1e9", "--gpus", "1").stdout


def test_version_imports_nothing_else() -> None:
    code = (
        "import sys; sys.argv = ['zeroplan', '--version']; from zeroplan.__main__ import main; main(); "
        "print(sorted({'click', 'rich', 'pydantic', 'json', 'dataclasses', 'tomllib'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("form", "absent"),
    [("json", {"rich", "pydantic", "torch", "importlib.resources", "csv"}), ("table", {"pydantic", "torch"})],
)
def test_fit_imports_only_what_it_uses(form: str, absent: set[str]) -> None:
    code = (
        "import sys; from zeroplan.cli import run; "
        f"run(['fit', '--params', '7.5e9', '--gpus', '64', '--format', '{form}']); print(list(sys.modules))"
    )
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1]
    assert not [name for name in absent if f"'{name}'" in modules]


def test_a_closed_pipe_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "zeroplan", "presets", "--format", "json"]
    ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=SCREEN, check=False)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, "")


def test_ctrl_c_is_no_traceback() -> None:
    code = (
        "import signal, os; from zeroplan import cli; import click\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def stop(**_): os.kill(os.getpid(), signal.SIGINT)\n"
        "cli.Commands.get_command = lambda *_: click.Command('fit', callback=stop)\n"
        "raise SystemExit(cli.run(['fit']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 128 + signal.SIGINT
    assert "Traceback" not in ran.stderr


def test_a_variable_named_as_a_flag_does_nothing() -> None:
    ran = run("fit", *GOOD, ZEROPLAN_VERSION="1", ZEROPLAN_HELP="1", ZEROPLAN_FIT_HELP="1")
    assert ran.stdout.startswith("Lowest stage that fits")


@pytest.mark.parametrize("args", [["--version"], ["--help"], []])
def test_even_short_answers_say_that_they_cannot_be_written(args: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "zeroplan", *args],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=SCREEN,
            check=False,
        )
    assert ran.returncode == 74
    assert "Traceback" not in ran.stderr


def test_a_bad_question_keeps_its_status_when_nobody_listens() -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run([sys.executable, "-m", "zeroplan", "fit"], stderr=full, env=SCREEN, check=False)
    assert ran.returncode == 2


@pytest.mark.parametrize("term", ["claims", "estimator"])
def test_explain_shows_the_estimators_alone(term: str) -> None:
    args = ["explain", *GOOD, "--stage", "2", "--framework", "deepspeed", term]
    assert "DeepSpeed stage 2 estimator says 17.11 GB" in run(*args).stdout


def test_explain_gives_a_word_in_every_format() -> None:
    assert run("explain", "psi", "--format", "csv").stdout.startswith("name,title,text")
    assert run("explain", *GOOD, "--stage", "2", "psi", "--format", "csv").stdout.startswith("name,title,text")


def test_shell_completion_offers_names() -> None:
    environment = {"_ZEROPLAN_COMPLETE": "bash_complete", "COMP_WORDS": "zeroplan fit --gpu h2", "COMP_CWORD": "3"}
    assert "h200-sxm5-141gb" in run(**environment).stdout


def test_no_colour_and_no_escapes_when_piped() -> None:
    for args in (["fit", *GOOD], ["fit", *GOOD, "--gpu", "h100"]):
        assert "\x1b" not in run(*args, NO_COLOR="", TERM="xterm-256color").stdout


def test_letters_where_block_characters_cannot_be_shown() -> None:
    text = run("fit", *GOOD, "--gpu", "h100", PYTHONIOENCODING="ascii").stdout
    assert text.isascii()
    assert "W weights" in text


@pytest.mark.parametrize("width", ["40", "80", "120", "200"])
def test_no_figure_is_ever_cut(width: str) -> None:
    """Whatever the width, every number of the answer is there in full."""
    text = run(
        "fit", "--params", "1e15", "--gpus", "64", "--gpu", "h100", "--framework", "deepspeed", COLUMNS=width
    ).stdout
    for figure in ("16,000,000 ", "4,187,500 ", "2,218,750 ", "250,000 ", "5,906,249.02", "24,000,000.00"):
        assert figure in text


@pytest.mark.parametrize("framework", ["zero", "fsdp2"])
@pytest.mark.parametrize("gpu", [[], ["--gpu", "a100-80gb"]])
def test_common_screens_fit_80_columns(framework: str, gpu: list[str]) -> None:
    text = run("fit", *GOOD, "--framework", framework, *gpu).stdout
    assert max(map(len, text.splitlines())) <= 80
