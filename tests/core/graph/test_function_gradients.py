"""Gradients through calls, branches and loops of functions."""

import numpy as np
import pytest

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.function_gradients import symbolic_gradient
from cyxla.errors import NotFoundError, UnimplementedError

X = np.array([0.5, -1.5, 2.0])


def add_function(graph, name, body, *types):
    """Add to a graph's library the function that `body` builds from arguments of some types."""
    inner = Graph()
    inner.library = graph.library
    with inner.as_default():
        args = [inner.placeholder(dtype, shape, name=f"a{i}") for i, (dtype, shape) in enumerate(types)]
        results = body(*args)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    graph.library.add(graph_to_function(name, args, results))
    return NameAttrList(name)


def slope_and_numeric(graph, y, x, at, feeds=None, step=1e-6):
    """Return the gradient of the sum of y at a point, and the central differences."""
    [dx] = gradients(y, x)
    session = Session(graph)
    found = session.run(dx, {x: at, **(feeds or {})})
    numeric = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        moved = [at.copy(), at.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        up, down = (session.run(y, {x: m, **(feeds or {})}).sum() for m in moved)
        numeric[place] = (up - down) / (2 * step)
    return found, numeric


V = ("double", [3])


def test_call():
    graph = Graph()
    f = add_function(graph, "f", lambda x, w: apply_op("Tanh", x * w) * x, V, V)
    with graph.as_default():
        x = graph.placeholder("double", [3])
        [y] = apply_op("PartitionedCall", [x, x * 2.0], Tout=["double"], f=f)
    found, numeric = slope_and_numeric(graph, y, x, X)
    np.testing.assert_allclose(found, numeric, rtol=1e-6)


def test_call_of_a_call():
    graph = Graph()
    f = add_function(graph, "f", lambda x: apply_op("Sin", x) * x, V)
    g = add_function(
        graph, "g", lambda x: apply_op("StatefulPartitionedCall", [x + 1.0], Tout=["double"], f=f)[0] * x, V
    )
    with graph.as_default():
        x = graph.placeholder("double", [3])
        [y] = apply_op("StatefulPartitionedCall", [x], Tout=["double"], f=g)
    found, numeric = slope_and_numeric(graph, y, x, X)
    np.testing.assert_allclose(found, numeric, rtol=1e-6)


def test_call_by_the_functions_name():
    graph = Graph()
    add_function(graph, "twice_sine", lambda x: apply_op("Sin", x) * 2.0, V)
    with graph.as_default():
        x = graph.placeholder("double", [3])
        y = apply_op("twice_sine", x)
    [dx] = gradients(y, x)
    np.testing.assert_allclose(Session(graph).run(dx, {x: X}), 2 * np.cos(X), rtol=1e-12)


def test_random_numbers_are_drawn_once():
    graph = Graph()
    f = add_function(graph, "noisy", lambda x: apply_op("RandomUniform", [3], dtype="double") * x, V)
    with graph.as_default():
        x = graph.placeholder("double", [3])
        [y] = apply_op("StatefulPartitionedCall", [x], Tout=["double"], f=f)
        [dx] = gradients(y, x)
    value, slope = Session(graph).run([y, dx], {x: X})
    np.testing.assert_allclose(slope * X, value, rtol=1e-12)


@pytest.mark.parametrize("op", ["If", "StatelessIf"])
@pytest.mark.parametrize("choice", [True, False])
def test_if(op, choice):
    graph = Graph()
    then = add_function(graph, "then", lambda x, w: apply_op("Exp", x) * w, V, V)
    other = add_function(graph, "other", lambda x, w: apply_op("Square", apply_op("Sin", x)), V, V)
    with graph.as_default():
        cond, x = graph.placeholder("bool", []), graph.placeholder("double", [3])
        [y] = apply_op(op, cond, [x, x * x], Tout=["double"], then_branch=then, else_branch=other)
    found, numeric = slope_and_numeric(graph, y, x, X, {cond: np.array(choice)})
    np.testing.assert_allclose(found, numeric, rtol=1e-6)


@pytest.mark.parametrize("op", ["Case", "StatelessCase"])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_case(op, index):
    graph = Graph()
    names = [
        add_function(graph, "cube", lambda x: x * x * x, V),
        add_function(graph, "cosh", lambda x: apply_op("Cosh", x), V),
        add_function(graph, "constant", lambda x: apply_op("OnesLike", x), V),
    ]
    with graph.as_default():
        number, x = graph.placeholder("int32", []), graph.placeholder("double", [3])
        [y] = apply_op(op, number, [x], Tout=["double"], branches=names)
    found, numeric = slope_and_numeric(graph, y, x, X, {number: np.array(index, np.int32)})
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-9)


def while_graph(op, turns_type="int32"):
    """Turn by turn, y becomes sin(y) * w: w is the same in each turn."""
    graph = Graph()
    counter = (turns_type, [])
    cond = add_function(graph, "cond", lambda i, n, y, w: i < n, counter, counter, V, V)
    body = add_function(
        graph, "body", lambda i, n, y, w: [i + 1, n, apply_op("Sin", y) * w, apply_op("Identity", w)],
        counter, counter, V, V,
    )  # fmt: skip
    with graph.as_default():
        x, n = graph.placeholder("double", [3]), graph.placeholder(turns_type, [])
        results = apply_op(op, [graph.constant(0), n, x, x + 2.0], cond=cond, body=body)
    return graph, x, n, results[2]


@pytest.mark.parametrize("op", ["While", "StatelessWhile"])
@pytest.mark.parametrize("turns", [0, 1, 5])
def test_while(op, turns):
    graph, x, n, y = while_graph(op)
    found, numeric = slope_and_numeric(graph, y, x, X, {n: np.array(turns, np.int32)})
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-9)


def test_differentiation_keeps_the_results_of_while():
    graph, x, n, y = while_graph("While")
    feeds = {x: X, n: np.array(4, np.int32)}
    before = Session(graph).run(y, feeds)
    gradients(y, x)
    np.testing.assert_array_equal(Session(graph).run(y, feeds), before)


def test_while_whose_variable_is_a_list():
    """A list grows turn by turn; its gradient shrinks."""
    graph = Graph()
    types = (("int32", []), ("double", [3]), ("variant", []))
    cond = add_function(graph, "cond", lambda i, y, acc: i < 3, *types)
    body = add_function(
        graph, "body", lambda i, y, acc: [i + 1, apply_op("Sin", y), apply_op("TensorListPushBack", acc, y * y)], *types
    )
    with graph.as_default():
        x = graph.placeholder("double", [3])
        empty = apply_op("EmptyTensorList", [3], -1, element_dtype="double")
        results = apply_op("While", [graph.constant(0), x, empty], cond=cond, body=body)
        y = apply_op("TensorListStack", results[2], [3], element_dtype="double")
    found, numeric = slope_and_numeric(graph, y, x, X)
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-9)


def test_while_that_reads_a_variable():
    graph = Graph()
    types = (("int32", []), ("double", [3]), ("resource", []))
    cond = add_function(graph, "cond", lambda i, y, w: i < 4, *types)
    body = add_function(
        graph, "body", lambda i, y, w: [i + 1, apply_op("Tanh", y * apply_op("ReadVariableOp", w, dtype="double")), w],
        *types,
    )  # fmt: skip
    with graph.as_default():
        x = graph.placeholder("double", [3])
        handle = apply_op("VarHandleOp", dtype="double", shape=[3], shared_name="w")
        init = apply_op("AssignVariableOp", handle, graph.placeholder("double", [3], name="value"))
        y = apply_op("While", [graph.constant(0), x, handle], cond=cond, body=body)[1]
    dx, dw = gradients(y, [x, handle])
    session = Session(graph)

    def value(w, at):
        session.run(init, {"value:0": w})
        return session.run(y, {x: at}).sum()

    w, slopes = np.array([0.7, 1.3, -0.4]), np.zeros(3)
    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        slopes[i] = (value(w + step, X) - value(w - step, X)) / 2e-6
    session.run(init, {"value:0": w})
    np.testing.assert_allclose(session.run(dw, {x: X}), slopes, rtol=1e-6, atol=1e-9)
    assert session.run(dx, {x: X}).shape == (3,)


def test_second_derivative_through_a_call():
    graph = Graph()
    f = add_function(graph, "f", lambda x: x * x * x, V)
    with graph.as_default():
        x = graph.placeholder("double", [3])
        [y] = apply_op("PartitionedCall", [x], Tout=["double"], f=f)
        [dx] = gradients(y, x)
        [ddx] = gradients(dx, x)
    np.testing.assert_allclose(Session(graph).run(ddx, {x: X}), 6 * X, rtol=1e-12)


def test_missing_function():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", [3])
        [y] = apply_op("PartitionedCall", [x], Tout=["double"], f=NameAttrList("nobody"))
        with pytest.raises(NotFoundError, match="nobody"):
            gradients(y, x)


def test_loop_of_version_1_is_refused_by_name():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", [])
        y = apply_op("Exit", apply_op("Enter", x, frame_name="loop"))
        with pytest.raises(UnimplementedError, match="version 1"):
            gradients(y, x)


def test_version_1_loops_are_refused_too():
    """The only path from x to y goes around the loop."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", [], name="x")
        start = apply_op("Enter", graph.constant(1.0, "double"), frame_name="loop")
        inside = apply_op("Enter", x, frame_name="loop", is_constant=True)
    attrs = {"T": AttrValue("type", start.dtype), "N": AttrValue("int", 2)}
    merge = graph.add_node(NodeDef("merge", "Merge", ["Enter", "later"], attr=attrs), [start, None])
    with graph.as_default():
        step = apply_op("NextIteration", merge.outputs[0] * inside)
        graph.set_input(merge, 1, step)
        y = apply_op("Exit", merge.outputs[0])
        with pytest.raises(UnimplementedError, match="version 1"):
            gradients(y, x)


def symbolic(graph, f, inputs, types):
    with graph.as_default():
        return apply_op("SymbolicGradient", inputs, Tout=types, f=f)


def test_symbolic_gradient_of_a_function():
    graph = Graph()
    f = add_function(graph, "f", lambda x, w, n: [apply_op("Sin", x) * w, n + 1], V, V, ("int32", []))
    x, w, dy = (graph.placeholder("double", [3]) for _ in range(3))
    n = graph.placeholder("int32", [])
    dx, dw, dn = symbolic(graph, f, [x, w, n, dy, n], ["double", "double", "int32"])
    feeds = {x: X, w: X + 3, dy: X - 1, n: np.array(5, np.int32)}
    found = Session(graph).run([dx, dw, dn], feeds)
    np.testing.assert_allclose(found[0], np.cos(X) * (X + 3) * (X - 1))
    np.testing.assert_allclose(found[1], np.sin(X) * (X - 1))
    assert found[2] == 0


@pytest.mark.parametrize("attrs, digest", [
    ({}, "fa987dbb9efec39c"),
    ({"T": AttrValue("type", DataType.DT_DOUBLE), "n": AttrValue("int", 3)}, "2f7c09af866691ce"),
])  # fmt: skip
def test_the_name_of_a_symbolic_gradient_is_the_same_in_every_process(attrs, digest):
    graph = Graph()
    add_function(graph, "f", lambda x: x * x, V)
    assert symbolic_gradient(NameAttrList("f", attrs), graph.library).name == f"f_symbolic_gradient_{digest}"


def test_symbolic_gradient_that_is_given():
    graph = Graph()
    f = add_function(graph, "f", lambda x: x * x, V)
    add_function(graph, "f_grad", lambda x, dy: dy * 100.0, V, V)
    graph.library.add_gradient("f", "f_grad")
    x, dy = graph.placeholder("double", [3]), graph.placeholder("double", [3])
    given = symbolic(graph, f, [x, dy], ["double"])
    np.testing.assert_allclose(Session(graph).run(given, {x: X, dy: X - 1}), [(X - 1) * 100])


def test_symbolic_gradient_of_nothing():
    graph = Graph()
    x = graph.placeholder("double", [3])
    found = symbolic(graph, NameAttrList("nobody"), [x, x], ["double"])
    with pytest.raises(NotFoundError, match="nobody"):
        Session(graph).run(found, {x: X})
