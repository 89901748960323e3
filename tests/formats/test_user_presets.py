"""A user's own presets: they win by name, and what is wrong with them is said with file and key."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.command import run
from zeroplan.errors import InputError
from zeroplan.formats.presets import Presets

GPU = """
title = "Our own card"
torch_total_gib = 39.5
link_gb_per_s = 200
[sources]
memory = "our lab, 2026"
"""
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(place: str, text: str) -> Path:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return tmp_path

    return write


def test_a_new_card_is_found_beside_the_bundled_ones(write: Write) -> None:
    presets = Presets(str(write("gpu/our-card.toml", GPU)))
    assert presets.gpu("our-card").title == "Our own card"
    assert presets.gpu("h100").name == "h100-sxm5-80gb"
    assert "our-card" in presets.names("gpu")


def test_a_preset_of_the_same_name_wins(write: Write) -> None:
    folder = str(write("gpu/h100-sxm5-80gb.toml", GPU))
    assert Presets(folder).gpu("h100-sxm5-80gb").title == "Our own card"


def test_a_users_alias_wins_over_a_bundled_one(write: Write) -> None:
    folder = str(write("gpu/our-card.toml", f'aliases = ["h100"]\n{GPU}'))
    assert Presets(folder).gpu("h100").name == "our-card"


def test_the_command_plans_with_it(write: Write) -> None:
    ran = run(
        "fit", "--params", "1e9", "--gpus", "8", "--gpu", "our-card", "--presets", str(write("gpu/our-card.toml", GPU))
    )
    assert ran.status == 0
    assert "Our own card" in ran.stdout


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title = 'x'", "has neither torch_total_gib nor memory_mib"),
        ("title = 'x'\ntorch_total_gib = '80'", "torch_total_gib: Input should be a valid number"),
        ("title = 'x'\nmemory_mib = 80000\nmemroy = 3", "memroy: Unexpected keyword argument"),
        ("title = 'x'\nmemory_mib = -5", "memory_mib: '-5' is outside"),
        ("title = 'x'\nmemory_mib = nan", "memory_mib: Input should be a valid integer"),
        ("title = ''\nmemory_mib = 80000", "title: is empty"),
        ("name = 'y'\ntitle = 'x'\nmemory_mib = 80000", "a preset is named by its file"),
        ("title = 'x'\nmemory_mib = 80000\nbusbw_gb_per_s = {all-reduce = {eight = 3.0}}", "'eight' is not a number"),
        ("title = 'x'\nmemory_mib = 100", "has less memory than a CUDA context takes"),
        ("title = 1979-05-27\nmemory_mib = 80000", "holds a date or time"),
        ("title = 'x'\nmemory_mib = 48000\ntorch_total_gib = 90.0", "is more than the driver's total"),
        ('title = "\\u001b[31mred"\nmemory_mib = 80000', "title: holds control characters"),
        (f"title = 'x'\nmemory_mib = {'9' * 400}", "memory_mib: '999"),
        (f"title = 'x'\nmemory_mib = {'9' * 5000}", "is not TOML that zeroplan reads"),
        (f"title = 'x'\nusable_bytes_stated = {'9' * 400}", "usable_bytes_stated: '999"),
        ("title = 'x'\nmemory_mib = 80000\ncontext_mib = -1000000", "context_mib: '-1000000' is outside"),
        ("title = ", "is not TOML"),
        ("a = " + "[" * 5000, "nested too deeply|is not TOML"),
        ("x = 1\n" * 100_000, "is larger than 256 KiB"),
    ],
)
def test_a_bad_card_is_refused_with_its_file_and_key(write: Write, text: str, complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        Presets(str(write("gpu/our-card.toml", text)))
    said = "\n".join(map(str, caught.value.faults))
    assert "our-card.toml" in said
    assert re.search(complaint, said), said


def test_all_faults_are_reported_together(write: Write) -> None:
    write("gpu/one.toml", "title = 'x'\nmemroy = 3")
    folder = write("recipe/two.toml", "title = 'x'\ncompute_bytes = 2\nstates = []\nsource = 's'")
    with pytest.raises(InputError) as caught:
        Presets(str(folder))
    places = " ".join(fault.where for fault in caught.value.faults)
    assert "one.toml" in places
    assert "two.toml" in places


def test_a_folder_without_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    os.symlink("/dev/zero", tmp_path / "gpu" / "zero.toml")
    with pytest.raises(InputError, match="is not a regular file"):
        Presets(str(tmp_path))


def test_too_many_files_are_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zeroplan.formats.user_presets.MOST_FILES", 2)
    for number in range(2):
        write(f"gpu/card-{number}.toml", GPU)
    assert Presets(str(write("gpu/card-1.toml", GPU))).names("gpu")
    with pytest.raises(InputError, match="holds more than 2 presets"):
        Presets(str(write("gpu/card-2.toml", GPU)))


def test_an_overridden_preset_keeps_the_bundled_aliases(write: Write) -> None:
    folder = str(write("gpu/h100-sxm5-80gb.toml", GPU))
    assert Presets(folder).gpu("h100").title == "Our own card"


def test_aliases_of_ones_own_may_have_capitals(write: Write) -> None:
    assert Presets(str(write("gpu/our-card.toml", f'aliases = ["MyCard"]\n{GPU}'))).gpu("mycard").name == "our-card"


NODE = "title = 'n'\ngpu = 'h100'\ngpus_per_node = 8\nlink_gb_per_s = 100\nsource = 's'"


def test_a_node_may_name_its_gpu_by_an_alias(write: Write) -> None:
    folder = str(write("node/ours.toml", NODE))
    for gpu in ([], ["--gpu", "h100"]):
        ran = run("fit", "--params", "1e9", "--gpus", "8", *gpu, "--node", "ours", "--presets", folder)
        assert (ran.status, ran.stderr) == (0, "")
        assert "Bound by the 100 GB/s link of each GPU" in ran.stdout


@pytest.mark.parametrize("name", ["Our Card.toml", "ünïcode.toml", "-x.toml"])
def test_a_bad_file_name_is_refused(write: Write, name: str) -> None:
    with pytest.raises(InputError, match="file name is not a preset's name"):
        Presets(str(write(f"gpu/{name}", GPU)))


def test_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "x.toml").write_bytes(b"title = '\xff\xfe'")
    with pytest.raises(InputError, match="is not UTF-8"):
        Presets(str(tmp_path))


def test_a_missing_folder_and_a_flat_one_are_told_the_layout(tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match=r"is not a folder\. It should hold folders such as gpu/"):
        Presets(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"holds no presets\. It should hold folders such as gpu/"):
        Presets(str(write("our-card.toml", GPU)))


def test_a_misspelt_kind_is_not_passed_over(write: Write) -> None:
    write("gpu/good.toml", GPU)
    with pytest.raises(InputError, match="no kind of preset is named 'gpuz'"):
        Presets(str(write("gpuz/bad.toml", GPU)))


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    os.mkfifo(tmp_path / "gpu" / "pipe.toml")
    with pytest.raises(InputError, match="is not a regular file"):
        Presets(str(tmp_path))


def test_a_few_figures_are_enough(write: Write) -> None:
    gpu = Presets(str(write("gpu/lab.toml", "memory_mib = 49152"))).gpu("lab")
    assert (gpu.title, gpu.provenance) == ("lab", "derived")
    folder = write("node/ours.toml", "gpu = 'lab'\ngpus_per_node = 4\nlink_gb_per_s = 31")
    assert Presets(str(folder)).node("ours").source == "your preset ours"


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        ("gpu/lab.toml", "memory_mib = 49152\nnode = 'dgx-h1000'", "gpu lab, node: no node is named 'dgx-h1000'"),
        ("node/ours.toml", NODE.replace("h100", "h10O"), "node ours, gpu: no gpu is named 'h10O'"),
    ],
)
def test_a_preset_that_names_nothing_known_is_refused(write: Write, place: str, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Presets(str(write(place, text)))


def test_a_framework_of_ones_own(write: Write, presets: Presets) -> None:
    """A file copied from the bundled one, with a smaller bucket."""
    from zeroplan.formats.presets import bundled_folder

    text = Path(bundled_folder(), "framework", "deepspeed.toml").read_text("utf-8")
    folder = write(
        "framework/deepspeed.toml", text.replace("reduce_bucket_size = 500_000_000", "reduce_bucket_size = 1_000")
    )
    assert Presets(str(folder)).framework("deepspeed").limits["reduce_bucket_size"] == 1000
    assert presets.framework("deepspeed").limits["reduce_bucket_size"] == 500_000_000


VALUES = st.recursive(
    st.one_of(
        st.integers(-10, 10**12).map(str),
        st.floats(allow_nan=True).map(lambda f: str(f).replace("inf", "inf")),
        st.text(st.characters(codec="ascii", exclude_characters="'\n\r"), max_size=8).map(lambda t: f"'{t}'"),
        st.just("true"),
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    max_leaves=4,
)
KEYS = st.sampled_from(
    ["title", "aliases", "memory_mib", "torch_total_gib", "link", "featured", "node", "sources", "busbw_gb_per_s",
     "states", "compute_bytes", "source", "stages", "sends", "holds", "limits", "families", "text", "gpu"]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["gpu", "node", "recipe", "framework", "word"]),
    table=st.dictionaries(KEYS, VALUES, max_size=6),
)
def test_no_file_reaches_another_error(tmp_path: Path, kind: str, table: dict[str, str]) -> None:
    path = tmp_path / kind / "any.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(f"{key} = {value}" for key, value in table.items()), "utf-8")
    assert complaints(str(tmp_path)) >= 0
    path.unlink()


def complaints(folder: str) -> int:
    """How many faults a folder of presets has."""
    try:
        Presets(folder)
    except InputError as error:
        return len(error.faults)
    return 0


def test_cards_of_one_title_are_two_cards(write: Write) -> None:
    write("gpu/our-card.toml", GPU)
    folder = str(write("gpu/our-other-card.toml", GPU.replace("39.5", "79.5")))
    ran = run(
        *("fit", "--params", "1e9", "--gpus", "8", "--gpu", "our-card,our-other-card"),
        *("--presets", folder, "--format", "json"),
    )
    assert [each["gpu"] for each in json.loads(ran.stdout)["results"]] == ["our-card", "our-other-card"]
