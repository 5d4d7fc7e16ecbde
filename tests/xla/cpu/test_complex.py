"""Complex arithmetic agrees with the oracle at infinities, NaNs, zeros and the ends of the range."""

from itertools import product

import numpy as np
import pytest
from differential import agree

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
    "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "rsqrt", "sign", "sqrt", "tan", "tanh",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_functions_at_the_edges(opcode, dtype):
    real = {"c64": np.float32, "c128": np.float64}[dtype]
    parts = [-INF, -1e20, -2.5, -0.0, 0.0, 1.0, 1e20, INF, NAN]
    x = np.array(list(product(parts, repeat=2)), real).view(f"c{2 * real().nbytes}").reshape(-1)
    text = f"HloModule m\nENTRY e {{ x = {dtype}[{len(x)}] parameter(0) ROOT r = {dtype}[{len(x)}] {opcode}(x) }}"
    with np.errstate(all="ignore"):
        agree(text, x, ulp=64)


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
