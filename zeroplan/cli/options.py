"""The options that commands share, in the groups their help shows."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from zeroplan.core.choices import ATTENTION, COMPILED, KERNELS

F = TypeVar("F", bound=Callable[..., Any])
QUESTION, HARDWARE, ACCOUNTING, OUTPUT = "Question", "Hardware", "Accounting", "Output"
SCHEME, DETAIL = "Offload and groups", "Detail"
FORMATS = ("table", "json", "csv", "markdown")
EXPERTS = ("packed", "listed")


class GroupedOption(click.Option):
    """An option that knows its heading in the help, and has an environment variable: --gpu has ZEROPLAN_GPU."""

    def __init__(self, names: Sequence[str], heading: str, **attributes: Any) -> None:
        long = next(name for name in names if name.startswith("--"))
        super().__init__(names, envvar=f"ZEROPLAN_{long[2:].upper().replace('-', '_')}", **attributes)
        self.heading = heading

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable of this command, such as ZEROPLAN_FIT_GPU, before that of all, ZEROPLAN_GPU."""
        own = os.environ.get(f"ZEROPLAN_{ctx.info_name}_{self.name}".upper())
        return own or super().resolve_envvar_value(ctx)


class GroupedCommand(click.Command):
    """A command whose help lists the options under their headings; `--help-all` lists the hidden ones too."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if any(getattr(parameter, "hidden", False) for parameter in self.params):
            self.params.append(_help_all())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(parameter, "heading", OUTPUT), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _help_all() -> click.Option:
    def show(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if not wanted or ctx.resilient_parsing:
            return
        for parameter in ctx.command.params:
            if isinstance(parameter, click.Option):
                parameter.hidden = False
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()

    return click.Option(
        ["--help-all"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=show,
        help="All options: headroom, groups, settings, attention, loss.",
    )


Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def starting(known: Callable[[], Iterable[str]]) -> Completer:
    """Shell completion with those of the known names that start as typed."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in known() if name.startswith(incomplete.lower())]

    return complete


def names_of(kind: str) -> list[str]:
    """Names and aliases of the bundled presets of a kind."""
    from zeroplan.formats.presets import Presets

    return sorted(name for record in Presets().all(kind) for name in (record.name, *record.aliases))


def _option(name: str, heading: str, text: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(
        name,
        *attributes.pop("names", ()),
        cls=GroupedOption,
        heading=heading,
        help=text,
        **attributes,
    )


SHARED: dict[str, Callable[[Any], Any]] = {
    "plan": _option(
        "--plan", QUESTION, "A saved answer (--format json): its request; what is typed wins.", metavar="FILE"
    ),
    "model": _option(
        "--model",
        QUESTION,
        "config.json, checkpoint folder, shapes JSON, preset or org/name.",
        metavar="MODEL",
        shell_complete=starting(lambda: names_of("model")),
    ),
    "params": _option("--params", QUESTION, "Trained parameters: 7.5e9, 7.5B or 7_500_000_000.", metavar="P"),
    "gpus": _option("--gpus", QUESTION, "GPUs in all, the data-parallel degree: 64. auto: the job's.", metavar="N"),
    "stage": _option("--stage", QUESTION, "Only this ZeRO stage, 0 to 3: 2 or 2,3.", multiple=True, metavar="S"),
    "seq_len": _option("--seq-len", QUESTION, "Tokens per sequence, 4096 or 4k: adds the activations.", metavar="T"),
    "micro_batch": _option(
        "--micro-batch", QUESTION, "Sequences per GPU and micro-batch.", metavar="B", default="1", show_default=True
    ),
    "recompute": _option(
        "--recompute",
        QUESTION,
        "none, selective, full, or every-K blocks: every-2.",
        metavar="HOW",
        default="none",
        show_default=True,
    ),
    "gpu": _option(
        "--gpu",
        HARDWARE,
        "GPUs by name: h100,a100-80gb. auto: this machine's.",
        multiple=True,
        metavar="NAME",
        shell_complete=starting(lambda: names_of("gpu")),
    ),
    "memory": _option("--memory", HARDWARE, "Usable memory of a card of your own: 44.35GiB.", metavar="SIZE"),
    "node": _option(
        "--node",
        HARDWARE,
        "The node the GPUs sit in: dgx-h100.",
        metavar="NAME",
        shell_complete=starting(lambda: names_of("node")),
    ),
    "presets": _option("--presets", HARDWARE, "A folder of your own presets; they win by name.", metavar="DIR"),
    "recipe": _option(
        "--recipe",
        ACCOUNTING,
        "Bytes per parameter: adam-m16. Unset: the framework's.",
        metavar="NAME",
        shell_complete=starting(lambda: names_of("recipe")),
    ),
    "optimizer_bytes": _option(
        "--optimizer-bytes",
        ACCOUNTING,
        "M of 4 + M bytes per parameter.",
        type=click.Choice(["8", "12", "16"]),
    ),
    "framework": _option(
        "--framework",
        ACCOUNTING,
        "zero (the paper), deepspeed, fsdp2, fsdp1, ddp, megatron.",
        default="zero",
        show_default=True,
        metavar="NAME",
        shell_complete=starting(lambda: names_of("framework")),
    ),
    "grad_accum": _option(
        "--grad-accum",
        ACCOUNTING,
        "Micro-batches per optimizer step.",
        default="1",
        show_default=True,
        metavar="A",
    ),
    "headroom": _option(
        "--headroom",
        ACCOUNTING,
        "Kept free: 10%, or 0 with activations.",
        metavar="SHARE",
    ),
    "offload": _option(
        "--offload",
        SCHEME,
        "Off the GPU: optimizer=cpu, params=nvme, activations=cpu.",
        multiple=True,
        metavar="WHAT=WHERE",
    ),
    "shard_group": _option(
        "--shard-group", SCHEME, "Divide states over K GPUs only, replicate beyond: HSDP, MiCS.", metavar="K"
    ),
    "hpz": _option("--hpz", SCHEME, "A second weight copy over K GPUs: ZeRO++ hpZ.", metavar="K"),
    "quantize": _option(
        "--quantize", SCHEME, "8-bit weights, 4-bit gradients on the links: ZeRO++.", multiple=True, metavar="WHAT"
    ),
    "set": _option(
        "--set",
        SCHEME,
        "A setting of the framework's own: reduce_bucket_size=2e8, no_sync=true.",
        multiple=True,
        metavar="NAME=VALUE",
    ),
    "attention": _option(
        "--attention",
        DETAIL,
        "Attention core: flash keeps no scores.",
        type=click.Choice(ATTENTION),
        default="flash",
        show_default=True,
    ),
    "loss": _option(
        "--loss",
        DETAIL,
        "How the loss is computed: hf, fp32, fused, chunked. Unset: the framework's.",
        metavar="NAME",
        shell_complete=starting(lambda: names_of("loss")),
    ),
    "fused": _option("--fused", DETAIL, "Fused kernels: norm, mlp, or none. Unset: the framework's.", metavar="PARTS"),
    "optimizer_kernel": _option(
        "--optimizer-kernel",
        DETAIL,
        "How the optimizer's step runs.",
        type=click.Choice(KERNELS),
        default="fused",
        show_default=True,
    ),
    "experts": _option(
        "--experts",
        DETAIL,
        "The experts of a block: one module (transformers 5) or a list.",
        type=click.Choice(EXPERTS),
        default="packed",
        show_default=True,
    ),
    "compiled": _option(
        "--compile",
        DETAIL,
        "What runs under torch.compile: the blocks, or the loss too.",
        names=("compiled",),
        type=click.Choice(COMPILED),
        default="none",
        show_default=True,
    ),
    "unit": _option(
        "--unit",
        OUTPUT,
        "GB is 1e9 bytes, GiB 2^30.",
        type=click.Choice(["GB", "GiB"], case_sensitive=False),
        metavar="[GB|GiB]",
        default="GB",
        show_default=True,
    ),
    "format": _option(
        "--format",
        OUTPUT,
        "How to print the answer.",
        type=click.Choice(FORMATS, case_sensitive=False),
        default="table",
        show_default=True,
    ),
}


HIDDEN = (
    *("presets", "optimizer_bytes", "unit", "attention", "loss", "fused", "optimizer_kernel"),
    *("plan", "experts", "compiled", "memory", "node", "shard_group", "hpz", "quantize", "set", "headroom"),
)
"""Options that `--help` leaves to `--help-all`."""


def shared(*hidden: str, without: tuple[str, ...] = ()) -> Callable[[F], F]:
    """All shared options but some; those named `hidden` work but are not listed, to keep the help short."""

    def decorate(function: F) -> F:
        for name, option in reversed(SHARED.items()):
            if name in without:
                continue
            function = option(function)
            if name in (*HIDDEN, *hidden):
                function.__click_params__[-1].hidden = True  # type: ignore[attr-defined]
        return function

    return decorate


MEANT = {
    **dict.fromkeys(
        ("--activation-checkpointing", "--gradient-checkpointing", "--ac", "--checkpointing"), "--recompute"
    ),
    **dict.fromkeys(("--mbs", "--batch-size", "--bs", "--micro-batch-size"), "--micro-batch"),
    **dict.fromkeys(("--context", "--context-length", "--max-length", "--sequence-length"), "--seq-len"),
    **dict.fromkeys(("--dtype", "--precision", "--optimizer"), "--recipe"),
    **dict.fromkeys(("--zero", "--zero-stage"), "--stage"),
    **dict.fromkeys(("--checkpoints", "--offload-activations"), "--offload activations"),
    **dict.fromkeys(("--cpu-offload", "--offload-optimizer", "--offload-param"), "--offload"),
    **dict.fromkeys(("--hybrid", "--hsdp", "--mics"), "--shard-group"),
    **dict.fromkeys(("--flash", "--flash-attention", "--sdpa"), "--attention"),
    **dict.fromkeys(("--gas", "--gradient-accumulation-steps"), "--grad-accum"),
}
"""What others call our options."""
NOT_YET = ("--tp", "--pp", "--cp", "--ep", "--tensor-parallel", "--pipeline-parallel", "--context-parallel")


def hint_for(option: str) -> str:
    """What to say of an option that there is not; empty where nothing better than likeness is known."""
    if option in NOT_YET:
        return "Tensor, pipeline, context and expert parallelism are not modelled yet."
    return f"Did you mean {MEANT[option]}?" if option in MEANT else ""


def output_only(function: F) -> F:
    """Only how to print."""
    decorated: F = SHARED["unit"](SHARED["format"](function))
    return decorated
