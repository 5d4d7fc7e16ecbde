"""Max and average pooling with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import (
    Windows,
    batch_and_channels,
    channels_back,
    channels_last,
    check_explicit,
    check_rank,
    check_steps,
)
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import FLOATING, REAL, DataType
from cyxla.core.kernels.lib import pooling
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError

Array = np.ndarray[Any, Any]
Numbers = Sequence[int]

_ATTRS = ("ksize", "strides", "padding", "data_format")
_REAL = tuple(t for t in REAL if t.text not in ("uint32", "uint64"))


def _windows(
    shape: Numbers,
    ksize: Numbers,
    strides: Numbers,
    padding: str,
    data_format: str = "NHWC",
    explicit_paddings: Numbers = (),
) -> Windows:
    """Return the windows over a channels-last shape."""
    rank = len(shape)
    if len(ksize) == rank and ksize[0] != 1:
        raise UnimplementedError(f"pooling over examples; ksize is {list(ksize)}")
    sizes = check_steps(ksize, "ksize", rank, data_format)
    steps = check_steps(strides, "strides", rank, data_format)
    pairs = check_explicit(padding, explicit_paddings, rank, data_format)
    for pair, size in zip(pairs, sizes, strict=False):
        if max(pair) >= size:
            raise InvalidArgumentError(f"with padding of {pair}, some window of size {size} would contain only padding")
    return Windows.of(shape[1:-1], sizes, steps, (), padding, pairs)


def _check_equal(name: str, x: Array, shape: Numbers) -> None:
    if x.shape != tuple(shape):
        raise ShapeError(f"{name}, channels last, is {list(x.shape)}; the input and the windows give {list(shape)}")


# -------------------------------------------------------------------------------------------------------- greatest


def _max_pool(rank: int) -> Callable[..., Array]:
    def pool(x: Array, *, data_format: str, **geometry: Any) -> Array:
        check_rank(x, rank, "the input")
        last = channels_last(x, data_format)
        if _over_channels(geometry["ksize"], data_format, rank):
            return channels_back(_pool_channels(last, data_format=data_format, **geometry), data_format)
        windows = _windows(last.shape, data_format=data_format, **geometry)
        return channels_back(pooling.max_pool(last, windows), data_format)

    return pool


def _over_channels(ksize: Numbers, data_format: str, rank: int) -> bool:
    return len(ksize) == rank and batch_and_channels(ksize, data_format)[1] != 1


def _pool_channels(x: Array, *, data_format: str, ksize: Numbers, strides: Numbers, **_: Any) -> Array:
    """Pool windows of neighbouring channels, which must not overlap."""
    size, step = batch_and_channels(ksize, data_format)[1], batch_and_channels(strides, data_format)[1]
    if prod(ksize) != size:
        raise UnimplementedError(f"pooling over channels and space at once; ksize is {list(ksize)}")
    if size != step or x.shape[-1] % size:
        raise UnimplementedError(f"{x.shape[-1]} channels in windows of {size}, every {step}: they must tile")
    flat = x.reshape(prod(x.shape[:-1]), x.shape[-1], 1)
    windows = Windows.of((x.shape[-1],), (size,), (size,))
    return pooling.max_pool(flat, windows).reshape(*x.shape[:-1], x.shape[-1] // size)


def _max_pool_grad(rank: int) -> Callable[..., Array]:
    def gradient(x: Array, output: Array, grad: Array, *, data_format: str, **geometry: Any) -> Array:
        taps, windows, grads = _argmax(rank, x, output, data_format, geometry)
        last = channels_last(grad, data_format)
        check_rank(grad, rank, "grad")
        _check_equal("grad", last, taps.shape)
        return grads(pooling.scatter_to_taps(last, taps, windows))

    return gradient


def _max_pool_grad_grad(rank: int) -> Callable[..., Array]:
    def gradient(x: Array, output: Array, grad: Array, *, data_format: str, **geometry: Any) -> Array:
        taps, windows, grads = _argmax(rank, x, output, data_format, geometry)
        last = channels_last(grad, data_format)
        check_rank(grad, rank, "grad")
        _check_equal("grad", last, channels_last(x, data_format).shape)
        return grads(pooling.gather_from_taps(last, taps, windows))

    return gradient


def _argmax(
    rank: int, x: Array, output: Array, data_format: str, geometry: dict[str, Any]
) -> tuple[Array, Windows, Callable[[Array], Array]]:
    check_rank(x, rank, "orig_input")
    check_rank(output, rank, "orig_output")
    last = channels_last(x, data_format)
    windows = _windows(last.shape, data_format=data_format, **geometry)
    taps = pooling.argmax_taps(last, windows)
    _check_equal("orig_output", channels_last(output, data_format), taps.shape)
    return taps, windows, lambda result: channels_back(result, data_format)


def _with_window_operands(function: Callable[..., Array], count: int) -> Callable[..., Array]:
    """Wrap a kernel so that window sizes and strides are its last two operands."""

    def pool(*operands: Array, **attrs: Any) -> Array:
        sizes = {}
        for name, operand in zip(("ksize", "strides"), operands[count:], strict=True):
            if operand.shape != (4,):
                raise ShapeError(f"{name} must hold 4 numbers; its shape is {list(operand.shape)}")
            sizes[name] = operand.tolist()
        return function(*operands[:count], **sizes, **attrs)

    return pool


array_kernel("MaxPool", _max_pool(4), attrs=(*_ATTRS, "explicit_paddings"), types={"T": _REAL})
array_kernel("MaxPoolGrad", _max_pool_grad(4), attrs=(*_ATTRS, "explicit_paddings"), types={"T": _REAL})
array_kernel("MaxPoolGradGrad", _max_pool_grad_grad(4), attrs=_ATTRS, types={"T": _REAL})
array_kernel("MaxPoolV2", _with_window_operands(_max_pool(4), 1), attrs=_ATTRS[2:], types={"T": _REAL})
array_kernel("MaxPoolGradV2", _with_window_operands(_max_pool_grad(4), 3), attrs=_ATTRS[2:], types={"T": _REAL})
array_kernel(
    "MaxPoolGradGradV2", _with_window_operands(_max_pool_grad_grad(4), 3), attrs=_ATTRS[2:], types={"T": _REAL}
)
array_kernel("MaxPool3D", _max_pool(5), attrs=_ATTRS, types={"T": FLOATING})
array_kernel("MaxPool3DGrad", _max_pool_grad(5), attrs=_ATTRS, types={"T": FLOATING})
array_kernel("MaxPool3DGradGrad", _max_pool_grad_grad(5), attrs=_ATTRS, types={"T": _REAL})


# -------------------------------------------------------------------------------------------- greatest and its place

_ARGMAX = ("ksize", "strides", "padding", "include_batch_in_index")


def _batch_offsets(x: Array, include: bool) -> Array:
    """Return the flat index of each example's first element, or zeros."""
    step = prod(x.shape[1:]) if include else 0
    return (np.arange(x.shape[0], dtype=np.int64) * step).reshape(-1, 1, 1, 1)


@array_kernel("MaxPoolWithArgmax", attrs=("Targmax", *_ARGMAX), types={"T": _REAL})
def _max_pool_with_argmax(
    x: Array, *, Targmax: DataType, include_batch_in_index: bool, **geometry: Any
) -> tuple[Array, Array]:
    check_rank(x, 4, "the input")
    windows = _windows(x.shape, **geometry)
    taps = pooling.argmax_taps(x, windows)
    indices = pooling.flat_indices(taps, windows) + _batch_offsets(x, include_batch_in_index)
    return pooling.gather_from_taps(x, taps, windows), indices.astype(Targmax.numpy)


def _check_argmax(x: Array, indices: Array, offsets: Array) -> Array:
    flat = (indices - offsets).astype(np.int64)
    if ((flat < 0) | (flat >= prod(x.shape[1:]))).any():
        raise InvalidArgumentError(f"argmax holds an index that is out of range for the input {list(x.shape)}")
    return flat.reshape(x.shape[0], prod(flat.shape[1:]))


@array_kernel("MaxPoolGradWithArgmax", attrs=_ARGMAX, types={"T": _REAL})
def _max_pool_grad_with_argmax(
    x: Array, grad: Array, argmax: Array, *, include_batch_in_index: bool, **geometry: Any
) -> Array:
    check_rank(x, 4, "the input")
    windows = _windows(x.shape, **geometry)
    shape = (x.shape[0], *windows.out, x.shape[-1])
    _check_equal("grad", grad, shape)
    _check_equal("argmax", argmax, shape)
    indices = _check_argmax(x, argmax, _batch_offsets(x, include_batch_in_index))
    result = np.zeros((x.shape[0], prod(x.shape[1:])), x.dtype)
    for out, at, values in zip(result, indices, grad.reshape(x.shape[0], prod(grad.shape[1:])), strict=True):
        np.add.at(out, at, values)
    return result.reshape(x.shape)


@array_kernel("MaxPoolGradGradWithArgmax", attrs=_ARGMAX, types={"T": _REAL})
def _max_pool_grad_grad_with_argmax(
    x: Array, grad: Array, argmax: Array, *, include_batch_in_index: bool, **geometry: Any
) -> Array:
    check_rank(x, 4, "the input")
    windows = _windows(x.shape, **geometry)
    shape = (x.shape[0], *windows.out, x.shape[-1])
    _check_equal("grad", grad, x.shape)
    _check_equal("argmax", argmax, shape)
    indices = _check_argmax(x, argmax, _batch_offsets(x, include_batch_in_index))
    return np.take_along_axis(grad.reshape(x.shape[0], prod(grad.shape[1:])), indices, axis=1).reshape(shape)


# ------------------------------------------------------------------------------------------------------------ mean


def _avg_pool(rank: int) -> Callable[..., Array]:
    def pool(x: Array, *, data_format: str, **geometry: Any) -> Array:
        check_rank(x, rank, "the input")
        last = channels_last(x, data_format)
        return channels_back(pooling.mean(last, _windows(last.shape, data_format=data_format, **geometry)), data_format)

    return pool


def _avg_pool_grad(rank: int) -> Callable[..., Array]:
    def gradient(shape: Array, grad: Array, *, data_format: str, **geometry: Any) -> Array:
        if shape.shape != (rank,):
            raise ShapeError(f"orig_input_shape must hold {rank} sizes; its shape is {list(shape.shape)}")
        check_rank(grad, rank, "grad")
        sizes = channels_last(np.empty(shape.tolist(), bool), data_format).shape
        windows = _windows(sizes, data_format=data_format, **geometry)
        last = channels_last(grad, data_format)
        _check_equal("grad", last, (sizes[0], *windows.out, sizes[-1]))
        return channels_back(pooling.gradient_of_mean(last, windows), data_format)

    return gradient


array_kernel("AvgPool", _avg_pool(4), attrs=_ATTRS, types={"T": FLOATING})
array_kernel("AvgPoolGrad", _avg_pool_grad(4), attrs=_ATTRS, types={"T": FLOATING})
array_kernel("AvgPool3D", _avg_pool(5), attrs=_ATTRS, types={"T": FLOATING})
array_kernel("AvgPool3DGrad", _avg_pool_grad(5), attrs=_ATTRS, types={"T": FLOATING})
