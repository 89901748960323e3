"""Screens: bars add up, tables and Markdown show every cell, text from files stays text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import AskQuestion
from zeroplan.core.estimate import memory
from zeroplan.render.blocks import Column, Grid, Paragraph, cell
from zeroplan.render.machine import csv_text, json_text
from zeroplan.render.markdown import markdown_text
from zeroplan.render.rows.bar import bar, letters
from zeroplan.render.table import print_blocks

GRID = Grid(
    (Column("name"), Column("GB", right=True), Column("why", wraps=True)),
    ((cell("one"), cell("1.00"), cell("a few words")), (cell("eleven"), cell("11.00"), cell("a few more words"))),
)


@given(usable=st.integers(1, 10**12), width=st.integers(5, 100), headroom=st.integers(0, 99), stage=st.integers(0, 3))
def test_a_bar_is_as_wide_as_asked(question: AskQuestion, usable: int, width: int, headroom: int, stage: int) -> None:
    ledger = memory(question(params=10**9).plan(None, stage))
    pieces = bar(ledger, ledger.peak_bytes, usable, usable * (100 - headroom) // 100, width)
    drawn = "".join(text for text, _ in pieces)
    assert len(drawn) == width
    assert drawn.endswith("▶") == (ledger.peak_bytes > usable)
    assert all(text.isascii() for text, _ in letters(pieces))


def test_a_bar_shades_each_role_by_its_bytes(question: AskQuestion) -> None:
    """16 GB of which 2 weights, 2 gradients, 12 optimizer, on a card of 32: an eighth each of half, then the rest."""
    ledger = memory(question(params=10**9, gpus=1).plan(None, 0))
    drawn = "".join(text for text, _ in bar(ledger, 16 * 10**9, 32 * 10**9, 28 * 10**9, 32))
    assert drawn == "█" * 2 + "▓" * 2 + "▒" * 12 + "·" * 12 + "░" * 4


def test_markdown_keeps_every_cell_and_escapes_its_own_marks() -> None:
    text = markdown_text([Paragraph("see [this](x) *now* <b>|"), GRID])
    assert text.splitlines()[0] == r"see \[this\](x) \*now\* \<b\>\|"
    assert "| eleven | 11.00 | a few more words |" in text
    assert "| --- | ---: | --- |" in text


def test_a_table_lines_its_columns_up(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_blocks([Paragraph("[red]not markup[/red]"), GRID])
    assert capsys.readouterr().out.splitlines() == [
        "[red]not markup[/red]",
        "",
        "name       GB  why",
        "one      1.00  a few words",
        "eleven  11.00  a few more words",
    ]


def test_a_table_wraps_words_but_never_cuts_a_figure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_blocks([GRID])
    printed = capsys.readouterr().out
    assert "11.00" in printed
    assert "eleven" in printed
    words = "name GB why one 1.00 a few words eleven 11.00 a few more words"
    assert printed.split() == words.split()


def test_json_is_strict() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"x": float("nan")})


def test_csv_joins_inner_tables_and_leaves_the_unknown_empty() -> None:
    text = csv_text([{"a": {"b": 1, "c": None}, "d": [1, 2]}, {"a": {"b": 3, "c": 4}, "d": []}])
    assert text.splitlines() == ["a_b,a_c,d", "1,,1 2", "3,4,"]
