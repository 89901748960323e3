"""One training on several gloo ranks: `python -m tests.conformance.ranks NUMBER OUT.json`, NUMBER of cases.MATRIX."""

import contextlib
import gc
import json
import logging
import os
import socket
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

os.environ |= {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0", "OMP_NUM_THREADS": "1", "DEEPSPEED_LOG_LEVEL": "error"}

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from transformers import AutoConfig, AutoModelForCausalLM

from tests.conformance.cases import BUCKET, CONFIG, MATRIX, MICRO_BATCH, SEQ_LEN, Case
from tests.conformance.meter import Meter, owned, tensors

STEPS = 3
"""The last one is measured: by then every state and buffer exists."""
State = Callable[[], dict[str, Iterable[Any]]]


def build(recompute: str) -> Any:
    """The model of transformers, with the loss that the ranks train on."""
    config = AutoConfig.for_model(**CONFIG, attn_implementation="sdpa", use_cache=False)
    model = AutoModelForCausalLM.from_config(config)
    if recompute == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def rank_main(rank: int, case: Case, out: str) -> None:
    """Train on one rank; rank 0 writes what all ranks measured."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(case.ranks)}
    torch.set_num_threads(1)
    torch.manual_seed(0)
    run = _deepspeed if case.runtime == "deepspeed" else _torch
    found = run(case)
    everyone: list[Any] = [None] * case.ranks
    dist.all_gather_object(everyone, found)
    if rank == 0:
        with open(out, "w", encoding="utf-8") as file:
            json.dump(everyone, file)
    dist.barrier()
    dist.destroy_process_group()


class Record:
    """What is measured of the last step: bytes by phase, states, collectives."""

    def __init__(self, meter: Meter, states: State) -> None:
        self._meter, self._states = meter, states
        self.measured: dict[str, Any] = {"phases": {}, "states": {}}

    def start(self) -> None:
        gc.collect()
        self._meter.sent = {}
        self._meter.since()

    def phase(self, name: str) -> None:
        """The end of a phase; of several of one name the largest peak and the last state count."""
        gc.collect()
        peak = self._meter.since()
        known = self.measured["phases"].get(name, {"peak": 0})
        self.measured["phases"][name] = {"peak": max(peak, known["peak"]), "end": self._meter.bytes()}
        self.measured["states"][name] = owned(self._states())

    def done(self) -> dict[str, Any]:
        return {**self.measured, "collectives": self._meter.sent}


def _train(
    case: Case,
    record: Record,
    forward: Callable[[], Any],
    backward: Callable[[Any], None],
    step: Callable[[bool], None],
) -> dict[str, Any]:
    """`step` is called after every micro-batch and told whether it is the last; DeepSpeed counts for itself."""
    for number in range(STEPS):
        if number == STEPS - 1:
            record.start()
        for micro in range(case.grad_accum):
            loss = forward()
            record.phase("forward")
            backward(loss)
            del loss
            record.phase("backward" if micro == case.grad_accum - 1 else "micro-batch")
            step(micro == case.grad_accum - 1)
        record.phase("step")
        if number < STEPS - 1:
            record.measured = {"phases": {}, "states": {}}
    return record.done()


def _deepspeed(case: Case) -> dict[str, Any]:
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # a compiler run that gloo does not need
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    accumulates = {"data_types": {"grad_accum_dtype": "fp32"}} if case.recipe == "deepspeed-fp32-accum" else {}
    settings = {
        "train_micro_batch_size_per_gpu": MICRO_BATCH,
        "gradient_accumulation_steps": case.grad_accum,
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "bf16": {"enabled": case.recipe != "fp32-adam"},
        "zero_optimization": {
            "stage": case.stage,
            "reduce_bucket_size": BUCKET,
            "stage3_max_reuse_distance": 0,
            "stage3_param_persistence_threshold": 0,
            "stage3_prefetch_bucket_size": 0,
            "stage3_max_live_parameters": 0,
            "overlap_comm": False,
            **case.options,
        },
        **accumulates,
    }
    meter = Meter()
    with meter:
        model = build(case.recompute)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
        del model, optimizer
        ids = torch.randint(0, CONFIG["vocab_size"], (MICRO_BATCH, SEQ_LEN))
        return _train(
            case,
            Record(meter, lambda: _deepspeed_states(engine)),
            lambda: engine(input_ids=ids, labels=ids).loss,
            engine.backward,
            lambda _last: engine.step(),
        )


def _deepspeed_states(engine: Any) -> dict[str, Iterable[Any]]:
    """The lists in which DeepSpeed 0.19.8 keeps its states, by attribute."""
    outer, params = engine.optimizer, list(engine.module.parameters())

    def listed(*names: str) -> list[Any]:
        return [tensors(getattr(outer, name, None)) for name in names]

    partitioned = hasattr(params[0], "ds_tensor")
    weights = [p.ds_tensor for p in params] if partitioned else [p.data for p in params]
    inner = getattr(outer, "optimizer", outer)
    states = list(inner.state.values())
    masters = [*tensors(getattr(outer, "single_partition_of_fp32_groups", None))]
    masters += tensors(getattr(outer, "fp32_partitioned_groups_flat", None))
    offloads = getattr(outer, "cpu_offload", False) or getattr(outer, "offload_optimizer", False)
    averaged = getattr(outer, "averaged_gradients", None)
    flat = [vars(value) for value in averaged.values() if hasattr(value, "__dict__")] if averaged else []
    return {
        "weights": [weights, listed("bit16_groups_flat")] if not partitioned else weights,
        "gathered": [p.data for p in params],
        "master": listed(
            "single_partition_of_fp32_groups",
            "fp32_groups_flat_partition",
            "fp32_partitioned_groups_flat",
            "fp32_groups_flat",
            "fp32_groups",
        ),
        "momentum": [state.get("exp_avg") for state in states],
        "variance": [state.get("exp_avg_sq") for state in states],
        "fp32 gradients": [master.grad for master in masters] if offloads else [],
        "16-bit copy": listed("param_buffer_of_bit16_for_cpu_offload_groups"),
        "accumulators": tensors(list((getattr(outer, "accumulated_grads_in_cpu", None) or {}).values())),
        "largest gradient": listed("temp_grad_buffer_for_cpu_offload"),
        "secondary": [getattr(p, "ds_secondary_tensor", None) for p in params],
        "bucket": [getattr(bucket, "buffer", None) for bucket in (getattr(outer, "ipg_buckets", None) or {}).values()],
        "gradients": [
            listed("averaged_gradients", "grad_partitions_flat_buffer", "grads_in_partition", "all_grad_tensors"),
            listed("_DeepSpeedZeroOptimizer_Stage3__param_id_to_grad_partition"),
            listed("fp32_groups_gradients_flat", "fp32_groups_gradients"),
            [tensors(list(found.values())) for found in flat],
            [getattr(p, "grad_accum", None) for p in params],
            [p.grad for p in params],
        ],
    }


def _torch(case: Case) -> dict[str, Any]:
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=case.ranks)
    meter = Meter()
    with meter:
        model = build(case.recompute)
        wrap = {"ddp": _ddp, "fsdp1": _fsdp1, "fsdp2": _fsdp2}[case.runtime]
        model, states = wrap(case, model)
        if case.options.get("zero"):
            from torch.distributed.optim import ZeroRedundancyOptimizer

            optimizer: Any = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3, fused=True)
        else:
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        ids = torch.randint(0, CONFIG["vocab_size"], (MICRO_BATCH, SEQ_LEN))
        synchronises = case.runtime != "ddp" and not case.options.get("no_sync")
        micro, quiet = [0], contextlib.ExitStack()

        def forward() -> Any:
            last = micro[0] % case.grad_accum == case.grad_accum - 1
            micro[0] += 1
            if case.runtime == "fsdp2":
                model.set_requires_gradient_sync(last or synchronises)
                model.set_reshard_after_backward(last or not case.options.get("keep"))
            elif not (last or synchronises):
                quiet.enter_context(model.no_sync())
            cast = torch.autocast("cpu", torch.bfloat16, enabled=bool(case.options.get("autocast")))
            with cast:
                return model(input_ids=ids, labels=ids).loss

        def backward(loss: Any) -> None:
            loss.backward()
            quiet.close()

        def step(last: bool) -> None:
            if last:
                optimizer.step()
                optimizer.zero_grad()

        def of_optimizer() -> dict[str, Iterable[Any]]:
            inner = optimizer.optim if case.options.get("zero") else optimizer
            kept = list(inner.state.values())
            return {"momentum": [s.get("exp_avg") for s in kept], "variance": [s.get("exp_avg_sq") for s in kept]}

        record = Record(meter, lambda: {**states(), **of_optimizer()})
        return _train(case, record, forward, backward, step)


def _ddp(case: Case, model: Any) -> tuple[Any, State]:
    view = case.options.get("bucket_view", False)
    wrapped = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=view)
    params = list(wrapped.parameters())
    return wrapped, lambda: {"weights": [p.data for p in params], "gradients": [p.grad for p in params]}


def _fsdp1(case: Case, model: Any) -> tuple[Any, State]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    strategy, mesh = (ShardingStrategy.FULL_SHARD if case.stage == 3 else ShardingStrategy.SHARD_GRAD_OP), None
    if group := case.options.get("shard_group"):
        strategy = ShardingStrategy.HYBRID_SHARD
        mesh = init_device_mesh("cpu", (case.ranks // group, group), mesh_dim_names=("replicate", "shard"))
    wrapped = FullyShardedDataParallel(
        model,
        sharding_strategy=strategy,
        auto_wrap_policy=ModuleWrapPolicy({type(model.model.layers[0])}),
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16),
        device_id=torch.device("cpu"),
        device_mesh=mesh,
        use_orig_params=True,
    )
    handles = [unit._handle for unit in FullyShardedDataParallel.fsdp_modules(wrapped) if unit._handle]

    def states() -> dict[str, Iterable[Any]]:
        flat = [handle.flat_param for handle in handles]
        return {
            "weights": [getattr(param, "_local_shard", None) for param in flat],
            "gathered": [getattr(param, "_full_param_padded", None) for param in flat],
            "gradients": [[getattr(p, "_saved_grad_shard", None) for p in flat], [p.grad for p in flat]],
        }

    return wrapped, states


def _fsdp2(case: Case, model: Any) -> tuple[Any, State]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh("cpu", (case.ranks,))
    if group := case.options.get("shard_group"):
        mesh = init_device_mesh("cpu", (case.ranks // group, group), mesh_dim_names=("replicate", "shard"))
    reduce = getattr(torch, case.options.get("reduce", "float32"))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)
    reshard = case.options.get("reshard") if case.stage == 3 else False
    offload = {"offload_policy": CPUOffloadPolicy(pin_memory=False)} if case.options.get("offload") else {}
    for block in model.model.layers:
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard, **offload)
    if case.options.get("units"):
        embedding, tail = model.model.embed_tokens, [model.model.norm, model.lm_head]
        fully_shard(embedding, mesh=mesh, mp_policy=policy, reshard_after_forward=case.stage == 3)
        fully_shard(tail, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    root = None if case.stage == 3 else False
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=root, **offload)
    groups = [m._get_fsdp_state()._fsdp_param_group for m in model.modules() if hasattr(m, "_get_fsdp_state")]
    params = [param for group in groups if group for param in group.fsdp_params]

    def whole_gradient(param: Any) -> Any:
        kept = getattr(param, "unsharded_accumulated_grad", None)
        return getattr(getattr(param, "_unsharded_param", None), "grad", None) if kept is None else kept

    def states() -> dict[str, Iterable[Any]]:
        return {
            "weights": [p._sharded_param_data for p in params],
            "gathered": [getattr(p, "all_gather_outputs", []) for p in params],
            "whole gradients": [whole_gradient(p) for p in params],
            "secondary": [getattr(p, "_sharded_post_forward_param_data", None) for p in params],
            "gradients": [p.sharded_param.grad for p in params],
        }

    return model, states


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    asked = MATRIX[int(sys.argv[1])]
    mp.spawn(rank_main, (asked, sys.argv[2]), nprocs=asked.ranks)
