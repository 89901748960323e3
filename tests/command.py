"""The command, run as a user runs it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

OF_THE_MACHINE = ("ZEROPLAN_", "SLURM_", "TORCHELASTIC_", "HF_", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES")
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(OF_THE_MACHINE)}
SCREEN = {**CLEAN, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "TERM": "dumb"}
GOOD = ["--params", "7.5e9", "--gpus", "64"]
"""A good question."""
JSON = ["--format", "json"]


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    status: int
    stdout: str
    stderr: str


def run(*args: str, cwd: str | None = None, **environment: str) -> Ran:
    """Run `zeroplan ARGS` in a process of its own, 80 columns wide, without colour."""
    done = subprocess.run(
        [sys.executable, "-m", "zeroplan", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**SCREEN, **environment},
        timeout=60,
        check=False,
        cwd=cwd,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def answer(*args: str) -> Any:
    """The JSON answer of `zeroplan ARGS`."""
    return json.loads(run(*args, *JSON).stdout)
