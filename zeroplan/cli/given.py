"""What the options are typed as; imported for its type alone."""

from typing import TypedDict


class Given(TypedDict):
    """The shared options as typed."""

    plan: str | None
    model: str | None
    params: str | None
    seq_len: str | None
    micro_batch: str
    recompute: str
    gpus: str | None
    stage: tuple[str, ...]
    gpu: tuple[str, ...]
    memory: str | None
    node: str | None
    presets: str | None
    recipe: str | None
    optimizer_bytes: str | None
    framework: str
    grad_accum: str
    headroom: str | None
    attention: str
    loss: str | None
    fused: str | None
    optimizer_kernel: str
    offload: tuple[str, ...]
    shard_group: str | None
    hpz: str | None
    quantize: tuple[str, ...]
    set: tuple[str, ...]
    experts: str
    compiled: str
    unit: str
    format: str
