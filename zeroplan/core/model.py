"""The model to train: so far, how many parameters it has."""

from dataclasses import dataclass

from zeroplan.core.checks import check_range

LARGEST_MODEL = 10**18


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Model:
    """`params` trained parameters, many small tensors (no tensor is larger than a shard)."""

    params: int

    def __post_init__(self) -> None:
        check_range("--params", self.params, 1, LARGEST_MODEL)
