"""The one place that parses and formats counts, sizes, shares and times.

Parsing is exact: a decimal is a whole numerator over a power of ten, never a float.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from zeroplan.errors import InputError, printable

GB = 10**9
GIB = 2**30
SIZES = {
    "kb": 10**3, "mb": 10**6, "gb": GB, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": GIB, "tib": 2**40,
}  # fmt: skip
COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
TOKENS = COUNTS | {"k": 2**10, "m": 2**20}
"""Sequence lengths are named by powers of two: 8k is 8,192."""
UNITS = {"GB": GB, "GiB": GIB}

_LONGEST = 64  # characters of one number; more is a mistake, not a number
_LARGEST_EXPONENT = 60
_UNIT_CHARACTERS = "abcdefghijklmnopqrstuvwxyz%"
_DIGITS = frozenset("0123456789")


def parse_decimal(text: str, where: str, example: str) -> tuple[int, int, str]:
    """The exact value of `text` as numerator and denominator, not negative, and its unit in lower case.

    Raises InputError for what is not a number, and for exponents beyond any use. No regular
    expression: compiling one takes longer than everything else in this module.
    """
    plain = text.strip().lower() if len(text) <= _LONGEST else ""
    number = plain.rstrip(_UNIT_CHARACTERS)
    unit = plain[len(number) :]
    mantissa, e, exponent = number.rstrip().partition("e")
    whole, _, part = mantissa.lstrip("+-").partition(".")
    signs = len(mantissa) - len(mantissa.lstrip("+-"))
    digits = _ungrouped(whole) + part
    power = exponent.lstrip("+-")
    if signs > 1 or len(exponent) - len(power) > 1 or not _are_digits(digits) or (e and not _are_digits(power)):
        raise InputError(where, f"{printable(text)} is not a number.", f"Example: {example}.")
    if mantissa.startswith("-"):
        raise InputError(where, f"{printable(text)} is negative.", f"Example: {example}.")
    if len(power) > 4 or int(power or "0") > _LARGEST_EXPONENT:
        raise InputError(where, f"{printable(text)} is far outside any possible value.", f"Example: {example}.")
    shift = int(exponent or "0") - len(part)
    return int(digits) * 10 ** max(shift, 0), 10 ** max(-shift, 0), unit


def _are_digits(text: str) -> bool:
    return bool(text) and _DIGITS.issuperset(text)


def _ungrouped(whole: str) -> str:
    """Digits without their grouping: 7_500 and 7,500 are 7500; 7,5 stays as it is, and so no number."""
    head, *groups = whole.split(",")
    if "__" in whole or whole.startswith("_") or whole.endswith("_"):
        return whole
    if groups and (not 1 <= len(head) <= 3 or any(len(group) != 3 for group in groups)):
        return whole
    return "".join((head, *groups)).replace("_", "")


def parse_count(text: str, where: str, high: int, example: str, units: Mapping[str, int] = COUNTS) -> int:
    """A whole number from 1 to `high`; accepts 7.5e9, 7.5B, 7_500_000_000 and 7,500,000,000."""
    numerator, denominator, unit = parse_decimal(text, where, example)
    if unit not in units:
        raise InputError(where, f"{printable(text)} is not a count.", f"Example: {example}.")
    value, rest = divmod(numerator * units[unit], denominator)
    if not 1 <= value <= high or (value == high and rest):
        raise InputError(where, f"{printable(text)} is outside 1 to {format_count(high)}.", f"Example: {example}.")
    if rest:
        raise InputError(where, f"{printable(text)} is not a whole number.", f"Example: {example}.")
    return value


def parse_size(text: str, where: str) -> int:
    """Bytes of a size with a unit, such as 48GB, 44.35GiB or 81559MiB; rounds down to whole bytes."""
    numerator, denominator, unit = parse_decimal(text, where, "48GB or 44.35GiB")
    if text.strip().endswith("b") and text.strip()[-len(unit or " ")].isupper():
        raise InputError(where, f"{printable(text)} is in bits.", "Bytes have a capital B: 48GB or 44.35GiB.")
    if unit not in SIZES:
        problem = "has no unit" if not unit else "has no unit of size that zeroplan knows"
        raise InputError(where, f"{printable(text)} {problem}.", "Say which: 48GB (1e9 bytes) or 44.35GiB (2^30).")
    size = numerator * SIZES[unit] // denominator
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
    numerator, denominator, unit = parse_decimal(text, where, "10% or 0.1")
    if unit not in ("", "%"):
        raise InputError(where, f"{printable(text)} is not a share.", "Example: 10% or 0.1.")
    share = Share(numerator, denominator * (100 if unit else 1))
    if share.numerator >= share.denominator:
        hint = "Example: 10% or 0.1." if unit else f"A percentage needs its sign: {text.strip()[:8]}% or 0.1."
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


def format_exact(count: int) -> str:
    """A count with every digit: 31,406,250,000."""
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """A count with its noun: 1 GPU, 64 GPUs, 2 micro-batches."""
    plural = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{format_count(count)} {noun}{plural}"


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


def format_rate(bytes_per_s: float) -> str:
    """A bandwidth: 12.5 GB/s."""
    return f"{bytes_per_s / GB:g} GB/s"


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
