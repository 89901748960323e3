"""What a rank holds and sends: every storage that an operator returned, and every collective it issued."""

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

SMALL = 64 * 1024
"""Bytes; smaller messages are norms, flags and sizes."""
KINDS = {
    "reduce_scatter": "reduce-scatter",
    "allgather": "all-gather",
    "all_gather": "all-gather",
    "allreduce": "all-reduce",
    "all_reduce": "all-reduce",
    "reduce_": "reduce",
    "broadcast": "broadcast",
}
"""The collectives of torch.ops.c10d by how their name begins, longest first."""


class Meter(TorchDispatchMode):
    """Live bytes and their peak, and the collectives of this rank.

    DDP's reducer, FSDP and DeepSpeed all end in torch.ops.c10d on the calling thread. A storage that only C++ holds
    (buckets, what autograd saves) is seen too, since an operator returned it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._alive: dict[int, Any] = {}
        self.peak = 0
        self.sent: dict[str, list[int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # let it unfold, then see its local operators
        namespace, _, name = str(func._schema.name).partition("::")
        if namespace in ("c10d", "_c10d_functional") and name != "wait_tensor":
            self._send(name, args)
        out = func(*args, **(kwargs or {}))
        new = [self._see(tensor) for tensor in (*tensors(out), *tensors(args))]
        if any(new):
            self.peak = max(self.peak, self.bytes())
        return out

    def bytes(self) -> int:
        """Bytes alive now; storages may have changed their size."""
        return sum(storage.nbytes() for storage in (ref() for ref in list(self._alive.values())) if storage is not None)

    def since(self) -> int:
        """The peak since it was last asked for."""
        found, self.peak = max(self.peak, self.bytes()), self.bytes()
        return found

    def _see(self, tensor: torch.Tensor) -> bool:
        if tensor.device.type == "meta" or isinstance(tensor, FakeTensor) or is_traceable_wrapper_subclass(tensor):
            return False
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._alive:
            return False

        def gone(_ref: Any) -> None:
            self._alive.pop(key, None)

        self._alive[key] = weakref.ref(storage, gone)
        return True

    def _send(self, name: str, args: Any) -> None:
        size = max((sum(map(_bytes, tensors(arg))) for arg in args), default=0)
        if size <= SMALL:
            return
        bare = name.lstrip("_")
        kind = next((kind for start, kind in KINDS.items() if bare.startswith(start)), name)
        groups = [arg for arg in args if type(arg).__name__ == "ScriptObject"]
        ranks = torch.distributed.ProcessGroup.unbox(groups[0]).size() if groups else None
        inside = f" in {ranks}" if ranks not in (None, torch.distributed.get_world_size()) else ""
        calls = self.sent.setdefault(kind + inside, [0, 0])
        calls[0] += 1
        calls[1] += size


def tensors(value: Any) -> list[torch.Tensor]:
    """Every tensor in nested lists, tuples and dicts."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def owned(groups: dict[str, Iterable[Any]]) -> dict[str, int]:
    """Bytes of the storages of each group; one that several groups name counts for the first."""
    seen: set[int] = set()
    return {name: sum(_new_storages(found, seen)) for name, found in groups.items()}


def _new_storages(found: Iterable[Any], seen: set[int]) -> Iterator[int]:
    for tensor in tensors(list(found)):
        local = getattr(tensor, "_local_tensor", tensor)
        storage = local.untyped_storage()
        if storage._cdata not in seen:
            seen.add(storage._cdata)
            yield storage.nbytes()
