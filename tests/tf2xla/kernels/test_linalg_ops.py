"""Compiled linear algebra against the eager kernels, and against the definitions of decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, TOLERANCE, check, close, drawn, run

from cyxla.errors import InvalidArgumentError

REAL = [np.float16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]
BATCHES: list[tuple[int, ...]] = [(), (2, 3), (0,)]


def _platforms(dtype: Any, *parts: Any) -> tuple[str, ...]:
    """Native code for one type of each kind and width, and only for some of the other parameters: it takes a while."""
    return PLATFORMS if dtype in (np.float32, np.complex128) and not any(parts) else PLATFORMS[:1]


def _square(batch: tuple[int, ...], n: int, dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Matrices that are far from singular."""
    return (drawn((*batch, n, n), dtype, seed) + 2 * n * np.eye(n)).astype(dtype)


def _hermitian(batch: tuple[int, ...], n: int, dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    x = _square(batch, n, dtype, seed)
    return ((x + _adjoint(x)) / 2).astype(dtype)


def _adjoint(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.swapaxes(x, -1, -2).conj()


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("batch", BATCHES)
def test_cholesky(batch: tuple[int, ...], dtype: Any) -> None:
    """The lower factor of the lower triangle."""
    check("Cholesky", _hermitian(batch, 4, dtype), scale=4, platforms=_platforms(dtype, batch == ()))


@pytest.mark.parametrize("n", [0, 1])
def test_cholesky_of_small_matrices(n: int) -> None:
    check("Cholesky", _hermitian((2,), n, np.float32))


def test_cholesky_of_indefinite_matrices() -> None:
    """Where the eager kernel raises, compiled code gives nan."""
    bad = np.array([[1, 2], [2, 1]], np.float32)
    for platform in PLATFORMS:
        assert np.isnan(run("Cholesky", bad, platform=platform)[0]).any()


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("batch", BATCHES)
def test_equations(batch: tuple[int, ...], dtype: Any, adjoint: bool) -> None:
    """Inverses, and solutions of systems with several right sides."""
    matrix = _square(batch, 4, dtype)[..., ::-1, :].copy()  # needs pivots
    where = {"scale": 4.0, "platforms": _platforms(dtype, batch == ())}
    check("MatrixInverse", matrix, adjoint=adjoint, **where)
    check("MatrixSolve", matrix, drawn((*batch, 4, 3), dtype, 1), adjoint=adjoint, **where)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_triangular_systems(dtype: Any, adjoint: bool, lower: bool) -> None:
    """The other triangle is not read, and batches broadcast."""
    for left, right in [((), ()), ((2, 1), (3,)), ((), (2,)), ((2,), ())]:
        matrix = _square(left, 4, dtype)
        matrix[..., 0 if lower else 3, 3 if lower else 0] = np.nan
        where = {"scale": 4.0, "platforms": _platforms(dtype, left, right == ())}
        check("MatrixTriangularSolve", matrix, drawn((*right, 4, 2), dtype, 1), lower=lower, adjoint=adjoint, **where)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 2), (1, 1), (0, 3, 2), (3, 0), (0, 3)])
@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_qr(dtype: Any, shape: tuple[int, ...], full: bool) -> None:
    """Q times R is the input, Q has orthonormal columns, and R is upper triangular."""
    x = drawn(shape, dtype)
    wanted = run("Qr", x, full_matrices=full, jit="off")
    for platform in _platforms(dtype, shape[0] == 3):
        q, r = run("Qr", x, full_matrices=full, platform=platform)
        assert [(v.shape, v.dtype) for v in (q, r)] == [(v.shape, v.dtype) for v in wanted]
        wide_q, wide_r = (v.astype(np.complex128) for v in (q, r))
        tolerance = 4 * TOLERANCE[np.dtype(dtype).char]
        np.testing.assert_allclose(wide_q @ wide_r, x, atol=tolerance)
        np.testing.assert_allclose(_adjoint(wide_q) @ wide_q - np.eye(q.shape[-1]), 0, atol=tolerance)
        np.testing.assert_array_equal(r, np.triu(r))


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_eigenvalues(dtype: Any, batch: tuple[int, ...], vectors: bool) -> None:
    """Ascending; of the lower triangle alone."""
    x = _hermitian(batch, 4, dtype)
    x[..., 0, 3] = 77
    wanted = run("SelfAdjointEigV2", x, compute_v=vectors, jit="off")
    low = np.tril(x).astype(np.complex128)
    whole = low + _adjoint(np.tril(low, -1))
    tolerance = 80 * TOLERANCE[np.dtype(dtype).char]
    for platform in _platforms(dtype, batch == ()):
        values, v = run("SelfAdjointEigV2", x, compute_v=vectors, platform=platform)
        close([values], wanted[:1], 4)
        assert (v.shape, v.dtype) == (wanted[1].shape, wanted[1].dtype)
        if vectors:
            wide = v.astype(np.complex128)
            np.testing.assert_allclose(whole @ wide, wide * values[..., None, :], atol=tolerance)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 3, 5), (0, 3, 2), (3, 0)])
@pytest.mark.parametrize("dtype", REAL)
def test_svd(dtype: Any, shape: tuple[int, ...], full: bool) -> None:
    """U s V^H is the input."""
    x = drawn(shape, dtype)
    close(run("Svd", x, compute_uv=False), run("Svd", x, compute_uv=False, jit="off"), 4)
    wanted = run("Svd", x, full_matrices=full, jit="off")
    for platform in _platforms(dtype, shape[0] == 3):
        s, u, v = run("Svd", x, full_matrices=full, platform=platform)
        close([s], wanted[:1], 4)
        assert [(a.shape, a.dtype) for a in (u, v)] == [(a.shape, a.dtype) for a in wanted[1:]]
        k = s.shape[-1]
        wide = (u[..., :k] * s[..., None, :]).astype(np.float64) @ np.swapaxes(v[..., :k], -1, -2).astype(np.float64)
        np.testing.assert_allclose(wide, x, atol=4 * TOLERANCE[np.dtype(dtype).char])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_three_diagonals(n: int, batch: tuple[int, ...], dtype: Any) -> None:
    """Products and solutions; elements outside of the matrix are not read."""
    bands = [drawn((*batch, 1, n), dtype, k) for k in range(3)]
    bands[0][..., -1], bands[2][..., 0] = np.nan, np.nan
    rhs = drawn((*batch, n, 3), dtype, 4)
    where = _platforms(dtype, batch == ())
    check("TridiagonalMatMul", *bands, rhs, platforms=where)
    diagonals = np.concatenate([drawn((*batch, 1, n), dtype, k) + (3 if k == 1 else 0) for k in range(3)], -2)
    for pivots in (False, True):
        check("TridiagonalSolve", diagonals.astype(dtype), rhs, partial_pivoting=pivots, scale=4, platforms=where)


EQUATIONS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij,jk->ki", ((2, 3), (3, 4))),
    ("bij,bjk->bik", ((2, 2, 3), (2, 3, 4))),
    ("...ij,...jk->...ik", ((5, 1, 2, 3), (4, 3, 2))),
    ("ij->ji", ((2, 3),)),
    ("ii->i", ((3, 3),)),
    ("ii->", ((3, 3),)),
    ("iij->ji", ((3, 3, 2),)),
    ("i->ii", ((3,),)),
    ("ij->", ((2, 3),)),
    ("i,j->ij", ((2,), (3,))),
    ("i,i->i", ((3,), (3,))),
    ("abc,cd->abd", ((2, 3, 4), (4, 5))),
    ("abc,cbd->ad", ((2, 3, 4), (4, 3, 5))),
    ("ij,k->i", ((2, 3), (4,))),
    (",ij->ij", ((), (2, 3))),
    ("a...b,b...c->a...c", ((2, 3, 4), (4, 3, 5))),
    ("...,...->...", ((2, 3), (3,))),
    ("ij,jk->ik", ((0, 3), (3, 4))),
    ("ij,jk->ik", ((2, 0), (0, 4))),
    ("ab,bc,cd->ad", ((2, 3), (3, 4), (4, 2))),
]


@pytest.mark.parametrize("equation, shapes", EQUATIONS)
def test_einsum(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    operands = [drawn(s, np.float32, k) for k, s in enumerate(shapes)]
    check("Einsum", operands, equation=equation, platforms=_platforms(np.float32, len(equation) % 3))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.complex64, np.complex128, np.int32, np.int64])
def test_einsum_of_all_types(dtype: Any) -> None:
    check(
        "Einsum",
        [drawn((2, 3, 4), dtype), drawn((2, 4, 5), dtype, 1)],
        equation="bij,bjk->kbi",
        platforms=_platforms(dtype),
    )


REFUSED: list[tuple[str, tuple[tuple[int, ...], ...], dict[str, Any]]] = [
    ("Cholesky", ((3,),), {}),
    ("MatrixSolve", ((2, 2), (3, 1)), {}),
    ("SelfAdjointEigV2", ((2, 3),), {}),
    ("MatrixInverse", ((2, 3),), {}),
    ("MatrixTriangularSolve", ((2, 2), (3, 2)), {}),
    ("Qr", ((2,),), {}),
    ("TridiagonalMatMul", ((1, 2), (1, 3), (1, 3), (3, 1)), {}),
    ("TridiagonalSolve", ((2, 3), (3, 1)), {}),
]


@pytest.mark.parametrize("op, shapes, attrs", REFUSED)
def test_wrong_shapes(op: str, shapes: tuple[tuple[int, ...], ...], attrs: dict[str, Any]) -> None:
    """Refused while a graph is compiled, or before."""
    with pytest.raises(InvalidArgumentError):
        run(op, *(drawn(s) for s in shapes), known=False, **attrs)


@pytest.mark.parametrize("equation, shapes", [("ij,jk->ik", ((2, 3), (4, 5))), ("ij->k", ((2, 3),)), ("ij", ((2, 3),))])
def test_wrong_equations(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InvalidArgumentError):
        run("Einsum", [drawn(s) for s in shapes], known=False, equation=equation)
