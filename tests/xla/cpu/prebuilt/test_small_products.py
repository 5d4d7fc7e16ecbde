"""Without a C compiler, prebuilt kernels compute small products, and NumPy the others."""

import numpy as np
import pytest

import cyxla
from cyxla.xla.cpu.dot.product import Product
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.prebuilt import uncompiled
from cyxla.xla.cpu.prebuilt.small_products import MAX_MULTIPLICATIONS, is_small

# function, sizes of its arrays, whether it runs on prebuilt kernels
CASES = {
    "matrix, vector": (lambda x, y: x @ y, [(32, 40), (40,)], True),
    "matrix, vector: many sums": (lambda x, y: x @ y, [(33, 40), (40,)], False),
    "matrix, row of it": (lambda x: x @ x[0], [(25, 40)], True),
    "vector, matrix": (lambda x, y: x @ y, [(64,), (64, 128)], True),
    "vector, matrix: much work": (lambda x, y: x @ y, [(65,), (65, 128)], False),
    "vector, few columns": (lambda x, y: x @ y, [(64,), (64, 3)], True),
    "vector, few columns: many rows": (lambda x, y: x @ y, [(65,), (65, 3)], False),
    "turned matrix, vector": (lambda x, y: x.T @ y, [(200, 32), (200,)], True),
    "turned matrix, vector: few columns": (lambda x, y: x.T @ y, [(200, 3), (200,)], False),
    "turned matrix, vector that is computed": (lambda x, y: x.T @ (y + 1), [(30, 31), (30,)], True),
    "large turned matrix, vector that is computed": (lambda x, y: x.T @ (y + 1), [(40, 31), (40,)], False),
    "vectors": (lambda x, y: x @ y, [(8192,), (8192,)], True),
    "long vectors": (lambda x, y: x @ y, [(8193,), (8193,)], False),
    "matrices": (lambda x, y: x @ y, [(20, 20), (20, 20)], True),
    "matrices: much work": (lambda x, y: x @ y, [(21, 20), (20, 20)], False),
    "matrices: many rows": (lambda x, y: x @ y, [(65, 3), (3, 3)], False),
    "few rows, turned": (lambda x: x @ x.T, [(3, 900)], True),
    "turned, few columns": (lambda x: x.T @ x, [(900, 3)], False),
    "batches": (lambda x, y: x @ y, [(4, 8, 9), (4, 9, 8)], True),
    "batches: many rows": (lambda x, y: x @ y, [(30, 3, 3), (30, 3, 3)], False),
    "a batch of matrices, a matrix": (lambda x, y: x @ y, [(2, 3, 5, 4), (4, 6)], True),
    "einsum": (lambda x, y: np.einsum("bij,bjk->bki", x, y), [(3, 5, 6), (3, 6, 7)], True),
    "products of a product": (lambda x, y: np.tanh(x @ y) @ x + 1, [(10, 11), (11, 10)], True),
}  # fmt: skip


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setenv("CYXLA_CC", "none")
    monkeypatch.setattr(uncompiled, "_warn", lambda: None)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CASES)
def test_small_products(no_compiler, name, dtype):
    function, sizes, is_prebuilt = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(dtype) for s in sizes]
    jitted = cyxla.jit(function)
    got, want = jitted(*arrays), function(*arrays)
    assert (jitted.compile(*arrays).missing is None) == is_prebuilt
    assert (type(got), got.dtype) == (type(want), want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-4 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("dtype", ["i4", "i8", "?", "f2", "c16"])
def test_types_without_prebuilt_products(no_compiler, dtype):
    x = np.ones((5, 5), dtype)
    jitted = cyxla.jit(lambda x: x @ x)
    np.testing.assert_array_equal(jitted(x), x @ x)
    assert jitted.compile(x).missing is not None


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 1e300])
def test_special_values(no_compiler, special):
    x = np.random.default_rng(0).standard_normal((7, 9))
    x[3, 4] = special
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(cyxla.jit(lambda x: x @ x.T)(x), x @ x.T)


def test_empty_products(no_compiler):
    for m, k, n in [(0, 3, 2), (2, 0, 3), (3, 2, 0)]:
        x, y = np.ones((m, k)), np.ones((k, n))
        np.testing.assert_array_equal(cyxla.jit(lambda x, y: x @ y)(x, y), x @ y)


def product(text):
    return cyxla.hlo.parse_module(text).entry.root


def test_layers_of_batches_count():
    """All matrices of a batch count, in work and in rows."""
    dot = product("""HloModule t
ENTRY e { x = f32[3,8,20] parameter(0) y = f32[3,20,17] parameter(1)
 ROOT d = f32[3,8,17] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
  rhs_contracting_dims={1} }""")
    p = Product.of(dot)
    assert p.batch * p.m * p.n * p.k == 8160 <= MAX_MULTIPLICATIONS
    assert is_small(dot)


def test_short_kernels_are_prebuilt_only_there():
    assert not prebuilt_calls.is_long(1)
    with prebuilt_calls.any_cost():
        assert prebuilt_calls.is_long(1)
    assert not prebuilt_calls.is_long(1)
