"""Sizes that follow from the number of GPUs: batch sizes and groups, and whether they multiply."""

from collections.abc import Iterator, Mapping

from zeroplan.core.findings import ERROR, Finding, Place
from zeroplan.errors import one_line
from zeroplan.formats.reading import Reading

Sizes = Mapping[str, int]
"""micro_batch and grad_accum, those that are said."""


def derived_batch(reading: Reading, sizes: Sizes, ranks: int) -> dict[str, str]:
    """The batch sizes that DeepSpeed makes of those that are there; runtime/config.py,
    _set_batch_related_parameters."""
    total = reading.train_batch
    micro, accum = (sizes.get(name, 0) for name in ("micro_batch", "grad_accum"))
    if total is None or not reading.derives_batch or (micro and accum):
        return {}
    if micro:
        return {"grad_accum": str(max(1, total // micro // ranks))}
    return {"micro_batch": str(max(1, total // ranks // (accum or 1)))}


def derived_groups(reading: Reading, ranks: int) -> dict[str, str]:
    """The size of each group, where the file says how many there are."""
    if reading.replicas == 1 or ranks % reading.replicas:
        return {}
    return {"shard_group": str(ranks // reading.replicas)}


def batch_findings(reading: Reading, sizes: Sizes, ranks: int) -> Iterator[Finding]:
    """Whether train_batch = micro_batch * accumulation * ranks."""
    stops = "the training stops" if reading.kind == "torchtitan" else "DeepSpeed stops"
    if reading.replicas > 1 and ranks % reading.replicas:
        said = f"{ranks} GPUs are not a multiple of the {reading.replicas} replicas."
        yield Finding("ZP209", ERROR, Place(one_line(reading.path)), said, "Use a multiple.")
    found = {**{name: int(size) for name, size in derived_batch(reading, sizes, ranks).items()}, **sizes}
    micro, accum = found.get("micro_batch"), found.get("grad_accum", 1 if reading.derives_batch else None)
    if reading.train_batch is None or micro is None or accum is None:
        return
    product = micro * accum * ranks
    if product != reading.train_batch:
        key = "training.global_batch_size" if reading.kind == "torchtitan" else "train_batch_size"
        place = Place(one_line(reading.path), key)
        said = f"is {reading.train_batch}, and {micro} x {accum} x {ranks} ranks are {product}; {stops}."
        out = "." if reading.kind == "torchtitan" else ", or leave one of the three out."
        yield Finding("ZP207", ERROR, place, said, f"Say {product}{out}")
