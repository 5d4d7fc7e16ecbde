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
    conjugate,
    diagonal,
    factored,
    identity,
    matmul,
    nonzero,
    on_columns,
    on_rows,
    solved_adjoint,
    solved_by,
    triangle,
    widened,
    window,
)
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.traced_array import TracedArray, value_of
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
        return attach(inputs, outputs, vjp=partial(_pulled, formula))
    write = forward

    def rewrite(given: list[XlaOp], _: list[bool]) -> tuple[list[XlaOp], Callable[..., Cotangents]]:
        made = differentiable(given, write(*given), formula)
        return made[: len(outputs)], lambda cotangents: _pulled(
            formula, given, made, [*cotangents, *[None] * (len(made) - len(cotangents))]
        )

    return attach(inputs, outputs, forward=rewrite)


def _pulled(formula: Formula, given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    return _conjugates(formula(given, made, _conjugates(cotangents)))


def _conjugates(values: Cotangents) -> list[XlaOp | None]:
    return [None if v is None else conjugate(v) for v in values]


def _half_of(x: XlaOp) -> XlaOp:
    return xla.multiply(x, scalar(x, 0.5))


def _on_diagonal(vector: XlaOp, matrix: XlaOp) -> XlaOp:
    """Return square matrices with these diagonals."""
    return xla.multiply(identity(matrix, matrix.shape.dims), on_columns(widened(vector, matrix), matrix))


def _as_read(gradient: XlaOp, lower: bool) -> XlaOp:
    """Map the gradient of a Hermitian matrix to the triangle that is read: off-diagonal elements count twice."""
    whole = _half_of(xla.add(gradient, adjoint(gradient)))
    strict = triangle(whole, lower, strict=True)
    return xla.add(triangle(whole, lower), strict)


def cholesky(lower: bool) -> Formula:
    """Return the derivative of Cholesky factors."""

    def formula(_: Sequence[XlaOp], made: Sequence[XlaOp], given: Cotangents) -> Cotangents:
        factor, g = made[0], given[0]
        assert g is not None
        if not lower:
            factor, g = adjoint(factor), adjoint(g)
        inner = matmul(adjoint(factor), g)
        middle = _half_of(xla.add(triangle(inner, True), triangle(inner, True, strict=True)))
        left = xla.triangular_solve(factor, middle, left_side=True, lower=True, transpose_a="ADJOINT")
        return [_as_read(xla.triangular_solve(factor, left, left_side=False, lower=True), lower)]

    return formula


def _differences(values: XlaOp, like: XlaOp) -> XlaOp:
    """Compute 1 / (value j - value i); 0 where these are equal."""
    wide = widened(values, like)
    gaps = xla.subtract(on_columns(wide, like), on_rows(wide, like))
    apart = nonzero(gaps)
    return select(apart, xla.divide(full_like(gaps, 1), select(apart, gaps, 1)), 0)


def eigh(lower: bool) -> Formula:
    """Return the derivative of eigenvalues and vectors of Hermitian matrices."""

    def formula(_: Sequence[XlaOp], made: Sequence[XlaOp], given: Cotangents) -> Cotangents:
        values, vectors = made
        g_values, g_vectors = given
        middle = zeros_like(vectors)
        if g_values is not None:
            middle = _on_diagonal(g_values, vectors)
        if g_vectors is not None:
            turned = matmul(adjoint(vectors), g_vectors)
            middle = xla.add(middle, xla.multiply(_differences(values, vectors), turned))
        return [_as_read(matmul(vectors, middle, adjoint(vectors)), lower)]

    return formula


def eig(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate eigenvalues and right eigenvectors."""
    values, vectors = made
    g_values, g_vectors = cotangents
    middle = zeros_like(vectors)
    if g_values is not None:
        middle = _on_diagonal(g_values, vectors)
    if g_vectors is not None:
        turned = matmul(adjoint(vectors), g_vectors)
        kept = on_columns(widened(xla.real(diagonal(turned)), vectors), vectors)  # the length of a vector is fixed
        bent = xla.subtract(turned, xla.multiply(matmul(adjoint(vectors), vectors), kept))
        middle = xla.add(middle, xla.multiply(conjugate(_differences(values, vectors)), bent))
    found = solved(adjoint(vectors), matmul(middle, adjoint(vectors)))
    return [found if given[0].shape.dtype.is_complex else xla.real(found)]


def svd(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate left vectors, singular values and right vectors."""
    x, (u, s, vh) = given[0], made
    least = s.shape.dims[-1]
    g_u, g_s, g_vh = cotangents
    if (g_u is not None or g_vh is not None) and u.shape.dims[-1] != vh.shape.dims[-2]:
        raise UnimplementedError(
            "the derivative of singular vectors with full_matrices=True is not known", where=_trace.user_line(),
            hint="numpy.linalg.svd(x, full_matrices=False)",
        )  # fmt: skip
    u, vh = window(u, u.shape.dims[-2], least), window(vh, least, vh.shape.dims[-1])
    v, square = adjoint(vh), identity(x, (*x.shape.dims[:-2], least, least))
    wide = widened(s, x)
    safe = select(nonzero(wide), wide, 1)
    inverse = select(nonzero(wide), xla.divide(full_like(wide, 1), safe), 0)
    gaps = _differences(xla.multiply(s, s), square)
    middle = zeros_like(square) if g_s is None else _on_diagonal(g_s, square)
    found = None
    if g_u is not None:
        turned = matmul(adjoint(u), g_u)
        skew = xla.multiply(gaps, turned)
        middle = xla.add(middle, xla.multiply(xla.add(skew, adjoint(skew)), on_columns(wide, square)))
        outside = xla.subtract(g_u, matmul(u, turned))
        found = matmul(xla.multiply(outside, on_columns(inverse, outside)), vh)
    if g_vh is not None:
        g_v = adjoint(g_vh)
        turned = matmul(vh, g_v)
        skew = xla.multiply(gaps, turned)
        middle = xla.add(middle, xla.multiply(on_rows(wide, square), xla.add(skew, adjoint(skew))))
        outside = adjoint(xla.subtract(g_v, matmul(v, turned)))
        more = matmul(u, xla.multiply(on_rows(inverse, outside), outside))
        found = more if found is None else xla.add(found, more)
        if x.shape.dtype.is_complex:  # both vectors of a value have a common phase
            turn = diagonal(xla.subtract(conjugate(turned), turned))
            middle = xla.add(middle, _on_diagonal(_half_of(xla.multiply(inverse, turn)), square))
    inside = matmul(u, middle, vh)
    return [inside if found is None else xla.add(inside, found)]


def singular_values(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate singular values alone; the vectors are among the outputs of the formula."""
    return svd(given, [made[1], made[0], made[2]], [cotangents[1], cotangents[0], cotangents[2]])


def qr(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate QR factors."""
    x, (q, r) = given[0], made
    rows, columns = x.shape.dims[-2:]
    if q.shape.dims[-1] > min(rows, columns):
        raise UnimplementedError(
            "the derivative of qr of tall matrices with mode='complete' is not known", where=_trace.user_line(),
            hint="numpy.linalg.qr(x, mode='reduced')",
        )  # fmt: skip
    g_q, g_r = (zeros_like(v) if g is None else g for v, g in zip(made, cotangents, strict=True))
    if columns <= rows:
        return [_tall_qr(q, r, g_q, g_r)]
    start, stop = [0] * x.shape.rank, list(x.shape.dims)
    start[-1] = rows
    right, g_right = xla.slice_(x, start, stop), xla.slice_(g_r, start, [*stop[:-2], rows, columns])
    first = _tall_qr(q, window(r, rows, rows), xla.add(g_q, matmul(right, adjoint(g_right))), window(g_r, rows, rows))
    return [xla.concatenate([first, matmul(q, g_right)], x.shape.rank - 1)]


def _tall_qr(q: XlaOp, r: XlaOp, g_q: XlaOp, g_r: XlaOp) -> XlaOp:
    inner = xla.subtract(matmul(r, adjoint(g_r)), matmul(adjoint(g_q), q))
    strict = triangle(inner, True, strict=True)
    main = diagonal(inner)
    real = widened(xla.real(main), inner) if main.shape.dtype.is_complex else main
    even = xla.add(xla.add(strict, adjoint(strict)), _on_diagonal(real, inner))
    return xla.triangular_solve(r, xla.add(g_q, matmul(q, even)), left_side=False, lower=False, transpose_a="ADJOINT")


def solved(matrix: XlaOp, rhs: XlaOp) -> XlaOp:
    """Solve linear systems for the columns of `rhs`."""
    return solved_with(matrix, *factored(matrix), rhs)


def solved_with(matrix: XlaOp, factors: XlaOp, order: XlaOp, rhs: XlaOp, turned: bool = False) -> XlaOp:
    """Solve linear systems of matrices, or of their adjoints, by given factors."""
    write = solved_adjoint if turned else solved_by
    return differentiable([matrix, rhs, factors, order], [write(factors, order, rhs)], partial(_solve, turned))[0]


def _solve(turned: bool, given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    matrix, _, factors, order = given
    g = cotangents[0]
    assert g is not None
    g_rhs = solved_with(matrix, factors, order, g, not turned)
    pair = (made[0], g_rhs) if turned else (g_rhs, made[0])
    return [xla.negate(matmul(pair[0], adjoint(pair[1]))), g_rhs, None, None]


def inv(_: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate inverses."""
    g = cotangents[0]
    assert g is not None
    turned = adjoint(made[0])
    return [xla.negate(matmul(turned, g, turned))]


def slogdet(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate sign and logarithm of determinants, from matrices and their factors."""
    x, (sign, _), (g_sign, g_log) = given[0], made, cotangents
    scale = None if g_log is None else widened(g_log, x)
    if g_sign is not None and x.shape.dtype.is_complex:
        turn = xla.negate(xla.imag(xla.multiply(conjugate(g_sign), sign)))
        more = xla.complex_(zeros_like(turn), turn)
        scale = more if scale is None else xla.add(scale, more)
    return [None if scale is None else _scaled_inverse(given, scale), None, None]


def det(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate determinants, from matrices and their factors; by singular values for singular matrices."""
    x, factors, order = given
    g = cotangents[0]
    assert g is not None

    def by_inverse(x: Array, factors: Array, order: Array, g: Array, value: Array) -> Array:
        known = [value_of(v) for v in (x, factors, order)]
        return TracedArray(_scaled_inverse(known, xla.multiply(conjugate(value_of(value)), value_of(g))))

    def by_values(x: Array, factors: Array, order: Array, g: Array, value: Array) -> Array:
        return g[..., None, None] * np.conj(np.swapaxes(_adjugate(x), -1, -2))

    main: Array = TracedArray(diagonal(factors))
    singular = np.any(main == 0)
    slope = cond(singular, by_values, by_inverse, *map(TracedArray, (x, factors, order, g, made[0])))
    return [value_of(slope), None, None]


def _adjugate(x: Array) -> Array:
    """Compute the adjugate, the inverse times the determinant, which every matrix has."""
    u, s, vh = np.linalg.svd(x)
    minors = np.prod(np.where(np.eye(s.shape[-1], dtype=bool), 1.0, s[..., None, :]), axis=-1)
    v, uh = (np.conj(np.swapaxes(m, -1, -2)) for m in (vh, u))
    return np.linalg.det(u @ vh)[..., None, None] * ((v * minors[..., None, :]) @ uh)


def _scaled_inverse(given: Sequence[XlaOp], scale: XlaOp) -> XlaOp:
    """Compute the adjoint of the inverse times a number for each matrix."""
    x, factors, order = given
    inverse = solved_with(x, factors, order, identity(x, x.shape.dims), turned=True)
    return xla.multiply(xla.broadcast_in_dim(scale, x.shape.dims, range(scale.shape.rank)), inverse)


def pseudo_inverse(x: XlaOp, inverse: XlaOp, g: XlaOp) -> XlaOp:
    """Return the cotangent of matrices of constant rank from that of their pseudo-inverses."""
    turned, g_turned = adjoint(inverse), adjoint(g)
    left = xla.subtract(identity(x, (*x.shape.dims[:-1], x.shape.dims[-2])), matmul(x, inverse))
    right = xla.subtract(identity(x, (*x.shape.dims[:-2], x.shape.dims[-1], x.shape.dims[-1])), matmul(inverse, x))
    parts = [
        xla.negate(matmul(turned, g, turned)),
        matmul(left, g_turned, inverse, turned),
        matmul(turned, inverse, g_turned, right),
    ]
    return xla.add(xla.add(parts[0], parts[1]), parts[2])


def pinv(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate pseudo-inverses."""
    assert cotangents[0] is not None
    return [pseudo_inverse(given[0], made[0], cotangents[0])]


def lstsq(given: Sequence[XlaOp], made: Sequence[XlaOp], cotangents: Cotangents) -> Cotangents:
    """Differentiate least-squares solutions of least norm; the pseudo-inverse is among the outputs of the formula."""
    (x, b), inverse = given, made[1]
    g, g_inverse = cotangents
    if g is None:
        assert g_inverse is not None
        return [pseudo_inverse(x, inverse, g_inverse), None]
    whole = matmul(g, adjoint(b))
    whole = whole if g_inverse is None else xla.add(whole, g_inverse)
    return [pseudo_inverse(x, inverse, whole), matmul(adjoint(inverse), g)]
