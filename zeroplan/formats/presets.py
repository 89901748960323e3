"""Presets: one TOML file each, bundled or the user's own.

The bundled ones are built directly (a test passes each through validation); a user's are validated.
"""

import os
import tomllib
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from zeroplan.core.framework import Framework
from zeroplan.core.hardware import Gpu, Node
from zeroplan.core.question import Card
from zeroplan.core.recipe import Recipe
from zeroplan.errors import Faults, InputError, unknown_name
from zeroplan.formats.kinds import KINDS, Record, build, record_type

if TYPE_CHECKING:
    from zeroplan.core.loss import Loss
    from zeroplan.core.word import Word
    from zeroplan.formats.model_preset import ModelPreset

R = TypeVar("R", bound="Record")

_SEE = {
    "word": "",
    "model": "`zeroplan presets model` lists them; a config.json, a checkpoint folder and a shapes JSON will do too.",
}
"""Where to look for a name of this kind."""

FEATURED = (
    "v100-sxm2-32gb",
    "a100-sxm4-40gb",
    "a100-sxm4-80gb",
    "h100-sxm5-80gb",
    "h200-sxm5-141gb",
    "b200-sxm",
    "mi300x",
)
"""The GPUs that an answer shows when none is named: what large models were and are trained on."""


@cache
def bundled_folder() -> str:
    """The presets inside the installed package, or beside it in a checkout or editable install."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "presets")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "presets")


class Presets:
    """All presets: the bundled ones, and those of a user's folder, which win by name.

    Raises InputError when the user's folder or any preset in it is bad.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._user: dict[str, dict[str, Record]] = {kind: {} for kind in KINDS}
        self._loaded: dict[tuple[str, str], Record] = {}
        if folder is not None:
            from zeroplan.formats.user_presets import read_folder

            self._user.update(read_folder(folder))
            self._check_references()

    def gpu(self, name: str, where: str = "--gpu") -> Gpu:
        return self._find("gpu", name, where, Gpu)

    def node(self, name: str, where: str = "--node") -> Node:
        return self._find("node", name, where, Node)

    def recipe(self, name: str, where: str = "--recipe") -> Recipe:
        return self._find("recipe", name, where, Recipe)

    def framework(self, name: str, where: str = "--framework") -> Framework:
        return self._find("framework", name, where, Framework)

    def loss(self, name: str, where: str = "--loss") -> "Loss":
        from zeroplan.core.loss import Loss

        return self._find("loss", name, where, Loss)

    def model(self, name: str, where: str = "--model") -> "ModelPreset":
        from zeroplan.formats.model_preset import ModelPreset

        return self._find("model", name, where, ModelPreset)

    def word(self, name: str, where: str = "TERM") -> "Word":
        from zeroplan.core.word import Word

        return self._find("word", name, where, Word)

    def names(self, kind: str) -> list[str]:
        """All names of a kind, sorted."""
        return sorted({*self._bundled_names(kind), *self._user[kind]})

    def knows(self, kind: str, name: str) -> bool:
        """Whether something of a kind has this name or alias."""
        return self._lookup(kind, name.strip().lower()) is not None

    def all(self, kind: str) -> list[Record]:
        """All records of a kind, by name."""
        return [self._load(kind, name) for name in self.names(kind)]

    def get(self, kind: str, name: str) -> Record:
        """One record by kind and name or alias."""
        return self._find(kind, name, f"presets {kind}", record_type(kind))

    @property
    def featured(self) -> list[Gpu]:
        """The GPUs to show when none is named, in their order."""
        return [self.gpu(name) for name in FEATURED]

    def card(self, gpu: Gpu, asked: str = "", node: Node | None = None) -> Card:
        """A GPU in a node, or in its usual one; raises InputError for a node of another GPU."""
        if node is None:
            node = self.node(gpu.node, f"gpu {gpu.name}, node") if gpu.node else None
            return Card(gpu=gpu, node=node, asked=asked)
        held = self.gpu(node.gpu, f"node {node.name}, gpu").name
        if held != gpu.name:
            raise InputError("--node", f"{node.name} has {held}, not {gpu.name}.", f"Give --gpu {held} or no --gpu.")
        return Card(gpu=gpu, node=node, asked=asked)

    def _check_references(self) -> None:
        """Raise when a user's preset names another that does not exist."""
        faults = Faults()
        for name, gpu in self._user["gpu"].items():
            if isinstance(gpu, Gpu) and gpu.node:
                faults.attempt(partial(self.node, gpu.node, f"gpu {name}, node"))
        for name, node in self._user["node"].items():
            if isinstance(node, Node):
                faults.attempt(partial(self.gpu, node.gpu, f"node {name}, gpu"))
        for name, framework in self._user["framework"].items():
            if isinstance(framework, Framework):
                for recipe in (framework.default_recipe, *framework.recipes):
                    faults.attempt(partial(self.recipe, recipe, f"framework {name}, families"))
        for model in self._user["model"].values():
            faults.attempt(partial(getattr, model, "model"))
        faults.report()

    def _find(self, kind: str, name: str, where: str, record: type[R]) -> R:
        wanted = name.strip().lower()
        found = self._load(kind, self._real_name(kind, wanted, where, name))
        assert isinstance(found, record)
        return found

    def _real_name(self, kind: str, wanted: str, where: str, asked: str) -> str:
        found = self._lookup(kind, wanted)
        if found is None:
            see = _SEE.get(kind, f"`zeroplan presets {kind}` lists them.")
            raise unknown_name(where, kind, asked, self._all_names(kind), see)
        return found

    def _lookup(self, kind: str, wanted: str) -> str | None:
        """The name of what has this name or alias."""
        if wanted in self._user[kind] or self._is_bundled(kind, wanted):
            return wanted
        for name, mine in self._user[kind].items():
            if wanted in map(str.lower, mine.aliases):
                return name
        for name in self._mentioning(kind, f'"{wanted}"'):
            if wanted in self._bundled(kind, name).aliases:
                return name
        return None

    def _all_names(self, kind: str) -> list[str]:
        return [name for record in self.all(kind) for name in (record.name, *record.aliases)]

    def _load(self, kind: str, name: str) -> Record:
        """The user's record of this name, else the bundled one."""
        return self._user[kind].get(name) or self._bundled(kind, name)

    def _bundled(self, kind: str, name: str) -> Record:
        loaded = self._loaded.get((kind, name))
        if loaded is None:
            loaded = build(record_type(kind), name, tomllib.loads(self._text(kind, name)))
            self._loaded[kind, name] = loaded
        return loaded

    def _is_bundled(self, kind: str, name: str) -> bool:
        return name.isprintable() and os.path.basename(name) == name and os.path.isfile(_path(kind, name))

    def _text(self, kind: str, name: str) -> str:
        with open(_path(kind, name), encoding="utf-8") as file:
            return file.read()

    def _bundled_names(self, kind: str) -> list[str]:
        try:
            entries = os.listdir(os.path.join(bundled_folder(), kind))
        except FileNotFoundError as error:
            raise InputError("presets", "the installation has no presets.", "Install zeroplan again.") from error
        return [entry.removesuffix(".toml") for entry in entries if entry.endswith(".toml")]

    def _mentioning(self, kind: str, text: str) -> list[str]:
        """Bundled presets whose file contains `text`: cheaper than parsing them all."""
        return [name for name in sorted(self._bundled_names(kind)) if text in self._text(kind, name)]


def _path(kind: str, name: str) -> str:
    return os.path.join(bundled_folder(), kind, f"{name}.toml")
