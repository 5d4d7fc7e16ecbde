"""Linear algebra of matrices of run-time size, with none, one, some and all rows selected."""

import numpy as np
import pytest
from support.functions.sized import check

import cyxla
from cyxla.errors import TraceError, UnimplementedError

EQUATIONS = """
np.linalg.det(A[:4][np.ix_(m[:4], m[:4])]) | np.linalg.inv(A[m][:, :3]) | np.linalg.inv((A.T @ A)[:k, :k])
np.linalg.inv(A[m].T @ A[m]) | np.linalg.slogdet((A @ A.T)[np.ix_(m, m)] + np.eye(m.sum()))
np.linalg.det(A[:4][m[:4]]) | np.linalg.inv(A[m]) | np.linalg.inv(x[m]) | np.linalg.inv(np.outer(x[m], x[m]))
np.linalg.inv(n[:4][m[:4]][:, None] * np.eye(4, dtype=int)) | np.linalg.det(f[m][:, None] * f[m])
np.linalg.cholesky(A[m] @ A[m].T + np.eye(m.sum())) | np.linalg.cholesky(A[m] @ A[m].T - 9)
np.linalg.cholesky(A[m] @ A[m].T + np.eye(m.sum()), upper=True)
np.linalg.solve((A @ A.T)[np.ix_(m, m)] + np.eye(m.sum()), x[m]) | np.linalg.solve(A[:4], x[m][:4])
np.linalg.solve((A @ A.T)[np.ix_(m, m)] + np.eye(m.sum()), A[m]) | np.linalg.solve(A[m], x[:4])
np.linalg.solve(A[m], x[m]) | np.linalg.solve(A[:4], A[:4][:, m[:4]]) | np.linalg.solve(A[:4], A[:4].T[m[:4]])
np.linalg.solve(np.eye(4) * (2 + 1j), c[m][:4])
np.linalg.inv(np.stack([A[:2, :2] + k * np.eye(2)] * 6)[m]) | np.linalg.slogdet(np.stack([A[:3, :3]] * 6)[m])
np.linalg.solve(np.stack([A[:3, :3]] * 6)[m], A[m][:, :3, None]) | np.linalg.solve(np.stack([A[:3, :3]] * 6)[m], x[:3])
np.linalg.solve(A[:3, :3], A[m][:, :3, None]) | np.linalg.solve(np.stack([A[:3, :3]] * 6)[m], A[:3])
np.linalg.matrix_power((A @ A.T)[np.ix_(m, m)], 3) | np.linalg.matrix_power((A @ A.T)[np.ix_(m, m)], 5)
np.linalg.matrix_power((A @ A.T)[np.ix_(m, m)] + np.eye(m.sum()), -2) | np.linalg.matrix_power(A[m], 2)
np.linalg.matrix_power(np.outer(n[m], n[m]), 0)
np.linalg.lstsq(A[m], x[m], rcond=None) | np.linalg.lstsq(A[m], A[m][:, :2]) | np.linalg.lstsq(A[m], x)
np.linalg.lstsq(A[m][:, [0, 1, 1]], x[m]) | np.linalg.lstsq(A[m][:, :2], x[m], 0.5) | np.linalg.lstsq(A[m], x[m], -1)
np.linalg.lstsq(A[:, m[:4]], x) | np.linalg.lstsq(A, A[:, m[:4]]) | np.linalg.lstsq(A[m][:, m[:4]], x[m])
np.linalg.lstsq(A[m][:, :2] * 1j, x[m]) | np.linalg.lstsq(n[m][:, None], x[m]) | np.linalg.lstsq(x[m], x[m])
np.linalg.lstsq(np.stack([x[m], np.ones(m.sum())]).T, A[m, 0], rcond=None)[0] | np.linalg.lstsq(A[m][:, :0], x[m])
np.linalg.pinv(A[m]) | np.linalg.pinv(A[m], rcond=0.1) | np.linalg.pinv(A[m], rtol=None) | np.linalg.pinv(A[m] * 1j)
np.linalg.pinv(A[m] @ A[m].T, hermitian=True) | np.linalg.pinv(A[m][:, None])
np.linalg.matrix_rank(A[m]) | np.linalg.matrix_rank(x[m]) | np.linalg.matrix_rank(A[m], tol=0.5)
np.linalg.matrix_rank(A[m], rtol=0.5) | np.linalg.matrix_rank(A[m] @ A[m].T, hermitian=True)
np.linalg.matrix_rank(A[m][:, None]) | np.linalg.matrix_rank(A[m] * 0)
"""
VALUES = """
np.linalg.eigh(A[m] @ A[m].T + np.diag(x[m])) | np.linalg.eigvalsh(A[m] @ A[m].T + np.diag(x[m])) | np.linalg.eigh(A[m])
np.linalg.eigh(np.outer(x[m], A[m, 0]), "U") | np.linalg.eigvalsh(np.outer(x[m], A[m, 0]), UPLO="L")
np.linalg.eigh(np.outer(c[m], c[m])) | np.linalg.eigh(np.stack([A[:3, :3]] * 6)[m])
np.linalg.eigh(np.zeros((m.sum(), m.sum()))) | np.linalg.eigh(np.diag(x[m] * 1e-13) - np.eye(m.sum()) * 1e-12)
np.linalg.eigh(np.outer(n[m], n[m]).astype(np.int8)) | np.linalg.eigvals(np.outer(c[m], x[m]))
np.linalg.eig(A[m] @ A[m].T + np.outer(x[m], A[m, 0])) | np.linalg.eig(A[:4][np.ix_(m[:4], m[:4])])
np.linalg.eig(A[:4][np.ix_(m[:4], m[:4])]).eigenvalues.real | np.linalg.eigvals(np.stack([A[:3, :3]] * 6)[m])
np.linalg.svd(A[m], full_matrices=False) | np.linalg.svd(A[m]) | np.linalg.svd(A[m], compute_uv=False)
np.linalg.svdvals(A[m]) | np.linalg.svd(A[:, m[:4]]) | np.linalg.svd(A[:, m[:4]], False) | np.linalg.svd(A[m][:, :2])
np.linalg.svd(A[m][:, m[:4]], False) | np.linalg.svd(A[m].T) | np.linalg.svd(A[m].T, False) | np.linalg.svd(x[m])
np.linalg.svd(np.stack([A[:3]] * 6)[m]) | np.linalg.svd(A[m][None], False) | np.linalg.svd(A[m] * 1j)
np.linalg.svd(n[m][:, None]) | np.linalg.svd(f[m][:, None]) | np.linalg.svd(A[m] * 0) | np.linalg.svd(A[m] * 0, False)
np.linalg.svd(A[m][:, [0, 0, 1]], False)[1] | np.linalg.svd(A[m] @ A[m].T, compute_uv=False, hermitian=True)
np.linalg.svd(np.sin(np.arange(72).reshape(6, 12) ** 2)[m], False)
np.linalg.svd(np.sin(np.arange(72).reshape(12, 6) ** 2)[:, m], False)
np.linalg.qr(A[m]) | np.linalg.qr(A[m], "complete")
np.linalg.qr(A[m], mode="r") | np.linalg.qr(A[m], "raw") | np.linalg.qr(A[:, m[:4]]) | np.linalg.qr(A[m][:, m[:4]])
np.linalg.qr(A[:, m[:4]], "complete") | np.linalg.qr(A[m] * 1j + A[m] ** 2) | np.linalg.qr(n[m][:, None])
np.linalg.qr(np.stack([A[:3]] * 6)[m]) | np.linalg.qr(A[m], "bad") | np.linalg.qr(A[m].T, "complete")
np.linalg.cond(A[m]) | np.linalg.cond(A[m], -2) | np.linalg.cond(A[m] @ A[m].T + np.eye(m.sum()), 1)
np.linalg.cond(np.outer(x[m], x[m]) * 0, np.inf) | np.linalg.cond(A[m], 1) | np.linalg.cond(np.stack([A[:3]] * 6)[m])
np.linalg.cond(np.stack([A[:3, :3]] * 6)[m], 1)
"""
NORMS = """
np.linalg.matrix_norm(A[m]) | np.linalg.matrix_norm(A[m], ord=2) | np.linalg.matrix_norm(A[m], ord=-2)
np.linalg.matrix_norm(A[m], ord="nuc", keepdims=True) | np.linalg.matrix_norm(A[m], ord=1)
np.linalg.matrix_norm(A[m], ord=-1) | np.linalg.matrix_norm(A[m], ord=np.inf) | np.linalg.matrix_norm(A[m], ord=3)
np.linalg.matrix_norm(A[m], ord=-np.inf, keepdims=True) | np.linalg.matrix_norm(np.stack([A[:3]] * 6)[m], ord=2)
"""
ORDERS = """
np.linalg.norm(A[m], 2) | np.linalg.norm(A[m], "fro") | np.linalg.norm(A[m], "nuc") | np.linalg.norm(A[m], np.inf)
np.linalg.norm(A[m], 1) | np.linalg.norm(x[m], -1) | np.linalg.norm(x[m], 0) | np.linalg.norm(x[m], -np.inf)
np.linalg.norm(x[m], np.inf) | np.linalg.norm(x[m], 3) | np.linalg.norm(x[m], 0.5) | np.linalg.norm(n[m])
np.linalg.norm(x[m], (2, -1)) | np.linalg.norm(A[m], [1, 2.0, 3, 4], axis=0)
np.linalg.norm(x[m].astype("f"), np.float64(3)) | np.linalg.norm(x[m], -1.5)
np.linalg.norm(A[m], axis=(0, 1)) | np.linalg.norm(A[m], 2, axis=(1, 0), keepdims=True)
np.linalg.norm(A[m], 1, axis=1) | np.linalg.norm(A[m], -2, axis=1) | np.linalg.norm(A[m], -np.inf, 0)
np.linalg.norm(A[m], keepdims=True) | np.linalg.norm(c[m]) | np.linalg.norm(c[m], 1) | np.linalg.norm(x[m], "fro")
np.linalg.norm(A[m][None]) | np.linalg.norm(A[m][None], 2) | np.linalg.norm(A[m], axis=(0, 0))
np.linalg.norm(x[m][None], np.inf) | np.linalg.vector_norm(A[m], axis=0, ord=3) | np.linalg.vector_norm(n[m], ord=0)
np.linalg.vector_norm(A[m], axis=(0, 1), ord=-1) | np.linalg.vector_norm(A[m], keepdims=True, ord=np.inf)
"""
FITS = """
np.polyfit(x[m], A[m, 0], 1) | np.polyfit(x[m], A[m, 0], 0) | np.polyfit(x[m], A[m], 1) | np.polyfit(A[m], x[m], 1)
np.polyfit(np.arange(6)[m], A[m, 0], 2) | np.polyfit(np.arange(6)[m], A[m, 0], 1, w=n[m] + 1)
np.polyfit(np.arange(6)[m], A[m, 0], 1, full=True) | np.polyfit(np.arange(6)[m], A[m, 0], 1, cov=True)
np.polyfit(np.arange(6)[m], A[m], 1, cov=True) | np.polyfit(np.arange(6)[m], A[m, 0], 1, cov="unscaled")
np.polyfit(np.arange(6)[m], A[m, 0], 0, cov=True) | np.polyfit(x, x[m], 1) | np.polyfit(x[m], A[m, 0], -1)
np.polyfit(np.arange(6)[m], A[m], 1, w=x[m] + 1, full=True) | np.polyfit(np.arange(m.sum()), x[m], 1)
np.polyfit(np.arange(6)[m], A[m, 0], 1, rcond=0.5) | np.polyfit(np.arange(6)[m], c[m], 1)
np.polyfit(np.arange(6)[m].astype(np.float32), A[m, 0].astype(np.float32), 1, full=True)[4]
"""
TABLES = {"equations": EQUATIONS, "values": VALUES, "norms": NORMS, "orders": ORDERS, "fits": FITS}


def expressions(table):
    # `|` between expressions has blanks around it, and stands in no expression
    return [e.strip() for line in table.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("expression", [e for table in TABLES.values() for e in expressions(table)])
def test_expressions(expression, backend):
    check(expression, backend)


def test_solutions_of_free_nodes():
    def deflections(stiffness, force, free):
        u = np.zeros(force.size)
        u[free] = np.linalg.solve(stiffness[np.ix_(free, free)], force[free])
        return u

    stiffness = 2 * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)
    compiled = cyxla.jit(deflections, fallback="error")
    for free in ([1, 2, 3], [0, 5], [], range(6)):
        mask = np.isin(np.arange(6), free)
        want = deflections(stiffness, np.arange(6.0), mask)
        np.testing.assert_allclose(compiled(stiffness, np.arange(6.0), mask), want, rtol=1e-12, atol=1e-14)


def test_squareness_is_checked_in_each_run():
    invert = cyxla.jit(lambda x, m: np.linalg.inv(x[m][:, :2]), fallback="error")
    x = np.array([[2.0, 1], [3, 5], [7, 4]])
    np.testing.assert_allclose(invert(x, np.array([True, False, True])), np.linalg.inv(x[::2]))
    with pytest.raises(np.linalg.LinAlgError, match="Last 2 dimensions of the array must be square"):
        invert(x, np.ones(3, bool))


@pytest.mark.parametrize("rows, columns", [(9, 10), (10, 10), (12, 10), (25, 10), (5, 10), (3, 10), (1, 10), (0, 10)])
@pytest.mark.parametrize("factor", [1, 1j])
def test_signs_of_singular_vectors(rows, columns, factor):
    def decompose(a, m):
        return np.linalg.svd(a[m] * factor, full_matrices=False)

    a = np.random.default_rng(rows).standard_normal((30, columns))
    mask = np.isin(np.arange(30), np.random.default_rng(1).permutation(30)[:rows])
    for g, w in zip(cyxla.jit(decompose, fallback="error")(a, mask), decompose(a, mask), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)


def test_matrices_of_any_size():
    def decompose(a):
        return np.linalg.svd(a, full_matrices=False), np.linalg.qr(a), np.linalg.lstsq(a, a[:, 0])

    compiled = cyxla.jit(decompose, fallback="error", sizes="any")
    for shape in ((5, 3), (6, 3), (7, 4), (4, 9), (11, 11), (1, 4), (24, 11)):
        a = np.random.default_rng(0).standard_normal(shape)
        for got, want in zip(compiled(a), decompose(a), strict=True):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-8, atol=1e-11)


def test_runs_that_numpy_serves():
    decompose = cyxla.jit(lambda a, m: np.linalg.svd(a[m], full_matrices=False), fallback="error")
    a = np.ones((12, 12))
    with pytest.raises(UnimplementedError, match="with singular values of zero"):
        decompose(a, np.arange(12) < 5)
    pairs = cyxla.jit(lambda a, m: np.linalg.eigh(a[np.ix_(m, m)]), fallback="error")
    with pytest.raises(UnimplementedError, match="infinite elements or nan"):
        pairs(np.full((3, 3), np.nan), np.ones(3, bool))


@pytest.mark.parametrize(
    "function, use",
    [
        (lambda a, m: np.linalg.svd(a[np.ix_(m, m)], hermitian=True), "with hermitian=True"),
        (lambda a, m: np.linalg.matrix_power(a[np.ix_(m, m)], m.sum()), "to a power that is traced"),
        (lambda a, m: np.linalg.tensorinv(a[m], 1), "be passed to np.linalg.tensorinv"),
        (lambda a, m: np.linalg.eig(np.eye(80)[np.ix_(np.tile(m, 20), np.tile(m, 20))]), "if it may be large"),
        (lambda a, m: np.polyfit(a[m, 0], a[m, 1], m.sum()), "with a degree that is traced"),
    ],
)
def test_refusals(function, use):
    with pytest.raises(TraceError, match="whose size is known at run time only cannot") as caught:
        cyxla.jit(function, fallback="error")(np.ones((4, 4)), np.array([True, False, True, True]))
    assert use in str(caught.value)


def test_gradients():
    def fitted(a, m):
        x = a[m]
        solution = np.linalg.lstsq(x, x[:, 0] ** 2, rcond=None)[0]
        square = x.T @ x
        return (solution**2).sum() + np.linalg.slogdet(square)[1] + np.linalg.solve(square, x[:3, 1]).sum()

    a = np.random.default_rng(0).standard_normal((8, 3))
    m = np.arange(8) % 3 != 1
    gradient = cyxla.jit(cyxla.grad(fitted))(a, m)
    step = 1e-6
    for at in np.ndindex(a.shape):
        shift = np.zeros(a.shape)
        shift[at] = step
        want = (fitted(a + shift, m) - fitted(a - shift, m)) / (2 * step)
        np.testing.assert_allclose(gradient[at], want, rtol=1e-5, atol=1e-6)


def test_gradients_of_eigenvalues():
    def spectrum(a, m):
        part = a[np.ix_(m, m)]
        values, vectors = np.linalg.eigh(part + part.T)
        return (values**3).sum() + vectors[0, 0] ** 2

    a, m = np.random.default_rng(0).standard_normal((5, 5)), np.array([True, False, True, True, False])
    gradient = cyxla.jit(cyxla.grad(spectrum))(a, m)
    step = 1e-6
    for at in np.ndindex(a.shape):
        shift = np.zeros(a.shape)
        shift[at] = step
        want = (spectrum(a + shift, m) - spectrum(a - shift, m)) / (2 * step)
        np.testing.assert_allclose(gradient[at], want, rtol=1e-5, atol=1e-6)
