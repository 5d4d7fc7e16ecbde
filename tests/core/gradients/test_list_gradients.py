"""Gradients through tensor lists against central differences."""

import numpy as np
import pytest

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op

X = np.random.default_rng(7).uniform(-2, 2, (3, 2))
F64 = {"element_dtype": "double"}


def stacked(handle):
    return apply_op("TensorListStack", handle, [2], **F64)


def listed(x):
    return apply_op("TensorListFromTensor", x * x, [2])


def pushed(x):
    handle = apply_op("EmptyTensorList", [2], -1, **F64)
    for i in (2, 0, 2):
        handle = apply_op("TensorListPushBack", handle, x[i] * x[i])
    return stacked(handle)


def popped(x):
    rest, last = apply_op("TensorListPopBack", listed(x), [2], **F64)
    return stacked(rest) * last


def only_the_rest(x):
    return stacked(apply_op("TensorListPopBack", listed(x), [2], **F64)[0])


def only_the_last(x):
    return apply_op("TensorListPopBack", listed(x), [2], **F64)[1]


def got(x):
    handle = listed(x)
    return apply_op("TensorListGetItem", handle, 1, [2], **F64) * apply_op("TensorListGetItem", handle, 2, [2], **F64)


def put(x):
    return stacked(apply_op("TensorListSetItem", listed(x), 1, x[0] * x[2])) * x


def resized(x):
    return stacked(apply_op("TensorListResize", listed(x), 2))


def gathered(x):
    return apply_op("TensorListGather", listed(x), [2, 0], [2], **F64)


def scattered(x):
    return stacked(apply_op("TensorListScatterV2", x * x, [2, 0, 1], [2], 4)) * 3.0


def scattered_v1(x):
    return stacked(apply_op("TensorListScatter", x * x, [2, 0, 1], [2])) * x


def joined_v1(x):
    handle = apply_op("TensorListSplit", x * x, [-1, 2], np.array([1, 2]))
    return apply_op("TensorListConcat", handle, **F64)[0] * x


def scattered_into(x):
    return stacked(apply_op("TensorListScatterIntoExistingList", listed(x), x[:2], [2, 0]))


def joined(x):
    handle = apply_op("TensorListSplit", x * x, [-1, 2], np.array([2, 1]))
    tensor, _ = apply_op("TensorListConcatV2", handle, [-1, 2], np.array([], np.int64), **F64)
    return tensor * x


CASES = [pushed, popped, only_the_rest, only_the_last, got, put, resized, gathered, scattered, scattered_into, joined]
CASES += [scattered_v1, joined_v1]


@pytest.mark.parametrize("build", CASES, ids=lambda f: f.__name__)
def test_gradient_is_the_slope(build):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", X.shape)
        y = build(x)
        loss = apply_op("Sum", apply_op("Sin", y), apply_op("Range", 0, apply_op("Rank", y), 1))
    [dx] = gradients(loss, x)
    session = Session(graph)
    want = np.zeros_like(X)
    for place in np.ndindex(X.shape):
        up, down = X.copy(), X.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        want[place] = (session.run(loss, {x: up}) - session.run(loss, {x: down})) / 2e-6
    np.testing.assert_allclose(session.run(dx, {x: X}), want, rtol=1e-6, atol=1e-8)
