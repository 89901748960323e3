"""What one block keeps for the backward pass, part by part, in bytes per token.

What an operator saves is what its gradient needs: a matrix product its input, a norm its input and what it made
of it, an activation function its input, attention its query, key, value and output. Korthikanti et al.
(arXiv 2205.05198) count 34 bytes per hidden value so. The forms here hold for the modelling code of transformers
5.24 to the byte: torch 2.13, saved-tensor hooks and live storages of 29 configurations of 28 model types; what a
CPU keeps otherwise than CUDA (dropout masks, statistics of norms) is corrected.
"""

from functools import lru_cache

from zeroplan.core.blocks import Attention, Block
from zeroplan.core.kept_feed import feed_pieces
from zeroplan.core.setting import FP32_BYTES, INDEX_BYTES, MASK_BYTES, Part, Piece, Setting, parts_of, total
from zeroplan.core.sharding import Elements

MEASURED = "transformers 5.24 modeling code, torch 2.13: saved-tensor hooks and live storages, equal to the byte"
SOURCES = {
    "norms": f"an eager RMSNorm keeps its fp32 input, the normalised values and its output, a LayerNorm its input and "
    f"output; {MEASURED}",
    "attention": f"query, key, value, output, and the row statistics of flash attention or the softmax of an eager "
    f"one; {MEASURED}; Korthikanti et al. (arXiv 2205.05198)",
    "mlp": f"what the activation function, the product with the gate and the second matrix need; {MEASURED}",
    "experts": f"the MLP's for every expert of a token, its routed copy in and out, and the router; {MEASURED}",
    "products": "pytorch/torchtitan distributed/activation_checkpoint.py, per-operator policy: every second matrix "
    "product and the attention output; active memory of two runs of 2024 reproduced within 2% (commit 83c879f18)",
    "dropout": "one byte per element and mask: Korthikanti et al. (arXiv 2205.05198) section 4",
}


@lru_cache(maxsize=16)
def block_parts(block: Block, how: Setting) -> tuple[Part, ...]:
    """Everything one block keeps when nothing is computed again."""
    attention, feed = parts_of(block)
    named: dict[str, list[Piece]] = {
        "norms": [*_norms(block, how), *_casts(block, how)],
        "attention": _attention(attention, how),
        "experts" if feed.experts else "mlp": feed_pieces(feed, how),
        "dropout": [(MASK_BYTES * how.shape.residual_masks, how.hidden)] if how.shape.residual_dropout else [],
    }
    return tuple(Part(name=name, kept=total(pieces)) for name, pieces in named.items() if pieces)


def final_norm(how: Setting) -> Elements:
    """The last norm, its input and output included."""
    size = how.size
    if how.shape.norm.startswith("layer"):
        pieces: list[Piece] = [((FP32_BYTES if how.autocast else size) + size, how.hidden), (8, {})]
        return total(pieces)
    cast = [(size, how.hidden)] if how.autocast else []
    return total([*_norm(how, after=False), *cast])


def checkpoint_bytes(how: Setting) -> int:
    """Of one value of a block's input."""
    return FP32_BYTES if how.autocast else how.size


def _norm(how: Setting, after: bool) -> list[Piece]:
    """One norm over the hidden width; after a part its output feeds a sum and is not kept."""
    size, output = how.size, 0 if after else how.size
    kind = how.shape.norm
    if kind == "layer":
        return [(output, how.hidden), (2 * FP32_BYTES, {})]
    if kind == "layer-eager":
        return [(3 * FP32_BYTES + output, how.hidden), (FP32_BYTES, {})]
    if how.fuses("norm"):
        return [(size + output, how.hidden), (FP32_BYTES, {})]
    normalised = FP32_BYTES if kind == "rms-fp32" else size
    return [(FP32_BYTES + normalised + output, how.hidden), (FP32_BYTES, {})]


def _norms(block: Block, how: Setting) -> list[Piece]:
    """The norms, and the residual stream where it is kept in the compute type."""
    after = how.shape.post_norms
    before = block.norms - after
    each = _autocast_norm(how) if how.autocast else _norm(how, after=False)
    residuals = how.shape.residuals - (1 if block.parallel and how.shape.residuals == 2 else 0)
    residual_bytes = FP32_BYTES if how.autocast else how.size
    kept = [] if how.autocast and after else [(residuals * residual_bytes, how.hidden)]
    return [*_repeated(before, each), *_repeated(after, _norm(how, after=True)), *kept]


def _autocast_norm(how: Setting) -> list[Piece]:
    """A norm of the fp32 residual stream, less its output, which is cast for every matrix."""
    if how.shape.norm == "layer":
        return [(2 * FP32_BYTES, {})]
    if how.shape.norm == "layer-eager":
        return [(3 * FP32_BYTES, how.hidden), (FP32_BYTES, {})]
    return [((1 if how.fuses("norm") else 2) * FP32_BYTES, how.hidden), (FP32_BYTES, {})]


def _casts(block: Block, how: Setting) -> list[Piece]:
    """Under autocast, one cast of the input for every matrix that takes the hidden state."""
    if not how.autocast:
        return []
    attention, feed = parts_of(block)
    queries = 2 if attention.kv_rank else 1 if attention.fused else 3
    if feed.experts:
        inside = 1 + (2 if feed.shared_width else 0) + (1 if feed.shared_gate else 0)
    else:
        inside = 2 if feed.gated and not feed.fused else 1
    return [(how.size * (queries + inside), how.hidden)]


def _repeated(times: int, pieces: list[Piece]) -> list[Piece]:
    return [(times * factor, dims) for factor, dims in pieces]


def _attention(attention: Attention, how: Setting) -> list[Piece]:
    if attention.kv_rank:
        return _latent(attention, how)
    query = {"heads": attention.heads, "head_dim": attention.head_dim}
    key = {"kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
    pieces = [*_qk_norm(attention, query, key, how)]
    if how.work.attention == "flash":
        pieces += [(2 * how.size, query), (2 * how.size, key), (FP32_BYTES, {"heads": attention.heads})]
        if how.shape.keeps_projection:
            pieces += [(how.size, query), (how.size, key)]
        if how.shape.copies_output:
            pieces.append((how.size, query))
        return pieces
    alone = how.work.micro_batch == 1
    shared = key if attention.kv_heads == 1 and alone else query
    pieces += [(2 * how.size, query), (2 * how.size, shared)]
    if how.shape.keeps_projection and attention.heads == attention.kv_heads and alone:
        pieces.append((2 * how.size, query))
    if how.shape.fp32_query and not how.autocast:
        pieces.append((2 * how.size, query))
    return [*pieces, *_scores(attention, how)]


def _qk_norm(attention: Attention, query: dict[str, int], key: dict[str, int], how: Setting) -> list[Piece]:
    if not attention.qk_norm:
        return []
    kind, size = how.shape.norm, how.size
    if kind == "layer":
        each = size
    elif kind == "layer-eager":
        each = 3 * FP32_BYTES
    elif how.fuses("norm"):
        each = size
    else:
        each = FP32_BYTES + (FP32_BYTES if kind == "rms-fp32" else size)
    if attention.qk_norm == "full":
        return [(each, query), (each, key), (2 * FP32_BYTES, {})]
    heads, kv_heads = {"heads": attention.heads}, {"kv_heads": attention.kv_heads}
    return [(each, query), (each, key), (FP32_BYTES, heads), (FP32_BYTES, kv_heads)]


def _latent(attention: Attention, how: Setting) -> list[Piece]:
    """Latent attention: query, key and value are whole again before the core."""
    heads = {"heads": attention.heads}
    whole = {**heads, "head_dim": attention.head_dim}
    value = {**heads, "value_dim": attention.value_dim}
    plain = {**heads, "nope_dim": attention.head_dim - attention.rope_dim}
    pieces: list[Piece] = [(2 * how.size, whole), (2 * how.size, value)]
    norm = how.size if how.fuses("norm") else FP32_BYTES + how.size
    for name, rank in (("query_rank", attention.query_rank), ("kv_rank", attention.kv_rank)):
        if rank:
            pieces += [(norm + how.size, {name: rank}), (FP32_BYTES, {})]
    if how.work.attention == "flash":
        return [*pieces, (how.size, plain), (FP32_BYTES, heads)]
    views = [(how.size, plain)] if how.work.micro_batch == 1 else []
    return [*pieces, *views, *_scores(attention, how)]


def _scores(attention: Attention, how: Setting) -> list[Piece]:
    """The softmax of the scores, in fp32 with a cast or in 16 bits; dropout keeps a mask, and in 16 bits its result."""
    heads = {"heads": attention.heads}
    scores = {**heads, "seq_len": how.work.seq_len}
    dropout, size = how.shape.attention_dropout, how.size
    sixteen = how.work.attention == "fused-softmax" or (how.shape.softmax == "16-bit" and not how.autocast)
    each = size + (size + MASK_BYTES) * dropout if sixteen else FP32_BYTES + size + MASK_BYTES * dropout
    if how.shape.sinks:
        each = FP32_BYTES + size + dropout if how.autocast else size + (size + MASK_BYTES) * dropout
        extra = [(INDEX_BYTES + (FP32_BYTES if how.autocast else size), heads)]
    else:
        extra = []
    return [(each + size * how.shape.softcap, scores), *extra]
