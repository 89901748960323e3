"""What an out-of-memory message of PyTorch says."""

from __future__ import annotations

from typing import NamedTuple


class Size(NamedTuple):
    """A size as a message prints it: rounded to its last digit."""

    bytes: int
    half: int
    """Half of what the last digit is worth, in bytes."""


class Message(NamedTuple):
    """What a message says; None where it does not."""

    requested: Size
    total: Size | None
    free: Size | None
    allocated: Size | None
    reserved: Size | None
    """Allocated and cached."""
    times: int
    """How many such messages the text has."""

    @property
    def cached(self) -> int | None:
        """Bytes that PyTorch holds and no tensor has."""
        if self.reserved is None or self.allocated is None:
            return None
        return max(0, self.reserved.bytes - self.allocated.bytes)
