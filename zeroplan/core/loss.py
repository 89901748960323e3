"""How the logits become a loss, and what that holds."""

from dataclasses import dataclass

from zeroplan.core.checks import check_range, check_text
from zeroplan.core.hardware import STRICT


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Loss:
    """One way to compute the loss; bytes per token and vocabulary entry."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    kept_bytes: int
    """Between forward and backward."""
    forward_bytes: int
    """At the peak of the forward pass."""
    backward_bytes: int
    """At the peak of the backward pass."""
    returned_bytes: int = 0
    """Of those, the logits that the model returns and the training loop holds to the end of the step."""
    chunks: int = 1
    """Parts in which the tokens go through the head, so that only one part's logits exist; 0: vocabulary / hidden."""
    fusible_bytes: int = 0
    """What the peaks lose when the cast to fp32 is compiled into the loss, so that the logits stay in 16 bits."""
    notes: str = ""
    source: str

    def __post_init__(self) -> None:
        check_text(f"loss {self.name}, source", self.source)
        check_range(f"loss {self.name}, chunks", self.chunks, 0, 10**6)
        for key in ("kept_bytes", "forward_bytes", "backward_bytes"):
            check_range(f"loss {self.name}, {key}", getattr(self, key), 0, 100, "bytes")
