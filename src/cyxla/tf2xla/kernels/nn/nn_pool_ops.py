"""Pooling by windowed reductions, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import (
    Windows,
    batch_and_channels,
    check_explicit,
    check_steps,
    is_channels_first,
    spatial,
)
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    is_narrow,
    max_of,
    min_value,
    rank_of,
    scalar,
    select,
    sizes_of,
    widened,
    zeros_like,
)

Array = np.ndarray[Any, Any]
Numbers = Sequence[int]

_ATTRS = ("ksize", "strides", "padding", "data_format")


class Pool:
    """Windows over the spatial dimensions of an array in its data format."""

    def __init__(
        self,
        shape: Numbers,
        ksize: Numbers,
        strides: Numbers,
        padding: str,
        data_format: str = "NHWC",
        explicit_paddings: Numbers = (),
    ) -> None:
        rank = len(shape)
        if len(ksize) == rank and ksize[0] != 1:
            raise UnimplementedError(f"pooling over examples; ksize is {list(ksize)}")
        sizes = check_steps(ksize, "ksize", rank, data_format)
        steps = check_steps(strides, "strides", rank, data_format)
        pairs = check_explicit(padding, explicit_paddings, rank, data_format)
        for pair, size in zip(pairs, sizes, strict=False):
            if max(pair) >= size:
                raise InvalidArgumentError(
                    f"with padding of {pair}, some window of size {size} would contain only padding"
                )
        self.shape = tuple(shape)
        self.windows = Windows.of(spatial(shape, data_format), sizes, steps, (), padding, pairs)
        first = 2 if is_channels_first(data_format) else 1
        self.axes = range(first, first + len(sizes))

    def expand(self, numbers: Sequence[Any], other: Any) -> list[Any]:
        """Expand a sequence over spatial dimensions to all dimensions."""
        result = [other] * len(self.shape)
        for axis, number in zip(self.axes, numbers, strict=True):
            result[axis] = number
        return result

    @property
    def out(self) -> list[int]:
        """Shape of the result."""
        result = list(self.shape)
        for axis, size in zip(self.axes, self.windows.out, strict=True):
            result[axis] = size
        return result

    def reduce(self, x: XlaOp, init: XlaOp, opcode: str) -> XlaOp:
        """Emit a reduce-window."""
        w = self.windows
        computation = scalar_computation(opcode, x.shape.dtype)
        return xla.reduce_window(
            x, init, computation, self.expand(w.kernel, 1), self.expand(w.strides, 1), self.expand(w.pads, (0, 0))
        )

    def check(self, name: str, x: XlaOp, shape: Numbers) -> None:
        """Raise if an operand has another shape."""
        if sizes_of(x) != tuple(shape):
            raise ShapeError(f"{name} is {list(sizes_of(x))}; the input and the windows give {list(shape)}")

    def counts(self, like: XlaOp) -> XlaOp:
        """Return the number of elements of each window, excluding padding."""
        w = self.windows
        count = np.zeros((1, *w.out, 1), np.float64)
        inside = w.padded(np.ones((1, *w.sizes, 1), bool), False)
        for _, at in w.taps():
            count += inside[at]
        shaped = count.reshape([n if d in self.axes else 1 for d, n in enumerate(self.out)])
        return broadcast_to(xla.constant(like.builder, shaped, like.shape.dtype), self.out)


def _check_rank(x: XlaOp, rank: int, name: str) -> None:
    if rank_of(x) != rank:
        raise ShapeError(f"{name} must have rank {rank}; its shape is {list(sizes_of(x))}")


# ----------------------------------------------------------------------------------------------------- max pooling


def _max_pool(rank: int) -> Callable[..., XlaOp]:
    def pool(x: XlaOp, *, data_format: str, **geometry: Any) -> XlaOp:
        """Emit a reduce-window of maximum."""
        _check_rank(x, rank, "the input")
        if len(geometry["ksize"]) == rank and batch_and_channels(geometry["ksize"], data_format)[1] != 1:
            return _over_channels(x, data_format, geometry)
        return Pool(sizes_of(x), data_format=data_format, **geometry).reduce(x, min_value(x), "maximum")

    return pool


def _over_channels(x: XlaOp, data_format: str, geometry: dict[str, Any]) -> XlaOp:
    """Reduce non-overlapping windows of channels."""
    axis = 1 if is_channels_first(data_format) else rank_of(x) - 1
    size, step = (batch_and_channels(geometry[name], data_format)[1] for name in ("ksize", "strides"))
    channels = sizes_of(x)[axis]
    if np.prod(geometry["ksize"]) != size or size != step or channels % size:
        raise UnimplementedError(f"{channels} channels in windows of {size}, every {step}: they must tile")
    shape = (*sizes_of(x)[:axis], channels // size, size, *sizes_of(x)[axis + 1 :])
    return max_of(xla.reshape(x, shape), [axis + 1])


def _ge_comparator(dtype: ElementType) -> XlaComputation:
    builder = XlaBuilder("ge")
    a, b = (xla.parameter(builder, i, Shape.array(dtype), n) for i, n in enumerate("ab"))
    return builder.build(xla.ge(a, b))


def _max_pool_grad(rank: int) -> Callable[..., XlaOp]:
    def gradient(x: XlaOp, output: XlaOp, grad: XlaOp, *, data_format: str, **geometry: Any) -> XlaOp:
        """Emit a select-and-scatter, which passes a window's gradient to its first maximum."""
        _check_rank(x, rank, "orig_input")
        pool = Pool(sizes_of(x), data_format=data_format, **geometry)
        pool.check("orig_output", output, pool.out)
        pool.check("grad", grad, pool.out)
        w = pool.windows
        wide = widened(grad)
        result = xla.select_and_scatter(
            widened(x),
            _ge_comparator(widened(x).shape.dtype),
            pool.expand(w.kernel, 1),
            pool.expand(w.strides, 1),
            pool.expand(w.pads, (0, 0)),
            wide,
            scalar(wide, 0),
            scalar_computation("add", wide.shape.dtype),
        )
        return xla.convert(result, grad.shape.dtype) if is_narrow(grad) else result

    return gradient


def _max_pool_grad_grad(rank: int) -> Callable[..., XlaOp]:
    def gradient(x: XlaOp, output: XlaOp, grad: XlaOp, *, data_format: str, **geometry: Any) -> XlaOp:
        """Select the gradient at the first maximum of each window, tap by tap."""
        _check_rank(x, rank, "orig_input")
        pool = Pool(sizes_of(x), data_format=data_format, **geometry)
        pool.check("orig_output", output, pool.out)
        pool.check("grad", grad, sizes_of(x))
        pads = [(low, high, 0) for low, high in pool.expand(pool.windows.pads, (0, 0))]
        padded, padded_grad = xla.pad(x, min_value(x), pads), xla.pad(grad, scalar(grad, 0), pads)
        best = best_value = None
        for _, at in pool.windows.taps():
            element, value = _tap(pool, padded, at[1:]), _tap(pool, padded_grad, at[1:])
            if best is None or best_value is None:
                best, best_value = element, value
                continue
            better = xla.gt(element, best)
            best, best_value = select(better, element, best), select(better, value, best_value)
        return best_value if best_value is not None else zeros_like(grad)

    return gradient


def _tap(pool: Pool, x: XlaOp, at: Sequence[slice]) -> XlaOp:
    slices = pool.expand(at, None)
    sizes = sizes_of(x)
    starts = [0 if s is None else s.start for s in slices]
    limits = [n if s is None else s.stop for s, n in zip(slices, sizes, strict=True)]
    return xla.slice_(x, starts, limits, [1 if s is None else s.step for s in slices])


def _with_window_operands(function: Callable[..., XlaOp], count: int) -> Callable[..., XlaOp]:
    """Wrap a kernel so that window sizes and strides are its last two operands."""

    def pool(*operands: Any, **attrs: Any) -> XlaOp:
        sizes = {}
        for name, operand in zip(("ksize", "strides"), operands[count:], strict=True):
            if operand.shape != (4,):
                raise ShapeError(f"{name} must hold 4 numbers; its shape is {list(operand.shape)}")
            sizes[name] = operand.tolist()
        return function(*operands[:count], **sizes, **attrs)

    return pool


_SIZES = ("ksize", "strides")
_FLOAT = {"T": (DataType.DT_FLOAT,)}  # the type supported for second derivatives
lowering("MaxPool", _max_pool(4), attrs=(*_ATTRS, "explicit_paddings"))
lowering("MaxPoolGrad", _max_pool_grad(4), attrs=(*_ATTRS, "explicit_paddings"))
lowering("MaxPoolGradGrad", _max_pool_grad_grad(4), attrs=_ATTRS, types=_FLOAT)
lowering("MaxPoolV2", _with_window_operands(_max_pool(4), 1), attrs=_ATTRS[2:], const=_SIZES)
lowering("MaxPoolGradV2", _with_window_operands(_max_pool_grad(4), 3), attrs=_ATTRS[2:], const=_SIZES)
lowering(
    "MaxPoolGradGradV2", _with_window_operands(_max_pool_grad_grad(4), 3), attrs=_ATTRS[2:], const=_SIZES, types=_FLOAT
)
lowering("MaxPool3D", _max_pool(5), attrs=_ATTRS)
lowering("MaxPool3DGrad", _max_pool_grad(5), attrs=_ATTRS)
lowering("MaxPool3DGradGrad", _max_pool_grad_grad(5), attrs=_ATTRS, types=_FLOAT)


# ------------------------------------------------------------------------------------------------- average pooling


def _avg_pool(rank: int) -> Callable[..., XlaOp]:
    def pool(x: XlaOp, *, data_format: str, **geometry: Any) -> XlaOp:
        """Emit a reduce-window of sums divided by constant counts."""
        _check_rank(x, rank, "the input")
        result = Pool(sizes_of(x), data_format=data_format, **geometry)
        wide = widened(x)
        mean = result.reduce(wide, scalar(wide, 0), "add") / result.counts(wide)
        return xla.convert(mean, x.shape.dtype) if is_narrow(x) else mean

    return pool


def _avg_pool_grad(rank: int) -> Callable[..., XlaOp]:
    def gradient(shape: Array, grad: XlaOp, *, data_format: str, **geometry: Any) -> XlaOp:
        """Sum shares of the gradient, dilated by the strides, over the windows of each element."""
        if shape.shape != (rank,):
            raise ShapeError(f"orig_input_shape must hold {rank} sizes; its shape is {list(shape.shape)}")
        _check_rank(grad, rank, "grad")
        pool = Pool([int(n) for n in shape], data_format=data_format, **geometry)
        pool.check("grad", grad, pool.out)
        wide = widened(grad)
        share = wide / pool.counts(wide)
        pads, w = [], pool.windows
        for size, k, stride, (low, _), out in zip(w.sizes, w.kernel, w.strides, w.pads, w.out, strict=True):
            before = k - 1 - low
            pads.append((before, size + k - 1 - before - ((out - 1) * stride + 1 if out else 0), stride - 1))
        dilated = xla.pad(share, scalar(share, 0), pool.expand(pads, (0, 0, 0)))
        result = xla.reduce_window(
            dilated,
            scalar(share, 0),
            scalar_computation("add", share.shape.dtype),
            pool.expand(w.kernel, 1),
            [1] * rank,
            [(0, 0)] * rank,
        )
        return xla.convert(result, grad.shape.dtype) if is_narrow(grad) else result

    return gradient


lowering("AvgPool", _avg_pool(4), attrs=_ATTRS)
lowering("AvgPoolGrad", _avg_pool_grad(4), attrs=_ATTRS, const=("orig_input_shape",))
lowering("AvgPool3D", _avg_pool(5), attrs=_ATTRS)
lowering("AvgPool3DGrad", _avg_pool_grad(5), attrs=_ATTRS, const=("orig_input_shape",))
