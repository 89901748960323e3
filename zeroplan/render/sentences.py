"""Answers in words: the recommendation first, with its reason and its price."""

from shlex import quote

from zeroplan.core.estimate import Estimate
from zeroplan.core.meters import taken_bytes
from zeroplan.core.question import Question
from zeroplan.core.traffic import plain_gradient_bytes
from zeroplan.core.verdict import FITS, TIGHT, CardAnswer, StageAnswer
from zeroplan.render.hosts import short_of
from zeroplan.render.labels import at_stages, listed, short_title, stage_label
from zeroplan.units import counted, format_count, format_exact, format_ratio, format_share, format_size

TIER_WORDS = {"gpu": "the GPU", "cpu": "the CPU", "nvme": "NVMe"}
PLAIN_TRAFFIC = "plain data parallelism"


def price_of(answer: StageAnswer) -> str:
    """What a stage costs in traffic: the same as, or so many times, plain data parallelism."""
    ratio = answer.estimate.ratio_to_data_parallel if answer.estimate else None
    if ratio is None:
        return "no traffic on one GPU"
    text = format_ratio(ratio)
    return f"same traffic as {PLAIN_TRAFFIC}" if text == "1.0x" else f"{text} the traffic of {PLAIN_TRAFFIC}"


def cards_summary(question: Question, answers: tuple[CardAnswer, ...]) -> str:
    """The lowest stage for every card, in one sentence a verdict."""
    fitting = _by_stage(answers, FITS)
    tight = _by_stage(answers, TIGHT)
    nothing = [short_title(answer) for answer in answers if answer.recommended is None]
    sentences = []
    if fitting:
        sentences.append(f"Lowest stage that fits: {_groups(fitting)}.")
    if tight:
        how = "May just fit" if question.counts_activations else "Only by using the headroom"
        sentences.append(f"{how}: {_groups(tight)}.")
    if nothing:
        sentences.append(f"Nothing fits{at_stages(question)} on {listed(nothing)}.")
    short = [short_title(answer) for answer in answers if (answer.recommended or answer.offered[-1]).short]
    if short:
        sentences.append(f"Not the GPUs but their hosts are short on {listed(short)}.")
    return " ".join(sentences)


def card_summary(question: Question, answer: CardAnswer, unit: str) -> str:
    """The answer for one card in a sentence or two."""
    where = f"{format_count(question.gpus)} x {short_title(answer)}"
    best = answer.recommended
    shown = best or answer.offered[-1]
    if shown.short and shown.estimate:
        may = "may just fit" if best else "does not fit"
        gpu = format_size(taken_bytes(shown.estimate), unit)
        of = format_size(answer.budget_bytes, unit)
        enough = f"the GPUs' memory is enough, {gpu} of {of} {unit}"
        return f"{stage_label(shown.stage)} {may} on {where}: {short_of(shown.short, unit)}; {enough}."
    if best is None or best.estimate is None:
        return _nothing_fits(question, answer, where, unit)
    if question.counts_activations and best.meters and best.meters.reserved:
        return _whole(question, answer, best, where, unit)
    peak = format_size(best.estimate.memory.peak_bytes, unit)
    if best.verdict == TIGHT:
        usable = format_size(answer.usable_bytes, unit)
        return (
            f"{stage_label(best.stage)} fits on {where} only by using the headroom: {peak} of {usable} {unit} "
            f"usable, {price_of(best)}."
        )
    left = format_size(best.spare_bytes or 0, unit)
    budget = format_size(answer.budget_bytes, unit)
    tight = [stage_label(other.stage) for other in answer.stages if other.verdict == TIGHT]
    more = f" {listed(tight)} fits only by using the headroom." if tight else ""
    return (
        f"{stage_label(best.stage)} fits on {where}: {peak} of {budget} {unit}, {left} left for activations, "
        f"{price_of(best)}.{more}"
    )


def _whole(question: Question, answer: CardAnswer, best: StageAnswer, where: str, unit: str) -> str:
    """The answer where activations are counted: what the allocator takes, of what, at which moment."""
    assert best.meters is not None
    reserved = best.meters.reserved
    assert reserved is not None
    low, expected, high = (format_size(size, unit) for size in reserved)
    fits, takes = "fits", f"{expected} ({low} to {high})"
    if best.verdict == TIGHT:
        fits, takes = "may just fit", f"{low} to {high}"
    limit = "budget" if question.headroom.numerator else "usable"
    of = format_size(answer.budget_bytes, unit)
    return f"{stage_label(best.stage)} {fits} on {where}: {takes} of {of} {unit} {limit}, {price_of(best)}."


def assumptions(question: Question, varied: str = "", span: tuple[int, int] = (0, 0)) -> str:
    """What every figure rests on; `varied` is the field that runs over `span`."""

    def amount(field: str, noun: str) -> str:
        if field == varied:
            return f"{format_count(span[0])} to {counted(span[1], noun)}"
        return counted(getattr(question, field), noun)

    subject = amount("params", "parameter") if varied == "params" else model_name(question)
    said = (
        f"{subject} on {amount('gpus', 'data-parallel GPU')}. {accounting(question)} "
        f"{amount('grad_accum', 'micro-batch')} per step. Headroom {format_share(float(question.headroom))}."
    )
    parts = (said, scheme(question), batch(question, varied, span), about_model(question))
    return " ".join(part for part in parts if part)


def scheme(question: Question) -> str:
    """Where states are and how they are sent, where that is not all on the GPU and over all GPUs."""
    asked = question.scheme
    off = [f"{place} on {TIER_WORDS[tier]}" for place, tier in asked.offloads.items()]
    off += ["block inputs on the CPU"] if question.workload and question.workload.checkpoints != "gpu" else []
    said = [f"Offloaded: {', '.join(off)}."] if off else []
    said += [f"States divided over groups of {counted(asked.shard_group, 'GPU')}."] if asked.shard_group else []
    said += [f"Second weight copy over {counted(asked.hpz, 'GPU')}."] if asked.hpz else []
    said += [f"Quantised: {' and '.join(asked.quantize)}."] if asked.quantize else []
    own = [*asked.switches, *(f"{name} {format_count(value)}" for name, value in asked.limits)]
    return " ".join([*said, f"Set: {', '.join(own)}."] if own else said)


def asked_scheme(question: Question) -> list[str]:
    """The options that ask for the same scheme."""
    asked = question.scheme
    options = [f"--offload {place}={tier}" for place, tier in asked.offloads.items()]
    options += [f"--shard-group {asked.shard_group}"] if asked.shard_group else []
    options += [f"--hpz {asked.hpz}"] if asked.hpz else []
    options += [f"--quantize {','.join(asked.quantize)}"] if asked.quantize else []
    options += [f"--set {name}=true" for name in asked.switches]
    return options + [f"--set {name}={value}" for name, value in asked.limits]


def model_name(question: Question) -> str:
    """The model by name, where it has one, and its parameters."""
    if not question.model.name:
        return counted(question.params, "parameter")
    return f"{question.model.name}, {format_exact(question.params)} parameters,"


def batch(question: Question, varied: str = "", span: tuple[int, int] = (0, 0)) -> str:
    """What a micro-batch is and how it is computed; why activations are not counted where they are not."""
    work = question.workload
    if work is None:
        return "Activations: not counted; --seq-len adds them, with --micro-batch 1." if question.model.known else ""
    if not question.counts_activations:
        return f"Activations: not counted; {question.model.why_unmodelled}."
    ends = {varied: f"{format_count(span[0])} to {format_count(span[1])}"} if span[0] else {}
    sequences = ends.get("micro_batch", format_count(work.micro_batch))
    tokens = ends.get("seq_len", format_count(work.seq_len))
    solved = {
        "micro_batch": f"of as many sequences of {tokens} tokens as fit",
        "seq_len": f"{sequences} x as many tokens as fit",
    }
    size = solved.get("" if span[0] else varied, f"{sequences} x {tokens} tokens")
    parts = [f"Micro-batch {size}", f"recompute {work.how}", f"attention {work.attention}"]
    parts += [f"loss {work.loss.name}", *(f"fused {part}" for part in work.fused)]
    parts += [f"compiled {work.compiled}"] if work.compiled != "none" else []
    parts += [f"optimizer {question.kernel}"] if question.kernel != "fused" else []
    return f"{', '.join(parts)}."


def asked_model(question: Question) -> str:
    """The option that names the model."""
    model = question.model
    return f"--model {quote(model.path or model.name)}" if model.known else f"--params {format_count(model.params)}"


def asked_batch(question: Question) -> list[str]:
    """The options that ask for the same micro-batch."""
    work, kernel = question.workload, question.kernel
    asked = [f"--optimizer-kernel {kernel}"] if kernel != "fused" else []
    if work is None:
        return asked
    framework = question.framework
    asked += [f"--seq-len {work.seq_len}"]
    asked += [f"--micro-batch {work.micro_batch}"] if work.micro_batch > 1 else []
    asked += [f"--recompute {work.how}"] if work.recompute != "none" else []
    asked += [f"--attention {work.attention}"] if work.attention != "flash" else []
    asked += [f"--loss {work.loss.name}"] if work.loss.name != framework.default_loss else []
    asked += [f"--fused {','.join(work.fused) or 'none'}"] if work.fused != framework.fused else []
    asked += [f"--offload activations={work.checkpoints}"] if work.checkpoints != "gpu" else []
    asked += ["--experts listed"] if not work.packed_experts else []
    return asked + ([f"--compile {work.compiled}"] if work.compiled != "none" else [])


def about_model(question: Question) -> str:
    """What its file left out, and what else there is to say of it."""
    model = question.model
    assumed = ", ".join(f"{name} {value}" for name, value in model.assumed)
    notes = [f"Of the model: {'; '.join(model.notes)}."] if model.notes else []
    return " ".join(([f"From class defaults: {assumed}."] if assumed else []) + notes)


def accounting(question: Question) -> str:
    """The recipe and the framework."""
    paper = " (the paper)" if question.framework.name == "zero" else ""
    total = question.recipe.bytes_per_parameter
    return f"Recipe {question.recipe.name}: {total} bytes per parameter. Framework {question.framework.name}{paper}."


def tight_means(question: Question, off: bool = False) -> str:
    """What tight is said of; `off`: something may be off the GPU that the question keeps there."""
    gpu = "fits if the allocator gives back what it caches"
    if not question.counts_activations:
        gpu = "fits only by using the headroom"
    host = ", or if the host needs no more than its tensors" if off or question.scheme.offloads else ""
    return f"tight: {gpu}{host}."


def not_counted(question: Question) -> str:
    """What is not counted where the model's shape or the batch is not known."""
    said = question.framework.not_counted
    disk = question.scheme.params == "nvme" and "buffer_size" in question.framework.limits
    return f"{said}, and whether buffer_size holds the largest tensor's shard" if disk else said


def yardstick(found: Estimate) -> str:
    """What 1.0x of traffic is."""
    size = plain_gradient_bytes(found.plan)
    return f"1.0x is plain data parallelism: an all-reduce of {size}-byte gradients."


def usable_memory(answer: CardAnswer, question: Question, unit: str) -> str:
    """Where the budget of a card comes from."""
    gpu = answer.card.gpu
    alias = f"{answer.card.asked} is {gpu.name}. " if answer.card.asked else ""
    usable, budget = format_size(answer.usable_bytes, unit), format_size(answer.budget_bytes, unit)
    headroom = format_share(float(question.headroom))
    end = f"less {headroom} headroom is a budget of {budget}." if question.headroom.numerator else "no headroom."
    if gpu.usable_bytes_stated is not None:
        return f"{usable} {unit} usable as stated; {end}"
    total, context = format_size(gpu.torch_total_bytes, unit), format_size(gpu.context_bytes, unit)
    derived = " (derived)" if gpu.provenance == "derived" else ""
    nccl = question.nccl_bytes(answer.card)
    beside = f" and {format_size(nccl, unit)} NCCL" if nccl else ""
    return f"{alias}PyTorch sees {total} {unit}{derived}; less {context} CUDA context{beside} is {usable} usable; {end}"


def _by_stage(answers: tuple[CardAnswer, ...], verdict: str) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for answer in answers:
        best = answer.recommended
        if best and best.verdict == verdict:
            groups.setdefault(best.stage, []).append(short_title(answer))
    return dict(sorted(groups.items(), reverse=True))


def _groups(groups: dict[int, list[str]]) -> str:
    return "; ".join(
        f"{stage_label(stage)}{' (no sharding)' if stage == 0 else ''} on {listed(titles)}"
        for stage, titles in groups.items()
    )


def _nothing_fits(question: Question, answer: CardAnswer, where: str, unit: str) -> str:
    smallest = min(answer.offered, key=lambda other: other.estimate.memory.peak_bytes if other.estimate else 0)
    if smallest.estimate is None:
        return f"Nothing fits on {where}."
    taken = smallest.meters.reserved if smallest.meters else None
    peak = format_size(taken.expected if taken else smallest.estimate.memory.peak_bytes, unit)
    usable = format_size(answer.usable_bytes, unit)
    least = f"{'' if at_stages(question) else 'even '}{stage_label(smallest.stage)}"
    return f"Nothing fits{at_stages(question)} on {where}: {least} takes {peak} of {usable} {unit} usable."
