"""Gradients of nodes that call Python functions."""

import subprocess
import sys

import numpy as np
import pytest
from support.garbage import collect

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.step.py_functions import PyFunctionRegistry
from cyxla.core.runtime.py_func import py_func, py_function
from cyxla.errors import FailedPreconditionError, OpError

X, Y = np.float64([[0.5, -1.5, 2]]), np.float64([[3], [0.25]])
FUNCTIONS = {
    "one result": (lambda x, y: np.sin(x) * y, 1),
    "several results": (lambda x, y: [np.exp(x * y), x.sum(), y], 3),
    "a constant": (lambda x, y: (x + y, 2.5), 2),
    "a result that is no float": (lambda x, y: (x * y * y, np.argmax(x)), 2),
    "a branch": (lambda x, y: x * y if x.sum() > 0 else x - y, 1),
    "a compiled function": (cyxla.jit(lambda x, y: np.tanh(x @ x.T) + y), 1),
}


def graph_of(function, count, values, types=("double", "double", "double")):
    """A graph with placeholders, the results of the function, and the sum of their squares where they are floats."""
    graph = cyxla.Graph()
    with graph.as_default():
        inputs = [graph.placeholder("double", v.shape) for v in values]
        outputs = py_function(function, inputs, list(types[:count]))
        floats = [apply_op("Reshape", t, [-1]) for t in outputs if str(t.dtype) == "double"]
        loss = apply_op("AddN", [apply_op("Sum", t * t, [0]) for t in floats])
    return graph, inputs, loss


@pytest.mark.parametrize("jit", ["off", "auto"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_central_differences(name, jit):
    function, count = FUNCTIONS[name]
    types = ("double", "int64") if name == "a result that is no float" else ("double",) * 3
    graph, inputs, loss = graph_of(function, count, (X, Y), types)
    grads = cyxla.gradients(loss, inputs)
    session = cyxla.Session(graph, jit=jit)
    found = session.run(grads, dict(zip(inputs, (X, Y), strict=True)))
    for k, (value, grad) in enumerate(zip((X, Y), found, strict=True)):
        for place in np.ndindex(value.shape):
            step = np.zeros_like(value)
            step[place] = 1e-6
            up, down = (
                session.run(loss, {**dict(zip(inputs, (X, Y), strict=True)), inputs[k]: value + sign * step})
                for sign in (1, -1)
            )
            assert grad[place] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6)


def test_integers_are_no_continuous_arguments():
    graph = cyxla.Graph()
    with graph.as_default():
        x, n = graph.placeholder("float", [3]), graph.placeholder("int32", [3])
        y = py_function(lambda x, n: x**2 * n, [x, n], "float")
    dx, dn = cyxla.gradients(y, [x, n])
    assert dn is None
    values = {x: np.float32([1, 2, 3]), n: np.int32([0, 1, -1])}
    np.testing.assert_array_equal(cyxla.Session(graph).run(dx, values), np.float32([0, 4, -6]))


def test_complex_gradients_are_those_of_ops():
    z = np.array([1 + 2j, -0.5j, 3])
    found = []
    for multiply in (lambda a, b: apply_op("Mul", a, b), lambda a, b: py_function(np.multiply, [a, b], "complex128")):
        graph = cyxla.Graph()
        with graph.as_default():
            x = graph.placeholder("complex128", [3])
            y = multiply(x, multiply(x, graph.constant(2 - 1j, "complex128")))
            (grad,) = cyxla.gradients(y, [x], [graph.constant(z * 1j)])
        found.append(cyxla.Session(graph).run(grad, {x: z}))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-14)


def test_gradients_of_gradients():
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("double", [])
        y = py_function(lambda x: x**3, [x], "double")
        (first,) = cyxla.gradients(y, [x])
        (second,) = cyxla.gradients(first, [x])
    assert cyxla.Session(graph).run([first, second], {x: 2.0}) == [12, 12]


def test_a_function_that_cannot_be_traced():
    """The reason is that of tracing; the function itself runs."""
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("double", [2])
        y = py_function(lambda x: np.array([float(f"{v:.3f}") for v in x]), [x], "double")
        (grad,) = cyxla.gradients(y, [x])
    session = cyxla.Session(graph)
    with pytest.raises(OpError, match=r"text|format|float"):
        session.run(grad, {x: [1, 2]})


def test_a_token_of_another_process():
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("double", [2])
        (y,) = apply_op("EagerPyFunc", [x], token="pyfunc_none", Tout=["double"])
        with pytest.raises(FailedPreconditionError, match="pyfunc_none in the registry"):
            cyxla.gradients(y, [x])


def test_nothing_flows_through_functions_of_arrays_and_scalars():
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("double", [2])
        assert cyxla.gradients(py_func(np.sin, [x], "double"), [x]) == [None]


def test_pullbacks_live_as_long_as_their_graph():
    collect()
    registry = PyFunctionRegistry.global_()
    before = len(registry)
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("double", [2])
        y = py_function(np.sin, [x], "double")
        cyxla.gradients(y, [x])
    assert len(registry) == before + 2
    del graph, x, y
    collect()
    assert len(registry) == before


ALONE = """
from cyxla.core.graph.gradients import gradients
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.py_func import py_function
from cyxla.core.runtime.session import Session
graph = Graph()
with graph.as_default():
    x = graph.placeholder("double", [])
    dx = gradients(py_function(lambda x: x * x, [x], "double"), x)
Session(graph).run(dx, {x: 1.0})
"""


def test_sessions_of_the_framework_alone_compile_nothing():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "UnimplementedError: the gradient of a Python function needs the compiler" in done.stderr
    assert "mend: run the graph in a cyxla.Session" in done.stderr
