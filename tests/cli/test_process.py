"""The command as a process: exit status, environment, pipes, signals and imports."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.command import GOOD, JSON, SCREEN, run


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


@pytest.mark.parametrize("name", ["ZEROPLAN_GPU", "ZEROPLAN_FIT_GPU"])
def test_environment_variables(name: str) -> None:
    found = json.loads(run("fit", "--params", "1e9", "--gpus", "8", *JSON, **{name: "h100 t4"}).stdout)
    assert found["request"]["gpu"] == ["h100-sxm5-80gb", "t4"]


def test_an_option_wins_over_its_variable() -> None:
    found = json.loads(run("fit", "--params", "1e9", "--gpus", "8", *JSON, ZEROPLAN_GPUS="64").stdout)
    assert found["request"]["gpus"] == 8


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


def test_shell_completion_offers_names() -> None:
    environment = {"_ZEROPLAN_COMPLETE": "bash_complete", "COMP_WORDS": "zeroplan fit --gpu h2", "COMP_CWORD": "3"}
    assert "h200-sxm5-141gb" in run(**environment).stdout
