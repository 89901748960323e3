"""A bar of what fills a GPU at its peak."""

from zeroplan.core.ledger import Ledger

Pieces = tuple[tuple[str, str], ...]
"""(text, colour) pairs."""

SHADES = {
    "parameters": ("█", "blue"),
    "gradients": ("▓", "cyan"),
    "optimizer": ("▒", "green"),
    "buffers": ("╳", "magenta"),
}
LEFT, HEADROOM, BEYOND = ("·", "dim"), ("░", "dim"), ("▶", "red")
NAMES = {"parameters": "weights", "gradients": "gradients", "optimizer": "optimizer", "buffers": "buffers"}
LEGEND = (
    *((f"{mark} {NAMES[role]}  ", colour) for role, (mark, colour) in SHADES.items()),
    (f"{LEFT[0]} left  {HEADROOM[0]} headroom  ", "dim"),
    (f"{BEYOND[0]} beyond", BEYOND[1]),
)
"""What the shades mean, each in its colour."""
_LETTERS = str.maketrans("█▓▒╳·░▶", "WGOB.:>")


def bar(ledger: Ledger, usable_bytes: int, budget_bytes: int, width: int) -> Pieces:
    """(text, colour) pieces, `width` characters for the usable memory, at the peak's first phase."""
    phase = ledger.peak_phases[0]
    pieces, used, drawn = [], 0, 0
    for role, (mark, colour) in SHADES.items():
        used += sum(term.bytes for term in ledger.terms if term.role == role and phase in term.phases)
        end = min(round(width * used / usable_bytes), width)
        pieces.append((mark * (end - drawn), colour))
        drawn = end
    if used > usable_bytes:
        return (*_cut(pieces), BEYOND)
    budget = max(round(width * budget_bytes / usable_bytes), drawn)
    return (*pieces, (LEFT[0] * (budget - drawn), LEFT[1]), (HEADROOM[0] * (width - budget), HEADROOM[1]))


def letters(pieces: Pieces) -> Pieces:
    """The same where block characters cannot be shown."""
    return tuple((text.translate(_LETTERS), colour) for text, colour in pieces)


def _cut(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pieces less their last character."""
    whole = [piece for piece in pieces if piece[0]]
    text, colour = whole[-1]
    return [*whole[:-1], (text[:-1], colour)]
