"""Any mapping of the keys that the readers know, with any values, is read or refused: no traceback, no hang."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats.told import written
from zeroplan.core.findings import SEVERITIES
from zeroplan.errors import InputError
from zeroplan.formats import accelerate_keys, axolotl_keys, deepspeed_keys, torchtitan_keys, trainer_keys
from zeroplan.formats.configs import KINDS

WORDS = (
    "auto",
    "true",
    "full_shard offload",
    "FULL_SHARD",
    "cpu",
    "nvme",
    "-1",
    "1e400",
    "\x1b[31m",
    "[bold]",
    "{",
    "",
)
SCALAR = st.one_of(
    st.sampled_from(WORDS),
    st.none(),
    st.booleans(),
    st.integers(-2, 70),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
)
SECTIONS: dict[str, dict[str, list[str]]] = {
    "deepspeed": {
        deepspeed_keys.ZERO: sorted(deepspeed_keys.KNOWN_ZERO),
        **{name: sorted(known) for name, known in deepspeed_keys.SECTIONS.items()},
        "": sorted(deepspeed_keys.KNOWN_TOP),
    },
    "accelerate": {
        accelerate_keys.DEEPSPEED: sorted(accelerate_keys.KNOWN_DEEPSPEED),
        accelerate_keys.FSDP: sorted(accelerate_keys.KNOWN_FSDP),
        accelerate_keys.PARALLEL: [f"parallelism_config_{way}_size" for way in ("dp_replicate", "dp_shard", "tp")],
        "": sorted(accelerate_keys.KNOWN_TOP),
    },
    "trainer": {"fsdp_config": sorted(trainer_keys.FSDP), "": [*trainer_keys.MEMORY, *trainer_keys.SEQUENCE]},
    "axolotl": {"fsdp_config": sorted(axolotl_keys.FSDP), "": sorted(axolotl_keys.KNOWN)},
    "torchtitan": {name: sorted(known) for name, known in torchtitan_keys.SECTIONS.items() if "." not in name},
}


@st.composite
def configs(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """A mapping of the format's sections, mostly with keys that it knows."""
    value = st.one_of(SCALAR, st.lists(SCALAR, max_size=2), st.dictionaries(st.sampled_from(WORDS), SCALAR, max_size=2))
    found: dict[str, Any] = {}
    for section, known in SECTIONS[kind].items():
        keys = st.one_of(st.sampled_from(known), st.text(max_size=8))
        inner = draw(st.dictionaries(keys, value, max_size=6))
        if not section:
            found.update(inner)
        elif draw(st.booleans()):
            found[section] = draw(st.one_of(st.just(inner), value)) if draw(st.booleans()) else inner
    return found


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=list(HealthCheck), max_examples=150, deadline=None)
@given(data=st.data())
def test_any_configuration_is_read_or_refused(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    config = data.draw(configs(kind))
    text = _toml(config) if kind == "torchtitan" else json.dumps(config)
    with contextlib.suppress(InputError):
        found = written(tmp_path, text, kind=kind)
        assert all(each.severity in SEVERITIES for each in found.findings)
        assert all(str(each.place.key).isprintable() and each.said.isprintable() for each in found.findings)


def _toml(config: dict[str, Any]) -> str:
    """TOML of a mapping of tables: JSON's scalars and lists are TOML's, mostly."""
    lines = []
    for name, section in config.items():
        if isinstance(section, dict):
            lines.append(f"[{json.dumps(name)}]")
            lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in section.items() if value is not None]
    return "\n".join(lines)
