"""What else is alive while the backward pass is in a block: gradients in flight, and what is computed again.

Measured with the same code as kept.py: the most that is alive beyond what was kept when the pass reaches the block.
"""

from dataclasses import replace

from zeroplan.core.blocks import Architecture, Attention, Block, FeedForward
from zeroplan.core.kept import block_parts
from zeroplan.core.setting import FP32_BYTES, Part, Piece, Setting, added, parts_of, total
from zeroplan.core.sharding import Elements

SOURCE = (
    "the gradients of a block's output and inside its feed-forward part, where most of them are alive at once: "
    "transformers 5.24 modeling code, torch 2.13, live storages of two to three configurations a kind"
)
POST_NORM_TENSORS = 9
"""Of the hidden width, in a post-norm block: its backward in fp32 is larger than the MLP's (Gemma-2, OLMo-2)."""

Named = tuple[str, int, dict[str, int]]
"""A width: its formula, its value, and that formula's inputs."""


def gradients_in_flight(block: Block, how: Setting) -> Elements:
    """Bytes per token of gradients inside one block, at most; the incoming one included."""
    _, feed = parts_of(block)
    coming = FP32_BYTES if how.autocast else how.size
    found = _experts(feed, how, coming) if feed.experts else total([(coming, how.hidden), *_inside(feed, how)])
    if not how.shape.post_norms or how.fuses("norm"):
        return found
    norm = total([(POST_NORM_TENSORS * how.size, how.hidden)])
    return _larger(found, norm)


def _inside(feed: FeedForward, how: Setting) -> list[Piece]:
    width = {"width": feed.width}
    if not feed.gated and how.autocast:
        return [(6 * how.size, width)] if how.shape.activation == "gelu_new" else [(how.size, width), (2, how.hidden)]
    one_kernel = not feed.gated and how.shape.activation in ("gelu", "silu")
    return [(how.size if one_kernel else 2 * how.size, width)]


def _experts(feed: FeedForward, how: Setting, coming: int) -> Elements:
    """The routed copies, or the insides of wide experts, or those of a shared one, whichever is most."""
    size, chosen = how.size, {"experts_per_token": feed.experts_per_token}
    copies = (6 if how.autocast else 7 if how.shape.route_bytes == FP32_BYTES else 3) * size
    routed = total([(coming, how.hidden), (copies, {**chosen, **how.hidden})])
    wide = total([(coming, how.hidden), (2 * size, {**chosen, "width": feed.width})])
    shared = total([(coming, how.hidden), (2 * size, {"shared_width": feed.shared_width})])
    return _larger(_larger(routed, wide), shared)


def left_when_done(block: Block, how: Setting) -> Elements:
    """Bytes per token of a block whose weights all have their gradients: what its norms and its attention keep,
    without scores, and the gradient of its output."""
    flash = how._replace(work=replace(how.work, attention="flash"))
    parts = [part.kept for part in block_parts(block, flash) if part.name in ("norms", "attention")]
    coming = total([(FP32_BYTES if how.autocast else how.size, how.hidden)])
    return added([*parts, coming])


def _larger(left: Elements, right: Elements) -> Elements:
    return left if left.count >= right.count else right


def matmul_outputs(block: Block, how: Setting) -> Part:
    """What selective recomputation by operator keeps: the block's input, flash attention's output and statistics,
    and the outputs of every second matrix product, the first one included."""
    attention, feed = parts_of(block)
    outputs = [*_projections(attention, how.shape), *_feed_products(feed, how.shape)]
    core = ("heads * value_dim", attention.heads * attention.value_dim, {"value_dim": attention.value_dim})
    terms = [("hidden", how.shape.hidden, how.hidden), core, *outputs[::2]]
    inputs = {name: value for _, _, given in terms for name, value in given.items()}
    count = how.size * sum(width for _, width, _ in terms) + FP32_BYTES * attention.heads
    formula = f"{how.size} * ({' + '.join(name for name, _, _ in terms)}) + {FP32_BYTES} * heads"
    return Part(name="products", kept=Elements(count, formula, {**inputs, "heads": attention.heads}))


def matmul_weights(block: Block, shape: Architecture) -> tuple[int, int]:
    """The weights of the matrix products that selective recomputation by operator does again, and of all of them."""
    attention, feed = parts_of(block)
    outputs = [width for _, width, _ in (*_projections(attention, shape), *_feed_products(feed, shape))]
    inputs = [shape.hidden] * 3 + [attention.heads * attention.value_dim]
    inputs += [shape.hidden] * (len(outputs) - len(inputs) - 1) + [outputs[-2]]
    products = [out * inside for out, inside in zip(outputs, inputs, strict=True)]
    return sum(products[1::2]), sum(products)


def _projections(attention: Attention, shape: Architecture) -> list[Named]:
    query = {"heads": attention.heads, "head_dim": attention.head_dim}
    key = {"kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
    return [
        ("heads * head_dim", attention.heads * attention.head_dim, query),
        ("kv_heads * head_dim", attention.kv_heads * attention.head_dim, key),
        ("kv_heads * head_dim", attention.kv_heads * attention.head_dim, key),
        ("hidden", shape.hidden, {"hidden": shape.hidden}),
    ]


def _feed_products(feed: FeedForward, shape: Architecture) -> list[Named]:
    width, name = feed.width, "width"
    given = {"width": width}
    if feed.experts:
        width = feed.experts_per_token * width + feed.shared_width
        name = "(experts_per_token * width + shared_width)"
        given |= {"experts_per_token": feed.experts_per_token, "shared_width": feed.shared_width}
    inner = [(name, width, given)] * (2 if feed.gated else 1)
    return [*inner, ("hidden", shape.hidden, {"hidden": shape.hidden})]
