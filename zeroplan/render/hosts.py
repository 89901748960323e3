"""What a node needs beside its GPUs, in words: memory, disks, copies, loading."""

from zeroplan.core.efficiency import left_by_copies
from zeroplan.core.estimate import Estimate
from zeroplan.core.host import NVME_BUFFER, Resource, load_bytes
from zeroplan.core.ledger import Traffic
from zeroplan.core.timing import traffic_time
from zeroplan.core.verdict import StageAnswer
from zeroplan.render.labels import listed
from zeroplan.units import counted, format_seconds, format_share, format_size


def host(answer: StageAnswer, unit: str) -> str:
    """What each node needs beside its GPUs, of what it has, and the price in time; empty where all is on the GPUs."""
    if not answer.host or answer.estimate is None:
        return ""
    needs = [resource(each, unit) for each in answer.host if each.name != NVME_BUFFER]
    gpus = answer.estimate.plan.cluster.gpus_per_node
    said = [f"A node of {counted(gpus, 'GPU')} needs {listed(needs)}{_copies(answer.estimate)}."]
    said += [f"Also, {_buffer(each, unit)}." for each in answer.host if each.name == NVME_BUFFER and each.over > 0]
    return " ".join([*said, _loading(answer, unit)])


def _copies(found: Estimate) -> str:
    """What copies take: to and from the host at the speed of the link, and of the disks where somebody measured it."""
    cluster, copies = found.plan.cluster, found.traffic.copies
    disks = tuple(copy for copy in copies if "NVMe" in copy.collective)
    near = traffic_time(Traffic(tuple(copy for copy in copies if copy not in disks)), cluster).link
    said = f"; its copies take at least {format_seconds(near)} s a step" if near else ""
    if disks:
        seconds = traffic_time(Traffic(disks), cluster).measured
        known = "an unknown time" if seconds is None else f"{format_seconds(seconds)} s"
        return f"{said}, and those of its disks {known}" if said else f"; the copies of its disks take {known}"
    left = left_by_copies(found)
    share = f", which leaves {format_share(round(left, 3))} of the peak compute unless they overlap" if left else ""
    return said + share


def _loading(answer: StageAnswer, unit: str) -> str:
    """What the host holds while the weights are read."""
    assert answer.estimate is not None
    plan = answer.estimate.plan
    least, _, most = (format_size(size, unit) for size in load_bytes(plan))
    ranks = plan.cluster.gpus_per_node
    each = f", {most} where each of the {ranks} ranks reads the whole model" if ranks > 1 else ""
    return f"Reading the weights takes {least} {unit} of host memory{each}."


def resource(found: Resource, unit: str) -> str:
    """A range of what is needed, of what there is."""
    low, _, high = (format_size(size, unit) for size in found.needed)
    span = low if low == high else f"{low} to {high}"
    if found.available is None:
        return f"{span} {unit} {found.name} (of how much is unknown)"
    return f"{span} of {format_size(found.available, unit)} {unit} {found.name}"


def short_of(found: Resource, unit: str) -> str:
    """What is too little, of which there is how much."""
    return _buffer(found, unit) if found.name == NVME_BUFFER else f"a node needs {resource(found, unit)}"


def _buffer(found: Resource, unit: str) -> str:
    """A rank's largest shard of a tensor, and the buffer that it is read into."""
    shard, buffer = format_size(found.needed.high, unit), format_size(found.available or 0, unit)
    mend = f"--set buffer_size={found.needed.high // found.element_bytes}"
    return f"a rank's shard of the largest tensor is {shard} {unit} and its NVMe buffer {buffer} ({mend})"
