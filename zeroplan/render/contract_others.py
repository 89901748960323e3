"""The shape of the JSON answers other than fit's, and of all commands together; see contract.py."""

from typing_extensions import TypedDict  # a dependency of pydantic

from zeroplan.render.contract import FitJson, RequestJson, ResourceJson, SecondsJson, StageJson


class MinGpusJson(TypedDict):
    """The fewest GPUs at which a stage fits; null: no number does."""

    stage: int
    gpus: int | None


class ComparisonJson(TypedDict):
    """One GPU of a comparison; stage, spare and time are those of the recommended stage."""

    gpu: str
    title: str
    usable_bytes: int
    budget_bytes: int
    recommended_stage: int | None
    verdict: str
    spare_bytes: int | None
    wire_bytes: int | None
    node: str | None
    """The node that seconds and the price are of: the one asked for, else the cheapest to rent, else the usual one."""
    bound_by: str | None
    seconds: SecondsJson
    node_usd_per_hour: float | None
    """One node; null when no price is known."""
    usd_per_hour: float | None
    """All nodes together; null when no price is known."""
    price_where: str | None
    min_gpus: list[MinGpusJson]


class StrategyJson(TypedDict):
    """One strategy on one GPU."""

    strategy: str
    """As it was asked for."""
    request: RequestJson
    gpu: str
    usable_bytes: int
    budget_bytes: int
    node: str | None
    stage: int
    """The lowest that fits, else the highest; the figures are of it."""
    verdict: str
    taken_bytes: int | None
    """What the allocator is expected to take with activations; else the peak."""
    spare_bytes: int | None
    wire_bytes: int | None
    seconds: SecondsJson
    copy_seconds: SecondsJson
    host: list[ResourceJson]


class CompareJson(TypedDict):
    """The answer of `zeroplan compare`."""

    schema: str
    version: str
    request: RequestJson
    results: list[ComparisonJson] | list[StrategyJson]


class SweepStageJson(TypedDict):
    """One stage at one value; the figures are null when the framework does not offer the stage."""

    stage: int
    resident_bytes: int | None
    peak_bytes: int | None
    taken_bytes: int | None
    """What the allocator is expected to take with activations, on a card that has room; else the peak."""
    traffic_psi: float | None
    wire_bytes: int | None
    ratio_to_data_parallel: float | None
    verdicts: dict[str, str]
    """By GPU named in the question."""


class SweepPointJson(TypedDict):
    """Every stage at one value."""

    value: int
    stages: list[SweepStageJson]


class SweepJson(TypedDict):
    """The answer of `zeroplan sweep`."""

    schema: str
    version: str
    request: RequestJson
    over: str
    results: list[SweepPointJson]


class SolutionJson(TypedDict):
    """One stage on one GPU; the answer is null when there is none."""

    stage: int
    answer: int | None
    tight_answer: int | None
    """What still fits by using the headroom, or if the allocator takes no more than expected."""
    at_limit: bool
    """True: the answer is the most that zeroplan counts to, or that the model has positions for."""
    peak_bytes: int | None
    """At the answer."""
    offload: dict[str, str]
    """What is off the GPU for it."""
    binding: str | None
    """What is too little one step beyond the answer: GPU memory, host RAM, NVMe; null where nothing is."""


class SolvedCardJson(TypedDict):
    """Every offered stage on one GPU."""

    gpu: str
    title: str
    usable_bytes: int
    budget_bytes: int
    stages: list[SolutionJson]


class SolveJson(TypedDict):
    """The answer of `zeroplan solve`."""

    schema: str
    version: str
    request: RequestJson
    solve: str
    """max-params, min-gpus, max-micro-batch or max-seq-len."""
    results: list[SolvedCardJson]


class WordJson(TypedDict):
    """A word of the trade."""

    name: str
    title: str
    text: str
    formula: str
    see: list[str]
    source: str


class ClaimJson(TypedDict):
    """What the framework's own estimator says of this plan."""

    name: str
    bytes: int
    formula: str
    inputs: dict[str, int]
    judgement: str
    source: str


class UsableJson(TypedDict):
    """Where the budget of a GPU comes from."""

    gpu: str
    torch_total_bytes: int | None
    """What PyTorch sees; null for stated memory."""
    context_bytes: int
    nccl_bytes: int
    """Taken off what is usable where activations are counted, on several GPUs."""
    usable_bytes: int
    budget_bytes: int
    provenance: str
    source: str


class ExplainJson(TypedDict):
    """The answer of `zeroplan explain`: the ledgers of one plan, or a word."""

    schema: str
    version: str
    request: RequestJson | None
    term: str | None
    stage: StageJson | None
    usable: list[UsableJson]
    claims: list[ClaimJson]
    words: list[WordJson]


class FindingJson(TypedDict):
    """One thing found in a configuration file."""

    code: str
    """ZP and three digits; `zeroplan explain ZP101` says more."""
    severity: str
    """error, warning or note."""
    file: str
    key: str | None
    """Dotted; null: the file as a whole."""
    line: int | None
    said: str
    mend: str


class CheckVerdictJson(TypedDict):
    """Whether the file's plan fits one card."""

    gpu: str
    verdict: str
    spare_bytes: int | None
    budget_bytes: int


class CheckedJson(TypedDict):
    """One configuration file."""

    file: str
    kind: str
    understood: dict[str, object]
    """The options that ask for the same plan."""
    request: RequestJson | None
    """Null where the command line does not say enough to judge whether it fits."""
    verdicts: list[CheckVerdictJson]
    """One per card; empty where `request` is null."""
    findings: list[FindingJson]
    """The worst first."""


class CheckJson(TypedDict):
    """The answer of `zeroplan check`."""

    schema: str
    version: str
    results: list[CheckedJson]


class MatchJson(TypedDict):
    """Something that the plan allocates, of the size asked for."""

    what: str
    formula: str
    bytes: int
    stages: list[int]


class DiagnosisJson(TypedDict):
    """A CUDA out-of-memory message; sizes as it rounds them, null where it does not say them."""

    requested_bytes: int
    total_bytes: int | None
    free_bytes: int | None
    allocated_bytes: int | None
    reserved_bytes: int | None
    allowed_bytes: int | None
    """A limit that the program set itself."""
    cause: str | None
    """fragmented, limited (by the program), taken (by others, just then) or too-little."""
    messages: int
    matches: list[MatchJson]
    recommended_stage: int | None
    """On the GPU that is named, else on one of the message's size."""


class DiagnoseJson(TypedDict):
    """The answer of `zeroplan diagnose`."""

    schema: str
    version: str
    request: RequestJson | None
    results: list[DiagnosisJson]


class PresetsJson(TypedDict):
    """The answer of `zeroplan presets`: presets by kind, fields as in their TOML files."""

    schema: str
    version: str
    results: dict[str, list[dict[str, object]]]


ANSWERS = {
    "fit": FitJson,
    "check": CheckJson,
    "diagnose": DiagnoseJson,
    "compare": CompareJson,
    "sweep": SweepJson,
    "solve": SolveJson,
    "explain": ExplainJson,
    "presets": PresetsJson,
}
