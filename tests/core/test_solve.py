"""The inverse questions are exact: the answer fits, one more or one less does not."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zeroplan.core.estimate import memory
from zeroplan.core.hardware import Gpu
from zeroplan.core.model import Model
from zeroplan.core.question import Card, Question
from zeroplan.core.solve import crossing, max_params, min_gpus
from zeroplan.formats.presets import Presets
from zeroplan.units import Share

PRESETS = Presets()
FRAMEWORKS = st.sampled_from(["zero", "deepspeed", "fsdp2", "fsdp1", "ddp", "megatron"])


def peak(question: Question, stage: int) -> int:
    return memory(question.plan(None, stage)).peak_bytes


def own_card(usable_bytes: int) -> Card:
    return Card(gpu=Gpu(name="custom", title="own", usable_bytes_stated=usable_bytes))


def ask(framework: str, params: int, gpus: int, usable_bytes: int, grad_accum: int = 1) -> Question:
    rules = PRESETS.framework(framework)
    return Question(
        model=Model(params=params),
        gpus=gpus,
        recipe=PRESETS.recipe(rules.default_recipe),
        framework=rules,
        cards=(own_card(usable_bytes),),
        headroom=Share(1, 10),
        grad_accum=grad_accum,
    )


@settings(max_examples=200, deadline=None)
@given(
    framework=FRAMEWORKS,
    gpus=st.integers(1, 10**9),
    usable=st.integers(1, 10**18),
    grad_accum=st.sampled_from([1, 4]),
)
def test_max_params_is_the_last_that_fits(framework: str, gpus: int, usable: int, grad_accum: int) -> None:
    question = ask(framework, 1, gpus, usable, grad_accum)
    card = question.cards[0]
    budget = question.budget_bytes(card)
    for stage in filter(question.offers, question.stages):
        answer = max_params(question, card, stage)
        if answer is None:
            assert peak(question.at("params", 1), stage) > budget
            continue
        assert peak(question.at("params", answer), stage) <= budget
        if answer < 10**18:
            assert peak(question.at("params", answer + 1), stage) > budget


@settings(max_examples=200, deadline=None)
@given(framework=FRAMEWORKS, params=st.integers(1, 10**18), usable=st.integers(1, 10**18))
def test_min_gpus_is_the_first_that_fits(framework: str, params: int, usable: int) -> None:
    question = ask(framework, params, 1, usable)
    card = question.cards[0]
    budget = question.budget_bytes(card)
    for stage in filter(question.offers, question.stages):
        answer = min_gpus(question, card, stage)
        if answer is None:
            assert peak(question.at("gpus", 10**9), stage) > budget
            continue
        assert peak(question.at("gpus", answer), stage) <= budget
        if answer > 1:
            assert peak(question.at("gpus", answer - 1), stage) > budget


@given(edge=st.integers(0, 10**18 - 1), guess=st.integers(-5, 10**19))
def test_crossing_finds_the_edge_from_any_guess(edge: int, guess: int) -> None:
    assert crossing(lambda x: x, edge, good=0, bad=10**18, guess=guess) == edge
    assert crossing(lambda x: -x, -edge - 1, good=10**18, bad=0, guess=guess) == edge + 1


@pytest.mark.parametrize("usable", [16 * 1000, 16 * 1000 - 1])
def test_the_budget_itself_still_fits(usable: int) -> None:
    question = ask("zero", 1000, 1, usable)
    bare = replace(question, headroom=Share(0, 1))
    assert min_gpus(bare, bare.cards[0], 3) == (1 if usable == 16_000 else 2)


def test_one_parameter_and_the_largest_cluster_may_fit_exactly() -> None:
    question = replace(ask("zero", 10**9, 1, 16), headroom=Share(0, 1))
    card = question.cards[0]
    assert max_params(question, card, 0) == 1
    assert min_gpus(question, card, 3) == 10**9
    assert max_params(question, own_card(15), 0) is None
    assert min_gpus(question, own_card(15), 3) is None


def test_the_largest_countable_model_may_fit_exactly() -> None:
    question = replace(ask("zero", 1, 16, 10**18), headroom=Share(0, 1))
    assert max_params(question, question.cards[0], 3) == 10**18
    assert max_params(question, own_card(10**18 - 1), 3) == 10**18 - 16


def test_a_good_guess_needs_few_evaluations() -> None:
    """Not by stepping: about as many evaluations as the guess is off, halved."""
    asked: list[int] = []

    def value_at(x: int) -> int:
        asked.append(x)
        return 16 * x

    assert crossing(value_at, 16 * 123_456_789, good=1, bad=10**18, guess=123_456_700) == 123_456_789
    assert len(asked) < 25


@pytest.mark.parametrize(("stage", "billions"), [(0, 2.0), (1, 7.641791042), (2, 14.422535209), (3, 128.0)])
def test_exact_first_row_of_table_2(stage: int, billions: float) -> None:
    question = ask("zero", 1, 64, 32 * 10**9)
    bare = Question(
        model=Model(params=1),
        gpus=64,
        recipe=question.recipe,
        framework=question.framework,
        cards=question.cards,
        headroom=Share(0, 1),
    )
    assert max_params(bare, bare.cards[0], stage) == round(billions * 10**9)
