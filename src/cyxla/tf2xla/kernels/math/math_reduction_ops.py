"""Reductions over dimensions, and scans along one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import axes_of, axis_of
from cyxla.core.framework.types import FLOATING, INDEX, DataType
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.lib.typed_values import cast
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    iota_along,
    is_complex,
    is_float,
    is_integer,
    is_narrow,
    max_of,
    max_value,
    mean_of,
    min_of,
    min_value,
    product_of,
    rank_of,
    reduced,
    scalar,
    select,
    sizes_of,
    sum_of,
    widened,
)

Array = np.ndarray[Any, Any]
Reduce = Callable[[XlaOp, list[int], bool], XlaOp]


def _norm(x: XlaOp, axes: list[int], keep: bool) -> XlaOp:
    wide = widened(x)
    squares = xla.real(wide) * xla.real(wide) + xla.imag(wide) * xla.imag(wide) if is_complex(x) else wide * wide
    total = sum_of(squares, axes, keep)
    root = xla.sqrt(xla.convert(total, ElementType.F64) if is_integer(total) else total)
    return xla.convert(root, x.shape.dtype) if root.shape.dtype != x.shape.dtype else root


def _mean(x: XlaOp, axes: list[int], keep: bool) -> XlaOp:
    """Return the mean; the mean of no integers is 0, to avoid a division by zero."""
    if is_integer(x) and not all(sizes_of(x)[axis] for axis in axes):
        return sum_of(x, axes, keep)
    return mean_of(x, axes, keep)


def _all(x: XlaOp, axes: list[int], keep: bool) -> XlaOp:
    return reduced(x, "and", scalar(x, True), axes, keep)


def _any(x: XlaOp, axes: list[int], keep: bool) -> XlaOp:
    return reduced(x, "or", scalar(x, False), axes, keep)


# fmt: off
_REDUCTIONS: tuple[tuple[str, Reduce], ...] = (
    ("Sum",           sum_of),
    ("Prod",          product_of),
    ("Mean",          _mean),
    ("Max",           max_of),
    ("Min",           min_of),
    ("EuclideanNorm", _norm),
    ("All",           _all),
    ("Any",           _any),
)
# fmt: on


def _register(name: str, reduce: Reduce) -> None:
    @lowering(name, attrs=("keep_dims",), const=("reduction_indices",))
    def kernel(x: XlaOp, reduction_indices: Array, *, keep_dims: bool) -> XlaOp:
        axes = list(axes_of(reduction_indices, rank_of(x)))
        return reduce(x, axes, keep_dims) if axes else x


for _row in _REDUCTIONS:
    _register(*_row)


# ----------------------------------------------------------------------------------------------------- arg reductions


def _register_arg_reduction(name: str, extreme: Callable[..., XlaOp], worst: Callable[[XlaOp], XlaOp]) -> None:
    @lowering(name, attrs=("output_type",), const=("dimension",))
    def kernel(x: XlaOp, dimension: Array, *, output_type: DataType) -> XlaOp:
        """Return the first index of an element equal to the extremum, ignoring NaN."""
        axis = axis_of(dimension, rank_of(x), "dimension")
        size = sizes_of(x)[axis]
        if not size:
            raise InvalidArgumentError(f"dimension {axis} of {list(sizes_of(x))} is empty: no element is the greatest")
        if x.shape.dtype is ElementType.PRED:
            x = xla.convert(x, ElementType.S32)
        if is_float(x):
            x = select(xla.ne(x, x), worst(x), x)
        hit = xla.eq(x, broadcast_to(extreme(x, [axis], keep=True), sizes_of(x)))
        index = iota_along(x.builder, ElementType.S64, sizes_of(x), axis)
        first = min_of(select(hit, index, scalar(index, size)), [axis])
        return cast(first, output_type)


_register_arg_reduction("ArgMax", max_of, min_value)
_register_arg_reduction("ArgMin", min_of, max_value)


# ----------------------------------------------------------------------------------------------------------- scans


def _register_scan(name: str, opcode: str, start: Callable[[XlaOp], XlaOp], build: Any = None) -> None:
    @lowering(name, attrs=("exclusive", "reverse"), const=("axis",), types={"T": FLOATING + INDEX})
    def kernel(x: XlaOp, axis: Array, *, exclusive: bool, reverse: bool) -> XlaOp:
        """Emit a reduce-window over all preceding elements."""
        along = axis_of(axis, rank_of(x), "axis")
        size = sizes_of(x)[along]
        if not size or not all(sizes_of(x)):
            return x
        wide = widened(x)
        pads = [(0, 0)] * rank_of(x)
        before = size if exclusive else size - 1
        pads[along] = (0, before) if reverse else (before, 0)
        window = [size if d == along else 1 for d in range(rank_of(x))]
        computation = build(wide.shape.dtype) if build else scalar_computation(opcode, wide.shape.dtype)
        result = xla.reduce_window(wide, start(wide), computation, window, [1] * rank_of(x), pads)
        if exclusive:
            first = 1 if reverse else 0
            result = xla.slice_in_dim(result, first, first + size, 1, along)
        return xla.convert(result, x.shape.dtype) if is_narrow(x) else result


def _log_add_exp(dtype: ElementType) -> Any:
    """Build log(exp(a) + exp(b)) without overflow."""
    builder = XlaBuilder("log_add_exp")
    a, b = (xla.parameter(builder, i, Shape.array(dtype), n) for i, n in enumerate("ab"))
    top = xla.maximum(a, b)
    total = top + xla.log_plus_one(xla.exponential(-xla.abs_(a - b)))
    equal = a + scalar(a, float(np.log(2.0)))
    return builder.build(select(xla.eq(a, b), equal, select(xla.is_finite(top), total, top)))


_register_scan("Cumsum", "add", lambda x: scalar(x, 0))
_register_scan("Cumprod", "multiply", lambda x: scalar(x, 1))
_register_scan("CumulativeLogsumexp", "", min_value, _log_add_exp)
