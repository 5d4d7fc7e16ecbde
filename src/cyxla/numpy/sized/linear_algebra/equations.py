"""Systems of linear equations, least squares and inverses of matrices of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Final

import numpy as np

from cyxla.numpy.functions.linalg.equations import power_by_squaring
from cyxla.numpy.sized.frames import array_of, leave_if, padded_of, shape_of, wrapped
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
    result_dtype,
    unify,
    with_bound,
    with_identity,
    with_zeros,
)
from cyxla.numpy.sized.products import Term, contract
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, is_sized, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import as_traced, is_traced

_np: Any = np  # its functions dispatch to this package
_SPACING: Final = float(np.finfo(np.float64).eps)


@sized(np.linalg.solve)
def solve(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Solve linear systems: the padding of the matrix is an identity, that of the other side zeros."""
    a, b = follow_bounds(as_square(arguments["a"])), array_of(arguments["b"])
    if b.ndim == 0:
        return func(padded_of(a), b)
    is_vector = b.ndim == 1
    a = a.like(with_identity(a)) if isinstance(a, SizedArray) else a
    b = b.like(with_zeros(b)) if isinstance(b, SizedArray) else b
    name, core, shape = ("solve1", "(m,m),(m)->(m)", 1) if is_vector else ("solve", "(m,m),(m,n)->(m,n)", 2)
    message = (
        f"{name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {core} "
        "(size {1} is different from {0})"
    )
    a, b = unify(a, -1, b, -shape, message, ValueError)
    a = with_bound(a, -2, padded_of(a).shape[-1], shape_of(a)[-1])
    left_batch, right_batch = range(a.ndim - 2, 0, -1), range(b.ndim - shape, 0, -1)
    _check_batches(shape_of(a)[:-2], shape_of(b)[:-shape])
    labels = ["k"] if is_vector else ["k", "n"]
    batch = max(left_batch, right_batch, key=len)
    terms = [Term(a, [*left_batch, "k", "k"]), Term(b, [*right_batch, *labels])]
    return contract("solve", terms, [*batch, *labels], func)


def _check_batches(first: Sequence[Any], second: Sequence[Any]) -> None:
    """Refuse matrices of known number for a run-time number of other sides: more of them would be singular."""
    for m, n in zip(reversed(first), reversed(second), strict=False):
        if not is_traced(m) and m != 1 and is_traced(n):
            raise_unsupported("be passed to np.linalg.solve with a known number of matrices", "broadcast both")


@sized(np.linalg.inv, np.linalg.cholesky)
def inv(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Invert or factor square matrices."""
    a = follow_bounds(as_square(arguments["a"]))
    data = call(func, {**arguments, "a": with_identity(a)})
    return of_stack(a, data, *shape_of(a)[-2:])


@sized(np.linalg.det)
def det(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute determinants."""
    a = follow_bounds(as_square(arguments["a"]))
    return of_stack(a, func(with_identity(a)))


@sized(np.linalg.slogdet)
def slogdet(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return signs and logarithms of determinants."""
    a = follow_bounds(as_square(arguments["a"]))
    result = func(with_identity(a))
    return result._make([of_stack(a, x) for x in result])


@sized(np.linalg.matrix_power)
def matrix_power(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Raise matrices to an integer power."""
    a, exponent = as_square(arguments["a"]), arguments["n"]
    if is_traced(exponent) or is_sized(exponent):
        raise_unsupported("be raised to a power that is traced", "use np.linalg.eig")
    n = index(exponent)
    if not isinstance(a, SizedArray):
        return func(a, n)
    if n == 0:
        return a.like(_np.broadcast_to(np.eye(a.padded.shape[-1], dtype=a.dtype), a.padded.shape).copy())
    if n < 0:
        a, n = _np.linalg.inv(a), -n
    return power_by_squaring(a, n)


@sized(np.linalg.lstsq)
def lstsq(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Solve by least squares; residuals are missing, as NumPy's, where columns depend on each other."""
    a, b = array_of(arguments["a"]), array_of(arguments["b"])
    for rank in (a.ndim, max(b.ndim, 2) if b.ndim else 0):
        if rank != 2:
            raise LinAlgError(f"{rank}-dimensional array given. Array must be two-dimensional")
    dtype = result_dtype(a, b)
    a, b = in_double(a, b)
    a, b = unify(a, 0, b, 0, "Incompatible dimensions", LinAlgError)
    rows, columns = shape_of(a)
    cutoff = _cutoff(arguments.get("rcond"), rows, columns)
    x, y = with_zeros(follow_bounds(a, factor_of(a))), with_zeros(follow_bounds(b))
    solution, _, rank, s = call(func, {"a": x, "b": y, "rcond": cutoff})
    count = least_size(rows, columns, s.shape[0])
    values = of_stack(a, s, count)
    if s.shape[0]:
        rank = _np.sum(_np.greater(values, cutoff * s[0])).astype(np.int32)
    residuals = _np.sum(squares(y - _np.matmul(x, solution)), axis=0)
    residuals = residuals if b.ndim == 2 else _np.reshape(residuals, (1,))
    are_present: Any = _np.logical_and(_np.equal(rank, columns), _np.greater(rows, columns))
    number = as_size(as_traced(_np.where(are_present, shape_of(b)[1] if b.ndim == 2 else 1, 0)), residuals.shape[0])
    sizes = [columns, *shape_of(b)[1:]]
    return (
        wrapped(solution.astype(dtype), {d: n for d, n in enumerate(sizes) if is_traced(n)}),
        SizedArray(residuals.astype(real_of(dtype)), {0: number}),
        rank,
        values.astype(real_of(dtype)),
    )


def _cutoff(rcond: Any, rows: Any, columns: Any) -> Any:
    """Return LAPACK's relative cutoff of singular values; smaller ones count as zero."""
    if rcond is None:
        return _np.multiply(greatest_size(rows, columns), _SPACING)
    cutoff = as_traced(rcond, np.float64)
    is_used: Any = _np.logical_and(_np.greater(cutoff, 0), _np.less(cutoff, 1))
    return _np.where(is_used, cutoff, _SPACING / 2)


def squares(x: Any) -> Any:
    """Return squares of absolute values."""
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


@sized(np.linalg.pinv)
def pinv(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute pseudo-inverses: singular values of the padding are zero."""
    a = as_matrices(arguments["a"])
    if flag_of(arguments, "hermitian"):
        a = as_square(a)
    rows, columns = shape_of(a)[-2:]
    if a.dtype.kind not in "fc":
        for n in (rows, columns):
            if is_traced(n):
                leave_if(_np.equal(n, 0), "np.linalg.pinv of an array of integers without elements has integers")
    options = {**arguments, "a": with_zeros(follow_bounds(a, factor_of(a)))}
    if arguments.get("rcond") is None and arguments.get("rtol", np._NoValue) is None:
        options["rtol"] = _np.multiply(greatest_size(rows, columns), np.finfo(a.dtype).eps)
    return of_stack(a, call(func, options), columns, rows)


def flag_of(arguments: dict[str, Any], name: str, default: bool = False) -> bool:
    """Return an argument that is true or false."""
    return bool(arguments.get(name, default))
