"""What an out-of-memory message of PyTorch says."""

from __future__ import annotations

from typing import NamedTuple

FRAGMENTED, LIMITED, TAKEN, TOO_LITTLE = "fragmented", "limited", "taken", "too-little"
"""Why: pieces none of which is enough; a limit of the program; others took what was free; too little in all."""


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
    allowed: Size | None
    """A limit that the program set itself: set_per_process_memory_fraction."""
    times: int
    """How many such messages the text has."""

    @property
    def outside(self) -> int | None:
        """Bytes of the device that PyTorch does not hold and that are not free: contexts, NCCL, other processes."""
        if self.total is None or self.free is None or self.reserved is None:
            return None
        return max(0, self.total.bytes - self.free.bytes - self.reserved.bytes)

    @property
    def cached(self) -> int | None:
        """Bytes that PyTorch holds and no tensor has."""
        if self.reserved is None or self.allocated is None:
            return None
        return max(0, self.reserved.bytes - self.allocated.bytes)

    @property
    def there(self) -> int | None:
        """Bytes that no tensor had: free, and held by PyTorch in pieces."""
        return None if self.cached is None or self.free is None else self.cached + self.free.bytes

    @property
    def cause(self) -> str | None:
        """Why the request failed; None where the message does not say enough."""
        wanted = self.requested.bytes
        if self.cached is None or self.reserved is None:
            return None
        if self.cached >= wanted:
            return FRAGMENTED
        if self.free is None or self.there is None:
            return None
        if self.allowed and self.allowed.bytes - self.reserved.bytes < min(self.free.bytes, wanted):
            return LIMITED
        if self.free.bytes >= wanted:
            return TAKEN
        return FRAGMENTED if self.there >= wanted else TOO_LITTLE
