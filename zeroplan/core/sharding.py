"""What divides what: the only place that divides by a number of GPUs.

Shards round up, as frameworks pad (DeepSpeed pads flat groups, FSDP1 flat parameters).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from zeroplan.core.plan import Plan
from zeroplan.core.tensors import largest_share

MOST_TENSORS = 100_000
"""Of a model whose tensors are laid on slices one by one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Elements:
    """A count of elements with the formula it came from and that formula's inputs."""

    count: int
    formula: str
    inputs: Mapping[str, int]

    def over(self, group: Group) -> Elements:
        """The part of one GPU of the group, rounded up."""
        inputs = {**self.inputs, group.name: group.gpus}
        return Elements(-(-self.count // group.gpus), f"ceil({self.formula} / {group.name})", inputs)


def whole(params: int) -> Elements:
    """All parameters of the model."""
    return Elements(params, "params", {"params": params})


def shard(params: int, gpus: int) -> Elements:
    """One GPU's part of the parameters, rounded up."""
    return Elements(params, "params", {"params": params}).over(Group("gpus", gpus))


class Group(NamedTuple):
    """GPUs that send to each other."""

    name: str
    """What a formula calls their number."""
    gpus: int
    stride: int = 1
    """From one of them to the next; 1: neighbours."""


def group_of(plan: Plan, over: str) -> Group:
    """A group of GPUs, one of rules.GROUPS."""
    scheme, gpus, per_node = plan.scheme, plan.gpus, plan.cluster.gpus_per_node
    everyone, shards = Group("gpus", gpus), scheme.shard_group or gpus
    dividing = Group("shard_group", shards) if scheme.shard_group else everyone
    groups = {
        "all": everyone,
        "shard": dividing,
        "replicas": Group("replicas", gpus // shards, stride=shards),
        "gather": Group("hpz", scheme.hpz) if scheme.hpz else dividing,
        "node": Group("gpus_per_node", per_node),
        "across": Group("nodes", plan.cluster.likely_nodes, stride=per_node),
    }
    return groups[over]


def divides(gpus: int, whole_gpus: int) -> bool:
    """Whether groups of so many GPUs fill a larger one."""
    return whole_gpus % gpus == 0


def shard_of(plan: Plan) -> Elements:
    """One GPU's part of the parameters under a plan."""
    return whole(plan.params).over(group_of(plan, "shard"))


def largest_tensor_shard(plan: Plan) -> Elements:
    """One GPU's part of the largest tensor, experts packed as they are, or as transformers 5 packs them."""
    largest = plan.model.largest_tensor(plan.workload is None or plan.workload.packed_experts)
    return Elements(largest, "largest_tensor", {"largest_tensor": largest}).over(group_of(plan, "shard"))


def halved(found: Elements) -> Elements:
    """Bytes of so many elements of four bits."""
    return Elements(-(-found.count // 2), f"ceil(({found.formula}) / 2)", found.inputs)


def in_eight_bits(found: Elements, group_size: int) -> Elements:
    """Bytes of so many elements of eight bits, and of a 4-byte scale for each group of them."""
    inner = found.formula if found.formula.isidentifier() else f"({found.formula})"
    return Elements(
        found.count + 4 * -(-found.count // group_size),
        f"({inner} + 4 * ceil({inner} / quantize_group_size))",
        {**found.inputs, "quantize_group_size": group_size},
    )


def ring_share(payload: Elements, group: Group) -> Elements:
    """What one GPU of a group sends in one pass of a ring: (N-1)/N of the payload, rounded up to whole elements.

    So it is in an all-to-all: each GPU sends all parts but its own. Source: nccl-tests doc/PERFORMANCE.md.
    """
    inner = payload.formula if payload.formula.isidentifier() else f"({payload.formula})"
    return Elements(
        -(-payload.count * (group.gpus - 1) // group.gpus),
        f"ceil({inner} * ({group.name} - 1) / {group.name})",
        {**payload.inputs, group.name: group.gpus},
    )


def tensor_share(plan: Plan, packed: bool) -> int:
    """The largest share where whole tensors, the largest first, go to the rank that has least so far."""
    tensors, largest = plan.model.tensor_count(packed), plan.model.largest_tensor(packed)
    if plan.gpus >= tensors:
        return largest
    if tensors > MOST_TENSORS:  # no rank is further above the even share than one tensor
        return largest + plan.params // plan.gpus
    return largest_share(plan.model, plan.gpus, packed)
