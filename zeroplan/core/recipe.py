"""The training recipe: how many bytes each state costs per parameter."""

from dataclasses import dataclass

from zeroplan.core.checks import check_member, check_range, check_text
from zeroplan.core.hardware import STRICT
from zeroplan.errors import InputError

ROLES = ("parameters", "gradients", "optimizer")
"""What ZeRO partitions, from the last stage to the first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class State:
    """One value kept for each parameter."""

    __pydantic_config__ = STRICT

    name: str
    role: str
    type: str
    bytes: int
    """Per parameter."""
    source: str = ""

    def __post_init__(self) -> None:
        check_text("state, name", self.name)
        check_member(f"state {self.name}, role", self.role, ROLES)
        check_range(f"state {self.name}, bytes", self.bytes, 1, 64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Recipe:
    """Bytes per parameter of every state, and of a parameter in compute."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    compute_bytes: int
    """Bytes of one element in forward and backward: what gathers and 16-bit buffers carry."""
    states: tuple[State, ...]
    notes: str = ""
    source: str

    def __post_init__(self) -> None:
        check_text(f"recipe {self.name}, source", self.source)
        check_range(f"recipe {self.name}, compute_bytes", self.compute_bytes, 1, 8)
        for role in ("parameters", "gradients"):
            if not self.states_of(role):
                raise InputError(f"recipe {self.name}", f"has no state with the role {role}.")
        names = [state.name for state in self.states]
        if len(set(names)) < len(names):
            raise InputError(f"recipe {self.name}", "names a state twice.")

    def states_of(self, role: str) -> tuple[State, ...]:
        return tuple(state for state in self.states if state.role == role)

    def bytes_of(self, role: str) -> int:
        """Bytes per parameter of all states with this role."""
        return sum(state.bytes for state in self.states_of(role))

    @property
    def bytes_per_parameter(self) -> int:
        return sum(state.bytes for state in self.states)
