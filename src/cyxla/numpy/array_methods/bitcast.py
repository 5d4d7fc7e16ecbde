"""Methods that reinterpret bits: ``view`` and ``byteswap``; and ``resize``, which is not supported."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.layout_reads import note_layout
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.types import ElementType, Shape, from_numpy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def view(self: TracedArray, dtype: Any = None, type: Any = None) -> TracedArray:
    """Return a view of the same bits as another dtype.

    Raises
    ------
    ValueError
        The last dimension does not hold a whole number of elements of the new size.
    """
    if getattr(dtype, "__wrapped__", dtype) is np.ndarray:
        dtype = None
    if getattr(type, "__wrapped__", type) is np.ndarray:
        type = None
    if (isinstance(dtype, _TYPE) and issubclass(dtype, np.ndarray)) or type is not None:
        raise UnimplementedError(
            "view as a class of arrays cannot be traced",
            where=_trace.user_line(),
            hint="x.view(dtype) reinterprets bits",
        )
    source, target = self.dtype, self.dtype if dtype is None else np.dtype(dtype)
    if source.itemsize != target.itemsize:
        note_layout(self)
    memory = self.memory.view(target)  # raises NumPy's errors
    sizes = (*self.shape[:-1], self.shape[-1] * source.itemsize // target.itemsize) if self.ndim else ()
    return self.make_view(
        lambda op: bitcast_to(op, target, sizes), lambda base, new: bitcast_to(new, source, base.shape.dims), memory
    )  # fmt: skip


_TYPE = type


def bitcast_to(op: XlaOp, dtype: Dtype, sizes: tuple[int, ...]) -> XlaOp:
    """Bitcast an array to another dtype and shape, through bytes if need be."""
    source = op.shape.dtype.numpy_dtype
    assert source is not None
    if source == dtype:
        return xla.reshape(op, sizes)
    if source.kind == "c":
        op = _interleave(op)
        return bitcast_to(op, dtype, sizes)
    if dtype.kind == "c":
        half = np.dtype(f"f{dtype.itemsize // 2}")
        rank = len(sizes)
        pairs = bitcast_to(op, half, (*sizes, 2)) if rank else bitcast_to(xla.reshape(op, (1,)), half, (2,))
        real, imag = (xla.reshape(xla.slice_in_dim(pairs, k, k + 1, 1, rank), sizes) for k in range(2))
        return xla.complex_(real, imag)
    return _bitcast(op, from_numpy(dtype), sizes)


def _interleave(op: XlaOp) -> XlaOp:
    """Return complex numbers as real ones, with twice the size of the last dimension."""
    dims = op.shape.dims
    expanded = (*dims, 1)
    pairs = xla.concatenate([xla.reshape(xla.real(op), expanded), xla.reshape(xla.imag(op), expanded)], len(dims))
    return xla.reshape(pairs, (*dims[:-1], dims[-1] * 2)) if dims else pairs


def _bitcast(op: XlaOp, target: ElementType, sizes: tuple[int, ...]) -> XlaOp:
    """Bitcast real numbers; HLO splits an element into a new dimension, or merges one into an element."""
    if target is ElementType.PRED:
        return xla.ne(_bitcast(op, ElementType.U8, sizes), xla.constant(op.builder, 0, "u8"))
    if op.shape.dtype is ElementType.PRED:
        op = xla.convert(op, ElementType.U8)
    size, target_bits = op.shape.dtype.bits, target.bits
    dims = op.shape.dims
    if size > target_bits:
        op = _cast(op, target, (*dims, size // target_bits))
    elif size < target_bits:
        ratio = target_bits // size
        op = _cast(xla.reshape(op, (*sizes, ratio)), target, sizes)
    else:
        op = _cast(op, target, dims)
    return xla.reshape(op, sizes)


def _cast(op: XlaOp, target: ElementType, sizes: tuple[int, ...]) -> XlaOp:
    if op.shape.dtype is target:
        return op
    return op.builder.add("bitcast-convert", [op], shape=Shape.array(target, sizes))


def byteswap(self: TracedArray, inplace: bool = False) -> TracedArray:
    """Reverse the bytes of each element."""
    dtype = self.dtype
    half = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    flat = xla.reshape(value_of(self), (self.size,))
    bytes_ = bitcast_to(flat, np.dtype(np.uint8), (self.size * dtype.itemsize,))
    reversed_ = xla.reverse(xla.reshape(bytes_, (self.size * dtype.itemsize // half, half)), (1,))
    swapped = bitcast_to(xla.reshape(reversed_, (self.size * dtype.itemsize,)), dtype, (self.size,))
    result = xla.reshape(swapped, self.shape)
    if not inplace:
        return TracedArray(result)
    self.overwrite(result)
    return self


def resize(self: TracedArray, *sizes: Any, refcheck: bool = True) -> NoReturn:
    """Raise: the shape of a traced array is fixed.

    Raises
    ------
    UnimplementedError
        Always.
    """
    raise UnimplementedError(
        "ndarray.resize cannot be traced",
        where=_trace.user_line(),
        hint="use np.resize(x, sizes), np.pad(x, (0, n)) or x[:n]",
    )
