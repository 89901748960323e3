"""Bundled presets: each loads, is valid, names its source, and its file name is its name."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.formats.configs import MODELS
from zeroplan.core.framework import Framework
from zeroplan.core.hardware import Gpu, Node
from zeroplan.core.recipe import Recipe
from zeroplan.core.word import Word
from zeroplan.errors import InputError
from zeroplan.formats.kinds import KINDS
from zeroplan.formats.model_preset import ModelPreset
from zeroplan.formats.presets import Presets, bundled_folder
from zeroplan.formats.user_presets import validated

FOLDER = Path(bundled_folder())
FILES = sorted(FOLDER.rglob("*.toml"))
ALIASES = {
    "v100-32gb": "v100-sxm2-32gb",
    "a100-40gb": "a100-sxm4-40gb",
    "a100-80gb": "a100-sxm4-80gb",
    "h100": "h100-sxm5-80gb",
    "h200": "h200-sxm5-141gb",
    "b200": "b200-sxm",
}


def load(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_preset_passes_strict_validation(path: Path, presets: Presets) -> None:
    kind = path.parent.name
    record = validated(kind, path.stem, load(path), str(path))
    assert record.name == path.stem
    assert presets.get(kind, path.stem).name == path.stem
    assert "name" not in load(path)


def test_the_catalog_is_as_large_as_promised(presets: Presets) -> None:
    assert len(presets.names("gpu")) >= 35
    assert len(presets.names("node")) >= 25
    assert len(presets.names("model")) >= 80


def test_every_model_counts_to_the_number_of_its_preset(presets: Presets) -> None:
    """The numbers are transformers' own; see configs.py."""
    for preset in presets.all("model"):
        assert isinstance(preset, ModelPreset)
        expected = MODELS["llama-7b" if preset.name == "llama-2-7b" else preset.name]
        assert preset.params == preset.model.params == expected["total"]
        assert preset.model.active_params == (expected["active"] or expected["total"])


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("llama-7b", "llama-2-7b"),
        ("llama-3.3-70b", "llama-3.1-70b"),
        ("deepseek-r1", "deepseek-v3"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("mistral-7b", "mistral-7b-v0.3"),
    ],
)
def test_other_names_of_models(presets: Presets, alias: str, name: str) -> None:
    assert presets.model(alias).name == name


def test_featured_gpus_in_their_order(presets: Presets) -> None:
    names = "v100-sxm2-32gb a100-sxm4-40gb a100-sxm4-80gb h100-sxm5-80gb h200-sxm5-141gb b200-sxm mi300x"
    assert [gpu.name for gpu in presets.featured] == names.split()


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases(presets: Presets, alias: str, name: str) -> None:
    assert presets.gpu(alias).name == name
    assert presets.gpu(alias.upper()).name == name


@pytest.mark.parametrize("kind", KINDS)
def test_no_name_means_two_things(presets: Presets, kind: str) -> None:
    names = [name for record in presets.all(kind) for name in (record.name, *record.aliases)]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() for name in names)


def test_every_gpu_names_the_sources_of_its_figures(presets: Presets) -> None:
    for gpu in presets.all("gpu"):
        assert isinstance(gpu, Gpu)
        assert gpu.sources["memory"]
        if gpu.link_gb_per_s or gpu.pair_link_gb_per_s:
            assert gpu.sources["link"]
        if gpu.busbw_gb_per_s:
            assert gpu.sources["busbw"]


def test_every_source_is_public() -> None:
    """No path of somebody's machine, no vague hearsay."""
    for path in FILES:
        text = path.read_text("utf-8")
        assert "/work" not in text
        assert "shared/" not in text


def test_usual_nodes_hold_the_gpu_that_names_them(presets: Presets) -> None:
    for gpu in presets.all("gpu"):
        assert isinstance(gpu, Gpu)
        if gpu.node:
            assert presets.node(gpu.node).gpu == gpu.name


def test_nodes_name_known_gpus_and_the_source_of_their_measurements(presets: Presets) -> None:
    for node in presets.all("node"):
        assert isinstance(node, Node)
        assert presets.gpu(node.gpu).name == node.gpu
        assert bool(node.busbw_gb_per_s) == bool(node.busbw_source)
        assert bool(node.price_usd_per_hour) == bool(node.price_where)


def test_bidirectional_datasheet_links_are_halved(presets: Presets) -> None:
    """NVLink3 is 600 GB/s in both directions together, NVLink4 900, NVLink5 1800 (the datasheets' figures)."""
    links = {name: presets.gpu(name).link_gb_per_s for name in ("a100-80gb", "h100", "b200", "mi300x")}
    assert links == {"a100-80gb": 300, "h100": 450, "b200": 900, "mi300x": 448}


@pytest.mark.parametrize("name", ["rtx-4090", "l40s", "t4", "a10g", "a100-pcie-80gb", "h100-pcie-80gb"])
def test_pcie_cards_have_no_fast_link_to_all_others(presets: Presets, name: str) -> None:
    assert presets.gpu(name).link_gb_per_s is None


def test_the_papers_machine_is_at_hand(presets: Presets) -> None:
    dgx2 = presets.node("dgx-2")
    assert (dgx2.gpus_per_node, dgx2.gpu) == (16, "v100-sxm2-32gb")
    assert dgx2.domain_network_bytes_per_s == 100 * 10**9


@pytest.mark.parametrize(
    ("name", "total", "by_role"),
    [
        ("zero-adam", 16, (2, 2, 12)),
        ("adam-m8", 12, (2, 2, 8)),
        ("adam-m12", 16, (2, 2, 12)),
        ("adam-m16", 20, (2, 2, 16)),
        ("megatron-bf16", 18, (2, 4, 12)),
        ("deepspeed-16bit", 16, (2, 2, 12)),
        ("deepspeed-fp32-accum", 18, (2, 4, 12)),
        ("fsdp-mixed", 16, (4, 4, 8)),
        ("fp32-adam", 16, (4, 4, 8)),
        ("pure-bf16", 8, (2, 2, 4)),
        ("sgd-momentum", 12, (2, 2, 8)),
        ("lion", 12, (2, 2, 8)),
    ],
)
def test_recipes(presets: Presets, name: str, total: int, by_role: tuple[int, int, int]) -> None:
    recipe = presets.recipe(name)
    assert recipe.bytes_per_parameter == total
    assert tuple(map(recipe.bytes_of, ("parameters", "gradients", "optimizer"))) == by_role


def test_every_recipe_is_tested_above(presets: Presets) -> None:
    tested = {mark.args[1][i][0] for mark in test_recipes.pytestmark for i in range(len(mark.args[1]))}  # type: ignore[attr-defined]
    assert tested == set(presets.names("recipe"))


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("zero", (0, 1, 2, 3)),
        ("deepspeed", (0, 1, 2, 3)),
        ("fsdp2", (0, 2, 3)),
        ("fsdp1", (0, 2, 3)),
        ("ddp", (0, 1)),
        ("megatron", (0, 1)),
    ],
)
def test_frameworks_name_their_stages(presets: Presets, name: str, stages: tuple[int, ...]) -> None:
    assert presets.framework(name).stage_numbers == stages


def test_frameworks_name_known_recipes(presets: Presets) -> None:
    for framework in presets.all("framework"):
        assert isinstance(framework, Framework)
        for recipe in (framework.default_recipe, *framework.recipes):
            assert isinstance(presets.get("recipe", recipe), Recipe)


def test_words_point_at_words(presets: Presets) -> None:
    for word in presets.all("word"):
        assert isinstance(word, Word)
        for other in word.see:
            assert presets.word(other).name == other


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no gpu is named 'a1000'. Did you mean .*a100"):
        Presets().gpu("a1000")


@pytest.mark.parametrize("name", ["../gpu/h100-sxm5-80gb", "/etc/passwd", "", "h100\x1b[31m", "[red]", "a" * 10_000])
def test_a_strange_name_is_only_unknown(name: str) -> None:
    with pytest.raises(InputError, match="no gpu is named") as caught:
        Presets().gpu(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
