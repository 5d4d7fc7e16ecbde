"""Linear algebra on batches of matrices: decompositions by custom calls of LAPACK, transposes, checks of operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.errors import ShapeError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    full_like,
    iota_along,
    is_complex,
    rank_of,
    scalar,
    select,
    sizes_of,
    widened,
    zeros_like,
)

_S32 = ElementType.S32
_LAPACK_LETTERS = {ElementType.F32: "s", ElementType.F64: "d", ElementType.C64: "c", ElementType.C128: "z"}


def check_matrices(x: XlaOp, name: str = "input") -> None:
    """Raise unless an array holds matrices."""
    if rank_of(x) < 2:
        raise ShapeError(f"{name} must hold matrices; its shape is {list(sizes_of(x))}")


def check_square(x: XlaOp, name: str = "input") -> None:
    """Raise unless an array holds square matrices."""
    check_matrices(x, name)
    if sizes_of(x)[-1] != sizes_of(x)[-2]:
        raise ShapeError(f"{name} must hold square matrices; its shape is {list(sizes_of(x))}")


def is_empty(x: XlaOp) -> bool:
    """Return whether an array has no elements."""
    return 0 in sizes_of(x)


def as_type_of(x: XlaOp, like: XlaOp) -> XlaOp:
    """Convert to the element type of another array."""
    return x if x.shape.dtype is like.shape.dtype else xla.convert(x, like.shape.dtype)


def identity_matrices(like: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Return identity matrices."""
    rank = len(sizes)
    row, column = (iota_along(like.builder, _S32, sizes, rank - k) for k in (2, 1))
    return xla.convert(xla.eq(row, column), like.shape.dtype)


def transpose_matrices(x: XlaOp, adjoint: bool = False) -> XlaOp:
    """Transpose matrices, with conjugation if `adjoint` is set."""
    rank = rank_of(x)
    result = xla.transpose(x, [*range(rank - 2), rank - 1, rank - 2])
    return xla.complex_(xla.real(result), -xla.imag(result)) if adjoint and is_complex(x) else result


def call_lapack(
    x: XlaOp, routine: str, operands: Sequence[XlaOp], results: Sequence[Shape], options: str = ""
) -> list[XlaOp]:
    """Emit a custom call named by LAPACK routine and type, and return its results."""
    shape = results[0] if len(results) == 1 else Shape.tuple(results)
    name = f"lapack_{_LAPACK_LETTERS[x.shape.dtype]}{routine}_ffi"
    result = xla.custom_call(x.builder, name, operands, shape, options, api_version="API_VERSION_TYPED_FFI")
    return [result] if len(results) == 1 else [xla.get_tuple_element(result, i) for i in range(len(results))]


def eigh(x: XlaOp, *, compute_v: bool) -> list[XlaOp]:
    """Call syevd or heevd on the lower triangle; NaN without convergence."""
    check_square(x)
    batch, size = sizes_of(x)[:-2], sizes_of(x)[-1]
    nothing = xla.broadcast(scalar(x, 0), (0,))
    if is_empty(x):
        return [xla.broadcast(scalar(x, 0), (*batch, size)), x if compute_v else nothing]
    wide = widened(x)
    result_shapes = [wide.shape, Shape.array(_real_type(wide), (*batch, size)), Shape.array(_S32, batch)]
    options = f"{{mode = {ord('V' if compute_v else 'N')} : ui8, uplo = {ord('L')} : ui8}}"
    vectors, values, info = call_lapack(wide, "heevd" if is_complex(x) else "syevd", [wide], result_shapes, options)
    good = xla.eq(info, zeros_like(info))
    values = as_type_of(nan_unless(good, values, 1), x)
    return [values, as_type_of(nan_unless(good, vectors, 2), x) if compute_v else nothing]


def svd(x: XlaOp, *, compute_uv: bool, full_matrices: bool) -> list[XlaOp]:
    """Call gesdd; NaN without convergence."""
    check_matrices(x)
    *batch, rows, columns = sizes_of(x)
    least = min(rows, columns)
    nothing = xla.broadcast(scalar(x, 0), (0,))
    widths = [n if full_matrices else least for n in (rows, columns)]
    if is_empty(x):
        sides = [identity_matrices(x, (*batch, n, w)) for n, w in zip((rows, columns), widths, strict=True)]
        return [xla.broadcast(scalar(x, 0), (*batch, least)), *(sides if compute_uv else [nothing] * 2)]
    wide = widened(x)
    mode = "N" if not compute_uv else "A" if full_matrices else "S"
    result_shapes = [
        wide.shape, Shape.array(wide.shape.dtype, (*batch, least)),
        Shape.array(wide.shape.dtype, (*batch, rows, widths[0])),
        Shape.array(wide.shape.dtype, (*batch, widths[1], columns)), Shape.array(_S32, batch),
    ]  # fmt: skip
    _, values, u, vt, info = call_lapack(wide, "gesdd", [wide], result_shapes, f"{{mode = {ord(mode)} : ui8}}")
    good = xla.eq(info, zeros_like(info))
    values = as_type_of(nan_unless(good, values, 1), x)
    return (
        [values, *(as_type_of(nan_unless(good, v, 2), x) for v in (u, transpose_matrices(vt)))]
        if compute_uv
        else [values, nothing, nothing]
    )


def _real_type(x: XlaOp) -> ElementType:
    result = x.shape.dtype.real_part if is_complex(x) else x.shape.dtype
    assert result is not None
    return result


def nan_unless(good: XlaOp, x: XlaOp, over: int) -> XlaOp:
    """Set batch entries without a solution to NaN; `over` is the rank of one entry."""
    sizes = sizes_of(x)
    repeated = xla.broadcast_in_dim(good, sizes, range(len(sizes) - over))
    return select(repeated, x, full_like(x, np.nan))
