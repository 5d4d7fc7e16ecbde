"""Eigenvalues and orthonormal factors of matrices of run-time size: padded eigenvalues come last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from cyxla.numpy.sized.frames import leave_if, padded_of, shape_of
from cyxla.numpy.sized.linear_algebra.padding import (
    as_matrices,
    as_square,
    follow_bounds,
    in_double,
    least_size,
    of_stack,
    real_of,
    refuse_gradients,
    result_dtype,
    with_identity,
    with_zeros,
)
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced, value_of
from cyxla.numpy.tracing.results.promotion import Dtype

_np: Any = np  # its functions dispatch to this package
_ITERATED: Final = 8


class _Hermitian(NamedTuple):
    """Padded matrices, with the stack that they are from, and its dtype."""

    stack: Any
    padded: Any
    dtype: Dtype


def _hermitian(arguments: dict[str, Any]) -> _Hermitian:
    """Return matrices whose padding has eigenvalues greater than theirs, all different."""
    stack = follow_bounds(as_square(arguments["a"]), _ITERATED)
    dtype = result_dtype(stack)
    (a,) = in_double(stack)
    if not isinstance(a, SizedArray):
        return _Hermitian(a, a, dtype)
    is_lower = str(arguments.get("UPLO", "L")).upper() == "L"
    read = (_np.tril if is_lower else _np.triu)(filled(a, 0))
    total: Any = _np.sum(_np.abs(read), axis=(-2, -1), keepdims=True)
    text = "np.linalg.eigh of matrices of run-time size with infinite elements or nan"
    leave_if(_np.logical_not(_np.all(_np.isfinite(total))), text)
    total = _np.where(_np.greater(total, 0), 2 * total, 1)
    side = a.padded.shape[-1]
    data = _np.where(valid(a), a.padded, total * np.diag(1 + np.arange(1, side + 1) / max(side, 1)))
    return _Hermitian(a, TracedArray(value_of(data)), dtype)


@sized(np.linalg.eigh)
def eigh(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute eigenvalues and vectors of Hermitian matrices; those of the padding come last."""
    a, data, dtype = _hermitian(arguments)
    result = call(func, {**arguments, "a": data})
    n = shape_of(a)[-1]
    values, vectors = result
    return result._make([of_stack(a, values.astype(real_of(dtype)), n), of_stack(a, vectors.astype(dtype), n, n)])


@sized(np.linalg.eigvalsh)
def eigvalsh(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute eigenvalues of Hermitian matrices."""
    a, data, dtype = _hermitian(arguments)
    return of_stack(a, call(func, {**arguments, "a": data}).astype(real_of(dtype)), shape_of(a)[-1])


_LARGEST: Final = 75  # size of matrices up to which LAPACK finds eigenvalues in an order that padding does not change


@sized(np.linalg.eig, np.linalg.eigvals)
def eig(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute eigenvalues: LAPACK isolates those of the padding, an identity, and leaves them last."""
    refuse_gradients(func.__name__)
    a = follow_bounds(as_square(arguments["a"]), _ITERATED)
    n = shape_of(a)[-1]
    if is_traced(n) and a.padded.shape[-1] > _LARGEST:
        raise_unsupported(
            f"be passed to np.linalg.{func.__name__} if it may be large", "use np.linalg.eigh if possible"
        )
    result = func(with_identity(a))
    if isinstance(result, TracedArray):
        return of_stack(a, result, n)
    return result._make([of_stack(a, x, *[n] * k) for k, x in enumerate(result, 1)])


@sized(np.linalg.qr)
def qr(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute QR factors: zeros in the padding have no reflectors, and change none."""
    a, mode = follow_bounds(as_matrices(arguments["a"])), arguments.get("mode", "reduced")
    result = call(func, {**arguments, "a": with_zeros(a)})
    rows, columns = shape_of(a)[-2:]
    least = least_size(rows, columns, min(padded_of(a).shape[-2:]))
    if mode == "r":
        return of_stack(a, result, least, columns)
    first, second = result
    if mode == "raw":
        return of_stack(a, first, columns, rows), of_stack(a, second, least)
    width = rows if mode == "complete" else least
    return result._make([of_stack(a, first, rows, width), of_stack(a, second, width, columns)])
