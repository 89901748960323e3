"""Real models on the command line: what they are read from, what is answered, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import JSON, answer, run

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 1024,
    "vocab_size": 1000,
}
BATCH = ["--seq-len", "4096", "--micro-batch", "2"]
WHOLE = ["fit", "--model", "llama-3.1-8b", "--gpus", "8", "--gpu", "h100", "--framework", "fsdp2", *BATCH]
BATCH_1K = ["--seq-len", "1024"]
KERNELS = ("fused", "foreach", "loop")


def config(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**LLAMA, **changes}), "utf-8")
    return path


def only(found: Any) -> Any:
    """The stages of the one card of an answer, by number."""
    [card] = found["results"]
    return {stage["stage"]: stage for stage in card["stages"]}


def test_a_config_its_folder_and_a_preset_are_read_and_a_path_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config(tmp_path)
    by_file, by_folder = (answer("fit", "--model", str(p), "--gpus", "8", "--gpu", "h100") for p in (path, tmp_path))
    assert by_file["request"]["params"] == by_folder["request"]["params"]
    assert answer("fit", "--model", "gpt2", "--gpus", "8")["request"]["params"] == 124_439_808
    named = tmp_path / "gpt2"
    named.mkdir()
    config(named)
    monkeypatch.chdir(tmp_path)
    assert answer("fit", "--model", "gpt2", "--gpus", "8")["request"]["params"] == by_file["request"]["params"]


def test_without_a_length_the_answer_is_that_of_the_exact_count() -> None:
    for framework in ("zero", "deepspeed", "fsdp2", "megatron"):
        args = ["--gpus", "8", "--gpu", "h100", "--framework", framework]
        model = answer("fit", "--model", "llama-3.1-8b", *args)
        count = answer("fit", "--params", "8030261248", *args)
        assert model["request"].pop("model") == "llama-3.1-8b"
        count["request"].pop("model")
        assert model == count
    text = " ".join(run("fit", "--model", "llama-3.1-8b", "--gpus", "8", "--gpu", "h100").stdout.split())
    assert "Activations: not counted; --seq-len adds them, with --micro-batch 1." in text


@pytest.mark.parametrize("model", ["flan-t5-xxl", "bert-large", "qwen3-next-80b-a3b", "llava-1.5-7b"])
def test_what_is_not_modelled_says_so_and_answers_for_the_states(model: str) -> None:
    args = ["fit", "--model", model, "--gpus", "64", "--gpu", "h100"]
    with_length, without = answer(*args, "--seq-len", "512"), answer(*args)
    [card], [bare] = with_length["results"], without["results"]
    assert any("Activations are not counted" in note for note in card.pop("notes"))
    assert not any("Activations are not counted" in note for note in bare.pop("notes"))
    assert card == bare
    assert with_length["request"]["headroom"] == 0.1
    assert "are not modelled yet" in " ".join(run(*args, "--seq-len", "512").stdout.split())


def test_a_screen_in_another_encoding() -> None:
    ran = run(*WHOLE, PYTHONIOENCODING="ascii")
    assert ran.status == 0
    assert ran.stdout.isascii()


def test_lengths_are_named_by_powers_of_two() -> None:
    assert answer("fit", "--model", "gpt2", "--gpus", "8", "--seq-len", "1k")["request"]["seq_len"] == 1024


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--mbs", "2"], "Did you mean --micro-batch?"),
        (["--gradient-checkpointing"], "Did you mean --recompute?"),
        (["--tp", "2"], "not modelled yet"),
        (["--offload", "activations=cpu"], "Add --recompute full."),
        (["--checkpoints", "cpu"], "Did you mean --offload activations?"),
    ],
)
def test_options_by_other_names_and_without_effect(args: list[str], said: str) -> None:
    ran = run(*WHOLE, *args)
    assert ran.status == 2
    assert said in ran.stderr


def test_nccl_is_taken_off_what_is_usable_on_several_gpus() -> None:
    def usable(*args: str) -> int:
        [card] = answer("fit", "--model", "gpt2", "--gpu", "h100", *args)["results"]
        return int(card["usable_bytes"])

    one, several, states = usable("--gpus", "1", *BATCH_1K), usable("--gpus", "8", *BATCH_1K), usable("--gpus", "8")
    assert one == states
    assert one - several == 544 * 2**20


def test_meters_are_in_the_answer_and_the_verdict_follows_them() -> None:
    found = answer(*WHOLE)
    [card] = found["results"]
    assert found["request"]["headroom"] == 0
    assert card["budget_bytes"] == card["usable_bytes"]
    for stage in card["stages"]:
        if stage["verdict"] == "not-offered":
            assert stage["meters"] is None
            continue
        meters = stage["meters"]
        assert list(meters) == ["resident", "allocated", "reserved", "device"]
        assert meters["resident"]["expected"] == stage["resident_bytes"]
        assert meters["allocated"]["expected"] == stage["peak_bytes"]
        reserved = meters["reserved"]
        fits, tight = (reserved[bound] <= card["usable_bytes"] for bound in ("high", "expected"))
        assert stage["verdict"] == ("fits" if fits else "tight" if tight else "does-not-fit")
        assert stage["spare_bytes"] == card["budget_bytes"] - reserved["expected"]
        alive = sum(t["bytes"] for t in stage["memory"] if stage["peak_moment"] in t["moments"] and t["tier"] == "gpu")
        assert alive == stage["peak_bytes"] == max(stage["moment_bytes"].values())


def test_the_binding_terms_are_the_largest_at_the_peak() -> None:
    [card] = answer(*WHOLE)["results"]
    bound = card["binding"]
    stage = next(s for s in card["stages"] if s["stage"] == bound["stage"])
    alive = [t["bytes"] for t in stage["memory"] if bound["moment"] in t["moments"] and t["tier"] == "gpu"]
    assert [term["bytes"] for term in bound["terms"]] == sorted(alive, reverse=True)[:3]
    bare = answer("fit", "--params", "7e9", "--gpus", "8", "--gpu", "h100")
    assert only(bare)[0]["meters"]["reserved"] is None
    assert bare["results"][0]["binding"] is None


def test_a_stated_headroom_is_kept_with_activations_too() -> None:
    plain, kept = answer(*WHOLE), answer(*WHOLE, "--headroom", "20%")
    assert kept["results"][0]["budget_bytes"] < plain["results"][0]["budget_bytes"]


def test_options_change_what_they_say() -> None:
    base = only(answer(*WHOLE))[3]["peak_bytes"]
    for less in (["--recompute", "full"], ["--recompute", "selective"], ["--fused", "norm,mlp"], ["--loss", "chunked"]):
        assert only(answer(*WHOLE, *less))[3]["peak_bytes"] < base, less
    for more in (["--attention", "eager"], ["--loss", "hf"]):
        assert only(answer(*WHOLE, *more))[3]["peak_bytes"] > base, more
    full = [*WHOLE, "--recompute", "full"]
    assert only(answer(*full, "--offload", "activations=cpu"))[3]["peak_bytes"] < only(answer(*full))[3]["peak_bytes"]
    step = [only(answer(*WHOLE, "--optimizer-kernel", k))[3]["moment_bytes"]["update"] for k in KERNELS]
    assert min(step) == step[KERNELS.index("fused")]
    assert len(set(step)) == 3


def test_experts_gathered_as_one_module_or_one_by_one() -> None:
    args = ["fit", "--model", "mixtral-8x7b", "--gpus", "16", "--gpu", "h100", "--framework", "deepspeed", *BATCH]
    sizes = []
    for experts in ("packed", "listed"):
        memory = only(answer(*args, "--experts", experts))[3]["memory"]
        sizes += [term["bytes"] for term in memory if term["name"] == "gathered.modules"]
    assert sizes[0] > 2 * 1_409_286_144 > sizes[1]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("fit --model llama-3.1-8b --params 8e9 --gpus 8", "Give --model or --params, not both"),
        ("fit --params 8e9 --gpus 8 --seq-len 512", "Give --model instead of --params"),
        ("fit --model gpt2 --gpus 8 --seq-len 1025", "has 1,024 learned positions"),
        ("fit --model gpt2 --gpus 8 --micro-batch 2", "changes nothing without --seq-len"),
        ("fit --model gpt2 --gpus 8 --compile all", "--compile: changes nothing without"),
        ("fit --model gtp2 --gpus 8", "Did you mean gpt2"),
        ("fit --model ./no.json --gpus 8", "does not exist"),
        ("fit --model gpt2 --gpus 8 --seq-len -1", "is negative"),
        ("fit --model gpt2 --gpus 8 --seq-len nan", "is not a number"),
        ("fit --model gpt2 --gpus 8 --seq-len 512 --recompute every-0", "outside 1 to"),
        ("fit --model gpt2 --gpus 8 --seq-len 512 --recompute some", "It is none, selective"),
        ("fit --model gpt2 --gpus 8 --seq-len 512 --fused nrom", "Parts: norm, mlp"),
        ("fit --model gpt2 --gpus 8 --seq-len 512 --loss hff", "Did you mean hf"),
        ("solve max-micro-batch --model gpt2 --gpus 8", "--seq-len: is missing"),
        ("solve max-seq-len --model bert-large --gpus 8", "of bert are not modelled yet"),
        ("solve max-seq-len --model gpt2 --gpus 8 --seq-len 9", "solve max-seq-len finds it"),
        ("solve max-params --model gpt2 --gpus 8", "--model: solve max-params finds it"),
        ("sweep --params 7e9 --gpus 8 --over seq-len=1,2", "Give --model instead of --params"),
    ],
)
def test_bad_questions_about_models(args: str, said: str) -> None:
    ran = run(*args.split())
    assert (ran.status, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        json.dumps({"model_type": "\x1b[31mred"}),
        json.dumps({"model_type": "llama", "hidden_size": "[bold]x"}),
        json.dumps({**LLAMA, "hidden_size": None}),
        json.dumps({**LLAMA, "num_hidden_layers": 10**9}),
        json.dumps({**LLAMA, "intermediate_size": [1, 2, 3, 4]}),
        json.dumps({**LLAMA, "vocab_size": -1}),
        '{"model_type": "llama", "hidden_size": 1' + "0" * 5000 + "}",
        "NaN",
    ],
    ids=range(10),
)
def test_hostile_configs_end_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, "utf-8")
    ran = run("fit", "--model", str(path), "--gpus", "8")
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith("zeroplan: ")
    assert "Traceback" not in ran.stderr
    assert "\x1b" not in ran.stderr


def test_a_name_from_a_file_is_text(tmp_path: Path) -> None:
    folder = tmp_path / "[red]model[red]"
    folder.mkdir()
    path = config(folder)
    assert "[red]model[red], " in run("fit", "--model", str(path), "--gpus", "8", "--gpu", "h100").stdout


def test_a_model_in_the_environment_gives_way_to_what_is_typed() -> None:
    environment = {"ZEROPLAN_MODEL": "gpt2", "ZEROPLAN_SEQ_LEN": "512"}
    ran = run("fit", "--params", "7e9", "--gpus", "8", *JSON, **environment)
    assert json.loads(ran.stdout)["request"]["params"] == 7 * 10**9
    ran = run("fit", "--gpus", "8", *JSON, **environment)
    assert json.loads(ran.stdout)["request"]["seq_len"] == 512


def test_solve_shows_a_range_and_its_json_both_ends() -> None:
    args = ["solve", "max-micro-batch", "--model", "llama-3.1-8b", "--gpus", "8", "--seq-len", "4096"]
    found = answer(*args, "--gpu", "h100", "--framework", "fsdp2", "--stage", "3")
    [stage] = found["results"][0]["stages"]
    assert 1 <= stage["answer"] <= stage["tight_answer"]
    assert found["request"]["micro_batch"] is None


@pytest.mark.parametrize("name", ["kimi-k2", "gpt-oss-120b", "falcon-40b", "opt-66b", "command-r", "gemma-3-12b"])
def test_models_of_every_kind_can_be_planned(name: str) -> None:
    ran = run("fit", "--model", name, "--gpus", "64", "--gpu", "h100", "--seq-len", "512", "--framework", "deepspeed")
    assert ran.status in (0, 1)
    assert ran.stderr == ""
