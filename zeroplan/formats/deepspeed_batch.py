"""The batch sizes of a DeepSpeed configuration: what it derives, and whether they multiply."""

from collections.abc import Iterator

from zeroplan.core.findings import ERROR, Finding, Place
from zeroplan.errors import one_line
from zeroplan.formats.reading import Reading


def derived_batch(reading: Reading, ranks: int) -> dict[str, str]:
    """The batch sizes that DeepSpeed makes of those that are there; runtime/config.py,
    _set_batch_related_parameters."""
    total = reading.train_batch
    micro, accum = (int(reading.options.get(name, 0)) for name in ("micro_batch", "grad_accum"))
    if total is None or not reading.derives_batch or (micro and accum):
        return {}
    if micro:
        return {"grad_accum": str(max(1, total // micro // ranks))}
    return {"micro_batch": str(max(1, total // ranks // (accum or 1)))}


def batch_findings(reading: Reading, ranks: int) -> Iterator[Finding]:
    """Whether train_batch = micro_batch * accumulation * ranks."""
    found = {**derived_batch(reading, ranks), **reading.options}
    micro, accum = found.get("micro_batch"), found.get("grad_accum", "1" if reading.derives_batch else None)
    if reading.train_batch is None or micro is None or accum is None:
        return
    product = int(micro) * int(accum) * ranks
    if product != reading.train_batch:
        place = Place(one_line(reading.path), "train_batch_size")
        said = f"is {reading.train_batch}, and {micro} x {accum} x {ranks} ranks are {product}; DeepSpeed stops."
        yield Finding("ZP207", ERROR, place, said, f"Say {product}, or leave one of the three out.")
