"""`python -m tests.conformance [--all] [--only TEXT]`: measure, and hold zeroplan to it.

Needs the extra `conformance`. Without `--all` a part that takes a few minutes; with it the whole matrix, which is
written to results.json. Exit status 1 where something differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.conformance import cases, worlds, written
from tests.conformance.compare import RESULTS, results_rows
from tests.conformance.row import Row
from zeroplan.formats.presets import Presets

MEASURED_WITH = ("torch", "deepspeed", "transformers", "accelerate")
LONGEST_RUN = 600  # seconds of one training or world
ABOUT = (
    "trainings: bytes by phase and state of each rank, and its collectives above 64 KiB of one step; worlds: bytes on "
    "one rank of many; saved: a row of tests/core/data/activations.json and the bytes that a block saves; models: "
    "parameters on the meta device; estimators: [[parameters, GPUs, stage, place], bytes]"
)


def main() -> int:
    """Measure what is asked for and compare it."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--all", action="store_true", help="the whole matrix; writes results.json")
    parser.add_argument("--only", default="", metavar="TEXT", help="the trainings and worlds whose name holds TEXT")
    given = parser.parse_args()
    found: dict[str, Any] = {"_about": about(), "trainings": {}, "worlds": {}, "saved": [], "models": []}
    for number, case in enumerate(cases.MATRIX):
        if given.only in case.name and (given.all or given.only or case.light):
            found["trainings"][case.name] = _output("ranks", str(number))
    for number, world in enumerate(worlds.WORLDS):
        if given.only in world.name and (given.all or given.only or world.light):
            found["worlds"][world.name] = _output("worlds", str(number))
    if not given.only:
        light = [] if given.all else ["--light"]
        found["saved"] = _output("saved", *light)
        found |= _output("counts", *light)
        written.main()
    if given.all and not given.only:
        RESULTS.write_text(text_of(found), "utf-8")
    shown = list(results_rows(found, Presets()))
    for line in table(shown):
        print(line)
    return 0 if all(row.agrees for row in shown) else 1


def _output(module: str, *arguments: str) -> Any:
    """What a module of this package measures, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        command = [sys.executable, "-m", f"tests.conformance.{module}", *arguments, out]
        print(f"measuring {module} {' '.join(arguments)}", file=sys.stderr, flush=True)
        for last in (False, True):
            ran = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_RUN, check=False)
            if ran.returncode == 0:
                break
            print(f"failed{'' if last else ', once more'}:\n{ran.stderr[-3000:]}", file=sys.stderr)
            if last:
                raise SystemExit(2)
        return json.loads(Path(out).read_text("utf-8"))


def table(shown: list[Row]) -> Iterator[str]:
    """The comparison for people: a line a number, then how many agree."""
    yield f"{'':32} {'zeroplan':>18} {'measured':>18} {'':>8}"
    case = ""
    for row in shown:
        if row.case != case:
            case = row.case
            yield case
        mark = "" if row.agrees else "  DIFFERS"
        yield f"  {row.what:30} {row.predicted:18,} {row.measured:18,} {row.difference:+8.2%}{mark}"
    agree = sum(row.agrees for row in shown)
    exact = sum(row.predicted == row.measured for row in shown)
    near, differ = agree - exact, len(shown) - agree
    yield f"{len(shown)} numbers: {exact} equal to the byte, {near} within what is said, {differ} not"


def about() -> dict[str, Any]:
    """With what and when it was measured."""
    versions = {name: version(name) for name in MEASURED_WITH}
    return {"what": ABOUT, "date": datetime.now(UTC).date().isoformat(), "versions": versions}


def text_of(found: Mapping[str, Any]) -> str:
    """JSON with a line for each training, world or row."""
    parts = []
    for key, value in found.items():
        if isinstance(value, dict):
            lines = [f"{json.dumps(name)}: {json.dumps(inner)}" for name, inner in value.items()]
            parts.append(f"{json.dumps(key)}: {{\n" + ",\n".join(lines) + "}")
        else:
            parts.append(f"{json.dumps(key)}: [\n" + ",\n".join(map(json.dumps, value)) + "]")
    return "{\n" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    sys.exit(main())
