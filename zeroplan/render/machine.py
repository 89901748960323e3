"""Answers for machines: JSON in the shape of contract.py, and CSV of the same figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from zeroplan import __version__
from zeroplan.core.checkpoint import Checkpoint, checkpoint
from zeroplan.core.estimate import Estimate, in_psi
from zeroplan.core.hardware import Cluster
from zeroplan.core.host import load_bytes
from zeroplan.core.moments import MOMENTS, PHASES
from zeroplan.core.timing import Time, link_bound, measured_by, node_bytes, transfer_time
from zeroplan.core.verdict import CardAnswer, StageAnswer
from zeroplan.render.labels import stage_name
from zeroplan.render.notes import card_notes

if TYPE_CHECKING:  # types only: what is not needed at run time is not imported
    from zeroplan.core.advice import Advice
    from zeroplan.core.host import Resource
    from zeroplan.core.ledger import Term, Transfer
    from zeroplan.core.mends import Binding
    from zeroplan.core.meters import Meters, Range
    from zeroplan.core.question import Question
    from zeroplan.render import contract

_line = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode
UNKNOWN_TIME: contract.SecondsJson = {"link": None, "measured": None}


def json_text(answer: Mapping[str, Any]) -> str:
    """An answer as JSON, an entry of a ledger to a line; never NaN or infinity."""
    return f"{_indented(answer, 0)}\n"


def _indented(value: Any, depth: int) -> str:
    """Lists of tables, and tables that hold some, over several lines; everything else on one."""
    if isinstance(value, dict) and (depth < 2 or any(map(_is_tables, value.values()))):
        items = [f"{_line(key)}: {_indented(inner, depth + 1)}" for key, inner in value.items()]
        return _joined("{", items, "}", depth)
    if _is_tables(value):
        return _joined("[", [_indented(inner, depth + 1) for inner in value], "]", depth)
    return _line(value)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _joined(start: str, items: list[str], end: str, depth: int) -> str:
    inside = "\n" + "  " * (depth + 1)
    return f"{start}{inside}{f',{inside}'.join(items)}\n{'  ' * depth}{end}"


def csv_text(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as CSV with a header; unknown is empty."""
    import csv
    import io

    rows = [_flat(record) for record in records]
    out = io.StringIO()
    fields = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(out, fields, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def header(command: str) -> dict[str, str]:
    """The schema and version that head every answer."""
    return {"schema": f"zeroplan.{command}/1", "version": __version__}


def request_json(question: Question, node: str | None) -> contract.RequestJson:
    """Everything the answer assumes."""
    work = question.workload
    activations = {"activations": work.checkpoints} if work and work.checkpoints != "gpu" else {}
    stated = [card.gpu.usable_bytes_stated for card in question.cards if card.gpu.usable_bytes_stated is not None]
    return {
        "params": question.params,
        "model": question.model.path or question.model.name or None,
        "gpus": question.gpus,
        "gpu": [card.gpu.name for card in question.cards],
        "memory_bytes": stated[0] if stated else None,
        "node": node,
        "stages": list(question.stages),
        "recipe": question.recipe.name,
        "bytes_per_parameter": question.recipe.bytes_per_parameter,
        "framework": question.framework.name,
        "grad_accum": question.grad_accum,
        "headroom": float(question.headroom),
        "offload": {**question.scheme.offloads, **activations},
        "shard_group": question.scheme.shard_group or None,
        "hpz": question.scheme.hpz or None,
        "quantize": list(question.scheme.quantize),
        "settings": {**dict.fromkeys(question.scheme.switches, True), **dict(question.scheme.limits)},
        "optimizer_kernel": question.kernel,
        "seq_len": work.seq_len if work else None,
        "micro_batch": work.micro_batch if work else None,
        "recompute": work.how if work else None,
        "attention": work.attention if work else None,
        "loss": work.loss.name if work else None,
        "fused": list(work.fused) if work else [],
        "experts": ("packed" if work.packed_experts else "listed") if work else None,
        "compiled": work.compiled if work else None,
        "assumed": dict(question.model.assumed),
    }


def card_json(question: Question, answer: CardAnswer, advice: Advice) -> contract.CardJson:
    """Every stage on one GPU."""
    card = answer.card
    cluster = Cluster(gpus=question.gpus, gpu=card.gpu, node=card.node)
    bound = link_bound(cluster)
    return {
        "gpu": card.gpu.name,
        "title": card.gpu.title,
        "usable_bytes": answer.usable_bytes,
        "usable_provenance": card.gpu.provenance,
        "budget_bytes": answer.budget_bytes,
        "node": card.node.name if card.node else None,
        "bound_by": bound.what if bound else None,
        "measured_by": measured_by(cluster) or None,
        "recommended_stage": answer.recommended.stage if answer.recommended else None,
        "notes": card_notes(question, answer, advice),
        "binding": binding_json(advice.binding) if advice.binding else None,
        "stages": [stage_json(question, stage) for stage in answer.stages],
    }


def binding_json(found: Binding) -> contract.BindingJson:
    """What binds the stage shown, and the mends."""
    return {
        "stage": found.stage,
        "moment": found.moment,
        "terms": [{"name": term.name, "bytes": term.bytes} for term in found.terms],
        "mends": [
            {
                "option": mend.option,
                "saved_bytes": mend.saved_bytes,
                "taken_bytes": mend.taken_bytes,
                "price": mend.price,
                "verdict": mend.verdict,
            }
            for mend in found.mends
        ],
        "higher_stage_saves_bytes": found.higher_saves_bytes,
    }


def stage_json(question: Question, answer: StageAnswer) -> contract.StageJson:
    """One stage on one GPU."""
    found = answer.estimate
    return {
        "stage": answer.stage,
        "name": stage_name(question, answer.stage),
        "verdict": answer.verdict,
        "resident_bytes": found.memory.resident_bytes if found else None,
        "peak_bytes": found.memory.peak_bytes if found else None,
        "peak_phases": list(found.memory.peak_phases) if found else [],
        "phase_bytes": {phase: found.memory.alive_bytes(phase) for phase in PHASES} if found else {},
        "moment_bytes": {moment: found.memory.bytes_at(moment) for moment in MOMENTS} if found else {},
        "peak_moment": found.memory.peak_moment if found else None,
        "meters": meters_json(answer.meters) if answer.meters else None,
        "spare_bytes": answer.spare_bytes,
        "memory": [term_json(term) for term in found.memory.terms] if found else [],
        "traffic": [transfer_json(found, transfer) for transfer in found.traffic.transfers] if found else [],
        "copies": [transfer_json(found, copy) for copy in found.traffic.copies] if found else [],
        "copy_seconds": seconds_json(found.copy_time) if found else UNKNOWN_TIME,
        "host": [resource_json(each) for each in answer.host],
        "short_of": answer.short.name if answer.short else None,
        "load_bytes": _range(load_bytes(found.plan)) if found else None,
        "checkpoint": checkpoint_json(checkpoint(found.plan, found.memory)) if found else None,
        "traffic_psi": found.psi if found else None,
        "wire_bytes": found.traffic.wire_bytes if found else None,
        "ratio_to_data_parallel": found.ratio_to_data_parallel if found else None,
        "seconds": seconds_json(found.time) if found else UNKNOWN_TIME,
    }


def resource_json(found: Resource) -> contract.ResourceJson:
    return {"name": found.name, "needed": _range(found.needed), "available_bytes": found.available}


def flat_host(host: list[contract.ResourceJson]) -> dict[str, int | None]:
    """The resources of a node as columns: host_ram_low and so on."""
    columns: dict[str, int | None] = {}
    for each in host:
        name = each["name"].lower().replace(" ", "_")
        columns |= {f"{name}_{end}": size for end, size in each["needed"].items() if isinstance(size, int)}
        columns[f"{name}_available_bytes"] = each["available_bytes"]
    return columns


def checkpoint_json(sizes: Checkpoint) -> contract.CheckpointJson:
    return {
        "resume_bytes": sizes.resume,
        "each_rank_bytes": sizes.each_rank,
        "first_rank_bytes": sizes.first_rank,
        "weights_bytes": sizes.weights,
        "ranks": sizes.ranks,
    }


def meters_json(shown: Meters) -> contract.MetersJson:
    return {
        "resident": _range(shown.resident),
        "allocated": _range(shown.allocated) if shown.allocated else None,
        "reserved": _range(shown.reserved) if shown.reserved else None,
        "device": _range(shown.device) if shown.device else None,
    }


def _range(bounds: Range) -> contract.RangeJson:
    return {"low": bounds.low, "expected": bounds.expected, "high": bounds.high}


def term_json(term: Term) -> contract.TermJson:
    return {
        "name": term.name,
        "what": term.what,
        "bytes": term.bytes,
        "tier": term.tier,
        "sharded": term.sharded,
        "phases": list(term.phases),
        "moments": list(term.moments),
        "formula": term.formula,
        "inputs": dict(term.inputs),
        "source": term.source,
    }


def transfer_json(found: Estimate, transfer: Transfer) -> contract.TransferJson:
    return {
        "collective": transfer.collective,
        "what": transfer.what,
        "phase": transfer.phase,
        "payload_bytes": transfer.payload_bytes,
        "times_per_step": transfer.times_per_step,
        "wire_bytes": transfer.wire_bytes,
        "psi": in_psi(transfer.elements, found.plan.params),
        "gpus": transfer.gpus,
        "stride": transfer.stride,
        "node_bytes": node_bytes(transfer, found.plan.cluster),
        "seconds": seconds_json(transfer_time(transfer, found.plan.cluster)),
        "formula": transfer.formula,
        "inputs": dict(transfer.inputs),
        "source": transfer.source,
    }


def seconds_json(time: Time) -> contract.SecondsJson:
    return {"link": time.link, "measured": time.measured}


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Scalars by key; the keys of inner tables are joined with `_`; lists become words."""
    row: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            row |= _flat(value, f"{prefix}{key}_")
        elif isinstance(value, list):
            row[f"{prefix}{key}"] = " ".join(map(str, value))
        else:
            row[f"{prefix}{key}"] = value
    return row
