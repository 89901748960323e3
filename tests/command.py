"""The command, run as a user runs it."""

import os
import subprocess
import sys
from dataclasses import dataclass

CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("ZEROPLAN_")}
SCREEN = {**CLEAN, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "TERM": "dumb"}


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    status: int
    stdout: str
    stderr: str


def run(*args: str, **environment: str) -> Ran:
    """Run `zeroplan ARGS` in a process of its own, 80 columns wide, without colour."""
    done = subprocess.run(
        [sys.executable, "-m", "zeroplan", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**SCREEN, **environment},
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
