"""How a screen is to look: unit, width and characters."""

from dataclasses import dataclass

from zeroplan.core.verdict import DOES_NOT_FIT, FITS, NOT_OFFERED, TIGHT
from zeroplan.render.blocks import BAD, DIM, GOOD, WARN, Cell, cell
from zeroplan.units import format_size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Style:
    """The unit of sizes, the columns of the screen, and whether it shows block characters."""

    unit: str = "GB"
    width: int = 80
    unicode: bool = True

    def size(self, size: int | None, digits: int = 2) -> str:
        """A size in the unit, without its name."""
        return "-" if size is None else format_size(size, self.unit, digits)


VERDICT_STYLES = {FITS: GOOD, TIGHT: WARN, DOES_NOT_FIT: BAD, NOT_OFFERED: DIM}


def left_cell(verdict: str, spare_bytes: int | None, style: Style) -> Cell:
    """What is left of the budget, or why nothing is."""
    words = {TIGHT: "tight", DOES_NOT_FIT: "no", NOT_OFFERED: "-"}
    return cell(words.get(verdict) or style.size(spare_bytes), VERDICT_STYLES[verdict])
