"""Named shapes: which are parameters, and which modules and blocks they make."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zeroplan.errors import InputError
from zeroplan.formats.named_shapes import model_of_shapes, parameter_shapes


def test_numbers_that_are_no_blocks_stay_outside() -> None:
    model = model_of_shapes(
        {"classifier.0.weight": (4, 4), "classifier.2.weight": (2, 4), "h.0.fc.weight": (3, 3)}, "x"
    )
    assert model.root_params == 24
    assert [(run.block.params, run.count) for run in model.runs] == [(9, 1)]


PACKED = ("U8", "I32", "I8", "torch.uint8", "torch.int32", "BOOL", "F8_E8M0")


@pytest.mark.parametrize("dtype", PACKED)
def test_packed_weights_are_refused(dtype: str) -> None:
    with pytest.raises(InputError, match="packed weights") as caught:
        parameter_shapes({"a.qweight": {"shape": [4, 4], "dtype": dtype}}, "x")
    assert "before quantisation" in caught.value.hint


@pytest.mark.parametrize("dtype", ["F8_E4M3", "BF16", "F32", "torch.float8_e4m3fn", "torch.bfloat16", ""])
def test_types_whose_shape_is_the_parameters(dtype: str) -> None:
    assert parameter_shapes({"a.weight": {"shape": [4, 4], "dtype": dtype}}, "x") == {"a.weight": (4, 4)}


def test_what_is_stored_and_no_parameter_is_skipped() -> None:
    names = ("rotary_emb.inv_freq", "a.weight_scale_inv", "embeddings.position_ids", "gate.e_score_correction_bias")
    assert not parameter_shapes({name: {"shape": [4], "dtype": "I64"} for name in names}, "x")
    mask = {
        "h.0.attn.bias": {"shape": [1, 1, 8, 8], "dtype": "U8"},
        "h.0.attention.bias": {"shape": [8], "dtype": "F16"},
    }
    assert list(parameter_shapes(mask, "x")) == ["h.0.attention.bias"]


BAD_TABLES: dict[str, tuple[Any, str]] = {
    "list": ([], "not a table of named shapes"),
    "no table inside": ({"a": 1}, "'a' has no shape"),
    "no shape": ({"a": {"dtype": "F32"}}, "'a' has no shape"),
    "text": ({"a": {"shape": ["4"]}}, "not whole numbers"),
    "negative": ({"a": {"shape": [-4]}}, "not whole numbers"),
    "bool": ({"a": {"shape": [True]}}, "not whole numbers"),
    "huge": ({"a": {"shape": [10**13]}}, "not whole numbers"),
    "many": ({"a": {"shape": [1] * 9}}, "has no shape"),
    "dtype": ({"a": {"shape": [1], "dtype": 3}}, "is not a text"),
    "escape": ({"\x1b[31m": {"shape": 3}}, "has no shape"),
    "nothing": ({}, "holds no parameters"),
    "only empty": ({"a": {"shape": [0, 4]}}, "holds no parameters"),
    "beyond any model": ({"a.b": {"shape": [10**12, 10**12]}}, "outside 1 to 1e"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_of_shapes(name: str) -> None:
    table, words = BAD_TABLES[name]
    with pytest.raises(InputError) as caught:
        model_of_shapes(parameter_shapes(table, "x"), "x")
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


TREE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=9), inner, max_size=3)),
)


@given(st.one_of(TREE, st.dictionaries(st.text(max_size=20), st.fixed_dictionaries({"shape": TREE, "dtype": TREE}))))
@settings(max_examples=200, deadline=None)
def test_any_table_is_counted_or_refused(table: object) -> None:
    try:
        assert model_of_shapes(parameter_shapes(table, "x"), "x").params > 0
    except InputError as error:
        assert str(error).isprintable()  # noqa: PT017


NAMES = st.lists(
    st.sampled_from(["model", "layers", "experts", "0", "1", "17", "mlp", "w1", "weight", "", "٣"]), min_size=1
)
SHAPES = st.dictionaries(NAMES.map(".".join), st.lists(st.integers(1, 4), max_size=4), min_size=1, max_size=12)


@given(SHAPES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_grouping_loses_no_parameter(shapes: dict[str, list[int]]) -> None:
    model = model_of_shapes({name: tuple(shape) for name, shape in shapes.items()}, "x")
    assert model.root_params + sum(run.count * run.block.params for run in model.runs) == model.params
    assert model.largest_module(packed=False).listed_params <= model.largest_module().params <= model.params
