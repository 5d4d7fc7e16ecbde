"""Ops and kernels in C++: tests/data/plugins/classes.cpp and more_classes.cpp."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.builds.plugins import line_of, loaded

import cyxla
from cyxla.core.framework import apply_op
from cyxla.core.runtime.eager import EagerContext, use_context
from cyxla.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    ShapeError,
    UnavailableError,
)


@pytest.fixture(scope="module", autouse=True)
def library():
    return loaded("classes.cpp", "more_classes.cpp", language="c++")


@pytest.fixture(autouse=True)
def eager():
    """A context of its own for every test: its kernels and resources end with it."""
    with use_context(EagerContext()) as current:
        yield current
    current.close()


def floats(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def test_all_files_of_a_library_register(library):
    assert [op_def.name for op_def in library.ops] == [
        "CxxScale", "CxxAttrs", "CxxThrow", "CxxMatch", "CxxLater", "CxxCount", "CxxNegate", "CxxWords", "CxxAddAll",
    ]  # fmt: skip
    assert library.kernels == 10
    assert library.ops[0].summary == "Multiply by a factor."


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_kernels(shape, dtype):
    x = floats(*shape, dtype=dtype)
    np.testing.assert_array_equal(apply_op("CxxScale", x), 2 * x)
    np.testing.assert_array_equal(apply_op("CxxScale", x, factor=-1.5), np.array(-1.5 * x, dtype))


@pytest.mark.parametrize("op, dtype, scale", [("CxxScale", "float32", 2), ("CxxNegate", "float64", -1)])
def test_compiled_ops(op, dtype, scale, backend):
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder(dtype, [None, 2])
        y = apply_op(op, x)
    assert str(y.shape) == "[?,2]"
    value = floats(3, 2, dtype=dtype)
    with cyxla.Session(graph, jit="on", platform=backend) as session:
        np.testing.assert_array_equal(session.run(y, {x: value}), scale * value)


def test_a_custom_call_of_the_same_library(library):
    negate = cyxla.register_c_call(
        "tests.cxx_negate", ctypes.CDLL(str(library.path)).negate, result=lambda x: cyxla.spec(x.shape, x.dtype)
    )
    np.testing.assert_array_equal(cyxla.jit(lambda x: negate(x) + 1)(floats(3, dtype=float)), [1, 0, -1])


def test_attributes_of_all_kinds():
    assert apply_op("CxxAttrs") == 3 + 0.5 + 1 + 4 + 9 + 2 + 1 + (2 + 2 + 3 + 0 + 0) - 2 + 7


ERRORS = [
    ("CxxScale", {"factor": 0.0}, InvalidArgumentError, "factor is 0", "line of the constructor"),
    ("CxxAttrs", {"wrong": "f"}, InvalidArgumentError, "attribute 'f' is float, not int", "line of a wrong kind"),
    ("CxxAttrs", {"wrong": "li"}, InvalidArgumentError, "'li' is a list of int, not int", "line of a wrong kind"),
    ("CxxAttrs", {"wrong": "no"}, NotFoundError, "no attribute 'no'", "line of a wrong kind"),
    ("CxxAttrs", {"li": [2**40]}, InvalidArgumentError, "'li' does not fit into 32 bits", ""),
    ("CxxThrow", {"mode": 0}, InternalError, "constructor has thrown: in the constructor", "line of the registration"),
    ("CxxThrow", {"mode": 1}, InternalError, "Compute has thrown: in Compute", "line of the registration"),
    ("CxxThrow", {"mode": 2}, ResourceExhaustedError, "Compute: out of memory", "line of the registration"),
    ("CxxThrow", {"mode": 3}, InternalError, "Compute has thrown an exception", "line of the registration"),
    ("CxxThrow", {"mode": 4}, OutOfRangeError, "mode 4", "// line of OP_REQUIRES\n"),
    ("CxxThrow", {"mode": 5}, InvalidArgumentError, "has 1 outputs, none at 9", "line of OP_REQUIRES_OK"),
    ("CxxLater", {"mode": 1}, InternalError, "ComputeAsync has thrown: in ComputeAsync", ""),
    ("CxxLater", {"mode": 2}, UnavailableError, "not now", "line of OP_REQUIRES_ASYNC"),
    ("CxxCount", {"mode": "throw"}, InternalError, "the creator of a resource has thrown: no", ""),
]  # fmt: skip


@pytest.mark.parametrize("op, attrs, error, message, line", ERRORS, ids=[f"{e[0]} {e[1]}" for e in ERRORS])
def test_errors(op, attrs, error, message, line):
    inputs = {"CxxScale": [floats(3)], "CxxLater": [np.arange(3)]}.get(op, [])
    with pytest.raises(error, match=message) as caught:
        apply_op(op, *inputs, name="failing", **attrs)
    assert caught.value.node == "failing"
    if line:
        text = line if "\n" not in line else "errors::OutOfRange"
        assert line_of("classes.cpp", text) in str(caught.value)


SHAPES = [
    ([2, None], [None, 3], "[2,3]", ""),
    ([2, 3], None, "[2,3]", ""),
    (None, None, "[?,?]", ""),
    ([2], [2], "", "Shape must be rank 2 but is rank 1"),
    ([2, 3], [2, 4], "", "Dimensions must be equal, but are 3 and 4"),
    ([13, 1], [13, 1], "", "the shape function has thrown: thirteen"),
]


@pytest.mark.parametrize("a, b, expected, message", SHAPES)
def test_shape_functions(a, b, expected, message):
    graph = cyxla.Graph()
    with graph.as_default():
        inputs = [graph.placeholder("float", shape) for shape in (a, b)]
        if not message:
            assert str(apply_op("CxxMatch", *inputs).shape) == expected
            return
        with pytest.raises((ShapeError, InternalError), match=message) as caught:
            apply_op("CxxMatch", *inputs)
    number = int(line_of("classes.cpp", "line of the op").partition(":")[2])
    assert f"classes.cpp:{number}" in str(caught.value)
    with pytest.raises((ShapeError, InternalError), match=message):
        apply_op("CxxMatch", floats(*a), floats(*b))


def test_strings():
    words = np.array([[b"abc", b""], ["é".encode(), b"\0x"]], object)
    assert apply_op("CxxWords", words).tolist() == [[w[::-1] for w in row] for row in words.tolist()]


def test_arguments_that_are_lists():
    assert apply_op("CxxAddAll", [1.5, 2.0, 3.0]) == 6.5


def test_resources(eager):
    def count(mode):
        return tuple(int(v) for v in apply_op("CxxCount", mode=mode))

    assert [count("add") for _ in range(3)] == [(1, 1), (2, 1), (3, 1)]
    assert count("lookup") == (4, 1)
    assert count("delete") == (-1, 0)
    with pytest.raises(NotFoundError):
        count("lookup")
    assert count("add") == (1, 1)
    eager.close()
    with use_context(EagerContext()):
        assert count("none") == (-1, 0)


def test_kernels_in_threads(eager):
    def call(thread):
        with use_context(eager):
            for run in range(300):
                x = np.arange(run % 5) + thread
                np.testing.assert_array_equal(apply_op("CxxLater", x), -x)
                apply_op("CxxCount")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(call, range(6)))
    assert int(apply_op("CxxCount")[0]) == 6 * 300 + 1
