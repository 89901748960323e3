"""One number, as zeroplan predicts it and as it was measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number of one case."""

    case: str
    what: str
    predicted: int
    measured: int
    within: int
    """Bytes of difference that are explained."""
    why: str = ""

    @property
    def agrees(self) -> bool:
        return abs(self.predicted - self.measured) <= self.within

    @property
    def difference(self) -> float:
        """A share of what was measured."""
        return (self.predicted - self.measured) / self.measured if self.measured else float(self.predicted > 0)
