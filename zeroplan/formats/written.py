"""A plan as the configuration of a framework: the text of the file, and what the file cannot say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from zeroplan.core.plan import EMBEDDING_UNIT, Plan, option_of
from zeroplan.core.scheme import PLACES
from zeroplan.errors import InputError
from zeroplan.formats.accelerate_keys import NO_SYNC, REDUCE_16BIT
from zeroplan.formats.deepspeed_keys import NUMBERS, ZERO

if TYPE_CHECKING:
    from zeroplan.core.workload import Workload

NVME = "/local_nvme"
"""Where a file says that disks are: it has to say something, and only the user knows."""
RECOMPUTE = "recompute {}: the model's or the trainer's gradient checkpointing."


class Written(NamedTuple):
    """A configuration file."""

    text: str
    untold: tuple[str, ...]
    """What belongs to the plan and is said elsewhere: sentences."""


def deepspeed_file(plan: Plan) -> Written:
    """DeepSpeed's JSON, as of 0.19.8; raises InputError for a plan that is not DeepSpeed's."""
    if plan.framework.name != "deepspeed":
        raise InputError("--framework", f"a DeepSpeed file cannot ask for {plan.framework.name}.", "Use deepspeed.")
    data: dict[str, Any] = {**_deepspeed_precision(plan), ZERO: _zero(plan)}
    data["train_micro_batch_size_per_gpu"] = plan.workload.micro_batch if plan.workload else 1
    data["gradient_accumulation_steps"] = plan.strategy.grad_accum
    return Written(json.dumps(data, indent=2) + "\n", tuple(_untold(plan)))


def _deepspeed_precision(plan: Plan) -> dict[str, Any]:
    name = plan.recipe.name
    half = {_half(plan): {"enabled": True}}
    types: dict[str, dict[str, Any]] = {
        "deepspeed-16bit": half,
        "deepspeed-fp32-accum": {**half, "data_types": {"grad_accum_dtype": "fp32"}},
        "fp32-adam": {},
    }
    if name not in types:
        raise InputError("--recipe", f"{name} has no setting in DeepSpeed's file.", f"Use {', '.join(types)}.")
    return types[name]


def _half(plan: Plan) -> str:
    return "bf16" if plan.cluster.gpu is None or plan.cluster.gpu.bf16 is not False else "fp16"


def _zero(plan: Plan) -> dict[str, Any]:
    scheme, limits = plan.scheme, dict(plan.scheme.limits)
    found: dict[str, Any] = {"stage": plan.strategy.stage}
    _check_told(plan, {"overlap_comm"}, {*NUMBERS.values(), "buffer_size", "max_in_cpu"})
    for place, key in (("optimizer", "offload_optimizer"), ("params", "offload_param")):
        tier = scheme.tier(place)
        if tier != "gpu":
            found[key] = {"device": tier, **({"nvme_path": NVME} if tier == "nvme" else {})}
    for name in ("buffer_size", "max_in_cpu"):
        if name in limits:
            if scheme.tier("params") != "nvme":
                raise InputError(f"--set {name}", "is of offload_param on NVMe.", "Leave it out.")
            found["offload_param"][name] = limits[name]
    if "overlap_comm" in scheme.switches:
        found["overlap_comm"] = True
    found |= {key: limits[name] for key, name in NUMBERS.items() if name in limits}
    if scheme.hpz:
        found["zero_hpz_partition_size"] = scheme.hpz
    return found | {f"zero_quantized_{name}": True for name in scheme.quantize}


def accelerate_file(plan: Plan) -> Written:
    """accelerate's YAML, as of 1.15: its DeepSpeed plugin, FSDP of either version, or DDP.

    Raises InputError for a plan that it cannot say.
    """
    import yaml

    sections: dict[str, Callable[[Plan], dict[str, Any]]] = {
        "deepspeed": _plugin,
        "fsdp1": _fsdp,
        "fsdp2": _fsdp,
        "ddp": _ddp,
    }
    if plan.framework.name not in sections:
        hint = f"Use --framework {', '.join(sections)}."
        raise InputError("--framework", f"accelerate cannot ask for {plan.framework.name}.", hint)
    section = sections[plan.framework.name]
    machines = _machines(plan)
    data = {
        "compute_environment": "LOCAL_MACHINE",
        "mixed_precision": _accelerate_precision(plan),
        "num_machines": machines,
        **({"machine_rank": 0} if machines > 1 else {}),
        "num_processes": plan.gpus,
        **section(plan),
    }
    untold = [*_untold(plan)]
    if machines > 1:
        untold.append("machines: accelerate launch --machine_rank R --main_process_ip HOST on each.")
    if plan.strategy.grad_accum > 1 and plan.framework.name != "deepspeed":
        untold.append(f"grad-accum {plan.strategy.grad_accum}: Accelerator(gradient_accumulation_steps=...).")
    if plan.workload:
        untold.append(f"micro-batch {plan.workload.micro_batch}: the data loader's batch size.")
    return Written(yaml.safe_dump(data, sort_keys=False), tuple(untold))


def _machines(plan: Plan) -> int:
    """Machines of as many GPUs each, as accelerate has them; raises InputError where they are not filled."""
    if not plan.cluster.whole_nodes:
        each = plan.cluster.gpus_per_node
        said = f"{plan.gpus} GPUs do not fill nodes of {each}, and accelerate divides them evenly."
        raise InputError("--gpus", said, f"Use a multiple of {each}, or --node.")
    return plan.cluster.whole_nodes


def _accelerate_precision(plan: Plan) -> str:
    known = {**dict.fromkeys(("deepspeed-16bit", "fsdp-mixed"), _half(plan)), "fp32-adam": "no"}
    name = plan.recipe.name
    if name not in known:
        raise InputError("--recipe", f"{name} has no setting in accelerate's file.", f"Use {' or '.join(known)}.")
    return known[name]


def _plugin(plan: Plan) -> dict[str, Any]:
    scheme = plan.scheme
    if scheme.hpz or scheme.quantize or scheme.limits or scheme.switches:
        said = "accelerate's DeepSpeed plugin has no key for hpZ, quantisation and settings."
        raise InputError("accelerate", said, "Write them with `zeroplan config deepspeed`, as deepspeed_config_file.")
    tiers = {place: scheme.tier(place).replace("gpu", "none") for place in PLACES}
    section: dict[str, Any] = {
        "zero_stage": plan.strategy.stage,
        "gradient_accumulation_steps": plan.strategy.grad_accum,
        "offload_optimizer_device": tiers["optimizer"],
        "offload_param_device": tiers["params"],
    }
    for place in ("optimizer", "param"):
        if section[f"offload_{place}_device"] == "nvme":
            section[f"offload_{place}_nvme_path"] = NVME
    return {"distributed_type": "DEEPSPEED", "deepspeed_config": section}


def _fsdp(plan: Plan) -> dict[str, Any]:
    version, stage, scheme = int(plan.framework.name[-1]), plan.strategy.stage, plan.scheme
    _check_told(plan, {EMBEDDING_UNIT, REDUCE_16BIT, NO_SYNC}, set())
    if version == 2 and EMBEDDING_UNIT not in scheme.switches:
        raise InputError(f"--set {EMBEDDING_UNIT}", "accelerate makes a unit of the embedding.", "Leave it out.")
    if plan.accumulating and NO_SYNC not in scheme.switches:
        raise InputError(f"--set {NO_SYNC}", "accelerate reduces once a step.", "Leave it out.")
    if version == 2 and plan.recipe.name == "fsdp-mixed" and REDUCE_16BIT not in scheme.switches:
        raise InputError(f"--set {REDUCE_16BIT}", "accelerate reduces gradients in 16 bits.", "Leave it out.")
    if scheme.hpz:
        raise InputError("--hpz", "has no key in accelerate.", "Leave it out.")
    section: dict[str, Any] = {"fsdp_version": version, "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
    if version == 2:
        section["fsdp_reshard_after_forward"] = stage == 3
    else:
        hybrid = {3: "HYBRID_SHARD", 2: "HYBRID_SHARD_ZERO2"}
        plain = {3: "FULL_SHARD", 2: "SHARD_GRAD_OP"}
        section["fsdp_sharding_strategy"] = (hybrid if _hybrid(plan) else plain)[stage]
    section["fsdp_offload_params"] = scheme.tier("params") != "gpu"
    section["fsdp_activation_checkpointing"] = plan.workload is not None and plan.workload.how == "full"
    if plan.workload and plan.workload.checkpoints != "gpu":
        if version == 1:
            raise InputError("--offload activations", "has a key in accelerate at fsdp2 only.", "Leave it out.")
        section["fsdp_activation_checkpointing_offload"] = True
    data: dict[str, Any] = {"distributed_type": "FSDP", "fsdp_config": section}
    if version == 2 and _hybrid(plan):
        sizes = {"dp_replicate": plan.gpus // scheme.shard_group, "dp_shard": scheme.shard_group}
        data["parallelism_config"] = {f"parallelism_config_{way}_size": size for way, size in sizes.items()}
    return data


def _hybrid(plan: Plan) -> bool:
    """Whether states are divided over a group and not over all; FSDP1's group is a machine."""
    group = plan.scheme.shard_group
    if plan.framework.name == "fsdp1" and group and group * _machines(plan) != plan.gpus:
        raise InputError(
            "--shard-group", f"{group}: accelerate's fsdp1 divides over a machine.", "Use --framework fsdp2."
        )
    return 0 < group < plan.gpus


def _ddp(plan: Plan) -> dict[str, Any]:
    if plan.strategy.stage:
        raise InputError("--stage", "ZeroRedundancyOptimizer has no key in accelerate.", "Use --stage 0.")
    _check_told(plan, set(), set())
    return {"distributed_type": "MULTI_GPU" if plan.gpus > 1 else "NO"}


def _check_told(plan: Plan, switches: set[str], limits: set[str]) -> None:
    """Raise for a setting that the file has no key for."""
    for name in (*plan.scheme.switches, *dict(plan.scheme.limits)):
        if name not in switches | limits:
            raise InputError(option_of(name), "has no key in this file.", "It is said in code: leave it out here.")


def _untold(plan: Plan) -> Iterator[str]:
    work, offload, framework = plan.workload, plan.scheme.offloads, plan.framework
    if work is None:
        yield "activations, which are not counted: --model and --seq-len add them."
    else:
        yield from _of_work(plan, work)
    if plan.strategy.kernel != "fused":
        yield f"optimizer-kernel {plan.strategy.kernel}: torch.optim.AdamW's foreach and fused, in code."
    if framework.name == "deepspeed" and "optimizer" in offload:
        yield "the optimizer: DeepSpeedCPUAdam, in code or as `optimizer` in the file."
    if "nvme" in offload.values():
        yield f"nvme_path: {NVME} stands in for your disk's."
    if plan.cluster.gpu is not None and plan.cluster.gpu.bf16 is None:
        yield "whether your card has bf16, which is taken."


def _of_work(plan: Plan, work: Workload) -> Iterator[str]:
    """What of a micro-batch is the model's, the data's or the code's to say."""
    fsdp = plan.framework.name.startswith("fsdp")
    yield f"seq-len {work.seq_len}: the data's."
    if work.recompute != "none" and not (fsdp and work.how == "full"):
        yield RECOMPUTE.format(work.how)
    if work.checkpoints != "gpu" and not fsdp:
        yield f"offload activations={work.checkpoints}: the model's checkpointing."
    for name, value, usual in (
        ("attention", work.attention, "flash"),
        ("loss", work.loss.name, plan.framework.default_loss),
        ("fused", ",".join(work.fused), ",".join(plan.framework.fused)),
        ("compile", work.compiled, "none"),
        ("experts", "packed" if work.packed_experts else "listed", "packed"),
    ):
        if value != usual:
            yield f"{name} {value or 'none'}: in code."
