"""What a collective costs on the wire.

On a ring each GPU sends (N-1)/N of the array in one pass; an all-reduce is a reduce-scatter
followed by an all-gather, so two passes; a broadcast of everything, each part by its owner, is one,
and so is an all-to-all.
Source: nccl-tests doc/PERFORMANCE.md; ZeRO section 7.
"""

PASSES = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "broadcast": 1, "all-to-all": 1}
"""Passes over the ring by collective."""
