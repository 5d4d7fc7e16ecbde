"""Derivatives of triangular solves, Cholesky factors and Fourier transforms."""

from __future__ import annotations

from math import prod

from cyxla.numpy.gradient.elementwise import as_complex, conjugate, full_like
from cyxla.numpy.gradient.table import Cotangents, Node, full_constant, rule, zeros
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def transpose(x: XlaOp) -> XlaOp:
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
    return xla.select(xla.gt(outer, inner) if strict else xla.ge(outer, inner), x, full_like(x, 0))


def _indices(shape: Shape, dimension: int) -> XlaOp:
    return xla.iota(require_current().builder, shape.with_dtype(ElementType.S32), shape.rank + dimension)


@rule("triangular-solve")
def triangular_solve(node: Node) -> Cotangents:
    """Differentiate by a solve with the transposed matrix."""
    a, _ = node.operands
    left, transpose_a = node.attrs["left_side"], node.attrs["transpose_a"]
    lower, unit = node.attrs["lower"], node.attrs["unit_diagonal"]
    g, transposition = node.g, "NO_TRANSPOSE" if transpose_a != "NO_TRANSPOSE" else "TRANSPOSE"
    cotangent = conjugate(g) if transpose_a == "ADJOINT" else g
    rhs_cotangent = xla.triangular_solve(
        a, cotangent, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=transposition
    )
    rhs_cotangent = conjugate(rhs_cotangent) if transpose_a == "ADJOINT" else rhs_cotangent
    if not node.needs[0]:
        return [None, rhs_cotangent]
    matrix_cotangent = (
        -matmul(rhs_cotangent, transpose(node.out)) if left else -matmul(transpose(node.out), rhs_cotangent)
    )
    matrix_cotangent = matrix_cotangent if transpose_a == "NO_TRANSPOSE" else transpose(matrix_cotangent)
    matrix_cotangent = conjugate(matrix_cotangent) if transpose_a == "ADJOINT" else matrix_cotangent
    return [triangle(matrix_cotangent, lower, unit), rhs_cotangent]


@rule("cholesky")
def cholesky(node: Node) -> Cotangents:
    """Differentiate with respect to the triangle that is read."""
    lower = node.attrs["lower"]
    factor, g = (node.out, node.g) if lower else (transpose(conjugate(node.out)), transpose(conjugate(node.g)))
    inner = triangle(matmul(transpose(factor), triangle(g, True)), True)
    half = triangle(inner, True, strict=True) + full_like(inner, 0.5) * (inner - triangle(inner, True, strict=True))
    right = xla.triangular_solve(conjugate(factor), half, left_side=False, lower=True)
    left_solve = xla.triangular_solve(factor, right, left_side=True, lower=True, transpose_a="TRANSPOSE")
    hermitian = _hermitian_part(left_solve)
    strict = triangle(hermitian, True, strict=True)
    diagonal = triangle(hermitian, True) - strict
    cotangent = strict + strict + diagonal
    return [cotangent if lower else transpose(conjugate(cotangent))]


def _hermitian_part(x: XlaOp) -> XlaOp:
    return full_like(x, 0.5) * (x + transpose(conjugate(x)))


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
    spectrum = conjugate(xla.fft(node.g, "RFFT", lengths))
    positions = xla.iota(require_current().builder, spectrum.shape.with_dtype(ElementType.S32), spectrum.shape.rank - 1)
    single = xla.eq(positions, full_like(positions, 0))
    if lengths[-1] % 2 == 0:
        single = xla.or_(single, xla.eq(positions, full_like(positions, lengths[-1] // 2)))
    real = Shape.array(node.g.shape.dtype, spectrum.shape.dims)
    scale = prod(lengths)
    weights = xla.select(single, full_constant(real, 1 / scale), full_constant(real, 2 / scale))
    return spectrum * as_complex(weights)


_BY_TYPE = {"FFT": _complex_to_complex, "IFFT": _complex_to_complex, "RFFT": _from_real, "IRFFT": _to_real}
