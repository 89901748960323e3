"""Tables of papers, measurements and bug reports: each TOML file names its source."""

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zeroplan.core.framework import Framework
from zeroplan.core.hardware import Node
from zeroplan.core.ledger import STATES
from zeroplan.core.model import Model
from zeroplan.core.question import Card, Question
from zeroplan.core.scheme import Scheme
from zeroplan.core.solve import max_params
from zeroplan.core.timing import node_bytes
from zeroplan.core.verdict import StageAnswer, fit
from zeroplan.core.workload import Workload
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.presets import Presets
from zeroplan.units import GB, GIB, Share

FOLDER = Path(__file__).parent
FIGURES = {"within_gb", "within_gib", "within_share", "id", "request", "phase"}


def cells() -> list[Any]:
    return list(_cells())


def _cells() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        assert table["source"], path
        for cell in table["cells"]:
            yield pytest.param(cell, id=f"{path.stem}: {cell['id']}")


@pytest.mark.parametrize("cell", cells())
def test_published_figure(cell: dict[str, Any], presets: Presets) -> None:
    answer = answered(cell["request"], presets)
    assert answer.estimate is not None
    memory, params = answer.estimate.memory, answer.estimate.plan.params
    reserved = answer.meters.reserved if answer.meters else None
    held = memory.alive_bytes(cell["phase"]) if "phase" in cell else memory.peak_bytes
    ours: dict[str, Any] = {
        "resident_gb": memory.resident_bytes / GB,
        "resident_gib": memory.resident_bytes / GIB,
        "peak_gb": memory.peak_bytes / GB,
        "peak_gib": memory.peak_bytes / GIB,
        "wire_gb": answer.estimate.traffic.wire_bytes / GB,
        "bytes_per_parameter": held / params,
        "resident_bytes_per_parameter": memory.resident_bytes / params,
        "traffic_psi": answer.estimate.psi,
        "reserved_gib": reserved.expected / GIB if reserved else None,
        "params": params,
        "verdict": answer.verdict,
        **elsewhere(answer),
    }
    figures = cell.keys() - FIGURES
    assert figures <= ours.keys()
    assert figures
    for figure in figures:
        expected = cell[figure]
        if isinstance(expected, str):
            assert ours[figure] == expected
        else:
            within = cell.get("within_gb", cell.get("within_gib", cell.get("within_share", 0) * expected))
            assert abs(ours[figure] - expected) <= within, (figure, ours[figure], expected)


def elsewhere(answer: StageAnswer) -> dict[str, Any]:
    """Figures off the GPU, of a node, and across nodes."""
    found = answer.estimate
    assert found is not None
    memory, moved, cluster = found.memory, found.traffic, found.plan.cluster
    host = {each.name: each.needed for each in answer.host}
    return {
        "states_tib": sum(t.bytes for t in memory.terms if t.name.startswith(STATES)) * found.plan.gpus / 2**40,
        "host_bytes_per_parameter": memory.peak_of("cpu") / found.plan.params,
        "nvme_bytes_per_parameter": memory.peak_of("nvme") / found.plan.params,
        "host_low_gb": host["host RAM"].low / GB if host else None,
        "host_high_gb": host["host RAM"].high / GB if host else None,
        "copied_bytes_per_parameter": sum(copy.wire_bytes for copy in moved.copies) / found.plan.params,
        "across_nodes_gb": sum(node_bytes(each, cluster) or 0 for each in moved.transfers) / GB,
        "binding": next((each.name for each in answer.host if each.least_over > 0), None),
    }


def test_table_1_has_54_cells() -> None:
    assert len(tomllib.loads((FOLDER / "zero-table-1.toml").read_text("utf-8"))["cells"]) == 54


@pytest.mark.parametrize("mp", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(("stage", "first_row"), [(0, 2.0), (1, 7.6), (2, 14.4), (3, 128.0)])
def test_zero_table_2_theory(presets: Presets, mp: int, stage: int, first_row: float) -> None:
    """Largest model at DP = 64 in 32 GB; every row is the rounded first row times MP (0.5T and 1T for stage 3)."""
    from zeroplan.core.hardware import Gpu

    card = Card(gpu=Gpu(name="custom", title="32 GB", usable_bytes_stated=32 * GB))
    zero = presets.framework("zero")
    question = Question(
        model=Model(params=1),
        gpus=64,
        recipe=presets.recipe("zero-adam"),
        framework=zero,
        cards=(card,),
        headroom=Share(0, 1),
    )
    per_replica = max_params(question, card, stage)
    assert per_replica is not None
    printed = {(3, 4): 500, (3, 8): 1000, (3, 16): 2000}.get((stage, mp), first_row * mp)
    assert per_replica * mp / 1e9 == pytest.approx(printed, rel=0.03)
    assert round(per_replica / 1e9, 1) == first_row


def answered(request: dict[str, Any], presets: Presets) -> StageAnswer:
    """The answer to a published request; `limits` replaces those of the framework."""
    framework = presets.framework(request.get("framework", "zero"))
    framework = replace(framework, limits={**framework.limits, **request.get("limits", {})})
    card = presets.card(presets.gpu(request.get("gpu", "a100-80gb")))
    if "node" in request:
        card = replace(card, node=node_of(request["node"], card, presets))
    model = model_of(request, presets)
    question = Question(
        model=model,
        gpus=request["gpus"],
        recipe=presets.recipe(request.get("recipe", framework.default_recipe)),
        framework=framework,
        cards=(card,),
        headroom=Share(0, 1) if "seq_len" in request else Share(1, 10),
        grad_accum=request.get("grad_accum", 1),
        scheme=scheme_of(request.get("scheme", {})),
        stages=(request["stage"],),
        kernel=request.get("kernel", "fused"),
        workload=workload_of(request, framework, presets) if "seq_len" in request else None,
    )
    assert question.counts_activations == ("seq_len" in request)
    return fit(question)[0].stages[0]


def node_of(asked: str | dict[str, Any], card: Card, presets: Presets) -> Node:
    """A preset, or changes to the card's usual node."""
    if isinstance(asked, str):
        return presets.node(asked)
    assert card.node is not None
    return replace(card.node, **{"ram_gb": None, "ram_gib": None, **asked})


def scheme_of(data: dict[str, Any]) -> Scheme:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return Scheme(**fields)


def model_of(request: dict[str, Any], presets: Presets) -> Model:
    """The model of a request: a preset, a config.json, or a count."""
    if "model" in request:
        return presets.model(request["model"]).model
    return read_config(request["config"]) if "config" in request else Model(params=request["params"])


def workload_of(request: dict[str, Any], framework: Framework, presets: Presets) -> Workload:
    return Workload(
        seq_len=request["seq_len"],
        micro_batch=request.get("micro_batch", 1),
        recompute=request.get("recompute", "none"),
        attention=request.get("attention", "flash"),
        fused=tuple(request.get("fused", framework.fused)),
        selective=framework.selective,
        loss=presets.loss(request.get("loss", framework.default_loss)),
    )
