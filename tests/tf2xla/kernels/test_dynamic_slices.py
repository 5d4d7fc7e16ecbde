"""Slices and choices whose places or sizes depend on data: the values come out of variables, so none is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph, Tensor

X = np.arange(60, dtype=np.float32).reshape(5, 4, 3)


def from_variable(graph: Graph, value: Any, name: str) -> tuple[Tensor, Any]:
    """Return a read of a variable, and the node that sets it."""
    array = np.asarray(value, np.int32)
    facts = {"dtype": "int32", "shape": list(array.shape)}
    handle = apply_op("VarHandleOp", shared_name=name, **facts)
    init = apply_op("AssignVariableOp", handle, graph.constant(array))
    return apply_op("ReadVariableOp", handle, dtype="int32"), init


def both(op: str, order: tuple[str, ...], known: dict[str, Any], data: dict[str, Any], **attrs: Any) -> list[Any]:
    """Results compiled and eager; the inputs in `data` come from variables."""
    results = []
    for jit in ("on", "off"):
        graph, inits = Graph(), []
        with graph.as_default():
            inputs = []
            for name in order:
                if name in data:
                    value, init = from_variable(graph, data[name], name)
                    inits.append(init)
                else:
                    value = graph.constant(np.asarray(known[name]))
                inputs.append(value)
            made = apply_op(op, *inputs, **attrs)
        session = cyxla.Session(graph, jit=jit, platform="interpreter")
        for init in inits:
            session.run([init.name])
        results.append(session.run(list(made) if isinstance(made, tuple) else [made]))
    return results


def same(results: list[Any]) -> None:
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


SLICE = ("input", "begin", "size")
STRIDED = ("input", "begin", "end", "strides")


@pytest.mark.parametrize("begin,size", [([1, 0, 2], [3, 2, 1]), ([0, 0, 0], [5, 4, 3]), ([4, 3, 0], [-1, 1, -1])])
def test_slice(begin: list[int], size: list[int]) -> None:
    if min(size) >= 0:
        same(both("Slice", SLICE, {"input": X, "size": np.int32(size)}, {"begin": begin}))
    same(both("Slice", SLICE, {"input": X, "begin": np.int32(begin)}, {"size": size}))
    same(both("Slice", SLICE, {"input": X}, {"begin": begin, "size": size}))


@pytest.mark.parametrize(
    "begin,end,strides,masks",
    [
        ([1, 0, -1], [4, 3, 0], [1, 2, -1], {}),
        ([-2, 5, 1], [9, 1, 2], [1, -2, 1], {"shrink_axis_mask": 4}),
        ([2, 1], [3, 2], [1, 1], {"shrink_axis_mask": 3}),
        ([0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}),
        ([3, 2, 7], [1, 1, 7], [-1, 1, -1], {"begin_mask": 5, "end_mask": 6}),
        ([3], [3], [1], {}),
        ([-1], [0], [1], {"shrink_axis_mask": 1}),
    ],
)
def test_strided_slice(begin: list[int], end: list[int], strides: list[int], masks: dict[str, int]) -> None:
    same(
        both("StridedSlice", STRIDED, {"input": X, "strides": np.int32(strides)}, {"begin": begin, "end": end}, **masks)
    )


@pytest.mark.parametrize(
    "begin,end,strides,masks,shape",
    [
        ([1, 0, 2], [4, 3, 3], [1, 2, 1], {}, (3, 2, 1)),
        ([-2, 5, 1], [9, 1, 2], [1, -2, 1], {"shrink_axis_mask": 4}, (2, 1)),
        ([2, 1], [3, 2], [1, 1], {"shrink_axis_mask": 3}, (3,)),
        ([0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsis_mask": 1, "new_axis_mask": 2}, (5, 4, 1, 2)),
        ([4], [1], [-1], {}, (3, 4, 3)),
    ],
)
def test_gradient_of_a_strided_slice(
    begin: list[int], end: list[int], strides: list[int], masks: dict[str, int], shape: tuple[int, ...]
) -> None:
    order = ("shape", "begin", "end", "strides", "dy")
    dy = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    known = {"shape": np.int32(X.shape), "strides": np.int32(strides), "dy": dy}
    same(both("StridedSliceGrad", order, known, {"begin": begin, "end": end}, **masks))


@pytest.mark.parametrize("k", [0, 2, 4])
def test_the_greatest(k: int) -> None:
    x = np.float32([[1, 5, 3, 2], [7, 7, 0, 9]])
    same(both("TopKV2", ("input", "k"), {"input": x}, {"k": k}))


def test_bits_of_quantisation() -> None:
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    order = ("input", "input_min", "input_max", "num_bits")
    known = {"input": x, "input_min": np.float32(-1), "input_max": np.float32(2)}
    for attrs in ({}, {"signed_input": False}, {"narrow_range": True}, {"range_given": False}):
        got, wanted = both("QuantizeAndDequantizeV3", order, known, {"num_bits": 5}, **attrs)
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6, atol=1e-6)


def test_users_get_the_sliced_values() -> None:
    graph = Graph()
    with graph.as_default():
        k, init = from_variable(graph, 2, "k")
        values, _ = apply_op("TopKV2", graph.constant(np.float32([3, 1, 2])), k)
        after = apply_op("Neg", values)
    session = cyxla.Session(graph, jit="on", platform="interpreter")
    session.run([init.name])
    assert session.run([after])[0].tolist() == [-3, -2]
