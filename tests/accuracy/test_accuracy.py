"""The accuracy table keeps its bar, and its JSON its shape."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.runs import ROWS, read_rows
from tests.accuracy.scoring import METERS, Scored, caught, false_alarms, percentile, score, summary
from zeroplan.formats.presets import Presets


@pytest.fixture(scope="module")
def scored() -> list[Scored]:
    return [row for row in score(read_rows(), Presets()) if row.scored == "data-parallel"]


def of(rows: list[Scored], *meters: str) -> list[Scored]:
    return [row for row in rows if row.meter in meters and not row.reason]


def test_tensors_are_predicted_within_a_few_percent(scored: list[Scored]) -> None:
    found = summary(of(scored, "allocated", "active"))
    assert found.rows >= 34
    assert found.median_error is not None
    assert found.p90_error is not None
    assert found.median_error <= 0.01
    assert found.p90_error <= 0.03


def test_the_allocator_is_within_its_range(scored: list[Scored]) -> None:
    found = summary(of(scored, "reserved", "device"))
    assert found.rows >= 35
    assert found.inside is not None
    assert found.median_width is not None
    assert found.inside >= 0.8
    assert found.median_width <= 0.3


def test_running_out_of_memory_is_foreseen(scored: list[Scored]) -> None:
    right, ooms = caught(scored)
    wrong, ran = false_alarms(scored)
    assert ooms >= 42
    assert right >= 0.9 * ooms
    assert wrong <= 0.03 * ran


def test_few_rows_are_not_expressed_and_each_says_why(scored: list[Scored]) -> None:
    reasons = [row.reason for row in scored if row.reason]
    assert len(reasons) <= 5
    assert all(row.verdict is None and row.predicted is None for row in scored if row.reason)


def test_nearest_rank() -> None:
    assert percentile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9) == 9
    assert percentile([1, 2, 3], 0.9) == 3
    assert percentile([5], 0.9) == 5


def run(*args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.accuracy", *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    return done.stdout


def test_any_file_of_rows_can_be_scored(tmp_path: Path) -> None:
    rows = {row["id"]: row for row in read_rows()}
    good, adapter, other = dict(rows["fms-275"]), dict(rows["fms-009"]), dict(rows["tt-099"])
    adapter |= {"lora": "r=16", "scored": "adapter", "id": "adapter"}
    other |= {"gpu": "[red]X-1", "id": "unknown card"}
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(good))
        writer.writeheader()
        writer.writerows([good, adapter, other])
    found: list[dict[str, Any]] = json.loads(run("--rows", str(path), "--format", "json"))["rows"]
    keys = {"id", "scored", "meter", "predicted", "low", "high", "measured", "outcome", "verdict", "reason"}
    assert all(row.keys() == keys for row in found)
    assert found[0]["verdict"] in ("fits", "tight", "does-not-fit")
    assert found[0]["predicted"] == pytest.approx(float(good["measured_memory_gib"]), rel=0.05)
    assert [bool(row["reason"]) for row in found] == [False, True, True]
    assert "adapters" in found[1]["reason"]


def test_the_table_shows_every_meter() -> None:
    text = run()
    assert all(meter in text for meter in METERS)
    assert "Out of memory:" in text


def test_every_row_names_its_source() -> None:
    assert all(row["source"] and row["source_locator"] for row in read_rows(ROWS))
