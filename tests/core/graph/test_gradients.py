"""Gradients of graphs: sums, weights, stops, conditionals, and ops without a gradient."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import Gradient, GradientRegistry, gradient, no_gradient
from cyxla.errors import AlreadyExistsError, FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError

X = np.array([0.5, -1.5, 2.0])


def build():
    graph = Graph()
    return graph, graph.placeholder("double", [3], name="x")


def run(graph, fetches, feeds):
    return Session(graph).run(fetches, feeds)


def test_gradients_of_several_paths_are_summed():
    graph, x = build()
    y = x * x + x
    [dx] = gradients([y, x * 3.0], x)
    np.testing.assert_allclose(run(graph, dx, {x: X}), 2 * X + 4)


def test_weights_and_intermediate_tensors():
    graph, x = build()
    h = x * x
    y = h * 3.0
    dh, dx = gradients(y, [h, x], [[1.0, 10.0, 100.0]])
    found = run(graph, [dh, dx], {x: X})
    np.testing.assert_allclose(found, [[3, 30, 300], np.array([6, 60, 600]) * X])


@pytest.mark.parametrize("weight, says", [([1.0], "weight"), (np.float32([1, 2, 3]), "weight"), ("a", "fit")])
def test_weights_that_do_not_fit(weight, says):
    graph, x = build()
    if isinstance(weight, np.ndarray):
        with graph.as_default():
            weight = graph.constant(weight)
    with pytest.raises(InvalidArgumentError, match=says):
        gradients(x * x, x, [weight])


def test_stops():
    graph, x = build()
    h = x * x
    y = h * x
    [dx] = gradients(y, x, stop_gradients=[h])
    [again] = gradients(apply_op("StopGradient", h) * x, x)
    np.testing.assert_allclose(run(graph, [dx, again], {x: X}), [X * X, X * X])


def test_no_path_gives_none_or_zeros():
    graph, x = build()
    z = graph.placeholder("double", [2], name="z")
    y = apply_op("Cast", apply_op("Floor", x), DstT="int32")
    assert gradients(x * x, z) == [None]
    assert gradients(y, x) == [None]
    [dz] = gradients(x * x, z, unconnected="zero")
    np.testing.assert_array_equal(run(graph, dz, {z: X[:2]}), [0, 0])
    with pytest.raises(InvalidArgumentError, match="unconnected"):
        gradients(y, x, unconnected="what")


def test_an_op_without_gradient_is_named():
    """No gradient is registered."""
    _, x = build()
    with pytest.raises(NotFoundError, match="Neg") as caught:
        gradients(-x, x, registry=GradientRegistry())
    assert caught.value.node == "Neg"
    assert caught.value.op == "Neg"


def test_registering():
    registry = GradientRegistry()

    @gradient("Neg", registry=registry)
    def backward(op, dy):
        return dy * 7.0

    no_gradient("Floor", registry=registry)
    graph, x = build()
    [dx] = gradients(-x, x, registry=registry)
    np.testing.assert_array_equal(run(graph, dx, {x: X}), [7, 7, 7])
    assert gradients(apply_op("Floor", x), x, registry=registry) == [None]
    assert registry.ops() == ["Floor", "Neg"]
    with pytest.raises(AlreadyExistsError, match="Neg"):
        no_gradient("Neg", registry=registry)


def test_threads_wait_until_the_catalogue_is_loaded():
    def load():
        entered.wait(600)
        registry.register("Slow", Gradient(None))

    entered = Barrier(2)
    registry = GradientRegistry(load)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(registry.ops)
        entered.wait(600)
        assert pool.submit(registry.find, "Slow").result(5) is not None
        assert first.result(5) == ["Slow"]


@pytest.mark.parametrize("result, says", [(lambda x: (x, x), "2 gradients"), (lambda x: x[0], "gradient of Neg")])
def test_a_wrong_gradient_function_is_found_out(result, says):
    registry = GradientRegistry()
    gradient("Neg", registry=registry)(lambda op, dy: result(dy))
    _, x = build()
    with pytest.raises(InternalError, match=says):
        gradients(-x, x, registry=registry)


def test_prevented():
    _graph, x = build()
    with pytest.raises(FailedPreconditionError, match="not through here"):
        gradients(apply_op("PreventGradient", x, message="not through here"), x)


def test_complex_results_need_a_weight():
    graph, x = build()
    with graph.as_default():
        z = apply_op("Complex", x, x, Tout="complex128")
    with pytest.raises(InvalidArgumentError, match="complex"):
        gradients(z, x)
    [dx] = gradients(z, x, [np.array([1 + 2j] * 3)])
    np.testing.assert_allclose(run(graph, dx, {x: X}), [3, 3, 3])


@pytest.mark.parametrize("choice", [True, False])
def test_conditionals_of_switch_and_merge(choice):
    graph, x = build()
    with graph.as_default():
        pred = graph.placeholder("bool", [])
        if_false, if_true = apply_op("Switch", x, pred)
        y, _ = apply_op("Merge", [apply_op("Sin", if_false), if_true * if_true])
        _, only_true = apply_op("Switch", x, pred)
        other = graph.constant(np.zeros(3))
        z, _ = apply_op("Merge", [apply_op("Switch", other, pred)[0], only_true * 5.0])
        [dx], [dz] = gradients(y, x), gradients(z, x)
    found = run(graph, [dx, dz], {x: X, pred: np.array(choice)})
    want = [2 * X, np.full(3, 5.0)] if choice else [np.cos(X), np.zeros(3)]
    np.testing.assert_allclose(found, want)


def test_variables_stand_for_their_values():
    graph, _x = build()
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype="double", shape=[4, 2], shared_name="w")
        init = apply_op("AssignVariableOp", handle, np.arange(8.0).reshape(4, 2))
        rows = apply_op("ResourceGather", handle, [1, 3, 1], dtype="double")
        loss = apply_op("Sum", rows * apply_op("ReadVariableOp", handle, dtype="double")[:3], [0, 1])
    [dw] = gradients(loss, handle)
    session = Session(graph)
    session.run(init)
    w = np.arange(8.0).reshape(4, 2)
    want = np.zeros((4, 2))
    want[:3] = w[[1, 3, 1]]
    np.add.at(want, [1, 3, 1], w[:3])
    np.testing.assert_allclose(session.run(dw), want)


def test_picks_of_a_variable():
    graph, _ = build()
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype="double", shape=[2, 3], shared_name="w")
        init = apply_op("AssignVariableOp", handle, np.zeros((2, 3)))
        picked = apply_op("ResourceGatherNd", handle, [[1, 2], [0, 1], [1, 2]], dtype="double")
        batched = apply_op("ResourceGather", handle, [[2, 0], [1, 1]], batch_dims=1, dtype="double")
    [dw] = gradients(picked, handle, [[1.0, 10.0, 100.0]])
    [db] = gradients(batched, handle, [[[1.0, 2.0], [3.0, 4.0]]])
    session = Session(graph)
    session.run(init)
    np.testing.assert_array_equal(session.run(dw), [[0, 10, 0], [0, 0, 101]])
    np.testing.assert_array_equal(session.run(db), [[2, 0, 1], [0, 7, 0]])


@pytest.mark.slow
def test_a_long_chain_is_nothing_special():
    graph, x = build()
    y = x
    with graph.as_default():
        for _ in range(3000):
            y = apply_op("Neg", y)
    [dx] = gradients(y, x)
    np.testing.assert_array_equal(run(graph, dx, {x: X}), [1, 1, 1])


def test_tensors_of_two_graphs():
    _graph, x = build()
    _, other = build()
    with pytest.raises(InvalidArgumentError, match="another graph"):
        gradients(x * x, other)
