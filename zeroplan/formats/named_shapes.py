"""Named shapes as a model: tensors become modules, the first number in a name its block.

`{name: {"shape": [...], "dtype": ...}}` is what a safetensors header holds, and what a user can write of any model;
a shape alone will do:

    json.dump({n: {"shape": list(p.shape), "dtype": str(p.dtype)} for n, p in model.named_parameters()}, file)
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from math import prod

from zeroplan.core.blocks import Block, Module, Run, Shape, Stack
from zeroplan.core.model import Model
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.experts import packed_experts

MOST_TENSORS = 10**6
MOST_DIMENSIONS = 8
LARGEST_SIZE = 10**12
BUFFER_ENDINGS = (
    "inv_freq",
    ".masked_bias",
    "position_ids",
    "weight_scale_inv",
    "weight_scale",
    "input_scale",
    "e_score_correction_bias",
    "running_mean",
    "running_var",
    "num_batches_tracked",
)
"""Stored, and not a parameter: rotary tables, masks, quantisation scales, router corrections, running statistics."""
MASKS = ("attn.bias", "attention.bias")
"""Causal masks of GPT-2 and GPT-NeoX, where they have four dimensions."""
PACKED_TYPES = ("U", "I", "BOOL", "F8_E8M0", "FLOAT8_E8M0", "F4", "FLOAT4")
"""Beginnings of the types of packed weights and their scales."""

Shapes = dict[str, Shape]
BlockPlace = tuple[str, int]


def parameter_shapes(tensors: object, where: str) -> Shapes:
    """The shapes of the parameters among named tensors; raises InputError for packed weights."""
    if not isinstance(tensors, Mapping):
        raise InputError(where, "is not a table of named shapes.", 'Write {"name": {"shape": [4, 4]}}.')
    if len(tensors) > MOST_TENSORS:
        raise InputError(where, f"holds more than {MOST_TENSORS} tensors.")
    found: Shapes = {}
    for name, info in tensors.items():
        if name == "__metadata__":
            continue
        shape = _shape(name, info, where)
        if not is_buffer(name, shape):
            _refuse_packed(name, info if isinstance(info, Mapping) else {}, where)
            found[name] = shape
    return found


def is_buffer(name: str, shape: Shape) -> bool:
    """Whether a stored tensor is none of the parameters."""
    return name.endswith(BUFFER_ENDINGS) or (name.endswith(MASKS) and len(shape) == 4)


def _shape(name: str, info: object, where: str) -> Shape:
    shape = info.get("shape") if isinstance(info, Mapping) else info
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        raise InputError(where, f"{printable(name)} has no shape.", 'Write {"name": {"shape": [4, 4]}}.')
    if not all(type(size) is int and 0 <= size <= LARGEST_SIZE for size in shape):
        raise InputError(where, f"the shape of {printable(name)} is not whole numbers up to {LARGEST_SIZE:g}.")
    return tuple(shape)


def _refuse_packed(name: str, info: Mapping[str, object], where: str) -> None:
    dtype = info.get("dtype", "")
    if not isinstance(dtype, str):
        raise InputError(where, f"the dtype of {printable(name)} is not a text.")
    if dtype.removeprefix("torch.").upper().startswith(PACKED_TYPES):
        raise InputError(
            where,
            f"{printable(name)} is {printable(dtype)}: packed weights, whose shape is not the parameter's.",
            "Give the checkpoint before quantisation, its config.json, or --params N.",
        )


def model_of_shapes(shapes: Shapes, where: str, experts_per_token: int = 0) -> Model:
    """The model of named parameters; 0 experts per token: not known, all are counted as active."""
    places = {name: _place(name) for name in shapes}
    stacked = {place[0] for name, place in places.items() if place and _inside(name, place)}
    root: Shapes = {}
    blocks: dict[BlockPlace, Shapes] = {}
    for name, shape in shapes.items():
        place = places[name]
        if place is None or place[0] not in stacked:
            root[name] = shape
        else:
            blocks.setdefault(place, {})[_relative(name, place) or f" {name}"] = shape
    total = sum(map(prod, shapes.values()))
    if not total:
        raise InputError(where, "holds no parameters.")
    return Model(
        params=total,
        name=one_line(where),
        root=tuple(modules(root, experts_per_token)),
        stacks=tuple(_stacks(blocks, experts_per_token)),
        notes=tuple(_unknown_activity(shapes, experts_per_token)),
        unmodelled="shapes alone do not say how a model computes",
    )


def _unknown_activity(shapes: Iterable[str], experts_per_token: int) -> Iterator[str]:
    if not experts_per_token and any(".experts." in name for name in shapes):
        yield "how many experts a token uses is not known: all count as active"


def block_of(name: str) -> BlockPlace | None:
    """The stack and number of the block that a tensor of this name belongs to."""
    return _place(name)


def _place(name: str) -> BlockPlace | None:
    """What stands before the first number in a name, and the number."""
    before: list[str] = []
    for part in name.split("."):
        if part.isascii() and part.isdigit() and len(part) < 10:
            return (".".join(before), int(part)) if before else None
        before.append(part)
    return None


def _relative(name: str, place: BlockPlace) -> str:
    """The rest of a name inside its block."""
    return name[len(place[0]) + 1 :].partition(".")[2]


def _inside(name: str, place: BlockPlace) -> bool:
    """Whether the tensor belongs to a module inside a numbered part, and so the part is a block."""
    return "." in _relative(name, place)


def modules(shapes: Shapes, experts_per_token: int = 0) -> Iterator[Module]:
    """A module for every parent name, the experts of one layer together."""
    own: dict[str, list[Shape]] = {}
    for name, shape in shapes.items():
        own.setdefault(name.rpartition(".")[0] or name, []).append(shape)
    return packed_experts({name: tuple(found) for name, found in own.items()}, experts_per_token)


def _stacks(blocks: Mapping[BlockPlace, Shapes], experts_per_token: int) -> Iterator[Stack]:
    """Blocks in the order of their numbers, equal neighbours together; equal blocks are one object."""
    known: dict[tuple[tuple[str, Shape], ...], Block] = {}
    signed = {place: tuple(sorted(shapes.items())) for place, shapes in blocks.items()}
    for signature in signed.values():
        if signature not in known:
            known[signature] = Block(modules=tuple(modules(dict(signature), experts_per_token)))
    for stack in dict.fromkeys(place[0] for place in blocks):
        numbers = sorted(place for place in blocks if place[0] == stack)
        same = groupby(numbers, key=lambda place: signed[place])
        runs = tuple(Run(block=known[signature], count=len(list(run))) for signature, run in same)
        yield Stack(name=one_line(stack), runs=runs)
