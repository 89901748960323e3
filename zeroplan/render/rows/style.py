"""How a screen is to look: unit, width and characters."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from zeroplan.core.host import NVME, NVME_BUFFER, RAM, Resource
from zeroplan.core.verdict import DOES_NOT_FIT, FITS, NOT_OFFERED, TIGHT
from zeroplan.render.blocks import BAD, DIM, GOOD, WARN, Cell, cell
from zeroplan.units import UNITS, format_size


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Style:
    """The unit of sizes, the columns of the screen, and whether it shows block characters."""

    unit: str = "GB"
    width: int = 80
    unicode: bool = True
    digits: int = 2
    """Decimals of a size."""

    def size(self, size: int | None, digits: int | None = None) -> str:
        """A size in the unit, without its name."""
        return "-" if size is None else format_size(size, self.unit, self.digits if digits is None else digits)

    def for_sizes(self, sizes: Iterable[int]) -> "Style":
        """Fewer decimals where sizes are so large that nobody reads them."""
        largest = max(sizes, default=0) / UNITS[self.unit]
        return replace(self, digits=2 if largest < 1000 else 1 if largest < 10_000 else 0)


TIER_NAMES = {"cpu": "CPU", "nvme": "NVMe"}
SHORT_NAMES = {RAM: "RAM", NVME: "NVMe", NVME_BUFFER: "buffer"}
VERDICT_STYLES = {FITS: GOOD, TIGHT: WARN, DOES_NOT_FIT: BAD, NOT_OFFERED: DIM}


def left_cell(verdict: str, spare_bytes: int | None, style: Style, short: Resource | None = None) -> Cell:
    """What is left of the budget, or why nothing is; `short`: what is too little beside the GPU's memory."""
    words = {TIGHT: "tight", DOES_NOT_FIT: "no", NOT_OFFERED: "-"}
    if short:
        words = {TIGHT: f"tight, {SHORT_NAMES[short.name]}", DOES_NOT_FIT: f"no {SHORT_NAMES[short.name]}"}
    return cell(words.get(verdict) or style.size(spare_bytes), VERDICT_STYLES[verdict])
