"""Ops applied at once."""

import threading

import ml_dtypes
import numpy as np
import pytest

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.eager import EagerContext, eager_context, execute, use_context
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError


@pytest.fixture(autouse=True)
def context():
    """A context of each test's own."""
    with use_context(EagerContext()) as made:
        yield made
    made.close()


def test_ops_on_arrays_and_numbers():
    y = apply_op("AddV2", np.float32([1, 2]), 3)
    assert (y.dtype, y.tolist()) == (np.float32, [4, 5])
    values, indices = apply_op("TopKV2", np.int64([3, 9, 5]), 2)
    assert (values.tolist(), indices.tolist()) == ([9, 5], [1, 2])
    parts = apply_op("Split", 0, np.arange(4.0), num_split=2)
    assert [p.tolist() for p in parts] == [[0, 1], [2, 3]]
    assert apply_op("NoOp") is None
    assert isinstance(apply_op("Sum", np.float32([1, 2]), 0), np.ndarray)  # rank 0 too
    half = apply_op("Cast", np.float32([1.5]), DstT="bfloat16")
    assert half.dtype == ml_dtypes.bfloat16


def test_execute_takes_complete_attributes():
    attrs = {"T": AttrValue("type", DataType.DT_FLOAT)}
    [y] = execute("Neg", [np.float32([1, -2])], attrs)
    assert y.tolist() == [-1, 2]


def test_texts():
    assert apply_op("Identity", ["a", "b"]).tolist() == [b"a", b"b"]


@pytest.mark.parametrize("call, error, message", [
    (lambda: apply_op("Nope", 1),                                        NotFoundError,        "Nope"),
    (lambda: apply_op("MatMul", np.ones((2, 3)), np.ones((2, 3))),       InvalidArgumentError, None),
    (lambda: apply_op("AddV2", np.ones(2), np.float32(1)),               InvalidArgumentError, None),
    (lambda: apply_op("Neg", np.array(["a"], object)),                   InvalidArgumentError, None),
    (lambda: apply_op("Placeholder", dtype="float"),                     InvalidArgumentError, "Placeholder"),
])  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_variables_live_as_long_as_the_context(context):
    def handle():
        return apply_op("VarHandleOp", dtype="float", shape=[2], shared_name="v")

    with pytest.raises(FailedPreconditionError):
        apply_op("ReadVariableOp", handle(), dtype="float")
    apply_op("AssignVariableOp", handle(), np.float32([1, 2]))
    apply_op("AssignAddVariableOp", handle(), np.float32([1, 1]))
    assert apply_op("ReadVariableOp", handle(), dtype="float").tolist() == [2, 3]
    with use_context(EagerContext()), pytest.raises(FailedPreconditionError):
        apply_op("ReadVariableOp", handle(), dtype="float")
    assert eager_context() is context


def test_kernels_are_kept(context):
    for k in range(50):
        apply_op("Neg", np.float32(k))
    assert len(context._calls) == 1
    apply_op("Neg", np.float64(1))
    assert len(context._calls) == 2


def test_functions_are_called(context):
    from cyxla.core.graph.function_body import graph_to_function

    inner = Graph()
    with inner.as_default():
        x = inner.placeholder("float", [], name="x")
        y = x * 3.0
    context.add_function(graph_to_function("triple", [x], [y]))
    assert apply_op("PartitionedCall", [np.float32(2)], Tout=["float"], f="triple")[0] == 6
    assert apply_op("triple", np.float32(5)) == 15


def test_a_graph_takes_over_while_it_is_current():
    graph = Graph()
    with graph.as_default():
        symbol = apply_op("Neg", np.float32(1))
        with use_eager():
            assert apply_op("Neg", np.float32(1)) == -1
    assert symbol.graph is graph


def use_eager():
    from cyxla.core.framework.apply import use_sink

    return use_sink(None)


def test_threads_share_the_context(context):
    wrong = []

    def work(k):
        with use_context(context):
            for j in range(200):
                if apply_op("AddV2", np.float32(k), np.float32(j)) != k + j:
                    wrong.append((k, j))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
