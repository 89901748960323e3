"""Whole commands against files reviewed by eye; `pytest --rewrite-goldens` writes them anew."""

from pathlib import Path

import pytest

from tests.command import run

FOLDER = Path(__file__).parent
COMMANDS = {
    "fit": "fit --params 7.5e9 --gpus 64",
    "fit-accumulating": "fit --params 7.5e9 --gpus 64 --grad-accum 8",
    "fit-deepspeed": "fit --params 7.5e9 --gpus 64 --framework deepspeed",
    "fit-fsdp2": "fit --params 7.5e9 --gpus 64 --framework fsdp2",
    "fit-megatron-gib": "fit --params 7.5e9 --gpus 64 --framework megatron --unit GiB",
    "fit-one-gpu": "fit --params 1e9 --gpus 1",
    "fit-card": "fit --params 7.5e9 --gpus 64 --gpu v100-32gb",
    "fit-card-deepspeed": "fit --params 7.5e9 --gpus 64 --gpu v100-32gb --framework deepspeed",
    "fit-card-measured": "fit --params 1.5e9 --gpus 8 --gpu h100",
    "fit-card-own": "fit --params 13e9 --gpus 4 --memory 44.35GiB --stage 2 --stage 3",
    "fit-card-nothing-fits": "fit --params 1e15 --gpus 64 --gpu h100",
    "fit-card-markdown": "fit --params 7.5e9 --gpus 64 --gpu h100 --format markdown",
    "fit-json": "fit --params 7.5e9 --gpus 64 --gpu a100-80gb --stage 3 --format json",
    "fit-csv": "fit --params 7.5e9 --gpus 64 --format csv",
    "compare": "compare --params 70e9 --gpus 512 --sort price",
    "compare-few": "compare --params 7e9 --gpus 8 --gpu h100 --gpu a100-80gb --gpu rtx-4090",
    "sweep": "sweep --params 7.5e9 --over gpus=1,4,16,64,256,1024",
    "sweep-card": "sweep --params 7.5e9 --gpus 64 --over grad-accum=1,8 --gpu v100-32gb --framework deepspeed",
    "solve-max-params": "solve max-params --gpus 64",
    "solve-min-gpus": "solve min-gpus --params 70e9 --gpu h100 --framework deepspeed",
    "explain-plan": "explain --params 7.5e9 --gpus 64 --stage 2 --framework deepspeed",
    "explain-term": "explain --params 7.5e9 --gpus 64 --stage 2 momentum",
    "explain-word": "explain zero-2",
    "explain-words": "explain",
    "presets": "presets",
    "presets-gpu": "presets gpu",
    "presets-one": "presets gpu h100",
    "presets-framework": "presets framework megatron",
    "presets-model": "presets model mixtral-8x7b",
    "presets-models": "presets model",
    "presets-loss": "presets loss",
    "fit-model-states": "fit --model mixtral-8x7b --gpus 16 --gpu h100",
    "fit-model": "fit --model llama-3.1-8b --gpus 8 --gpu h100 --seq-len 8192 --framework fsdp2 --recompute selective",
    "fit-model-cards": "fit --model llama-3.1-8b --gpus 8 --seq-len 4096 --recompute full --framework deepspeed",
    "fit-model-mends": "fit --model qwen2.5-7b --gpus 8 --gpu h100 --seq-len 8192 --micro-batch 2 --framework fsdp1",
    "fit-model-unmodelled": "fit --model flan-t5-xxl --gpus 4 --gpu a40 --seq-len 512",
    "solve-max-micro-batch": "solve max-micro-batch --model llama-3.1-8b --gpus 8 --seq-len 4096 --framework fsdp2",
    "solve-max-seq-len": "solve max-seq-len --model gpt2 --gpus 1 --gpu t4,h100",
    "sweep-seq-len": "sweep --model llama-3.1-8b --gpus 8 --over seq-len=2048,8192 --framework fsdp2 --gpu h100",
    "explain-activations": "explain --model llama-3.1-8b --gpus 8 --stage 3 --seq-len 4096 activations",
    "help-all": "fit --help-all",
    "bad-model": "fit --model lama-3.1-8b --gpus 8 --seq-len 0 --recompute half",
    "bare": "",
    "help": "--help",
    "help-fit": "fit --help",
    "bad-fit": "fit",
    "bad-names": "fit --params x --gpus a100 --gpu a1000 --headroom 10",
    "bad-command": "fti",
    "schema-fit": "schema fit",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    ran = run(*COMMANDS[name].split())
    now = f"$ zeroplan {COMMANDS[name]}\n# exit status {ran.status}\n{ran.stdout}"
    if ran.stderr:
        now += f"# stderr\n{ran.stderr}"
    path = FOLDER / f"{name}.txt"
    if request.config.getoption("--rewrite-goldens"):
        path.write_text(now, "utf-8")
    assert path.read_text("utf-8") == now


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(COMMANDS)
