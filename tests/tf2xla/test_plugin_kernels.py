"""XLA kernels of libraries in C: tests/data/plugins/kernels.c."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.builds.plugins import line_of, loaded

import cyxla
from cyxla.core.framework import apply_op
from cyxla.core.framework.plugins.xla_kernels import NativeXlaKernelRow
from cyxla.errors import HloParseError, InternalError, InvalidArgumentError, UnimplementedError
from cyxla.tf2xla.plugin_kernels import register_plugin_kernels
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry


@pytest.fixture(scope="module", autouse=True)
def library():
    return loaded("kernels.c")


def graph_of(op, shapes, **attrs):
    """Return a graph with one node, its placeholders and its outputs."""
    graph = cyxla.Graph()
    with graph.as_default():
        inputs = [graph.placeholder(dtype, shape) for dtype, shape in shapes]
        results = apply_op(op, *inputs, name="compiled", **attrs)
    return graph, inputs, list(results) if isinstance(results, tuple) else [results]


def run(op, values, *, shapes=None, jit="on", platform="cpu", **attrs):
    shapes = shapes or [(str(v.dtype), v.shape) for v in values]
    graph, inputs, results = graph_of(op, shapes, **attrs)
    options = {"platform": platform} if jit == "on" else {}
    with cyxla.Session(graph, jit=jit, **options) as session:
        return session.run(results, dict(zip(inputs, values, strict=True)))


def floats(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


CASES = [
    ("CScaleRows", [floats(3, 4), floats(3)], {}),
    ("CScaleRows", [floats(3, 4, dtype=np.float64), floats(4, dtype=np.float64)], {"axis": -1}),
    ("CScaleRows", [floats(0, 4), floats(4)], {"axis": 1}),
    ("CAffine", [floats(5)], {}),
    ("CPower", [floats(2, 3)], {}),
    ("CPower", [floats()], {"n": 0}),
    ("CPower", [floats(0)], {}),
]


@pytest.mark.parametrize("op, values, attrs", CASES, ids=[f"{c[0]} {c[1][0].shape}" for c in CASES])
def test_compiled_ops(op, values, attrs, backend):
    """StableHLO, HLO with a tuple, and a call of a C function give the results of the kernels."""
    compiled, plain = run(op, values, platform=backend, **attrs), run(op, values, jit="off", **attrs)
    for found, expected in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def test_compile_time_constants(backend):
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [])
        y = apply_op("CRepeat", x, np.int32(4)) + np.float32(1)
    with cyxla.Session(graph, jit="on", platform=backend) as session:
        np.testing.assert_array_equal(session.run(y, {x: np.float32(2)}), np.full(4, 3, np.float32))


def test_ops_around_a_call_are_compiled_with_it():
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [None])
        y = apply_op("CPower", x * np.float32(2), n=2) + np.float32(1)
    with cyxla.Session(graph, jit="on") as session:
        for n in (3, 7):
            np.testing.assert_array_equal(session.run(y, {x: floats(n)}), (2 * floats(n)) ** 2 + 1)


ERRORS = [
    ("CAffine", [floats(5)], {"mode": 1}, InvalidArgumentError, r"parameters \(f64\[5\].*inputs are \(f32\[5\]"),
    ("CAffine", [floats(5)], {"mode": 2}, InternalError, "emitted nothing"),
    ("CAffine", [floats(5)], {"mode": 3}, HloParseError, "nonsense"),
    ("CAffine", [floats(5)], {"mode": 4}, InternalError, "1 results, but the node has 2 outputs"),
    ("CAffine", [floats(5, 5)], {}, UnimplementedError, "rank 2"),
    ("CPower", [floats(3)], {"n": 10}, InvalidArgumentError, "the power 10 is too high"),
]


@pytest.mark.parametrize("op, values, attrs, error, message", ERRORS, ids=[f"{e[0]} {e[4]}" for e in ERRORS])
def test_errors_of_xla_kernels(op, values, attrs, error, message):
    with pytest.raises(error, match=message) as caught:
        run(op, values, **attrs)
    if op == "CAffine":
        assert "node 'compiled' (CAffine)" in str(caught.value)
        assert "kernels.c:" in str(caught.value) or attrs["mode"] == 2


def test_errors_of_xla_kernels_name_the_line():
    with pytest.raises(UnimplementedError) as caught:
        run("CAffine", [floats(5, 5)])
    assert line_of("kernels.c", "c->shapes[0].rank == 1") in str(caught.value)


def test_ops_without_an_xla_kernel_are_named():
    with pytest.raises(InvalidArgumentError, match="no kernel of CTally"):
        run("CTally", [])


def test_registrations_that_conflict_are_left_out_with_a_warning(caplog):
    registry = XlaOpRegistry()
    row = NativeXlaKernelRow("Relu", {}, (), None, None, None)
    with caplog.at_level(logging.WARNING, "cyxla.plugins"):
        register_plugin_kernels(registry, [row])
        assert caplog.text == ""
        register_plugin_kernels(registry, [row])
    assert "the XLA kernel of Relu in a library is not registered" in caplog.text


def test_compiled_ops_in_threads():
    graph, (x,), (y,) = graph_of("CPower", [("float", [None])], n=2)
    with cyxla.Session(graph, jit="on") as session, ThreadPoolExecutor(6) as pool:

        def call(thread):
            for k in range(300):
                value = np.full(1 + k % 3, thread, np.float32)
                np.testing.assert_array_equal(session.run(y, {x: value}), value**2)

        list(pool.map(call, range(6)))
