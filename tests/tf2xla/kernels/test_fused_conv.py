"""Convolutions of 8-bit integers with their epilogues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError

RNG = np.random.default_rng(11)
X, KERNEL = RNG.integers(-128, 128, (2, 5, 4, 4)).astype(np.int8), RNG.integers(-9, 9, (3, 2, 4, 8)).astype(np.int8)
BIAS = RNG.normal(size=8).astype(np.float32)
SIDE = RNG.integers(-128, 128, (2, 3, 3, 8)).astype(np.int8)


def wanted(relu: bool, side: bool) -> Any:
    found = np.zeros((2, 3, 3, 8))
    for i in range(3):
        for j in range(3):
            found[:, i, j] = np.tensordot(X[:, i : i + 3, j : j + 2].astype(int), KERNEL.astype(int), 3)
    found = found * np.float32(0.01) + BIAS + (SIDE * np.float32(0.5) if side else 0)
    return np.clip(np.rint(np.maximum(found, 0) if relu else found), -128, 127)


def fused(x: Any, kernel: Any, bias: Any, side: Any, platform: str = "interpreter", **attrs: Any) -> Any:
    graph, feeds = Graph(), {}
    types = (DataType.DT_INT8, DataType.DT_INT8, DataType.DT_FLOAT, DataType.DT_INT8)
    given = {"padding": "VALID", "strides": [1, 1, 1, 1], "fused_ops": ["BiasAdd"], **attrs}
    with graph.as_default():
        for dtype, array in zip(types, (x, kernel, bias, side), strict=True):
            feeds[graph.placeholder(dtype, array.shape)] = array
        inputs = list(feeds)
        scales = [graph.constant(np.float32(v)) for v in (0.01, 0.5)]
        made = apply_op("_FusedConv2D", inputs[0], inputs[1], inputs[2:], scales, num_args=2, **given)
    return cyxla.Session(graph, jit="on", platform=platform).run([made], feeds)[0]


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("side", [False, True])
def test_epilogues_of_convolutions(relu: bool, side: bool, backend: str) -> None:
    after = ["BiasAdd", "Relu"] if relu else ["BiasAdd"]
    other = SIDE if side else np.zeros((0,), np.int8)
    found = fused(X, KERNEL, BIAS, other, backend, fused_ops=after)
    assert found.dtype == np.int8
    assert np.abs(found - wanted(relu, side)).max() <= 1  # where rounding in f32 meets a half
    assert (found == wanted(relu, side)).mean() > 0.99


def test_layouts() -> None:
    plain = fused(X, KERNEL, BIAS, SIDE)
    x, side = (v.transpose(0, 3, 1, 2) for v in (X, SIDE))
    kernel = KERNEL.transpose(3, 2, 0, 1)
    first = fused(x, kernel, BIAS, side, data_format="NCHW", filter_format="OIHW")
    assert (first == plain.transpose(0, 3, 1, 2)).all()
    vectors = [v.reshape(2, v.shape[1] // 4, 4, *v.shape[2:]).transpose(0, 1, 3, 4, 2) for v in (x, side)]
    parts = kernel.reshape(8, 1, 4, 3, 2).transpose(0, 1, 3, 4, 2)
    formats = {"data_format": "NCHW_VECT_C", "filter_format": "OIHW_VECT_I"}
    found = fused(vectors[0], parts, BIAS, vectors[1], **formats)
    assert (found.transpose(0, 1, 4, 2, 3).reshape(2, 8, 3, 3) == first).all()


@pytest.mark.parametrize(
    "attrs,bias,side,error",
    [
        ({"fused_ops": ["BiasAdd", "Tanh"]}, BIAS, SIDE, UnimplementedError),
        ({}, BIAS[:3], SIDE, ShapeError),
        ({}, BIAS, SIDE[:1], ShapeError),
        ({"strides": [1, 0, 1, 1]}, BIAS, SIDE, InvalidArgumentError),
    ],
)
def test_wrong_shapes_and_types(attrs: dict[str, Any], bias: Any, side: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        fused(X, KERNEL, bias, side, **attrs)
