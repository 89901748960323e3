"""How many GPUs a job has, by the variables of its launcher: torchrun or SLURM."""

from collections.abc import Mapping
from typing import NamedTuple

from zeroplan.errors import InputError, printable

WHERE, HINT = "--gpus auto", "Give the number: --gpus 64."
WORLD = "WORLD_SIZE"
TORCHRUN = "TORCHELASTIC_RUN_ID"
"""Set by torchrun beside WORLD_SIZE, which others set for other things (such as nodes)."""
NODES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")


class Counted(NamedTuple):
    """A number of GPUs, and what said it."""

    gpus: int
    by: str


def counted_gpus(environment: Mapping[str, str]) -> Counted | None:
    """The job's GPUs, one rank each; None where no launcher says it.

    torchrun's WORLD_SIZE; else SLURM's GPUs, by the first of its variables that is there (`man sbatch`, output
    environment variables); else its tasks. Raises InputError where they are no numbers, or where a WORLD_SIZE that
    torchrun did not set says another number than SLURM.
    """
    world = Counted(_number(environment, WORLD), WORLD) if environment.get(WORLD) else None
    if world and environment.get(TORCHRUN):
        return world
    slurm = _slurm(environment)
    if world and slurm and world.gpus != slurm.gpus:
        said = f"{WORLD} says {world.gpus}, {slurm.by} {'say' if ' x ' in slurm.by else 'says'} {slurm.gpus}."
        raise InputError(WHERE, said, HINT)
    return world or slurm


def _slurm(environment: Mapping[str, str]) -> Counted | None:
    nodes = next((name for name in NODES if environment.get(name)), NODES[0])
    for name, times in (
        ("SLURM_GPUS", ""),
        ("SLURM_GPUS_PER_NODE", nodes),
        ("SLURM_GPUS_PER_TASK", "SLURM_NTASKS"),
        ("SLURM_GPUS_ON_NODE", nodes),
        ("SLURM_NTASKS", ""),
    ):
        if environment.get(name) and not times:
            return Counted(_number(environment, name), name)
        if environment.get(name) and environment.get(times):
            return Counted(_number(environment, name) * _number(environment, times), f"{name} x {times}")
    return None


def _number(environment: Mapping[str, str], name: str) -> int:
    """The number in a variable: 8, or of several kinds with their names: a100:4,h100:4."""
    total = 0
    for part in environment[name].split(","):
        digits = part.rpartition(":")[2].strip()
        if not digits.isdecimal() or not digits.isascii() or not 0 < int(digits[:9]) < 10**6:
            raise InputError(WHERE, f"{name} is {printable(environment[name])}, which is no number of GPUs.", HINT)
        total += int(digits[:9])
    return total
