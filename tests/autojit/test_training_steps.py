"""Whole training steps, forwards and backwards, as one program."""

import numpy as np
import pytest
from support.graphs.jitting import clusters, ones

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph

F = "float"
RATE = np.float32(0.1)


def variable(graph, name, value):
    """Return the handle of a variable, the node that initialises it, and a read."""
    handle = apply_op("VarHandleOp", dtype=F, shape=list(value.shape), shared_name=name)
    return (
        handle,
        apply_op("AssignVariableOp", handle, graph.constant(value), dtype=F),
        apply_op("ReadVariableOp", handle, dtype=F),
    )


def perceptron(x, w, v):
    return apply_op("MatMul", apply_op("Relu", apply_op("MatMul", x, w)), v)


def convolutions(x, w, v):
    hidden = apply_op("Conv2D", x, w, strides=[1, 1, 1, 1], padding="SAME")
    pooled = apply_op("MaxPool", apply_op("Relu", hidden), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    flat = apply_op("Reshape", pooled, np.array([-1, v.shape.dims[0]], np.int32))
    return apply_op("MatMul", flat, v)


NETWORKS = {
    "perceptron": (perceptron, (4, 5), (5, 7), (7, 3), ["MatMul"]),
    "convolutions": (convolutions, (4, 6, 6, 2), (3, 3, 2, 4), (36, 3), ["Conv2DBackpropFilter", "MaxPoolGrad"]),
}


def training(network, sizes, first, second):
    """Return the graph of one step, and the names of its initialisers, updates and results."""
    rng, graph = np.random.default_rng(3), Graph()
    x = graph.placeholder(F, sizes, name="x")
    labels = graph.placeholder(F, [sizes[0], second[1]], name="labels")
    with graph.as_default():
        made = [
            variable(graph, name, (rng.standard_normal(size) / 4).astype(np.float32))
            for name, size in (("w", first), ("v", second))
        ]
        losses, _ = apply_op("SoftmaxCrossEntropyWithLogits", network(x, *(read for _, _, read in made)), labels)
        loss = apply_op("Mean", losses, np.array([0], np.int32))
        slopes = cyxla.gradients([loss], [read for _, _, read in made])
        steps = [
            apply_op("ResourceApplyGradientDescent", handle, graph.constant(RATE), slope)
            for (handle, _, _), slope in zip(made, slopes, strict=True)
        ]
    return graph, [init for _, init, _ in made], steps, loss


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_is_one_cluster(name, backend):
    """And fits as it does kernel by kernel."""
    network, sizes, first, second, ops = NETWORKS[name]
    graph, inits, steps, loss = training(network, sizes, first, second)
    assert set(ops) <= {node.op for node in graph.nodes.values()}
    rng, labels = np.random.default_rng(4), np.eye(second[1], dtype=np.float32)[[0, 2, 1, 0]]
    feeds = [{"x:0": rng.standard_normal(sizes).astype("f"), "labels:0": labels * ones(1)} for _ in range(4)]
    found = []
    for session in (cyxla.Session(graph, jit="off"), cyxla.Session(graph, jit="auto", platform=backend)):
        session.run(inits)
        found.append([session.run([loss, *steps], feed)[0] for feed in feeds])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)
    assert len(clusters(session)) == 1
    inside = {row.op for row in session.clusters().values() if row.cluster}
    assert inside >= {*ops, "SoftmaxCrossEntropyWithLogits", "ResourceApplyGradientDescent"}
