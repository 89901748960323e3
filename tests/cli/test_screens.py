"""The answers for people: what a screen says, and how it looks."""

import pytest

from tests.command import GOOD, answer, run


def test_bare_zeroplan_shows_three_examples() -> None:
    assert run().stdout.count("  zeroplan ") == 3


@pytest.mark.parametrize("command", ["fit", "compare", "sweep", "solve", "explain", "presets", "schema"])
def test_help_is_short_and_has_an_example(command: str) -> None:
    text = run(command, "--help").stdout
    assert "Example: zeroplan" in text
    options = [line for line in text.splitlines() if line.startswith("  -")]
    assert len(options) <= 15, options


def test_help_groups_its_options() -> None:
    text = run("fit", "--help").stdout
    assert [text.index(f"{heading}:\n") for heading in ("Question", "Hardware", "Accounting", "Output")]


def test_on_one_gpu_no_stage_is_said_to_free_memory() -> None:
    """DeepSpeed's FusedAdam copies more at stage 0, but the question is of sharding."""
    text = run("fit", "--params", "7.5e9", "--gpus", "1", "--gpu", "b300-sxm", "--framework", "deepspeed").stdout
    assert "sharding saves nothing" in text
    assert "frees" not in text


@pytest.mark.parametrize(("framework", "size"), [("zero", 2), ("fsdp2", 4), ("megatron", 4)])
def test_the_yardstick_of_traffic_is_said(framework: str, size: int) -> None:
    text = " ".join(run("fit", *GOOD, "--framework", framework, "--gpu", "h200").stdout.split())
    assert f"1.0x is plain data parallelism: an all-reduce of {size}-byte gradients" in text


def test_sweep_shows_verdicts_for_every_card() -> None:
    text = run("sweep", "--params", "7.5e9", "--over", "gpus=4,64", "--gpu", "h100,v100-32gb").stdout
    assert text.count("On ") == 2
    assert "tight" in text
    assert "on 4 to 64 data-parallel GPUs" in " ".join(text.split())


def test_on_one_gpu_it_says_that_sharding_saves_nothing() -> None:
    assert "sharding saves nothing" in run("fit", "--params", "1e9", "--gpus", "1").stdout


def test_no_colour_and_no_escapes_when_piped() -> None:
    for args in (["fit", *GOOD], ["fit", *GOOD, "--gpu", "h100"]):
        assert "\x1b" not in run(*args, NO_COLOR="", TERM="xterm-256color").stdout


def test_letters_where_block_characters_cannot_be_shown() -> None:
    text = run("fit", *GOOD, "--gpu", "h100", PYTHONIOENCODING="ascii").stdout
    assert text.isascii()
    assert "W weights" in text


@pytest.mark.parametrize("width", ["40", "80", "120", "200"])
def test_no_figure_is_ever_cut(width: str) -> None:
    """Whatever the width, every number of the answer is there in full."""
    text = run(
        "fit", "--params", "1e15", "--gpus", "64", "--gpu", "h100", "--framework", "deepspeed", COLUMNS=width
    ).stdout
    for figure in ("16,000,000 ", "4,187,500 ", "2,218,750 ", "250,000 ", "5,906,249.02", "24,000,000.00"):
        assert figure in text


@pytest.mark.parametrize("framework", ["zero", "fsdp2"])
@pytest.mark.parametrize("gpu", [[], ["--gpu", "a100-80gb"]])
def test_common_screens_fit_80_columns(framework: str, gpu: list[str]) -> None:
    text = run("fit", *GOOD, "--framework", framework, *gpu).stdout
    assert max(map(len, text.splitlines())) <= 80


def test_where_nothing_fits_it_says_from_how_many_gpus_it_does() -> None:
    """The fewest and the most of the cards, of each the least that fits."""
    args = ["--params", "1e12", "--gpus", "8"]
    text = " ".join(run("fit", *args, "--gpu", "t4,h200,a100-80gb").stdout.split())
    least = {
        card["gpu"]: card["stages"][3]["answer"]
        for card in answer("solve", "min-gpus", *args[:2], "--gpu", "t4,h200")["results"]
    }
    assert f"ZeRO-3 fits from {least['h200-sxm5-141gb']} GPUs (H200 141GB) to {least['t4']:,} GPUs (T4)" in text
