"""A Hugging Face config.json as a model: the row of its model_type, resolved."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from zeroplan.core.blocks import Block, Module, Stack
from zeroplan.core.dimensions import Dims
from zeroplan.core.model import Model
from zeroplan.core.parts import linear, norm, table
from zeroplan.core.skeletons import Skeleton, architecture, skeleton
from zeroplan.errors import InputError, nearest, printable
from zeroplan.formats.architectures import ROWS, WRAPPERS, known_types
from zeroplan.formats.config_rules import apply_rules, class_name
from zeroplan.formats.config_values import WAYS_OUT, Config, ConfigValues, shown

PREDICTED = "multi-token-prediction"
UNQUANTISED = "sizes are those of the unquantised model"
MOST_PREDICTED = 1000


def read_config(config: object, where: str = "config.json", name: str = "", source: str = "") -> Model:
    """The model that transformers builds from a config; raises InputError for what cannot be counted exactly."""
    if not isinstance(config, Mapping):
        raise InputError(where, f"is {shown(config)}, expected a table of keys.", WAYS_OUT)
    kind = _model_type(config, where)
    read = _wrapped if kind in WRAPPERS else _single
    return replace(read(config, kind, where), name=name or kind, model_type=kind, source=source)


def _model_type(config: Config, where: str, prefix: str = "") -> str:
    kind = config.get("model_type")
    if kind is None:
        raise InputError(where, f"{prefix}model_type is missing.", WAYS_OUT)
    if not isinstance(kind, str) or (kind not in ROWS and (prefix or kind not in WRAPPERS)):
        close = nearest(kind, known_types()) if isinstance(kind, str) and len(kind) < 100 else []
        like = f" Near: {', '.join(close)}." if close else ""
        problem = f"{prefix}model_type {shown(kind)} is not one this version can count."
        raise InputError(where, problem, f"{WAYS_OUT}{like}")
    return kind


def resolved(config: Config, kind: str, where: str, prefix: str = "") -> tuple[Dims, ConfigValues]:
    """The dimensions of one architecture, and the values they were read from."""
    values = ConfigValues(config, kind, where, prefix)
    found = values.dims()
    values.refuse_misspelt()
    apply_rules(values, found)
    return Dims(**found), values


def _single(config: Config, kind: str, where: str) -> Model:
    dims, values = resolved(config, kind, where)
    root, stacks = skeleton(dims)
    return Model(
        params=_total(root, stacks),
        root=root,
        stacks=stacks,
        architecture=architecture(dims),
        assumed=tuple(values.assumed.items()),
        notes=tuple(_notes(config, kind, dims, stacks, values)),
    )


def _wrapped(config: Config, kind: str, where: str) -> Model:
    """A language model, a vision tower and what joins them."""
    text_config, vision_config = (_nested(config, key, where) for key in ("text_config", "vision_config"))
    own = ConfigValues(config, kind, where)
    if not class_name(own).endswith("ForConditionalGeneration") and class_name(own):
        raise own.fault("architectures", f"names {shown(class_name(own))}, whose head is not counted")
    tie = {key: config[key] for key in ("tie_word_embeddings",) if key in config}
    text, text_values = _part({**tie, **text_config}, where, "text_config.", "ForCausalLM")
    vision, vision_values = _part(vision_config, where, "vision_config.", "")
    root, stacks = _joined({"text": skeleton(text), "vision": skeleton(vision)})
    root += tuple(_projector(kind, text, vision, own, vision_values))
    return Model(
        params=_total(root, stacks),
        root=root,
        stacks=stacks,
        assumed=(*text_values.assumed.items(), *vision_values.assumed.items()),
        notes=tuple(_quantised(config)),
    )


def _nested(config: Config, key: str, where: str) -> dict[str, Any]:
    inner = config.get(key)
    if not isinstance(inner, Mapping):
        raise InputError(where, f"{key} is {'missing' if key not in config else shown(inner)}.", WAYS_OUT)
    return dict(inner)


def _part(config: dict[str, Any], where: str, prefix: str, head: str) -> tuple[Dims, ConfigValues]:
    """A part of a wrapper; the wrapper owns the head, whatever the part says of one."""
    kind = _model_type(config, where, prefix)
    tower = kind.endswith("vision_model")
    if tower == bool(head):
        raise InputError(where, f"{prefix}model_type {printable(kind)} is not a part of this wrapper.", WAYS_OUT)
    config.pop("architectures", None)
    return resolved(config, kind, where, prefix)


def _joined(parts: Mapping[str, Skeleton]) -> Skeleton:
    root = tuple(replace(m, name=f"{part}.{m.name}") for part, (modules, _) in parts.items() for m in modules)
    stacks = tuple(replace(s, name=f"{part}.{s.name}") for part, (_, inner) in parts.items() for s in inner)
    return root, stacks


def _projector(kind: str, text: Dims, vision: Dims, own: ConfigValues, tower: ConfigValues) -> Iterator[Module]:
    if kind == "llava":
        if not isinstance(own.config.get("vision_feature_layer", 0), int):
            raise own.fault("vision_feature_layer", "is a list, and a projector of several layers is not counted")
        bias = own.flag("multimodal_projector_bias", True)
        yield linear("projector.1", text.hidden, vision.hidden, bias)
        yield linear("projector.2", text.hidden, text.hidden, bias)
    elif kind == "gemma3":
        yield table("projector", vision.hidden, text.hidden)
        yield norm("projector.norm", vision.hidden, 1)
    else:
        yield linear("projector", text.hidden, tower.number("vision_output_dim"))


def _total(root: tuple[Module, ...], stacks: tuple[Stack, ...]) -> int:
    inside = sum(run.count * run.block.params for stack in stacks for run in stack.runs)
    return sum(module.params for module in root) + inside


def _notes(config: Config, kind: str, dims: Dims, stacks: tuple[Stack, ...], values: ConfigValues) -> Iterator[str]:
    yield from _quantised(config)
    predicted = config.get("num_nextn_predict_layers") or 0
    if type(predicted) is not int or not 0 <= predicted <= MOST_PREDICTED:
        raise values.fault("num_nextn_predict_layers", f"is {shown(predicted)}, expected a count of layers")
    if predicted:
        size = predicted * _prediction_params(dims, stacks[0].runs[-1].block)
        yield (
            f"the checkpoint also holds {predicted} {PREDICTED} block{'s' * (predicted > 1)}, "
            f"about {size:,} parameters, that transformers does not build"
        )
    if kind == "t5" and not dims.tied:
        yield "tie_word_embeddings is false: the head is counted apart; transformers 5 ties a fresh build"
    if kind == "whisper":
        yield f"{dims.positions * dims.hidden:,} of them are frozen: the positions of the encoder"


def _quantised(config: Config) -> Iterator[str]:
    if config.get("quantization_config"):
        yield UNQUANTISED


def _prediction_params(dims: Dims, block: Block) -> int:
    """A block, its projection of two hidden states, three norms, and its own embedding and head (DeepSeek-V3)."""
    return block.params + 2 * dims.hidden**2 + 3 * dims.hidden + 2 * dims.vocab * dims.hidden
