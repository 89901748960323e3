"""The one place that parses and formats counts, sizes, shares and times.

Parsing is exact: a decimal is a whole numerator over a power of ten, never a float.
"""

import re
from dataclasses import dataclass

from zeroplan.errors import InputError, printable

GB = 10**9
GIB = 2**30
SIZES = {
    "kb": 10**3, "mb": 10**6, "gb": GB, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": GIB, "tib": 2**40,
}  # fmt: skip
COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
UNITS = {"GB": GB, "GiB": GIB}

_LONGEST = 64  # characters of one number; more is a mistake, not a number
_LARGEST_EXPONENT = 60
_NUMBER = re.compile(
    r"\s*(?P<sign>[+-]?)(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9_]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+))?\s*(?P<unit>[A-Za-z%]*)\s*"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decimal:
    """An exact decimal number `numerator / denominator` with the unit that followed it."""

    numerator: int
    denominator: int
    unit: str


def parse_decimal(text: str, where: str, example: str) -> Decimal:
    """The exact value of `text`, not negative, with its unit in lower case.

    Raises InputError for what is not a number, and for exponents beyond any use.
    """
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    digits = ((match["whole"] or "") + (match["part"] or "")).replace("_", "").replace(",", "") if match else ""
    if not match or not digits:
        raise InputError(where, f"{printable(text)} is not a number.", f"Example: {example}.")
    if match["sign"] == "-":
        raise InputError(where, f"{printable(text)} is negative.", f"Example: {example}.")
    exponent = match["exponent"] or "0"
    if len(exponent) > 4 or abs(int(exponent)) > _LARGEST_EXPONENT:
        raise InputError(where, f"{printable(text)} is far outside any possible value.", f"Example: {example}.")
    power = int(exponent) - len(match["part"] or "")
    return Decimal(int(digits) * 10 ** max(power, 0), 10 ** max(-power, 0), match["unit"].lower())


def parse_count(text: str, where: str, high: int, example: str) -> int:
    """A whole number from 1 to `high`; accepts 7.5e9, 7.5B, 7_500_000_000 and 7,500,000,000."""
    number = parse_decimal(text, where, example)
    if number.unit not in COUNTS:
        raise InputError(where, f"{printable(text)} is not a count.", f"Example: {example}.")
    value, rest = divmod(number.numerator * COUNTS[number.unit], number.denominator)
    if not 1 <= value <= high or (value == high and rest):
        raise InputError(where, f"{printable(text)} is outside 1 to {format_count(high)}.", f"Example: {example}.")
    if rest:
        raise InputError(where, f"{printable(text)} is not a whole number.", f"Example: {example}.")
    return value


def parse_size(text: str, where: str) -> int:
    """Bytes of a size with a unit, such as 48GB, 44.35GiB or 81559MiB; rounds down to whole bytes."""
    number = parse_decimal(text, where, "48GB or 44.35GiB")
    if number.unit not in SIZES:
        problem = "has no unit" if not number.unit else "has no unit of size that zeroplan knows"
        raise InputError(where, f"{printable(text)} {problem}.", "Say which: 48GB (1e9 bytes) or 44.35GiB (2^30).")
    size = number.numerator * SIZES[number.unit] // number.denominator
    if not 1 <= size <= 10**18:
        raise InputError(where, f"{printable(text)} is outside 1 byte to 1e18 bytes.", "Example: 48GB.")
    return size


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Share:
    """An exact share of a whole, 0 <= share < 1."""

    numerator: int
    denominator: int

    def of(self, whole: int) -> int:
        """This share of `whole`, rounded up to a whole unit."""
        return -(-whole * self.numerator // self.denominator)

    def __float__(self) -> float:
        return self.numerator / self.denominator


def parse_share(text: str, where: str) -> Share:
    """A share from 0% to under 100%: `10%`, `0.1` or `0`."""
    number = parse_decimal(text, where, "10% or 0.1")
    if number.unit not in ("", "%"):
        raise InputError(where, f"{printable(text)} is not a share.", "Example: 10% or 0.1.")
    share = Share(number.numerator, number.denominator * (100 if number.unit else 1))
    if share.numerator >= share.denominator:
        hint = "Example: 10% or 0.1." if number.unit else f"A percentage needs its sign: {text.strip()[:8]}% or 0.1."
        raise InputError(where, f"{printable(text)} is outside 0% to under 100%.", hint)
    return share


def format_count(count: int) -> str:
    """A count that reads back exactly: 64, 100,000, 7.5e9, 70e9 and 6.738415616e9."""
    if count < 10**6:
        return f"{count:,}"
    digits = str(count)
    power = (len(digits) - 1) // 3 * 3
    whole, part = digits[:-power], digits[-power:].rstrip("0")
    return f"{whole}{'.' + part if part else ''}e{power}"


def format_number(value: float, digits: int) -> str:
    """A number with `digits` decimals; what is not zero never prints as zero."""
    text = f"{value:,.{digits}f}"
    smallest = 10**-digits
    if value and abs(value) < smallest / 2:
        return f"<{smallest:.{digits}f}" if value > 0 else f">-{smallest:.{digits}f}"
    return text


def format_size(size: int, unit: str, digits: int = 2) -> str:
    """A size in `unit` (GB or GiB) without the unit's name, for a column or sentence that names it."""
    return format_number(size / UNITS[unit], digits)


def format_share(share: float) -> str:
    """A share as a percentage: 0.1 is 10%."""
    return f"{share * 100:g}%"


def format_ratio(ratio: float | None) -> str:
    """A ratio such as 1.5x or 0.75x; unknown where there is none."""
    if ratio is None:
        return "unknown"
    whole, part = f"{ratio:.2f}".split(".")
    return f"{whole}.{part.removesuffix('0')}x"


def format_seconds(seconds: float | None, digits: int = 3) -> str:
    """Seconds without the unit's name; unknown where there is no figure."""
    return "unknown" if seconds is None else format_number(seconds, digits)
