"""Host memory, disks and the buffers for them: what a node needs, what binds, and the way out."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import AskQuestion
from zeroplan.core.advice import advise
from zeroplan.core.host import NVME, NVME_BUFFER, RAM, load_bytes, resources
from zeroplan.core.question import Card, Question
from zeroplan.core.scheme import Scheme
from zeroplan.core.solve import solve
from zeroplan.core.verdict import DOES_NOT_FIT, FITS, TIGHT, fit
from zeroplan.core.workload import Workload
from zeroplan.formats.presets import Presets


def on(presets: Presets, **node: Any) -> Card:
    card = presets.card(presets.gpu("a100-80gb"))
    assert card.node is not None
    return replace(card, node=replace(card.node, **{"ram_gb": None, "ram_gib": None, "nvme_gb": None, **node}))


def asked(question: AskQuestion, card: Card, **changes: Any) -> Question:
    fields = {"framework": "deepspeed", "scheme": Scheme(optimizer="cpu"), "gpus": 8}
    size = {} if "model" in changes else {"params": 10_000_000_000}
    return question(cards=(card,), **{**fields, **size, **changes})


@pytest.mark.parametrize(("ram_gb", "verdict"), [(270.0, FITS), (269.0, TIGHT), (180.0, TIGHT), (179.0, DOES_NOT_FIT)])
def test_host_memory_is_a_verdict_of_its_own(
    question: AskQuestion, presets: Presets, ram_gb: float, verdict: str
) -> None:
    """18 bytes per parameter on one node, and half as much again."""
    [answer] = fit(asked(question, on(presets, ram_gb=ram_gb), stages=(3,)))
    [stage] = answer.stages
    assert stage.verdict == verdict
    assert (stage.short.name if stage.short else None) == (None if verdict == FITS else RAM)


def test_unknown_host_memory_binds_nothing(question: AskQuestion, presets: Presets) -> None:
    [answer] = fit(asked(question, on(presets), stages=(3,)))
    [stage] = answer.stages
    [ram] = stage.host
    assert (stage.verdict, ram.available, ram.over) == (FITS, None, 0)


def test_a_node_has_the_part_of_its_own_gpus(question: AskQuestion, presets: Presets) -> None:
    card = on(presets, ram_gb=1e6)
    one, eight = (
        resources(plan.plan(card, 2), fit(plan)[0].stage(2).estimate.memory)[0].needed.low  # type: ignore[union-attr]
        for plan in (asked(question, card), asked(question, card, gpus=64))
    )
    assert one == 180 * 10**9
    assert eight == one // 8


def test_disks_bind_too_and_buffers_hold_the_largest_tensor(question: AskQuestion, presets: Presets) -> None:
    model = presets.model("llama-3.1-70b").model
    workload = Workload(seq_len=512, recompute="full", loss=presets.loss("fp32"))
    nvme = Scheme(optimizer="nvme", params="nvme")
    few: dict[str, Any] = {"model": model, "workload": workload, "stages": (3,), "gpus": 1}
    [answer] = fit(asked(question, on(presets, ram_gb=1e6, nvme_gb=1000.0), scheme=nvme, **few))
    [stage] = answer.stages
    found = {each.name: each for each in stage.host}
    assert found[NVME].needed.low == 18 * model.params
    assert found[NVME_BUFFER].needed.low == 2 * model.largest_tensor()
    assert stage.verdict == DOES_NOT_FIT
    assert stage.short
    roomy = replace(nvme, limits=(("buffer_size", 2 * 10**9),))
    [again] = fit(asked(question, on(presets, ram_gb=1e6, nvme_gb=2000.0), scheme=roomy, **few))
    assert again.stages[0].short is None


def test_loading_takes_a_copy_for_each_rank_at_most(question: AskQuestion, presets: Presets) -> None:
    plan = asked(question, on(presets)).plan(on(presets), 3)
    assert load_bytes(plan) == (20 * 10**9, 20 * 10**9, 160 * 10**9)


def test_offload_is_the_way_out_only_where_nothing_fits(question: AskQuestion, presets: Presets) -> None:
    card = on(presets, ram_gb=2000.0)
    plain = asked(question, card, scheme=Scheme())
    [answer] = fit(plain)
    assert advise(plain, answer, None).offloaded is None
    large = asked(question, card, scheme=Scheme(), params=70_000_000_000)
    [none] = fit(large)
    way = advise(large, none, None).offloaded
    assert none.recommended is None
    assert way is not None
    assert (way.option, way.answer.stage, way.answer.verdict) == ("--offload optimizer=cpu", 3, FITS)


def test_solve_takes_the_least_offload_that_is_best_and_names_what_binds(
    question: AskQuestion, presets: Presets
) -> None:
    asked_for = asked(question, on(presets, ram_gb=2000.0, nvme_gb=30000.0), scheme=Scheme())
    plain = {each.stage: each for each in solve(asked_for, "max-params")}
    allowed = {each.stage: each for each in solve(asked_for, "max-params", offload=True)}
    assert allowed[0].scheme.offloads == {}
    assert allowed[2].scheme.offloads == {"optimizer": "cpu"}
    assert (allowed[2].binding, allowed[3].binding) == ("GPU memory", "host RAM")
    assert all((allowed[stage].answer or 0) >= (plain[stage].answer or 0) for stage in plain)
    for each in allowed.values():
        assert each.answer is not None
        there, beyond = (
            fit(replace(asked_for.at("params", size), scheme=each.scheme, stages=(each.stage,)))[0].stages[0].verdict
            for size in (each.answer, each.answer + 1)
        )
        assert (there, beyond != FITS) == (FITS, True)


def test_the_fewest_gpus_are_whole_groups(question: AskQuestion) -> None:
    scheme = Scheme(shard_group=8)
    [found] = [
        each
        for each in solve(question(framework="fsdp2", cards=("h100",), gpus=8, scheme=scheme), "min-gpus")
        if each.stage == 3
    ]
    assert found.answer == 8


@pytest.mark.parametrize(
    ("framework", "scheme", "params", "ram_gb"),
    [
        ("fsdp2", Scheme(params="cpu", shard_group=2), 70_000_000_000, 2000.0),
        ("fsdp2", Scheme(params="cpu", shard_group=2), 35_000_000_000, 2000.0),
        ("fsdp2", Scheme(params="cpu", shard_group=4), 70_000_000_000, 2000.0),
        ("zero", Scheme(optimizer="cpu"), 100_000_000_000, 1000.0),
        ("deepspeed", Scheme(optimizer="nvme"), 40_000_000_000, 200.0),
        ("deepspeed", Scheme(optimizer="cpu", params="cpu"), 150_000_000_000, 2000.0),
    ],
)
def test_the_fewest_gpus_are_those_of_trying_all(
    question: AskQuestion, presets: Presets, framework: str, scheme: Scheme, params: int, ram_gb: float
) -> None:
    """A host needs more for each GPU of its node, so fewer can fit where more do not."""
    asked_for = question(
        framework=framework, scheme=scheme, params=params, gpus=scheme.unit, cards=(on(presets, ram_gb=ram_gb),)
    )
    for found in solve(asked_for, "min-gpus"):
        tried = {
            gpus: fit(replace(asked_for.at("gpus", gpus), stages=(found.stage,)))[0].stages[0].verdict
            for gpus in range(scheme.unit, 65, scheme.unit)
        }
        fitting = [gpus for gpus, verdict in tried.items() if verdict == FITS]
        assert found.answer == min(fitting, default=None) or (not fitting and (found.answer or 65) > 64)


def test_allowed_offload_is_the_best_tight_answer_too(question: AskQuestion, presets: Presets) -> None:
    model = presets.model("llama-3.1-8b").model
    work = Workload(seq_len=4096, loss=presets.loss("fp32"))
    asked_for = asked(question, on(presets, ram_gb=2000.0), scheme=Scheme(), model=model, workload=work, stages=(3,))
    [best] = solve(asked_for, "max-micro-batch", offload=True)
    each = [
        solve(replace(asked_for, scheme=scheme), "max-micro-batch")[0]
        for scheme in (Scheme(), Scheme(optimizer="cpu"), Scheme(optimizer="cpu", params="cpu"))
    ]
    assert best.tight_answer == max(found.tight_answer or 0 for found in each if found.answer == best.answer)
