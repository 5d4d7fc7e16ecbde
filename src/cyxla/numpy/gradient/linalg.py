"""Derivatives of triangular solves, Cholesky factors and Fourier transforms."""

from __future__ import annotations

from math import prod

from cyxla.numpy.gradient.elementwise import as_complex, conjugate, number
from cyxla.numpy.gradient.table import Cotangents, Node, filled, rule, zeros
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def transposed(x: XlaOp) -> XlaOp:
    """Transpose the last two dimensions."""
    n = x.shape.rank
    return xla.transpose(x, [*range(n - 2), n - 1, n - 2])


def matmul(a: XlaOp, b: XlaOp) -> XlaOp:
    """Multiply stacks of matrices."""
    n = a.shape.rank
    batch = tuple(range(n - 2))
    return xla.dot_general(
        a, b, lhs_contracting_dims=(n - 1,), rhs_contracting_dims=(n - 2,), lhs_batch_dims=batch, rhs_batch_dims=batch
    )


def triangle(x: XlaOp, lower: bool, strict: bool = False) -> XlaOp:
    """Return a triangle of matrices, with zeros elsewhere."""
    rows, columns = (_indices(x.shape, d) for d in (-2, -1))
    outer, inner = (rows, columns) if lower else (columns, rows)
    return xla.select(xla.gt(outer, inner) if strict else xla.ge(outer, inner), x, number(x, 0))


def _indices(shape: Shape, dimension: int) -> XlaOp:
    return xla.iota(require_current().builder, shape.with_dtype(ElementType.S32), shape.rank + dimension)


@rule("triangular-solve")
def triangular_solve(node: Node) -> Cotangents:
    """Differentiate by a solve with the transposed matrix."""
    a, _ = node.operands
    left, transpose_a = node.attrs["left_side"], node.attrs["transpose_a"]
    lower, unit = node.attrs["lower"], node.attrs["unit_diagonal"]
    g, transposition = node.g, "NO_TRANSPOSE" if transpose_a != "NO_TRANSPOSE" else "TRANSPOSE"
    given = conjugate(g) if transpose_a == "ADJOINT" else g
    back = xla.triangular_solve(a, given, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=transposition)
    back = conjugate(back) if transpose_a == "ADJOINT" else back
    if not node.needs[0]:
        return [None, back]
    slope = -matmul(back, transposed(node.out)) if left else -matmul(transposed(node.out), back)
    slope = slope if transpose_a == "NO_TRANSPOSE" else transposed(slope)
    slope = conjugate(slope) if transpose_a == "ADJOINT" else slope
    return [triangle(slope, lower, unit), back]


@rule("cholesky")
def cholesky(node: Node) -> Cotangents:
    """Differentiate with respect to the triangle that is read."""
    lower = node.attrs["lower"]
    factor, g = (node.out, node.g) if lower else (transposed(conjugate(node.out)), transposed(conjugate(node.g)))
    inner = triangle(matmul(transposed(factor), triangle(g, True)), True)
    half = triangle(inner, True, strict=True) + number(inner, 0.5) * (inner - triangle(inner, True, strict=True))
    right = xla.triangular_solve(conjugate(factor), half, left_side=False, lower=True)
    left_solve = xla.triangular_solve(factor, right, left_side=True, lower=True, transpose_a="TRANSPOSE")
    hermitian = _hermitian(left_solve)
    read = triangle(hermitian, True, strict=True)
    diagonal = triangle(hermitian, True) - read
    found = read + read + diagonal
    return [found if lower else transposed(conjugate(found))]


def _hermitian(x: XlaOp) -> XlaOp:
    return number(x, 0.5) * (x + transposed(conjugate(x)))


@rule("fft")
def fft(node: Node) -> Cotangents:
    """Differentiate by another transform: DFT matrices are symmetric, those of real transforms are parts of them."""
    if not node.g.shape.size or not node.shapes[0].size:
        return [zeros(node.shapes[0])]
    return [_BY_TYPE[node.attrs["fft_type"]](node, tuple(node.attrs["fft_length"]))]


def _complex_to_complex(node: Node, lengths: tuple[int, ...]) -> XlaOp:
    return xla.fft(node.g, node.attrs["fft_type"], lengths)


def _from_real(node: Node, lengths: tuple[int, ...]) -> XlaOp:
    """Pad the half spectrum with zeros, transform it and take the real part."""
    missing = lengths[-1] - node.g.shape.dims[-1]
    g = xla.pad_in_dim(node.g, 0, node.g.shape.rank - 1, 0, missing) if missing else node.g
    return xla.real(xla.fft(g, "FFT", lengths))


def _to_real(node: Node, lengths: tuple[int, ...]) -> XlaOp:
    """Transform to a half spectrum and double the frequencies that stand for two.

    Those are all except the first and, for an even length, the last.
    """
    back = conjugate(xla.fft(node.g, "RFFT", lengths))
    positions = xla.iota(require_current().builder, back.shape.with_dtype(ElementType.S32), back.shape.rank - 1)
    single = xla.eq(positions, number(positions, 0))
    if lengths[-1] % 2 == 0:
        single = xla.or_(single, xla.eq(positions, number(positions, lengths[-1] // 2)))
    real = Shape.array(node.g.shape.dtype, back.shape.dims)
    scale = prod(lengths)
    weights = xla.select(single, filled(real, 1 / scale), filled(real, 2 / scale))
    return back * as_complex(weights)


_BY_TYPE = {"FFT": _complex_to_complex, "IFFT": _complex_to_complex, "RFFT": _from_real, "IRFFT": _to_real}
