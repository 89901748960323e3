"""`python -m tests.conformance [--all] [--only TEXT]`: measure, and hold zeroplan to it.

Needs the extra `conformance`. `--all` measures the whole matrix and writes results.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.conformance.cases import MATRIX, Case
from tests.conformance.compare import Row, rows
from zeroplan.formats.presets import Presets

RESULTS = Path(__file__).parent / "results.json"
MEASURED_WITH = ("torch", "deepspeed", "transformers", "accelerate")
LONGEST_RUN = 300  # seconds of one training


def main() -> int:
    """Measure what is asked for; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--all", action="store_true", help="the whole matrix; writes results.json")
    parser.add_argument("--only", default="", metavar="TEXT", help="the trainings whose name holds TEXT")
    given = parser.parse_args()
    cases = [case for case in MATRIX if given.only in case.name and (given.all or given.only or case.light)]
    found: dict[str, Any] = {"trainings": {}}
    presets, differ = Presets(), 0
    for case in cases:
        measured = train(case)
        found["trainings"][case.name] = measured
        differ += show(case, measured, presets)
    if given.all and not given.only:
        RESULTS.write_text(text_of({"_about": about(), **found}), "utf-8")
    print(f"{len(cases)} trainings, {differ} differ")
    return 1 if differ else 0


def train(case: Case) -> list[Mapping[str, Any]]:
    """What each rank of one training measured."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "ranks.json")
        command = [sys.executable, "-m", "tests.conformance.ranks", str(MATRIX.index(case)), out]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_RUN, check=False)
        if ran.returncode:
            raise SystemExit(f"{case.name} failed:\n{ran.stderr[-2000:]}")
        found: list[Mapping[str, Any]] = json.loads(Path(out).read_text("utf-8"))
        return found


def show(case: Case, measured: list[Mapping[str, Any]], presets: Presets) -> bool:
    """Print one training's rows; whether any differs."""
    if not case.expressed:
        print(f"{case.name}: measured; zeroplan cannot be asked for it yet")
        return False
    compared = list(rows(case, measured, presets))
    print(case.name)
    for row in compared:
        print(line(row))
    return not all(row.agrees for row in compared)


def line(row: Row) -> str:
    """One number for people, in kilobytes."""
    difference = (row.predicted - row.measured) / row.measured if row.measured else float(row.predicted > 0)
    mark = "" if row.agrees else "  DIFFERS"
    return f"  {row.what:28} {row.predicted / 1e3:12,.1f} {row.measured / 1e3:12,.1f} {difference:+8.1%}{mark}"


def about() -> dict[str, Any]:
    """With what and when it was measured."""
    return {
        "what": "bytes per rank by phase and state, and collectives above 64 KiB of one step, of each training",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {name: version(name) for name in MEASURED_WITH},
    }


def text_of(found: Mapping[str, Any]) -> str:
    """JSON with a line for each training."""
    parts = []
    for key, value in found.items():
        entries = [f"{json.dumps(name)}: {json.dumps(inner)}" for name, inner in value.items()]
        parts.append(f"{json.dumps(key)}: {{\n" + ",\n".join(entries) + "}")
    return "{\n" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    sys.exit(main())
