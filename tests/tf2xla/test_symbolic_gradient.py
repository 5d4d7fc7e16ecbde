"""The op SymbolicGradient in compiled graphs."""

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.errors import OpError

F = np.float32
X, Y = F([1, 2, 3]), F([4, 5, 6])


def function(name, build, count=2):
    """A function of float[3] arguments."""
    graph = Graph()
    with graph.as_default():
        args = [graph.placeholder("float", [3], name=f"x{k}") for k in range(count)]
        results = build(*args)
    return graph_to_function(name, args, results)


def gradients_of(build, *, jit, registered=None, count=2, cotangents=1):
    """The gradients of a function with arguments and one cotangent for each result."""
    graph = Graph()
    graph.library.add(function("f", build, count))
    if registered is not None:
        graph.library.add(function("its_gradient", registered, count + cotangents))
        graph.library.add_gradient("f", "its_gradient")
    with graph.as_default():
        inputs = [graph.placeholder("float", [3]) for _ in range(count + cotangents)]
        with graph.as_default():
            results = apply_op("SymbolicGradient", inputs, Tout=["float"] * count, f=NameAttrList("f"))
    session = cyxla.Session(graph, jit=jit)
    feeds = dict(zip(inputs, [X, Y, F([1, 10, 100]), F([7, 8, 9])], strict=False))
    return [r.tolist() for r in session.run(results, feeds)], session


@pytest.mark.parametrize("jit", ["off", "auto", "on"])
@pytest.mark.parametrize("build, cotangents, wanted", [
    (lambda x, y: [x * y],                        1, [Y * F([1, 10, 100]), X * F([1, 10, 100])]),
    (lambda x, y: [x * x],                        1, [2 * X * F([1, 10, 100]), F([0, 0, 0])]),
    (lambda x, y: [x * y, apply_op("Neg", x)],    2, [Y * F([1, 10, 100]) - F([7, 8, 9]), X * F([1, 10, 100])]),
])  # fmt: skip
def test_gradients_of_a_function(jit, build, cotangents, wanted):
    found, _ = gradients_of(build, jit=jit, cotangents=cotangents)
    assert found == [w.tolist() for w in wanted]


@pytest.mark.parametrize("jit", ["off", "on"])
def test_the_registered_gradient_of_a_function(jit):
    found, _ = gradients_of(lambda x, y: [x * y], jit=jit, registered=lambda x, y, dz: [dz + x, dz - y])
    assert found == [(F([1, 10, 100]) + X).tolist(), (F([1, 10, 100]) - Y).tolist()]


@pytest.mark.parametrize("jit", ["off", "on"])
def test_a_function_without_a_gradient(jit):
    with pytest.raises(OpError):
        gradients_of(lambda x, y: [apply_op("IgammaGradA", x, y)], jit=jit)
