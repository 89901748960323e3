"""What one micro-batch is and how it is computed: what the activations follow from."""

from dataclasses import dataclass

from zeroplan.core.checks import check_member, check_members, check_range
from zeroplan.core.choices import (
    ATTENTION,
    CHECKPOINT_TIERS,
    COMPILED,
    FUSIBLE,
    LARGEST_BATCH,
    LONGEST_SEQUENCE,
    RECOMPUTE,
)
from zeroplan.core.loss import Loss


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Workload:
    """One micro-batch of `micro_batch` sequences of `seq_len` tokens, per GPU."""

    seq_len: int
    micro_batch: int = 1
    recompute: str = "none"
    every: int = 1
    """With full recomputation: blocks between two checkpoints; blocks between are computed again together."""
    attention: str = "flash"
    fused: tuple[str, ...] = ()
    """The parts of a block that run as fused kernels, of FUSIBLE."""
    loss: Loss
    selective: str = "attention"
    """What selective recomputation means, one of framework.SELECTIVE."""
    checkpoints: str = "gpu"
    """Where the inputs of recomputed blocks are kept."""
    compiled: str = "none"
    """What runs under torch.compile, of COMPILED: nothing, the model's blocks, or the loss too."""
    packed_experts: bool = True
    """Whether the experts of a block are one module, as in transformers 5, or a list of modules."""

    def __post_init__(self) -> None:
        check_range("--seq-len", self.seq_len, 1, LONGEST_SEQUENCE, "tokens")
        check_range("--micro-batch", self.micro_batch, 1, LARGEST_BATCH, "sequences")
        check_member("--recompute", self.recompute, RECOMPUTE)
        check_range("--recompute", self.every, 1, 10**6, "blocks")
        check_member("--attention", self.attention, ATTENTION)
        check_members("--fused", self.fused, FUSIBLE)
        check_member("--compile", self.compiled, COMPILED)
        check_member("--checkpoints", self.checkpoints, CHECKPOINT_TIERS)

    @property
    def how(self) -> str:
        """The recomputation as it is asked for: none, selective, full or every-K."""
        return f"every-{self.every}" if self.recomputes and self.every > 1 else self.recompute

    @property
    def tokens(self) -> int:
        return self.seq_len * self.micro_batch

    @property
    def recomputes(self) -> bool:
        """Whether whole blocks are computed again."""
        return self.recompute == "full"
