"""Calls of LAPACK: dtypes, checks, custom calls, masks, and errors at run time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import DTypeError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, iota_along, reduced, scalar, select, zeros_like

LinAlgError = np.linalg.LinAlgError
_S32 = ElementType.S32
_LETTERS = {ElementType.F64: "d", ElementType.C128: "z"}
_SINGLE = {"f": np.dtype(np.float32), "c": np.dtype(np.complex64)}
_DOUBLE = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}


def matrix_stacks(*values: Any) -> list[TracedArray]:
    """Convert arguments to stacks of matrices.

    Raises
    ------
    LinAlgError
        The rank of an argument is less than two.
    """
    arrays = [as_traced(v) for v in values]
    for a in arrays:
        if a.ndim < 2:
            raise LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    return arrays


def square_matrices(*values: Any) -> list[TracedArray]:
    """Convert arguments to stacks of square matrices.

    Raises
    ------
    LinAlgError
        The matrices are not square.
    """
    arrays = matrix_stacks(*values)
    for a in arrays:
        if a.shape[-1] != a.shape[-2]:
            raise LinAlgError("Last 2 dimensions of the array must be square")
    return arrays


def has_empty_matrices(array: TracedArray) -> bool:
    """Return True if the matrices are empty, not the stack."""
    return 0 in array.shape[-2:]


def to_double(*arrays: TracedArray) -> tuple[list[XlaOp], Dtype]:
    """Convert values to double precision, in which everything is computed; return them and the dtype of results.

    Raises
    ------
    DTypeError
        LAPACK does not support half precision.
    """
    for a in arrays:
        if a.dtype == np.float16:
            raise DTypeError(f"array type {a.dtype.name} is unsupported in linalg")
    letter = "c" if any(a.dtype.kind == "c" for a in arrays) else "f"
    narrow = all(a.dtype in _SINGLE.values() for a in arrays)
    return [convert(value_of(a), _DOUBLE[letter]) for a in arrays], (_SINGLE if narrow else _DOUBLE)[letter]


def convert_result(op: XlaOp, dtype: Dtype) -> Any:
    """Convert a value computed in double precision to the dtype of results; a real one stays real."""
    if dtype.kind == "c" and not op.shape.dtype.is_complex:
        dtype = np.dtype(f"f{dtype.itemsize // 2}")
    return TracedArray(convert(op, dtype))


def real_type(op: XlaOp) -> ElementType:
    """Return the real element type of a value."""
    return ElementType.F64 if op.shape.dtype.is_complex else op.shape.dtype


def shape_like(op: XlaOp, sizes: Sequence[int], dtype: ElementType | None = None) -> Shape:
    """Return a shape in a value's dtype or another one."""
    return Shape.array(dtype or op.shape.dtype, tuple(sizes))


def call_lapack(routine: str, operands: Sequence[XlaOp], results: Sequence[Shape], **options: str) -> list[XlaOp]:
    """Call a LAPACK routine for the dtype of the first operand.

    Parameters
    ----------
    routine : str
        Name of the routine without the type's letter.
    operands, results : sequences
        Stacks of operands, and shapes of the results.
    **options
        Character options, by the names of jaxlib's custom calls.
    """
    x = operands[0]
    name = f"lapack_{_LETTERS[x.shape.dtype]}{routine}_ffi"
    config = "{" + ", ".join(f"{k} = {ord(v)} : ui8" for k, v in options.items()) + "}" if options else ""
    shape = results[0] if len(results) == 1 else Shape.tuple(results)
    output = xla.custom_call(x.builder, name, operands, shape, config, api_version="API_VERSION_TYPED_FFI")
    return [output] if len(results) == 1 else [xla.get_tuple_element(output, k) for k in range(len(results))]


def fail_where(failed: XlaOp, message: str) -> None:
    """Make runs raise `LinAlgError` if any element of a predicate is true."""
    trace = require_current()
    if failed.shape.size:
        any_failed = reduced(failed, "or", scalar(failed, False), range(failed.shape.rank))
        trace.fail_if(any_failed, trace.constant(0, np.dtype(np.int64)), lambda _: LinAlgError(message))


def nan_where_failed(valid: XlaOp, op: XlaOp) -> XlaOp:
    """Replace failed problems of a stack by nan."""
    ones = [1] * (op.shape.rank - valid.shape.rank)
    mask = broadcast_to(xla.reshape(valid, (*valid.shape.dims, *ones)), op.shape.dims)
    return select(mask, op, np.nan)


def nonzero(op: XlaOp) -> XlaOp:
    """Return a mask of nonzero numbers."""
    return xla.ne(op, zeros_like(op))


def triangle(op: XlaOp, lower: bool, strict: bool = False) -> XlaOp:
    """Return one triangle of matrices, with or without the diagonal; zeros elsewhere."""
    row, column = _row_and_column_indices(op, op.shape.dims)
    a, b = (column, row) if lower else (row, column)
    return select(xla.lt(a, b) if strict else xla.le(a, b), op, 0)


def identity(reference: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Return identity matrices in the dtype of a value."""
    return xla.convert(xla.eq(*_row_and_column_indices(reference, sizes)), reference.shape.dtype)


def _row_and_column_indices(reference: XlaOp, sizes: Sequence[int]) -> tuple[XlaOp, XlaOp]:
    rank = len(sizes)
    return iota_along(reference.builder, _S32, sizes, rank - 2), iota_along(reference.builder, _S32, sizes, rank - 1)


def transpose(op: XlaOp) -> XlaOp:
    """Transpose matrices."""
    rank = op.shape.rank
    return xla.transpose(op, [*range(rank - 2), rank - 1, rank - 2])


def conjugate(op: XlaOp) -> XlaOp:
    """Compute the complex conjugate; real values are returned as they are."""
    return xla.complex_(xla.real(op), xla.negate(xla.imag(op))) if op.shape.dtype.is_complex else op


def adjoint(op: XlaOp) -> XlaOp:
    """Transpose and conjugate matrices."""
    return conjugate(transpose(op))


def matmul(x: XlaOp, *others: XlaOp) -> XlaOp:
    """Multiply equally long stacks of matrices from left to right."""
    for y in others:
        x = xla.matmul(x, y)
    return x


def leading_block(op: XlaOp, rows: int, columns: int) -> XlaOp:
    """Slice the first rows and columns of matrices."""
    return xla.slice_(op, [0] * op.shape.rank, [*op.shape.dims[:-2], rows, columns])


def diagonal(op: XlaOp) -> XlaOp:
    """Return the diagonals of square matrices, a strided slice."""
    *batch, n, _ = op.shape.dims
    return xla.slice_in_dim(xla.reshape(op, (*batch, n * n)), 0, n * n, n + 1, len(batch))


def broadcast_columns(vectors: XlaOp, matrices: XlaOp) -> XlaOp:
    """Broadcast one number for each column along it."""
    rank = matrices.shape.rank
    return xla.broadcast_in_dim(vectors, matrices.shape.dims, [*range(rank - 2), rank - 1])


def broadcast_rows(vectors: XlaOp, matrices: XlaOp) -> XlaOp:
    """Broadcast one number for each row along it."""
    rank = matrices.shape.rank
    return xla.broadcast_in_dim(vectors, matrices.shape.dims, range(rank - 1))


def to_dtype_of(op: XlaOp, matrix: XlaOp) -> XlaOp:
    """Convert real numbers to the dtype of a matrix."""
    return xla.convert(op, matrix.shape.dtype)


def factor_lu(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return L and U in one matrix, and the row permutation."""
    order = shape_like(x, x.shape.dims[:-1], _S32)
    output = xla.custom_call(x.builder, "LuDecomposition", [x], Shape.tuple([x.shape, order, order]))
    return xla.get_tuple_element(output, 0), xla.get_tuple_element(output, 2)


def is_odd(order: XlaOp) -> XlaOp:
    """Return True for odd permutations, which change the sign of a determinant."""
    *batch, n = order.shape.dims
    sizes, rank = (*batch, n, n), order.shape.rank
    later = xla.lt(*_row_and_column_indices(order, sizes))
    smaller = xla.gt(*(xla.broadcast_in_dim(order, sizes, [*range(rank - 1), d]) for d in (rank - 1, rank)))
    count = reduced(xla.convert(xla.and_(later, smaller), _S32), "add", scalar(order, 0), [rank - 1, rank])
    return nonzero(xla.and_(count, scalar(count, 1)))


def solve_factored(factors: XlaOp, order: XlaOp, rhs: XlaOp) -> XlaOp:
    """Solve linear systems for the columns of `rhs` by the factors of `factor_lu`."""
    lower = xla.triangular_solve(factors, permute_rows(rhs, order), left_side=True, lower=True, unit_diagonal=True)
    return xla.triangular_solve(factors, lower, left_side=True, lower=False)


def solve_factored_adjoint(factors: XlaOp, order: XlaOp, rhs: XlaOp) -> XlaOp:
    """Solve linear systems of the adjoints of factored matrices."""
    upper = xla.triangular_solve(factors, rhs, left_side=True, lower=False, transpose_a="ADJOINT")
    lower = xla.triangular_solve(
        factors, upper, left_side=True, lower=True, unit_diagonal=True, transpose_a="ADJOINT"
    )  # fmt: skip
    return permute_rows(lower, _invert_permutation(order))


def permute_rows(x: XlaOp, order: XlaOp) -> XlaOp:
    """Permute the rows of matrices by one gather from the rows of the whole stack."""
    *batch, rows, columns = x.shape.dims
    count = prod(batch)
    starts = xla.multiply(iota_along(x.builder, _S32, (count, rows), 0), scalar(order, rows))
    row_indices = xla.reshape(xla.add(xla.reshape(order, (count, rows)), starts), (count * rows, 1))
    permuted = xla.gather(
        xla.reshape(x, (count * rows, columns)), row_indices, offset_dims=(1,), collapsed_slice_dims=(0,),
        start_index_map=(0,), index_vector_dim=1, slice_sizes=(1, columns),
    )  # fmt: skip
    return xla.reshape(permuted, x.shape.dims)


def _invert_permutation(order: XlaOp) -> XlaOp:
    """Invert permutations by sorting."""
    last = order.shape.rank - 1
    indices = iota_along(order.builder, _S32, order.shape.dims, last)
    return xla.get_tuple_element(xla.sort([order, indices], dimension=last), 1)
