"""Bad questions: a line on stderr that says where, what and how to mend it; status 2; nothing on stdout."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.command import run
from zeroplan.cli import run as run_here

GOOD = ["--params", "7.5e9", "--gpus", "64"]


def bad(*args: str) -> str:
    """What a bad question says."""
    ran = run(*args)
    assert ran.status == 2, ran
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    assert all(line.startswith("zeroplan: ") for line in ran.stderr.splitlines())
    assert ran.stderr.replace("\n", "").isprintable()
    return ran.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["fit"], ["--params: is missing. Example: --params 7.5e9.", "--gpus: is missing. Example: --gpus 64."]),
        (["fit", "--params", "0", "--gpus", "64"], ["--params: '0' is outside 1 to 1e18"]),
        (["fit", "--params", "-1", "--gpus", "64"], ["--params: '-1' is negative"]),
        (["fit", "--params", "nan", "--gpus", "64"], ["--params: 'nan' is not a number"]),
        (["fit", "--params", "1e400", "--gpus", "64"], ["--params: '1e400' is far outside"]),
        (["fit", "--params", "[red]x", "--gpus", "64"], ["--params: '[red]x' is not a number"]),
        (["fit", "--params", "7.5e9", "--gpus", "0"], ["--gpus: '0' is outside 1 to 1e9"]),
        (["fit", "--params", "7.5e9", "--gpus", "a100"], ["A GPU's name goes with --gpu"]),
        (["fit", *GOOD, "--gpu", "64"], ["--gpu: '64' is a number, not a GPU. How many goes with --gpus 64"]),
        (["fit", *GOOD, "--gpu", "a1000"], ["no gpu is named 'a1000'. Did you mean", "a100"]),
        (["fit", *GOOD, "--gpu", "h10O"], ["Did you mean h100"]),
        (["fit", *GOOD, "--headroom", "200%"], ["--headroom: '200%' is outside 0% to under 100%"]),
        (["fit", *GOOD, "--headroom", "10"], ["A percentage needs its sign: 10% or 0.1"]),
        (["fit", *GOOD, "--memory", "48"], ["--memory: '48' has no unit"]),
        (["fit", *GOOD, "--memory", "48GB", "--gpu", "h100"], ["Give --gpu or --memory, not both"]),
        (["fit", *GOOD, "--node", "dgx-h1000"], ["no node is named 'dgx-h1000'. Did you mean dgx-h100"]),
        (
            ["fit", *GOOD, "--node", "dgx-h100", "--gpu", "a100-80gb"],
            ["dgx-h100 has h100-sxm5-80gb, not a100-sxm4-80gb"],
        ),
        (["fit", *GOOD, "--stage", "4"], ["--stage: '4' is not a ZeRO stage. Stages are 0, 1, 2 and 3."]),
        (["fit", *GOOD, "--stage", "1", "--framework", "fsdp2"], ["fsdp2 has no stage 1. It has 0, 2, 3."]),
        (["fit", *GOOD, "--recipe", "zero-adm"], ["no recipe is named 'zero-adm'. Did you mean zero-adam"]),
        (["fit", *GOOD, "--framework", "fsdp3"], ["no framework is named 'fsdp3'. Did you mean"]),
        (
            ["fit", *GOOD, "--framework", "fsdp2", "--recipe", "zero-adam"],
            ["fsdp2 with zero-adam is not modelled. It is modelled with fsdp-mixed"],
        ),
        (["fit", *GOOD, "--recipe", "lion", "--optimizer-bytes", "12"], ["Give --recipe or --optimizer-bytes"]),
        (["fit", *GOOD, "--optimizer-bytes", "10"], ["'10' is not one of '8', '12', '16'"]),
        (["fit", *GOOD, "--grad-accum", "0"], ["--grad-accum: '0' is outside 1 to 1e6"]),
        (["fit", *GOOD, "--presets", "/nowhere"], ["--presets: '/nowhere' is not a folder"]),
        (["fit", *GOOD, "--format", "xml"], ["'xml' is not one of"]),
        (["fit", *GOOD, "--parms", "1"], ["No such option '--parms'", "--params"]),
        (["fit", *GOOD, "extra"], ["unexpected extra argument"]),
        (
            ["fit", "--params", "x", "--gpus", "y", "--gpu", "z", "--headroom", "w"],
            ["--params", "--gpus", "--gpu", "--headroom"],
        ),
        (["sweep", "--params", "1e9"], ["--over: is missing. Example: --over gpus=1,4,16,64"]),
        (["sweep", "--params", "1e9", "--over", "gpu=1"], ["'gpu=1' is not NAME=VALUES", "gpus, params, grad-accum"]),
        (["sweep", "--params", "1e9", "--over", "gpus="], ["--over gpus: '' is not a number"]),
        (["sweep", "--params", "1e9", "--over", "gpus=1,,2"], ["--over gpus: '' is not a number"]),
        (["sweep", *GOOD, "--over", "gpus=1", "--over", "params=1"], ["is given twice"]),
        (["sweep", *GOOD, "--grad-accum", "4", "--over", "grad-accum=1"], ["varies it already"]),
        (["fit", *GOOD, "--gpu", "a100"], ["Did you mean a100-40gb or a100-80gb"]),
        (
            ["fit", *GOOD, "--framework", "deepspeed", "--optimizer-bytes", "16"],
            ["recipe: deepspeed with adam-m16 is not modelled"],
        ),
        (["sweep", "--params", "1e9", "--over", "gpus=1,x"], ["--over gpus: 'x' is not a number"]),
        (["sweep", *GOOD, "--over", "gpus=1,2"], ["--gpus: --over gpus=... varies it already"]),
        (["solve", "max-parms", "--gpus", "8"], ["no question is named 'max-parms'. Did you mean max-params"]),
        (["solve", "max-params", "--params", "1e9", "--gpus", "8"], ["--params: solve max-params finds it"]),
        (["solve", "min-gpus"], ["--params: is missing"]),
        (["solve"], ["Missing argument"]),
        (["explain", "nosuch"], ["no word is named 'nosuch'"]),
        (["explain", *GOOD], ["--stage: is missing. Example: --stage 2"]),
        (["explain", *GOOD, "--stage", "2", "nosuch"], ["'nosuch' is no term of this plan and no word"]),
        (["explain", "--params", "7.5e9", "--stage", "2"], ["--gpus: is missing"]),
        (["presets", "gpus"], ["no kind is named 'gpus'. Did you mean gpu"]),
        (["presets", "gpu", "a1000"], ["no gpu is named 'a1000'"]),
        (["schema"], ["COMMAND: is missing"]),
        (["schema", "fitt"], ["Did you mean fit"]),
        (["nosuch"], ["no command is named 'nosuch'"]),
        (["fti"], ["Did you mean fit"]),
        (["--nosuch"], ["No such option"]),
        (["fit", "--params"], ["requires an argument"]),
    ],
    ids=lambda part: " ".join(part)[:60] if isinstance(part, list) else None,
)
def test_a_bad_question_says_how_to_mend_it(args: list[str], said: list[str]) -> None:
    stderr = bad(*args)
    for words in said:
        assert words in stderr


def test_all_faults_are_found_at_once() -> None:
    assert len(bad("fit", "--params", "x", "--gpus", "0", "--gpu", "a1000", "--stage", "9").splitlines()) == 4


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\nb", "[bold]x[/bold]", "x" * 100_000, "\u202etrick", "%s%n"])
def test_strange_text_is_shown_harmlessly(text: str) -> None:
    stderr = bad("fit", *GOOD, "--gpu", text)
    assert "\x1b" not in stderr
    assert len(stderr) < 500


WORDS = st.one_of(
    st.sampled_from(["fit", "compare", "solve", "max-params", "sweep", "explain", "--params", "--gpus", "7.5e9", "64",
                     "--gpu", "h100", "--stage", "2", "--memory", "48GB", "--headroom", "10%", "--format", "json",
                     "--over", "gpus=1,2", "--framework", "deepspeed", "--recipe", "--unit", "GiB", "--", "-h"]),
    st.text(max_size=12),
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(WORDS, max_size=8))
def test_no_command_line_reaches_a_traceback(args: list[str]) -> None:
    assert run_here(args) in (0, 1, 2)


NUMBERS = st.one_of(
    st.integers(-5, 10**20).map(str),
    st.floats().map(str),
    st.sampled_from(["1e18", "1e-5", "7.5B", "0x10", "1/2", "1e400", "-0", "+1", "1__0", "NaN", "∞"]),
)


@settings(max_examples=200, deadline=None)
@given(params=NUMBERS, gpus=NUMBERS, headroom=NUMBERS, accum=NUMBERS, memory=NUMBERS)
def test_no_number_reaches_a_traceback(params: str, gpus: str, headroom: str, accum: str, memory: str) -> None:
    options = {
        "--params": params,
        "--gpus": gpus,
        "--headroom": headroom,
        "--grad-accum": accum,
        "--memory": f"{memory}GB",
    }
    args = [f"{name}={value}" for name, value in options.items()]
    assert run_here(["fit", *args, "--format", "json"]) in (0, 1, 2)
