"""What zeroplan says of a measured training, beside what was measured; no torch here."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conformance.cases import BUCKET, CONFIG, MATRIX, MICRO_BATCH, SEQ_LEN, Case
from tests.conformance.row import Row
from tests.conformance.worlds import WORLDS
from tests.conformance.worlds import rows as world_rows
from tests.core.kept_rows import DATA, kept
from zeroplan.core.claims import ClaimedBytes, claimed
from zeroplan.core.estimate import Estimate, estimate
from zeroplan.core.hardware import Cluster
from zeroplan.core.model import Model
from zeroplan.core.moments import moments_of
from zeroplan.core.plan import Plan, Strategy
from zeroplan.core.question import Question
from zeroplan.core.scheme import PLAIN, TIERS, Scheme
from zeroplan.core.workload import Workload
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.presets import Presets
from zeroplan.units import Share

MODEL = read_config(CONFIG)
SMALL = 64 * 1024
"""Bytes of a message that is not counted; as meter.py has it, which needs torch."""
STATES = {
    "weights": ("states.parameters",),
    "master": ("states.optimizer.master_weights", "states.optimizer.fp32_copy"),
    "momentum": ("states.optimizer.momentum",),
    "variance": ("states.optimizer.variance",),
    "secondary": ("gathered.secondary",),
    "fp32 gradients": ("states.gradients.fp32",),
    "16-bit copy": ("host.weights_copy",),
    "accumulators": ("host.accumulated", "host.accumulated_overhang"),
    "largest gradient": ("host.largest_gradient",),
    "whole gradients": ("buffers.whole_gradients",),
}
GRADIENTS = ("states.gradients", "states.gradients.16bit", "buffers.gradient_shard", "buffers.slice_overhang")
PHASES = ("forward", "backward", "step")
RESULTS = Path(__file__).parent / "results.json"
SAVED_WITHIN = 0.02
TABLES_WITHIN = 0.04
"""GPT-J keeps rotary tables, which zeroplan leaves out: 3% of models as small as these, 0.3% of the real one."""
ROUNDED = 18
"""Bytes: the estimators round a shard down, zeroplan up."""
PEAK_WITHIN = 0.1
"""Of a peak in so small a model, under gloo, whose reduce-scatter clones its input; large ones: worlds.py."""


def results_rows(found: Mapping[str, Any], presets: Presets) -> Iterator[Row]:
    """Every number of results.json, or of a part of it, that zeroplan can be asked for; what it says is worked out
    anew."""
    for case in MATRIX:
        if case.name in found["trainings"]:
            yield from rows(case, found["trainings"][case.name], presets)
    for world in WORLDS:
        if world.name in found["worlds"]:
            yield from world_rows(world, found["worlds"][world.name], presets)
    for number, measured in found.get("saved", ()):
        name, predicted = saved(number)
        within = round((TABLES_WITHIN if name.startswith("gptj") else SAVED_WITHIN) * measured)
        yield Row(case="kept by one block", what=name, predicted=predicted, measured=measured, within=within)
    for name, measured in found.get("models", ()):
        predicted = presets.model(name).model.params
        yield Row(case="parameters", what=name, predicted=predicted, measured=measured, within=0)
    for (params, gpus, stage, place), measured in found.get("estimators", ()):
        claim = claims(params, gpus, stage, place, presets)[0]
        name = f"{claim.claim.name}, {params:.3g} on {gpus}"
        yield Row(case="estimators", what=name, predicted=claim.bytes, measured=measured, within=ROUNDED)


def saved(number: int) -> tuple[str, int]:
    """A row of what blocks keep: its name and what zeroplan says."""
    place, *row, _ = DATA["rows"][number]
    config = DATA["configs"][place]
    return f"{config['model_type']}, {row[0]}, {row[2]} x {row[3]}", kept(config, *row)


def claims(params: int, gpus: int, stage: int, place: int, presets: Presets) -> list[ClaimedBytes]:
    """What zeroplan says that DeepSpeed's estimators say, of the GPU first: all on it, or some on the CPU."""
    scheme = (PLAIN, Scheme(optimizer="cpu"), Scheme(optimizer="cpu", params="cpu"))[place]
    plan = Plan(
        model=Model(params=params),
        recipe=presets.recipe("deepspeed-16bit"),
        framework=presets.framework("deepspeed"),
        cluster=Cluster(gpus=gpus),
        strategy=Strategy(stage=stage, scheme=scheme),
    )
    return claimed(plan)


def plan_of(case: Case, presets: Presets) -> Estimate:
    """zeroplan's ledgers of a case."""
    framework = presets.framework(case.framework)
    limits = {**framework.limits}
    if case.framework == "deepspeed":
        limits |= {"reduce_bucket_size": BUCKET, "stage3_max_reuse_distance": 0, "stage3_prefetch_bucket_size": 0}
    workload = Workload(
        seq_len=SEQ_LEN,
        micro_batch=MICRO_BATCH,
        recompute=case.recompute,
        loss=presets.loss("fp32"),
        selective=framework.selective,
    )
    question = Question(
        model=MODEL,
        gpus=case.ranks,
        recipe=presets.recipe(case.recipe),
        framework=replace(framework, limits=limits),
        cards=(),
        headroom=Share(0, 1),
        grad_accum=case.grad_accum,
        scheme=Scheme(**case.scheme),
        workload=workload,
    )
    return estimate(question.plan(None, case.stage))


def rows(case: Case, measured: list[Mapping[str, Any]], presets: Presets) -> Iterator[Row]:
    """States to the byte, peaks of phases, and collectives, on the rank that holds most."""
    found = plan_of(case, presets)
    yield from _states(case, found, measured)
    yield from _peaks(case, found, measured)
    yield from _collectives(case, found, measured)


def _states(case: Case, found: Estimate, measured: list[Mapping[str, Any]]) -> Iterator[Row]:
    terms = {term.name: term.bytes for term in found.memory.terms}
    for name, known in STATES.items():
        expected = sum(terms.get(term, 0) for term in known)
        if name in ("momentum", "variance"):
            expected += terms.get("states.optimizer.tensors", 0) // 2
        held = "gradients" if name == "whole gradients" and case.runtime == "fsdp1" and expected else name
        most = max(rank["states"][phase].get(held, 0) for rank in measured for phase in rank["states"])
        if expected or most:
            yield Row(case=case.name, what=name, predicted=expected, measured=most, within=0)
    gradients = sum(term.bytes for term in found.memory.terms if term.name in GRADIENTS and "norm" in term.moments)
    most = max(rank["states"]["backward"]["gradients"] for rank in measured)
    yield Row(case=case.name, what="gradients", predicted=gradients, measured=most, within=0)


def _peaks(case: Case, found: Estimate, measured: list[Mapping[str, Any]]) -> Iterator[Row]:
    for phase in PHASES:
        names = (phase, "micro-batch") if phase == "backward" else (phase,)
        most = max(rank["phases"][name]["peak"] for rank in measured for name in names if name in rank["phases"])
        expected = max(sum(found.memory.bytes_at(moment, tier) for tier in TIERS) for moment in moments_of(phase))
        yield Row(
            case=case.name,
            what=f"peak of {phase}",
            predicted=expected,
            measured=most,
            within=round(PEAK_WITHIN * most) + _torch_step(case, phase) + _gathered_ahead(case, phase),
            why="a small model",
        )


def _gathered_ahead(case: Case, phase: str) -> int:
    """In the forward pass of FSDP three blocks are gathered at once, which zeroplan counts in the backward pass alone,
    where more is held."""
    sharded = case.framework.startswith("fsdp") and case.stage > 0
    return 3 * 2 * MODEL.largest_block if sharded and phase == "forward" else 0


def _torch_step(case: Case, phase: str) -> int:
    """zeroplan counts DeepSpeed's FusedAdam, whose wrapper makes one fp32 copy more than that of torch's, which ran."""
    copies = case.framework == "deepspeed" and case.stage == 0 and case.recipe == "deepspeed-16bit" and phase == "step"
    return 4 * MODEL.params if copies else 0


def _collectives(case: Case, found: Estimate, measured: list[Mapping[str, Any]]) -> Iterator[Row]:
    expected: dict[str, int] = {}
    times: dict[str, int] = {}
    for transfer in found.traffic.transfers:
        sent = transfer.payload_bytes * transfer.times_per_step
        kind = transfer.collective if transfer.gpus == case.ranks else f"{transfer.collective} in {transfer.gpus}"
        expected[kind] = expected.get(kind, 0) + sent
        times[kind] = times.get(kind, 0) + transfer.times_per_step
    each = found.plan.recipe.compute_bytes
    small = sum(each * size for size in MODEL.tensor_sizes() if each * size <= SMALL)
    for kind in sorted({*expected, *measured[0]["collectives"]}):
        if "stage3_prefetch_bucket_size" in dict(case.scheme.get("limits", ())) and kind == "all-gather":
            continue  # what prefetching spares of them depends on its order; zeroplan has the most
        calls, size = measured[0]["collectives"].get(kind, (0, 0))
        yield Row(
            case=case.name,
            what=f"{kind}, {calls} calls",
            predicted=expected.get(kind, 0),
            measured=size,
            within=small * times.get(kind, 0),
            why="small tensors are small messages where they are sent one by one",
        )
