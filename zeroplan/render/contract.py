"""The shape of every JSON answer; `zeroplan schema` prints it as a JSON schema.

Fields may be added under a version, never removed. Bytes and counts are integers.
"""

from typing_extensions import TypedDict  # a dependency of pydantic, which needs this one before Python 3.12


class RequestJson(TypedDict):
    """Everything the answer assumes, defaults included."""

    params: int | None
    """Trained parameters; null where they are the answer, or vary."""
    model: str | None
    """The model by name or path; null where only --params is given."""
    gpus: int | None
    """Data-parallel GPUs; null where their number is the answer, or varies."""
    gpu: list[str]
    """The GPUs planned for, by preset name; `custom` for stated memory."""
    memory_bytes: int | None
    """Usable memory per GPU as stated by the user."""
    node: str | None
    """The node preset asked for; null: each GPU's usual node."""
    stages: list[int]
    recipe: str
    bytes_per_parameter: int
    """All states of the recipe together."""
    framework: str
    grad_accum: int | None
    """Micro-batches per optimizer step; null where they vary."""
    headroom: float
    """The share of usable memory kept free."""
    offload: dict[str, str]
    """What is kept off the GPU, and where: optimizer, gradients, params, activations; cpu or nvme."""
    shard_group: int | None
    """GPUs over which states are divided; null: all."""
    hpz: int | None
    """GPUs over which a second copy of the weights is divided; null: there is none."""
    quantize: list[str]
    """What goes in fewer bits: weights, gradients."""
    settings: dict[str, bool | int]
    """The framework's own settings that differ from its defaults."""
    optimizer_kernel: str
    """fused, foreach or loop."""
    seq_len: int | None
    """Tokens per sequence; null: activations are not asked for, or it varies or is the answer."""
    micro_batch: int | None
    """Sequences per GPU and micro-batch."""
    recompute: str | None
    """none, selective, full or every-K."""
    attention: str | None
    loss: str | None
    fused: list[str]
    experts: str | None
    """packed or listed."""
    compiled: str | None
    """none, model (its blocks) or all (the loss too)."""
    assumed: dict[str, str]
    """What the model's file leaves out and its class fills in."""


class SecondsJson(TypedDict):
    """Time of the traffic of one optimizer step, nothing overlapped; null when unknown."""

    link: float | None
    """A bound: bytes on the wire over the slowest link's rate, per direction."""
    measured: float | None
    """At the collective bandwidth measured on this hardware."""


class TermJson(TypedDict):
    """One thing that occupies memory on each GPU."""

    name: str
    what: str
    bytes: int
    tier: str
    sharded: bool
    phases: list[str]
    """The phases in which it is alive: load, forward, backward, step, save."""
    moments: list[str]
    """The moments at which it is alive; start and logits are of forward; loss, blocks and end of
    backward; norm and update of step."""
    formula: str
    """Of bytes, in terms of inputs."""
    inputs: dict[str, int]
    source: str


class TransferJson(TypedDict):
    """One kind of collective in one optimizer step."""

    collective: str
    what: str
    phase: str
    payload_bytes: int
    """The full array, once."""
    times_per_step: int
    wire_bytes: int
    """Sent by each GPU per step, all times together."""
    gpus: int
    """How many send to each other; 1: a copy between a GPU and its host."""
    stride: int
    """From one of them to the next; 1: neighbours."""
    node_bytes: int | None
    """What leaves each node (each fast-link domain) over its NICs per step; null where the node is not known."""
    psi: float
    """Elements per step in units of the parameters, without (N-1)/N; an all-reduce counts twice."""
    seconds: SecondsJson
    formula: str
    """Of wire_bytes, in terms of inputs."""
    inputs: dict[str, int]
    source: str


class RangeJson(TypedDict):
    """Bytes per GPU."""

    low: int
    expected: int
    high: int


class MetersJson(TypedDict):
    """What four meters show; null where activations are not counted."""

    resident: RangeJson
    """Model states while gradients exist."""
    allocated: RangeJson | None
    """Tensors at the peak, as torch.cuda.max_memory_allocated."""
    reserved: RangeJson | None
    """The allocator's blocks, as torch.cuda.max_memory_reserved."""
    device: RangeJson | None
    """As nvidia-smi: reserved, the CUDA context and NCCL."""


class ResourceJson(TypedDict):
    """Something that each node has so much of beside its GPUs: host RAM, NVMe, or a buffer for it; bytes."""

    name: str
    needed: RangeJson
    available_bytes: int | None
    """Null: unknown."""


class CheckpointJson(TypedDict):
    """A checkpoint on disk; bytes."""

    resume_bytes: int
    """All files to resume from: the states that the framework saves, once."""
    each_rank_bytes: int
    first_rank_bytes: int
    """The first rank's part, and what is not divided."""
    weights_bytes: int
    """One file of whole weights."""
    ranks: int
    """How many write a part: the GPUs of one group."""


class StageJson(TypedDict):
    """One stage on one GPU; the figures are null when the framework does not offer the stage."""

    stage: int
    name: str
    verdict: str
    """fits, tight (only by using the headroom, or if the allocator takes no more than expected), does-not-fit,
    not-offered; not-asked where no GPU is named."""
    resident_bytes: int | None
    """Model states while gradients exist: weights, gradients, optimizer; no buffers or copies."""
    peak_bytes: int | None
    """The largest sum of bytes alive in one phase; the verdict compares it with the budget."""
    peak_phases: list[str]
    phase_bytes: dict[str, int]
    """Bytes alive in each phase; the peak is the largest."""
    moment_bytes: dict[str, int]
    """Bytes alive at each moment: load, start and logits (of forward), loss, blocks and end (of
    backward), norm and update (of step), save."""
    peak_moment: str | None
    meters: MetersJson | None
    """Null where no GPU is named."""
    spare_bytes: int | None
    """Budget less peak, or less the expected reserved memory where activations are counted; negative when over."""
    memory: list[TermJson]
    traffic: list[TransferJson]
    traffic_psi: float | None
    """Elements per step in units of the parameters, without (N-1)/N; 0 on one GPU."""
    wire_bytes: int | None
    """Sent by each GPU per step."""
    ratio_to_data_parallel: float | None
    """Bytes on the wire over those of plain data parallelism; null on one GPU."""
    seconds: SecondsJson
    copies: list[TransferJson]
    """Between a GPU, its host and the host's disks."""
    copy_seconds: SecondsJson
    host: list[ResourceJson]
    """What each node needs beside its GPUs; empty where everything is on them."""
    load_bytes: RangeJson | None
    """Host memory of a node while weights are read: one copy, or as many as ranks where each reads all."""
    short_of: str | None
    """host RAM, NVMe or NVMe buffer, where that and not the GPU's memory keeps it from fitting."""
    checkpoint: CheckpointJson | None


class BindingTermJson(TypedDict):
    """A term alive at the peak."""

    name: str
    bytes: int


class MendJson(TypedDict):
    """One change to the question, and what it saves of what the allocator is expected to take."""

    option: str
    saved_bytes: int
    taken_bytes: int
    """What it takes with this change alone, on a card that has room."""
    price: str
    verdict: str
    """With this change alone."""


class BindingJson(TypedDict):
    """What fills the peak of the recommended stage (else the highest), and what would help where it does not fit."""

    stage: int
    moment: str
    terms: list[BindingTermJson]
    """The three largest, largest first."""
    mends: list[MendJson]
    """The cheapest first; empty where it fits."""
    higher_stage_saves_bytes: int | None
    """What the best higher stage saves of the peak, negative where it needs more; null where there is none."""


class CardJson(TypedDict):
    """Every stage on one GPU."""

    gpu: str
    title: str
    usable_bytes: int
    """What tensors can take: PyTorch's total less the CUDA context and, with activations and several GPUs, NCCL."""
    usable_provenance: str
    """measured, derived (from the driver's total or a like card) or stated."""
    budget_bytes: int
    """Usable memory less the headroom."""
    node: str | None
    bound_by: str | None
    """The link that bounds the traffic; null when unknown."""
    measured_by: str | None
    """Who measured collectives on this hardware; null where nobody did."""
    recommended_stage: int | None
    """The lowest stage that fits; if none does, the lowest that is tight; else null."""
    notes: list[str]
    """Remarks in words, sizes in GB."""
    binding: BindingJson | None
    """Null where activations are not counted."""
    stages: list[StageJson]


class FitJson(TypedDict):
    """The answer of `zeroplan fit`."""

    schema: str
    version: str
    request: RequestJson
    results: list[CardJson]
