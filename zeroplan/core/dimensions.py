"""The dimensions that the parameters of an architecture follow from."""

from typing import Any


class Dims:
    """The resolved dimensions of one architecture; 0, False or "" where it has no such part.

    A plain class, because its defaults cost nothing to import.
    """

    skeleton: str = "decoder"
    head: str = "lm"
    """`lm`, `none`, or what follows `For` in the class of an encoder."""

    vocab: int = 0
    hidden: int = 0
    layers: int = 0
    tied: bool = False
    head_bias: bool = False
    embed_width: int = 0
    """Of the embedding, where it is not the hidden width."""
    embed_norm: bool = False
    positions: int = 0
    extra_positions: int = 0
    """Rows of the position table that no position uses."""
    final_norm: bool = True

    norm: str = "rms"
    norm_bias: bool = False
    norms: int = 2
    parallel: bool = False
    residual_dropout: bool = False
    attention_dropout: bool = False

    modelled: bool = True
    """Whether the activations of this code are known; the following, of which Architecture says more, are of them."""
    post_norms: int = 0
    residuals: int = 0
    activation: str = "silu"
    keeps_projection: bool = False
    copies_output: bool = False
    fp32_query: bool = False
    softmax: str = "fp32"
    softcap: bool = False
    head_softcap: bool = False
    residual_masks: int = 2
    router: str = ""
    renormalised: bool = False
    route_bytes: int = 4

    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    fused: bool = False
    """Whether query, key and value are one matrix, and so gate and up."""
    qkv_bias: bool = False
    key_bias: bool = True
    """Whether the key has the bias that query and value have."""
    output_bias: bool = False
    qk_norm: str = ""
    qk_normed: bool = True
    query_gate: bool = False
    sinks: bool = False

    query_rank: int = 0
    kv_rank: int = 0
    nope_dim: int = 0
    rope_dim: int = 0
    value_dim: int = 0

    linear_attention: bool = False
    layer_types: tuple[str, ...] | None = None
    full_every: int = 0
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_key_dim: int = 0
    linear_value_dim: int = 0
    linear_conv: int = 0

    width: int = 0
    gated: bool = True
    mlp_bias: bool = False

    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    shared_experts: int = 0
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    packed: bool = False
    """Whether the experts were one module before transformers 5 too."""
    sparse: str = "all"
    """Which layers hold experts; see skeletons.py."""
    sparse_step: int = 1
    sparse_layers: tuple[int, ...] | None = None
    dense_layers: tuple[int, ...] | None = None
    first_dense: int = 0

    decoder_layers: int = 0
    decoder_width: int = 0
    decoder_positions: int = 0
    relative_buckets: int = 0
    mel_bins: int = 0

    image: int = 0
    patch: int = 0
    channels: int = 0
    patch_bias: bool = False
    class_token: bool = False
    class_with_positions: bool = False
    """Whether the class token and the positions belong to one module."""
    tower_norms: int = 0
    adapter_in: int = 0
    adapter_out: int = 0
    labels: int = 0
    pooler: bool = False

    token_types: int = 0

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @property
    def norm_vectors(self) -> int:
        return 2 if self.norm_bias else 1
