"""`zeroplan explain`: terms, figures, estimators and words."""

import pytest

from tests.command import GOOD, answer, run


@pytest.mark.parametrize("term", ["peak", "usable", "link"])
def test_explain_has_a_number_for_every_figure_of_the_screen(term: str) -> None:
    text = run("explain", *GOOD, "--stage", "2", "--gpu", "h100", term).stdout
    expected = {"peak": "16,640,625,000", "usable": "84.41", "link": "29,531,250,000 bytes sent / 400,000,000,000"}
    assert expected[term] in text


def test_deepspeeds_own_estimators_are_shown_by_explain_alone() -> None:
    """2 + 18/N and 18/N are the estimators' figures; the verdict uses 2 + 20/N."""
    found = answer("explain", "--params", "8e9", "--gpus", "8", "--stage", "2", "--framework", "deepspeed")
    [claim] = found["claims"]
    assert claim["bytes"] == 2 * 8 * 10**9 + 18 * 10**9
    assert found["stage"]["peak_bytes"] == 2 * 8 * 10**9 + 20 * 10**9
    assert "claims" not in answer("fit", *GOOD, "--framework", "deepspeed")["results"][0]


def test_explain_takes_the_lowest_stage_that_fits_where_none_is_named() -> None:
    assert answer("explain", *GOOD, "--gpu", "v100-sxm2-32gb")["stage"]["stage"] == 2
    assert "--stage: is missing" in run("explain", *GOOD, "momentum").stderr


def test_the_rows_at_the_peak_add_up_to_it() -> None:
    args = ["--model", "llama-3.1-8b", "--gpus", "8", "--stage", "3", "--seq-len", "8192", "--framework", "fsdp2"]
    stage = answer("explain", *args, "--gpu", "h100")["stage"]
    at_peak = [term["bytes"] for term in stage["memory"] if stage["peak_moment"] in term["moments"]]
    assert sum(at_peak) == stage["peak_bytes"]
    text = " ".join(run("explain", *args, "--gpu", "h100").stdout.split())
    assert "that the allocator is expected to take" in text


@pytest.mark.parametrize(
    "word", ["zero-0", "zero-1", "zero-2", "zero-3", "k", "psi", "all-reduce", "headroom", "ZeRO-2"]
)
def test_words_are_explained(word: str) -> None:
    assert "Source: " in run("explain", word).stdout


def test_explain_shows_why_an_all_reduce_costs_two() -> None:
    assert "a reduce-scatter and an all-gather" in " ".join(run("explain", "all-reduce").stdout.split())


def test_explain_a_term_shows_formula_inputs_and_source() -> None:
    text = " ".join(run("explain", *GOOD, "--stage", "2", "momentum").stdout.split())
    assert "4 * ceil(params / gpus) = 468,750,000 bytes, with params = 7,500,000,000, gpus = 64" in text
    assert "Source: ZeRO" in text


@pytest.mark.parametrize("term", ["claims", "estimator"])
def test_explain_shows_the_estimators_alone(term: str) -> None:
    args = ["explain", *GOOD, "--stage", "2", "--framework", "deepspeed", term]
    assert "DeepSpeed stage 2 estimator says 17.11 GB" in run(*args).stdout


def test_explain_gives_a_word_in_every_format() -> None:
    assert run("explain", "psi", "--format", "csv").stdout.startswith("name,title,text")
    assert run("explain", *GOOD, "--stage", "2", "psi", "--format", "csv").stdout.startswith("name,title,text")


@pytest.mark.parametrize(
    "options",
    [
        ["--framework", "deepspeed", "--grad-accum", "8"],
        ["--framework", "deepspeed", "--recipe", "deepspeed-fp32-accum"],
        ["--optimizer-bytes", "16"],
    ],
)
def test_the_command_that_fit_suggests_explains_the_same_figures(options: list[str]) -> None:
    args = ["fit", *GOOD, "--gpu", "h100", *options]
    suggested = " ".join(run(*args).stdout.split()).rpartition("zeroplan explain ")[2].split()
    explained = answer("explain", *suggested)["stage"]
    [shown] = [stage for stage in answer(*args)["results"][0]["stages"] if stage["stage"] == explained["stage"]]
    for part in ("memory", "traffic_psi", "wire_bytes", "peak_bytes"):
        assert explained[part] == shown[part]
