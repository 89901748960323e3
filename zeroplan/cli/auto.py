"""`--gpus auto` and `--gpu auto`: what the launcher and nvidia-smi say, noted on stderr."""

import os
from functools import cache

import click

from zeroplan.core.hardware import Node
from zeroplan.core.question import Card
from zeroplan.errors import one_line
from zeroplan.formats.launcher import counted_gpus
from zeroplan.formats.nvidia_smi import gpu_of, listed_gpus
from zeroplan.formats.presets import Presets

AUTO = "auto"
VISIBLE = "CUDA_VISIBLE_DEVICES"


def auto_gpus() -> int:
    """The job's GPUs by its launcher, else those of this machine; raises InputError where neither says it."""
    found = counted_gpus(os.environ)
    if found:
        count, by = found
    elif os.environ.get(VISIBLE):
        count, by = len(os.environ[VISIBLE].split(",")), VISIBLE
    else:
        count, by = len(listed_gpus("--gpus auto", "Give the number: --gpus 64.")), "nvidia-smi, of this machine"
    _note(f"--gpus auto is {count}, by {by}.")
    return count


def auto_cards(presets: Presets, node: Node | None) -> list[Card]:
    """A card for each kind of GPU of this machine; raises InputError where nvidia-smi does not say it."""
    cards = {}
    for listed in dict.fromkeys(listed_gpus("--gpu auto", "Name the GPU: --gpu h100, or --memory 80GiB.")):
        gpu = gpu_of(listed, presets)
        known = gpu.usable_bytes_stated is None
        taken = gpu.name if known else "a card of no preset: its total less the driver's share and a context"
        _note(f"--gpu auto is {taken}, by nvidia-smi ({one_line(listed.name)[:60]}, {listed.memory_mib} MiB).")
        cards[listed] = presets.card(gpu) if node is None and known else Card(gpu=gpu, node=node)
    return list(cards.values())


@cache
def _note(text: str) -> None:
    """Say it, once a process: a command may ask more than once."""
    click.echo(f"zeroplan: {text}", err=True)
