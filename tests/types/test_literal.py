"""Literals: bits as given, nobody writes to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError
from cyxla.types import Literal, Shape


def test_literals_are_read_only_copies_in_row_major_order():
    source = np.arange(6, dtype=">f4").reshape(2, 3).T
    literal = Literal(source)
    source[:] = 0
    assert literal.shape is Shape.array("f32", (3, 2))
    assert literal.array.flags.c_contiguous
    assert literal.array.dtype.isnative
    np.testing.assert_array_equal(literal.array, np.arange(6).reshape(2, 3).T)
    with pytest.raises(ValueError, match="read-only"):
        literal.array[0, 0] = 1


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_equal_means_the_same_bits(a, b):
    """NaN payloads and the sign of zero count."""
    x, y = (Literal(np.array([bits], np.uint32).view(np.float32)) for bits in (a, b))
    assert x.array.view(np.uint32)[0] == a
    assert (x == y) == (a == b)
    assert (x.digest() == y.digest()) == (a == b)
    assert hash(x) == hash(Literal(x.array))


@pytest.mark.parametrize("one, other", [
    (np.float32(0.0), np.float32(-0.0)), (np.float32(0), np.int32(0)), (np.zeros(4, "f4"), np.zeros((2, 2), "f4")),
    (np.zeros(4, "f4"), (np.zeros(4, "f4"),)), ((np.int8(1), np.int8(2)), (np.int8(2), np.int8(1))), (((),), ()),
])  # fmt: skip
def test_different_literals_have_different_digests(one, other):
    assert Literal(one) != Literal(other)
    assert Literal(one).digest() != Literal(other).digest()
    assert len(Literal(one).digest()) == 16
    assert Literal(one) == Literal(one)


def test_a_declared_shape_gives_the_type():
    literal = Literal([[1, 2], [3, 4]], Shape.array("bf16", (2, 2)))
    assert str(literal.array.dtype) == "bfloat16"
    assert repr(literal) == "Literal(bf16[2,2])"
    assert Literal(3, Shape.array("s8", (), dynamic=())).shape is Shape.array("s8")


def test_tuples():
    literal = Literal((np.float32(1), (np.int8(2), Literal(np.zeros(3)))))
    assert str(literal.shape) == "(f32[], (s8[], f64[3]))"
    assert literal.is_tuple
    assert not literal.elements[0].is_tuple
    with pytest.raises(ShapeError, match="not an array"):
        _ = literal.array


@pytest.mark.parametrize("value, shape, error", [
    ([1, 2, 3], Shape.array("f32", (2,)), ShapeError), (300, Shape.array("u8"), InvalidArgumentError),
    ("text", Shape.array("f32"), InvalidArgumentError), ([[1], [1, 2]], None, InvalidArgumentError),
    ("text", None, DTypeError),
])  # fmt: skip
def test_values_that_do_not_fit_are_refused(value, shape, error):
    with pytest.raises(error):
        Literal(value, shape)
