"""The JSON of the answers other than fit's, in the shape of contract_others.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from zeroplan.core.hardware import Cluster
from zeroplan.core.meters import taken_bytes
from zeroplan.core.timing import link_bound
from zeroplan.core.verdict import DOES_NOT_FIT
from zeroplan.render.machine import UNKNOWN_TIME, request_json, resource_json, seconds_json

if TYPE_CHECKING:  # types only
    from zeroplan.core.claims import ClaimedBytes
    from zeroplan.core.compare import Comparison, Strategic
    from zeroplan.core.diagnosis import Matched
    from zeroplan.core.oom import Message, Size
    from zeroplan.core.question import Card, Question
    from zeroplan.core.solve import Solution
    from zeroplan.core.sweep import SweepPoint
    from zeroplan.core.verdict import CardAnswer
    from zeroplan.core.word import Word
    from zeroplan.render import contract_others as shapes


def comparison_json(question: Question, row: Comparison) -> shapes.ComparisonJson:
    answer, best = row.answer, row.answer.recommended
    card, found = answer.card, best.estimate if best else None
    bound = link_bound(Cluster(gpus=question.gpus, gpu=card.gpu, node=card.node))
    return {
        "gpu": card.gpu.name,
        "title": card.gpu.title,
        "usable_bytes": answer.usable_bytes,
        "budget_bytes": answer.budget_bytes,
        "recommended_stage": best.stage if best else None,
        "verdict": best.verdict if best else DOES_NOT_FIT,
        "spare_bytes": best.spare_bytes if best else None,
        "wire_bytes": found.traffic.wire_bytes if found else None,
        "node": card.node.name if card.node else None,
        "bound_by": bound.what if bound else None,
        "seconds": seconds_json(found.time) if found else UNKNOWN_TIME,
        "node_usd_per_hour": card.node.price_usd_per_hour if card.node else None,
        "usd_per_hour": row.usd_per_hour,
        "price_where": card.node.price_where if card.node and row.usd_per_hour is not None else None,
        "min_gpus": [{"stage": stage, "gpus": gpus} for stage, gpus in row.min_gpus.items()],
    }


def strategy_json(row: Strategic, node: str | None) -> shapes.StrategyJson:
    shown, found = row.shown, row.shown.estimate
    return {
        "strategy": row.name,
        "request": request_json(row.question, node),
        "gpu": row.answer.card.gpu.name,
        "usable_bytes": row.answer.usable_bytes,
        "budget_bytes": row.answer.budget_bytes,
        "node": row.answer.card.node.name if row.answer.card.node else None,
        "stage": shown.stage,
        "verdict": shown.verdict,
        "taken_bytes": taken_bytes(found) if found else None,
        "spare_bytes": shown.spare_bytes,
        "wire_bytes": found.traffic.wire_bytes if found else None,
        "seconds": seconds_json(found.time) if found else UNKNOWN_TIME,
        "copy_seconds": seconds_json(found.copy_time) if found else UNKNOWN_TIME,
        "host": [resource_json(each) for each in shown.host],
    }


def sweep_point_json(point: SweepPoint) -> shapes.SweepPointJson:
    return {"value": point.value, "stages": [_sweep_stage(point, stage) for stage in point.estimates]}


def solved_card_json(question: Question, card: Card, solutions: list[Solution]) -> shapes.SolvedCardJson:
    return {
        "gpu": card.gpu.name,
        "title": card.gpu.title,
        "usable_bytes": question.usable_bytes(card),
        "budget_bytes": question.budget_bytes(card),
        "stages": [_solution_json(solution) for solution in solutions if solution.card is card],
    }


def _solution_json(solution: Solution) -> shapes.SolutionJson:
    return {
        "stage": solution.stage,
        "answer": solution.answer,
        "tight_answer": solution.tight_answer,
        "at_limit": solution.at_limit,
        "peak_bytes": solution.peak_bytes,
        "offload": solution.scheme.offloads,
        "binding": solution.binding,
    }


def word_json(word: Word) -> shapes.WordJson:
    return {
        "name": word.name,
        "title": word.title,
        "text": word.text,
        "formula": word.formula,
        "see": list(word.see),
        "source": word.source,
    }


def claim_json(claim: ClaimedBytes) -> shapes.ClaimJson:
    return {
        "name": claim.claim.name,
        "bytes": claim.bytes,
        "formula": claim.formula,
        "inputs": dict(claim.inputs),
        "judgement": claim.claim.judgement,
        "source": claim.claim.source,
    }


def _sweep_stage(point: SweepPoint, stage: int) -> shapes.SweepStageJson:
    found = point.estimates[stage]
    return {
        "stage": stage,
        "resident_bytes": found.memory.resident_bytes if found else None,
        "peak_bytes": found.memory.peak_bytes if found else None,
        "taken_bytes": taken_bytes(found) if found else None,
        "traffic_psi": found.psi if found else None,
        "wire_bytes": found.traffic.wire_bytes if found else None,
        "ratio_to_data_parallel": found.ratio_to_data_parallel if found else None,
        "verdicts": {card.gpu.name: point.verdict(stage, card) for card in point.question.cards},
    }


def usable_json(question: Question, answer: CardAnswer) -> shapes.UsableJson:
    gpu = answer.card.gpu
    return {
        "gpu": gpu.name,
        "torch_total_bytes": None if gpu.usable_bytes_stated is not None else gpu.torch_total_bytes,
        "context_bytes": 0 if gpu.usable_bytes_stated is not None else gpu.context_bytes,
        "nccl_bytes": question.nccl_bytes(answer.card),
        "usable_bytes": answer.usable_bytes,
        "budget_bytes": answer.budget_bytes,
        "provenance": gpu.provenance,
        "source": gpu.memory_source,
    }


def preset_json(record: Any) -> dict[str, Any]:
    """A record as JSON values, its fields as in its TOML file."""
    return {field.name: _jsonable(getattr(record, field.name)) for field in fields(record)}


def _jsonable(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return preset_json(value)
    if isinstance(value, Mapping):
        return {key: _jsonable(inner) for key, inner in value.items()}
    return [_jsonable(inner) for inner in value] if isinstance(value, tuple) else value


def diagnosis_json(found: Message, same: list[Matched], answer: CardAnswer | None) -> shapes.DiagnosisJson:
    """What a message says, and what has its size."""

    def size(named: Size | None) -> int | None:
        return named.bytes if named else None

    return {
        "requested_bytes": found.requested.bytes,
        "total_bytes": size(found.total),
        "free_bytes": size(found.free),
        "allocated_bytes": size(found.allocated),
        "reserved_bytes": size(found.reserved),
        "allowed_bytes": size(found.allowed),
        "cause": found.cause,
        "messages": found.times,
        "matches": [
            {
                "what": each.candidate.what,
                "formula": each.candidate.formula,
                "bytes": each.candidate.bytes,
                "stages": list(each.stages),
            }
            for each in same
        ],
        "recommended_stage": answer.recommended.stage if answer and answer.recommended else None,
    }
