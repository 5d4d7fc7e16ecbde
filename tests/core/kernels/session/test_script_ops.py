"""Nodes that call Python functions."""

import numpy as np
import pytest
from support.garbage import collect

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.step.py_functions import PyFunctionRegistry
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.py_func import py_func, py_function
from cyxla.core.runtime.session import Session
from cyxla.errors import OpError

F = np.float32


def run(call, function, inputs, types, **kwargs):
    graph = Graph()
    with graph.as_default():
        result = call(function, inputs, types, **kwargs)
    return Session(graph).run(result)


def failure(*args):
    with pytest.raises(OpError) as caught:
        run(*args)
    return caught.value


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_a_function_between_other_nodes(jit):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [None])
        y = apply_op("Mul", py_func(np.sinh, [apply_op("Neg", x)], "float"), F(2))
    session = cyxla.Session(graph, jit=jit)
    for values in ([1, 2], []):
        np.testing.assert_array_equal(session.run(y, {x: values}), np.sinh(-F(values)) * F(2))


@pytest.mark.parametrize("call, kinds", [
    (py_func,     [np.float32, np.ndarray, bytes, np.ndarray, np.bool_]),
    (py_function, [np.ndarray] * 5),
])  # fmt: skip
def test_arguments(call, kinds):
    seen = []

    def see(*args):
        seen.extend(args)

    texts = np.array([b"a", b"b"], object)
    assert run(call, see, [F(1), F([2, 3]), np.array(b"t", object), texts, np.array(True)], []) is None
    assert [type(a) for a in seen] == kinds
    assert [np.asarray(a).tolist() for a in seen] == [1, [2, 3], b"t", [b"a", b"b"], True]
    assert not seen[1].flags.writeable


@pytest.mark.parametrize("function, types, wanted", [
    (lambda: F([1, 2]),                   "float",             F([1, 2])),
    (lambda: [1.5],                       ["double"],          [np.array(1.5)]),
    (lambda: (F(1), np.int64(2)),         ["float", "int64"],  [F(1), np.int64(2)]),
    (lambda: "text",                      "string",            np.array(b"text", object)),
    (lambda: np.array(["ä", "b"]),        "string",            np.array(["ä".encode(), b"b"], object)),
    (lambda: None,                        [],                  None),
    (lambda: True,                        "bool",              np.array(True)),
])  # fmt: skip
def test_results(function, types, wanted):
    results = run(py_func, function, [], types)
    if wanted is None:
        assert results is None
        return
    results, wanted = (r if isinstance(r, list) else [r] for r in (results, wanted))
    assert [(r.dtype, r.tolist()) for r in results] == [(np.asarray(w).dtype, w.tolist()) for w in wanted]


@pytest.mark.parametrize("function, types, wanted", [
    (lambda: 1.5,                "float",             F(1.5)),
    (lambda: np.int8([1, 2]),    "half",              np.float16([1, 2])),
    (lambda: (1, [2.0, 3.0]),    ["int64", "float"],  [np.int64(1), F([2, 3])]),
    (lambda: None,               [],                  None),
])  # fmt: skip
def test_results_are_converted(function, types, wanted):
    results = run(py_function, function, [], types)
    if wanted is None:
        assert results is None
        return
    results, wanted = (r if isinstance(r, list) else [r] for r in (results, wanted))
    assert [(r.dtype, r.tolist()) for r in results] == [(np.asarray(w).dtype, w.tolist()) for w in wanted]


def _raise(error):
    raise error


@pytest.mark.parametrize("call", [py_func, py_function])
@pytest.mark.parametrize("error, code", [
    (ValueError("bad"),           "INVALID_ARGUMENT"),
    (TypeError("bad"),            "INVALID_ARGUMENT"),
    (StopIteration("bad"),        "OUT_OF_RANGE"),
    (MemoryError("bad"),          "RESOURCE_EXHAUSTED"),
    (NotImplementedError("bad"),  "UNIMPLEMENTED"),
    (RuntimeError("bad"),         "UNKNOWN"),
    (KeyError("bad"),             "UNKNOWN"),
])  # fmt: skip
def test_exceptions(call, error, code):
    found = failure(call, lambda: _raise(error), [], "float")
    assert found.code == code
    assert found.message.startswith(f"{type(error).__name__}: {error}\nTraceback (most recent call last):\n")
    assert "in _raise" in found.message


def test_an_interrupt_is_not_an_error_of_the_function():
    with pytest.raises(KeyboardInterrupt):
        run(py_func, lambda: _raise(KeyboardInterrupt()), [], "float")


@pytest.mark.parametrize("function, types, message", [
    (lambda: [F(1), F(2)],  ["float"],           " returns 2 values, but expects to see 1 values."),
    (lambda: None,          ["float"],           " returns 0 values, but expects to see 1 values."),
    (lambda: 1.5,           ["float"],           " is double, but expects float"),
    (lambda: [F(1), F(2)],  ["float", "int32"],  " is float, but expects int32"),
])  # fmt: skip
def test_wrong_results(function, types, message):
    error = failure(py_func, function, [], types)
    assert error.code == "INVALID_ARGUMENT"
    assert error.message.endswith(message)
    assert ("-th value returned by pyfunc_" in error.message) == (" is " in message)


def test_too_many_results():
    assert failure(py_function, lambda: [1, 2], [], "half").message.endswith("2 values, but expects to see 1 values.")


def test_an_unknown_token():
    graph = Graph()
    with graph.as_default():
        y = apply_op("PyFunc", [], token="pyfunc_none", Tout=["float"])
    with pytest.raises(OpError) as caught:
        Session(graph).run(y)
    assert caught.value.message.startswith(
        "ValueError: Could not find callback with key=pyfunc_none in the registry.\n"
    )


@pytest.mark.parametrize("stateful, count", [(True, 6), (False, 3)])
def test_stateful_nodes_run_each_time_and_equal_others_are_merged(stateful, count):
    calls, graph = [], Graph()

    def function():
        calls.append(1)
        return F(7)

    with graph.as_default():
        first = py_func(function, [], "float", stateful)
        results = [first, *apply_op(first.node.op, [], token=first.node.attr("token"), Tout=["float"])]
    session = Session(graph)
    for _ in range(3):
        assert [float(v) for v in session.run(results)] == [7, 7]
    assert len(calls) == count


def test_results_do_not_alias_arrays_of_the_function():
    kept, graph = F([1, 2]), Graph()
    with graph.as_default():
        y = py_func(lambda: kept, [], "float")
        z = apply_op("Neg", y)
    session = Session(graph)
    first, _ = session.run([y, z])
    first[:] = 9
    assert kept.tolist() == [1, 2]


def test_functions_live_as_long_as_their_graph():
    registry = PyFunctionRegistry.global_()
    collect()
    before = len(registry)
    graph = Graph()
    with graph.as_default():
        py_func(lambda: F(1), [], "float")
    assert len(registry) == before + 1
    del graph
    collect()
    assert len(registry) == before


def test_eager_calls_keep_no_function():
    before = len(PyFunctionRegistry.global_())
    assert py_func(np.negative, [F([1, 2])], "float").tolist() == [-1, -2]
    assert py_function(lambda x: x * 2, [F([1, 2])], "double").tolist() == [2, 4]
    assert len(PyFunctionRegistry.global_()) == before
