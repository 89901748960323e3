"""Experts by their names: one by one, as checkpoints hold them, or packed, as transformers 5 builds them."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from zeroplan.core.blocks import Module, Shape
from zeroplan.errors import one_line

Named = Mapping[str, tuple[Shape, ...]]


def packed_experts(own: Named, experts_per_token: int) -> Iterator[Module]:
    """Modules by name, where the experts of one layer that are saved one by one become one module."""
    groups: dict[str, dict[int, dict[str, tuple[Shape, ...]]]] = {}
    for name, shapes in own.items():
        parent, number, leaf = _expert(name)
        if number is None:
            yield _module(name, shapes, experts_per_token)
        else:
            groups.setdefault(parent, {}).setdefault(number, {})[leaf] = shapes
    for parent, by_number in groups.items():
        yield from _packed(parent, by_number, experts_per_token)


def _expert(name: str) -> tuple[str, int | None, str]:
    """The parent of the experts, the number of this one and the module inside it."""
    before, found, after = name.partition(".experts.")
    number, _, leaf = after.partition(".")
    if found and number.isascii() and number.isdigit() and len(number) < 10:
        return f"{before}.experts", int(number), leaf
    return name, None, ""


def _module(name: str, shapes: tuple[Shape, ...], experts_per_token: int) -> Module:
    count = shapes[0][0] if name.endswith("experts") and shapes[0] else 1
    if any(len(shape) == 3 for shape in shapes) and all(len(shape) > 1 and shape[0] == count for shape in shapes):
        return _expert_module(name, shapes, count, experts_per_token, packed=True)
    return Module(name=one_line(name), shapes=shapes)


def _expert_module(name: str, shapes: tuple[Shape, ...], count: int, per_token: int, packed: bool) -> Module:
    used = per_token if 0 < per_token <= count else count
    return Module(name=one_line(name), shapes=shapes, experts=count, experts_per_token=used, packed=packed)


def _packed(parent: str, by_number: Mapping[int, Named], experts_per_token: int) -> Iterator[Module]:
    first = next(iter(by_number.values()))
    if any(expert != first for expert in by_number.values()):
        for number, expert in by_number.items():
            for leaf, shapes in expert.items():
                yield Module(name=one_line(f"{parent}.{number}.{leaf}"), shapes=shapes)
        return
    count = len(by_number)
    one = [shape for shapes in first.values() for shape in shapes]
    shapes = tuple((count, *shape) for shape in _gate_and_up(one))
    yield _expert_module(parent, shapes, count, experts_per_token, packed=False)


def _gate_and_up(shapes: list[Shape]) -> Iterator[Shape]:
    """The tensors of one expert, matrices first, gate and up (the two of one shape) as one."""
    for dimensions in (2, 1):
        alike = [list(same) for _, same in groupby(sorted(s for s in shapes if len(s) == dimensions))]
        for same in sorted(alike, key=len, reverse=True):
            joined = len(same) // 2
            yield from ((2 * shape[0], *shape[1:]) for shape in same[:joined])
            yield from same[2 * joined :]
    yield from (shape for shape in shapes if len(shape) not in (1, 2))
