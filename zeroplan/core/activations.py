"""Memory terms of the activations: what each block keeps, what is computed again, and the logits.

What one block keeps is in kept.py, what else is alive in its backward pass in flight.py. Recomputation keeps less of
every block, and makes the block whole again when the backward pass reaches it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from zeroplan.core.blocks import Block
from zeroplan.core.flight import SOURCE as IN_FLIGHT
from zeroplan.core.flight import gradients_in_flight, left_when_done, matmul_outputs
from zeroplan.core.kept import MEASURED, SOURCES, block_parts, checkpoint_bytes, final_norm
from zeroplan.core.ledger import Term
from zeroplan.core.moments import FIRST, LAST, STEP, moments_of
from zeroplan.core.plan import Plan
from zeroplan.core.setting import Part, Setting, added, total
from zeroplan.core.sharding import Elements

BEFORE_BACKWARD = ("logits", "loss")
ALIVE = (*BEFORE_BACKWARD, FIRST[0])
WHILE_IN_BLOCKS = (*BEFORE_BACKWARD, *FIRST, *LAST)
IN_BLOCK, BLOCK_DONE = moments_of("in_block"), moments_of("block_done")
RECOMPUTED = f"one block at a time is whole again, with {IN_FLIGHT}"
CHECKPOINT = "torch.utils.checkpoint keeps the input of what it computes again; one per block: ZeRO section 6.1"
HEAD = f"the last norm, whose output the head needs: {MEASURED}"


def activations(plan: Plan) -> list[Term]:
    """Every term that grows with the tokens of a micro-batch, bytes per GPU; none where they are not counted."""
    work, shape = plan.workload, plan.model.architecture
    if work is None or shape is None:
        return []
    how = Setting(shape=shape, work=work, size=plan.recipe.compute_bytes, autocast=plan.autocast)
    kept = _checkpoints(how, plan.model.layers) if work.recomputes else _kept(plan, how)
    return [*kept, *_in_backward(plan, how), *_head(how), *_logits(how)]


def _kept(plan: Plan, how: Setting) -> list[Term]:
    """What all blocks keep; the last two are apart, since they are used up first."""
    *earlier, last = (run.block for run in plan.model.runs for _ in range(run.count))
    groups: dict[tuple[str, str, tuple[tuple[str, int], ...]], tuple[Part, int]] = {}
    for block, layers in _counted(earlier[:-1]):
        for part in _kept_parts(block, how):
            key = part.name, part.kept.formula, tuple(part.kept.inputs.items())
            groups[key] = part, groups.get(key, (part, 0))[1] + layers
    names: dict[str, int] = {}
    terms = []
    for part, layers in groups.values():
        names[part.name] = names.get(part.name, 0) + 1
        suffix = f".{names[part.name]}" if names[part.name] > 1 else ""
        terms.append(_part_term(part, layers, how, f"{part.name}{suffix}"))
    again = _computes_again(how)
    until = BEFORE_BACKWARD if again else ALIVE  # what is computed again is whole then
    terms += [
        _block_term("block_before_last", "activations of the block before", block, how, until) for block in earlier[-1:]
    ]
    terms.append(_block_term("final_block", "activations of the last block", last, how, BEFORE_BACKWARD))
    first = plan.model.runs[0].block
    for moment, blocks in zip(LAST, (1, 1) if again else (2, 1), strict=True):
        left = min(blocks, plan.model.layers)
        what = f"activations of the first {'two blocks' if left > 1 else 'block'}"
        terms.append(_block_term(f"left_at_{moment}", what, first, how, (moment,), left))
    return [term for term in terms if term.bytes]


def _counted(blocks: Iterable[Block]) -> Iterator[tuple[Block, int]]:
    """Equal neighbours together."""
    for _, same in groupby(blocks, key=id):
        found = list(same)
        yield found[0], len(found)


def _block_term(name: str, what: str, block: Block, how: Setting, moments: tuple[str, ...], count: int = 1) -> Term:
    """Whole blocks, all parts together."""
    each = _sum(_kept_parts(block, how))
    all_of_them = each if count == 1 else Elements(count * each.count, f"{count} * ({each.formula})", each.inputs)
    return _term(name, what, all_of_them, how, moments, SOURCES["norms"])


def _kept_parts(block: Block, how: Setting) -> tuple[Part, ...]:
    if how.work.recompute != "selective":
        return block_parts(block, how)
    if how.work.selective == "attention":
        return block_parts(block, how._replace(work=replace(how.work, attention="flash")))
    return (matmul_outputs(block, how),)


def _part_term(part: Part, layers: int, how: Setting, name: str) -> Term:
    each, tokens = part.kept, how.work.tokens
    return Term(
        name=f"activations.{name}",
        what=f"{part.name} of {layers} block{'s' if layers > 1 else ''}",
        role="activations",
        sharded=False,
        bytes=tokens * layers * each.count,
        tier="gpu",
        moments=(*BEFORE_BACKWARD, *FIRST),
        formula=f"tokens * layers * ({each.formula})",
        inputs={"tokens": tokens, "layers": layers, **each.inputs},
        source=SOURCES[part.name],
    )


def _checkpoints(how: Setting, layers: int) -> list[Term]:
    """The inputs of all recomputed stretches of blocks, and of the few that are left when the last are reached."""
    work = how.work
    every = min(work.every, layers)
    kept = -(-layers // every)
    given = {"every": every} if every > 1 else {}
    count = "ceil(layers / every)" if given else "layers"
    less = max(1, kept - 1)
    return [
        _checkpoint_term("checkpoints", kept, count, {"layers": layers, **given}, how, BEFORE_BACKWARD),
        _checkpoint_term("later_checkpoints", less, f"max(1, {count} - 1)", {"layers": layers, **given}, how, FIRST),
        _checkpoint_term("first_checkpoints", min(2, kept), f"min(2, {count})", {"layers": layers, **given}, how, LAST),
    ]


def _checkpoint_term(
    name: str, kept: int, count: str, given: dict[str, int], how: Setting, moments: tuple[str, ...]
) -> Term:
    work, size = how.work, checkpoint_bytes(how)
    return Term(
        name=f"activations.{name}",
        what=f"inputs of {kept} block{'s' if kept > 1 else ''}",
        role="activations",
        sharded=False,
        bytes=work.tokens * kept * size * how.shape.hidden,
        tier=work.checkpoints,
        moments=moments,
        formula=f"tokens * {count} * {size} * hidden",
        inputs={"tokens": work.tokens, **given, **how.hidden},
        source=CHECKPOINT,
    )


def _in_backward(plan: Plan, how: Setting) -> list[Term]:
    """The largest block while the backward pass is in it, with what is computed again, and as it leaves it."""
    block = max(plan.model.runs, key=lambda run: _sum(block_parts(run.block, how)).count).block
    flight, left = gradients_in_flight(block, how), left_when_done(block, how)
    if not _computes_again(how):
        return [
            _term("gradients", "gradients in flight", flight, how, IN_BLOCK, IN_FLIGHT),
            _term("block_done", "block whose gradients are done", left, how, BLOCK_DONE, IN_FLIGHT),
        ]
    whole, every = _sum(block_parts(block, how)), min(how.work.every, plan.model.layers) if how.work.recomputes else 1
    others = Elements((every - 1) * whole.count, f"(every - 1) * ({whole.formula})", {**whole.inputs, "every": every})
    beside = [others] if every > 1 else []
    what = "blocks computed again" if every > 1 else "block computed again"
    return [
        _term("recomputed", what, added([*beside, whole, flight]), how, IN_BLOCK, RECOMPUTED),
        _term("block_done", f"{what}, gradients done", added([*beside, left]), how, BLOCK_DONE, IN_FLIGHT),
    ]


def _computes_again(how: Setting) -> bool:
    work = how.work
    return work.recomputes or (
        work.recompute == "selective" and (work.selective == "matmuls" or work.attention != "flash")
    )


def _head(how: Setting) -> list[Term]:
    terms = [_term("final_norm", "last norm", final_norm(how), how, BEFORE_BACKWARD, HEAD)]
    if how.shape.residual_dropout:
        mask = total([(1, how.hidden)])
        terms.append(_term("embedding", "dropout of the embedding", mask, how, WHILE_IN_BLOCKS, SOURCES["dropout"]))
    return terms


def _logits(how: Setting) -> list[Term]:
    """What is kept between forward and backward, what each pass adds to it at its peak, and what is held after."""
    loss = how.work.loss
    less = loss.fusible_bytes if how.work.compiled == "all" else 0
    capped = how.size if how.shape.head_softcap else 0
    kept, forward, backward = (
        max(each - less, 0) + capped for each in (loss.kept_bytes, loss.forward_bytes, loss.backward_bytes)
    )
    more = (
        ("kept", "logits, kept", kept, BEFORE_BACKWARD),
        ("forward", "logits, more in forward", max(forward - kept, 0), ("logits",)),
        ("backward", "logits, gradients", max(backward - kept, 0), ("loss",)),
        ("returned", "logits, returned", loss.returned_bytes, (*FIRST, *LAST, "end", *STEP)),
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


def _sum(parts: Iterable[Part]) -> Elements:
    return added(part.kept for part in parts)
