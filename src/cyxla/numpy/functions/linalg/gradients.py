"""Derivatives of factorisations and of solutions computed from them.

In the formulas the cotangent of A is the matrix G for which a small change dA changes the result by ``Re tr(G^H dA)``;
`differentiable` conjugates on both sides, since gradients are propagated without conjugation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.control import cond
from cyxla.numpy.functions.linalg.lapack import (
    adjoint,
    broadcast_columns,
    broadcast_rows,
    conjugate,
    diagonal,
    factor_lu,
    identity,
    leading_block,
    matmul,
    nonzero,
    solve_factored,
    solve_factored_adjoint,
    to_dtype_of,
    triangle,
)
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import full_like, scalar, select, zeros_like

Array = Any
Cotangents = Sequence[XlaOp | None]
Forward = Callable[..., list[XlaOp]]
Formula = Callable[[Sequence[XlaOp], Sequence[XlaOp], Cotangents], Cotangents]


def differentiable(
    inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], formula: Formula, forward: Forward | None = None
) -> list[XlaOp]:
    """Attach a formula as the derivative of outputs.

    Parameters
    ----------
    inputs, outputs : sequences of XlaOp
        Operands, and the outputs to differentiate; callers must use the returned outputs instead.
    formula : callable
        Function from inputs, outputs and cotangents of the outputs to cotangents of the inputs.
    forward : callable, optional
        Function from the inputs to the outputs that the formula takes, if these are more.
    """
    if forward is None:
        return attach(inputs, outputs, vjp=partial(_pull_back, formula))
    compute = forward

    def rewrite_forward(operands: list[XlaOp], _: list[bool]) -> tuple[list[XlaOp], Callable[..., Cotangents]]:
        results = differentiable(operands, compute(*operands), formula)
        return results[: len(outputs)], lambda cotangents: _pull_back(
            formula, operands, results, [*cotangents, *[None] * (len(results) - len(cotangents))]
        )

    return attach(inputs, outputs, forward=rewrite_forward)


def _pull_back(
    formula: Formula, inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents
) -> Cotangents:
    capture = _trace.require_current().capture  # the pullback may run in another trace, such as the body of a loop
    return _conjugates(formula([*map(capture, inputs)], [*map(capture, outputs)], _conjugates(cotangents)))


def _conjugates(values: Cotangents) -> list[XlaOp | None]:
    return [None if v is None else conjugate(v) for v in values]


def _halve(x: XlaOp) -> XlaOp:
    return xla.multiply(x, scalar(x, 0.5))


def _diagonal_matrices(vector: XlaOp, matrix: XlaOp) -> XlaOp:
    """Return square matrices with these diagonals."""
    return xla.multiply(identity(matrix, matrix.shape.dims), broadcast_columns(to_dtype_of(vector, matrix), matrix))


def _to_read_triangle(gradient: XlaOp, lower: bool) -> XlaOp:
    """Map the gradient of a Hermitian matrix to the triangle that is read: off-diagonal elements count twice."""
    symmetric = _halve(xla.add(gradient, adjoint(gradient)))
    strict = triangle(symmetric, lower, strict=True)
    return xla.add(triangle(symmetric, lower), strict)


def cholesky(lower: bool) -> Formula:
    """Return the derivative of Cholesky factors."""

    def formula(_: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
        factor, g = outputs[0], cotangents[0]
        assert g is not None
        if not lower:
            factor, g = adjoint(factor), adjoint(g)
        inner = matmul(adjoint(factor), g)
        middle = _halve(xla.add(triangle(inner, True), triangle(inner, True, strict=True)))
        left = xla.triangular_solve(factor, middle, left_side=True, lower=True, transpose_a="ADJOINT")
        return [_to_read_triangle(xla.triangular_solve(factor, left, left_side=False, lower=True), lower)]

    return formula


def _differences(values: XlaOp, like: XlaOp) -> XlaOp:
    """Compute 1 / (value j - value i); 0 where these are equal."""
    converted = to_dtype_of(values, like)
    gaps = xla.subtract(broadcast_columns(converted, like), broadcast_rows(converted, like))
    distinct = nonzero(gaps)
    return select(distinct, xla.divide(full_like(gaps, 1), select(distinct, gaps, 1)), 0)


def eigh(lower: bool) -> Formula:
    """Return the derivative of eigenvalues and vectors of Hermitian matrices."""

    def formula(_: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
        values, vectors = outputs
        g_values, g_vectors = cotangents
        middle = zeros_like(vectors)
        if g_values is not None:
            middle = _diagonal_matrices(g_values, vectors)
        if g_vectors is not None:
            projected = matmul(adjoint(vectors), g_vectors)
            middle = xla.add(middle, xla.multiply(_differences(values, vectors), projected))
        return [_to_read_triangle(matmul(vectors, middle, adjoint(vectors)), lower)]

    return formula


def eig(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate eigenvalues and right eigenvectors."""
    values, vectors = outputs
    g_values, g_vectors = cotangents
    middle = zeros_like(vectors)
    if g_values is not None:
        middle = _diagonal_matrices(g_values, vectors)
    if g_vectors is not None:
        projected = matmul(adjoint(vectors), g_vectors)
        radial = broadcast_columns(to_dtype_of(xla.real(diagonal(projected)), vectors), vectors)
        tangent = xla.subtract(projected, xla.multiply(matmul(adjoint(vectors), vectors), radial))
        middle = xla.add(middle, xla.multiply(conjugate(_differences(values, vectors)), tangent))
    gradient = solve(adjoint(vectors), matmul(middle, adjoint(vectors)))
    return [gradient if inputs[0].shape.dtype.is_complex else xla.real(gradient)]


def svd(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate left vectors, singular values and right vectors."""
    x, (u, s, vh) = inputs[0], outputs
    min_size = s.shape.dims[-1]
    g_u, g_s, g_vh = cotangents
    if (g_u is not None or g_vh is not None) and u.shape.dims[-1] != vh.shape.dims[-2]:
        raise UnimplementedError(
            "svd: singular vectors of full_matrices=True cannot be differentiated", where=_trace.user_line(),
            hint="use numpy.linalg.svd(x, full_matrices=False)",
        )  # fmt: skip
    u, vh = leading_block(u, u.shape.dims[-2], min_size), leading_block(vh, min_size, vh.shape.dims[-1])
    v, square = adjoint(vh), identity(x, (*x.shape.dims[:-2], min_size, min_size))
    converted = to_dtype_of(s, x)
    safe = select(nonzero(converted), converted, 1)
    inverse = select(nonzero(converted), xla.divide(full_like(converted, 1), safe), 0)
    gaps = _differences(xla.multiply(s, s), square)
    middle = zeros_like(square) if g_s is None else _diagonal_matrices(g_s, square)
    gradient = None
    if g_u is not None:
        projected = matmul(adjoint(u), g_u)
        skew = xla.multiply(gaps, projected)
        middle = xla.add(middle, xla.multiply(xla.add(skew, adjoint(skew)), broadcast_columns(converted, square)))
        orthogonal = xla.subtract(g_u, matmul(u, projected))
        gradient = matmul(xla.multiply(orthogonal, broadcast_columns(inverse, orthogonal)), vh)
    if g_vh is not None:
        g_v = adjoint(g_vh)
        projected = matmul(vh, g_v)
        skew = xla.multiply(gaps, projected)
        middle = xla.add(middle, xla.multiply(broadcast_rows(converted, square), xla.add(skew, adjoint(skew))))
        orthogonal = adjoint(xla.subtract(g_v, matmul(v, projected)))
        contribution = matmul(u, xla.multiply(broadcast_rows(inverse, orthogonal), orthogonal))
        gradient = contribution if gradient is None else xla.add(gradient, contribution)
        if x.shape.dtype.is_complex:  # both vectors of a value have a common phase
            phase = diagonal(xla.subtract(conjugate(projected), projected))
            middle = xla.add(middle, _diagonal_matrices(_halve(xla.multiply(inverse, phase)), square))
    inner = matmul(u, middle, vh)
    return [inner if gradient is None else xla.add(inner, gradient)]


def singular_values(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate singular values alone; the vectors are among the outputs of the formula."""
    return svd(inputs, [outputs[1], outputs[0], outputs[2]], [cotangents[1], cotangents[0], cotangents[2]])


def qr(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate QR factors."""
    x, (q, r) = inputs[0], outputs
    rows, columns = x.shape.dims[-2:]
    if q.shape.dims[-1] > min(rows, columns):
        raise UnimplementedError(
            "qr: mode='complete' cannot be differentiated for tall matrices", where=_trace.user_line(),
            hint="use numpy.linalg.qr(x, mode='reduced')",
        )  # fmt: skip
    g_q, g_r = (zeros_like(v) if g is None else g for v, g in zip(outputs, cotangents, strict=True))
    if columns <= rows:
        return [_tall_qr(q, r, g_q, g_r)]
    start, stop = [0] * x.shape.rank, list(x.shape.dims)
    start[-1] = rows
    right, g_right = xla.slice_(x, start, stop), xla.slice_(g_r, start, [*stop[:-2], rows, columns])
    first = _tall_qr(
        q, leading_block(r, rows, rows), xla.add(g_q, matmul(right, adjoint(g_right))), leading_block(g_r, rows, rows)
    )
    return [xla.concatenate([first, matmul(q, g_right)], x.shape.rank - 1)]


def _tall_qr(q: XlaOp, r: XlaOp, g_q: XlaOp, g_r: XlaOp) -> XlaOp:
    inner = xla.subtract(matmul(r, adjoint(g_r)), matmul(adjoint(g_q), q))
    strict = triangle(inner, True, strict=True)
    main = diagonal(inner)
    real = to_dtype_of(xla.real(main), inner) if main.shape.dtype.is_complex else main
    symmetric = xla.add(xla.add(strict, adjoint(strict)), _diagonal_matrices(real, inner))
    return xla.triangular_solve(
        r, xla.add(g_q, matmul(q, symmetric)), left_side=False, lower=False, transpose_a="ADJOINT"
    )


def solve(matrix: XlaOp, rhs: XlaOp) -> XlaOp:
    """Solve linear systems for the columns of `rhs`."""
    return solve_with_factors(matrix, *factor_lu(matrix), rhs)


def solve_with_factors(matrix: XlaOp, factors: XlaOp, order: XlaOp, rhs: XlaOp, of_adjoint: bool = False) -> XlaOp:
    """Solve linear systems of matrices, or of their adjoints, by given factors."""
    solve_system = solve_factored_adjoint if of_adjoint else solve_factored
    return differentiable(
        [matrix, rhs, factors, order], [solve_system(factors, order, rhs)], partial(_solve_vjp, of_adjoint)
    )[0]


def _solve_vjp(
    of_adjoint: bool, inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents
) -> Cotangents:
    matrix, _, factors, order = inputs
    g = cotangents[0]
    assert g is not None
    g_rhs = solve_with_factors(matrix, factors, order, g, not of_adjoint)
    pair = (outputs[0], g_rhs) if of_adjoint else (g_rhs, outputs[0])
    return [xla.negate(matmul(pair[0], adjoint(pair[1]))), g_rhs, None, None]


def inv(_: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate inverses."""
    g = cotangents[0]
    assert g is not None
    inverse_adjoint = adjoint(outputs[0])
    return [xla.negate(matmul(inverse_adjoint, g, inverse_adjoint))]


def slogdet(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate sign and logarithm of determinants, from matrices and their factors."""
    x, (sign, _), (g_sign, g_log) = inputs[0], outputs, cotangents
    scale = None if g_log is None else to_dtype_of(g_log, x)
    if g_sign is not None and x.shape.dtype.is_complex:
        phase = xla.negate(xla.imag(xla.multiply(conjugate(g_sign), sign)))
        term = xla.complex_(zeros_like(phase), phase)
        scale = term if scale is None else xla.add(scale, term)
    return [None if scale is None else _scaled_inverse(inputs, scale), None, None]


def det(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate determinants, from matrices and their factors; by singular values for singular matrices."""
    x, factors, order = inputs
    g = cotangents[0]
    assert g is not None

    def by_inverse(x: Array, factors: Array, order: Array, g: Array, value: Array) -> Array:
        operands = [value_of(v) for v in (x, factors, order)]
        return TracedArray(_scaled_inverse(operands, xla.multiply(conjugate(value_of(value)), value_of(g))))

    def by_singular_values(x: Array, factors: Array, order: Array, g: Array, value: Array) -> Array:
        return g[..., None, None] * np.conj(np.swapaxes(_adjugate(x), -1, -2))

    main: Array = TracedArray(diagonal(factors))
    singular = np.any(main == 0)
    gradient = cond(singular, by_singular_values, by_inverse, *map(TracedArray, (x, factors, order, g, outputs[0])))
    return [value_of(gradient), None, None]


def _adjugate(x: Array) -> Array:
    """Compute the adjugate, the inverse times the determinant, which every matrix has."""
    u, s, vh = np.linalg.svd(x)
    minors = np.prod(np.where(np.eye(s.shape[-1], dtype=bool), 1.0, s[..., None, :]), axis=-1)
    v, uh = (np.conj(np.swapaxes(m, -1, -2)) for m in (vh, u))
    return np.linalg.det(u @ vh)[..., None, None] * ((v * minors[..., None, :]) @ uh)


def _scaled_inverse(inputs: Sequence[XlaOp], scale: XlaOp) -> XlaOp:
    """Compute the adjoint of the inverse times a number for each matrix."""
    x, factors, order = inputs
    inverse = solve_with_factors(x, factors, order, identity(x, x.shape.dims), of_adjoint=True)
    return xla.multiply(xla.broadcast_in_dim(scale, x.shape.dims, range(scale.shape.rank)), inverse)


def pseudo_inverse(x: XlaOp, inverse: XlaOp, g: XlaOp) -> XlaOp:
    """Return the cotangent of matrices of constant rank from that of their pseudo-inverses."""
    inverse_adjoint, g_adjoint = adjoint(inverse), adjoint(g)
    left = xla.subtract(identity(x, (*x.shape.dims[:-1], x.shape.dims[-2])), matmul(x, inverse))
    right = xla.subtract(identity(x, (*x.shape.dims[:-2], x.shape.dims[-1], x.shape.dims[-1])), matmul(inverse, x))
    parts = [
        xla.negate(matmul(inverse_adjoint, g, inverse_adjoint)),
        matmul(left, g_adjoint, inverse, inverse_adjoint),
        matmul(inverse_adjoint, inverse, g_adjoint, right),
    ]
    return xla.add(xla.add(parts[0], parts[1]), parts[2])


def pinv(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate pseudo-inverses."""
    assert cotangents[0] is not None
    return [pseudo_inverse(inputs[0], outputs[0], cotangents[0])]


def lstsq(inputs: Sequence[XlaOp], outputs: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate least-squares solutions of least norm; the pseudo-inverse is among the outputs of the formula."""
    (x, b), inverse = inputs, outputs[1]
    g, g_inverse = cotangents
    if g is None:
        assert g_inverse is not None
        return [pseudo_inverse(x, inverse, g_inverse), None]
    g_total = matmul(g, adjoint(b))
    g_total = g_total if g_inverse is None else xla.add(g_total, g_inverse)
    return [pseudo_inverse(x, inverse, g_total), matmul(adjoint(inverse), g)]
