"""The parts that blocks are made of: attention, latent attention, gated DeltaNet, MLP, experts.

Shapes are those of the modules in transformers 5.
"""

from collections.abc import Iterator

from zeroplan.core.blocks import Attention, FeedForward, Module, Shape
from zeroplan.core.dimensions import Dims


def linear(name: str, out: int, inside: int, bias: bool = False) -> Module:
    """A matrix from `inside` to `out` features."""
    return Module(name=name, shapes=((out, inside), (out,)) if bias else ((out, inside),))


def norm(name: str, size: int, vectors: int) -> Module:
    """A normalisation: a weight, and a bias where it has two vectors."""
    return Module(name=name, shapes=((size,),) * vectors)


def table(name: str, *shape: int) -> Module:
    """A module of one tensor."""
    return Module(name=name, shapes=(shape,))


def attention(dims: Dims, name: str = "attn") -> Iterator[Module]:
    """Softmax attention, grouped where there are fewer key/value heads than heads."""
    query = dims.heads * dims.head_dim * (2 if dims.query_gate else 1)
    key = dims.kv_heads * dims.head_dim
    if dims.fused:
        yield linear(f"{name}.qkv", query + 2 * key, dims.hidden, dims.qkv_bias)
    else:
        yield linear(f"{name}.q", query, dims.hidden, dims.qkv_bias)
        yield linear(f"{name}.k", key, dims.hidden, dims.qkv_bias and dims.key_bias)
        yield linear(f"{name}.v", key, dims.hidden, dims.qkv_bias)
    yield linear(f"{name}.o", dims.hidden, dims.heads * dims.head_dim, dims.output_bias)
    if dims.qk_norm:
        per_head = dims.qk_norm == "head"
        yield norm(f"{name}.q_norm", dims.head_dim * (1 if per_head else dims.heads), dims.norm_vectors)
        yield norm(f"{name}.k_norm", dims.head_dim * (1 if per_head else dims.kv_heads), dims.norm_vectors)
    if dims.sinks:
        yield table(name, dims.heads)


def latent_attention(dims: Dims) -> Iterator[Module]:
    """DeepSeek's attention over a compressed key and value (arXiv 2405.04434, section 2.1)."""
    query = dims.heads * (dims.nope_dim + dims.rope_dim)
    if dims.query_rank:
        yield linear("attn.q_a", dims.query_rank, dims.hidden, dims.qkv_bias)
        yield norm("attn.q_a_norm", dims.query_rank, 1)
        yield linear("attn.q_b", query, dims.query_rank)
    else:
        yield linear("attn.q", query, dims.hidden)
    yield linear("attn.kv_a", dims.kv_rank + dims.rope_dim, dims.hidden, dims.qkv_bias)
    yield norm("attn.kv_a_norm", dims.kv_rank, 1)
    yield linear("attn.kv_b", dims.heads * (dims.nope_dim + dims.value_dim), dims.kv_rank)
    yield linear("attn.o", dims.hidden, dims.heads * dims.value_dim, dims.output_bias)


def deltanet(dims: Dims) -> Iterator[Module]:
    """The linear attention of Qwen3-Next."""
    key = dims.linear_key_heads * dims.linear_key_dim
    value = dims.linear_value_heads * dims.linear_value_dim
    yield linear("attn.qkvz", 2 * key + 2 * value, dims.hidden)
    yield linear("attn.ba", 2 * dims.linear_value_heads, dims.hidden)
    yield table("attn.conv", 2 * key + value, 1, dims.linear_conv)
    yield norm("attn", dims.linear_value_heads, 2)
    yield norm("attn.norm", dims.linear_value_dim, 1)
    yield linear("attn.out", dims.hidden, value)


def mlp(dims: Dims, width: int, name: str = "mlp") -> Iterator[Module]:
    """A feed-forward part, gated or plain."""
    if dims.gated and dims.fused:
        yield linear(f"{name}.gate_up", 2 * width, dims.hidden, dims.mlp_bias)
    else:
        if dims.gated:
            yield linear(f"{name}.gate", width, dims.hidden, dims.mlp_bias)
        yield linear(f"{name}.up", width, dims.hidden, dims.mlp_bias)
    yield linear(f"{name}.down", dims.hidden, width, dims.mlp_bias)


def moe(dims: Dims) -> Iterator[Module]:
    """A router, its experts, and what every token uses beside them."""
    yield linear("moe.router", dims.experts, dims.hidden, dims.router_bias)
    experts, width, hidden = dims.experts, dims.expert_width, dims.hidden
    shapes: tuple[Shape, ...] = ((experts, 2 * width, hidden), (experts, hidden, width))
    if dims.expert_bias:
        shapes += ((experts, 2 * width), (experts, hidden))
    yield Module(
        name="moe.experts",
        shapes=shapes,
        experts=experts,
        experts_per_token=dims.experts_per_token,
        packed=dims.packed,
    )
    if dims.shared_width:
        yield from mlp(dims, dims.shared_width, "moe.shared")
    if dims.shared_gate:
        yield linear("moe.shared_gate", 1, dims.hidden)


def attention_of(dims: Dims) -> Attention | None:
    """What the activations of the block's attention follow from; None where it is of another kind."""
    if dims.query_gate:
        return None
    if dims.kv_rank:
        return Attention(
            heads=dims.heads,
            kv_heads=dims.heads,
            head_dim=dims.nope_dim + dims.rope_dim,
            value_dim=dims.value_dim,
            query_rank=dims.query_rank,
            kv_rank=dims.kv_rank,
            rope_dim=dims.rope_dim,
        )
    return Attention(
        heads=dims.heads,
        kv_heads=dims.kv_heads,
        head_dim=dims.head_dim,
        value_dim=dims.head_dim,
        qk_norm=dims.qk_norm,
        fused=dims.fused,
    )


def feed_of(dims: Dims, sparse: bool) -> FeedForward:
    """What the activations of the block's feed-forward part follow from."""
    if not sparse:
        return FeedForward(width=dims.width, gated=dims.gated, fused=dims.gated and dims.fused)
    return FeedForward(
        width=dims.expert_width,
        gated=True,
        fused=True,
        experts=dims.experts,
        experts_per_token=dims.experts_per_token,
        shared_width=dims.shared_width,
        shared_gate=dims.shared_gate,
    )
