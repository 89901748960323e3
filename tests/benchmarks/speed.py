"""How long the commands take, in CPU time against `python -c pass`; prints ratios, asserts nothing.

Run: python -m tests.benchmarks.speed
"""

import os
import resource
import subprocess
import sys
import time

from zeroplan.core.estimate import estimate
from zeroplan.core.model import Model
from zeroplan.core.question import Question
from zeroplan.core.workload import Workload
from zeroplan.formats.presets import Presets
from zeroplan.units import Share

RUNS = 15
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As installed: the first run compiles, the others read what it compiled."""
FIT = ["-m", "zeroplan", "fit", "--params", "7.5e9", "--gpus", "64"]
MODEL = [*FIT[:3], "--model", "llama-3.1-70b", "--gpus", "64", "--seq-len", "8192", "--framework", "fsdp2"]
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import click": ["-c", "import click"],
    "zeroplan --version": ["-m", "zeroplan", "--version"],
    "fit --format json": [*FIT, "--format", "json"],
    "fit (table)": FIT,
    "fit, one GPU": [*FIT, "--gpu", "a100-80gb"],
    "fit --model, json": [*MODEL, "--format", "json"],
    "fit --model, one GPU": [*MODEL, "--gpu", "h100"],
    "compare": ["-m", "zeroplan", "compare", "--params", "70e9", "--gpus", "512", "--format", "json"],
    "solve max-params": ["-m", "zeroplan", "solve", "max-params", "--gpus", "64", "--format", "json"],
}


def cpu_seconds(args: list[str]) -> float:
    """User and system seconds of one run of the interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], stdout=subprocess.DEVNULL, env=COMPILED, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def medians() -> dict[str, float]:
    """The median CPU seconds of each command; the commands take turns, so that drift hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS):
        for name, args in COMMANDS.items():
            times[name].append(cpu_seconds(args))
    return {name: sorted(found)[RUNS // 2] for name, found in times.items()}


def estimates_per_cpu_second() -> float:
    """Stage estimates, both ledgers and the time, per CPU second of this process."""
    presets = Presets()
    card = presets.card(presets.gpu("h100"))
    question = Question(
        model=Model(params=7_500_000_000),
        gpus=64,
        recipe=presets.recipe("zero-adam"),
        framework=presets.framework("zero"),
        cards=(card,),
        headroom=Share(1, 10),
    )
    plans = [question.plan(card, stage) for stage in question.stages]
    start, count = time.process_time(), 0
    while (spent := time.process_time() - start) < 1:
        for plan in plans:
            estimate(plan)
        count += len(plans)
    return count / spent


def whole_estimate_seconds() -> float:
    """CPU seconds of one stage of a 60-layer model with its activations, on average."""
    presets = Presets()
    framework = presets.framework("deepspeed")
    card = presets.card(presets.gpu("h100"))
    question = Question(
        model=presets.model("llama-30b").model,
        gpus=64,
        recipe=presets.recipe(framework.default_recipe),
        framework=framework,
        cards=(card,),
        headroom=Share(0, 1),
        workload=Workload(seq_len=4096, loss=presets.loss(framework.default_loss)),
    )
    plans = [question.plan(card, stage) for stage in question.stages]
    rounds = 100
    start = time.process_time()
    for _ in range(rounds):
        for plan in plans:
            estimate(plan)
    return (time.process_time() - start) / (rounds * len(plans))


def main() -> None:
    found = medians()
    bare = found["python -c pass"]
    for name, seconds in found.items():
        print(f"{name:<22} {seconds * 1000:7.1f} ms CPU  {seconds / bare:5.1f}x python -c pass")
    print(f"stage estimates per CPU second: {estimates_per_cpu_second():,.0f}")
    whole = whole_estimate_seconds()
    print(f"one stage of a 60-layer model, activations and all: {whole * 1000:.2f} ms, 1/{bare / whole:.0f} of it")


if __name__ == "__main__":
    main()
