"""Gradients through tensor arrays, partition and stitch against central differences."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, points

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


class Array:
    """A tensor array, and the ops on it, of version 2 or 3; those of version 2 return no flow at first."""

    def __init__(self, version, size):
        attrs = {"dtype": "double", "clear_after_read": False}
        made = apply_op(f"TensorArray{version}", np.int32(size), **attrs)
        self.version, (self.handle, self.flow) = version, made if version == "V3" else (made, np.float32(0))

    def write(self, action, *inputs):
        self.flow = apply_op(f"TensorArray{action}{self.version}", self.handle, *inputs, self.flow)

    def read(self, action, *inputs):
        return apply_op(f"TensorArray{action}{self.version}", self.handle, *inputs, self.flow, dtype="double")


def written_and_read(x, version):
    array = Array(version, 2)
    array.write("Write", np.int32(0), x * x)
    array.write("Write", np.int32(1), x)
    reads = [array.read("Read", np.int32(k)) for k in (0, 1, 0)]
    return reads[0] * reads[1] + reads[2]


def scattered_and_gathered(x, version):
    array = Array(version, 5)
    array.write("Scatter", ints(3, 0, 4, 1), x * x)
    return array.read("Gather", ints(0, 4, 0))


def split_and_joined(x, version):
    array = Array(version, 3)
    array.write("Split", x * x, np.array([1, 0, 3]))
    joined, _ = array.read("Concat")
    return joined * x


@pytest.mark.parametrize("version", ["V2", "V3"])
@pytest.mark.parametrize("fn", [written_and_read, scattered_and_gathered, split_and_joined], ids=lambda f: f.__name__)
def test_tensor_arrays(fn, version):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", X.shape, name="x")
        y = fn(x, version)
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
