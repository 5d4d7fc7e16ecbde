"""Padding of matrices of run-time size: an identity matrix or zeros, which leave results as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cyxla.numpy.sized.frames import array_of, counts_of, padded_of, require_equal, resized, shape_of, wrapped
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape

_np: Any = np  # its functions dispatch to this package
LinAlgError = np.linalg.LinAlgError
_ITERATED: Final = 8
_NOT_SQUARE: Final = "Last 2 dimensions of the array must be square"


def as_matrices(value: Any) -> Any:
    """Return an argument as a stack of matrices."""
    array = array_of(value)
    if array.ndim < 2:
        raise LinAlgError(f"{array.ndim}-dimensional array given. Array must be at least two-dimensional")
    return array


def batch_counts(array: Any) -> dict[int, Any]:
    """Return the sizes of the dimensions before those of the matrices."""
    return {d: n for d, n in counts_of(array).items() if d < array.ndim - 2}


def of_stack(array: Any, data: Any, *core: Any) -> Any:
    """Return padded results for a stack of matrices, with the sizes of their last dimensions."""
    first = data.ndim - len(core)
    sizes = {first + k: n for k, n in enumerate(core) if is_traced(n)}
    return wrapped(data, {**batch_counts(array), **sizes})


def with_bound(array: Any, axis: int, bound: int, size: Any) -> Any:
    """Return an array of another bound, and size, along a dimension."""
    axis %= array.ndim
    counts = {d: n for d, n in counts_of(array).items() if d != axis}
    data = resized(padded_of(array), axis, bound)
    return wrapped(data, {**counts, axis: as_size(size, bound)} if is_traced(size) else counts)


def unify(first: Any, axis: int, second: Any, other: int, message: str, error: Callable[..., Exception]) -> Any:
    """Return two arrays with one size, and one bound, along a dimension of each; runs with two sizes fail."""
    m, n = shape_of(first)[axis], shape_of(second)[other]
    if not is_traced(m) and not is_traced(n):
        if m != n:
            raise error(message.format(m, n))
        return first, second
    require_equal(as_traced(m), as_traced(n), message, error)
    bounds = padded_of(first).shape[axis], padded_of(second).shape[other]
    if is_traced(m) and is_traced(n):
        bound, size = min(bounds), m
    else:
        bound = size = n if is_traced(m) else m
    return with_bound(first, axis, bound, size), with_bound(second, other, bound, size)


def as_square(value: Any) -> Any:
    """Return a stack of square matrices; runs in which they are not square fail."""
    array = as_matrices(value)
    rows, columns = shape_of(array)[-2:]
    if not is_traced(rows) and not is_traced(columns):
        if rows != columns:
            raise LinAlgError(_NOT_SQUARE)
        return array
    require_equal(as_traced(rows), as_traced(columns), _NOT_SQUARE, LinAlgError)
    if is_traced(rows) and is_traced(columns):
        bound, size = min(array.padded.shape[-2:]), rows
    else:
        bound = size = columns if is_traced(rows) else rows
    return with_bound(with_bound(array, -2, bound, size), -1, bound, size)


def with_identity(array: Any) -> Any:
    """Return padded matrices whose padding is that of an identity matrix."""
    if not isinstance(array, SizedArray):
        return array
    one = np.eye(array.padded.shape[-1], dtype=array.dtype)
    return TracedArray(value_of(_np.where(valid(array), array.padded, one)))


def with_zeros(array: Any) -> Any:
    """Return padded elements whose padding is zeros."""
    return filled(array, 0) if isinstance(array, SizedArray) else array


def result_dtype(*arrays: Any) -> Dtype:
    """Return the dtype of results."""
    is_complex = any(a.dtype.kind == "c" for a in arrays)
    is_single = all(a.dtype in (np.float32, np.complex64) for a in arrays)
    return np.dtype(np.complex64 if is_single else np.complex128) if is_complex else np.dtype(
        np.float32 if is_single else np.float64)  # fmt: skip


def real_of(dtype: Dtype) -> Dtype:
    """Return the dtype of the real parts."""
    return np.zeros((), dtype).real.dtype


def in_double(*arrays: Any) -> list[Any]:
    """Return arrays in the double precision in which NumPy computes."""
    for a in arrays:
        if a.dtype == np.float16:
            raise TypeError(f"array type {a.dtype.name} is unsupported in linalg")
    dtype = np.complex128 if any(a.dtype.kind == "c" for a in arrays) else np.float64
    return [a.astype(dtype) for a in arrays]


def least_size(rows: Any, columns: Any, bound: int) -> Any:
    """Return the lesser of two sizes."""
    if not is_traced(rows) and not is_traced(columns):
        return min(rows, columns)
    return as_size(as_traced(_np.minimum(rows, columns), np.int64), bound)


def greatest_size(rows: Any, columns: Any) -> Any:
    """Return the greater one of two sizes."""
    return _np.maximum(rows, columns) if is_traced(rows) or is_traced(columns) else max(rows, columns)


def follow_bounds(array: Any, factor: int = 1) -> Any:
    """Return an array, and note that time follows its bounds: those of programs for any size are not generous then."""
    if isinstance(array, SizedArray):
        dims = (*array.padded.shape, factor)
        require_current().program.flattened.append(Shape.array(ElementType.F64, dims))
    return array


def factor_of(array: Any) -> int:
    """Return how many times as long as a product of numbers each element takes where vectors are iterated."""
    sizes = [n for n in shape_of(array)[-2:] if not is_traced(n)]
    return -(-min(sizes) // _ITERATED) if sizes and array.ndim == 2 else _ITERATED


def refuse_gradients(name: str) -> None:
    """Raise where gradients are computed, which equal values in the padding would spoil."""
    if require_current().program.gradients:
        raise_unsupported(f"be passed to np.linalg.{name} where gradients are computed", "use arrays of known size")
