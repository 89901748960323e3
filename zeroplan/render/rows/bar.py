"""A bar of what fills a GPU at its peak."""

from zeroplan.core.ledger import Ledger

Pieces = tuple[tuple[str, str], ...]
"""(text, colour) pairs."""

SHADES = {
    "parameters": ("█", "blue"),
    "gradients": ("▓", "cyan"),
    "optimizer": ("▒", "green"),
    "buffers": ("╳", "magenta"),
    "activations": ("▚", "yellow"),
}
SLACK, LEFT, HEADROOM, BEYOND = ("~", "magenta"), ("·", "dim"), ("░", "dim"), ("▶", "red")
NAMES = {
    "parameters": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer",
    "buffers": "buffers",
    "activations": "activations",
}
_LETTERS = str.maketrans("█▓▒╳▚~·░▶", "WGOBAS.:>")


def legend(activations: bool) -> Pieces:
    """What the shades mean, each in its colour."""
    shown = [(role, *shade) for role, shade in SHADES.items() if activations or role != "activations"]
    ends = f"{LEFT[0]} left  " if activations else f"{LEFT[0]} left  {HEADROOM[0]} headroom  "
    slack = ((f"{SLACK[0]} slack  ", SLACK[1]),) if activations else ()
    return (
        *((f"{mark} {NAMES[role]}  ", colour) for role, mark, colour in shown),
        *slack,
        (ends, "dim"),
        (f"{BEYOND[0]} beyond", BEYOND[1]),
    )


def bar(ledger: Ledger, taken_bytes: int, usable_bytes: int, budget_bytes: int, width: int) -> Pieces:
    """(text, colour) pieces, `width` characters for the usable memory, at the peak; `taken_bytes` with the slack."""
    alive = ledger.alive_at(ledger.peak_moment)
    pieces, used, drawn = [], 0, 0
    for role, (mark, colour) in SHADES.items():
        used += sum(term.bytes for term in alive if term.role == role)
        end = min(round(width * used / usable_bytes), width)
        pieces.append((mark * (end - drawn), colour))
        drawn = end
    end = min(max(round(width * taken_bytes / usable_bytes), drawn), width)
    pieces.append((SLACK[0] * (end - drawn), SLACK[1]))
    drawn = end
    if max(used, taken_bytes) > usable_bytes:
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
