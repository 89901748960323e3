"""Memory terms of the activations: what each block keeps, what is computed again, and the logits.

What one block keeps is in kept.py. Recomputation keeps less of every block, and makes the block whole again
when the backward pass reaches it.
"""

from dataclasses import replace

from zeroplan.core.kept import SOURCES, Part, block_parts, matmul_outputs, norm_bytes
from zeroplan.core.ledger import Term
from zeroplan.core.model import Architecture, Block, FeedForward, Run
from zeroplan.core.plan import Plan
from zeroplan.core.sharding import Elements
from zeroplan.core.workload import Workload

ALIVE = ("logits", "loss", "blocks")
BEFORE_BACKWARD = ("logits", "loss")
RECOMPUTED = (
    "one block at a time is whole again, with the gradients in flight: its output's, its input's and those inside "
    "the feed-forward part; FSDP2 of torch 2.13 under fake tensors, 42 runs of three models"
)
CHECKPOINT = "torch.utils.checkpoint keeps the input of what it computes again; one per block: ZeRO section 6.1"
HEAD = "the last norm, whose output the head needs: huggingface/transformers 5.24 modeling code, torch 2.13, measured"


def activations(plan: Plan) -> list[Term]:
    """Every term that grows with the tokens of a micro-batch, bytes per GPU; none where they are not counted."""
    work, shape = plan.workload, plan.model.architecture
    if work is None or shape is None:
        return []
    size = plan.recipe.compute_bytes
    return [*_kept(plan, shape, work), *_again(plan, shape, work), *_head(shape, work, size), *_logits(shape, work)]


def _kept(plan: Plan, shape: Architecture, work: Workload) -> list[Term]:
    """What all blocks keep; the last one's is apart, since it is used up first."""
    size, runs = plan.recipe.compute_bytes, plan.model.runs
    *before, last = runs
    earlier = [*before, replace(last, count=last.count - 1)]
    if work.recomputes:
        return [_checkpoints(shape, work, size, plan.model.layers)]
    groups: dict[tuple[str, str, tuple[tuple[str, int], ...]], tuple[Part, int]] = {}
    for run in earlier:
        for part in _kept_parts(run.block, shape, work, size):
            key = part.name, part.kept.formula, tuple(part.kept.inputs.items())
            groups[key] = part, groups.get(key, (part, 0))[1] + run.count
    names: dict[str, int] = {}
    terms = []
    for part, layers in groups.values():
        names[part.name] = names.get(part.name, 0) + 1
        suffix = f".{names[part.name]}" if names[part.name] > 1 else ""
        terms.append(_part_term(part, layers, work, f"{part.name}{suffix}"))
    whole = _sum(_kept_parts(last.block, shape, work, size))
    end = _term("last_block", "last block's activations", whole, work, BEFORE_BACKWARD, SOURCES["norms"])
    return [*(term for term in terms if term.bytes), end]


def _kept_parts(block: Block, shape: Architecture, work: Workload, size: int) -> list[Part]:
    if work.recompute != "selective":
        return block_parts(block, shape, work, size)
    if work.selective == "attention":
        return block_parts(block, shape, replace(work, attention="flash"), size)
    return matmul_outputs(block, shape, size)


def _part_term(part: Part, layers: int, work: Workload, name: str) -> Term:
    per_layer = part.kept
    return Term(
        name=f"activations.{name}",
        what=f"{part.name}, {layers} block{'s' if layers > 1 else ''}",
        role="activations",
        sharded=False,
        bytes=work.tokens * layers * per_layer.count,
        tier="gpu",
        moments=ALIVE,
        formula=f"tokens * layers * ({per_layer.formula})",
        inputs={"tokens": work.tokens, "layers": layers, **per_layer.inputs},
        source=SOURCES[part.name],
    )


def _checkpoints(shape: Architecture, work: Workload, size: int, layers: int) -> Term:
    kept = -(-layers // work.every)
    inputs = {"tokens": work.tokens, "layers": layers, "hidden": shape.hidden}
    every = {"every": work.every} if work.every > 1 else {}
    return Term(
        name="activations.checkpoints",
        what=f"block inputs, {kept}",
        role="activations",
        sharded=False,
        bytes=work.tokens * kept * size * shape.hidden,
        tier=work.checkpoints,
        moments=ALIVE,
        formula=f"tokens * {'ceil(layers / every)' if every else 'layers'} * {size} * hidden",
        inputs={**inputs, **every},
        source=CHECKPOINT,
    )


def _again(plan: Plan, shape: Architecture, work: Workload) -> list[Term]:
    """The block that is computed again while the backward pass is in it."""
    if work.recompute == "none" or (work.recompute == "selective" and _keeps_all(work)):
        return []
    size = plan.recipe.compute_bytes
    block = max(plan.model.runs, key=lambda run: _whole(run, shape, work, size)).block
    whole = _sum(block_parts(block, shape, work, size))
    feed = block.feed
    assert feed is not None  # an architecture whose activations are modelled has one
    flight = Elements(
        size * (2 * shape.hidden + _feed_width(feed)),
        f"{size} * (2 * hidden + {_feed_formula(feed)})",
        {"hidden": shape.hidden, **_feed_inputs(feed)},
    )
    every = {"every": work.every} if work.recomputes and work.every > 1 else {}
    again = Elements(
        work.every * whole.count + flight.count if every else whole.count + flight.count,
        f"{'every * ' if every else ''}({whole.formula}) + {flight.formula}",
        {**whole.inputs, **flight.inputs, **every},
    )
    what = "blocks computed again" if every else "block computed again"
    return [_term("recomputed", what, again, work, ("blocks",), RECOMPUTED)]


def _keeps_all(work: Workload) -> bool:
    return work.selective == "attention" and work.attention == "flash"


def _whole(run: Run, shape: Architecture, work: Workload, size: int) -> int:
    return sum(part.kept.count for part in block_parts(run.block, shape, work, size))


def _feed_width(feed: FeedForward) -> int:
    return feed.experts_per_token * feed.width + feed.shared_width if feed.experts else feed.width


def _feed_formula(feed: FeedForward) -> str:
    return "experts_per_token * width + shared_width" if feed.experts else "width"


def _feed_inputs(feed: FeedForward) -> dict[str, int]:
    experts = {"experts_per_token": feed.experts_per_token, "shared_width": feed.shared_width} if feed.experts else {}
    return {"width": feed.width, **experts}


def _head(shape: Architecture, work: Workload, size: int) -> list[Term]:
    terms = [_term("final_norm", "last norm", norm_bytes(shape, work, size), work, BEFORE_BACKWARD, HEAD)]
    if shape.residual_dropout:
        mask = Elements(shape.hidden, "hidden", {"hidden": shape.hidden})
        terms.append(_term("embedding", "dropout of the embedding", mask, work, ALIVE, SOURCES["dropout"]))
    return terms


def _logits(shape: Architecture, work: Workload) -> list[Term]:
    """Three terms: kept between forward and backward, and what each pass adds to it at its peak."""
    loss = work.loss
    more = (
        ("kept", "logits, kept", loss.kept_bytes, BEFORE_BACKWARD),
        ("forward", "logits, more in forward", loss.forward_bytes - loss.kept_bytes, ("logits",)),
        ("backward", "logits, gradients", loss.backward_bytes - loss.kept_bytes, ("loss",)),
    )
    return [_logits_term(shape, work, *each) for each in more if each[2]]


def _logits_term(
    shape: Architecture, work: Workload, name: str, what: str, each: int, moments: tuple[str, ...]
) -> Term:
    chunks = work.loss.chunks or -(-shape.vocab // shape.hidden)
    inputs = {"tokens": work.tokens, "vocab": shape.vocab}
    return Term(
        name=f"logits.{name}",
        what=what,
        role="activations",
        sharded=False,
        bytes=each * -(-work.tokens // chunks) * shape.vocab,
        tier="gpu",
        moments=moments,
        formula=f"{each} * {'tokens' if chunks == 1 else 'ceil(tokens / chunks)'} * vocab",
        inputs=inputs if chunks == 1 else {**inputs, "chunks": chunks},
        source=work.loss.source,
        fusible_bytes=0 if name == "kept" else work.loss.fusible_bytes * -(-work.tokens // chunks) * shape.vocab,
    )


def _term(name: str, what: str, per_token: Elements, work: Workload, moments: tuple[str, ...], source: str) -> Term:
    return Term(
        name=f"activations.{name}",
        what=what,
        role="activations",
        sharded=False,
        bytes=work.tokens * per_token.count,
        tier="gpu",
        moments=moments,
        formula=f"tokens * ({per_token.formula})",
        inputs={"tokens": work.tokens, **per_token.inputs},
        source=source,
    )


def _sum(parts: list[Part]) -> Elements:
    inputs = {name: value for part in parts for name, value in part.kept.inputs.items()}
    return Elements(sum(p.kept.count for p in parts), " + ".join(p.kept.formula for p in parts), inputs)
