"""One rank of a large FSDP2 job in one process: fake process group, fake tensors, PyTorch's own memory tracker.

`python -m tests.conformance.worlds NUMBER OUT.json` measures one of WORLDS.
"""

import json
import logging
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.row import Row
from zeroplan.core.estimate import estimate
from zeroplan.core.ledger import Ledger
from zeroplan.core.question import Question
from zeroplan.core.scheme import Scheme
from zeroplan.core.workload import Workload
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.presets import Presets
from zeroplan.units import Share

CONFIGS: dict[str, dict[str, Any]] = {
    "Llama-3-8B": {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
    },
    "Llama-2-7B": {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 11008,
        "vocab_size": 32000,
        "tie_word_embeddings": False,
    },
    "Llama-3.2-1B": {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "intermediate_size": 8192,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
    },
    "GPT-2 XL": {
        "model_type": "gpt2",
        "n_embd": 1600,
        "n_layer": 48,
        "n_head": 25,
        "n_positions": 8192,
        "vocab_size": 50257,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
    },
}
PEAK_WITHIN, ACTIVATIONS_WITHIN = 0.03, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One shape of one job."""

    model: str
    ranks: int
    seq_len: int
    recompute: str
    reshard: bool = True
    light: bool = False
    accelerate: bool = False
    """Wrapped and reduced as accelerate 1.15 does it: the embedding a unit, norm and head another, bf16."""

    @property
    def name(self) -> str:
        kept = ("" if self.reshard else ", not resharding") + (", as accelerate" if self.accelerate else "")
        return f"{self.model}, {self.ranks} ranks, {self.seq_len} tokens, recompute {self.recompute}{kept}"


WORLDS = [
    *(
        World(
            model=model,
            ranks=ranks,
            seq_len=seq_len,
            recompute=recompute,
            light=(model, ranks, seq_len) in (("Llama-3-8B", 64, 2048), ("GPT-2 XL", 8, 2048)) and recompute == "full",
        )
        for model in CONFIGS
        for ranks in (8, 64)
        for seq_len in (2048, 8192)
        for recompute in ("none", "full")
    ),
    World(model="Llama-3-8B", ranks=8, seq_len=2048, recompute="full", reshard=False),
    World(model="Llama-3.2-1B", ranks=8, seq_len=512, recompute="none", light=True),
    *(
        World(model=model, ranks=ranks, seq_len=seq_len, recompute=recompute, accelerate=True)
        for model in ("Llama-3-8B", "Llama-2-7B")
        for ranks in (8, 64)
        for seq_len in (512, 2048, 8192)
        for recompute in ("none", "full")
    ),
    World(model="Llama-3-8B", ranks=8, seq_len=2048, recompute="full", reshard=False, accelerate=True, light=True),
    World(model="Llama-3.2-1B", ranks=8, seq_len=2048, recompute="full", accelerate=True),
]


def predicted(world: World, presets: Presets) -> Ledger:
    """zeroplan's ledger of a world."""
    framework = presets.framework("fsdp2")
    workload = Workload(
        seq_len=world.seq_len,
        recompute=world.recompute,
        loss=presets.loss("fp32"),
        selective=framework.selective,
    )
    question = Question(
        model=read_config(CONFIGS[world.model]),
        gpus=world.ranks,
        recipe=presets.recipe("fsdp-mixed"),
        framework=framework,
        cards=(),
        headroom=Share(0, 1),
        workload=workload,
        scheme=Scheme(switches=("embedding_unit", "reduce_16bit") if world.accelerate else ()),
    )
    return estimate(question.plan(None, 3 if world.reshard else 2)).memory


def rows(world: World, measured: dict[str, int], presets: Presets) -> list[Row]:
    """States to the byte, what is kept for the backward pass, and the peak."""
    ledger = predicted(world, presets)
    kept = sum(t.bytes for t in ledger.terms if t.role == "activations" and {"logits", "loss"} <= set(t.moments))
    states = {
        "weights": "states.parameters",
        "gradients": "states.gradients",
    }
    terms: Counter[str] = Counter()
    for term in ledger.terms:
        terms[term.name.removesuffix(".rows")] += term.bytes
    adam = terms["states.optimizer.momentum"] + terms["states.optimizer.variance"] + terms["states.optimizer"]
    exact = [(what, terms[term], measured[what], 0) for what, term in states.items()]
    near = [
        ("optimizer", adam, measured["optimizer"], 4096),  # a step counter for each tensor
        ("activations", kept, measured["activations"], round(ACTIVATIONS_WITHIN * measured["activations"])),
        ("peak", ledger.peak_bytes, measured["peak"], round(PEAK_WITHIN * measured["peak"])),
    ]
    return [
        Row(case=world.name, what=what, predicted=ours, measured=theirs, within=within)
        for what, ours, theirs, within in (*exact, *near)
    ]


def measure(world: World) -> dict[str, int]:
    """Bytes on rank 0: of each state, of what the forward pass keeps, and of the peak of the second step."""
    import torch
    import torch.distributed as dist
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers import AutoConfig, AutoModelForCausalLM

    logging.disable(logging.WARNING)
    dist.init_process_group("fake", rank=0, world_size=world.ranks, store=FakeStore())
    mesh = init_device_mesh("cpu", (world.ranks,))  # outside of the fake mode
    config = AutoConfig.for_model(**CONFIGS[world.model], attn_implementation="sdpa", use_cache=False)
    config.max_position_embeddings = 8192
    with FakeTensorMode():
        model: Any = AutoModelForCausalLM.from_config(config).train()
        # fake tensors look like tracing, for which a mask is built; a training run passes is_causal instead
        sys.modules[type(model).__module__].create_causal_mask = lambda *_args, **_more: None  # type: ignore[attr-defined]
        if world.recompute == "full":
            model.gradient_checkpointing_enable({"use_reentrant": False})
        reduced = torch.bfloat16 if world.accelerate else torch.float32
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduced)
        blocks = model.transformer.h if config.model_type == "gpt2" else model.model.layers
        reshard = None if world.reshard else False
        for block in blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
        if world.accelerate:
            tied = model.lm_head.weight is model.model.embed_tokens.weight
            tail = [model.model.norm, *([model.model.embed_tokens] if tied else []), model.lm_head]
            if not tied:
                fully_shard(model.model.embed_tokens, mesh=mesh, mp_policy=policy, reshard_after_forward=world.reshard)
            fully_shard(tail, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
        fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        tracker = FSDPMemTracker(model, optimizer)
        ids = torch.randint(0, config.vocab_size, (1, world.seq_len))
        tracker.track_inputs((ids,))

        def now(kind: str = "current") -> dict[str, int]:
            found = tracker.get_tracker_snapshot(kind)[torch.device("cpu")]
            return {getattr(name, "value", str(name)): size for name, size in found.items()}

        def step() -> dict[str, int]:
            tracker.reset_mod_stats()
            tracker._peak_mem_snap = tracker.get_tracker_snapshot()
            tracker._peak_mem = {device: sizes["Total"] for device, sizes in tracker._peak_mem_snap.items()}
            before = now()
            loss = model(input_ids=ids, labels=ids).loss
            kept = now()["Activation"] - before.get("Activation", 0)
            loss.backward()
            del loss
            after = now()
            peak = now("peak")["Total"]
            optimizer.step()
            optimizer.zero_grad()
            return {
                "weights": after["Sharded Param"],
                "gradients": after["Sharded Grad"],
                "optimizer": after["OptState"],
                "activations": kept,
                "peak": peak,
            }

        with tracker:
            step()  # makes Adam's states
            return step()


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(WORLDS[int(sys.argv[1])])), "utf-8")
