"""What --model names: a folder, a file, or a preset."""

import os
from dataclasses import replace

from zeroplan.core.model import Model
from zeroplan.errors import InputError, nearest, one_line
from zeroplan.formats.presets import Presets

TUNED = ("-instruct", "-chat", "-base", "-it", "-hf")
"""Endings of the names of models of the same shape."""
MOST_REF = 64  # characters; a commit has 40
FORMS = "Give a config.json, a checkpoint folder, a shapes JSON, the name of a preset, or org/name of the Hub."


def read_model(text: str, presets: Presets, where: str = "--model") -> Model:
    """The model that `text` names; an existing path wins over a preset's name."""
    text = os.path.expanduser(text.strip())
    if _exists(text):
        found = _folder(text, presets.knows("model", text)) if os.path.isdir(text) else _file(text)
        return replace(found, path=one_line(text))
    if _looks_like_path(text):
        raise InputError(where, f"{one_line(text)} does not exist.", FORMS)
    name, on_hub = known_name(text, presets), hub_name(text)
    if not presets.knows("model", name) and on_hub:
        from zeroplan.formats.hub import read_hub

        try:
            return replace(read_hub(on_hub, where), path=one_line(text))
        except InputError as error:
            hint = f"{error.hint}{_alike(name, presets)}".strip()
            raise InputError(where, error.problem, hint or "Give a config.json, or --params N.") from error
    return presets.model(name, where).model


def _alike(name: str, presets: Presets) -> str:
    """The presets that a name is near to, as a question."""
    close = nearest(name.rpartition("/")[2][:60], presets.names("model"), count=2)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def hub_name(text: str) -> str:
    """org/name or org/name@revision, as an address or alone; empty where it is neither."""
    bare = text.removeprefix("https://").removeprefix("huggingface.co/").strip("/")
    if bare.partition("@")[0].count("/") != 1 or os.path.isdir(text.partition("/")[0]):
        return ""
    from zeroplan.formats.hub import is_hub_name

    return bare if is_hub_name(bare) else ""


def known_name(text: str, presets: Presets) -> str:
    """The name as it is, or without what does not change a model's shape, where that is known."""
    bare = text.removeprefix("https://").removeprefix("huggingface.co/").strip("/").lower().replace(" ", "-")
    shorter = (bare.removesuffix(ending) for ending in TUNED)
    return next((name for name in (text, bare, *shorter) if presets.knows("model", name)), text)


def width_of(text: str, presets: Presets) -> int | None:
    """The model's hidden size, where it is known."""
    shape = read_model(text, presets).architecture
    return shape.hidden if shape else None


def _exists(text: str) -> bool:
    try:
        return bool(text) and os.path.exists(text)
    except ValueError:  # a null byte
        return False


def _looks_like_path(text: str) -> bool:
    return text.endswith((".json", ".safetensors")) or text.startswith((".", "/", "~"))


def _folder(path: str, hides_preset: bool = False, inside: bool = False) -> Model:
    from zeroplan.formats.checkpoints import read_checkpoint
    from zeroplan.formats.safetensors import has_headers

    if has_headers(path):
        return read_checkpoint(path)
    config = os.path.join(path, "config.json")
    if os.path.isfile(config):
        return _file(config)
    if not inside and (snapshot := _snapshot(path)):
        return _folder(snapshot, inside=True)
    pickled = any(name.endswith((".bin", ".pt", ".pth")) for name in os.listdir(path))
    problem = "holds pickled weights only, which have no header to read." if pickled else "holds no model."
    hidden = " The folder hides the preset of that name." if hides_preset else ""
    raise InputError(one_line(path), problem, f"Give its config.json, a shapes JSON, or --params N.{hidden}")


def _snapshot(path: str) -> str:
    """The folder that the main branch of a huggingface_hub cache entry points to; empty where there is none."""
    ref = os.path.join(path, "refs", "main")
    if not os.path.isfile(ref):
        return ""
    try:
        with open(ref, encoding="ascii") as file:
            commit = file.read(MOST_REF).strip()
    except (OSError, ValueError):
        return ""
    found = os.path.join(path, "snapshots", commit)
    return found if commit.isalnum() and os.path.isdir(found) else ""


def _file(path: str) -> Model:
    from zeroplan.formats.files import read_json
    from zeroplan.formats.huggingface import read_config

    name = _name_of(path)
    if path.endswith(".safetensors"):
        from zeroplan.formats.safetensors import read_header

        return _shapes(read_header(path), path, name)
    value = read_json(path)
    if isinstance(value, dict) and not ("model_type" in value or "architectures" in value) and _has_shapes(value):
        return _shapes(value, path, name)
    return read_config(value, one_line(path), name, one_line(path))


def _shapes(value: dict[str, object], path: str, name: str) -> Model:
    from zeroplan.formats.named_shapes import model_of_shapes, parameter_shapes

    where = one_line(path)
    return replace(model_of_shapes(parameter_shapes(value, where), where), name=name, source=where)


def _has_shapes(value: dict[str, object]) -> bool:
    return any(
        (isinstance(info, dict) and "shape" in info)
        or (isinstance(info, list) and all(type(size) is int for size in info) and "." in name)
        for name, info in value.items()
    )


def _name_of(path: str) -> str:
    """A file's name; of a config.json that of its folder."""
    folder, file = os.path.split(os.path.abspath(path))
    return one_line(
        os.path.basename(folder) if file == "config.json" else file.removesuffix(".json").removesuffix(".safetensors")
    )
