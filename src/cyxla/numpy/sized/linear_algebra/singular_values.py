"""Singular values of matrices of run-time size, which are padded with zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from cyxla.numpy.control import switch
from cyxla.numpy.functions.linalg.equations import inverse_or_nan
from cyxla.numpy.sized.frames import array_of, leave_if, padded_of, resized, shape_of
from cyxla.numpy.sized.linear_algebra.equations import flag_of
from cyxla.numpy.sized.linear_algebra.padding import (
    LinAlgError,
    as_matrices,
    as_square,
    factor_of,
    follow_bounds,
    greatest_size,
    in_double,
    least_size,
    of_stack,
    real_of,
    refuse_gradients,
    result_dtype,
    with_identity,
    with_zeros,
)
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, is_sized, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current

_np: Any = np  # its functions dispatch to this package
_SPACING: Final = float(np.finfo(np.float64).eps)


class _Shape(NamedTuple):
    """Padded sizes of matrices, and the condition for matrices to be padded to them if they were not to earlier ones.

    The signs of singular vectors depend on the way in which LAPACK decomposes matrices, and that on which of the two
    sizes is the greater one, and whether it is much greater: padded sizes are alike in this.
    """

    holds: Any
    rows: int
    columns: int
    has_more_values: bool  # than the matrices


_SMALL: Final = 8  # side of matrices up to which each lesser size of the other side has its own shape


def _long(side: Any, is_complex: bool) -> Any:
    """Return the size of the other side from which LAPACK reduces matrices to triangles first."""
    return side * 17 // 9 if is_complex else side * 11 // 6


def _shapes(rows: Any, columns: Any, bounds: tuple[int, int], is_complex: bool) -> list[_Shape]:
    """Return the shapes to which matrices of run-time size are padded."""
    if not is_traced(columns):
        return _shapes_of_lengths(rows, columns, bounds[0], is_complex)
    if not is_traced(rows):
        shapes = _shapes_of_lengths(columns, rows, bounds[1], is_complex)
        return [_Shape(s.holds, s.columns, s.rows, s.has_more_values) for s in shapes]
    m, n = bounds
    side = max(m, n)
    is_tall = _np.greater_equal(rows, columns)
    return [
        _Shape(_np.equal(rows, 1), 1, n, False),
        _Shape(_np.equal(columns, 1), m, 1, False),
        _Shape(_np.logical_and(is_tall, rows >= _long(columns, is_complex)), max(m, _long(n, is_complex)), n, True),
        _Shape(is_tall, side, side, True),
        _Shape(_np.greater_equal(columns, _long(rows, is_complex)), m, max(n, _long(m, is_complex)), True),
        _Shape(None, side, side + 1, True),
    ]


def _shapes_of_lengths(length: Any, side: int, bound: int, is_complex: bool) -> list[_Shape]:
    """Return the shapes for one run-time size, by its greatest values."""
    long = _long(side, is_complex)
    if side <= _SMALL:
        shorter = [(k, False) for k in range(side)]
    else:
        much_shorter = max(k for k in range(side) if _long(k, is_complex) <= side)
        shorter = [(1, False), (much_shorter, True), (side - 1, True)]
    steps = [*shorter, (side, False), *([(long - 1, False)] if long - 1 > side else []), (max(bound, long), False)]
    last = next(k for k, (limit, _) in enumerate(steps) if limit >= bound)
    return [_Shape(_np.less_equal(length, limit), limit, side, mixes) for limit, mixes in steps[: last + 1]]


@sized(np.linalg.svd)
def svd(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute singular values and vectors."""
    a = as_matrices(arguments["a"])
    rows, columns = shape_of(a)[-2:]
    if not flag_of(arguments, "compute_uv", default=True):
        return singular_values_of(a, flag_of(arguments, "hermitian"))
    if not is_traced(rows) and not is_traced(columns):
        result = call(func, {**arguments, "a": with_zeros(a)})
        return result._make([of_stack(a, x, *[None] * k) for x, k in zip(result, (2, 1, 2), strict=True)])
    if flag_of(arguments, "hermitian"):
        raise_unsupported("be passed to np.linalg.svd with hermitian=True", "use np.linalg.eigh")
    refuse_gradients("svd")
    dtype = result_dtype(a)
    (work,) = in_double(follow_bounds(a, factor_of(a)))
    is_full = flag_of(arguments, "full_matrices", default=True)
    bounds = work.padded.shape[-2:]
    shapes = _shapes(rows, columns, bounds, dtype.kind == "c")
    least = min(bounds)
    sides = bounds if is_full else (least, least)
    branch = as_traced(len(shapes) - 1)
    for k in reversed(range(len(shapes) - 1)):
        branch = _np.where(shapes[k].holds, k, branch)
    functions = [partial(_decompose, s, bounds, sides, is_full) for s in shapes]
    u, s, vh = switch(branch, functions, with_zeros(work))
    require_current().program.flattened.extend([value_of(u).shape, value_of(vh).shape])
    count = least_size(rows, columns, least)
    values = of_stack(a, s, count)
    _leave_if_mixed(shapes, branch, values, rows, columns, is_full)
    left, right = (rows, columns) if is_full else (count, count)
    result = np.linalg._linalg.SVDResult
    return result(
        of_stack(a, u.astype(dtype), rows, left), values.astype(real_of(dtype)),
        of_stack(a, vh.astype(dtype), right, columns),
    )  # fmt: skip


def _decompose(shape: _Shape, bounds: Sequence[int], sides: Sequence[int], is_full: bool, data: Any) -> Any:
    """Decompose matrices that are padded to a shape; the results are padded to common sizes."""
    x = resized(resized(data, -2, shape.rows), -1, shape.columns)
    u, s, vh = _np.linalg.svd(x, full_matrices=is_full)
    return (
        resized(resized(u, -2, bounds[0]), -1, sides[0]), resized(s, -1, min(bounds)),
        resized(resized(vh, -2, sides[1]), -1, bounds[1]),
    )  # fmt: skip


def _leave_if_mixed(shapes: Sequence[_Shape], branch: Any, values: Any, rows: Any, columns: Any, is_full: bool) -> None:
    """Make NumPy run where vectors of the padding may stand among those of the matrix."""
    mixes = [k for k, s in enumerate(shapes) if s.has_more_values]
    if not mixes:
        return
    is_mixed: Any = _np.isin(branch, mixes)
    cutoff = _np.max(values, axis=-1, keepdims=True, initial=0) * greatest_size(rows, columns) * _SPACING
    may_mix: Any = _np.any(_np.logical_not(_np.greater(values, cutoff)))
    if is_full:
        may_mix = _np.logical_or(may_mix, _np.not_equal(rows, columns))
    text = "np.linalg.svd of matrices of run-time size with singular values of zero, or with more vectors than those"
    leave_if(_np.logical_and(is_mixed, may_mix), text)


def singular_values_of(a: Any, hermitian: bool = False) -> Any:
    """Return the singular values of matrices, in descending order."""
    a = follow_bounds(as_square(a) if hermitian else a, factor_of(a))
    s = _np.linalg.svd(with_zeros(a), compute_uv=False, hermitian=hermitian)
    rows, columns = shape_of(a)[-2:]
    return of_stack(a, s, least_size(rows, columns, s.shape[-1]))


@sized(np.linalg.svdvals)
def svdvals(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute singular values; those of the padding are zeros, and come last."""
    return singular_values_of(as_matrices(arguments["x"]))


@sized(np.linalg.matrix_rank)
def matrix_rank(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Count the singular values that are not nearly zero."""
    a, tol, rtol = array_of(arguments["A"]), arguments.get("tol"), arguments.get("rtol")
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if a.ndim < 2:
        return func(with_zeros(a))
    values = _np.linalg.svd(a, compute_uv=False, hermitian=flag_of(arguments, "hermitian"))
    if tol is None:
        relative = greatest_size(*shape_of(a)[-2:]) * np.finfo(values.dtype).eps if rtol is None else _last(rtol)
        tol = _np.max(values, axis=-1, keepdims=True, initial=0) * relative
    else:
        tol = _last(tol)
    return _np.count_nonzero(_np.greater(values, tol), axis=-1)


def _last(value: Any) -> Any:
    """Return an array with another dimension, of size 1, at the end."""
    return _np.expand_dims(value if is_sized(value) else as_traced(value), -1)


@sized(np.linalg.cond)
def cond(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute condition numbers."""
    x, order = as_matrices(arguments["x"]), arguments.get("p")
    message = "cond is not defined on empty arrays"
    if 0 in padded_of(x).shape[-2:]:
        raise LinAlgError(message)
    if isinstance(x, SizedArray):
        fail_if_empty(x, message, (x.ndim - 2, x.ndim - 1), LinAlgError)
    if order in (None, 2, -2):
        values = _np.linalg.svd(x, compute_uv=False)
        ends = values[..., 0], values[..., -1]
        result = _np.true_divide(*ends[::-1]) if order == -2 else _np.true_divide(*ends)
    else:
        x = follow_bounds(as_square(x))
        (work,) = in_double(x)
        data = TracedArray(inverse_or_nan(value_of(with_identity(work))))
        inverse = of_stack(x, data, *shape_of(x)[-2:])
        result = _np.linalg.matrix_norm(work, ord=order) * _np.linalg.matrix_norm(inverse, ord=order)
        result = result.astype(real_of(result_dtype(x)))
    is_undefined = _np.logical_and(_np.isnan(result), _np.logical_not(_np.any(_np.isnan(x), axis=(-2, -1))))
    return _np.where(is_undefined, result.dtype.type(np.inf), result)[()]
