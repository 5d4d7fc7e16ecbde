"""Claim: products and row sums keep up with NumPy's."""

import numpy as np
import pytest

import cyxla

DOT = (
    "ENTRY e {{ a = f32[{n},{n}] parameter(0) b = f32[{n},{n}] parameter(1) "
    "ROOT r = f32[{n},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"
)
SUM = (
    "add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }} "
    "ENTRY e {{ a = f32[{n},{n}] parameter(0) z = f32[] constant(0) "
    "ROOT r = f32[{n}] reduce(a, z), dimensions={{{d}}}, to_apply=add }}"
)


@pytest.mark.parametrize("n", [64, 128, 256, 512])
def test_matmul(benchmark, claim, best_time, n):
    a, b = np.random.default_rng(0).standard_normal((2, n, n), dtype=np.float32)
    run = cyxla.compile(DOT.format(n=n))
    np.testing.assert_allclose(run(a, b), a @ b, rtol=1e-4, atol=1e-3)
    claim(f"product of {n}x{n}: times as fast as NumPy", best_time(lambda: a @ b) / best_time(lambda: run(a, b)), "x")
    benchmark(run, a, b)


@pytest.mark.parametrize("axis", [0, 1])
def test_sum(benchmark, claim, best_time, axis):
    n = 2048
    a = np.random.default_rng(0).standard_normal((n, n), dtype=np.float32)
    run = cyxla.compile(SUM.format(n=n, d=axis))
    np.testing.assert_allclose(run(a), a.sum(axis), rtol=1e-3, atol=1e-2)
    claim(
        f"sum of {n}x{n} over axis {axis}: times as fast as NumPy",
        best_time(lambda: a.sum(axis)) / best_time(lambda: run(a)),
        "x",
    )
    benchmark(run, a)
