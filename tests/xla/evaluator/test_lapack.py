"""LAPACK custom calls: each result is put together again, for every element type and over a batch."""

import numpy as np
import pytest

from cyxla.xla.evaluator.custom_calls import custom_call_targets

LETTERS = {"s": ("f32", np.float32), "d": ("f64", np.float64), "c": ("c64", np.complex64), "z": ("c128", np.complex128)}
REAL = {"f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64"}
COMPLEX = {"f32": "c64", "f64": "c128", "c64": "c64", "c128": "c128"}


@pytest.fixture(params=sorted(LETTERS))
def letter(request):
    return request.param


@pytest.fixture(params=[(), (2,), (2, 0), (1, 2)], ids=str)
def batch(request):
    return request.param


@pytest.fixture
def call(hlo, letter, batch):
    """call(routine, results as (type, *sizes of one problem), *operands, **options)."""
    own = LETTERS[letter][0]

    def run(routine, results, *operands, **options):
        names = {"T": own, "R": REAL[own], "C": COMPLEX[own], "I": "s32"}
        shapes = [f"{names[kind]}[{','.join(map(str, (*batch, *sizes)))}]" for kind, *sizes in results]
        shape = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
        given = ", ".join(f"p{n}" for n in range(len(operands)))
        spelled = ", ".join(f"{k} = {spell(v)}" for k, v in options.items())
        target = f'custom_call_target="lapack_{letter}{routine}_ffi"'
        return hlo(f"{shape} custom-call({given}), {target}, backend_config={{{spelled}}}", *operands)

    return run


def spell(value):
    if isinstance(value, bool):
        return str(value).lower()
    return f"{ord(value)} : ui8" if isinstance(value, str) else f"{value} : i32"


@pytest.fixture
def matrix(letter, batch):
    def make(*sizes):
        rng = np.random.default_rng(sum(sizes))
        x = rng.standard_normal((*batch, *sizes))
        return (x + 1j * rng.standard_normal(x.shape) if letter in "cz" else x).astype(LETTERS[letter][1])

    return make


def h(x):
    return np.conj(np.swapaxes(x, -1, -2))


def close(got, want):
    np.testing.assert_allclose(got, want, atol=2e-4 if got.dtype in (np.float32, np.complex64) else 1e-10, rtol=1e-4)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_potrf(call, matrix, uplo):
    a = matrix(3, 3)
    a = (a @ h(a) + np.eye(3)).astype(a.dtype)
    factor, info = call("potrf", [("T", 3, 3), ("I",)], a, uplo=uplo)
    triangle = np.tril(factor) if uplo == "L" else np.triu(factor)
    close(triangle @ h(triangle) if uplo == "L" else h(triangle) @ triangle, a)
    assert not info.any()
    assert (call("potrf", [("T", 3, 3), ("I",)], -a, uplo=uplo)[1] > 0).all()


@pytest.mark.parametrize("side", ["L", "R"])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_trsm(call, matrix, side, trans):
    a, b = (matrix(3, 3) + 3 * np.eye(3)).astype(matrix(3, 3).dtype), matrix(3, 3)
    x = call("trsm", [("T", 3, 3)], a, b, side=side, uplo="U", trans_x=trans, diag="N")
    op = {"N": np.triu(a), "T": np.swapaxes(np.triu(a), -1, -2), "C": h(np.triu(a))}[trans]
    close(op @ x if side == "L" else x @ op, b)


@pytest.mark.parametrize("m, n", [(4, 4), (5, 3), (3, 5)])
def test_getrf(call, matrix, m, n):
    a, k = matrix(m, n), min(m, n)
    lu, pivots, info = call("getrf", [("T", m, n), ("I", k), ("I",)], a)
    product = (np.tril(lu[..., :, :k], -1) + np.eye(m, k)) @ np.triu(lu[..., :k, :])
    for at in np.ndindex(a.shape[:-2]):
        order = np.arange(m)
        for i, p in enumerate(pivots[at]):
            order[[i, p - 1]] = order[[p - 1, i]]
        close(product[at], a[at][order])
    assert not info.any()


def q_name(letter, routine):
    return ("un" if letter in "cz" else "or") + routine


@pytest.mark.parametrize("m, n", [(4, 4), (5, 3)])
def test_geqrf_and_its_users(call, matrix, letter, m, n):
    a = matrix(m, n)
    packed, tau = call("geqrf", [("T", m, n), ("T", n)], a)
    q = call(q_name(letter, "gqr"), [("T", m, n)], packed, tau)
    close(q @ np.triu(packed[..., :n, :]), a)
    close(h(q) @ q, np.broadcast_to(np.eye(n), (*a.shape[:-2], n, n)))
    c = matrix(m, 2)
    turned = call(q_name(letter, "mqr"), [("T", m, 2)], packed, tau, c, left=True, transpose=True)
    close(turned[..., :n, :], h(q) @ c)
    close(call(q_name(letter, "mqr"), [("T", m, 2)], packed, tau, turned, left=True, transpose=False), c)


@pytest.mark.parametrize("fixed", [[0, 0, 0, 0], [0, 1, 0, 1]])
@pytest.mark.parametrize("m", [3, 6])
def test_geqp3(call, matrix, letter, m, fixed):
    a, k = matrix(m, 4), min(m, 4)
    marks = np.broadcast_to(np.int32(fixed), (*a.shape[:-2], 4))
    packed, order, tau = call("geqp3", [("T", m, 4), ("I", 4), ("T", k)], a, marks)
    q = call(q_name(letter, "gqr"), [("T", m, k)], packed[..., :k], tau)
    product = q @ np.triu(packed[..., :k, :])
    for at in np.ndindex(a.shape[:-2]):
        close(product[at], a[at][:, order[at] - 1])
        assert {int(i) for i in order[at][: sum(fixed)]} == {i + 1 for i, f in enumerate(fixed) if f}


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_symmetric_eigenvalues(call, matrix, letter, uplo):
    a = matrix(4, 4)
    a = a + h(a)
    seen = np.tril(a) if uplo == "L" else np.triu(a)
    vectors, values, info = call(
        "heevd" if letter in "cz" else "syevd", [("T", 4, 4), ("R", 4), ("I",)], seen, mode="V", uplo=uplo
    )
    close(vectors * values[..., None, :] @ h(vectors), a)
    assert not info.any()


def test_geev(call, matrix, letter):
    a = matrix(5, 5)
    values = [("R", 5), ("R", 5)] if letter in "sd" else [("T", 5)]
    *parts, left, right, info = call(
        "geev", [*values, ("C", 5, 5), ("C", 5, 5), ("I",)], a, compute_left="V", compute_right="V"
    )
    w = parts[0] + 1j * parts[1] if letter in "sd" else parts[0]
    close(a @ right, right * w[..., None, :])
    close(h(left) @ a, w[..., :, None] * h(left))
    assert not info.any()


@pytest.mark.parametrize("routine", ["gesdd", "gesvd"])
@pytest.mark.parametrize("mode", ["S", "A", "N"])
@pytest.mark.parametrize("m, n", [(4, 3), (2, 4)])
def test_singular_values(call, matrix, routine, mode, m, n):
    a, k = matrix(m, n), min(m, n)
    rows, columns = (m, n) if mode == "A" else (k, k)
    results = [("T", m, n), ("R", k), ("T", m, rows), ("T", columns, n), ("I",)]
    _, s, u, vt, info = call(routine, results, a, mode=mode)
    close(s, np.linalg.svd(a, compute_uv=False) if a.size else s)
    if mode != "N":
        close(u[..., :k] * s[..., None, :] @ vt[..., :k, :], a)
    assert not info.any()


def test_schur(call, matrix, letter):
    a = matrix(4, 4)
    values = [("T", 4)] * (2 if letter in "sd" else 1)
    t, z, *_, info = call("gees", [("T", 4, 4), ("T", 4, 4), *values, ("I",), ("I",)], a, mode="V", sort="N")
    close(z @ t @ h(z), a)
    assert not info.any()


def reflect(packed, tau, size):
    """The product of the reflectors stored below the first subdiagonal."""
    q = np.eye(size, dtype=packed.dtype)
    for i, factor in enumerate(tau):
        v = np.zeros(size, packed.dtype)
        v[i + 1], v[i + 2 :] = 1, packed[i + 2 :, i]
        q = q @ (np.eye(size) - factor * np.outer(v, v.conj()))
    return q


def test_hessenberg(call, matrix):
    a = matrix(5, 5)
    packed, tau, info = call("gehrd", [("T", 5, 5), ("T", 4), ("I",)], a, low=1, high=5)
    for at in np.ndindex(a.shape[:-2]):
        q = reflect(packed[at], tau[at], 5)
        close((q @ np.triu(packed[at], -1) @ h(q)).astype(a.dtype), a[at])
    assert not info.any()


def test_tridiagonal(call, matrix, letter):
    a = matrix(4, 4)
    a = a + h(a)
    name = "hetrd" if letter in "cz" else "sytrd"
    packed, d, e, tau, info = call(name, [("T", 4, 4), ("R", 4), ("R", 3), ("T", 3), ("I",)], a, uplo="L")
    for at in np.ndindex(a.shape[:-2]):
        q = reflect(packed[at], tau[at], 4)
        middle = np.diag(d[at]) + np.diag(e[at], 1) + np.diag(e[at], -1)
        close((q @ middle @ h(q)).astype(a.dtype), a[at])
    assert not info.any()


def bands(dl, d, du):
    n = d.size
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1) if n > 1 else np.diag(d)


PERTURBED = 'custom-call(p0, p1, p2, p3), custom_call_target="tridiagonal_solve_perturbed_ffi"'


@pytest.mark.parametrize("n", [1, 2, 6])
def test_tridiagonal_systems(call, matrix, hlo, letter, n):
    dl, d, du, b = matrix(n), matrix(n), matrix(n, 1)[..., 0], matrix(n, 2)
    *_, x, info = call("gtsv", [("T", n)] * 3 + [("T", n, 2), ("I",)], dl, d, du, b)
    shape = f"{LETTERS[letter][0]}[{','.join(map(str, b.shape))}]"
    perturbed = hlo(f"{shape} {PERTURBED}", dl, d, du, b)
    for at in np.ndindex(b.shape[:-2]):
        want = np.linalg.solve(bands(dl[at], d[at], du[at]), b[at])
        np.testing.assert_allclose(x[at], want, rtol=2e-3, atol=1e-3)
        np.testing.assert_allclose(perturbed[at], want, rtol=2e-3, atol=1e-3)
    assert not info.any()


def test_a_singular_tridiagonal_system_has_a_finite_solution(hlo):
    d, zero = np.float64([1, 0, 3]), np.zeros(3)
    x = hlo(f"f64[3,1] {PERTURBED}", zero, d, zero, np.ones((3, 1)))
    assert np.isfinite(x).all()
    assert x[1, 0] == pytest.approx(1 / (3 * np.finfo(np.float64).eps))


def test_matrices_with_nan_or_infinity_are_refused(hlo):
    a = np.full((2, 2), np.nan, np.float32)
    text = '(f32[2,2], f32[2], s32[]) custom-call(p0), custom_call_target="lapack_ssyevd_ffi"'
    vectors, _, info = hlo(text + ", backend_config={mode = 86 : ui8, uplo = 76 : ui8}", a)
    assert np.isnan(vectors).all()
    assert info != 0


def test_every_routine_has_its_letters():
    known = set(custom_call_targets())
    for routine in ("potrf", "trsm", "getrf", "geqrf", "geqp3", "geev", "gesdd", "gesvd", "gees", "gehrd", "gtsv"):
        assert {f"lapack_{x}{routine}_ffi" for x in "sdcz"} <= known
