"""Scatters and slices into variables, beside loops in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.core.framework import Var, as_data_type
from cyxla.core.framework.geometry.strided_slices import MASKS, strided_index
from cyxla.core.kernels.lib.scatter import scatter, scatter_nd
from cyxla.errors import InvalidArgumentError

TYPES = ["half", "bfloat16", "float", "double", "int8", "int32", "uint8", "uint64", "complex64"]
PLAIN = {
    "update": lambda a, b: b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": lambda a, b: min(a, b),
    "max": lambda a, b: max(a, b),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("how", [*PLAIN, "div"])
def test_rows_one_after_the_other(how, dtype):
    """Equal places add up, in order; in every type."""
    numpy = as_data_type(dtype).numpy
    if dtype == "complex64" and how in ("min", "max"):
        return
    fn = PLAIN.get(how) or (lambda a, b: int(a / b) if np.dtype(numpy).kind in "iu" else a / b)
    target = np.arange(1, 7).reshape(3, 2).astype(numpy)
    indices, updates = np.array([2, 0, 2]), np.array([[1, 2], [3, 4], [2, 1]]).astype(numpy)
    want = target.tolist()
    for place, row in zip(indices.tolist(), updates.tolist(), strict=True):
        want[place] = [fn(a, b) for a, b in zip(want[place], row, strict=True)]
    scatter(target, indices, updates, how)
    np.testing.assert_allclose(target.astype(numpy), np.array(want).astype(numpy), rtol=2e-2)


def test_integers_divide_towards_zero():
    target = np.array([7, -7, 7, -7], np.int32)
    scatter(target, np.arange(4), np.array([2, 2, -2, -2], np.int32), "div")
    assert target.tolist() == [3, -3, -3, 3]
    with pytest.raises(InvalidArgumentError, match="divides integers by 0"):
        scatter(target, np.array([0]), np.array([0], np.int32), "div")


def test_a_single_update_goes_everywhere():
    target = np.ones((3, 2), np.float32)
    scatter(target, np.array([[0, 1], [1, 1]]), np.float32(2), "mul")
    assert target.tolist() == [[2, 2], [8, 8], [1, 1]]


def test_nothing_to_do():
    target = np.ones((3, 2), np.float32)
    scatter(target, np.zeros((0,), int), np.zeros((0, 2), np.float32), "add")
    scatter_nd(target, np.zeros((0, 1), int), np.zeros((0, 2), np.float32), "add")
    scatter_nd(np.ones((0, 2), np.float32), np.zeros((0, 1), int), np.zeros((0, 2), np.float32), "add")
    assert target.tolist() == [[1, 1]] * 3


@given(st.data())
def test_slices_of_any_depth(data):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    depth = data.draw(st.integers(0, len(shape)))
    count = data.draw(st.integers(0, 4))
    rows = [[data.draw(st.integers(0, n - 1)) for n in shape[:depth]] for _ in range(count)]
    indices = np.array(rows, np.int64).reshape(count, depth)
    updates = np.arange(count * int(np.prod(shape[depth:]))).reshape(count, *shape[depth:]).astype(float)
    how = data.draw(st.sampled_from(["update", "add", "sub"]))
    target = np.ones(shape)
    want = target.copy()
    for row, update in zip(rows, updates, strict=True):
        want[tuple(row)] = PLAIN[how](want[tuple(row)], update)
    scatter_nd(target, indices, updates, how)
    np.testing.assert_array_equal(target, want)


BAD = [
    (lambda: scatter(np.ones(3), np.array([3]), np.ones(1), "add"), r"indices\[0\] = 3 lies outside of \[0, 3\)"),
    (lambda: scatter(np.ones(3), np.array(-1), np.ones(()), "add"), r"indices = -1"),
    (lambda: scatter(np.ones(()), np.array([0]), np.ones(1), "add"), "a scalar has no rows"),
    (lambda: scatter(np.ones((3, 2)), np.array([0]), np.ones((1, 3)), "add"), "one row of the target"),
    (lambda: scatter_nd(np.ones(3), np.array([[3]]), np.ones(1), "add"), r"\[3\] lies outside of the shape \[3\]"),
    (lambda: scatter_nd(np.ones(3), np.array([[0, 0]]), np.ones(1), "add"), "for a target of rank 1"),
    (lambda: scatter_nd(np.ones(3), np.array(0), np.ones(1), "add"), "at least one dimension"),
    (lambda: scatter_nd(np.ones((3, 2)), np.array([[0]]), np.ones((1, 1)), "add"), "one slice of the target"),
]


@pytest.mark.parametrize("use, text", BAD, ids=[b[1] for b in BAD])
def test_refusals(use, text):
    with pytest.raises(InvalidArgumentError, match=text):
        use()


def test_a_vector_of_indices_is_one_place():
    target = np.zeros((3, 2))
    scatter_nd(target, np.array([2]), np.array([1.0, 2.0]), "add")
    assert target.tolist() == [[0, 0], [0, 0], [1, 2]]


def test_bad_places_may_be_left_out():
    target = np.zeros(3)
    scatter_nd(target, np.array([[0], [7], [-1]]), np.array([1.0, 2.0, 3.0]), "add", "IGNORE")
    assert target.tolist() == [1, 0, 0]


def masks(**bits):
    return {name: bits.get(name.removesuffix("_mask").removesuffix("_axis"), 0) for name in MASKS}


SLICES = [
    # begin, end, strides, masks, what it is in Python
    ([1], [3], [1], {}, np.s_[1:3]),
    ([-1], [-9], [-2], {}, np.s_[-1:-9:-2]),
    ([1, 0], [2, 9], [1, 2], {"shrink": 1}, np.s_[1, 0:9:2]),
    ([0, 1], [0, 2], [1, 1], {"ellipsis": 1}, np.s_[..., 1:2]),
    ([5, 1, 0], [5, 2, 0], [1, 1, 1], {"new": 1, "begin": 4, "end": 4}, np.s_[None, 1:2, :]),
    ([1, 0, -1], [0, 0, 0], [1, 1, 1], {"ellipsis": 2, "shrink": 5}, np.s_[1, ..., -1]),
    ([], [], [], {}, np.s_[()]),
    ([1], [0], [1], {"shrink": 1, "begin": 1}, np.s_[0]),
    ([-3], [0], [1], {"shrink": 1}, np.s_[-3]),
]


@pytest.mark.parametrize("begin, end, strides, bits, meant", SLICES, ids=str)
def test_strided_slices(begin, end, strides, bits, meant):
    x = np.arange(60).reshape(3, 4, 5)
    parts = [np.array(v, np.int64) for v in (begin, end, strides)]
    np.testing.assert_array_equal(x[strided_index(x.shape, *parts, masks(**bits))], x[meant])


BAD_SLICES = [
    ([0], [1], [0], {}, "must not be 0"),
    ([3], [4], [1], {"shrink": 1}, "lies outside of dimension 0"),
    ([-4], [4], [1], {"shrink": 1}, "lies outside of dimension 0"),
    ([0], [1], [-1], {"shrink": 1}, "selects a single element"),
    ([0, 3], [0, 0], [1, 1], {"new": 1, "shrink": 2}, "= 3 lies outside of dimension 0"),
    ([0, 5], [0, 0], [1, 1], {"ellipsis": 1, "shrink": 2}, "begin\\[1\\] = 5 lies outside of dimension 2"),
    ([0, 0], [1, 1], [1, 1], {"ellipsis": 3}, "more than one bit"),
    ([0] * 4, [1] * 4, [1] * 4, {}, "the input has 3"),
    ([0, 1], [1], [1], {}, "one length"),
]


@pytest.mark.parametrize("begin, end, strides, bits, text", BAD_SLICES, ids=[b[4] for b in BAD_SLICES])
def test_bad_slices(begin, end, strides, bits, text):
    parts = [np.array(v, np.int64) for v in (begin, end, strides)]
    with pytest.raises(InvalidArgumentError, match=text):
        strided_index((3, 4, 5), *parts, masks(**bits))


def test_updates_copy_shared_buffers():
    variable = Var(as_data_type("float"))
    variable.assign(np.zeros(3, np.float32))
    seen = variable.read()
    scatter(variable.writable(), np.array([1]), np.ones(1, np.float32), "add")
    assert (seen.tolist(), variable.read().tolist()) == ([0, 0, 0], [0, 1, 0])
