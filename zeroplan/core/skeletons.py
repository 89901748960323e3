"""How parts make a model: decoder, encoder-decoder, vision tower, BERT."""

from collections.abc import Callable, Iterator
from itertools import groupby

from zeroplan.core.blocks import Architecture, Block, Module, Run, Stack
from zeroplan.core.dimensions import Dims
from zeroplan.core.parts import (
    attention,
    attention_of,
    deltanet,
    feed_of,
    latent_attention,
    linear,
    mlp,
    moe,
    norm,
    table,
)

Skeleton = tuple[tuple[Module, ...], tuple[Stack, ...]]
"""What belongs to no block, and the stacks of blocks."""


def skeleton(dims: Dims) -> Skeleton:
    """The modules of a model of these dimensions."""
    return _SKELETONS[dims.skeleton](dims)


def architecture(dims: Dims) -> Architecture | None:
    """What the activations follow from, for a language model whose blocks all have softmax attention."""
    known = dims.modelled and (dims.gated or dims.activation)
    if dims.skeleton != "decoder" or dims.head != "lm" or not known:
        return None
    return Architecture(
        hidden=dims.hidden,
        vocab=dims.vocab,
        norm=dims.norm,
        post_norms=dims.post_norms,
        residuals=dims.residuals,
        activation=dims.activation,
        keeps_projection=dims.keeps_projection,
        copies_output=dims.copies_output,
        fp32_query=dims.fp32_query,
        softmax=dims.softmax,
        softcap=dims.softcap,
        head_softcap=dims.head_softcap,
        sinks=dims.sinks,
        router=dims.router,
        renormalised=dims.renormalised,
        route_bytes=dims.route_bytes,
        positions=dims.positions,
        residual_dropout=dims.residual_dropout,
        residual_masks=dims.residual_masks,
        attention_dropout=dims.attention_dropout,
    )


def _decoder(dims: Dims) -> Skeleton:
    kinds = [(_is_full(dims, layer), _is_sparse(dims, layer)) for layer in range(dims.layers)]
    blocks = {kind: _decoder_block(dims, *kind) for kind in set(kinds)}
    runs = tuple(Run(block=blocks[kind], count=len(list(same))) for kind, same in groupby(kinds))
    return tuple(_decoder_root(dims)), (Stack(name="layers", runs=runs),)


def _decoder_root(dims: Dims) -> Iterator[Module]:
    width = dims.embed_width or dims.hidden
    headed = dims.head == "lm"
    tied_bias = ((dims.vocab,),) if headed and dims.tied and dims.head_bias else ()
    yield Module(name="embed", shapes=((dims.vocab, width), *tied_bias))
    if dims.positions:
        yield table("positions", dims.positions + dims.extra_positions, dims.hidden)
    if width != dims.hidden:
        yield linear("embed_in", dims.hidden, width)
        yield linear("embed_out", width, dims.hidden)
    if dims.embed_norm:
        yield norm("embed_norm", dims.hidden, dims.norm_vectors)
    if dims.final_norm:
        yield norm("final_norm", dims.hidden, dims.norm_vectors)
    if headed and not dims.tied:
        yield linear("lm_head", dims.vocab, width, dims.head_bias)


def _decoder_block(dims: Dims, full: bool, sparse: bool) -> Block:
    attend = deltanet if not full else latent_attention if dims.kv_rank else attention
    feed = moe(dims) if sparse else mlp(dims, dims.width)
    return Block(
        modules=(*attend(dims), *feed, *_norms(dims)),
        attention=attention_of(dims) if full else None,
        feed=feed_of(dims, sparse),
        norms=dims.norms,
        parallel=dims.parallel,
    )


def _norms(dims: Dims) -> Iterator[Module]:
    for place in range(dims.norms):
        yield norm(f"norm{place}", dims.hidden, dims.norm_vectors)


def _is_full(dims: Dims, layer: int) -> bool:
    if not dims.linear_attention:
        return True
    if dims.layer_types is not None:
        return dims.layer_types[layer] == "full_attention"
    return (layer + 1) % dims.full_every == 0


def _is_sparse(dims: Dims, layer: int) -> bool:
    return bool(dims.experts) and _SPARSE[dims.sparse](dims, layer)


def _every(dims: Dims, layer: int) -> bool:
    return layer not in (dims.dense_layers or ()) and (layer + 1) % dims.sparse_step == 0


def _listed(dims: Dims, layer: int) -> bool:
    return layer in dims.sparse_layers if dims.sparse_layers is not None else (layer + 1) % dims.sparse_step == 0


_SPARSE: dict[str, Callable[[Dims, int], bool]] = {
    "all": lambda _dims, _layer: True,
    "after_first": lambda dims, layer: layer >= dims.first_dense,
    "every": _every,
    "listed": _listed,
}
"""Which layers hold experts."""


def _encoder_decoder(dims: Dims) -> Skeleton:
    stacks = (
        Stack(name="encoder", runs=_side(dims, dims.layers, cross=False)),
        Stack(name="decoder", runs=_side(dims, dims.decoder_layers, cross=True)),
    )
    return tuple(_encoder_decoder_root(dims)), stacks


def _encoder_decoder_root(dims: Dims) -> Iterator[Module]:
    yield table("embed", dims.vocab, dims.hidden)
    yield norm("encoder.norm", dims.hidden, dims.norm_vectors)
    yield norm("decoder.norm", dims.hidden, dims.norm_vectors)
    if dims.mel_bins:
        yield Module(name="conv1", shapes=((dims.hidden, dims.mel_bins, 3), (dims.hidden,)))
        yield Module(name="conv2", shapes=((dims.hidden, dims.hidden, 3), (dims.hidden,)))
        yield table("encoder.positions", dims.positions, dims.hidden)
        yield table("decoder.positions", dims.decoder_positions, dims.hidden)
    if dims.head == "lm" and not dims.tied:
        yield linear("lm_head", dims.vocab, dims.hidden)


def _side(dims: Dims, layers: int, cross: bool) -> tuple[Run, ...]:
    """The blocks of one side; with relative positions the first block holds their table."""
    usual = _side_block(dims, cross, first=False)
    if not dims.relative_buckets:
        return (Run(block=usual, count=layers),)
    first = Run(block=_side_block(dims, cross, first=True), count=1)
    return (first, Run(block=usual, count=layers - 1)) if layers > 1 else (first,)


def _side_block(dims: Dims, cross: bool, first: bool) -> Block:
    modules = [*attention(dims, "self")]
    if first:
        modules.append(table("self.relative_bias", dims.relative_buckets, dims.heads))
    if cross:
        modules += [*attention(dims, "cross"), norm("norm_cross", dims.hidden, dims.norm_vectors)]
    modules += [*mlp(dims, dims.decoder_width if cross else dims.width), *_norms(dims)]
    return Block(modules=tuple(modules), norms=dims.norms + cross)


def _encoder_stack(dims: Dims) -> tuple[Stack, ...]:
    block = Block(modules=(*attention(dims), *mlp(dims, dims.width), *_norms(dims)), norms=dims.norms)
    return (Stack(name="layers", runs=(Run(block=block, count=dims.layers),)),)


def _tower(dims: Dims) -> Skeleton:
    return tuple(_tower_root(dims)), _encoder_stack(dims)


def _tower_root(dims: Dims) -> Iterator[Module]:
    hidden = dims.hidden
    pixels = dims.channels * dims.patch**2
    positions = (dims.image // dims.patch) ** 2 + dims.class_token
    yield linear("patch", hidden, pixels, dims.patch_bias)
    if dims.class_token and dims.class_with_positions:
        yield Module(name="positions", shapes=((positions, hidden), (hidden,)))
    else:
        yield table("positions", positions, hidden)
        if dims.class_token:
            yield table("cls", hidden)
    for place in range(dims.tower_norms):
        yield norm(f"norm{place}", hidden, dims.norm_vectors)
    if dims.adapter_in:
        yield linear("adapter.fc1", dims.adapter_in, dims.width)
        yield linear("adapter.fc2", dims.adapter_out, dims.adapter_out)
    if dims.labels:
        yield linear("classifier", dims.labels, hidden, True)
    if dims.pooler:
        yield linear("pooler", hidden, hidden, True)


def _bert(dims: Dims) -> Skeleton:
    return tuple(_bert_root(dims)), _encoder_stack(dims)


def _bert_root(dims: Dims) -> Iterator[Module]:
    masked = dims.head == "MaskedLM"
    yield Module(name="embed", shapes=((dims.vocab, dims.hidden), *(((dims.vocab,),) if masked else ())))
    yield table("positions", dims.positions, dims.hidden)
    yield table("types", dims.token_types, dims.hidden)
    yield norm("embed_norm", dims.hidden, dims.norm_vectors)
    if masked:
        yield linear("head.transform", dims.hidden, dims.hidden, True)
        yield norm("head.norm", dims.hidden, dims.norm_vectors)
    else:
        yield linear("pooler", dims.hidden, dims.hidden, True)


_SKELETONS: dict[str, Callable[[Dims], Skeleton]] = {
    "decoder": _decoder,
    "encoder_decoder": _encoder_decoder,
    "tower": _tower,
    "bert": _bert,
}
