"""What one block keeps for the backward pass, part by part, in bytes per token.

What an operator saves is what its gradient needs: a matrix product its input, a norm its input and what it made
of it, an activation function its input, attention its query, key, value and output. Korthikanti et al.
(arXiv 2205.05198) count 34 bytes per hidden value so; the forms here were measured on the models' own code.
"""

from dataclasses import dataclass

from zeroplan.core.model import Architecture, Attention, Block, FeedForward
from zeroplan.core.sharding import Elements
from zeroplan.core.workload import Workload

FP32_BYTES = 4  # IEEE 754 binary32
SOURCES = {
    "norms": "an eager RMSNorm keeps its fp32 input, the normalised values and its output, a fused one and a LayerNorm "
    "their input and output: huggingface/transformers 5.24 modeling code, torch 2.13, measured with saved-tensor hooks",
    "attention": "query, key, value, output and the row statistics of flash attention; scores and softmax of an eager "
    "one: huggingface/transformers 5.24 modeling code, torch 2.13, measured; Korthikanti et al. (arXiv 2205.05198)",
    "mlp": "what the activation function, the product with the gate and the second matrix need: "
    "huggingface/transformers 5.24 modeling code, torch 2.13, measured with saved-tensor hooks",
    "experts": "the MLP's, for every expert that a token goes to, with its routed copy in and out: "
    "huggingface/transformers 5.24 modeling code, torch 2.13, measured with saved-tensor hooks",
    "products": "pytorch/torchtitan distributed/activation_checkpoint.py, per-operator policy: every second matrix "
    "product and the attention output; two runs of 2024 reproduced within 1% (commit 83c879f18)",
    "dropout": "one byte per element and mask: Korthikanti et al. (arXiv 2205.05198) section 4",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Part:
    """Bytes per token that one part of a block keeps."""

    name: str
    kept: Elements


def block_parts(block: Block, shape: Architecture, work: Workload, compute_bytes: int) -> list[Part]:
    """Everything one block keeps when nothing is computed again."""
    attention, feed = block.attention, block.feed
    assert attention is not None
    assert feed is not None  # an architecture whose activations are modelled has both
    parts = [
        Part(name="norms", kept=_norms(block, shape, work, compute_bytes)),
        Part(name="attention", kept=_attention(attention, shape, work, compute_bytes)),
        Part(name="experts" if feed.experts else "mlp", kept=_feed(feed, shape, work, compute_bytes)),
    ]
    if shape.residual_dropout:
        parts.append(Part(name="dropout", kept=Elements(2 * shape.hidden, "2 * hidden", {"hidden": shape.hidden})))
    return parts


def norm_bytes(shape: Architecture, work: Workload, compute_bytes: int) -> Elements:
    """What one norm over the hidden width keeps, its output included."""
    return _times(_norm_width(shape, work, compute_bytes), "hidden", shape.hidden)


def _norm_width(shape: Architecture, work: Workload, compute_bytes: int) -> int:
    eager = shape.norm == "rms" and "norm" not in work.fused
    return FP32_BYTES + 2 * compute_bytes if eager else 2 * compute_bytes


def _norms(block: Block, shape: Architecture, work: Workload, compute_bytes: int) -> Elements:
    """The norms before the parts; those after them (post-norms) feed a sum, so their output is not kept."""
    before, after = min(block.norms, 2), max(block.norms - 2, 0)
    width = _norm_width(shape, work, compute_bytes)
    each = f"{before} * {width}" + (f" + {after} * {width - compute_bytes}" if after else "")
    total = (before * width + after * (width - compute_bytes)) * shape.hidden
    return Elements(total, f"({each}) * hidden", {"hidden": shape.hidden})


def _attention(attention: Attention, shape: Architecture, work: Workload, compute_bytes: int) -> Elements:
    if attention.kv_rank:
        return _latent(attention, work, compute_bytes)
    heads, kv_heads, width = attention.heads, attention.kv_heads, attention.head_dim
    inputs = {"heads": heads, "kv_heads": kv_heads, "head_dim": width}
    keys, copies = ("kv_heads", kv_heads) if work.attention == "flash" else ("heads", heads)
    kept = Elements(
        2 * compute_bytes * (heads + copies) * width,
        f"{2 * compute_bytes} * (heads + {keys}) * head_dim",
        inputs,
    )
    kept = _plus(kept, _core(attention, shape, work, compute_bytes))
    if attention.qk_norm:
        norm = FP32_BYTES + compute_bytes if shape.norm == "rms" and "norm" not in work.fused else compute_bytes
        normed = Elements(norm * (heads + kv_heads) * width, f"{norm} * (heads + kv_heads) * head_dim", inputs)
        kept = _plus(kept, normed)
    return kept


def _latent(attention: Attention, work: Workload, compute_bytes: int) -> Elements:
    """Latent attention: query, key and value are whole again before the core."""
    heads, width, value = attention.heads, attention.head_dim, attention.value_dim
    inputs = {"heads": heads, "head_dim": width, "value_dim": value}
    kept = Elements(
        2 * compute_bytes * heads * (width + value),
        f"{2 * compute_bytes} * heads * (head_dim + value_dim)",
        inputs,
    )
    norm = 2 * compute_bytes if "norm" in work.fused else FP32_BYTES + 2 * compute_bytes
    for name, rank in (("query_rank", attention.query_rank), ("kv_rank", attention.kv_rank)):
        if rank:
            kept = _plus(kept, _times(norm, name, rank))
    if work.attention == "flash":
        return _plus(kept, _times(FP32_BYTES, "heads", heads))
    return _plus(kept, _scores(heads, False, work, compute_bytes))


def _core(attention: Attention, shape: Architecture, work: Workload, compute_bytes: int) -> Elements:
    if work.attention == "flash":
        return _times(FP32_BYTES, "heads", attention.heads)
    return _scores(attention.heads, shape.attention_dropout, work, compute_bytes)


def _scores(heads: int, dropout: bool, work: Workload, compute_bytes: int) -> Elements:
    """Softmax of the scores: in fp32 with a cast, or in 16 bits; dropout keeps a mask, and in 16 bits its result."""
    if work.attention == "eager":
        each = FP32_BYTES + compute_bytes + dropout
    else:
        each = 2 * compute_bytes + 1 if dropout else compute_bytes
    return Elements(each * heads * work.seq_len, f"{each} * heads * seq_len", {"heads": heads, "seq_len": work.seq_len})


def _feed(feed: FeedForward, shape: Architecture, work: Workload, compute_bytes: int) -> Elements:
    tensors = 2 if not feed.gated else 3 if "mlp" in work.fused else 4
    kept = _times(tensors * compute_bytes, "width", feed.width)
    if not feed.experts:
        return kept
    each = Elements(
        feed.experts_per_token * (kept.count + 2 * compute_bytes * shape.hidden),
        f"experts_per_token * ({kept.formula} + {2 * compute_bytes} * hidden)",
        {**kept.inputs, "experts_per_token": feed.experts_per_token, "hidden": shape.hidden},
    )
    router = _times(FP32_BYTES + compute_bytes, "experts", feed.experts)
    routed = _plus(each, router)
    if not feed.shared_width:
        return routed
    return _plus(routed, _times(tensors * compute_bytes, "shared_width", feed.shared_width))


def _times(factor: int, name: str, value: int) -> Elements:
    return Elements(factor * value, f"{factor} * {name}", {name: value})


def _plus(left: Elements, right: Elements) -> Elements:
    return Elements(left.count + right.count, f"{left.formula} + {right.formula}", {**left.inputs, **right.inputs})


def matmul_outputs(block: Block, shape: Architecture, compute_bytes: int) -> list[Part]:
    """What selective recomputation by operator keeps: the block's input, flash attention's output and statistics,
    and the outputs of every second matrix product, the first one included."""
    attention, feed = block.attention, block.feed
    assert attention is not None
    assert feed is not None  # an architecture whose activations are modelled has both
    outputs = [*_projections(attention, shape), *_feed_products(feed, shape)]
    kept = [named for place, named in enumerate(outputs) if place % 2 == 0]
    core = [("heads * value_dim", attention.heads * attention.value_dim, {"value_dim": attention.value_dim})]
    terms = [("hidden", shape.hidden, {"hidden": shape.hidden}), *core, *kept]
    inputs = {name: value for _, _, given in terms for name, value in given.items()}
    total = compute_bytes * sum(width for _, width, _ in terms) + FP32_BYTES * attention.heads
    formula = f"{compute_bytes} * ({' + '.join(name for name, _, _ in terms)}) + {FP32_BYTES} * heads"
    return [Part(name="products", kept=Elements(total, formula, {**inputs, "heads": attention.heads}))]


def _projections(attention: Attention, shape: Architecture) -> list[tuple[str, int, dict[str, int]]]:
    query = {"heads": attention.heads, "head_dim": attention.head_dim}
    key = {"kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
    return [
        ("heads * head_dim", attention.heads * attention.head_dim, query),
        ("kv_heads * head_dim", attention.kv_heads * attention.head_dim, key),
        ("kv_heads * head_dim", attention.kv_heads * attention.head_dim, key),
        ("hidden", shape.hidden, {"hidden": shape.hidden}),
    ]


def _feed_products(feed: FeedForward, shape: Architecture) -> list[tuple[str, int, dict[str, int]]]:
    width, name = feed.width, "width"
    given = {"width": width}
    if feed.experts:
        width = feed.experts_per_token * width + feed.shared_width
        name = "(experts_per_token * width + shared_width)"
        given |= {"experts_per_token": feed.experts_per_token, "shared_width": feed.shared_width}
    inner = [(name, width, given)] * (2 if feed.gated else 1)
    return [*inner, ("hidden", shape.hidden, {"hidden": shape.hidden})]


def matmul_weights(block: Block, shape: Architecture) -> tuple[int, int]:
    """The weights of the matrix products that selective recomputation by operator does again, and of all of them."""
    attention, feed = block.attention, block.feed
    assert attention is not None
    assert feed is not None  # an architecture whose activations are modelled has both
    outputs = [width for _, width, _ in (*_projections(attention, shape), *_feed_products(feed, shape))]
    inputs = [shape.hidden] * 3 + [attention.heads * attention.value_dim]
    inputs += [shape.hidden] * (len(outputs) - len(inputs) - 1) + [outputs[-2]]
    products = [out * inside for out, inside in zip(outputs, inputs, strict=True)]
    return sum(products[1::2]), sum(products)
