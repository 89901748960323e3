"""How many GPUs a job has, by what torchrun and SLURM set."""

import pytest

from zeroplan.errors import InputError
from zeroplan.formats.launcher import counted_gpus

NODES = {"SLURM_JOB_NUM_NODES": "4", "SLURM_NNODES": "4"}
COUNTED = [
    ({"WORLD_SIZE": "16"}, 16, "WORLD_SIZE"),
    ({**NODES, "SLURM_GPUS_ON_NODE": "8", "SLURM_NTASKS": "4"}, 32, "SLURM_GPUS_ON_NODE x SLURM_JOB_NUM_NODES"),
    ({**NODES, "SLURM_GPUS_PER_NODE": "a100:8"}, 32, "SLURM_GPUS_PER_NODE x SLURM_JOB_NUM_NODES"),
    ({**NODES, "SLURM_GPUS": "a100:4,h100:4", "SLURM_GPUS_ON_NODE": "2"}, 8, "SLURM_GPUS"),
    ({**NODES, "SLURM_GPUS_PER_TASK": "1", "SLURM_NTASKS": "32"}, 32, "SLURM_GPUS_PER_TASK x SLURM_NTASKS"),
    ({**NODES, "SLURM_NTASKS": "32"}, 32, "SLURM_NTASKS"),
    ({"SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "8"}, 16, "SLURM_GPUS_ON_NODE x SLURM_NNODES"),
    ({"SLURM_GPUS_ON_NODE": "8", "SLURM_NTASKS": "4"}, 4, "SLURM_NTASKS"),
    ({**NODES, "SLURM_NTASKS": "32", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "x"}, 8, "WORLD_SIZE"),
    ({**NODES, "SLURM_NTASKS": "32", "WORLD_SIZE": "32"}, 32, "WORLD_SIZE"),
]


@pytest.mark.parametrize(("environment", "gpus", "by"), COUNTED)
def test_the_variables_that_count_gpus(environment: dict[str, str], gpus: int, by: str) -> None:
    assert counted_gpus(environment) == (gpus, by)


def test_without_a_launcher_nothing_is_known() -> None:
    assert counted_gpus({"WORLD_SIZE": "", **NODES}) is None


@pytest.mark.parametrize("bad", ["", "a100", "0", "-8", "8.5", "9" * 50, "²", "a100:", "8,"])
def test_what_is_no_number_is_refused(bad: str) -> None:
    with pytest.raises(InputError, match="no number of GPUs"):
        counted_gpus({"SLURM_NTASKS": bad or " "})


def test_two_counts_that_differ_are_refused() -> None:
    with pytest.raises(InputError, match="WORLD_SIZE says 4, SLURM_NTASKS says 32"):
        counted_gpus({**NODES, "SLURM_NTASKS": "32", "WORLD_SIZE": "4"})
