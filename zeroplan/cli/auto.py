"""`--gpus auto` and `--gpu auto`: what the launcher and nvidia-smi say, noted on stderr."""

import os
from functools import cache

import click

from zeroplan.core.hardware import Node
from zeroplan.core.question import Card
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.launcher import HINT, counted_gpus
from zeroplan.formats.nvidia_smi import count_gpus, gpu_of, listed_gpus
from zeroplan.formats.presets import Presets

VISIBLE = "CUDA_VISIBLE_DEVICES"
NONE = "NoDevFiles"
"""What schedulers write where there is no device."""


def auto_gpus() -> int:
    """The job's GPUs by its launcher, else those of this machine; raises InputError where neither says it."""
    found = counted_gpus(os.environ)
    if found:
        count, by = found
    elif VISIBLE in os.environ:
        count, by = _visible(os.environ[VISIBLE]), VISIBLE
    else:
        count, by = count_gpus("--gpus auto", HINT), "nvidia-smi, of this machine"
    _note(f"--gpus auto is {count}, by {by}.")
    return count


def _visible(text: str) -> int:
    """The devices that CUDA sees: those before the first that is none."""
    named = [part.strip() for part in text.split(",")]
    count = next((at for at, name in enumerate(named) if not name[:1].isalnum() or name == NONE), len(named))
    if not count:
        raise InputError("--gpus auto", f"{VISIBLE} is {printable(text)}: no GPU is visible.", HINT)
    return count


def auto_cards(presets: Presets, node: Node | None) -> list[Card]:
    """A card for each kind of GPU of this machine; raises InputError where nvidia-smi does not say it."""
    cards = {}
    for listed in dict.fromkeys(listed_gpus("--gpu auto", "Name the GPU: --gpu h100, or --memory 80GiB.")):
        gpu = gpu_of(listed, presets)
        known = gpu.usable_bytes_stated is None
        taken = gpu.name if known else "a card of no preset: its total less the driver's share and a context"
        _note(f"--gpu auto is {taken}, by nvidia-smi ({one_line(listed.name)[:60]}, {listed.memory_mib} MiB).")
        cards[listed] = presets.card(gpu, node=node) if known else Card(gpu=gpu, node=node)
    return list(cards.values())


@cache
def _note(text: str) -> None:
    """Say it, once a process: a command may ask more than once."""
    click.echo(f"zeroplan: {text}", err=True)
