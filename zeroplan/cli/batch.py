"""The options of one micro-batch, to a workload."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from zeroplan.cli.typed import missing, typed
from zeroplan.core.choices import FUSIBLE, LARGEST_BATCH, LONGEST_SEQUENCE, RECOMPUTE
from zeroplan.errors import Faults, InputError, printable
from zeroplan.units import TOKENS, parse_count

if TYPE_CHECKING:
    from zeroplan.cli.given import Given
    from zeroplan.core.framework import Framework
    from zeroplan.core.model import Model
    from zeroplan.core.question import Question
    from zeroplan.core.workload import Workload
    from zeroplan.formats.presets import Presets

NEEDS_SEQ_LEN = (*("micro_batch", "recompute", "attention", "loss", "fused", "experts", "compiled"),)
"""Options that change nothing without `--seq-len`."""


def read_workload(
    presets: Presets, given: Given, framework: Framework, model: Model | None, assumed: dict[str, int]
) -> Workload | None:
    """What a micro-batch is; None without `--seq-len`. `assumed` stands in for what a command varies or solves for."""
    if given["seq_len"] is None and "seq_len" not in assumed:
        _check_idle(given)
        return None
    if model is not None and not model.known:
        if "seq_len" in assumed or typed("seq_len"):
            raise InputError("--seq-len", "activations need the model's shape.", "Give --model instead of --params.")
        return None  # a variable of the environment that this question cannot use
    from zeroplan.core.workload import Workload

    faults = Faults()
    seq_len = assumed.get("seq_len") or faults.attempt(partial(parse_seq_len, given["seq_len"] or ""))
    micro_batch = assumed.get("micro_batch") or faults.attempt(partial(parse_micro_batch, given["micro_batch"]))
    recompute = faults.attempt(partial(parse_recompute, given["recompute"]))
    fused = faults.attempt(partial(_fused, given["fused"], framework))
    loss = faults.attempt(partial(presets.loss, given["loss"] or framework.default_loss))
    faults.attempt(partial(_check_positions, model, seq_len))
    checkpoints = faults.attempt(partial(_checkpoints, given))
    faults.report()
    assert seq_len is not None
    assert micro_batch is not None
    assert recompute is not None
    assert fused is not None
    assert loss is not None
    return Workload(
        seq_len=seq_len,
        micro_batch=micro_batch,
        recompute=recompute[0],
        every=recompute[1],
        attention=given["attention"],
        fused=fused,
        loss=loss,
        selective=framework.selective,
        checkpoints=checkpoints or "gpu",
        compiled=given["compiled"],
        packed_experts=given["experts"] == "packed",
    )


def _checkpoints(given: Given) -> str:
    """Where the inputs of recomputed blocks are kept."""
    tier = _activations_tier(given)
    if tier != "gpu" and given["recompute"] in ("none", "selective"):
        raise InputError("--offload activations", "moves the inputs of recomputed blocks.", "Add --recompute full.")
    return tier


def _activations_tier(given: Given) -> str:
    if not given["offload"]:
        return "gpu"
    from zeroplan.cli.scheme import ACTIVATIONS, offloads

    try:
        return offloads(given["offload"]).get(ACTIVATIONS, "gpu")
    except InputError:
        return "gpu"  # reported with the scheme


def under_framework(presets: Presets, given: Given, work: Workload, framework: Framework) -> Workload:
    """The same micro-batch under another framework, whose defaults hold where nothing was given."""
    changes: dict[str, Any] = {"selective": framework.selective}
    if given["loss"] is None:
        changes["loss"] = presets.loss(framework.default_loss)
    if given["fused"] is None:
        changes["fused"] = framework.fused
    return replace(work, **changes)


def check_activations(question: Question, where: str) -> None:
    """Raise where an answer needs activations that are not counted."""
    model = question.model
    if question.counts_activations:
        return
    if not model.known:
        raise InputError(where, "needs a model and a length.", "Example: --model llama-3.1-8b --seq-len 4096.")
    if question.workload is None:
        raise missing("--seq-len", "--seq-len 4096")
    raise InputError(where, f"needs the activations; {model.why_unmodelled}.")


def parse_seq_len(text: str, where: str = "--seq-len") -> int:
    return parse_count(text, where, LONGEST_SEQUENCE, "--seq-len 4096", TOKENS)


def parse_micro_batch(text: str, where: str = "--micro-batch") -> int:
    return parse_count(text, where, LARGEST_BATCH, "--micro-batch 2")


def parse_recompute(text: str) -> tuple[str, int]:
    """What is computed again, and the blocks between two checkpoints."""
    wanted = text.strip().lower()
    if wanted in RECOMPUTE:
        return wanted, 1
    name, dash, number = wanted.partition("-")
    if name == "every" and dash:
        return "full", parse_count(number, "--recompute", 10**6, "--recompute every-2")
    hint = f"It is {', '.join(RECOMPUTE)} or every-K, one checkpoint for K blocks."
    raise InputError("--recompute", f"{printable(text)} is unknown.", hint)


def _check_idle(given: Given) -> None:
    """Options that need `--seq-len` say nothing without it: typed ones are a mistake."""
    if typed("offload") and _activations_tier(given) != "gpu":
        raise InputError("--offload activations", "changes nothing without --seq-len.", "Add --seq-len 4096.")
    idle = [name for name in NEEDS_SEQ_LEN if name in given and typed(name)]
    if idle:
        option = f"--{'compile' if idle[0] == 'compiled' else idle[0].replace('_', '-')}"
        raise InputError(option, "changes nothing without --seq-len.", "Add --seq-len 4096, or leave it out.")


def _fused(text: str | None, framework: Framework) -> tuple[str, ...]:
    if text is None:
        return framework.fused
    parts = tuple(part.strip().lower() for part in text.split(","))
    if parts == ("none",):
        return ()
    for part in parts:
        if part not in FUSIBLE:
            raise InputError("--fused", f"{printable(part)} is not fusible.", f"Parts: {', '.join(FUSIBLE)}, or none.")
    return parts


def _check_positions(model: Model | None, seq_len: int | None) -> None:
    shape = model.architecture if model else None
    if shape and shape.positions and seq_len and seq_len > shape.positions:
        raise InputError("--seq-len", f"{seq_len:,} tokens; the model has {shape.positions:,} learned positions.")
