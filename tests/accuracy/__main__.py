"""The accuracy table: `python -m tests.accuracy [--rows FILE.csv] [--format table|json]`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tests.accuracy.runs import ROWS, read_rows
from tests.accuracy.scoring import METERS, Scored, caught, false_alarms, score, summary
from zeroplan.formats.presets import Presets
from zeroplan.render.blocks import DIM, STRONG, Block, Cell, Column, Grid, Paragraph, cell

HEADERS = ("meter", "framework", "runs", "median", "90th", "inside", "width")


def main(args: Sequence[str] | None = None) -> None:
    """Score the rows of a file and print them."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument(
        "--rows", type=Path, default=ROWS, help="a CSV file with the columns of tests/accuracy/rows.csv"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    given = parser.parse_args(args)
    scored = score(read_rows(given.rows), Presets())
    if given.format == "json":
        print(json.dumps({"rows": [row.json() for row in scored]}, indent=1))
        return
    from zeroplan.render.table import print_blocks

    print_blocks(blocks([row for row in scored if row.scored == "data-parallel"]))


def blocks(scored: Sequence[Scored]) -> list[Block]:
    """The table: a row per meter and framework, then what did not fit, then the misses."""
    measured = [row for row in scored if row.measured and not row.reason]
    rows = [_row(meter, framework, measured) for meter, framework in _groups(measured)]
    rows += [_row(meter, "", measured, STRONG) for meter in METERS if any(r.meter == meter for r in measured)]
    columns = (*(Column(h) for h in HEADERS[:2]), *(Column(h, right=True) for h in HEADERS[2:]))
    right, ooms = caught(scored)
    wrong, ran = false_alarms(scored)
    unknown = [row for row in scored if row.reason]
    return [
        Grid(columns, tuple(rows)),
        Paragraph(f"Out of memory: {right} of {ooms} caught. Ran: {wrong} of {ran} called does-not-fit.", STRONG),
        *([_misses(measured)] if _missed(measured) else []),
        Paragraph(f"Not expressed: {len(unknown)}. " + " ".join(sorted({f"{r.reason}." for r in unknown})), DIM),
    ]


def _groups(rows: Sequence[Scored]) -> list[tuple[str, str]]:
    return sorted({(row.meter, row.framework) for row in rows}, key=lambda pair: (METERS.index(pair[0]), pair[1]))


def _row(meter: str, framework: str, rows: Sequence[Scored], style: str = "") -> tuple[Cell, ...]:
    found = summary([row for row in rows if row.meter == meter and framework in ("", row.framework)])
    ranged = meter in METERS[2:]
    texts = (
        meter,
        framework or "all",
        str(found.rows),
        _percent(found.median_error),
        _percent(found.p90_error),
        _percent(found.inside) if ranged else "-",
        _percent(found.median_width) if ranged else "-",
    )
    return tuple(cell(text, style) for text in texts)


def _missed(rows: Sequence[Scored]) -> list[Scored]:
    return [r for r in rows if (not r.inside if r.meter in METERS[2:] else (r.error or 0) > 0.1)]


def _misses(rows: Sequence[Scored]) -> Grid:
    columns = (Column("missed"), Column("meter"), *(Column(h, right=True) for h in ("low", "expected", "high", "GiB")))
    return Grid(columns, tuple(tuple(map(cell, _figures(row))) for row in _missed(rows)))


def _figures(row: Scored) -> tuple[str, ...]:
    sizes = (row.low, row.predicted, row.high, row.measured)
    return (row.id, row.meter, *(f"{size:.1f}" if size is not None else "-" for size in sizes))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.0f}%"


if __name__ == "__main__":
    main()
