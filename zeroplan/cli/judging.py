"""One configuration file judged: what it asks for as a question, under what is typed, and the answer to it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from zeroplan.cli.asking import AUTO, Asked, ask, no_cards, parse_gpus
from zeroplan.cli.batch import parse_micro_batch, parse_seq_len
from zeroplan.cli.typed import parts, typed
from zeroplan.core.choices import LARGEST_BATCH
from zeroplan.core.findings import ERROR, NOTE, SEVERITIES, WARNING, Finding, Place, of_answer, worst
from zeroplan.core.plan import MOST_MICRO_BATCHES
from zeroplan.core.question import Question
from zeroplan.core.verdict import CardAnswer, fit
from zeroplan.errors import Faults, InputError, one_line, printable
from zeroplan.formats.accelerate_keys import NO_SYNC
from zeroplan.formats.configs import read_config
from zeroplan.formats.derived import batch_findings, derived_batch, derived_groups
from zeroplan.formats.models import known_name, width_of
from zeroplan.formats.presets import Presets
from zeroplan.render.checked import Checked
from zeroplan.units import parse_count

if TYPE_CHECKING:
    from zeroplan.cli.given import Given
    from zeroplan.formats.reading import Reading

MOST_NAME = 200
UNCERTAIN = "whether it fits is not judged while there are errors: what is asked for is not certain."


def judged(file: str, given: Given, kind: str | None, hidden: int | None) -> Checked:
    """A file read, and whether its plan fits, where it has no errors and enough is said.

    Raises InputError where it cannot be read, or what is typed is wrong.
    """
    reading = read_config(file, hidden, kind)
    if (own := _own_width(reading, given)) is not None:
        reading = read_config(file, own, kind)
    place, why, asked = Place(one_line(file)), list[Finding](), None
    wanted = _wanted(reading, given)
    if not reading.unmodelled and worst(reading.findings) != ERROR:
        asked, why = _asked(wanted, given, reading)
    sizes = _sizes(reading, wanted) if asked else {}
    if asked and (derived := _derived(reading, sizes, asked.question.gpus)):
        reading.options.update(derived)
        asked, why = _asked(cast("Given", {**wanted, **derived}), given, reading)
    question = asked.question if asked else None
    findings = [*reading.findings, *why, *(batch_findings(reading, sizes, question.gpus) if question else ())]
    if worst(findings) == ERROR:
        question = None
        findings.append(Finding("ZP303", NOTE, place, UNCERTAIN))
    answers = fit(question) if question else ()
    findings += _of_answers(question, answers, reading, place)
    findings.sort(key=lambda each: SEVERITIES.index(each.severity))
    return Checked(
        path=file,
        kind=reading.kind,
        options=reading.options,
        findings=findings,
        question=question,
        answers=answers,
        node=asked.node if asked else None,
    )


def check_typed(given: Given) -> None:
    """Raise InputError for what is typed wrong, whether a file is judged or not."""
    presets, faults = Presets(given["presets"]), Faults()
    if given["gpus"] and given["gpus"].strip().lower() != AUTO:
        faults.attempt(partial(parse_gpus, given["gpus"]))
    if given["seq_len"]:
        faults.attempt(partial(parse_seq_len, given["seq_len"]))
    faults.attempt(partial(parse_micro_batch, given["micro_batch"]))
    faults.attempt(partial(parse_count, given["grad_accum"], "--grad-accum", MOST_MICRO_BATCHES, "--grad-accum 8"))
    for name in parts(given["gpu"]):
        if name.lower() != AUTO:
            faults.attempt(partial(presets.gpu, name))
    faults.report()


def _of_answers(
    question: Question | None, answers: tuple[CardAnswer, ...], reading: Reading, place: Place
) -> list[Finding]:
    if question is None:
        return []
    found = [each for answer in answers for each in of_answer(question, answer, place, reading.half)]
    left_open = any("batch" in each.place.key for each in reading.findings if each.code == "ZP302")
    unsaid = not typed("micro_batch") and "micro_batch" not in reading.options and not left_open
    if question.counts_activations and unsaid:
        said = "the batch of a GPU is not in the file: 1 sequence, and 1 micro-batch a step where it says no other."
        found.append(Finding("ZP302", NOTE, place, said, "Give --micro-batch and --grad-accum."))
    if not question.counts_activations:
        lacking = "--seq-len" if question.model.architecture else "--model and --seq-len"
        said = "activations are not counted: whether it fits is said of states and buffers alone."
        found.append(Finding("ZP303", NOTE, place, said, f"Give {lacking}."))
    return found


def _sizes(reading: Reading, wanted: Given) -> dict[str, int]:
    """The batch sizes that are typed or in the file, as numbers; they have been asked with."""
    said = {"micro_batch": wanted["micro_batch"], "grad_accum": wanted["grad_accum"]}
    return {
        name: parse_count(text, name, LARGEST_BATCH, "8")
        for name, text in said.items()
        if typed(name) or name in reading.options
    }


def _derived(reading: Reading, sizes: dict[str, int], gpus: int) -> dict[str, str]:
    """What follows from the number of GPUs, and is not typed."""
    found = {**derived_batch(reading, sizes, gpus), **derived_groups(reading, gpus)}
    return {name: value for name, value in found.items() if not typed(name)}


def _wanted(reading: Reading, given: Given) -> Given:
    """What is typed over what the file says; of a model it has to be one that is known."""
    options, presets = reading.options, Presets(given["presets"])
    named = options.get("model")
    if named is not None and not _is_preset(named, presets):
        said, mend = f"the model {printable(named)} is not a preset of zeroplan's.", "Give --model, or --params."
        reading.findings.append(Finding("ZP302", NOTE, Place(one_line(reading.path)), said, mend))
        del options["model"]
    for name in ("gpus", "grad_accum", "micro_batch", "seq_len", "recompute"):
        said_in_file = options.get(name)
        if said_in_file is not None and typed(name) and given[name] != said_in_file:
            option = f"--{name.replace('_', '-')}"
            said = f"says {option} {said_in_file}; {given[name]} is typed, and taken."
            reading.findings.append(Finding("ZP302", NOTE, Place(one_line(reading.path)), said))
    aside = {"model", "params"} if given["model"] or given["params"] else set[str]()
    wanted: dict[str, Any] = {**given}
    wanted |= {
        name: value for name, value in options.items() if name not in aside and (name == "framework" or not typed(name))
    }
    if reading.quiet and options["framework"].startswith("fsdp") and wanted["grad_accum"].strip() != "1":
        options["set"] = (*options.get("set", ()), f"{NO_SYNC}=true")
    wanted["set"] = (*options.get("set", ()), *given["set"])
    return cast("Given", wanted)


def _own_width(reading: Reading, given: Given) -> int | None:
    """The width of the model that the file names, where none is given."""
    named = reading.options.get("model")
    if given["model"] or given["params"] or named is None:
        return None
    presets = Presets(given["presets"])
    return width_of(known_name(named, presets), presets) if _is_preset(named, presets) else None


def _is_preset(name: str, presets: Presets) -> bool:
    """Whether a name in a file is a preset's; a path of that name here is not the file's to open."""
    return presets.knows("model", known_name(name, presets)) and not os.path.exists(name[:MOST_NAME])


def _asked(wanted: Given, given: Given, reading: Reading) -> tuple[Asked | None, list[Finding]]:
    """The file's plan as a question; None, and why, where not enough is said or it is not modelled."""
    place = Place(one_line(reading.path))
    options = {
        "--model or --params": wanted["model"] or wanted["params"],
        "--gpus": wanted["gpus"],
        "--gpu": wanted["gpu"] or wanted["memory"] or wanted["node"],
    }
    if lacking := [option for option, there in options.items() if not there]:
        what = {"--model or --params": "the model", "--gpus": "how many GPUs there are", "--gpu": "their kind"}
        said = f"whether it fits is not judged: the file does not say {' or '.join(what[name] for name in lacking)}."
        return None, [Finding("ZP303", NOTE, place, said, f"Give {', '.join(lacking)}.")]
    try:
        return ask(wanted, otherwise=no_cards), []
    except InputError as error:
        said_by_file = {name: wanted[name] for name in ("gpus", "model", "params")}
        ask(cast("Given", {**given, **said_by_file}), otherwise=no_cards)  # raises where what is typed is at fault
        return None, [Finding("ZP301", WARNING, place, f"is not modelled: {fault}") for fault in error.faults]
