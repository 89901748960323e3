"""Configurations that `zeroplan config` writes: read back, they are the same plan."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import answer, run
from tests.written_plans import ACCELERATE, DEEPSPEED, LLAMA, PLAIN

WRITTEN = [["deepspeed", *asked] for asked, *_ in DEEPSPEED] + [asked for asked, _ in ACCELERATE]
IN_FILE = ("--framework", "--stage", "--offload", "--shard-group", "--hpz", "--quantize", "--set", "--recipe")
"""What the file says; the rest is asked again beside it."""


def beside(asked: list[str], form: str) -> list[str]:
    """The options that the file does not hold."""
    pairs = zip(asked[::2], asked[1::2], strict=True)
    told = (*IN_FILE, *(("--micro-batch", "--grad-accum") if form == "deepspeed" else ()))
    told = (*told, "--recompute") if "fsdp" in " ".join([form, *asked]) else told
    return [each for pair in pairs if pair[0] not in told for each in pair]


@pytest.mark.parametrize("asked", WRITTEN, ids=" ".join)
def test_read_back_it_is_the_same_plan(asked: list[str], tmp_path: Path) -> None:
    form, *options = asked
    written = run("config", *asked)
    assert written.status == 0, written.stderr
    file = tmp_path / ("plan.json" if form == "deepspeed" else "plan.yaml")
    file.write_text(written.stdout, "utf-8")
    checked = run("check", str(file), *beside(options, form), "--format", "json")
    [found] = json.loads(checked.stdout)["results"]
    assert [each for each in found["findings"] if each["severity"] == "error"] == []
    stage = "--stage", str(found["request"]["stages"][0])
    assert "--stage" not in options or stage[1] == options[options.index("--stage") + 1]
    framework = () if "--framework" in options else ("--framework", found["request"]["framework"])
    always = [part for name, on in found["request"]["settings"].items() if on is True for part in ("--set", name)]
    again = answer(
        "fit",
        *options,
        *(always if found["request"]["framework"] == "fsdp2" else ()),
        *(() if "--stage" in options else stage),
        *framework,
    )
    assert found["request"] == again["request"]
    assert found["verdicts"][0]["verdict"] == again["results"][0]["stages"][0]["verdict"]


def test_nothing_is_written_where_nothing_fits() -> None:
    ran = run("config", "deepspeed", "--params", "7e12", "--gpus", "8", "--gpu", "h100")
    assert (ran.status, ran.stdout) == (1, "")
    assert "nothing fits" in ran.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["deepspeed", *PLAIN, "--framework", "fsdp2"], "the format deepspeed is of deepspeed"),
        (["deepspeed", *PLAIN, "--recipe", "zero-adam"], "zero-adam has no setting"),
        (["deepspeed", *PLAIN, "--gpu", "h100"], "one kind of GPU"),
        (["deepspeed", *PLAIN[:4]], "--gpu: is missing"),
        (["fsdp2", *LLAMA, "--stage", "2", "--set", "keep_gathered=true"], "--set keep_gathered: has no key"),
        (["fsdp2", *LLAMA, "--stage", "3", "--set", "reduce_16bit=false"], "accelerate reduces gradients in 16 bits"),
        (["fsdp2", *LLAMA, "--stage", "3", "--set", "embedding_unit=false"], "makes a unit of the embedding"),
        (["fsdp2", *LLAMA, "--stage", "3", "--hpz", "8"], "is not modelled together with --hpz"),
        (["fsdp2", *PLAIN, "--recipe", "pure-bf16"], "pure-bf16 has no setting"),
        (["accelerate", *PLAIN, "--framework", "megatron"], "cannot ask for megatron"),
        (
            ["accelerate", "--params", "1e9", *PLAIN[2:], "--framework", "ddp", "--stage", "1"],
            "ZeroRedundancyOptimizer",
        ),
        (["accelerate", *PLAIN, "--stage", "3", "--hpz", "8"], "no key for hpZ"),
        (["accelerate", *LLAMA, "--framework", "fsdp1", "--shard-group", "4", "--stage", "3"], "over a machine"),
        (["fsdp2", "--params", "1e9", "--gpus", "12", "--gpu", "h100", "--stage", "3"], "do not fill nodes of 8"),
        (["torchtitan", *PLAIN], "is not one of"),
        ([], "FORMAT"),
    ],
)
def test_what_a_file_cannot_say_is_refused(asked: list[str], said: str) -> None:
    ran = run("config", *asked)
    assert (ran.status, ran.stdout) == (2, "")
    assert said in ran.stderr


def test_what_the_file_does_not_say_is_said_beside_it() -> None:
    ran = run("config", "fsdp2", *LLAMA, "--grad-accum", "4", "--stage", "3")
    assert "grad-accum 4: Accelerator(gradient_accumulation_steps=...)" in ran.stderr
    assert "--machine_rank R --main_process_ip HOST" in ran.stderr
    alone = run("config", "deepspeed", *PLAIN)
    assert "activations, which are not counted" in alone.stderr
    assert "stage 1 under deepspeed fits" in alone.stderr


def test_every_part_of_the_plan_that_the_file_lacks_is_said() -> None:
    more = ["--recompute", "full", "--offload", "activations=cpu", "--optimizer-kernel", "loop", "--compile", "all"]
    ran = run("config", "deepspeed", *LLAMA, *more, "--loss", "chunked", "--attention", "eager", "--fused", "norm")
    for part in ("seq-len 4096", "recompute full", "activations=cpu", "kernel loop", "compile all", "loss chunked"):
        assert part in ran.stderr
    assert "attention eager" in ran.stderr
    assert "fused norm" in ran.stderr


def test_what_is_off_and_on_by_default_is_said() -> None:
    ran = run("config", "deepspeed", *PLAIN, "--stage", "3", "--set", "overlap_comm=false")
    assert "overlap_comm=false: DeepSpeed turns it on at stage 3" in ran.stderr


def test_a_tight_plan_is_said_to_be() -> None:
    asked = ["--params", "17.3e9", "--gpus", "8", "--gpu", "h100", "--stage", "2", "--framework", "deepspeed"]
    found = answer("fit", *asked)["results"][0]["stages"][0]["verdict"]
    ran = run("config", "deepspeed", *asked)
    assert (found, "is tight" in ran.stderr) == ("tight", True)


def test_one_gpu_is_not_several() -> None:
    asked = ["--params", "1e9", "--gpus", "1", "--gpu", "h100", "--framework", "ddp"]
    assert yaml.safe_load(run("config", "accelerate", *asked).stdout)["distributed_type"] == "NO"


def test_disks_have_a_path() -> None:
    asked = ["--params", "7e9", "--gpus", "8", "--node", "dgx-a100-80gb", "--stage", "3", "--offload"]
    plugin = yaml.safe_load(run("config", "accelerate", *asked, "optimizer=nvme").stdout)["deepspeed_config"]
    assert plugin["offload_optimizer_nvme_path"] == "/local_nvme"
    buffer = ["params=cpu", "--set", "buffer_size=1e8"]
    assert "is of offload_param on NVMe" in run("config", "deepspeed", *asked, *buffer).stderr


def test_a_plan_of_another_framework_is_written_with_its_own_recipe(tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    saved.write_text(run("fit", *PLAIN, "--format", "json").stdout, "utf-8")
    ran = run("config", "deepspeed", "--plan", str(saved))
    assert json.loads(ran.stdout)["bf16"] == {"enabled": True}


def test_fsdp_files_are_of_stages_2_and_3() -> None:
    small = ["--params", "1e9", "--gpus", "8", "--gpu", "h100"]
    assert "stage 2 under fsdp2 fits" in run("config", "fsdp2", *small).stderr
    ran = run("config", "fsdp2", *small, "--stage", "0")
    assert (ran.status, "stages 2 and 3" in ran.stderr) == (2, True)


def test_a_card_without_bf16_gets_fp16() -> None:
    asked = ["--params", "1e9", "--gpus", "8", "--gpu", "v100-32gb"]
    assert json.loads(run("config", "deepspeed", *asked).stdout)["fp16"] == {"enabled": True}
    read: dict[str, Any] = yaml.safe_load(run("config", "fsdp2", *asked).stdout)
    assert read["mixed_precision"] == "fp16"
