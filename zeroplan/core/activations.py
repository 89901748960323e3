"""Memory terms of the activations: what each block keeps, what is computed again, and the logits.

What one block keeps is in kept.py, what else is alive in its backward pass in flight.py. Recomputation keeps less of
every block, and makes the block whole again when the backward pass reaches it.
"""

from dataclasses import replace

from zeroplan.core.blocks import Block
from zeroplan.core.flight import SOURCE as IN_FLIGHT
from zeroplan.core.flight import gradients_in_flight, matmul_outputs
from zeroplan.core.kept import MEASURED, SOURCES, block_parts, checkpoint_bytes, final_norm
from zeroplan.core.ledger import Term
from zeroplan.core.plan import Plan
from zeroplan.core.setting import Part, Setting, total
from zeroplan.core.sharding import Elements

ALIVE = ("logits", "loss", "blocks")
BEFORE_BACKWARD = ("logits", "loss")
RECOMPUTED = f"one block at a time is whole again, with {IN_FLIGHT}"
CHECKPOINT = "torch.utils.checkpoint keeps the input of what it computes again; one per block: ZeRO section 6.1"
HEAD = f"the last norm, whose output the head needs: {MEASURED}"


def activations(plan: Plan) -> list[Term]:
    """Every term that grows with the tokens of a micro-batch, bytes per GPU; none where they are not counted."""
    work, shape = plan.workload, plan.model.architecture
    if work is None or shape is None:
        return []
    how = Setting(shape=shape, work=work, size=plan.recipe.compute_bytes, autocast=plan.autocast)
    kept = [_checkpoints(how, plan.model.layers)] if work.recomputes else _kept(plan, how)
    return [*kept, _in_backward(plan, how), *_head(how), *_logits(how)]


def _kept(plan: Plan, how: Setting) -> list[Term]:
    """What all blocks keep; the last one's is apart, since it is used up first."""
    *before, last = plan.model.runs
    groups: dict[tuple[str, str, tuple[tuple[str, int], ...]], tuple[Part, int]] = {}
    for run in (*before, replace(last, count=last.count - 1)):
        for part in _kept_parts(run.block, how):
            key = part.name, part.kept.formula, tuple(part.kept.inputs.items())
            groups[key] = part, groups.get(key, (part, 0))[1] + run.count
    names: dict[str, int] = {}
    terms = []
    for part, layers in groups.values():
        names[part.name] = names.get(part.name, 0) + 1
        suffix = f".{names[part.name]}" if names[part.name] > 1 else ""
        terms.append(_part_term(part, layers, how, f"{part.name}{suffix}"))
    whole = _sum(_kept_parts(last.block, how))
    end = _term("last_block", "activations of the last block", whole, how, BEFORE_BACKWARD, SOURCES["norms"])
    return [*(term for term in terms if term.bytes), end]


def _kept_parts(block: Block, how: Setting) -> list[Part]:
    if how.work.recompute != "selective":
        return block_parts(block, how)
    if how.work.selective == "attention":
        return block_parts(block, how._replace(work=replace(how.work, attention="flash")))
    return [matmul_outputs(block, how)]


def _part_term(part: Part, layers: int, how: Setting, name: str) -> Term:
    each, tokens = part.kept, how.work.tokens
    return Term(
        name=f"activations.{name}",
        what=f"{part.name} of {layers} block{'s' if layers > 1 else ''}",
        role="activations",
        sharded=False,
        bytes=tokens * layers * each.count,
        tier="gpu",
        moments=ALIVE,
        formula=f"tokens * layers * ({each.formula})",
        inputs={"tokens": tokens, "layers": layers, **each.inputs},
        source=SOURCES[part.name],
    )


def _checkpoints(how: Setting, layers: int) -> Term:
    work, size = how.work, checkpoint_bytes(how)
    kept = -(-layers // work.every)
    every = {"every": work.every} if work.every > 1 else {}
    return Term(
        name="activations.checkpoints",
        what=f"inputs of {kept} block{'s' if kept > 1 else ''}",
        role="activations",
        sharded=False,
        bytes=work.tokens * kept * size * how.shape.hidden,
        tier=work.checkpoints,
        moments=ALIVE,
        formula=f"tokens * {'ceil(layers / every)' if every else 'layers'} * {size} * hidden",
        inputs={"tokens": work.tokens, "layers": layers, **how.hidden, **every},
        source=CHECKPOINT,
    )


def _in_backward(plan: Plan, how: Setting) -> Term:
    """The largest block while the backward pass is in it: gradients, and what is computed again."""
    block = max(plan.model.runs, key=lambda run: _sum(block_parts(run.block, how)).count).block
    flight = gradients_in_flight(block, how)
    if not _computes_again(how):
        return _term("gradients", "gradients in flight", flight, how, ("blocks",), IN_FLIGHT)
    whole, every = _sum(block_parts(block, how)), how.work.every if how.work.recomputes else 1
    several = {"every": every} if every > 1 else {}
    again = Elements(
        every * whole.count + flight.count,
        f"{'every * ' if several else ''}({whole.formula}) + {flight.formula}",
        {**whole.inputs, **flight.inputs, **several},
    )
    what = "blocks computed again" if several else "block computed again"
    return _term("recomputed", what, again, how, ("blocks",), RECOMPUTED)


def _computes_again(how: Setting) -> bool:
    work = how.work
    return work.recomputes or (
        work.recompute == "selective" and (work.selective == "matmuls" or work.attention != "flash")
    )


def _head(how: Setting) -> list[Term]:
    terms = [_term("final_norm", "last norm", final_norm(how), how, BEFORE_BACKWARD, HEAD)]
    if how.shape.residual_dropout:
        mask = total([(1, how.hidden)])
        terms.append(_term("embedding", "dropout of the embedding", mask, how, ALIVE, SOURCES["dropout"]))
    return terms


def _logits(how: Setting) -> list[Term]:
    """Three terms: kept between forward and backward, and what each pass adds to it at its peak."""
    loss = how.work.loss
    less = loss.fusible_bytes if how.work.compiled == "all" else 0
    kept = max(loss.kept_bytes - less, 0)
    more = (
        ("kept", "logits, kept", kept, BEFORE_BACKWARD),
        ("forward", "logits, more in forward", max(loss.forward_bytes - less - kept, 0), ("logits",)),
        ("backward", "logits, gradients", max(loss.backward_bytes - less - kept, 0), ("loss",)),
    )
    return [_logits_term(how, *each) for each in more if each[2]]


def _logits_term(how: Setting, name: str, what: str, each: int, moments: tuple[str, ...]) -> Term:
    work, shape = how.work, how.shape
    chunks = work.loss.chunks or -(-shape.vocab // shape.hidden)
    rows = -(-work.tokens // chunks)
    inputs = {"tokens": work.tokens, "vocab": shape.vocab}
    return Term(
        name=f"logits.{name}",
        what=what,
        role="activations",
        sharded=False,
        bytes=each * rows * shape.vocab,
        tier="gpu",
        moments=moments,
        formula=f"{each} * {'tokens' if chunks == 1 else 'ceil(tokens / chunks)'} * vocab",
        inputs=inputs if chunks == 1 else {**inputs, "chunks": chunks},
        source=work.loss.source,
    )


def _term(name: str, what: str, per_token: Elements, how: Setting, moments: tuple[str, ...], source: str) -> Term:
    return Term(
        name=f"activations.{name}",
        what=what,
        role="activations",
        sharded=False,
        bytes=how.work.tokens * per_token.count,
        tier="gpu",
        moments=moments,
        formula=f"tokens * ({per_token.formula})",
        inputs={"tokens": how.work.tokens, **per_token.inputs},
        source=source,
    )


def _sum(parts: list[Part]) -> Elements:
    inputs = {name: value for part in parts for name, value in part.kept.inputs.items()}
    return Elements(sum(p.kept.count for p in parts), " + ".join(p.kept.formula for p in parts), inputs)
