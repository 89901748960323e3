"""What options can be: the words, and how far numbers go."""

KERNELS = ("fused", "foreach", "loop")
"""How the optimizer's step runs: one kernel, one list at a time, or one tensor at a time."""
RECOMPUTE = ("none", "selective", "full")
"""What the backward pass computes again instead of keeping it; `full` keeps each block's input only."""
ATTENTION = ("flash", "eager", "fused-softmax")
"""The attention core: no scores kept, scores and their fp32 softmax kept, or the scores' softmax in 16 bits."""
CHECKPOINT_TIERS = ("gpu", "cpu")
COMPILED = ("none", "model", "all")
"""What runs under torch.compile: nothing, the model's blocks, or the loss too."""
FUSIBLE = ("norm", "mlp")
"""The parts of a block that can run as fused kernels."""
LONGEST_SEQUENCE = 10**9
LARGEST_BATCH = 10**9
