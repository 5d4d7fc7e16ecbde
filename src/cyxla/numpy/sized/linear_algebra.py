"""Linear algebra of matrices of run-time size: of padded ones, whose padding leaves the results as they are.

Square matrices are padded with an identity matrix, or with eigenvalues that come last; other ones with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np

from cyxla.numpy.control import switch
from cyxla.numpy.functions.linalg.equations import inverse_or_nan
from cyxla.numpy.sized.frames import fail_unless, leave_if, require_equal, resized, shape_of, wrapped
from cyxla.numpy.sized.products import Term, contract
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, is_sized, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape

_np: Any = np  # its functions dispatch to this package
_LinAlgError = np.linalg.LinAlgError
_SPACING: Final = float(np.finfo(np.float64).eps)
_ITERATED: Final = 8
_NOT_SQUARE: Final = "Last 2 dimensions of the array must be square"


# -- padding


def _array(value: Any) -> Any:
    return value if isinstance(value, SizedArray) else as_traced(value)


def _matrices(value: Any) -> Any:
    """Return an argument as a stack of matrices."""
    array = _array(value)
    if array.ndim < 2:
        raise _LinAlgError(f"{array.ndim}-dimensional array given. Array must be at least two-dimensional")
    return array


def _padded(array: Any) -> Any:
    return array.padded if isinstance(array, SizedArray) else array


def _counts(array: Any) -> dict[int, Any]:
    return array.counts if isinstance(array, SizedArray) else {}


def _batch_counts(array: Any) -> dict[int, Any]:
    """Return the sizes of the dimensions before those of the matrices."""
    return {d: n for d, n in _counts(array).items() if d < array.ndim - 2}


def _of_stack(array: Any, data: Any, *core: Any) -> Any:
    """Return padded results for a stack of matrices, with the sizes of their last dimensions."""
    first = data.ndim - len(core)
    sizes = {first + k: n for k, n in enumerate(core) if is_traced(n)}
    return wrapped(data, {**_batch_counts(array), **sizes})


def _with_bound(array: Any, axis: int, bound: int, size: Any) -> Any:
    """Return an array of another bound, and size, along a dimension."""
    axis %= array.ndim
    counts = {d: n for d, n in _counts(array).items() if d != axis}
    data = resized(_padded(array), axis, bound)
    return wrapped(data, {**counts, axis: as_size(size, bound)} if is_traced(size) else counts)


def _unify(first: Any, axis: int, second: Any, other: int, message: str, error: Callable[..., Exception]) -> Any:
    """Return two arrays with one size, and one bound, along a dimension of each; runs with two sizes fail."""
    m, n = shape_of(first)[axis], shape_of(second)[other]
    if not is_traced(m) and not is_traced(n):
        if m != n:
            raise error(message.format(m, n))
        return first, second
    require_equal(as_traced(m), as_traced(n), message, error)
    bounds = _padded(first).shape[axis], _padded(second).shape[other]
    if is_traced(m) and is_traced(n):
        bound, size = min(bounds), m
    else:
        bound = size = n if is_traced(m) else m
    return _with_bound(first, axis, bound, size), _with_bound(second, other, bound, size)


def _square(value: Any) -> Any:
    """Return a stack of square matrices; runs in which they are not square fail."""
    array = _matrices(value)
    rows, columns = shape_of(array)[-2:]
    if not is_traced(rows) and not is_traced(columns):
        if rows != columns:
            raise _LinAlgError(_NOT_SQUARE)
        return array
    require_equal(as_traced(rows), as_traced(columns), _NOT_SQUARE, _LinAlgError)
    if is_traced(rows) and is_traced(columns):
        bound, size = min(array.padded.shape[-2:]), rows
    else:
        bound = size = columns if is_traced(rows) else rows
    return _with_bound(_with_bound(array, -2, bound, size), -1, bound, size)


def _with_identity(array: Any) -> Any:
    """Return padded matrices whose padding is that of an identity matrix."""
    if not isinstance(array, SizedArray):
        return array
    one = np.eye(array.padded.shape[-1], dtype=array.dtype)
    return TracedArray(value_of(_np.where(valid(array), array.padded, one)))


def _with_zeros(array: Any) -> Any:
    return filled(array, 0) if isinstance(array, SizedArray) else array


def _result_dtype(*arrays: Any) -> Dtype:
    """Return the dtype of results."""
    is_complex = any(a.dtype.kind == "c" for a in arrays)
    is_single = all(a.dtype in (np.float32, np.complex64) for a in arrays)
    return np.dtype(np.complex64 if is_single else np.complex128) if is_complex else np.dtype(
        np.float32 if is_single else np.float64)  # fmt: skip


def _real(dtype: Dtype) -> Dtype:
    return np.zeros((), dtype).real.dtype


def _double(*arrays: Any) -> list[Any]:
    """Return arrays in the double precision in which NumPy computes."""
    for a in arrays:
        if a.dtype == np.float16:
            raise TypeError(f"array type {a.dtype.name} is unsupported in linalg")
    dtype = np.complex128 if any(a.dtype.kind == "c" for a in arrays) else np.float64
    return [a.astype(dtype) for a in arrays]


def _least(rows: Any, columns: Any, bound: int) -> Any:
    """Return the lesser of two sizes."""
    if not is_traced(rows) and not is_traced(columns):
        return min(rows, columns)
    return as_size(as_traced(_np.minimum(rows, columns), np.int64), bound)


def _greatest(rows: Any, columns: Any) -> Any:
    return _np.maximum(rows, columns) if is_traced(rows) or is_traced(columns) else max(rows, columns)


def _follow_bounds(array: Any, factor: int = 1) -> Any:
    """Return an array, and note that time follows its bounds: those of programs for any size are not generous then."""
    if isinstance(array, SizedArray):
        dims = (*array.padded.shape, factor)
        require_current().program.flattened.append(Shape.array(ElementType.F64, dims))
    return array


def _factor(array: Any) -> int:
    """Return how many times as long as a product of numbers each element takes where vectors are iterated."""
    sizes = [n for n in shape_of(array)[-2:] if not is_traced(n)]
    return -(-min(sizes) // _ITERATED) if sizes and array.ndim == 2 else _ITERATED


def _refuse_gradients(name: str) -> None:
    if require_current().program.gradients:
        raise_unsupported(f"be passed to np.linalg.{name} where gradients are computed", "use arrays of known size")


# -- systems of equations


@sized(np.linalg.solve)
def solve(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Solve linear systems: the padding of the matrix is an identity, that of the other side zeros."""
    a, b = _follow_bounds(_square(arguments["a"])), _array(arguments["b"])
    if b.ndim == 0:
        return func(_padded(a), b)
    is_vector = b.ndim == 1
    a = a.like(_with_identity(a)) if isinstance(a, SizedArray) else a
    b = b.like(_with_zeros(b)) if isinstance(b, SizedArray) else b
    name, core, shape = ("solve1", "(m,m),(m)->(m)", 1) if is_vector else ("solve", "(m,m),(m,n)->(m,n)", 2)
    message = (
        f"{name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {core} "
        "(size {1} is different from {0})"
    )
    a, b = _unify(a, -1, b, -shape, message, ValueError)
    a = _with_bound(a, -2, _padded(a).shape[-1], shape_of(a)[-1])
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
    a = _follow_bounds(_square(arguments["a"]))
    data = call(func, {**arguments, "a": _with_identity(a)})
    return _of_stack(a, data, *shape_of(a)[-2:])


@sized(np.linalg.det)
def det(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute determinants."""
    a = _follow_bounds(_square(arguments["a"]))
    return _of_stack(a, func(_with_identity(a)))


@sized(np.linalg.slogdet)
def slogdet(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return signs and logarithms of determinants."""
    a = _follow_bounds(_square(arguments["a"]))
    result = func(_with_identity(a))
    return result._make([_of_stack(a, x) for x in result])


@sized(np.linalg.matrix_power)
def matrix_power(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Raise matrices to an integer power."""
    a, exponent = _square(arguments["a"]), arguments["n"]
    if is_traced(exponent) or is_sized(exponent):
        raise_unsupported("be raised to a power that is traced", "use np.linalg.eig")
    n = index(exponent)
    if not isinstance(a, SizedArray):
        return func(a, n)
    if n == 0:
        return a.like(_np.broadcast_to(np.eye(a.padded.shape[-1], dtype=a.dtype), a.padded.shape).copy())
    if n < 0:
        a, n = _np.linalg.inv(a), -n
    if n == 3:
        return _np.matmul(_np.matmul(a, a), a)
    power: Any = None
    while True:
        if n & 1:
            power = a if power is None else _np.matmul(power, a)
        n >>= 1
        if not n:
            return power
        a = _np.matmul(a, a)


@sized(np.linalg.lstsq)
def lstsq(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Solve by least squares; residuals are missing, as NumPy's, where columns depend on each other."""
    a, b = _array(arguments["a"]), _array(arguments["b"])
    for rank in (a.ndim, max(b.ndim, 2) if b.ndim else 0):
        if rank != 2:
            raise _LinAlgError(f"{rank}-dimensional array given. Array must be two-dimensional")
    dtype = _result_dtype(a, b)
    a, b = _double(a, b)
    a, b = _unify(a, 0, b, 0, "Incompatible dimensions", _LinAlgError)
    rows, columns = shape_of(a)
    cutoff = _cutoff(arguments.get("rcond"), rows, columns)
    x, y = _with_zeros(_follow_bounds(a, _factor(a))), _with_zeros(_follow_bounds(b))
    solution, _, rank, s = call(func, {"a": x, "b": y, "rcond": cutoff})
    count = _least(rows, columns, s.shape[0])
    values = _of_stack(a, s, count)
    if s.shape[0]:
        rank = _np.sum(_np.greater(values, cutoff * s[0])).astype(np.int32)
    residuals = _np.sum(_squares(y - _np.matmul(x, solution)), axis=0)
    residuals = residuals if b.ndim == 2 else _np.reshape(residuals, (1,))
    are_present: Any = _np.logical_and(_np.equal(rank, columns), _np.greater(rows, columns))
    number = as_size(as_traced(_np.where(are_present, shape_of(b)[1] if b.ndim == 2 else 1, 0)), residuals.shape[0])
    sizes = [columns, *shape_of(b)[1:]]
    return (
        wrapped(solution.astype(dtype), {d: n for d, n in enumerate(sizes) if is_traced(n)}),
        SizedArray(residuals.astype(_real(dtype)), {0: number}),
        rank,
        values.astype(_real(dtype)),
    )


def _cutoff(rcond: Any, rows: Any, columns: Any) -> Any:
    """Return LAPACK's relative cutoff of singular values; smaller ones count as zero."""
    if rcond is None:
        return _np.multiply(_greatest(rows, columns), _SPACING)
    cutoff = as_traced(rcond, np.float64)
    is_used: Any = _np.logical_and(_np.greater(cutoff, 0), _np.less(cutoff, 1))
    return _np.where(is_used, cutoff, _SPACING / 2)


def _squares(x: Any) -> Any:
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


@sized(np.linalg.pinv)
def pinv(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute pseudo-inverses: singular values of the padding are zero."""
    a = _matrices(arguments["a"])
    if _flag(arguments, "hermitian"):
        a = _square(a)
    rows, columns = shape_of(a)[-2:]
    if a.dtype.kind not in "fc":
        for n in (rows, columns):
            if is_traced(n):
                leave_if(_np.equal(n, 0), "np.linalg.pinv of an array of integers without elements has integers")
    options = {**arguments, "a": _with_zeros(_follow_bounds(a, _factor(a)))}
    if arguments.get("rcond") is None and arguments.get("rtol", np._NoValue) is None:
        options["rtol"] = _np.multiply(_greatest(rows, columns), np.finfo(a.dtype).eps)
    return _of_stack(a, call(func, options), columns, rows)


def _flag(arguments: dict[str, Any], name: str, default: bool = False) -> bool:
    """Return an argument that is true or false."""
    return bool(arguments.get(name, default))


# -- eigenvalues


class _Hermitian(NamedTuple):
    """Padded matrices, with the stack that they are from, and its dtype."""

    stack: Any
    padded: Any
    dtype: Dtype


def _hermitian(arguments: dict[str, Any]) -> _Hermitian:
    """Return matrices whose padding has eigenvalues greater than theirs, all different."""
    stack = _follow_bounds(_square(arguments["a"]), _ITERATED)
    dtype = _result_dtype(stack)
    (a,) = _double(stack)
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
    return result._make([_of_stack(a, values.astype(_real(dtype)), n), _of_stack(a, vectors.astype(dtype), n, n)])


@sized(np.linalg.eigvalsh)
def eigvalsh(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute eigenvalues of Hermitian matrices."""
    a, data, dtype = _hermitian(arguments)
    return _of_stack(a, call(func, {**arguments, "a": data}).astype(_real(dtype)), shape_of(a)[-1])


_LARGEST: Final = 75  # size of matrices up to which LAPACK finds eigenvalues in an order that padding does not change


@sized(np.linalg.eig, np.linalg.eigvals)
def eig(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute eigenvalues: LAPACK isolates those of the padding, an identity, and leaves them last."""
    _refuse_gradients(func.__name__)
    a = _follow_bounds(_square(arguments["a"]), _ITERATED)
    n = shape_of(a)[-1]
    if is_traced(n) and a.padded.shape[-1] > _LARGEST:
        raise_unsupported(
            f"be passed to np.linalg.{func.__name__} if it may be large", "use np.linalg.eigh if possible"
        )
    result = func(_with_identity(a))
    if isinstance(result, TracedArray):
        return _of_stack(a, result, n)
    return result._make([_of_stack(a, x, *[n] * k) for k, x in enumerate(result, 1)])


# -- singular values


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
    a = _matrices(arguments["a"])
    rows, columns = shape_of(a)[-2:]
    if not _flag(arguments, "compute_uv", default=True):
        return _singular_values(a, _flag(arguments, "hermitian"))
    if not is_traced(rows) and not is_traced(columns):
        result = call(func, {**arguments, "a": _with_zeros(a)})
        return result._make([_of_stack(a, x, *[None] * k) for x, k in zip(result, (2, 1, 2), strict=True)])
    if _flag(arguments, "hermitian"):
        raise_unsupported("be passed to np.linalg.svd with hermitian=True", "use np.linalg.eigh")
    _refuse_gradients("svd")
    dtype = _result_dtype(a)
    (work,) = _double(_follow_bounds(a, _factor(a)))
    is_full = _flag(arguments, "full_matrices", default=True)
    bounds = work.padded.shape[-2:]
    shapes = _shapes(rows, columns, bounds, dtype.kind == "c")
    least = min(bounds)
    sides = bounds if is_full else (least, least)
    branch = as_traced(len(shapes) - 1)
    for k in reversed(range(len(shapes) - 1)):
        branch = _np.where(shapes[k].holds, k, branch)
    functions = [partial(_decompose, s, bounds, sides, is_full) for s in shapes]
    u, s, vh = switch(branch, functions, _with_zeros(work))
    require_current().program.flattened.extend([value_of(u).shape, value_of(vh).shape])
    count = _least(rows, columns, least)
    values = _of_stack(a, s, count)
    _leave_if_mixed(shapes, branch, values, rows, columns, is_full)
    left, right = (rows, columns) if is_full else (count, count)
    result = np.linalg._linalg.SVDResult
    return result(
        _of_stack(a, u.astype(dtype), rows, left), values.astype(_real(dtype)),
        _of_stack(a, vh.astype(dtype), right, columns),
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
    cutoff = _np.max(values, axis=-1, keepdims=True, initial=0) * _greatest(rows, columns) * _SPACING
    may_mix: Any = _np.any(_np.logical_not(_np.greater(values, cutoff)))
    if is_full:
        may_mix = _np.logical_or(may_mix, _np.not_equal(rows, columns))
    text = "np.linalg.svd of matrices of run-time size with singular values of zero, or with more vectors than those"
    leave_if(_np.logical_and(is_mixed, may_mix), text)


def _singular_values(a: Any, hermitian: bool = False) -> Any:
    a = _follow_bounds(_square(a) if hermitian else a, _factor(a))
    s = _np.linalg.svd(_with_zeros(a), compute_uv=False, hermitian=hermitian)
    rows, columns = shape_of(a)[-2:]
    return _of_stack(a, s, _least(rows, columns, s.shape[-1]))


@sized(np.linalg.svdvals)
def svdvals(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute singular values; those of the padding are zeros, and come last."""
    return _singular_values(_matrices(arguments["x"]))


@sized(np.linalg.matrix_rank)
def matrix_rank(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Count the singular values that are not nearly zero."""
    a, tol, rtol = _array(arguments["A"]), arguments.get("tol"), arguments.get("rtol")
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if a.ndim < 2:
        return func(_with_zeros(a))
    values = _np.linalg.svd(a, compute_uv=False, hermitian=_flag(arguments, "hermitian"))
    if tol is None:
        relative = _greatest(*shape_of(a)[-2:]) * np.finfo(values.dtype).eps if rtol is None else _last(rtol)
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
    x, order = _matrices(arguments["x"]), arguments.get("p")
    message = "cond is not defined on empty arrays"
    if 0 in _padded(x).shape[-2:]:
        raise _LinAlgError(message)
    if isinstance(x, SizedArray):
        fail_if_empty(x, message, (x.ndim - 2, x.ndim - 1), _LinAlgError)
    if order in (None, 2, -2):
        values = _np.linalg.svd(x, compute_uv=False)
        ends = values[..., 0], values[..., -1]
        result = _np.true_divide(*ends[::-1]) if order == -2 else _np.true_divide(*ends)
    else:
        x = _follow_bounds(_square(x))
        (work,) = _double(x)
        data = TracedArray(inverse_or_nan(value_of(_with_identity(work))))
        inverse = _of_stack(x, data, *shape_of(x)[-2:])
        result = _np.linalg.matrix_norm(work, ord=order) * _np.linalg.matrix_norm(inverse, ord=order)
        result = result.astype(_real(_result_dtype(x)))
    is_undefined = _np.logical_and(_np.isnan(result), _np.logical_not(_np.any(_np.isnan(x), axis=(-2, -1))))
    return _np.where(is_undefined, result.dtype.type(np.inf), result)[()]


# -- orthonormal factors


@sized(np.linalg.qr)
def qr(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute QR factors: zeros in the padding have no reflectors, and change none."""
    a, mode = _follow_bounds(_matrices(arguments["a"])), arguments.get("mode", "reduced")
    result = call(func, {**arguments, "a": _with_zeros(a)})
    rows, columns = shape_of(a)[-2:]
    least = _least(rows, columns, min(_padded(a).shape[-2:]))
    if mode == "r":
        return _of_stack(a, result, least, columns)
    first, second = result
    if mode == "raw":
        return _of_stack(a, first, columns, rows), _of_stack(a, second, least)
    width = rows if mode == "complete" else least
    return result._make([_of_stack(a, first, rows, width), _of_stack(a, second, width, columns)])


# -- norms


@sized(np.linalg.norm)
def norm(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute norms of vectors, or of matrices, along dimensions."""
    x, order, axis = arguments["x"], arguments.get("ord"), arguments.get("axis")
    keepdims = _flag(arguments, "keepdims")
    _refuse_sized_order(order)
    array = x if x.dtype.kind in "fc" else x.astype(np.float64)
    if axis is None:
        axes = tuple(range(array.ndim))
        if order is None or (order in ("f", "fro") and array.ndim == 2):
            return _vector_norms(array, None, axes, keepdims)
    else:
        axes = axis if isinstance(axis, tuple) else (_as_axis(axis),)
    if len(axes) == 1:
        return _vector_norms(array, order, axes, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    row, column = (int(np.lib.array_utils.normalize_axis_index(d, array.ndim)) for d in axes)
    if row == column:
        raise ValueError("Duplicate axes given.")
    result = _matrix_norms(array, order, row, column)
    return _np.expand_dims(result, tuple(sorted((row, column)))) if keepdims else result


def _as_axis(axis: Any) -> int:
    try:
        return int(axis)
    except TypeError as error:
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from error


def _refuse_sized_order(order: Any) -> None:
    if is_sized(order) or is_traced(order):
        raise_unsupported("be passed to np.linalg.norm with an order that is traced", "use np.abs, **, and np.sum")


@sized(np.linalg.vector_norm)
def vector_norm(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute norms of vectors along dimensions, by default all."""
    x, order, axis = arguments["x"], arguments.get("ord", 2), arguments.get("axis")
    _refuse_sized_order(order)
    array = x if x.dtype.kind in "fc" else x.astype(np.float64)
    axes = range(array.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
    return _vector_norms(array, order, tuple(map(int, axes)), _flag(arguments, "keepdims"))


@sized(np.linalg.matrix_norm)
def matrix_norm(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute norms of matrices along the last two dimensions."""
    order, keepdims = arguments.get("ord", "fro"), arguments.get("keepdims", False)
    return norm(func, {"x": arguments["x"], "ord": order, "axis": (-2, -1), "keepdims": keepdims})


def _vector_norms(x: Any, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if order is None or order == 2:
        return _np.sqrt(_np.sum(_squares(x), **options))
    if order == 0:
        return _np.sum(_np.not_equal(x, 0).astype(_real(x.dtype)), **options)
    magnitudes = _np.abs(x)
    if order == np.inf:
        return _np.max(magnitudes, initial=0, **options)
    if order == -np.inf:
        return _np.min(magnitudes, **options)
    if order == 1:
        return _np.sum(magnitudes, **options)
    powers = _np.sum(_np.power(magnitudes, order), **options)
    return _np.power(powers, np.reciprocal(order, dtype=powers.dtype))


_OF_VALUES: Final[dict[Any, Callable[..., Any]]] = {
    2: partial(np.max, initial=0), -2: np.min, "nuc": np.sum,
}  # fmt: skip
_OF_SUMS: Final[dict[Any, Callable[..., Any]]] = {
    1: partial(np.max, initial=0), np.inf: partial(np.max, initial=0), -1: np.min, -np.inf: np.min,
}  # fmt: skip


def _matrix_norms(x: Any, order: Any, row: int, column: int) -> Any:
    if order in (None, "fro", "f"):
        return _np.sqrt(_np.sum(_squares(x), axis=(row, column)))
    if order in _OF_VALUES:
        return _OF_VALUES[order](_singular_values(_np.moveaxis(x, (row, column), (-2, -1))), axis=-1)
    if order not in _OF_SUMS:
        raise ValueError("Invalid norm order for matrices.")
    first, second = (row, column) if order in (1, -1) else (column, row)
    return _OF_SUMS[order](_np.sum(_np.abs(x), axis=first), axis=second - (second > first))


# -- polynomials


@sized(np.polyfit)
def polyfit(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Fit a polynomial to a run-time number of points by least squares."""
    x, y, rcond = _as_points(arguments["x"]), _as_points(arguments["y"]), arguments.get("rcond")
    order = _order(arguments["deg"])
    _check_points(x, y)
    x, y = _unify(x, 0, y, 0, "expected x and y to have same length", TypeError)
    lhs, rhs = _weighted(_powers(x, order), y, arguments.get("w"))
    scale = _np.sqrt(_np.sum(lhs * lhs, axis=0))
    lhs = lhs / scale
    count = shape_of(x)[0]
    limit = count * np.finfo(x.dtype).eps if rcond is None else rcond
    coefficients, residuals, rank, values = _np.linalg.lstsq(lhs, rhs, limit)
    coefficients = _np.transpose(_np.transpose(coefficients) / scale)
    if _flag(arguments, "full"):
        return coefficients, residuals, rank, values, limit
    cov = arguments.get("cov", False)
    if not cov:
        return coefficients
    covariance = _np.linalg.inv(_np.dot(_np.transpose(lhs), lhs)) / _np.outer(scale, scale)
    factor: Any = 1
    if cov != "unscaled":
        message = "the number of data points must exceed order to scale the covariance matrix"
        fail_unless(_np.greater(count, order), as_traced(count), as_traced(order), message, ValueError)
        factor = residuals / (count - order)
    return coefficients, (covariance if y.ndim == 1 else covariance[:, :, None]) * factor


def _order(degree: Any) -> int:
    if is_traced(degree) or is_sized(degree):
        raise_unsupported("be fitted with a degree that is traced", "give the degree as a number")
    if degree < 0:
        raise ValueError("expected deg >= 0")
    return int(degree) + 1


def _check_points(x: Any, y: Any) -> None:
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not _padded(x).shape[0]:
        raise TypeError("expected non-empty vector for x")
    if isinstance(x, SizedArray):
        fail_if_empty(x, "expected non-empty vector for x", kind=TypeError)
    if not 1 <= y.ndim <= 2:
        raise TypeError("expected 1D or 2D array for y")


def _weighted(lhs: Any, rhs: Any, weights: Any) -> tuple[Any, Any]:
    """Return both sides of equations multiplied by weights, if there are any."""
    if weights is None:
        return lhs, rhs
    w = _as_points(weights)
    if w.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    w, _ = _unify(w, 0, rhs, 0, "expected w and y to have the same length", TypeError)
    return lhs * w[:, None], (rhs * (w[:, None] if rhs.ndim == 2 else w)).astype(rhs.dtype)


def _as_points(value: Any) -> Any:
    return _np.add(value if isinstance(value, SizedArray) else as_strong(value), 0.0)


def _powers(x: Any, count: int) -> Any:
    """Return the powers of numbers, from the greatest one to the first, as columns."""
    x = x.astype(np.promote_types(x.dtype, np.int64))
    columns = [_np.ones_like(x), *[x] * min(count - 1, 1)]
    for _ in range(count - 2):
        columns.append(columns[-1] * x)
    return _np.stack(columns[::-1], axis=1)
