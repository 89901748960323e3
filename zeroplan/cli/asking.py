"""Options to a question: every bad option is found before the first is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from zeroplan.cli.batch import read_workload, under_framework
from zeroplan.cli.planned import CLASHES, planned
from zeroplan.cli.typed import missing, parts, typed
from zeroplan.core.framework import Framework
from zeroplan.core.hardware import LARGEST_CLUSTER, Gpu, Node
from zeroplan.core.model import LARGEST_MODEL, Model
from zeroplan.core.plan import MOST_MICRO_BATCHES
from zeroplan.core.question import Card, Question
from zeroplan.core.recipe import Recipe
from zeroplan.core.rules import STAGES
from zeroplan.core.scheme import PLAIN, Scheme
from zeroplan.errors import Faults, InputError, printable
from zeroplan.formats.presets import Presets
from zeroplan.units import Share, parse_count, parse_share, parse_size

T = TypeVar("T")

if TYPE_CHECKING:
    from zeroplan.cli.given import Given

AUTO = "auto"
SHIPPED = "deepspeed"
"""The framework whose shipped behaviour is compared with the paper's algorithm."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Asked:
    """The question, the presets it was read with, and the node that was named."""

    question: Question
    presets: Presets
    node: str | None


SCHEME_OPTIONS: tuple[Literal["offload", "shard_group", "hpz", "quantize", "set"], ...] = (
    *("offload", "shard_group", "hpz", "quantize", "set"),
)
Cards = Callable[[Presets], list[Gpu]]


def featured(presets: Presets) -> list[Gpu]:
    """The GPUs to plan for when none is named."""
    return presets.featured


def no_cards(_presets: Presets) -> list[Gpu]:
    """No GPU when none is named."""
    return []


def ask(given: Given, otherwise: Cards = featured, assumed: dict[str, int] | None = None) -> Asked:
    """The question that the options ask; raises InputError with every fault.

    `otherwise` gives the GPUs when none is named; `assumed` stands in for required options that
    the command does not take, because they are what it varies or solves for.
    """
    given = _settled(planned(given))
    presets = Presets(given["presets"])
    faults = Faults()
    assumed = assumed or {}
    model = faults.attempt(partial(_model, presets, given, assumed))
    gpus = assumed.get("gpus") or faults.attempt(partial(_gpus, given["gpus"]))
    framework = faults.attempt(partial(presets.framework, given["framework"]))
    scheme = faults.attempt(partial(_scheme, given, framework)) if framework else None
    recipe = faults.attempt(partial(_recipe, presets, given, framework))
    cards = faults.attempt(partial(_cards, presets, given, otherwise))
    stages = faults.attempt(partial(_stages, given["stage"]))
    grad_accum = faults.attempt(
        partial(parse_count, given["grad_accum"], "--grad-accum", MOST_MICRO_BATCHES, "--grad-accum 8")
    )
    workload = faults.attempt(partial(read_workload, presets, given, framework, model, assumed)) if framework else None
    counted = workload is not None and model is not None and model.architecture is not None
    headroom = faults.attempt(partial(_headroom, given["headroom"], counted))
    faults.report()
    whole_groups = _known(scheme).unit if "gpus" in assumed else 1
    question = Question(
        model=_known(model),
        gpus=_known(gpus) * whole_groups,
        recipe=_known(recipe),
        framework=_known(framework),
        cards=_known(cards),
        headroom=_known(headroom),
        grad_accum=_known(grad_accum),
        stages=_known(stages),
        kernel=given["optimizer_kernel"],
        scheme=_known(scheme),
        workload=workload,
        chunked=presets.loss("chunked") if counted else None,
    )
    return Asked(question=question, presets=presets, node=given["node"] and presets.node(given["node"]).name)


def shipped_question(asked: Asked, given: Given) -> Question | None:
    """The same question to DeepSpeed as shipped, where the question is to the paper's algorithm."""
    question = asked.question
    if question.framework.name != "zero" or question.scheme.features:
        return None
    framework = asked.presets.framework(SHIPPED)
    if not framework.runs(question.recipe.name):
        return None
    shipped = question.under(framework, question.recipe)
    if shipped.workload is None:
        return shipped
    return replace(shipped, workload=under_framework(asked.presets, given, shipped.workload, framework))


def parse_params(text: str, where: str = "--params") -> int:
    return parse_count(text, where, LARGEST_MODEL, "--params 7.5e9")


def parse_gpus(text: str, where: str = "--gpus") -> int:
    if not any(char.isdigit() for char in text[:1]) and any(char.isalpha() for char in text[:1]):
        raise InputError(
            where, f"{printable(text)} is not a number.", "Example: --gpus 64. A GPU's name goes with --gpu."
        )
    return parse_count(text, where, LARGEST_CLUSTER, "--gpus 64")


def _settled(given: Given) -> Given:
    """What was given, less what environment variables say against the command line."""
    aside = {second for first, second in CLASHES if typed(first) and not typed(second)}
    empty: dict[str, object] = {name: () if name == "gpu" else None for name in aside}
    return cast("Given", {**given, **empty})


def _scheme(given: Given, framework: Framework) -> Scheme:
    if not any(given[option] for option in SCHEME_OPTIONS):
        return PLAIN
    from zeroplan.cli.scheme import read_scheme

    return read_scheme(given, framework)


def _known(value: T | None) -> T:
    """A value whose step reported no fault."""
    assert value is not None
    return value


def _model(presets: Presets, given: Given, assumed: dict[str, int]) -> Model:
    if "params" in assumed:
        return Model(params=assumed["params"])
    if given["model"] is not None and given["params"] is not None:
        raise InputError("--params", "a model has its own count.", "Give --model or --params, not both.")
    if given["model"] is not None:
        from zeroplan.formats.models import read_model

        return read_model(given["model"], presets)
    if given["params"] is None:
        raise missing("--params", "--params 7.5e9. A model's own: --model config.json")
    return Model(params=parse_params(given["params"]))


def _headroom(text: str | None, counted: bool) -> Share:
    return parse_share(text if text is not None else "0" if counted else "10%", "--headroom")


def _gpus(text: str | None) -> int:
    if text is None:
        raise missing("--gpus", "--gpus 64")
    if text.strip().lower() == AUTO:
        from zeroplan.cli.auto import auto_gpus

        return auto_gpus()
    return parse_gpus(text)


def _recipe(presets: Presets, given: Given, framework: Framework | None) -> Recipe | None:
    if given["recipe"] is not None and given["optimizer_bytes"] is not None:
        raise InputError("--optimizer-bytes", "a recipe says this already.", "Give --recipe or --optimizer-bytes.")
    if given["optimizer_bytes"] is not None:
        return presets.recipe("adam-m" + given["optimizer_bytes"])
    if given["recipe"] is not None:
        return presets.recipe(given["recipe"])
    return presets.recipe(framework.default_recipe) if framework else None


def _stages(texts: tuple[str, ...]) -> tuple[int, ...]:
    asked = parts(texts)
    for text in asked:
        if text not in map(str, STAGES):
            raise InputError("--stage", f"{printable(text)} is not a ZeRO stage.", "Stages are 0, 1, 2 and 3.")
    return tuple(sorted({int(text) for text in asked})) or STAGES


def _cards(presets: Presets, given: Given, otherwise: Cards) -> tuple[Card, ...]:
    if given["gpu"] and given["memory"] is not None:
        raise InputError("--memory", "a GPU has its own memory.", "Give --gpu or --memory, not both.")
    node = presets.node(given["node"]) if given["node"] is not None else None
    if given["memory"] is not None:
        return (Card(gpu=_own_card(parse_size(given["memory"], "--memory")), node=node),)
    faults = Faults()
    found = [faults.attempt(partial(_named_cards, presets, name, node)) for name in parts(given["gpu"])]
    faults.report()
    if found:
        return tuple({(card.gpu.name, card.gpu.title): card for cards in found if cards for card in cards}.values())
    if node is not None:
        return (Card(gpu=presets.gpu(node.gpu, f"node {node.name}, gpu"), node=node),)
    return tuple(presets.card(gpu) for gpu in otherwise(presets))


def _named_cards(presets: Presets, name: str, node: Node | None) -> list[Card]:
    if name.strip().lower() != AUTO:
        return [_named_card(presets, name, node)]
    from zeroplan.cli.auto import auto_cards

    return auto_cards(presets, node)


def _named_card(presets: Presets, name: str, node: Node | None) -> Card:
    if name.strip().isdigit():
        raise InputError(
            "--gpu",
            f"{printable(name)} is a number, not a GPU.",
            f"How many goes with --gpus {name.strip()[:12]}.",
        )
    gpu = presets.gpu(name)
    return presets.card(gpu, "" if name.strip().lower() == gpu.name else name.strip(), node)


def _own_card(usable_bytes: int) -> Gpu:
    return Gpu(name="custom", title="your card", usable_bytes_stated=usable_bytes, bf16=None)
