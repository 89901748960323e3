"""Verdicts, the recommended stage, and what else an answer says."""

import pytest

from tests.conftest import AskQuestion
from zeroplan.core.advice import advise
from zeroplan.core.hardware import Gpu
from zeroplan.core.meters import Need
from zeroplan.core.question import Card
from zeroplan.core.verdict import DOES_NOT_FIT, FITS, TIGHT, fit, verdict
from zeroplan.errors import InputError
from zeroplan.units import Share


@pytest.mark.parametrize(("peak", "expected"), [(90, FITS), (91, TIGHT), (100, TIGHT), (101, DOES_NOT_FIT)])
def test_verdict_edges(peak: int, expected: str) -> None:
    assert verdict(Need(comfortable=peak, squeezed=peak), budget_bytes=90, usable_bytes=100) == expected


def test_featured_cards_get_the_lowest_stage_that_fits(question: AskQuestion) -> None:
    names = ["v100-32gb", "a100-40gb", "a100-80gb", "h100", "h200", "b200", "mi300x"]
    answers = fit(question(cards=names))
    assert [answer.recommended.stage for answer in answers if answer.recommended] == [2, 1, 1, 1, 0, 0, 0]
    assert answers[0].stage(1).verdict == TIGHT


def own(usable_bytes: int) -> Card:
    return Card(gpu=Gpu(name="custom", title="own", usable_bytes_stated=usable_bytes))


def test_when_nothing_fits_the_lowest_tight_stage_is_recommended(question: AskQuestion) -> None:
    card = own(1_900_000_000)
    answer = fit(question(cards=[card]))[0]
    assert answer.recommended is not None
    assert (answer.recommended.stage, answer.recommended.verdict) == (3, TIGHT)


def test_when_nothing_fits_at_all_there_is_no_recommendation_but_a_way_out(question: AskQuestion) -> None:
    card = own(1_000_000_000)
    asked = question(cards=[card])
    answer = fit(asked)[0]
    assert answer.recommended is None
    assert advise(asked, answer, None).way_out == (3, 134)


def test_a_stage_that_is_not_offered_is_never_recommended(question: AskQuestion) -> None:
    card = own(10**15)
    answer = fit(question(framework="fsdp2", cards=[card], stages=(1, 2)))[0]
    assert answer.recommended is not None
    assert answer.recommended.stage == 2
    assert answer.stage(1).estimate is None


def test_only_stages_that_are_not_offered_is_a_bad_question(question: AskQuestion) -> None:
    with pytest.raises(InputError, match=r"megatron has no stage 3\. It has 0, 1"):
        question(framework="megatron", stages=(3,))


def test_a_recipe_that_the_framework_does_not_run_is_refused(question: AskQuestion) -> None:
    with pytest.raises(
        InputError, match=r"fsdp2 with zero-adam is not modelled\. It is modelled with fsdp-mixed, fp32"
    ):
        question(framework="fsdp2", recipe="zero-adam")


def test_the_free_upgrade_is_the_next_stage_at_equal_traffic(question: AskQuestion) -> None:
    card = own(100 * 10**9)
    answer = fit(question(cards=[card]))[0]
    upgrade = advise(question(cards=[card]), answer, None).free_upgrade
    assert upgrade is not None
    assert upgrade.stage == 2


def test_what_frees_nothing_is_no_upgrade(question: AskQuestion) -> None:
    """One parameter has one shard, however many GPUs there are."""
    asked = question(params=1, gpus=7, cards=[own(100)])
    assert advise(asked, fit(asked)[0], None).free_upgrade is None


def test_with_accumulation_stage_2_is_no_free_upgrade(question: AskQuestion) -> None:
    card = own(100 * 10**9)
    asked = question(cards=[card], grad_accum=8)
    assert advise(asked, fit(asked)[0], None).free_upgrade is None


def test_headroom_rounds_towards_caution(question: AskQuestion) -> None:
    card = own(101)
    assert question(cards=[card], headroom=Share(1, 10)).budget_bytes(card) == 90
    assert question(cards=[card], headroom=Share(0, 1)).budget_bytes(card) == 101


def test_usable_memory_is_torchs_total_less_the_context() -> None:
    gpu = Gpu(name="g", title="g", torch_total_gib=31.74)
    assert gpu.usable_bytes == round(31.74 * 2**30) - 2**29
    assert gpu.provenance == "measured"


def test_usable_memory_is_derived_where_only_the_drivers_total_is_known() -> None:
    gpu = Gpu(name="g", title="g", memory_mib=81920)
    assert gpu.usable_bytes == 81920 * 2**20 - 3 * 2**28 - 2**29
    assert gpu.provenance == "derived"


def test_a_measured_context_replaces_the_usual_one() -> None:
    assert Gpu(name="g", title="g", torch_total_gib=10.0, context_mib=100).usable_bytes == 10 * 2**30 - 100 * 2**20


def test_stated_memory_is_taken_as_it_is() -> None:
    assert Gpu(name="custom", title="own", usable_bytes_stated=48 * 10**9).usable_bytes == 48 * 10**9
