"""How long the traffic takes: a bound from the links, and the figure at measured collective bandwidth."""

from typing import NamedTuple

from zeroplan.core.hardware import Cluster, Gpu, Node
from zeroplan.core.ledger import Traffic, Transfer
from zeroplan.units import GB, format_rate


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
    """Time of all transfers, one after the other; unknown when one of them is."""
    times = [transfer_time(transfer, cluster) for transfer in moved.transfers]
    return Time(link=_total([t.link for t in times]), measured=_total([t.measured for t in times]))


def transfer_time(transfer: Transfer, cluster: Cluster) -> Time:
    """Time of one transfer alone."""
    bound = link_bound(cluster)
    busbw = measured_busbw(transfer.collective, cluster)
    return Time(
        link=transfer.wire_bytes / bound.bytes_per_s if bound else None,
        measured=transfer.wire_bytes / (busbw * GB) if busbw else None,
    )


def link_bound(cluster: Cluster) -> Bandwidth | None:
    """What bounds a ring over all GPUs; None when the node is not known.

    Inside one fast-link domain the GPU's link; beyond it the smaller of that and all NICs of the
    domain together, since parallel rings cross its edge at once (NCCL; measured at 0.91 to 0.97
    of a node's NIC total on four nodes and more).
    """
    node, gpu = cluster.node, cluster.gpu
    if node is None or gpu is None or cluster.gpus == 1:
        return None
    link = _gpu_link(gpu, node, min(cluster.gpus, node.domain_gpus))
    if cluster.gpus <= node.domain_gpus:
        return link
    network = node.domain_network_bytes_per_s
    if network is None:
        return None
    if network >= link.bytes_per_s:
        return link
    what = f"{format_rate(network)} of NICs for {node.domain_gpus} GPUs (node {node.name})"
    return Bandwidth(bytes_per_s=network, what=what)


def measured_busbw(collective: str, cluster: Cluster) -> float | None:
    """Measured bus bandwidth in GB/s of this collective over so many GPUs or full nodes; None: nobody measured."""
    if cluster.node is None or cluster.gpu is None:
        return None
    if cluster.gpus <= cluster.node.domain_gpus:
        return cluster.gpu.busbw_gb_per_s.get(collective, {}).get(str(cluster.gpus))
    if not cluster.fills_its_nodes:
        return None
    return cluster.node.busbw_gb_per_s.get(collective, {}).get(str(cluster.nodes))


def measured_by(cluster: Cluster) -> str:
    """Who measured collectives on this hardware; empty where nobody did."""
    if cluster.node is None or cluster.gpu is None:
        return ""
    if cluster.gpus <= cluster.node.domain_gpus:
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


def _total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
