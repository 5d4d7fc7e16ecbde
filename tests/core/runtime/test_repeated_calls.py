"""A call that repeats runs the kernel that it ran before, and does what it did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cyxla import raw_ops
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.declarations.op_overrides import OpGenOverrideMap
from cyxla.core.framework.op_gen import OpNamespace
from cyxla.core.graph.graph import Graph, Tensor
from cyxla.core.runtime.eager import EagerContext, use_context
from cyxla.errors import InvalidArgumentError, OpError


@pytest.fixture(autouse=True)
def context() -> Iterator[EagerContext]:
    with use_context(EagerContext()) as made:
        yield made
    made.close()


X = np.float32([[1, -2], [3, 4]])
#: name: function and arguments
CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "by name": (raw_ops.Tanh, (), {"x": X}),
    "by position": (raw_ops.AddV2, (X, X), {}),
    "by both": (raw_ops.MatMul, (X,), {"b": X, "transpose_b": True}),
    "another order of names": (raw_ops.Sub, (), {"y": X[0], "x": X}),
    "rank 0": (raw_ops.Exp, (np.array(2.0),), {}),
    "empty": (raw_ops.Neg, (np.zeros((0, 3), np.int64),), {}),
    "not contiguous": (raw_ops.Relu, (X.T[::-1],), {}),
    "a narrow float": (raw_ops.Tanh, (X.astype(ml_dtypes.bfloat16),), {}),
    "several results": (raw_ops.TopKV2, (X, np.array(1, np.int32)), {}),
    "a list of results": (raw_ops.Split, (np.array(1, np.int32), X), {"num_split": 2}),
    "a list of inputs": (raw_ops.AddN, ([X, X],), {}),
    "a number": (raw_ops.AddV2, (X, 3), {}),
    "texts": (raw_ops.Identity, (np.array(["A", "b"], object),), {}),
    "an attribute with a list": (raw_ops.Squeeze, (X[None],), {"squeeze_dims": [0]}),
    "no result": (raw_ops.NoOp, (), {}),
}


def _listed(result: Any) -> list[np.ndarray]:
    if result is None:
        return []
    return [np.asarray(r) for r in result] if isinstance(result, (list, tuple)) else [np.asarray(result)]


@pytest.mark.parametrize("name", CALLS)
def test_three_calls(name: str) -> None:
    function, args, kwargs = CALLS[name]
    results = [function(*args, **kwargs) for _ in range(3)]
    assert len({type(r) for r in results}) == 1
    for result in results[1:]:
        for one, other in zip(_listed(result), _listed(results[0]), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
    by_name = [apply_op(function.__name__, *args, **kwargs) for _ in range(2)]
    for one, other in zip(_listed(by_name[1]), _listed(results[0]), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("name", ["by name", "by position", "by both", "another order of names", "a list of results"])
def test_the_kernel_is_found_again(name: str, context: EagerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    function, args, kwargs = CALLS[name]
    first = function(*args, **kwargs)
    monkeypatch.setattr(context, "look_up", None)  # nothing is inferred any more
    for one, other in zip(_listed(function(*args, **kwargs)), _listed(first), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_other_types_and_attributes_are_other_calls() -> None:
    assert raw_ops.Neg(x=X).dtype == np.float32
    assert raw_ops.Neg(x=X.astype(np.int64)).dtype == np.int64
    assert raw_ops.Neg(x=X.astype(">f4").astype(np.float64)).dtype == np.float64
    np.testing.assert_array_equal(raw_ops.MatMul(a=X, b=X), X @ X)
    np.testing.assert_array_equal(raw_ops.MatMul(a=X, b=X, transpose_a=True), X.T @ X)
    np.testing.assert_array_equal(raw_ops.MatMul(a=X, b=X, transpose_b=True), X @ X.T)
    sums = [
        raw_ops.Sum(input=X, reduction_indices=np.array(0, np.int32), keep_dims=keep).shape
        for keep in (False, True) * 2
    ]
    assert sums == [(2,), (1, 2)] * 2


def test_variables_and_random_numbers_are_not_repeated() -> None:
    shape = np.int32([4])
    drawn = {raw_ops.RandomUniform(shape=shape, dtype="float32", seed=0, seed2=0).tobytes() for _ in range(4)}
    assert len(drawn) == 4
    handles = [raw_ops.VarHandleOp(dtype="float32", shape=[2], shared_name=name) for name in ("a", "b")]
    for handle, value in zip(handles, (1, 2), strict=True):
        raw_ops.AssignVariableOp(resource=handle, value=np.full(2, value, np.float32))
    assert [raw_ops.ReadVariableOp(resource=h, dtype="float32")[0] for h in handles * 2] == [1, 2, 1, 2]


def test_errors_stay() -> None:
    raw_ops.AddV2(x=X, y=X)
    for _ in range(2):
        with pytest.raises(OpError, match=r"broadcast|shape|[Ii]ncompatible"):
            raw_ops.AddV2(x=X, y=np.ones((3, 3), np.float32))
    with pytest.raises(InvalidArgumentError):
        raw_ops.AddV2(x=X, y=X.astype(np.float64))
    with pytest.raises(InvalidArgumentError, match="unexpected"):
        raw_ops.AddV2(x=X, y=X, z=X)
    with pytest.raises(InvalidArgumentError):
        raw_ops.AddV2(X, X, y=X)


def test_a_graph_gets_nodes_of_known_calls() -> None:
    raw_ops.Tanh(x=X)
    graph = Graph()
    with graph.as_default():
        y = raw_ops.Tanh(x=X, name="y")
        assert isinstance(raw_ops.Tanh(x=X), Tensor)
    assert isinstance(y, Tensor)
    assert isinstance(raw_ops.Neg(x=y), Tensor)
    assert isinstance(raw_ops.Tanh(x=X), np.ndarray)


OVERRIDE = 'op { name: "MatMul" attr_default { name: "transpose_b" value { b: true } } }'


def test_namespaces_with_other_defaults_are_apart() -> None:
    overrides = OpGenOverrideMap()
    overrides.load_text(OVERRIDE)
    transposing = OpNamespace(overrides=overrides)
    for _ in range(2):
        np.testing.assert_array_equal(raw_ops.MatMul(a=X, b=X), X @ X)
        np.testing.assert_array_equal(transposing.MatMul(a=X, b=X), X @ X.T)


def test_results_are_new_arrays() -> None:
    first, second = (raw_ops.Neg(x=X) for _ in range(2))
    first += 1
    np.testing.assert_array_equal(second, -X)


def test_old_calls_are_dropped(context: EagerContext) -> None:
    raw_ops.Tanh(x=X)
    assert context._repeated
    context.close()
    assert not context._repeated
