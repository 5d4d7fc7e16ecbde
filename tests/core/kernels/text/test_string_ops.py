"""Strings and lookup tables."""

import ml_dtypes
import numpy as np
import pytest

from cyxla import Graph, Session
from cyxla.core.framework.apply import apply_op
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OpError

F32 = np.float32


def words(*values):
    return np.array([v.encode() for v in values], object)


def text(op, *inputs, **attrs):
    return [v.decode() for v in np.asarray(apply_op(op, *inputs, **attrs)).reshape(-1).tolist()]


def test_joins():
    assert text("StringJoin", [words("a", "b"), words("c", "d")], separator="-") == ["a-c", "b-d"]
    assert text("StringJoin", [np.array(b"x", object), words("c", "d")]) == ["xc", "xd"]
    assert apply_op("StringJoin", [np.array(b"x", object)] * 3).shape == ()
    with pytest.raises(OpError, match=r"one shape|merge|Dimension|\[2\]"):
        apply_op("StringJoin", [words("a"), words("c", "d")])


GRID = words("a", "b", "c", "d").reshape(2, 2)


@pytest.mark.parametrize(
    "axes, attrs, want",
    [
        ([0], {}, ["ac", "bd"]),
        ([1], {"separator": "."}, ["a.b", "c.d"]),
        ([-2, -1], {}, ["acbd"]),
        ([1, 0], {}, ["abcd"]),
        ([], {}, ["a", "b", "c", "d"]),
    ],
)
def test_joins_along_axes(axes, attrs, want):
    assert text("ReduceJoin", GRID, np.array(axes, np.int32), **attrs) == want


def test_joins_keep_their_shape():
    assert apply_op("ReduceJoin", GRID, [1], keep_dims=True).shape == (2, 1)
    assert text("ReduceJoin", np.zeros((2, 0), object), [1]) == ["", ""]
    assert apply_op("ReduceJoin", np.zeros((0, 2), object), [1]).shape == (0,)
    for axes in ([2], [0, -2]):
        with pytest.raises(OpError):
            apply_op("ReduceJoin", GRID, axes)


@pytest.mark.parametrize(
    "values, attrs, want",
    [
        (np.array([1, -2], np.int8), {}, ["1", "-2"]),
        (np.array([7], np.uint64), {"width": 4, "fill": "0"}, ["0007"]),
        (np.array([1.5, np.inf, np.nan], F32), {}, ["1.500000", "inf", "nan"]),
        (np.array([1.25]), {"precision": 1, "width": 6}, ["   1.2"]),
        (np.array([12345.678], F32), {"scientific": True, "precision": 2}, ["1.23e+04"]),
        (np.array([1e-7, 2.5]), {"shortest": True}, ["1e-07", "2.5"]),
        (np.array([1.5], ml_dtypes.bfloat16), {"fill": "+"}, ["+1.500000"]),
        (np.array([1 - 2j], np.complex64), {"precision": 1}, ["(1.0,-2.0)"]),
        (np.array([True, False]), {}, ["true", "false"]),
        (words("x"), {"width": 3}, ["  x"]),
    ],
)
def test_numbers_as_text(values, attrs, want):
    assert text("AsString", values, **attrs) == want


@pytest.mark.parametrize(
    "values, attrs",
    [([1], {"precision": 2}), ([1.0], {"fill": "x"}), ([1.0], {"scientific": True, "shortest": True})],
)
def test_text_that_cannot_be(values, attrs):
    with pytest.raises(InvalidArgumentError):
        apply_op("AsString", np.array(values), **attrs)


@pytest.mark.parametrize(
    "value, want",
    [
        (np.arange(10, dtype=np.int32), "[0 1 2 ... 7 8 9]"),
        (np.array([0.1, 1e10, 1 / 3], F32), "[0.1 1e+10 0.333333343]"),
        (np.array([[1, 2], [3, 4]], np.int64), "[[1 2]\n [3 4]]"),
        (np.zeros((1, 2, 1), np.int32), "[[[0]\n  [0]]]"),
        (np.array([True]), "[1]"),
        (words('a"b'), '["a\\"b"]'),
        (np.array(3, np.int32), "3"),
        (np.zeros((0,), F32), "[]"),
    ],
)
def test_tensors_in_templates(value, want):
    assert text("StringFormat", [value], template="<%s>") == [f"<{want}>"]


def test_all_of_a_tensor():
    assert text("StringFormat", [np.arange(8)], template="{}", placeholder="{}", summarize=-1) == ["[0 1 2 3 4 5 6 7]"]
    with pytest.raises(InvalidArgumentError, match="placeholders"):
        apply_op("StringFormat", [np.arange(8)], template="none")


# Tables


def test_a_table():
    graph = Graph()
    with graph.as_default():
        table = apply_op("HashTableV2", key_dtype="string", value_dtype="int64")
        fill = apply_op("LookupTableImportV2", table, words("a", "b"), np.array([1, 2]))
        other = apply_op("LookupTableImportV2", table, words("a", "b"), np.array([1, 3]))
        found = apply_op("LookupTableFindV2", table, words("b", "z").reshape(2, 1), np.array(-1))
        size = apply_op("LookupTableSizeV2", table)
        wrong = apply_op("LookupTableFindV2", table, np.array([1]), np.array(-1))
    session = Session(graph)
    assert int(session.run(size)) == 0
    with pytest.raises(FailedPreconditionError, match="no entries yet"):
        session.run(found)
    for _ in range(2):  # the same entries again are no harm
        session.run(fill)
    assert session.run(found).tolist() == [[2], [-1]]
    assert int(session.run(size)) == 2
    with pytest.raises(FailedPreconditionError, match="already filled"):
        session.run(other)
    with pytest.raises(InvalidArgumentError, match="the op is for"):
        session.run(wrong)


def test_a_key_that_comes_twice():
    table = apply_op("HashTableV2", key_dtype="int64", value_dtype="float", shared_name="twice")
    with pytest.raises(InvalidArgumentError, match="comes twice"):
        apply_op("LookupTableImportV2", table, np.array([4, 4]), np.array([1, 2], F32))
    apply_op("LookupTableImportV2", table, np.array([4, 4]), np.array([2, 2], F32))
    assert apply_op("LookupTableFindV2", table, np.array([4, 5]), F32(0)).tolist() == [2, 0]
