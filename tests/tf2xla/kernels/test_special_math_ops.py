"""Compiled special functions against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, check, close, drawn, run

special = pytest.importorskip("scipy.special")

INF, NAN = float("inf"), float("nan")
WIDE = np.concatenate([np.linspace(-30, 30, 301), np.logspace(-30, 30, 61), -np.logspace(-9, 9, 19), [INF, NAN]])
UNIT = np.concatenate([np.linspace(0.001, 0.999, 101), np.logspace(-37, -1, 37)])
# Name, SciPy's function, where.
ONE: list[tuple[str, str, Any]] = [
    ("Erfc", "erfc", WIDE),
    ("BesselI0e", "i0e", WIDE),
    ("BesselI1e", "i1e", WIDE),
    ("Lgamma", "gammaln", np.concatenate([WIDE, np.arange(-5, 9)])),
    ("Digamma", "digamma", WIDE[np.floor(WIDE) != WIDE]),
    ("Erfinv", "erfinv", np.concatenate([-UNIT, UNIT, [0, 1, -1, 2, NAN]])),
    ("Ndtri", "ndtri", np.concatenate([UNIT, 1 - UNIT, [0, 1, 2, -1, NAN]])),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name, wanted, values", ONE)
def test_functions_of_one_number(name: str, wanted: str, values: Any, dtype: Any) -> None:
    """Each number by itself has almost all digits of its type."""
    with np.errstate(over="ignore"):
        x = np.asarray(values).astype(dtype)
        x = x[~np.isneginf(x) & ~((name == "Digamma") & (x <= 0) & (x == np.floor(x)))]  # SciPy has values of its own
        expected = getattr(special, wanted)(x.astype(np.float64)).astype(dtype)
    normal = np.isnan(expected) | (np.abs(expected) > np.finfo(dtype).tiny) | (expected == 0)
    for platform in PLATFORMS if dtype is not np.float16 else PLATFORMS[:1]:
        (got,) = run(name, x, platform=platform)
        assert got.dtype == dtype
        tolerance = {np.float16: 2e-3, np.float32: 4e-6, np.float64: 1e-12}[dtype]
        floor = {np.float16: 1e-7, np.float32: 1e-6, np.float64: 1e-13}[dtype]
        np.testing.assert_allclose(
            got[normal].astype(np.float64), expected[normal].astype(np.float64), rtol=tolerance, atol=floor
        )


def test_poles_and_infinities() -> None:
    (got,) = run("Lgamma", np.array([0, -1, -2, INF, -INF]))
    np.testing.assert_array_equal(got, INF)
    (got,) = run("Digamma", np.array([0, -1, -2, INF, -INF]))
    np.testing.assert_array_equal(got, [NAN, NAN, NAN, INF, NAN])


def _pairs(count: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    a = 10 ** rng.uniform(-2, 3, count)
    return a, a * 10 ** rng.uniform(-1, 1, count)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, wanted", [("Igamma", "gammainc"), ("Igammac", "gammaincc")])
def test_incomplete_gamma(name: str, wanted: str, dtype: Any) -> None:
    """Also at the ends of the domain, and outside of it."""
    a, x = _pairs()
    a = np.concatenate([a, [1, 1, -1, 1, INF, NAN, 0]]).astype(dtype)
    x = np.concatenate([x, [0, INF, 1, -1, 1, 1, -1]]).astype(dtype)
    expected = getattr(special, wanted)(a.astype(np.float64), x.astype(np.float64)).astype(dtype)
    for platform in PLATFORMS:
        close(run(name, a, x, platform=platform), [expected])


def test_incomplete_gamma_of_narrow_types_and_broadcasts() -> None:
    a, x = np.array([[0.5], [3]], np.float16), np.array([0.25, 1, 4], np.float16)
    expected = special.gammainc(a.astype(np.float64), x.astype(np.float64)).astype(np.float16)
    close(run("Igamma", a, x), [expected])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["IgammaGradA", "RandomGammaGrad"])
def test_derivatives_of_incomplete_gamma(name: str, dtype: Any) -> None:
    a, x = (v.astype(dtype) for v in _pairs())
    check(name, a, x)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_betainc(dtype: Any) -> None:
    """Scalars stand beside arrays; the ends of the domain have exact values."""
    rng = np.random.default_rng(2)
    a, b = 10 ** rng.uniform(-2, 2, 50), 10 ** rng.uniform(-2, 2, 50)
    x = rng.uniform(0, 1, 50)
    x[:6], a[3], b[4] = [0, 1, -1, 0.5, 0.5, 2], -1, 0
    a, b, x = (v.astype(dtype) for v in (a, b, x))
    expected = special.betainc(*(v.astype(np.float64) for v in (a, b, x))).astype(dtype)
    expected[[2, 3, 4, 5]] = NAN
    for platform in PLATFORMS:
        close(run("Betainc", a, b, x, platform=platform), [expected])
    check("Betainc", dtype(2), dtype(3), x[6:])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeta(dtype: Any) -> None:
    """For positive q by SciPy; below 0 by adding the terms that come before."""
    rng = np.random.default_rng(3)
    x, q = rng.uniform(1.1, 20, 60).astype(dtype), rng.uniform(0.2, 40, 60).astype(dtype)
    check("Zeta", x, q)
    x, q = np.array([2, 3, 4, 5], dtype), np.array([-0.5, -3.25, -7.75, -0.125], dtype)
    terms = [
        sum((w + k) ** -p for k in range(20)) + special.zeta(p, w + 20)
        for p, w in zip(x.tolist(), q.tolist(), strict=True)
    ]
    close(run("Zeta", x, q), [np.array(terms, dtype)])
    x, q = np.array([1, 0.5, 2, 3, 2.5, NAN], dtype), np.array([2, 2, -1, -1, -0.5, 1], dtype)
    close(run("Zeta", x, q), [np.array([INF, NAN, INF, NAN, NAN, NAN], dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_polygamma(dtype: Any) -> None:
    n = np.array([0, 1, 2, 3, 5, 0, 1.5, -1], dtype)
    x = np.array([2.5, 0.3, 7, 1, 12, -0.5, 2, 2], dtype)
    expected = [special.polygamma(int(k), v) for k, v in zip(n[:6], x[:6].astype(np.float64), strict=True)] + [NAN, NAN]
    for platform in PLATFORMS:
        close(run("Polygamma", n, x, platform=platform), [np.array(expected, dtype)])


def test_polygamma_below_zero_where_terms_cancel() -> None:
    """Halfway between poles, even derivatives are those as far above 1 (reflection formula, DLMF 5.15.6)."""
    n, above = np.array([2.0, 4, 30, 60, 88, 88]), np.array([1.5, 4.5, 11.5, 1.5, 1.5, 2.5])
    for platform in PLATFORMS:
        close(run("Polygamma", n, 1 - above, platform=platform), run("Polygamma", n, above, platform=platform))


@pytest.mark.parametrize("name", [row[0] for row in ONE])
def test_empty_arrays_and_scalars(name: str) -> None:
    check(name, np.zeros((0, 3), np.float32))
    check(name, np.float64(0.25), platforms=PLATFORMS[:1])


@pytest.mark.parametrize("name", ["Igamma", "IgammaGradA", "Zeta", "Polygamma"])
def test_empty_loops(name: str) -> None:
    check(name, np.zeros((0, 3), np.float32), drawn((3,)))
