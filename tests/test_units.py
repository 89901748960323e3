"""Parsing is exact, formatting reads back, and no text is too strange."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroplan.errors import InputError
from zeroplan.units import (
    Share,
    format_count,
    format_number,
    format_ratio,
    format_seconds,
    format_size,
    parse_count,
    parse_share,
    parse_size,
)


def count(text: str) -> int:
    return parse_count(text, "--params", 10**18, "7.5e9")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7.5e9", 7_500_000_000),
        ("7.5B", 7_500_000_000),
        ("7.5b", 7_500_000_000),
        ("7_500_000_000", 7_500_000_000),
        ("7,500,000,000", 7_500_000_000),
        (" 1.5T ", 1_500_000_000_000),
        ("350M", 350_000_000),
        ("1", 1),
        ("1e18", 10**18),
        ("0.5e1", 5),
        ("+3", 3),
        ("999999999999999999", 999_999_999_999_999_999),
        ("70e-1", 7),
    ],
)
def test_counts_are_exact(text: str, value: int) -> None:
    assert count(text) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0", "outside 1 to 1e18"),
        ("1e19", "outside 1 to 1e18"),
        ("1e18.5", "is not a number"),
        ("-1", "is negative"),
        ("nan", "is not a number"),
        ("inf", "is not a number"),
        ("1e400", "far outside"),
        ("1e99999999999", "far outside"),
        ("7.5", "is not a whole number"),
        ("1e-3", "outside 1 to 1e18"),
        ("", "is not a number"),
        ("7.5 billion", "not a count"),
        ("7.5GB", "not a count"),
        ("1,2", "is not a number"),
        ("٣", "is not a number"),
        ("9" * 1000, "is not a number"),
        ("[red]x", "is not a number"),
    ],
)
def test_bad_counts_say_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        count(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("48GB", 48 * 10**9),
        ("44.35GiB", 47_620_449_894),
        ("81559 MiB", 81559 * 2**20),
        ("0.1tb", 10**11),
        ("48gb", 48 * 10**9),
        ("0.001kB", 1),
        ("1e9GB", 10**18),
    ],
)
def test_sizes(text: str, value: int) -> None:
    assert parse_size(text, "--memory") == value


@pytest.mark.parametrize(
    "text", ["48", "48G", "GB", "-48GB", "0GB", "1e30TB", "48 GBs", "48Gb", "48Gib", "1__0GB", "_8GB"]
)
def test_bad_sizes(text: str) -> None:
    with pytest.raises(InputError):
        parse_size(text, "--memory")


def test_a_size_without_a_unit_names_both() -> None:
    with pytest.raises(InputError, match=r"has no unit\. Say which: 48GB \(1e9 bytes\) or 44.35GiB \(2\^30\)"):
        parse_size("48", "--memory")


@pytest.mark.parametrize(
    ("text", "value"), [("10%", 0.1), ("0.1", 0.1), ("0", 0.0), ("0%", 0.0), ("99.9%", 0.999), ("1e-1", 0.1)]
)
def test_shares(text: str, value: float) -> None:
    assert float(parse_share(text, "--headroom")) == value


@pytest.mark.parametrize("text", ["100%", "200%", "1", "10", "1.0", "-1%", "nan", "10GB", "%", "abc"])
def test_bad_shares(text: str) -> None:
    with pytest.raises(InputError):
        parse_share(text, "--headroom")


def test_a_bare_percentage_is_told_of_its_sign() -> None:
    with pytest.raises(InputError, match=r"A percentage needs its sign: 10% or 0\.1"):
        parse_share("10", "--headroom")


@given(st.integers(0, 10**18), st.integers(0, 10**6 - 1))
def test_a_share_rounds_up_by_less_than_one(whole: int, numerator: int) -> None:
    share = Share(numerator, 10**6)
    assert 0 <= share.of(whole) * 10**6 - whole * numerator < 10**6


@pytest.mark.parametrize(
    ("value", "text"), [(999_999, "999,999"), (10**6, "1e6"), (7_500_000_000, "7.5e9"), (70 * 10**9, "70e9")]
)
def test_counts(value: int, text: str) -> None:
    assert format_count(value) == text


@given(st.integers(1, 10**18))
def test_counts_read_back_exactly(value: int) -> None:
    assert count(format_count(value)) == value


@given(st.integers(1, 10**17), st.sampled_from(["GB", "GiB"]))
def test_sizes_read_back_to_the_printed_digit(value: int, unit: str) -> None:
    text = format_size(value, unit)
    if not text.startswith("<"):
        scale = 10**9 if unit == "GB" else 2**30
        assert abs(parse_size(text + unit, "x") - value) <= scale * 0.0051 + value * 1e-15


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 2, "0.00"),
        (0.0004, 2, "<0.01"),
        (-0.0004, 2, ">-0.01"),
        (0.006, 2, "0.01"),
        (0.019, 2, "0.02"),
        (1234.5, 1, "1,234.5"),
        (31.40625, 2, "31.41"),
    ],
)
def test_what_is_not_zero_never_prints_as_zero(value: float, digits: int, text: str) -> None:
    assert format_number(value, digits) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.0, "1.0x"), (1.5, "1.5x"), (0.75, "0.75x"), (1.4666, "1.47x"), (12, "12.0x"), (None, "unknown")],
)
def test_ratios(ratio: float | None, text: str) -> None:
    assert format_ratio(ratio) == text


def test_unknown_time_is_said() -> None:
    assert format_seconds(None) == "unknown"


@given(st.text(max_size=80))
def test_no_text_reaches_another_error(text: str) -> None:
    for parse in (count, lambda t: parse_size(t, "x"), lambda t: parse_share(t, "x")):
        said = complaint(parse, text)
        assert said is None or said.isprintable()


def complaint(parse: Callable[[str], object], text: str) -> str | None:
    """What the parser says against a text; None when it takes it."""
    try:
        parse(text)
    except InputError as error:
        return str(error)
    return None
