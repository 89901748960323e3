"""zeroplan against what was measured, without torch: every number of results.json."""

import json

import pytest

from tests.conformance.cases import MATRIX
from tests.conformance.compare import RESULTS, results_rows
from tests.conformance.row import Row
from tests.conformance.worlds import WORLDS
from zeroplan.formats.presets import Presets

FOUND = json.loads(RESULTS.read_text("utf-8"))
PRESETS = Presets()
ROWS = list(results_rows(FOUND, PRESETS))
CASES = dict.fromkeys(row.case for row in ROWS)


@pytest.mark.parametrize("case", CASES)
def test_zeroplan_agrees_with_what_was_measured(case: str) -> None:
    differ = [(row.what, row.predicted, row.measured) for row in ROWS if row.case == case and not row.agrees]
    assert differ == []


def test_everything_of_the_matrix_was_measured() -> None:
    assert set(FOUND["trainings"]) == {case.name for case in MATRIX}
    assert set(FOUND["worlds"]) == {world.name for world in WORLDS}
    assert len(FOUND["saved"]) > 390
    assert len(FOUND["models"]) == len(PRESETS.names("model")) - 1  # a fresh flan-t5-xxl is tied


def test_states_are_equal_to_the_byte() -> None:
    states = [
        row for row in ROWS if row.case in FOUND["trainings"] and row.what in ("weights", "momentum", "gradients")
    ]
    assert len(states) > 100
    assert all(row.predicted == row.measured for row in states)


def test_peaks_of_large_worlds_are_within_a_thousandth() -> None:
    """Those with accelerate's units, whose head has no moment of its own, within a fortieth."""
    peaks = {row.case: abs(row.difference) for row in ROWS if row.case in FOUND["worlds"] and row.what == "peak"}
    assert len(peaks) == len(WORLDS)
    assert max(size for case, size in peaks.items() if "accelerate" not in case) < 0.001
    assert max(peaks.values()) < 0.025


def test_a_difference_is_seen() -> None:
    row = Row(case="", what="", predicted=90, measured=100, within=5)
    assert not row.agrees
    assert row.difference == -0.1
