"""`python -m tests.conformance.summary`: results.json in a few lines, without torch."""

import json
from collections.abc import Iterator

from tests.conformance.cases import MATRIX
from tests.conformance.compare import RESULTS, STATES, results_rows
from tests.conformance.row import Row
from zeroplan.formats.presets import Presets

TITLES = {"deepspeed": "DeepSpeed", "fsdp1": "FSDP1", "fsdp2": "FSDP2", "ddp": "DDP"}
KINDS = ("states", "sent per step", "peak of backward", "peak of step")


def lines() -> Iterator[str]:
    """A line for each framework and kind of number: how many, how many equal, the largest difference."""
    found = json.loads(RESULTS.read_text("utf-8"))
    rows = list(results_rows(found, Presets()))
    frameworks = {case.name: TITLES[case.framework] for case in MATRIX}
    groups: dict[tuple[str, str], list[Row]] = {}
    for framework in TITLES.values():
        for kind in KINDS:
            groups[framework, kind] = []
    for row in rows:
        kind = _kind(row)
        if row.case in frameworks:
            groups.setdefault((frameworks[row.case], kind), []).append(row)
        elif row.case in found["worlds"]:
            groups.setdefault(("FSDP2, 8 and 64 ranks", row.what), []).append(row)
        else:
            groups.setdefault((row.case, ""), []).append(row)
    versions = ", ".join(f"{name} {number}" for name, number in found["_about"]["versions"].items())
    yield f"Measured on {found['_about']['date']} with {versions}."
    yield f"{'':39} {'numbers':>7} {'equal':>6} {'largest':>9}"
    for (framework, kind), among in groups.items():
        if among and kind != "peak of forward":
            equal = sum(row.predicted == row.measured for row in among)
            most = max((row.difference for row in among), key=abs)
            yield f"{framework:22} {kind:16} {len(among):7} {equal:6} {most:+9.2%}"


def _kind(row: Row) -> str:
    if row.what in (*STATES, "gradients"):
        return "states"
    return "sent per step" if row.what.endswith("calls") else row.what


if __name__ == "__main__":
    for line in lines():
        print(line)
