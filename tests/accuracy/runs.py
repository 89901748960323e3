"""A published run, a row of a CSV file, as a question to zeroplan; or the reason why it cannot be one."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from zeroplan.core.blocks import Architecture, Attention, Block, FeedForward, Module, Run, Stack
from zeroplan.core.hardware import Gpu
from zeroplan.core.model import Model
from zeroplan.core.question import Card, Question
from zeroplan.core.workload import Workload
from zeroplan.errors import InputError
from zeroplan.formats.model_preset import ModelPreset
from zeroplan.formats.presets import Presets
from zeroplan.units import GIB, Share

ROWS = Path(__file__).parent / "rows.csv"
Row = dict[str, str]
CARDS = {
    "A100-80GB": "a100-sxm4-80gb",
    "A100-40GB": "a100-sxm4-40gb",
    "A800-80GB": "a100-sxm4-80gb",
    "H100-80GB": "h100-sxm5-80gb",
    "H200": "h200-sxm5-141gb",
    "B200-180GB": "b200-sxm",
    "MI300X": "mi300x",
    "V100-32GB": "v100-sxm2-32gb",
    "V100-16GB": "v100-sxm2-16gb",
    "A10G": "a10g",
    "L4": "l4",
    "L40S": "l40s",
    "T4": "t4",
    "RTX-3090": "rtx-3090",
    "RTX-4090": "rtx-4090",
    "RTX-A6000": "rtx-a6000",
}
H100_95GIB = 95.04
"""Total memory in GiB of torchtitan's H100s with HBM2e, as their logs print it (commit 83c879f18)."""
TORCHTITAN_DATES = {
    "83c879f18": "2024-03-28",
    "395a52627": "2024-04-18",
    "40f8fd007": "2024-06-06",
    "3faaa1a0d": "2024-08-23",
    "llama3_h100_202412": "2024-12-26",
    "aff949468": "2024-11-25",
    "5940ddeb5": "2025-02-06",
    "069bae286": "2025-02-27",
    "3b39d7ab0": "2025-03-19",
    "986f6800f": "2025-03-20",
    "e23bb707d": "2025-03-24",
    "f8f545c45": "2025-05-28",
    "f738a03bf": "2025-08-22",
    "c4e229115": "2025-09-06",
    "d66b72a6a": "2025-09-17",
    "d9bdfbb20": "2025-11-15",
    "36a4b6942": "2025-12-17",
}
"""Commits of pytorch/torchtitan that rows cite, and the commit that the benchmark file names."""
DROPPED_LOGITS = "2024-06-12"
"""pytorch/torchtitan commit e29b6b4d4: the training loop no longer holds the fp32 logits through the backward pass."""
COMPILED_LOSS = (("2024-10-22", "2024-12-18"), ("2025-08-20", "9999"))
"""pytorch/torchtitan commits e10cb9494, e8977b007 and 08b8b244f: the loss is compiled, is not, is by default."""
NEAR = 0.03
"""How far the parameters of a shape may be from the published count."""


class NotExpressibleError(ValueError):
    """Why a row cannot be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question of a row."""

    question: Question
    stage: int


def read_rows(path: Path = ROWS) -> list[Row]:
    """The rows of a CSV file with the columns of rows.csv."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def asked(row: Row, presets: Presets) -> Asked:
    """The question of a row; raises NotExpressibleError with the reason."""
    _check_parallelism(row)
    framework_name, stage = _framework(row)
    framework = presets.framework(framework_name)
    model = _model(row, presets)
    try:
        question = Question(
            model=model,
            gpus=_number(row, "dp") * (_optional(row, "cp") or 1),
            recipe=presets.recipe(_recipe(row, framework_name)),
            framework=framework,
            cards=(Card(gpu=_card(row, presets)),),
            headroom=Share(0, 1),
            grad_accum=_optional(row, "grad_accum") or 1,
            stages=(stage,),
            kernel=_kernel(row),
            workload=_workload(row, presets, framework_name, framework.selective, framework.fused),
        )
    except InputError as error:
        raise NotExpressibleError(str(error)) from error
    if not question.counts_activations:
        raise NotExpressibleError("activations of this architecture are not modelled")
    return Asked(question=question, stage=stage)


def _check_parallelism(row: Row) -> None:
    for degree in ("tp", "pp", "cp", "ep"):
        if (_optional(row, degree) or 1) > 1:
            raise NotExpressibleError(f"{degree} above 1 is not modelled yet")
    if row.get("lora"):
        raise NotExpressibleError("adapters are not modelled yet")
    if row.get("offload", "none") not in ("", "none", "no"):
        raise NotExpressibleError("offload is not modelled yet")
    if "is a cap" in row.get("notes", ""):
        raise NotExpressibleError("seq_len is a cap; how long the sequences were is not published")


def _framework(row: Row) -> tuple[str, int]:
    name, sharding = row["framework"].lower(), row["zero_stage_or_sharding"].lower()
    if "nanotron" in name:
        raise NotExpressibleError("nanotron is not modelled")
    zero = re.search(r"zero-(\d)", sharding)
    if "fsdp2" in sharding or "fsdp2" in name:
        return "fsdp2", 2 if "reshard_after_forward=false" in sharding or "zero-2" in sharding else 3
    if "fsdp" in sharding:
        return "fsdp1", 2 if "grad_op" in sharding else 3
    if "deepspeed" in name or (zero and "megatron" not in name):
        return "deepspeed", int(zero.group(1)) if zero else 0
    if "megatron" in name:
        return "megatron", 1 if "distributed" in sharding or zero else 0
    if sharding.startswith("none") or not sharding or "ddp" in sharding:
        return "fsdp2", 0
    raise NotExpressibleError(f"sharding {row['zero_stage_or_sharding']!r} is not known")


def _recipe(row: Row, framework: str) -> str:
    precision, optimizer = row["precision"].lower(), row["optimizer"].lower()
    if any(word in optimizer for word in ("8-bit", "8bit", "adafactor", "lion", "sgd", "muon", "paged", "galore")):
        raise NotExpressibleError(f"optimizer {row['optimizer']!r} is not modelled with {framework}")
    if framework == "deepspeed":
        return "deepspeed-fp32-accum" if "fp32 accum" in precision else "deepspeed-16bit"
    if framework == "megatron":
        return "megatron-bf16"
    pure = ("pure bf16", "bf16-true", "no fp32 master", "16-bit true")
    if any(word in precision for word in pure) or ("bf16 states" in optimizer) or precision == "bf16":
        return "pure-bf16"
    if precision in ("fp32", "tf32", "32-true"):
        return "fp32-adam"
    if any(
        word in precision
        for word in ("fp32 master", "upcast to fp32", "amp_bf16", "autocast", "mixed", "fp8", "float8")
    ):
        return "fsdp-mixed"
    raise NotExpressibleError(f"precision {row['precision']!r} is not known")


def _kernel(row: Row) -> str:
    """torchtitan fuses; torch's default, which the others take, is foreach; DeepSpeed and Megatron have their own."""
    name = row["framework"].lower()
    own = any(word in name for word in ("torchtitan", "deepspeed", "megatron"))
    return "fused" if own and "fused AdamW=no" not in row["notes"] else "foreach"


def _workload(row: Row, presets: Presets, framework: str, selective: str, fused: tuple[str, ...]) -> Workload:
    return Workload(
        seq_len=_number(row, "seq_len"),
        micro_batch=_number(row, "micro_batch"),
        recompute=_recompute(row),
        attention=_attention(row),
        fused=_fused(row) or fused,
        loss=presets.loss(_loss(row, framework)),
        selective=selective,
        compiled=_compiled(row),
    )


def _compiled(row: Row) -> str:
    """torchtitan compiled the loss too for eight weeks of 2024, and does by default since August 2025.

    Its graph_trainer traces the step, and compiles tagged regions only (experiments/graph_trainer/README.md).
    """
    if not row["compile"].lower().startswith("yes"):
        return "none"
    if "graph_trainer" in row["framework"]:
        return "none"
    if "torchtitan" not in row["framework"].lower():
        return "all"
    date = _torchtitan_date(row)
    return "all" if any(start <= date < end for start, end in COMPILED_LOSS) else "model"


def _torchtitan_date(row: Row) -> str:
    """The day of the code that ran, as far as the row says."""
    known = [date for name, date in TORCHTITAN_DATES.items() if name in row["source_locator"]]
    return known[0] if known else f"{row.get('year') or '2025'}-12"


def _recompute(row: Row) -> str:
    said = row["activation_checkpointing"].lower()
    if "every other" in said or "other" in said:
        raise NotExpressibleError("recomputing every other block is not modelled")
    for kind in ("full", "selective", "none"):
        if said.startswith(kind):
            return kind
    raise NotExpressibleError(f"activation checkpointing {row['activation_checkpointing']!r} is not known")


def _attention(row: Row) -> str:
    said = row["attention"].lower()
    if "fused softmax" in said:
        return "fused-softmax"
    return "eager" if "eager" in said else "flash"


def _fused(row: Row) -> tuple[str, ...]:
    """torchtitan's norm is a fused kernel (its own, later torch's); so is that of fms-acceleration's plugin."""
    kernels = "torchtitan" in row["framework"].lower() or "fused ops and kernels" in row["notes"]
    return ("norm",) if kernels else ()


def _loss(row: Row, framework: str) -> str:
    name, notes = row["framework"].lower(), row["notes"].lower()
    if "fused linear cross-entropy" in notes:
        return "linear"
    if "chunked cross-entropy" in notes:
        return "chunked"
    if "fused ops and kernels" in notes:
        return "fused"
    if "torchtitan" in name:
        return "fp32-returned" if "2024-01" < _torchtitan_date(row) < DROPPED_LOGITS else "fp32"
    if framework == "megatron":
        return "fused"
    return "fp32" if "trainer" in name else "hf"


def _model(row: Row, presets: Presets) -> Model:
    params, layers, hidden = _number(row, "params_total"), _number(row, "layers"), _number(row, "hidden")
    for record in presets.all("model"):
        if isinstance(record, ModelPreset) and record.params == params and layers in record.config.values():
            return record.model
    if row.get("moe"):
        raise NotExpressibleError("the widths of the experts are not published")
    return _model_of_shape(row, params, layers, hidden)


def _model_of_shape(row: Row, params: int, layers: int, hidden: int) -> Model:
    """A decoder of the published shape; gated or plain, whichever is nearer to the published count."""
    heads, width, vocab = _number(row, "heads"), _number(row, "ffn"), _number(row, "vocab")
    kv_heads = _optional(row, "kv_heads") or heads
    embeddings = vocab * hidden * (1 if row["tied_embeddings"] == "yes" else 2)
    attention = 2 * hidden * hidden + 2 * hidden * hidden // heads * kv_heads
    sizes = {gated: attention + (3 if gated else 2) * hidden * width for gated in (True, False)}
    gated = min(sizes, key=lambda kind: abs(embeddings + layers * sizes[kind] - params))
    if abs(embeddings + layers * sizes[gated] - params) > NEAR * params:
        raise NotExpressibleError("the published shape does not give the published count")
    head_dim = hidden // heads
    block = Block(
        modules=(Module(name="block", shapes=((sizes[gated],),)),),
        attention=Attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=head_dim),
        feed=FeedForward(width=width, gated=gated),
    )
    tables = ("embed",) if row["tied_embeddings"] == "yes" else ("embed", "head")
    return Model(
        params=params,
        name=row["model"],
        root=tuple(Module(name=name, shapes=((vocab, hidden),)) for name in tables),
        stacks=(Stack(name="layers", runs=(Run(block=block, count=layers),)),),
        architecture=Architecture(
            hidden=hidden,
            vocab=vocab,
            norm="rms" if gated else "layer",
            residual_dropout=_drops(row),
            attention_dropout=_drops(row),
        ),
    )


def _drops(row: Row) -> bool:
    """Megatron's GPT has dropout by default; nothing else here does."""
    return "megatron" in row["framework"].lower()


def _card(row: Row, presets: Presets) -> Gpu:
    said = row["gpu"]
    if said.startswith(("H100-95GiB", "H100-96GB")):
        context = presets.gpu("h100-sxm5-80gb").context_bytes
        return Gpu(name="custom", title=said, usable_bytes_stated=round(H100_95GIB * GIB) - context)
    for start, name in CARDS.items():
        if said.startswith(start):
            return presets.gpu(name)
    raise NotExpressibleError(f"GPU {said!r} is not known")


def _number(row: Row, column: str) -> int:
    found = _optional(row, column)
    if found is None:
        raise NotExpressibleError(f"{column} is not published")
    return found


def _optional(row: Row, column: str) -> int | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        return int(float(text))
    except ValueError as error:
        raise NotExpressibleError(f"{column} {text!r} is not a number") from error
