"""How long the traffic takes: a bound from the links, and the figure at measured collective bandwidth."""

from collections.abc import Iterable
from typing import NamedTuple

from zeroplan.core.hardware import Cluster, Gpu, Node
from zeroplan.core.ledger import Traffic, Transfer
from zeroplan.core.rules import COPIES
from zeroplan.core.sharding import divides
from zeroplan.units import GB, format_rate

STRADDLING = 2
"""Groups that can cross one edge of a domain which their size does not divide: one at each end."""


class Bandwidth(NamedTuple):
    """What bounds a ring over the cluster: bytes per second and GPU, one way, and what it is."""

    bytes_per_s: int
    what: str


class Time(NamedTuple):
    """Seconds of one optimizer step's traffic, nothing overlapped; None where unknown."""

    link: float | None
    """No ring is faster: bytes on the wire over the slowest link's rate, one way. In-switch reduction can be."""
    measured: float | None
    """At the collective bandwidth measured on this hardware."""


def traffic_time(moved: Traffic, cluster: Cluster) -> Time:
    """Time of all transfers between GPUs, one after the other; unknown when one of them is."""
    return _together(transfer_time(transfer, cluster) for transfer in moved.transfers)


class Split(NamedTuple):
    """The transfers of a step by where they go."""

    inside: Traffic
    """Between GPUs of one fast-link domain."""
    across: Traffic
    across_bytes: int
    """What leaves each domain over its NICs."""


def split(moved: Traffic, cluster: Cluster) -> Split | None:
    """The transfers inside nodes and those across them; None where the node is not known."""
    if cluster.node is None:
        return None
    leaving = [(transfer, node_bytes(transfer, cluster) or 0) for transfer in moved.transfers]
    return Split(
        inside=Traffic(tuple(transfer for transfer, size in leaving if not size)),
        across=Traffic(tuple(transfer for transfer, size in leaving if size)),
        across_bytes=sum(size for _, size in leaving),
    )


def copy_time(moved: Traffic, cluster: Cluster) -> Time:
    """Time of all copies between GPU, host and disks, one after the other; unknown when one of them is."""
    return _together(transfer_time(copy, cluster) for copy in moved.copies)


def transfer_time(transfer: Transfer, cluster: Cluster) -> Time:
    """Time of one transfer or copy alone."""
    if transfer.collective in COPIES:
        return _copy_time(transfer, cluster)
    bound = link_bound(cluster, transfer.gpus, transfer.stride)
    busbw = measured_busbw(transfer.collective, cluster, transfer.gpus, transfer.stride)
    return Time(
        link=transfer.wire_bytes / bound.bytes_per_s if bound else None,
        measured=transfer.wire_bytes / (busbw * GB) if busbw else None,
    )


def _copy_time(copy: Transfer, cluster: Cluster) -> Time:
    """Over the GPU's own link to its host; disks are shared by the GPUs of a node."""
    gpu, node = cluster.gpu, cluster.node
    rates: dict[str, tuple[float | None, float | None]] = {
        "copy to CPU": (gpu.host_link_gb_per_s, gpu.to_host_gb_per_s) if gpu else (None, None),
        "copy to GPU": (gpu.host_link_gb_per_s, gpu.from_host_gb_per_s) if gpu else (None, None),
        "write to NVMe": (None, node.nvme_write_gb_per_s if node else None),
        "read from NVMe": (None, node.nvme_read_gb_per_s if node else None),
    }
    size = copy.wire_bytes * (cluster.gpus_per_node if "NVMe" in copy.collective else 1)
    link, measured = (size / (rate * GB) if rate else None for rate in rates[copy.collective])
    return Time(link=link, measured=measured)


def rings_across(cluster: Cluster, gpus: int, stride: int = 1) -> int:
    """How many rings of groups of so many GPUs cross the edge of each fast-link domain at once; 0: they stay inside.

    GPUs that divide states are neighbours; those that hold the same part are `stride` apart.
    """
    assert cluster.node is not None  # the caller checked
    domain = cluster.node.domain_gpus
    domains = -(-cluster.gpus // domain)
    if domains == 1:
        return 0
    if stride > 1:
        return min(stride, domain)
    if gpus <= domain and divides(gpus, domain):
        return 0
    return 1 if gpus == cluster.gpus or domains == 2 or divides(domain, gpus) else STRADDLING


def link_bound(cluster: Cluster, gpus: int = 0, stride: int = 1) -> Bandwidth | None:
    """What bounds rings over groups of so many GPUs, 0: all; None when the node is not known.

    Inside one fast-link domain the GPU's link; beyond it the smaller of that and the group's part of
    all NICs of the domain together, since parallel rings cross its edge at once (NCCL; measured at
    0.91 to 0.97 of a node's NIC total on four nodes and more).
    """
    node, gpu = cluster.node, cluster.gpu
    gpus = gpus or cluster.gpus
    if node is None or gpu is None or gpus == 1:
        return None
    link = _gpu_link(gpu, node, min(gpus, node.domain_gpus))
    rings = rings_across(cluster, gpus, stride)
    if not rings:
        return link
    network = node.domain_network_bytes_per_s
    if network is None:
        return None
    if network >= link.bytes_per_s * rings:
        return link
    whom = f"{node.domain_gpus} GPUs" if rings == 1 else f"{rings} groups"
    what = f"{format_rate(network)} of NICs for {whom} (node {node.name})"
    return Bandwidth(bytes_per_s=network // rings, what=what)


def node_bytes(transfer: Transfer, cluster: Cluster) -> int | None:
    """What leaves each fast-link domain over its NICs in one step; None where the node is not known."""
    if cluster.node is None:
        return None
    return rings_across(cluster, transfer.gpus, transfer.stride) * transfer.wire_bytes


def measured_busbw(collective: str, cluster: Cluster, gpus: int = 0, stride: int = 1) -> float | None:
    """Measured bus bandwidth in GB/s of this collective over so many GPUs or full nodes; None: nobody measured.

    Of groups inside a domain it is known where they are whole domains.
    """
    gpus = gpus or cluster.gpus
    if cluster.node is None or cluster.gpu is None or stride > 1:
        return None
    if gpus <= cluster.node.domain_gpus:
        alone = gpus in (cluster.gpus, cluster.node.domain_gpus)
        return cluster.gpu.busbw_gb_per_s.get(collective, {}).get(str(gpus)) if alone else None
    if gpus < cluster.gpus or not cluster.fills_its_nodes:
        return None
    return cluster.node.busbw_gb_per_s.get(collective, {}).get(str(cluster.nodes))


def measured_by(cluster: Cluster, gpus: int = 0) -> str:
    """Who measured collectives over so many GPUs, 0: all, on this hardware; empty where nobody did."""
    if cluster.node is None or cluster.gpu is None:
        return ""
    if (gpus or cluster.gpus) <= cluster.node.domain_gpus:
        return cluster.gpu.sources.get("busbw", "")
    return cluster.node.busbw_source


def _gpu_link(gpu: Gpu, node: Node, gpus: int) -> Bandwidth:
    """The link between `gpus` GPUs of a node; in a mesh each pair has its own link only."""
    rate, what = min(gpu.link_gb_per_s or node.link_gb_per_s, node.link_gb_per_s), node.link
    if gpu.pair_link_gb_per_s is not None and gpu.pair_link_gb_per_s * (gpus - 1) < rate:
        rate, what = gpu.pair_link_gb_per_s * (gpus - 1), f"{gpus - 1} of the mesh's links"
    bytes_per_s = round(rate * GB)
    return Bandwidth(
        bytes_per_s=bytes_per_s, what=f"the {format_rate(bytes_per_s)} link of each GPU ({what}, node {node.name})"
    )


def _together(times: Iterable[Time]) -> Time:
    known = list(times)
    return Time(link=_total([time.link for time in known]), measured=_total([time.measured for time in known]))


def _total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
