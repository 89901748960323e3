"""The whole memory of a step: against measured steps, and the laws that hold for every plan."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.test_laws import worked
from zeroplan.core.estimate import estimate, memory
from zeroplan.core.hardware import Gpu
from zeroplan.core.ledger import Ledger
from zeroplan.core.mends import binding, selective_percent
from zeroplan.core.meters import meters, need, taken_bytes
from zeroplan.core.moments import MOMENTS
from zeroplan.core.question import Card, Question
from zeroplan.core.solve import SOLVERS, solve
from zeroplan.core.verdict import DOES_NOT_FIT, FITS, TIGHT, fit
from zeroplan.core.workload import Workload
from zeroplan.formats.huggingface import read_config
from zeroplan.formats.presets import Presets
from zeroplan.units import GIB, Share

PRESETS = Presets()
WORLDS = json.loads((Path(__file__).parent / "data" / "fsdp2-worlds.json").read_text("utf-8"))
FRAMEWORKS = ["zero", "deepspeed", "fsdp2", "fsdp1", "ddp", "megatron"]
SMALL = read_config(
    {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 1000}
)


def ask(framework: str, model: Any = SMALL, gpus: int = 8, **changes: Any) -> Question:
    """A question with activations; `changes` are of the workload, or of the question."""
    rules = PRESETS.framework(framework)
    own = {name: changes.pop(name) for name in ("grad_accum", "kernel", "cards", "recipe") if name in changes}
    work = {"seq_len": 512, "fused": rules.fused, "selective": rules.selective, **changes}
    loss = work.pop("loss", rules.default_loss)
    recipe = PRESETS.recipe(own.pop("recipe", rules.default_recipe))
    workload = Workload(loss=PRESETS.loss(loss), **work)
    return Question(
        model=model,
        gpus=gpus,
        recipe=recipe,
        framework=rules,
        cards=own.pop("cards", ()),
        headroom=Share(0, 1),
        workload=workload,
        chunked=PRESETS.loss("chunked"),
        **own,
    )


def ledgers(question: Question) -> dict[int, Ledger]:
    return {s: memory(question.plan(None, s)) for s in question.framework.stage_numbers if question.offers(s)}


@pytest.mark.parametrize(
    ("stage", "row"),
    [*((3, row) for row in WORLDS["rows"]), *((2, row) for row in WORLDS["rows_without_reshard"])],
    ids=lambda given: "-".join(map(str, given[:5])) if isinstance(given, list) else str(given),
)
def test_fsdp2_peaks_where_it_was_measured_to(stage: int, row: list[Any]) -> None:
    name, ranks, seq, batch, recompute, peak, in_step = row
    model = read_config(WORLDS["models"][name])
    question = ask("fsdp2", model, ranks, seq_len=seq, micro_batch=batch, recompute=recompute, fused=())
    ledger = memory(question.plan(None, stage))
    assert ledger.peak_bytes == pytest.approx(peak, rel=0.002)
    assert ledger.bytes_at("update") == pytest.approx(in_step, rel=0.01)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("attention", ["flash", "eager", "fused-softmax"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    "name", ["llama-3.2-1b", "gpt2", "mixtral-8x7b", "deepseek-v2-lite", "gemma-2-2b", "falcon-7b"]
)
def test_formulas_of_the_whole_are_honest(name: str, framework: str, attention: str, recompute: str) -> None:
    question = ask(framework, PRESETS.model(name).model, attention=attention, recompute=recompute, grad_accum=2)
    for stage in ledgers(question):
        for term in estimate(question.plan(None, stage)).memory.terms:
            assert worked(term) == term.bytes, term.name


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_peak_is_the_largest_moment_and_pools_are_no_smaller(framework: str) -> None:
    for ledger in ledgers(ask(framework)).values():
        sums = {moment: sum(t.bytes for t in ledger.alive_at(moment)) for moment in MOMENTS}
        assert ledger.peak_bytes == max(sums.values()) == sums[ledger.peak_moment]
        assert ledger.pooled_bytes >= ledger.peak_bytes


@settings(max_examples=60, deadline=None)
@given(
    framework=st.sampled_from(FRAMEWORKS),
    seq=st.integers(1, 10**5),
    batch=st.integers(1, 64),
    gpus=st.integers(1, 4096),
    recompute=st.sampled_from(["none", "selective", "full"]),
    loss=st.sampled_from(["hf", "fp32", "fused", "chunked", "linear", "bf16"]),
)
def test_more_tokens_need_more_and_more_gpus_no_more(
    framework: str, seq: int, batch: int, gpus: int, recompute: str, loss: str
) -> None:
    here = ask(framework, gpus=gpus, seq_len=seq, micro_batch=batch, recompute=recompute, loss=loss)
    longer, larger = here.at("seq_len", seq + 1), here.at("micro_batch", batch + 1)
    wider = here.at("gpus", gpus * 2)
    for stage, ledger in ledgers(here).items():
        assert ledgers(longer)[stage].peak_bytes >= ledger.peak_bytes
        assert ledgers(larger)[stage].peak_bytes >= ledger.peak_bytes
        if not (stage < 2 and gpus == 1):  # DDP's buckets come with the second GPU
            assert ledgers(wider)[stage].peak_bytes <= ledger.peak_bytes


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["llama-3.1-8b", "gpt2", "llama-3.2-1b", "mixtral-8x7b"]),
    gpus=st.integers(1, 1024),
    seq=st.integers(1, 10**5),
    recompute=st.sampled_from(["none", "selective", "full"]),
)
def test_a_higher_stage_of_the_paper_never_needs_more(name: str, gpus: int, seq: int, recompute: str) -> None:
    found = ledgers(ask("zero", PRESETS.model(name).model, gpus, seq_len=seq, recompute=recompute))
    peaks = [found[stage].peak_bytes for stage in sorted(found)]
    assert peaks[:3] == sorted(peaks[:3], reverse=True)
    gathered = max(term.bytes for term in found[3].terms if term.name == "gathered.block") if gpus > 1 else 0
    assert peaks[3] <= peaks[2] + gathered
    if gpus == 1:
        assert len(set(peaks)) == 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_recomputing_more_keeps_less(framework: str) -> None:
    kept = [
        ledgers(ask(framework, PRESETS.model("llama-3.2-1b").model, seq_len=8192, attention="eager", recompute=how))
        for how in ("none", "selective", "full")
    ]
    for stage in kept[0]:
        sizes = [ledger[stage].bytes_at("loss") for ledger in kept]
        assert sizes == sorted(sizes, reverse=True)


def test_checkpoints_on_the_cpu_are_not_on_the_gpu() -> None:
    for where, tier in (("gpu", "gpu"), ("cpu", "cpu")):
        ledger = memory(ask("zero", recompute="full", checkpoints=where).plan(None, 1))
        [term] = [term for term in ledger.terms if term.name == "activations.checkpoints"]
        assert term.tier == tier
        assert (term in ledger.alive_at("loss")) == (where == "gpu")


def test_a_checkpoint_for_every_other_block_halves_them_and_doubles_what_is_computed_again() -> None:
    one, two = (memory(ask("zero", recompute="full", every=every).plan(None, 1)) for every in (1, 2))

    def of(ledger: Ledger, name: str) -> int:
        return next(term.bytes for term in ledger.terms if term.name == f"activations.{name}")

    assert of(one, "checkpoints") == 2 * of(two, "checkpoints")
    assert of(one, "recomputed") < of(two, "recomputed") < 2 * of(one, "recomputed")


@pytest.mark.parametrize("kernel", ["fused", "foreach", "loop"])
def test_the_optimizer_kernel_shows_in_the_step(kernel: str) -> None:
    """FSDP holds 16/N in the step, 20/N with foreach and 16/N and three copies of a tensor one by one (torch 2.13)."""
    ledger = memory(ask("fsdp2", gpus=4, kernel=kernel).plan(None, 3))
    tensor = SMALL.largest_tensor() / SMALL.params
    per_param = {"fused": 16, "foreach": 20, "loop": 16 + 12 * tensor}[kernel]
    assert ledger.bytes_at("update") * 4 / SMALL.params == pytest.approx(per_param, rel=1e-3)


def test_meters_are_in_order_and_without_activations_unknown() -> None:
    plan = ask("fsdp2").plan(None, 3)
    shown = meters(plan, memory(plan), None)
    assert shown.allocated is not None
    assert shown.reserved is not None
    assert shown.device is not None
    for bounds in (shown.resident, shown.allocated, shown.reserved, shown.device):
        assert bounds.low <= bounds.expected <= bounds.high
    assert shown.resident.expected <= shown.allocated.expected <= shown.reserved.expected <= shown.device.expected
    bare = PRESETS.framework("fsdp2")
    question = Question(
        model=SMALL, gpus=8, recipe=PRESETS.recipe("fsdp-mixed"), framework=bare, cards=(), headroom=Share(0, 1)
    )
    alone = question.plan(None, 3)
    shown = meters(alone, memory(alone), None)
    assert (shown.allocated, shown.reserved, shown.device) == (None, None, None)


def test_the_allocator_is_expected_to_take_no_more_than_there_is_while_it_can_give_back() -> None:
    """Between what it takes when free and what it needs squeezed, the card's usable memory is the expected."""
    plan = ask("fsdp2", seq_len=4096).plan(None, 3)
    ledger = memory(plan)
    free = meters(plan, ledger, None).reserved
    assert free is not None
    squeezed = need(plan, ledger).squeezed
    between = (free.expected + squeezed) // 2
    for usable, expected in ((free.expected * 2, free.expected), (between, between), (squeezed // 2, free.expected)):
        card = Card(gpu=Gpu(name="custom", title="own", usable_bytes_stated=usable))
        found = meters(plan, ledger, card.gpu, usable).reserved
        assert found is not None
        assert found.expected == expected
        assert found.high == free.high


def test_a_compiled_run_takes_less() -> None:
    plans = [ask("fsdp2", seq_len=4096, compiled=compiled).plan(None, 3) for compiled in ("none", "model")]
    eager, compiled = (meters(plan, memory(plan), None).reserved for plan in plans)
    assert eager is not None
    assert compiled is not None
    assert compiled.low < eager.low
    assert compiled.expected < eager.expected
    assert compiled.high < eager.high


def test_autocast_keeps_an_fp32_residual_stream_at_stage_0_alone() -> None:
    plans = {stage: ask("fsdp2", recompute="full").plan(None, stage) for stage in (0, 3)}
    sizes = {
        stage: next(t.bytes for t in memory(plan).terms if t.name == "activations.checkpoints")
        for stage, plan in plans.items()
    }
    assert sizes[0] == 2 * sizes[3] == 512 * 4 * 4 * 256


def test_a_gib_is_not_a_gb() -> None:
    """One fp32 copy of the logits of GPT-2 large, 4 x 1,024 tokens, 50,304 entries: 786 MiB (Megatron-LM issue 525)."""
    config = {"model_type": "gpt2", "n_embd": 1280, "n_layer": 36, "n_head": 20, "vocab_size": 50304}
    plan = ask("megatron", read_config(config), gpus=1, seq_len=1024, micro_batch=4, loss="fp32").plan(None, 0)
    [kept] = [term for term in memory(plan).terms if term.name == "logits.kept"]
    assert kept.bytes == 786 * GIB // 1024


def test_checkpoints_of_a_100b_model_in_the_zero_paper() -> None:
    """One per block at h = 8192, 125 layers, 32 x 1024 tokens: 67.1 GB; every second 33.6, which section 6.1 prints."""
    config = {"model_type": "gpt2", "n_embd": 8192, "n_layer": 125, "n_head": 64, "n_positions": 1024}
    sizes = []
    for every in (1, 2):
        work = {"seq_len": 1024, "micro_batch": 32, "recompute": "full", "every": every}
        ledger = memory(ask("zero", read_config(config), 1, **work).plan(None, 0))
        sizes += [term.bytes for term in ledger.terms if term.name == "activations.checkpoints"]
    assert sizes == [67_108_864_000, 67_108_864_000 * 63 // 125]


@pytest.mark.parametrize(
    ("loss", "kept", "forward", "backward"),
    [("fp32", 4, 10, 12), ("hf", 6, 10, 14), ("fp32-returned", 8, 10, 16), ("bf16", 2, 4, 6)],
)
def test_logits_are_counted_as_measured(loss: str, kept: int, forward: int, backward: int) -> None:
    """Bytes per token and vocabulary entry (torch 2.13, transformers 5.24; fp32-returned derived)."""
    terms = {term.name: term for term in memory(ask("zero", loss=loss).plan(None, 0)).terms}
    each = {name: terms[f"logits.{name}"].bytes // (512 * 1000) for name in ("kept", "forward", "backward")}
    assert (each["kept"], each["kept"] + each["forward"]) == (kept, forward)
    assert each["kept"] + each["backward"] == backward


def test_capped_logits_are_kept_once_more() -> None:
    """Gemma-2's tanh keeps its output: kept 6, forward 12, backward 14 bytes, logits dropped (torch 2.13)."""
    question = ask("zero", PRESETS.model("gemma-2-2b").model, loss="fp32")
    terms = {term.name: term for term in memory(question.plan(None, 0)).terms}
    each = {name: terms[f"logits.{name}"].bytes // (512 * 256_000) for name in ("kept", "forward", "backward")}
    assert (each["kept"], each["kept"] + each["forward"], each["kept"] + each["backward"]) == (6, 12, 14)


def test_returned_logits_live_through_the_backward_pass() -> None:
    ledger = memory(ask("fsdp1", loss="hf").plan(None, 3))
    [returned] = [term for term in ledger.terms if term.name == "logits.returned"]
    assert returned.bytes == 2 * 512 * 1000
    assert {"first_block", "last_block_done", "end", "update"} <= set(returned.moments)


@pytest.mark.parametrize(("tied", "kinds"), [(True, 1), (False, 0)])
def test_a_tied_head_has_two_gradients_and_their_sum(tied: bool, kinds: int) -> None:
    config = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 4, "tie_word_embeddings": tied}
    model = read_config({**config, "num_attention_heads": 4, "vocab_size": 1000})
    for framework in ("fsdp2", "deepspeed"):
        for ledger in ledgers(ask(framework, model)).values():
            found = [term.bytes for term in ledger.terms if term.name == "buffers.tied_gradient"]
            assert len(found) == kinds
            assert not found or found[0] >= 2 * 256 * 1000


def test_a_slice_that_cuts_a_tensor_keeps_it_whole() -> None:
    """One tensor over 4 ranks is kept whole by each (DeepSpeed 0.19.8, measured)."""

    def overhang(config: dict[str, Any], gpus: int) -> int:
        ledger = memory(ask("deepspeed", read_config(config), gpus).plan(None, 2))
        return sum(term.bytes for term in ledger.terms if term.name == "buffers.slice_overhang")

    wide = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    wide |= {"intermediate_size": 1, "vocab_size": 100_000, "tie_word_embeddings": True}
    params = read_config(wide).params
    assert overhang(wide, 1) == 0
    assert overhang(wide, 4) >= 2 * (64 * 100_000 - -(-params // 4))


def test_a_chunked_loss_holds_one_chunk() -> None:
    whole, parts = (memory(ask("zero", loss=loss).plan(None, 0)) for loss in ("fp32", "chunked"))

    def logits(ledger: Ledger) -> int:
        return sum(term.bytes for term in ledger.alive_at("loss") if term.name.startswith("logits"))

    assert logits(whole) == 8 * logits(parts)


def own(usable_bytes: int) -> tuple[Card, ...]:
    return (Card(gpu=Gpu(name="custom", title="own", usable_bytes_stated=usable_bytes)),)


@settings(max_examples=40, deadline=None)
@given(
    framework=st.sampled_from(FRAMEWORKS),
    what=st.sampled_from(["max-micro-batch", "max-seq-len", "min-gpus"]),
    usable=st.integers(10**7, 10**11),
    recompute=st.sampled_from(["none", "full"]),
)
def test_what_is_solved_for_fits_and_the_next_does_not(framework: str, what: str, usable: int, recompute: str) -> None:
    question = ask(framework, recompute=recompute, cards=own(usable))
    solver = SOLVERS[what]
    step = -1 if solver.fewest else 1

    def verdict(stage: int, at: int) -> str:
        return fit(question.at(solver.field, at))[0].stage(stage).verdict

    for solution in solve(question, what):
        for answer, good in ((solution.answer, (FITS,)), (solution.tight_answer, (FITS, TIGHT))):
            if answer is None:
                assert verdict(solution.stage, solver.last if solver.fewest else 1) not in good
                continue
            assert verdict(solution.stage, answer) in good
            if answer + step not in (0, solver.last + 1):
                assert verdict(solution.stage, answer + step) not in good


def test_a_sequence_is_no_longer_than_the_positions() -> None:
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 128, "vocab_size": 100}
    question = ask("zero", read_config(config), 1, seq_len=16, cards=own(10**12))
    assert [(s.answer, s.at_limit) for s in solve(question, "max-seq-len")] == [(128, True)] * 4


def test_the_verdict_compares_reserved_memory_with_usable_memory() -> None:
    """fits when high is within it, tight when only the expected is (or can be squeezed to be), else does not fit."""
    plan = ask("fsdp2", seq_len=4096).plan(None, 3)
    needed = need(plan, memory(plan))
    edges = ((needed.comfortable, FITS), (needed.comfortable - 1, TIGHT), (needed.squeezed, TIGHT))
    for usable, expected in (*edges, (needed.squeezed - 1, DOES_NOT_FIT)):
        answer = fit(ask("fsdp2", seq_len=4096, cards=own(usable)))[0].stage(3)
        assert answer.verdict == expected
        assert answer.meters is not None
        assert answer.meters.reserved is not None
        assert (answer.meters.reserved.high <= usable) == (expected == FITS)
        assert (answer.meters.reserved.expected <= usable) == (expected != DOES_NOT_FIT)


def test_mends_save_what_they_say() -> None:
    question = ask("fsdp2", PRESETS.model("llama-3.1-8b").model, seq_len=8192, micro_batch=4, cards=own(80 * GIB))
    answer = fit(question)[0].stage(3)
    found = binding(question, question.cards[0], answer)
    assert found is not None
    assert answer.verdict == DOES_NOT_FIT
    options = [mend.option for mend in found.mends]
    assert options == ["--loss chunked", "--micro-batch 1", "--recompute selective", "--recompute full"]
    smaller = fit(question.at("micro_batch", 1))[0].stage(3)
    [one] = [mend for mend in found.mends if mend.option == "--micro-batch 1"]
    assert answer.estimate is not None
    assert smaller.estimate is not None
    assert smaller.meters is not None
    assert smaller.meters.reserved is not None
    assert one.taken_bytes == taken_bytes(smaller.estimate)
    assert one.saved_bytes == taken_bytes(answer.estimate) - taken_bytes(smaller.estimate)
    assert one.verdict == smaller.verdict
    assert found.higher_saves_bytes is None


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_mend_is_what_typing_it_gives(framework: str) -> None:
    """The loss in chunks keeps nothing of the loss that it replaces."""
    model = PRESETS.model("llama-3.1-8b").model
    asked: dict[str, Any] = {"seq_len": 8192, "micro_batch": 2, "recompute": "full", "cards": own(30 * GIB)}
    question = ask(framework, model, **asked)
    typed = ask(framework, model, **{**asked, "loss": "chunked"})
    for answer in fit(question)[0].offered:
        found = binding(question, question.cards[0], answer)
        assert found is not None
        other = fit(typed)[0].stage(answer.stage)
        assert other.estimate is not None
        for mend in found.mends:
            if mend.option == "--loss chunked":
                assert mend.taken_bytes == taken_bytes(other.estimate)


def test_the_fewest_gpus_where_slices_cut_tensors() -> None:
    """What DeepSpeed keeps of tensors at slice ends does not shrink steadily: 15 fit, 16 do not, 17 do again."""
    question = ask(
        "deepspeed", PRESETS.model("llama-3.1-8b").model, 2, seq_len=4096, recompute="full", cards=own(58_800_000_000)
    )
    [solution] = [s for s in solve(question, "min-gpus") if s.stage == 1]
    verdicts = {n: fit(question.at("gpus", n))[0].stage(1).verdict for n in range(2, 18)}
    assert solution.answer == min(n for n, verdict in verdicts.items() if verdict == FITS) == 15
    assert solution.tight_answer == min(n for n, verdict in verdicts.items() if verdict != DOES_NOT_FIT)
    assert verdicts[16] == TIGHT


def test_nothing_is_to_mend_where_it_fits() -> None:
    question = ask("zero", cards=own(10**12))
    found = binding(question, question.cards[0], fit(question)[0].stage(1))
    assert found is not None
    assert found.mends == ()


@pytest.mark.parametrize(("selective", "percent"), [("matmuls", 13), ("attention", 1)])
def test_the_price_of_selective_recomputation(selective: str, percent: int) -> None:
    """A third of the share of products done again, 12.2%; the core of GPT-3, 0.9% (Korthikanti et al., appendix A)."""
    gpt3 = {"model_type": "gpt2", "n_embd": 12288, "n_layer": 96, "n_head": 96, "n_positions": 2048}
    gpt3 |= {"vocab_size": 51200}
    model = PRESETS.model("llama-3.1-8b").model if selective == "matmuls" else read_config(gpt3)
    assert selective_percent(ask("zero", model, seq_len=2048, selective=selective)) == percent
