"""Categorical and truncated normal distributions of a generator's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib import philox
from cyxla.tf2xla.lib.philox import Generator
from cyxla.tf2xla.lib.typed_values import cast, full
from cyxla.tf2xla.types import element_type
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, count_of, max_of, scalar, select, sizes_of, sum_of

Array = np.ndarray[Any, Any]
_WINITZKI, _HALLEY = 0.147, 3  # Winitzki's constant; Halley steps for full f64 precision


def categorical(generator: Generator, logits: XlaOp, num_samples: Array, dtype: DataType) -> XlaOp:
    """Draw classes by counting the cumulative probabilities not above a uniform number.

    Raises
    ------
    ShapeError, InvalidArgumentError
        The logits are not a matrix with columns, or the number of samples is not a scalar or is negative.
    """
    count = _samples(logits, num_samples)
    rows, classes = sizes_of(logits)
    builder = logits.builder
    if not rows * count:
        return full(builder, 0, dtype, (rows, count))
    totals = _cumulative_weights(xla.convert(logits, ElementType.F64))
    words = generator.words(-(-rows * count * 2 // 4))
    units = [philox.unit64(words[0], words[1]), philox.unit64(words[2], words[3])]
    table = xla.concatenate([xla.reshape(u, (sizes_of(u)[0], 1)) for u in units], 1)
    flat = xla.slice_in_dim(xla.reshape(table, (count_of(table),)), 0, rows * count)
    total = xla.slice_in_dim(totals, classes - 1, classes, 1, 1)
    points = xla.reshape(flat, (rows, count)) * broadcast_to(total, (rows, count))
    shape = (rows, count, classes)
    passed = xla.le(xla.broadcast_in_dim(totals, shape, (0, 2)), xla.broadcast_in_dim(points, shape, (0, 1)))
    return sum_of(xla.convert(passed, element_type(dtype)), [2])


def _samples(logits: XlaOp, num_samples: Array) -> int:
    if len(sizes_of(logits)) != 2:
        raise ShapeError(f"logits must be a matrix of rows of classes; their shape is {list(sizes_of(logits))}")
    if num_samples.ndim:
        raise ShapeError(f"num_samples must be a scalar; its shape is {list(num_samples.shape)}")
    if num_samples < 0:
        raise InvalidArgumentError(f"num_samples must not be negative; it is {num_samples}")
    if not sizes_of(logits)[1]:
        raise InvalidArgumentError("no classes to sample from: logits have no columns")
    return int(num_samples)


def _cumulative_weights(logits: XlaOp) -> XlaOp:
    """Return the cumulative sums of exponentials; logits that are not finite count as 0."""
    rows, classes = sizes_of(logits)
    finite = xla.is_finite(logits)
    finite_logits = select(finite, logits, scalar(logits, float(np.finfo(np.float64).min)))
    weights = xla.exponential(finite_logits - broadcast_to(max_of(finite_logits, [1], keep=True), (rows, classes)))
    add = scalar_computation("add", ElementType.F64)
    pads = [(0, 0), (classes - 1, 0)]
    return xla.reduce_window(select(finite, weights, 0.0), scalar(logits, 0), add, [1, classes], [1, 1], pads)


def parameterized_truncated_normal(
    generator: Generator, sizes: tuple[int, ...], dtype: DataType, parameters: Sequence[XlaOp]
) -> XlaOp:
    """Draw truncated normal numbers by inverting the distribution function."""
    wide = ElementType.F64 if element_type(dtype) is ElementType.F64 else ElementType.F32
    mean, deviation, low, high = (broadcast_to(xla.convert(p, wide), sizes) for p in parameters)
    a, b = (_phi((bound - mean) / deviation) for bound in (low, high))
    samples = philox.uniform(generator, sizes, DataType.DT_DOUBLE if wide is ElementType.F64 else DataType.DT_FLOAT)
    at = a + samples * (b - a)
    two, one = (xla.broadcast(scalar(at, n), sizes) for n in (2.0, 1.0))
    edge = xla.broadcast(scalar(at, 1 - float(np.finfo(at.shape.dtype.numpy_dtype).eps)), sizes)
    root = xla.broadcast(scalar(at, sqrt(2)), sizes)
    result = mean + deviation * root * _inverse_erf(xla.clamp(xla.negate(edge), two * at - one, edge))
    return cast(xla.clamp(low, result, high), dtype)


def _inverse_erf(y: XlaOp) -> XlaOp:
    """Invert erf on (-1, 1) by Winitzki's approximation, refined by Halley's method."""

    def of(value: float) -> XlaOp:
        return xla.broadcast(scalar(y, value), sizes_of(y))

    log = xla.log_plus_one(xla.negate(y * y))
    about = of(2 / (pi * _WINITZKI)) + log * of(0.5)
    x = xla.sign(y) * xla.sqrt(xla.sqrt(about * about - log / of(_WINITZKI)) - about)
    for _ in range(_HALLEY):
        step = (xla.erf(x) - y) / (of(2 / sqrt(pi)) * xla.exponential(xla.negate(x * x)))
        x = x - step / (of(1) + x * step)
    return x


def _phi(x: XlaOp) -> XlaOp:
    """Return the normal distribution function."""
    half, root = (xla.broadcast(scalar(x, n), sizes_of(x)) for n in (0.5, sqrt(0.5)))
    return half + half * xla.erf(x * root)
