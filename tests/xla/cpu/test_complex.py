"""Complex arithmetic agrees with the oracle at infinities, NaNs, zeros and the ends of the range."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from support.hlo.differential import agree

import cyxla

PARTS = {
    "c64": [0.0, -0.0, 1.0, -3.0, 1e-41, -3e38, np.inf, -np.inf, np.nan],
    "c128": [0.0, -0.0, 1.0, -3.0, 1e-300, -1e300, np.inf, -np.inf, np.nan],
}
INF, NAN = np.inf, np.nan
# (a, b, a / b) by C99 annex G
QUOTIENTS = [
    (complex(1, 2), complex(0, 0), complex(INF, INF)),
    (complex(1, -2), complex(-0.0, 0), complex(-INF, INF)),
    (complex(0, 0), complex(0, 0), complex(NAN, NAN)),
    (complex(INF, 1), complex(1, 1), complex(INF, -INF)),
    (complex(INF, INF), complex(1, 2), complex(INF, NAN)),
    (complex(1, 2), complex(INF, INF), complex(0, 0)),
    (complex(1, 2), complex(INF, NAN), complex(0, 0)),
    (complex(NAN, 1), complex(1, 1), complex(NAN, NAN)),
    (complex(6, 8), complex(0, 2), complex(4, -3)),
]


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_products_are_not_fused(dtype):
    kind, real = {"c64": (np.complex64, np.float32), "c128": (np.complex128, np.float64)}[dtype]
    parts = np.array(list(product(PARTS[dtype], repeat=4)))
    x, y = (np.ascontiguousarray(parts[:, k : k + 2]).astype(real).reshape(-1).view(kind) for k in (0, 2))
    n = len(x)
    text = (
        f"HloModule m\nENTRY e {{ x = {dtype}[{n}] parameter(0) y = {dtype}[{n}] parameter(1) "
        f"ROOT r = {dtype}[{n}] multiply(x, y) }}"
    )
    with np.errstate(all="ignore"):
        agree(text, x, y, ulp=0)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_quotients_without_a_value(dtype):
    kind = {"c64": np.complex64, "c128": np.complex128}[dtype]
    x, y, want = (np.array([q[k] for q in QUOTIENTS] * 4, kind) for k in range(3))
    n = len(x)
    text = (
        f"HloModule m\nENTRY e {{ x = {dtype}[{n}] parameter(0) y = {dtype}[{n}] parameter(1) "
        f"ROOT q = {dtype}[{n}] divide(x, y) }}"
    )
    got = cyxla.compile(text)(x, y)
    np.testing.assert_allclose(got.real, want.real, rtol=1e-6)
    np.testing.assert_allclose(got.imag, want.imag, rtol=1e-6)


FUNCTIONS = [
    "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "cosh", "cosine", "exponential", "exponential-minus-one", "log",
    "log-plus-one", "logistic", "rsqrt", "sign", "sine", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
EDGES = [-INF, -1e20, -2.5, -0.0, 0.0, 1.0, 1e20, INF, NAN]
FAR = {"c64": [1e-45, 1e-30, 88.5, 3.4e38], "c128": [5e-324, 1e-200, 709.5, 1.7e308]}


def plane(dtype, parts):
    """All numbers of these parts."""
    real = {"c64": np.float32, "c128": np.float64}[dtype]
    return np.array(list(product(parts, repeat=2)), real).view(f"c{2 * real().nbytes}").reshape(-1)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_functions_at_the_edges(opcode, dtype):
    x = plane(dtype, [*EDGES, *FAR[dtype], *(-n for n in FAR[dtype])])
    text = f"HloModule m\nENTRY e {{ x = {dtype}[{len(x)}] parameter(0) ROOT r = {dtype}[{len(x)}] {opcode}(x) }}"
    with np.errstate(all="ignore"):
        agree(text, x, ulp=64)


ZEROS = [0.0, -0.0, 1.0, -2.5, INF, NAN]
OFF_THE_CUT = [0.5, 1.0, -2.5, 1e6, INF, NAN]  # on it, the last digits tell the side


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(
    "opcode, parts", [("atan2", OFF_THE_CUT), ("maximum", ZEROS), ("minimum", ZEROS), ("power", ZEROS)]
)
def test_functions_of_two_at_the_edges(opcode, parts, dtype):
    points = plane(dtype, parts)
    x, y = np.repeat(points, len(points)), np.tile(points, len(points))
    kind = f"{dtype}[{len(x)}]"
    text = f"HloModule m\nENTRY e {{ x = {kind} parameter(0) y = {kind} parameter(1) ROOT r = {kind} {opcode}(x, y) }}"
    with np.errstate(all="ignore"):
        agree(text, x, y, ulp=64, floor=1.0)


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_angles_of_real_numbers(scale):
    x, y = (np.array(v) * scale for v in zip(*product([-2.0, 0.5, 3.0], [-1.0, 0.25, 7.0]), strict=True))
    text = "ENTRY e { y = c128[9] parameter(0) x = c128[9] parameter(1) ROOT r = c128[9] atan2(y, x) }"
    got = cyxla.compile(text)(y + 0j, x + 0j)
    np.testing.assert_allclose(got.real, np.arctan2(y, x), rtol=1e-15)
    assert np.abs(got.imag).max() < 1e-15


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_clamp_is_in_the_order_of_parts(dtype):
    points = plane(dtype, [0.0, 1.0, -2.0, NAN])
    kind = f"{dtype}[{len(points)}]"
    text = f"""ENTRY e {{ low = {dtype}[] constant((-1, 5)) high = {dtype}[] constant((1, 0.5))
        x = {kind} parameter(0) ROOT r = {kind} clamp(low, x, high) }}"""
    agree(text, points, ulp=0)


DIRECTIONS = [complex(INF, INF), complex(INF, NAN), complex(-INF, INF), complex(-INF, NAN)]


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_nothing_is_known_of_powers_in_unknown_directions(dtype, backend):
    """As XLA and StableHLO have it; NumPy's function gives infinity and zero."""
    x = np.array(DIRECTIONS, {"c64": np.complex64, "c128": np.complex128}[dtype])
    got = cyxla.compile(
        f"ENTRY e {{ x = {dtype}[4] parameter(0) ROOT r = {dtype}[4] exponential(x) }}", platform=backend
    )(x)
    assert np.isnan(got.real).all()
    assert np.isnan(got.imag).all()


def size_of_log(x, y):
    """log|x + iy| for numbers beside the unit circle, of the exact sum of squares."""
    apart = Fraction(x) ** 2 + Fraction(y) ** 2 - 1
    return float(sum((-1) ** (n + 1) * apart**n / n for n in range(1, 8)) / 2)


BESIDE = [
    (1.0, 1e-12), (1.000000000000001, 3e-08), (-1.0, 5e-9), (0.6, 0.8), (-0.8, 0.6), (0.28, -0.96), (1e-10, 1.0),
    (0.7071067811865476, 0.7071067811865475), (5 / 13, 12 / 13), (0.9999999999999999, 1e-9), (3e-17, -1.0),
]  # fmt: skip


@pytest.mark.parametrize("opcode", ["log", "log-plus-one"])
def test_logarithms_beside_the_unit_circle(opcode):
    x = np.array([complex(*z) for z in BESIDE])
    x = x if opcode == "log" else np.array([z for z in x - 1 if z.real + 1 - 1 == z.real])
    got = cyxla.compile(f"ENTRY e {{ x = c128[{len(x)}] parameter(0) ROOT r = c128[{len(x)}] {opcode}(x) }}")(x)
    move = 0 if opcode == "log" else 1
    wanted = [size_of_log(Fraction(z.real) + move, z.imag) for z in x]
    np.testing.assert_allclose(got.real, wanted, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_division_of_random_numbers(dtype):
    rng = np.random.default_rng(0)
    kind = {"c64": np.complex64, "c128": np.complex128}[dtype]
    n = 1000
    x, y = ((rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(kind) for _ in range(2))
    text = (
        f"HloModule m\nENTRY e {{ x = {dtype}[{n}] parameter(0) y = {dtype}[{n}] parameter(1) "
        f"ROOT q = {dtype}[{n}] divide(x, y) }}"
    )
    got, want = cyxla.compile(text)(x, y), x.astype(np.complex128) / y.astype(np.complex128)
    assert np.max(np.abs(got - want) / np.abs(want)) < (1e-7 if dtype == "c64" else 1e-15)


@pytest.mark.parametrize("size", ["", "4", "129"])
@pytest.mark.parametrize("opcode", ["cosine", "exponential", "log", "sqrt", "tanh"])
def test_every_step_is_rounded(opcode, size):
    text = f"""ENTRY e {{ x = c64[{size}] parameter(0)
        y = c64[{size}] {opcode}(x)
        ROOT z = c128[{size}] convert(y) }}"""
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(129) + 1j * rng.standard_normal(129)).astype(np.complex64)
    z = cyxla.compile(text)(x[: int(size)] if size else x[0])
    assert np.all(z.astype(np.complex64).astype(np.complex128) == z)


def test_a_quotient_of_equal_numbers_is_not_fused():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(129) + 1j * rng.standard_normal(129)
    once = cyxla.compile("ENTRY e { x = c128[129] parameter(0) ROOT q = c128[129] divide(x, x) }")(x)
    twice = cyxla.compile(
        "ENTRY e { x = c128[129] parameter(0) y = c128[129] parameter(1) ROOT q = c128[129] divide(x, y) }"
    )(x, x.copy())
    assert once.tobytes() == twice.tobytes()
