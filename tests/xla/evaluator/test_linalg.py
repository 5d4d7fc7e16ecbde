"""triangular-solve and cholesky: solutions, the triangle that is read, edge cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import Shape, element_type
from cyxla.xla.evaluator import evaluate_instruction
from cyxla.xla.hlo import Computation

TOLERANCE = {"f32": 1e-5, "f64": 1e-12, "c64": 1e-5, "c128": 1e-12, "bf16": 3e-2, "f16": 4e-3}


def matrix(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x


def solve(a, b, **attrs):
    comp = Computation("main")
    params = [comp.add("parameter", attrs={"parameter_number": n}, shape=Shape.of(v)) for n, v in enumerate((a, b))]
    return evaluate_instruction(comp.add("triangular-solve", params, attrs, shape=Shape.of(b)), a, b)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(TOLERANCE)), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]), st.lists(st.integers(0, 2), max_size=2),
    st.integers(1, 4), st.integers(0, 3),
)  # fmt: skip
def test_triangular_solve(dtype, left, lower, unit, transpose, batch, n, m):
    rng, kind = np.random.default_rng(n), element_type(dtype).numpy_dtype
    a = (0.2 * matrix(rng, dtype, *batch, n, n) + 2 * np.eye(n)).astype(kind)
    b = matrix(rng, dtype, *batch, *((n, m) if left else (m, n))).astype(kind)
    wide = np.complex128 if dtype[0] == "c" else np.float64
    seen = np.tril(a.astype(wide)) if lower else np.triu(a.astype(wide))
    if unit:
        seen = seen * (1 - np.eye(n)) + np.eye(n)
    if transpose != "NO_TRANSPOSE":
        seen = np.swapaxes(seen, -1, -2)
    seen = np.conj(seen) if transpose == "ADJOINT" else seen
    hidden = np.triu(np.full((n, n), np.nan), 1) if lower else np.tril(np.full((n, n), np.nan), -1)
    poisoned = np.where(np.isnan(hidden), np.nan, a.astype(wide)).astype(kind)  # the other triangle is never read
    x = solve(poisoned, b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=transpose).astype(wide)
    back = seen @ x if left else x @ seen
    np.testing.assert_allclose(back, b.astype(wide), atol=4 * TOLERANCE[dtype], rtol=4 * TOLERANCE[dtype])


def test_a_zero_on_the_diagonal_gives_infinity():
    x = solve(np.zeros((1, 1), np.float32), np.ones((1, 1), np.float32), left_side=True, lower=True)
    assert np.isinf(x).all()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 4, 4), (0, 0), (2, 0, 3, 3)])
def test_cholesky(run, dtype, lower, shape):
    rng = np.random.default_rng(0)
    half = matrix(rng, dtype, *shape)
    a = half @ np.conj(np.swapaxes(half, -1, -2)) + np.eye(shape[-1])
    seen = np.tril(a) if lower else np.triu(a)  # only this triangle counts
    factor = run("cholesky", seen.astype(element_type(dtype).numpy_dtype), lower=lower)
    other = np.conj(np.swapaxes(factor, -1, -2))
    np.testing.assert_allclose(factor @ other if lower else other @ factor, a, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(np.triu(factor, 1) if lower else np.tril(factor, -1), 0)


def test_cholesky_of_indefinite_matrices_is_nan(run):
    both = np.stack([-np.eye(2), 4 * np.eye(2)]).astype(np.float32)
    factor = run("cholesky", both, lower=True)
    assert np.isnan(factor[0]).all()
    np.testing.assert_array_equal(factor[1], 2 * np.eye(2))
