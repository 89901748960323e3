"""`zeroplan compare`: order, nodes and prices."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.command import GOOD, answer, run


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
    """12 GPUs are 2 nodes of 8; of the nodes with this card AWS's alone has a price."""
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
