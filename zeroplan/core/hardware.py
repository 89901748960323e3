"""GPUs, nodes and the cluster made of them.

Bandwidths are per GPU (or per node, where named so) and one way; memory is per GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zeroplan.core.checks import check_range, check_text
from zeroplan.errors import InputError
from zeroplan.units import GB, GIB

CONTEXT_BYTES = GIB // 2
"""A CUDA context: 0.3 to 0.5 GiB with lazy loading (PyTorch issues 107667, 109888; 481 MiB on A100, torch 2.1)."""
DRIVER_RESERVE_BYTES = 3 * GIB // 4
"""PyTorch's total is below the driver's by 316 to 729 MiB where both were seen (`nvidia-smi -q`, Reserved)."""
MIB = 2**20
GBIT_BYTES = 10**9 / 8
LARGEST_CLUSTER = 10**9
STRICT = {"extra": "forbid", "strict": True}
"""What pydantic does with a user's preset: no unknown field, no guessed type."""

NODE_FIGURES = (
    *("network_gbit_per_s", "price_usd_per_hour"),
    *("ram_gb", "ram_gib", "nvme_gb", "nvme_read_gb_per_s", "nvme_write_gb_per_s"),
)
Busbw = Mapping[str, Mapping[str, float]]
"""GB/s by collective and by exactly how many took part, in the definition of nccl-tests (PERFORMANCE.md)."""


GPU_RANGES = (
    ("memory_mib", 1, 1e8),
    ("torch_total_gib", 0.001, 1e5),
    ("context_mib", 0, 1e8),
    ("usable_bytes_stated", 1, 1e18),
    ("link_gb_per_s", 0.001, 1e6),
    ("pair_link_gb_per_s", 0.001, 1e6),
    ("matmul_tflops", 0.001, 1e6),
    ("host_link_gb_per_s", 0.001, 1e6),
    ("to_host_gb_per_s", 0.001, 1e6),
    ("from_host_gb_per_s", 0.001, 1e6),
)
"""Between which values a figure is possible at all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Gpu:
    """One accelerator as software sees it."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    driver_names: tuple[str, ...] = ()
    """What nvidia-smi calls it."""
    node: str = ""
    """The node preset it usually sits in; empty: none, so no network time."""
    memory_mib: int | None = None
    """The driver's total (nvidia-smi)."""
    torch_total_gib: float | None = None
    """PyTorch's total ("total capacity" in its messages)."""
    torch_derived: bool = False
    """Whether torch_total_gib was worked out, or read off another card of the same driver total."""
    context_mib: int | None = None
    """Measured CUDA context; unset: CONTEXT_BYTES."""
    usable_bytes_stated: int | None = None
    """Usable memory as the user stated it; nothing is taken off."""
    link: str = ""
    link_gb_per_s: float | None = None
    """The fast link to the other GPUs of the node, per direction; unset for PCIe-only cards."""
    pair_link_gb_per_s: float | None = None
    """Per direction to one peer, where a mesh gives each pair its own link."""
    bf16: bool | None = True
    """Whether its matrix units take bfloat16; None: not known."""
    matmul_tflops: float | None = None
    """16-bit matrix products at their peak, dense, 1e12 operations a second."""
    host_link: str = ""
    host_link_gb_per_s: float | None = None
    """To the host's memory, per direction."""
    to_host_gb_per_s: float | None = None
    """Measured copies from the GPU to pinned host memory."""
    from_host_gb_per_s: float | None = None
    """Measured copies from pinned host memory to the GPU."""
    notes: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    busbw_gb_per_s: Busbw = field(default_factory=dict)
    """Measured inside one node, by collective and number of GPUs."""

    def __post_init__(self) -> None:
        check_text(f"gpu {self.name}, title", self.title)
        if self.usable_bytes_stated is None and self.memory_mib is None and self.torch_total_gib is None:
            raise InputError(f"gpu {self.name}", "has neither torch_total_gib nor memory_mib.", "Give one of them.")
        for key, least, most in GPU_RANGES:
            value = getattr(self, key)
            if value is not None:
                check_range(f"gpu {self.name}, {key}", value, least, most)
        if self.torch_total_gib and self.memory_mib and self.torch_total_bytes > self.memory_mib * MIB:
            raise InputError(f"gpu {self.name}, torch_total_gib", "is more than the driver's total, memory_mib.")
        if self.usable_bytes < 1:
            raise InputError(f"gpu {self.name}", "has less memory than a CUDA context takes.")
        _check_busbw(f"gpu {self.name}", self.busbw_gb_per_s)

    @property
    def context_bytes(self) -> int:
        return CONTEXT_BYTES if self.context_mib is None else self.context_mib * MIB

    @property
    def torch_total_bytes(self) -> int:
        """PyTorch's total in bytes; the driver's total less DRIVER_RESERVE_BYTES where it is not known."""
        if self.torch_total_gib is not None:
            return round(self.torch_total_gib * GIB)
        return (self.memory_mib or 0) * MIB - DRIVER_RESERVE_BYTES

    @property
    def usable_bytes(self) -> int:
        """What tensors can take: PyTorch's total less the CUDA context."""
        if self.usable_bytes_stated is not None:
            return self.usable_bytes_stated
        return self.torch_total_bytes - self.context_bytes

    @property
    def memory_source(self) -> str:
        """Who says how much memory it has."""
        return self.sources.get("memory", "yours, unnamed")

    @property
    def provenance(self) -> str:
        """How the usable memory is known: stated, measured or derived."""
        if self.usable_bytes_stated is not None:
            return "stated"
        return "derived" if self.torch_total_gib is None or self.torch_derived else "measured"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Node:
    """A machine or cloud shape: how many GPUs it has and what joins them, inside and out."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    gpu: str
    gpus_per_node: int
    aliases: tuple[str, ...] = ()
    link: str = ""
    link_gb_per_s: float
    """Between GPUs of the node, per GPU and direction."""
    link_domain_gpus: int = 0
    """GPUs that the fast link joins, where that is more than one node (NVL72); 0: the node."""
    network: str = ""
    network_gbit_per_s: float | None = None
    """All NICs of the node together, per direction, in Gbit/s; unset: unknown."""
    ram_gb: float | None = None
    """Host memory, as its source has it in GB or in GiB; neither set: unknown."""
    ram_gib: float | None = None
    nvme_gb: float | None = None
    """All local disks of the node together; unset: unknown."""
    nvme_read_gb_per_s: float | None = None
    """Measured, all local disks of the node together."""
    nvme_write_gb_per_s: float | None = None
    price_usd_per_hour: float | None = None
    price_where: str = ""
    notes: str = ""
    source: str
    busbw_gb_per_s: Busbw = field(default_factory=dict)
    """Measured across nodes, by collective and number of nodes."""
    busbw_source: str = ""

    def __post_init__(self) -> None:
        check_text(f"node {self.name}, title", self.title)
        check_text(f"node {self.name}, source", self.source)
        check_range(f"node {self.name}, gpus_per_node", self.gpus_per_node, 1, 1024)
        check_range(f"node {self.name}, link_gb_per_s", self.link_gb_per_s, 0.1, 1e6)
        if self.link_domain_gpus:
            check_range(f"node {self.name}, link_domain_gpus", self.link_domain_gpus, self.gpus_per_node, 1e5)
        for key in NODE_FIGURES:
            value = getattr(self, key)
            if value is not None:
                check_range(f"node {self.name}, {key}", value, 0.001, 1e8)
        _check_busbw(f"node {self.name}", self.busbw_gb_per_s)

    @property
    def domain_gpus(self) -> int:
        """GPUs joined by the fast link."""
        return self.link_domain_gpus or self.gpus_per_node

    @property
    def ram_bytes(self) -> int | None:
        if self.ram_gib is not None:
            return round(self.ram_gib * GIB)
        return None if self.ram_gb is None else round(self.ram_gb * GB)

    @property
    def nvme_bytes(self) -> int | None:
        return None if self.nvme_gb is None else round(self.nvme_gb * GB)

    @property
    def network_bytes_per_s(self) -> int | None:
        """All NICs of the node together, per direction; None when unknown."""
        return None if self.network_gbit_per_s is None else round(self.network_gbit_per_s * GBIT_BYTES)

    @property
    def domain_network_bytes_per_s(self) -> int | None:
        """All NICs of one fast-link domain together, per direction; None when unknown."""
        node = self.network_bytes_per_s
        return None if node is None else node * self.domain_gpus // self.gpus_per_node


USUAL_GPUS_PER_NODE = 8
"""DGX, HGX and the cloud's shapes with eight GPUs: 45 of the 55 bundled nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cluster:
    """`gpus` data-parallel GPUs of one kind, in nodes of one kind (None: not chosen or not known)."""

    gpus: int
    gpu: Gpu | None = None
    node: Node | None = None

    def __post_init__(self) -> None:
        check_range("--gpus", self.gpus, 1, LARGEST_CLUSTER)

    @property
    def nodes(self) -> int | None:
        """Nodes that the GPUs fill; None when the node is not known."""
        return None if self.node is None else -(-self.gpus // self.node.gpus_per_node)

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one node that take part; of 8, as most nodes have, where the node is not known."""
        return min(self.gpus, self.node.gpus_per_node if self.node else USUAL_GPUS_PER_NODE)

    @property
    def likely_nodes(self) -> int:
        """Nodes that the GPUs fill, of gpus_per_node each."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def whole_nodes(self) -> int:
        """Nodes that the GPUs fill without rest; 0 where they do not."""
        return self.likely_nodes if self.gpus == self.likely_nodes * self.gpus_per_node else 0

    @property
    def fills_its_nodes(self) -> bool:
        """Whether no GPU of a node is left out."""
        return self.node is not None and self.gpus % self.node.gpus_per_node == 0


def _check_busbw(where: str, busbw: Busbw) -> None:
    for collective, by_count in busbw.items():
        for count, figure in by_count.items():
            if not count.isdecimal() or int(count) < 2:
                raise InputError(f"{where}, busbw_gb_per_s.{collective}", f"{count!r} is not a number of 2 or more.")
            check_range(f"{where}, busbw_gb_per_s.{collective}.{count}", figure, 0.001, 1e6)
