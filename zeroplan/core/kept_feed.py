"""What the feed-forward part of a block keeps, an MLP or a router and its experts: bytes per token, as kept.py says."""

from zeroplan.core.blocks import FeedForward
from zeroplan.core.setting import FP32_BYTES, INDEX_BYTES, Piece, Setting

ACTIVATION_TENSORS = {"gelu": 2, "silu": 2, "relu2": 2, "gelu_new": 5, "quick_gelu": 3, "relu": 1, "gelu_fast": 8}
"""Tensors of the width that a plain MLP keeps: what the function needs, what it makes on the way, its output."""
FUSED_TENSORS = {"relu": 1}
"""The same where the function is one kernel; 2 for all others."""


def feed_pieces(feed: FeedForward, how: Setting) -> list[Piece]:
    """Everything the part keeps."""
    if feed.experts:
        return [*_router(feed, how), *_experts(feed, how), *_shared(feed, how)]
    return [(_feed_bytes(feed, how), {"width": feed.width})]


def _feed_bytes(feed: FeedForward, how: Setting) -> int:
    """Per value of the width of an MLP."""
    if feed.gated:
        return how.size * (3 if how.fuses("mlp") else 4)
    kind = how.shape.activation
    if how.fuses("mlp"):
        return how.size * FUSED_TENSORS.get(kind, 2)
    if how.autocast and kind == "gelu_new":
        return 4 * FP32_BYTES
    return how.size * ACTIVATION_TENSORS[kind]


def _router(feed: FeedForward, how: Setting) -> list[Piece]:
    kind, size = how.shape.router, how.size
    experts, chosen = {"experts": feed.experts}, {"experts_per_token": feed.experts_per_token}
    pieces: list[Piece] = [(INDEX_BYTES, chosen)]
    if kind == "top-k":
        return [*pieces, (size, chosen)]
    scores = FP32_BYTES + (1 if kind == "sigmoid" else 0)
    if how.autocast and kind == "sigmoid":
        scores = size + 1
    pieces.append((scores, experts))
    if kind != "softmax" and not how.autocast:
        pieces.append((FP32_BYTES, how.hidden))
    if how.shape.renormalised:
        weight = size if how.autocast and kind == "sigmoid" else FP32_BYTES
        pieces += [(FP32_BYTES, {}), (weight, chosen)]
    return pieces


def _experts(feed: FeedForward, how: Setting) -> list[Piece]:
    """Inputs, gate and up, their product and the output, for every expert of a token, and where they come from."""
    chosen, size = {"experts_per_token": feed.experts_per_token}, how.size
    weight = size if how.autocast and how.shape.router == "sigmoid" else how.shape.route_bytes
    tensors = 7 if how.shape.router == "top-k" else 3 if how.fuses("mlp") else 4
    hidden, inside = {**chosen, **how.hidden}, {**chosen, "width": feed.width}
    bias = INDEX_BYTES if how.shape.router == "top-k" else 0
    if how.autocast:
        return [(8, hidden), (FP32_BYTES * tensors, inside), (3 * INDEX_BYTES + weight + bias, chosen)]
    if not how.work.packed_experts:
        return [(3 * size, hidden), (tensors * size, inside), (2 * INDEX_BYTES + weight, chosen)]
    return [(2 * size, hidden), (tensors * size, inside), (3 * INDEX_BYTES + weight + bias, chosen)]


def _shared(feed: FeedForward, how: Setting) -> list[Piece]:
    if not feed.shared_width:
        return []
    gate = [(how.size, how.hidden), (how.size, {})] if feed.shared_gate else []
    return [(how.size * (3 if how.fuses("mlp") else 4), {"shared_width": feed.shared_width}), *gate]
