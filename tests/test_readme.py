"""The README's commands run, and print what it shows; `pytest --rewrite-goldens` fills the screens in."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command import SCREEN, run

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(README.read_text("utf-8")) if name == language]


def screen(command: str) -> str:
    program, *args = shlex.split(command)
    return f"$ {command}\n{run(*args).stdout if program == 'zeroplan' else python(*args)}"


def python(*args: str) -> str:
    """What `python ARGS` prints, from the project's folder."""
    done = subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=SCREEN,
        cwd=README.parent,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_the_first_two_blocks_stand_alone() -> None:
    install, tests = blocks("sh")[:2]
    for command in (install, tests):
        assert command.startswith("python3 -m venv .venv && ")
        assert command.count("\n") == 1
    assert "zeroplan fit --params 7.5e9 --gpus 64" in install
    assert "pytest" in tests


@pytest.mark.usefixtures("with_config")
def test_screens_are_as_printed(request: pytest.FixtureRequest) -> None:
    def printed(block: re.Match[str]) -> str:
        if block[1] != "console":
            return block[0]
        return f"```console\n{screen(block[2].splitlines()[0].removeprefix('$ '))}```"

    text = README.read_text("utf-8")
    now = BLOCK.sub(printed, text)
    if request.config.getoption("--rewrite-goldens"):
        README.write_text(now, "utf-8")
    assert README.read_text("utf-8") == now


@pytest.fixture
def with_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ds_config.json where the commands run."""
    config = Path(__file__).parent / "formats" / "data" / "deepspeed" / "unprefixed.json"
    (tmp_path / "ds_config.json").write_bytes(config.read_bytes())
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("with_config")
def test_the_commands_of_the_table_run() -> None:
    text = BLOCK.sub("", README.read_text("utf-8"))
    commands = [code for code in re.findall(r"`([^`]+)`", text) if code.startswith("zeroplan ")]
    assert len(commands) >= 10
    for command in commands:
        assert run(*shlex.split(command)[1:]).status == 0, command


def test_every_command_is_shown() -> None:
    text = README.read_text("utf-8")
    for command in ("fit", "compare", "sweep", "solve", "explain", "presets", "schema", "check", "config", "diagnose"):
        assert f"zeroplan {command}" in text


@pytest.mark.usefixtures("with_config")
def test_the_ci_snippets_plan_what_fits(tmp_path: Path) -> None:
    """On a machine of eight A100, in a SLURM job of eight nodes."""
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8; do echo NVIDIA A100-SXM4-80GB, 81920, Disabled; done\n")
    driver.chmod(0o755)
    job = {"SLURM_JOB_NUM_NODES": "8", "SLURM_GPUS_PER_NODE": "8", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    lines = [
        line.removeprefix("- run:").split(">")[0].strip()
        for snippet in (*blocks("yaml"), *blocks("bash"))
        for line in snippet.replace("\\\n", " ").splitlines()
        if "zeroplan fit" in line or "zeroplan check" in line
    ]
    assert len(lines) == 3
    for command in lines:
        assert run(*shlex.split(command)[1:], **job).status == 0, command


@pytest.mark.usefixtures("with_config")
def test_the_pre_commit_hook_is_the_one_shown() -> None:
    """Its entry with the arguments of the README, on a file as its pattern takes."""
    [hook] = yaml.safe_load(Path(__file__).parents[1].joinpath(".pre-commit-hooks.yaml").read_text("utf-8"))
    [shown] = [yaml.safe_load(text) for text in blocks("yaml") if text.startswith("repos:")]
    [used] = shown["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    assert re.search(hook["files"], "ds_config.json")
    assert run(*hook["entry"].split()[1:], *used["args"], "ds_config.json").status == 0


def test_the_example_preset_is_valid(tmp_path: Path) -> None:
    for example in blocks("toml"):
        path = tmp_path / example.splitlines()[0].removeprefix("# presets-of-ours/")
        path.parent.mkdir()
        path.write_text(example, "utf-8")
    ran = run("fit", "--params", "1e9", "--gpus", "8", "--gpu", "lab-card", "--presets", str(tmp_path))
    assert ran.status == 0
    assert "Bound by 25 GB/s of NICs for 4 GPUs (node lab-node)" in ran.stdout
