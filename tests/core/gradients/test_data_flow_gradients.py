"""Gradients through tensor arrays, partition and stitch against central differences."""

import numpy as np
import pytest
from support.gradient_checks import Case, check_gradient, points

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op

X = points(4, 2)


def ints(*values):
    return np.array(values, np.int32)


CASES = [
    Case("DynamicPartition", (X, ints(1, 0, 1, 1)), {"num_partitions": 3}),
    Case(
        "DynamicPartition",
        (X, np.array([[0, 1], [1, 0], [0, 0], [1, 1]], np.int32)),
        {"num_partitions": 2},
        note="deep",
    ),
    Case("DynamicStitch", ([ints(0, 2), ints(3, 1)], [X[:2], X[2:]])),
    Case("ParallelDynamicStitch", ([ints(1, 0)], [X[:2]])),
    Case("DynamicStitch", ([ints(0, 2, 0), ints(2)], [X[:3], X[3:]]), note="overwritten"),
    Case("DynamicStitch", ([np.array(0, np.int32), np.array([[2, 1]], np.int32)], [X[0], X[None, 1:3]]), note="ranks"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_partition_and_stitch(case):
    check_gradient(case)


def array(size):
    return apply_op("TensorArrayV3", np.int32(size), dtype="double", clear_after_read=False)


def written_and_read(x):
    handle, flow = array(2)
    flow = apply_op("TensorArrayWriteV3", handle, np.int32(0), x * x, flow)
    flow = apply_op("TensorArrayWriteV3", handle, np.int32(1), x, flow)
    reads = [apply_op("TensorArrayReadV3", handle, np.int32(k), flow, dtype="double") for k in (0, 1, 0)]
    return reads[0] * reads[1] + reads[2]


def scattered_and_gathered(x):
    handle, flow = array(5)
    flow = apply_op("TensorArrayScatterV3", handle, ints(3, 0, 4, 1), x * x, flow)
    return apply_op("TensorArrayGatherV3", handle, ints(0, 4, 0), flow, dtype="double")


def split_and_joined(x):
    handle, flow = array(3)
    flow = apply_op("TensorArraySplitV3", handle, x * x, np.array([1, 0, 3]), flow)
    joined, _ = apply_op("TensorArrayConcatV3", handle, flow, dtype="double")
    return joined * x


@pytest.mark.parametrize("fn", [written_and_read, scattered_and_gathered, split_and_joined], ids=lambda f: f.__name__)
def test_tensor_arrays(fn):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", X.shape, name="x")
        y = fn(x)
        weight = points(*y.shape.as_list(), seed=5) if y.shape.is_fully_defined else None
        loss = apply_op("Sum", y * weight if weight is not None else y * y, [0, 1])
    (grad,) = gradients(loss, [x])
    session = Session(graph)
    got = session.run(grad, {"x:0": X})
    want = np.zeros_like(X)
    for place in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[place] = 1e-6
        up, down = (session.run(loss, {"x:0": X + s}) for s in (step, -step))
        want[place] = (up - down) / 2e-6
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["StackPopV2", "TensorArraySizeV3", "Assign", "ResourceScatterAdd"])
def test_ops_without_a_gradient_flow(op):
    from cyxla.core.framework.gradient import GradientRegistry

    assert GradientRegistry.global_().look_up(op).fn is None
