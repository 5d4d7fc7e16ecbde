"""Linear algebra: errors at run time, results whose dtype or shape depends on values, and native kernels."""

import numpy as np
import pytest
from numpy import linalg as la

import cyxla
from cyxla.errors import UnimplementedError
from cyxla.numpy import jit

GOOD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
WITH_NAN = np.array([[1.0, np.nan], [np.nan, 2.0]])
FAILING = {
    "inv": (la.inv, SINGULAR, "Singular matrix"),
    "inv-stack": (la.inv, np.stack([np.eye(2), SINGULAR]), "Singular matrix"),
    "inv-complex": (la.inv, SINGULAR * 1j, "Singular matrix"),
    "solve": (lambda x: la.solve(x, np.ones(2)), SINGULAR, "Singular matrix"),
    "matrix_power": (lambda x: la.matrix_power(x, -2), SINGULAR, "Singular matrix"),
    "tensorinv": (lambda x: la.tensorinv(x[None], 2), SINGULAR, "Singular matrix"),
    "cholesky": (la.cholesky, -GOOD, "Matrix is not positive definite"),
    "cholesky-stack": (la.cholesky, np.stack([GOOD, -GOOD]), "Matrix is not positive definite"),
    "cholesky-complex": (la.cholesky, -GOOD + 0j, "Matrix is not positive definite"),
    "svd": (la.svd, WITH_NAN, "SVD did not converge"),
    "svdvals": (la.svdvals, WITH_NAN, "SVD did not converge"),
    "eig": (la.eig, WITH_NAN, "must not contain infs or NaNs"),
}


@pytest.mark.parametrize("name", FAILING)
def test_matrices_that_raise(name, backend):
    function, x, message = FAILING[name]
    program = jit(lambda x: function(x), platform=backend)
    with pytest.raises(la.LinAlgError, match=message):
        program(x)
    with pytest.raises(la.LinAlgError), np.errstate(all="ignore"):
        function(x)
    good = GOOD[:2, :2] if x.shape[-1] == 2 else GOOD
    program(np.broadcast_to(good, x.shape).astype(x.dtype))  # the failure leaves no state behind


def test_nan_does_not_raise():
    for function in (la.eigvalsh, la.cholesky, la.det):
        assert np.isnan(jit(lambda x, f=function: f(x), platform="interpreter")(WITH_NAN)).any()


def test_half_precision_has_no_factorisations():
    x = np.eye(2, dtype=np.float16)
    for function in (la.inv, la.det, la.svd, la.eigh, la.qr, la.cholesky, la.pinv, la.eig, lambda x: la.norm(x, 2)):
        with pytest.raises(TypeError, match="float16 is unsupported in linalg"):
            jit(lambda x, f=function: f(x), platform="interpreter")(x)


REAL = np.diag([1.0, 2.0, 3.0]) + np.triu(np.ones((3, 3)), 1)
TURN = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # eigenvalues 1, i and -i
SPECTRA = {
    "real": REAL, "complex": TURN, "float32": REAL.astype("f"), "complex, float32": TURN.astype("f"),
    "int": np.diag([1, 2, 3]), "real batch": np.stack([REAL, GOOD]), "mixed batch": np.stack([REAL, TURN]),
    "no matrices": np.zeros((0, 2, 2)), "no rows": np.zeros((2, 0, 0), "f"), "complex input": REAL + 0j,
}  # fmt: skip
EIGEN = {
    "eig": lambda x: la.eig(x),
    "eigvals": lambda x: la.eigvals(x),
    "values alone": lambda x: la.eig(x)[0],
    "vectors alone": lambda x: la.eig(x)[1],
    "vectors first": lambda x: {"v": la.eig(x)[1], "w": la.eigvals(x), "x": [x, x.sum()]},
    "swapped": lambda x: la.eig(x)[::-1],
    "roots": lambda x: np.roots(np.array([1.0, 0.0, 2.0]) + 0 * x.sum()),
}


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("matrices", SPECTRA)
@pytest.mark.parametrize("name", EIGEN)
def test_eigenvalues_are_real_like_numpys(name, matrices, backend):
    function, x = EIGEN[name], SPECTRA[matrices]
    program = jit(function, platform=backend)
    for made in (program(x), program(x)):  # the second call takes the fast path in C
        want = function(x)
        assert type(made) is type(want)
        for one, other in zip(leaves(made), leaves(want), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-5 if one.dtype.char in "fF" else 1e-13, atol=1e-7)
            assert one.ndim == 0 or (one.flags.c_contiguous and one.flags.writeable)


def leaves(made):
    parts = made.values() if isinstance(made, dict) else made if isinstance(made, (tuple, list)) else None
    return [made] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def write_result(x):
    w = la.eigvals(x)
    w[0] = 1
    return w


DERIVED = {
    "view": lambda x: la.eigvals(x)[:],
    "astype": lambda x: la.eigvals(x).astype(complex),
    "sum": lambda x: la.eigvals(x) + 0,
    "written": write_result,
    "stack": lambda x: np.stack(la.eig(x)[:1]),
}


@pytest.mark.parametrize("name", DERIVED)
def test_arrays_computed_from_eigenvalues_are_complex(name, backend):
    made = jit(DERIVED[name], platform=backend)(REAL)
    assert made.dtype == complex
    assert (made.imag == 0).all()


def test_eigenvalues_written_to_arrays():
    out = la.eig(TURN)
    made = jit(la.eig)(REAL, out=out)
    assert made[0] is out[0]
    assert made[1] is out[1]
    np.testing.assert_allclose(np.sort(out[0].real), [1, 2, 3], rtol=1e-13)
    only = jit(lambda x: tuple(la.eig(x)))(REAL, out=(out[0], None))
    assert only[0] is out[0]
    assert only[1].dtype == float
    assert jit(la.eigvals).compile(REAL)(REAL).dtype == complex


def test_named_tuple_results():
    def program(x):
        return la.svd(x), la.qr(x), la.eigh(x), la.slogdet(x)

    found, want = jit(program, platform="interpreter")(GOOD), program(GOOD)
    assert [type(f) for f in found] == [type(w) for w in want]
    np.testing.assert_allclose(found[3].logabsdet, want[3].logabsdet, rtol=1e-14)


def test_residuals_of_dependent_columns():
    x = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    found, residuals, rank, _ = jit(lambda x, b: la.lstsq(x, b), platform="interpreter")(x, np.ones(3))
    np.testing.assert_allclose(found, la.lstsq(x, np.ones(3))[0], rtol=1e-12)
    assert rank == 1
    assert residuals.shape == (1,)
    assert np.isnan(residuals).all()


def test_unsupported_gradients():
    for function, advice in (
        (lambda x: la.svd(x).U, "full_matrices=False"),
        (lambda x: la.qr(x, "complete").Q, "reduced"),
    ):
        with pytest.raises(UnimplementedError, match=advice):
            jit(cyxla.grad(lambda x, f=function: np.sum(f(x))), platform="interpreter")(np.eye(3, 2))


def test_second_derivatives():
    def loss(t):
        x = np.array(GOOD) + t * np.eye(3)
        return (
            la.slogdet(x).logabsdet + np.sum(la.solve(x, np.ones(3))) + np.sum(la.eigvalsh(x) ** 3) + la.norm(la.inv(x))
        )

    slope = jit(cyxla.grad(loss), platform="interpreter")
    bend = jit(cyxla.grad(cyxla.grad(loss)), platform="interpreter")(0.3)
    np.testing.assert_allclose(bend, (slope(0.3 + 1e-5) - slope(0.3 - 1e-5)) / 2e-5, rtol=1e-7)


PROGRAMS = {
    "matmul": lambda x, y: x @ y,
    "stacks": lambda x, y: np.stack([x, y]) @ y,
    "left-stack": lambda x, y: x @ np.stack([x, y]),
    "einsum": lambda x, y: np.einsum("ij,jk,kl->il", x, y, x),
    "einsum-diagonal": lambda x, y: np.einsum("ii,ij->j", x, y),
    "tensordot": lambda x, y: np.tensordot(x, y, ([0], [1])),
    "kron": np.kron,
    "solve": la.solve,
    "inv": lambda x, y: la.inv(x) + la.inv(y),
    "det": lambda x, y: la.det(x) + la.slogdet(y).logabsdet,
    "cholesky": lambda x, y: la.cholesky(x @ np.conj(x.T) + np.eye(5)),
    "qr": lambda x, y: la.qr(x),
    "svd": lambda x, y: la.svd(x, compute_uv=False),
    "eigvalsh": lambda x, y: la.eigvalsh(x + np.conj(x.T)),
    "pinv": lambda x, y: la.pinv(x[:, :3]),
    "lstsq": lambda x, y: la.lstsq(x[:, :3], y)[0],
    "norm": lambda x, y: la.norm(x, 2) + la.norm(y, "nuc") + la.norm(x) + la.norm(y, 1),
    "matrix_power": lambda x, y: la.matrix_power(x, 5),
    "fft": lambda x, y: np.fft.fft(x) + np.fft.ifft2(y),
    "rfft": lambda x, y: np.fft.irfft(np.fft.rfft(x.real, axis=0), 5, axis=0),
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
def test_compiled_for_the_host(dtype):
    def program(x, y):
        return {name: function(x, y) for name, function in PROGRAMS.items()}

    rng = np.random.default_rng(3)
    x, y = (rng.uniform(-1, 1, (5, 5)) + 3 * np.eye(5) for _ in "xy")
    x, y = (v.astype(dtype) * (1 + 0.25j if dtype is np.complex128 else dtype(1)) for v in (x, y))
    found, want = jit(program)(x, y), program(x, y)
    for name in PROGRAMS:
        pairs = (
            zip(found[name], want[name], strict=True) if isinstance(want[name], tuple) else [(found[name], want[name])]
        )
        for f, w in pairs:
            assert f.dtype == w.dtype, name
            near = np.abs(w).max() * (3e-5 if dtype is np.float32 else 1e-12)
            np.testing.assert_allclose(f, w, rtol=0, atol=near, err_msg=name)


def test_products_of_all_types_for_the_host():
    def program(pairs):
        return [(x @ y, np.einsum("ij,jk->k", x, y), np.vdot(x[0], y[:, 0])) for x, y in pairs]

    rng = np.random.default_rng(3)
    pairs = [
        tuple(rng.integers(0, 2 if dtype in "?e" else 120, shape).astype(dtype) for shape in ((7, 9), (9, 5)))
        for dtype in "?bBhHiIlLe"
    ]
    for found, want in zip(jit(program)(pairs), program(pairs), strict=True):
        for f, w in zip(found, want, strict=True):
            np.testing.assert_array_equal(f, w, strict=True)


def test_out_of_products():
    def program(x):
        made = np.zeros_like(x)
        np.matmul(x, x, out=made)
        np.dot(x, x, made[...])
        half = np.zeros_like(x[0])
        np.einsum("ij->j", x, out=half)
        return made, half, np.matmul(x, x, out=(np.zeros_like(x),))

    for found, want in zip(jit(program, platform="interpreter")(GOOD), program(GOOD), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-14)
    with pytest.raises(ValueError, match="not acceptable"):
        jit(lambda x: np.dot(x, x, np.zeros_like(x, np.float32)), platform="interpreter")(GOOD)


def test_einsum_without_sums_is_a_view():
    def program(x, cube):
        np.einsum("ii->i", x)[...] = 7.0
        np.einsum("ij->ji", x)[0] += np.arange(3.0)
        np.einsum("iji->ji", cube)[1] *= 2
        return x, cube, np.einsum("ij", x, dtype=np.float32)

    cube = np.arange(18.0).reshape(3, 2, 3)
    written, expected = (GOOD.copy(), cube.copy()), (GOOD.copy(), cube.copy())
    results, wanted = jit(program, platform="interpreter")(*written), program(*expected)
    for found, want in zip((*results, *written), (*wanted, *expected), strict=True):
        np.testing.assert_array_equal(found, want, strict=True)


WRONG = {
    "scalars": (lambda x: np.matmul(x, 2.0), ValueError),
    "sizes": (lambda x: x @ x[:2], ValueError),
    "axes": (lambda x: np.matmul(x, x, axes=[(0, 1)]), ValueError),
    "axes-rank": (lambda x: np.matmul(x, x, axes=[(0,), (0, 1), (0, 1)]), ValueError),
    "axis": (lambda x: np.vecdot(x, x, axis=2), np.exceptions.AxisError),
    "axis-matmul": (lambda x: np.matmul(x, x, axis=0), TypeError),
    "keyword": (lambda x: np.matmul(x, x, order="C", wher=1), TypeError),
    "casting": (lambda x: np.matmul(x, x, dtype=np.float32, casting="safe"), TypeError),
    "einsum-labels": (lambda x: np.einsum("ijk", x), ValueError),
    "einsum-output": (lambda x: np.einsum("ij->ik", x), ValueError),
    "einsum-twice": (lambda x: np.einsum("ij->ii", x), ValueError),
    "einsum-sizes": (lambda x: np.einsum("ij,jk", x, x[:2]), ValueError),
    "einsum-count": (lambda x: np.einsum("ij,jk", x), ValueError),
    "einsum-casting": (lambda x: np.einsum("ij->", x, dtype=np.float32), TypeError),
    "tensordot": (lambda x: np.tensordot(x, x[:2], 1), ValueError),
    "tensordot-axes": (lambda x: np.tensordot(x, x, ([0, 1], [0])), ValueError),
    "multi_dot": (lambda x: la.multi_dot([x]), ValueError),
    "multi_dot-rank": (lambda x: la.multi_dot([x, x[0], x]), la.LinAlgError),
    "uplo": (lambda x: la.eigh(x, "M"), ValueError),
    "mode": (lambda x: la.qr(x, "other"), ValueError),
    "power": (lambda x: la.matrix_power(x, 0.5), TypeError),
    "pinv": (lambda x: la.pinv(x, 0.1, rtol=0.1), ValueError),
    "rank": (lambda x: la.matrix_rank(x, 0.1, rtol=0.1), ValueError),
    "tensorinv": (lambda x: la.tensorinv(x, 0), ValueError),
    "lstsq": (lambda x: la.lstsq(x, np.ones(4)), la.LinAlgError),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_error_classes_equal_numpys(name):
    function, kind = WRONG[name]
    with pytest.raises(kind):
        function(GOOD)
    with pytest.raises(kind):
        jit(lambda x: function(x), platform="interpreter")(GOOD)


@pytest.mark.parametrize("make", [np.real, lambda x: x], ids=["real", "complex"])
def test_gradient_of_a_determinant_needs_no_inverse(make):
    """Tested on a stack of a regular matrix, one of rank n - 1 and one of rank n - 2."""
    x = make(np.random.default_rng(3).normal(size=(3, 3, 3)) * (1 + 0.3j))
    x[1, 1] = x[1, 0]
    x[2, 1:] = x[2, 0]
    found = jit(cyxla.grad(lambda x: np.sum(np.real(la.det(x)))), platform="interpreter")(x)
    for m, i, j in np.ndindex(x.shape):
        minor = np.delete(np.delete(x[m], i, 0), j, 1)
        np.testing.assert_allclose(found[m, i, j], (-1) ** (i + j) * la.det(minor), rtol=1e-10, atol=1e-13)


def _principal_components(x):
    values, vectors = np.linalg.eig(np.cov(x.T))
    order = np.argsort(values)[::-1]
    return x @ vectors[:, order], values[order]


COMPUTED = {
    "components": _principal_components, "first vector": lambda x: np.linalg.eig(x[:3])[1][:, 0],
    "twice": lambda x: np.linalg.eigvals(x[:3]) * 2, "radius": lambda x: np.abs(np.linalg.eigvals(x[:3])).max(),
}  # fmt: skip
OF_EIGENVALUES = {
    "real": np.diag([3.0, 1.0, 2.0, 0.0])[:, :3],
    "complex": np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 2.0], [1.0, 1.0, 2.0]]),
}


@pytest.mark.parametrize("matrix", OF_EIGENVALUES)
@pytest.mark.parametrize("name", COMPUTED)
def test_dtypes_of_arrays_computed_from_eigenvalues(name, matrix):
    x = OF_EIGENVALUES[matrix]
    got, want = cyxla.jit(COMPUTED[name], fallback="numpy")(x), COMPUTED[name](x)
    for one, other in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        assert one.dtype == other.dtype
        np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-12)
