"""Complex functions at zeros, infinities and nan equal NumPy's, on both platforms and in both tiers."""

from itertools import product

import numpy as np
import pytest

import cyxla

INF, NAN = np.inf, np.nan
PARTS = (0.0, -0.0, 1.0, -1.0, INF, -INF, NAN)
POINTS = np.array([complex(*parts) for parts in product(PARTS, repeat=2)])  # 49
PAIRS = [np.ascontiguousarray(each) for each in (np.repeat(POINTS, len(POINTS)), np.tile(POINTS, len(POINTS)))]

UNARY = {
    "exponentials": "exp exp2 expm1",
    "logarithms": "log log1p log2 log10",
    "circular": "sin cos tan",
    "hyperbolic": "sinh cosh tanh",
    "inverse circular": "arcsin arccos arctan",
    "inverse hyperbolic": "arcsinh arccosh arctanh",
    "algebraic": "sqrt square reciprocal absolute sign negative conjugate rint positive",
    "tests": "isfinite isinf isnan",
}
BINARY = {
    "powers": "power",
    "float powers": "float_power",
    "arithmetic": "add subtract multiply divide",
    "extremes": "maximum minimum fmax fmin",
    "order": "equal not_equal less less_equal greater greater_equal logical_and logical_or",
}
WHERE = [("interpreter", "native"), ("cpu", "native"), ("cpu", "kernels")]
KINDS = [np.complex64, np.complex128]


def differing_indices(got, want):
    """Return the indices of elements that differ by more than the last digits; the sign of zero counts."""
    if want.dtype.kind == "b":
        return np.flatnonzero(got != want)
    if want.dtype.kind == "c":
        return np.union1d(differing_indices(got.real, want.real), differing_indices(got.imag, want.imag))
    with np.errstate(invalid="ignore"):
        close = np.abs(got - want) <= (1e-6 if want.dtype.itemsize == 4 else 1e-13) * np.abs(want)
    alike = (close | (got == want)) & (np.signbit(got) == np.signbit(want))
    return np.flatnonzero(~(alike | (np.isnan(got) & np.isnan(want))))


def check(names, arrays, platform):
    functions = [getattr(np, name) for name in names.split()]
    with np.errstate(all="ignore"):
        wanted = [f(*arrays) for f in functions]
    result = cyxla.jit(lambda *xs: [f(*xs) for f in functions], platform=platform)(*arrays)
    wrong = []
    for name, got, want in zip(names.split(), result, wanted, strict=True):
        assert got.dtype == want.dtype, name
        for k in differing_indices(got, want)[:5]:
            wrong.append(f"{name}({', '.join(str(a[k]) for a in arrays)}) is {got[k]}, not {want[k]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform, tier", WHERE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subject", UNARY)
def test_functions_of_special_values(monkeypatch, subject, kind, platform, tier):
    monkeypatch.setenv("CYXLA_TIER", tier)
    check(UNARY[subject], [POINTS.astype(kind)], platform)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform, tier", WHERE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subject", BINARY)
def test_functions_of_pairs_of_special_values(monkeypatch, subject, kind, platform, tier):
    monkeypatch.setenv("CYXLA_TIER", tier)
    check(BINARY[subject], [x.astype(kind) for x in PAIRS], platform)


EXTREMES = {  # tiny, small, huge; NumPy overflows where the result is near the largest number
    np.complex64: (0.0, 1e-45, 1e-20, 0.5, 1.0, 1.5, 80.0, 1e6, 1e19, 3e38),
    np.complex128: (0.0, 5e-324, 1e-160, 0.5, 1.0, 1.5, 700.0, 1e6, 1e160, 1.7e308),
}
SMOOTH = "log sqrt arcsin arccos arctan arcsinh arccosh arctanh sin cos sinh cosh tanh exp"


@pytest.mark.parametrize("platform, tier", WHERE)
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_extreme_values(monkeypatch, kind, platform, tier):
    monkeypatch.setenv("CYXLA_TIER", tier)
    parts = [s * x for x in EXTREMES[kind] for s in (1.0, -1.0)]
    z = np.array([complex(*pair) for pair in product(parts, repeat=2)], kind)
    functions = [getattr(np, name) for name in SMOOTH.split()]
    result = cyxla.jit(lambda x: [f(x) for f in functions], platform=platform)(z)
    wide = z.astype(np.complex128 if kind is np.complex64 else np.clongdouble)
    wrong = []
    for f, got in zip(functions, result, strict=True):
        with np.errstate(all="ignore"):
            want = f(wide).astype(kind)
            unit = np.spacing(np.maximum(np.abs(want.real), np.abs(want.imag)))
            pairs = ((got.real, want.real), (got.imag, want.imag))
            bad = [~((np.abs(a - b) <= 4 * unit) | (a == b) | (np.isnan(a) & np.isnan(b))) for a, b in pairs]
        wrong += [f"{f.__name__}({z[k]}) is {got[k]}, not {want[k]}" for k in np.flatnonzero(bad[0] | bad[1])[:3]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("platform, tier", WHERE)
@pytest.mark.parametrize("function", [np.negative, np.log, np.absolute, np.sqrt])
def test_parts_of_python_complex_numbers_are_kept(monkeypatch, function, platform, tier):
    monkeypatch.setenv("CYXLA_TIER", tier)
    f = cyxla.jit(function, platform=platform)
    with np.errstate(all="ignore"):
        for z in POINTS:
            got, want = np.atleast_1d(f(complex(z))), np.atleast_1d(function(complex(z)))
            assert not differing_indices(got, want).size, (z, got, want)


@pytest.mark.parametrize("platform, tier", WHERE)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_python_complex_numbers_with_arrays_are_kept(monkeypatch, kind, platform, tier):
    monkeypatch.setenv("CYXLA_TIER", tier)
    f = cyxla.jit(lambda v, a: (v + a, v * a), platform=platform)
    v = np.array([0, 1 + 1j], kind)
    with np.errstate(all="ignore"):
        for a in POINTS:
            for got, want in zip(f(v, complex(a)), (v + complex(a), v * complex(a)), strict=True):
                assert got.dtype == want.dtype
                assert not differing_indices(got, want).size, (a, got, want)


TABLES = [(0.0, 1.0), (-INF, INF), (-INF, 1.0), (0.0, INF), (0.0, NAN)]
VALUES = [0j, complex(10, 10), complex(INF, 1), complex(1, -INF), complex(NAN, 2)]


def test_interpolation_of_special_values(backend):
    f = cyxla.jit(lambda x, xp, fp: np.interp(x, xp, fp), platform=backend)
    x = np.array([0.5, 0.25, 0.0, 1.0, -3.0, 3.0, INF, -INF, NAN])
    for xp, fp in product(np.array(TABLES), product(VALUES, repeat=2)):
        with np.errstate(all="ignore"):
            want = np.interp(x, xp, np.array(fp))
        got = f(x, xp, np.array(fp))
        alike = [(a == b) | (np.isnan(a) & np.isnan(b)) for a, b in ((got.real, want.real), (got.imag, want.imag))]
        assert np.all(alike), (xp, fp, got, want)


def test_i0_of_zero_is_one(backend):
    assert cyxla.jit(np.i0, platform=backend)(0.0) == 1.0
