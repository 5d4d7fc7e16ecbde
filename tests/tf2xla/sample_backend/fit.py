"""Fits a small network on the toy, and on the host, and compares."""

from itertools import pairwise

import numpy as np

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType

FLOAT = DataType.DT_FLOAT


def make(layers):
    """Return a network, one step of its training, and its initialisers."""
    graph = cyxla.Graph()
    with graph.as_default():
        x = graph.placeholder("float", [None, layers[0]], name="x")
        labels = graph.placeholder("float", [None, layers[-1]], name="labels")
        rng = np.random.default_rng(0)
        y, handles, read, ready = x, [], [], []
        for i, sizes in enumerate(pairwise(layers)):
            for name, value in (("w", rng.normal(0, 0.5, sizes)), ("b", np.zeros(sizes[1]))):
                handle = apply_op("VarHandleOp", dtype=FLOAT, shape=value.shape, shared_name=f"{name}{i}")
                ready.append(apply_op("AssignVariableOp", handle, value.astype(np.float32)))
                handles.append(handle)
                read.append(apply_op("ReadVariableOp", handle, dtype=FLOAT))
            y = apply_op("BiasAdd", apply_op("MatMul", y, read[-2]), read[-1])
            y = apply_op("Tanh", y) if i < len(layers) - 2 else y
        losses, _ = apply_op("SoftmaxCrossEntropyWithLogits", y, labels)
        loss = apply_op("Mean", losses, np.int32([0]), name="loss")
        steps = [
            apply_op("ResourceApplyGradientDescent", handle, np.float32(0.5), slope)
            for handle, slope in zip(handles, cyxla.gradients(loss, read), strict=True)
        ]
    return graph, [node.name for node in ready], [node.name for node in steps]


def fit(**options):
    """Losses of 40 steps."""
    graph, ready, steps = make([2, 16, 3])
    rng = np.random.default_rng(1)
    x = rng.normal(size=(64, 2)).astype(np.float32)
    labels = np.eye(3, dtype=np.float32)[(x[:, 0] > 0).astype(int) + (x[:, 1] > 0)]
    session = cyxla.Session(graph, **options)
    session.run(ready)
    return [float(session.run(["loss:0", *steps], {"x:0": x, "labels:0": labels})[0]) for _ in range(40)]


if __name__ == "__main__":
    wanted = fit(jit="off", devices={"XLA_TOY": 0})  # without the toy, on the host
    for options in ({"jit": "off"}, {"jit": "on", "platform": "toy"}, {"jit": "auto", "platform": "toy"}):
        found = fit(**options)
        np.testing.assert_allclose(found, wanted, rtol=1e-3)
        assert found[-1] < found[0] / 2
        print(f"{options}: from {found[0]:.3f} to {found[-1]:.3f}")
