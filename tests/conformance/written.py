"""Configurations that `zeroplan config` writes, read by DeepSpeed's and accelerate's own code.

`python -m tests.conformance.written`; raises where one is refused or read as something else.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.command import run
from tests.written_plans import ACCELERATE, DEEPSPEED


def deepspeed_reads(text: str) -> Any:
    """DeepSpeed's record of a file."""
    from deepspeed.runtime.config import DeepSpeedConfig

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "ds_config.json")
        file.write_text(text, "utf-8")
        return DeepSpeedConfig(str(file))


def accelerate_reads(text: str) -> dict[str, str]:
    """The environment that `accelerate launch` makes of a file."""
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "accelerate.yaml")
        file.write_text(text, "utf-8")
        asked = ["--config_file", str(file), "--main_process_ip", "localhost", "train.py"]
        given: argparse.Namespace
        given, _, _ = _validate_launch_command(launch_command_parser().parse_args(asked))
    if given.use_deepspeed:
        given.deepspeed_multinode_launcher = "standard"
        given.deepspeed_fields_from_accelerate_config = ""
        return dict(prepare_deepspeed_cmd_env(given)[1])
    return dict(prepare_multi_gpu_env(given))


def fsdp_plugin(environment: dict[str, str]) -> Any:
    """accelerate's FSDP plugin in such an environment, but for what needs a GPU."""
    from accelerate.utils import FullyShardedDataParallelPlugin

    no_gpu = {"FSDP_CPU_RAM_EFFICIENT_LOADING": "false", "FSDP_SYNC_MODULE_STATES": "false"}
    os.environ.update({**environment, **no_gpu})
    return FullyShardedDataParallelPlugin()


def main() -> None:
    """Every plan, written and read."""
    for asked, zero, bf16 in DEEPSPEED:
        read = deepspeed_reads(run("config", "deepspeed", *asked).stdout)
        found = {name: getattr(read.zero_config, name) for name in zero}
        assert (found, read.bfloat16_config.enabled) == (zero, bf16), (asked, found)
    for asked, expected in ACCELERATE:
        environment = accelerate_reads(run("config", *asked).stdout)
        found = {name: environment.get(name) for name in expected}
        assert found == expected, (asked, found)
        if environment.get("ACCELERATE_USE_FSDP") == "true":
            plugin = fsdp_plugin(environment)
            assert plugin.fsdp_version == int(environment["FSDP_VERSION"])
    print(f"{len(DEEPSPEED) + len(ACCELERATE)} written configurations are read as they are meant")


if __name__ == "__main__":
    main()
