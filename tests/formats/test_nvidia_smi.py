"""The GPUs that nvidia-smi lists, and the presets they are; a script stands in for the program."""

import os
from pathlib import Path

import pytest

from tests.command import answer, run
from zeroplan.core.hardware import Gpu
from zeroplan.formats.nvidia_smi import Listed, gpu_of
from zeroplan.formats.presets import Presets

ASKED = ["fit", "--params", "1e9", "--gpus", "auto", "--gpu", "auto"]


def driver(folder: Path, text: str, status: int = 0) -> dict[str, str]:
    """An environment whose nvidia-smi prints `text`."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_the_cards_of_this_machine(tmp_path: Path) -> None:
    ran = run(*ASKED, "--format", "json", **driver(tmp_path, "NVIDIA H100 80GB HBM3, 81559, Disabled\n" * 2))
    assert '"h100-sxm5-80gb"' in ran.stdout
    assert '"gpus": 2' in ran.stdout
    assert ran.stderr.splitlines() == [
        "zeroplan: --gpus auto is 2, by nvidia-smi, of this machine.",
        "zeroplan: --gpu auto is h100-sxm5-80gb, by nvidia-smi (NVIDIA H100 80GB HBM3, 81559 MiB).",
    ]


@pytest.mark.parametrize(
    ("visible", "count"), [("0,1,3", 3), ("0,1,", 2), ("0,-1,2", 1), ("GPU-8f,MIG-1", 2), ("", 0), ("-1", 0)]
)
def test_visible_devices_are_counted(tmp_path: Path, visible: str, count: int) -> None:
    ran = run(*ASKED, **{**driver(tmp_path, "Tesla T4, 15360, [N/A]"), "CUDA_VISIBLE_DEVICES": visible})
    said = f"is {count}, by CUDA_VISIBLE_DEVICES" if count else "no GPU is visible"
    assert said in ran.stderr


def test_a_node_of_another_gpu_is_refused(tmp_path: Path) -> None:
    """As where the GPU is named."""
    machine = driver(tmp_path, "NVIDIA H100 80GB HBM3, 81559, Disabled")
    ran = run("fit", "--params", "1e9", "--gpus", "8", "--gpu", "auto", "--node", "dgx-a100-80gb", **machine)
    assert (ran.status, "dgx-a100-80gb has a100-sxm4-80gb, not h100-sxm5-80gb" in ran.stderr) == (2, True)


def test_whether_a_card_of_no_preset_has_bf16_is_said_to_be_unknown(tmp_path: Path) -> None:
    machine = driver(tmp_path, "Tesla P100-PCIE-16GB, 16280, [N/A]")
    ran = run("config", "deepspeed", "--params", "1e8", "--gpus", "8", "--gpu", "auto", **machine)
    assert "whether your card has bf16" in ran.stderr


def test_the_driver_is_asked_once(tmp_path: Path) -> None:
    machine = driver(tmp_path, "Tesla T4, 15360, [N/A]")
    program = tmp_path / "nvidia-smi"
    program.write_text(program.read_text().replace("cat <<", f"echo x >> {tmp_path}/asked\ncat <<"))
    run(*ASKED, **machine)
    assert (tmp_path / "asked").read_text() == "x\n"


def test_a_card_of_no_preset_keeps_room_for_the_driver(tmp_path: Path) -> None:
    ran = run(*ASKED, "--format", "json", **driver(tmp_path, "NVIDIA GeForce RTX 4070, 12282, [N/A]"))
    assert f'"memory_bytes": {(12282 - 768 - 512) * 2**20}' in ran.stdout
    assert "a card of no preset" in ran.stderr


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("NVIDIA A100-SXM4-40GB, 40960, Enabled", 0, "divided by MIG"),
        ("No devices were found", 6, "nvidia-smi failed: 'No devices were found'"),
        ("", 0, "lists no GPU"),
        ("", 18, "nvidia-smi failed"),
        ("NVIDIA A100-SXM4-40GB, [Unknown Error], Disabled", 0, "does not say the memory"),
        ("\x1b[31mevil\x1b[0m, 1, Disabled", 0, "less memory than a CUDA context takes"),
        ("garbage", 0, "lists no GPU"),
        ("No devices were found", 0, "lists no GPU"),
    ],
)
def test_what_it_cannot_say_is_refused(tmp_path: Path, text: str, status: int, said: str) -> None:
    ran = run("fit", "--params", "1e9", "--gpus", "8", "--gpu", "auto", **driver(tmp_path, text, status))
    assert (ran.status, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert "\x1b" not in ran.stderr


def test_a_machine_without_it(tmp_path: Path) -> None:
    ran = run(*ASKED, PATH=str(tmp_path))
    assert ran.status == 2
    assert "not on this machine" in ran.stderr


@pytest.mark.parametrize(
    ("listed", "name"),
    [
        (Listed("Tesla V100-SXM2-32GB", 32510), "v100-sxm2-32gb"),
        (Listed("NVIDIA Tesla V100-SXM2-32GB", 32768), "v100-sxm2-32gb"),
        (Listed("A100-SXM4-80GB", 81920), "a100-sxm4-80gb"),
        (Listed("NVIDIA H20", 143771), "custom"),
        (Listed("NVIDIA H20", 97871 * 105 // 100), "custom"),
        (Listed("Tesla V100-PCIE-16GB", 16160), "v100-pcie-16gb"),
    ],
)
def test_names_and_memory_say_the_preset(listed: Listed, name: str) -> None:
    assert gpu_of(listed, Presets()).name == name


def test_no_two_presets_have_one_driver_name_and_memory() -> None:
    presets = Presets()
    for gpu in presets.all("gpu"):
        assert isinstance(gpu, Gpu)
        for name in gpu.driver_names:
            assert gpu_of(Listed(name, gpu.memory_mib or round(gpu.torch_total_bytes / 2**20)), presets) is gpu


def test_a_named_card_asks_no_driver() -> None:
    assert answer("fit", "--params", "1e9", "--gpus", "8", "--gpu", "t4")["request"]["gpu"] == ["t4"]
