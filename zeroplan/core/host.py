"""What a node has beside its GPUs, and whether what is kept there fits: host memory, disks, and buffers for them."""

from __future__ import annotations

from typing import NamedTuple

from zeroplan.core.ledger import Ledger
from zeroplan.core.meters import Range
from zeroplan.core.moments import MOMENTS
from zeroplan.core.plan import Plan
from zeroplan.core.sharding import largest_tensor_shard

GPU_MEMORY, RAM, NVME, NVME_BUFFER = "GPU memory", "host RAM", "NVMe", "NVMe buffer"
HOST_PERCENT = (100, 125, 150)
"""What a host needs of what tensors take: DeepSpeed's estimators multiply by 1.5 (additional_buffer_factor); 16 bytes
per parameter times 1.25 to 1.5 in public reports (1.5 TB for LLaMA-65B, hiyouga and lm-sys issues; pinned memory is
rounded up to powers of two, pytorch/pytorch aten/src/ATen/core/CachingHostAllocator.h)."""


class Resource(NamedTuple):
    """Something that a node has so much of; bytes per node, or of one buffer."""

    name: str
    needed: Range
    available: int | None
    """None: unknown."""
    element_bytes: int = 1
    """Of what its setting counts."""

    @property
    def over(self) -> int:
        """By how much it is too little, with all that may come on top; 0 where it is unknown."""
        return 0 if self.available is None else self.needed.high - self.available

    @property
    def least_over(self) -> int:
        """By how much it is too little even for the tensors alone."""
        return 0 if self.available is None else self.needed.low - self.available


def resources(plan: Plan, memory: Ledger) -> tuple[Resource, ...]:
    """What the plan needs of each node; empty where everything is on the GPUs."""
    if not plan.scheme.offloads and (plan.workload is None or plan.workload.checkpoints == "gpu"):
        return ()
    node = plan.cluster.node
    found = [Resource(RAM, host_bytes(plan, memory), node.ram_bytes if node else None)]
    disk = memory.peak_of("nvme") * plan.cluster.gpus_per_node
    if disk:
        found.append(Resource(NVME, Range(disk, disk, disk), node.nvme_bytes if node else None))
    return (*found, *_buffers(plan))


def host_bytes(plan: Plan, memory: Ledger) -> Range:
    """Host memory of one node: what its ranks keep there at most at one moment of training, and what comes on top of
    tensors. What is gathered to write a checkpoint of whole weights is apart: DeepSpeed does not by default."""
    most = max(_at(plan, memory, moment) for moment in MOMENTS if moment != "save")
    return Range(*(-(-most * percent // 100) for percent in HOST_PERCENT))


def _at(plan: Plan, memory: Ledger, moment: str) -> int:
    return plan.cluster.gpus_per_node * memory.bytes_at(moment, "cpu")


def load_bytes(plan: Plan) -> Range:
    """Host memory of one node while the weights are read: one copy where one rank reads for all or each reads its part,
    and as many as ranks where each reads all (from_pretrained without zero.Init or a meta device)."""
    copy = plan.params * plan.recipe.bytes_of("parameters")
    return Range(copy, copy, copy * plan.cluster.gpus_per_node)


def _buffers(plan: Plan) -> list[Resource]:
    """DeepSpeed reads a tensor's shard into one buffer, and stops where it does not fit."""
    if plan.scheme.params != "nvme" or "buffer_size" not in plan.framework.limits or not plan.model.known:
        return []
    each = plan.recipe.compute_bytes
    largest = largest_tensor_shard(plan).count * each
    return [Resource(NVME_BUFFER, Range(largest, largest, largest), plan.limit("buffer_size") * each, each)]
