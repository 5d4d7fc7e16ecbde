"""Dots against einsum, and the types they sum in."""

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import ElementType, element_type
from cyxla.xla.evaluator.numerics import products
from cyxla.xla.evaluator.numerics.products import accumulator, batched_product
from cyxla.xla.evaluator.ops.contraction import DotDims, contract

RNG = np.random.default_rng(0)


def numbers(dtype, shape, low=-4, high=5):
    return RNG.integers(low if dtype[0] not in "up" else 0, high, shape).astype(element_type(dtype).numpy_dtype)


@st.composite
def dots(draw):
    """An einsum equation over shuffled dimensions, and sizes of its letters."""
    counts = [draw(st.integers(0, 2)) for _ in range(4)]  # batch, contracting, free left, free right
    names = iter(string.ascii_lowercase)
    batch, inner, left, right = (tuple(next(names) for _ in range(n)) for n in counts)
    sizes = {letter: draw(st.integers(0, 4)) for letter in (*batch, *inner, *left, *right)}
    sides = [draw(st.permutations([*batch, *inner, *free])) for free in (left, right)]
    return batch, inner, left, right, sides, sizes


@settings(max_examples=200, deadline=None)
@given(dots(), st.sampled_from(["f32", "f64", "s32", "c64", "u8", "bf16"]))
def test_dot_is_einsum(problem, dtype):
    batch, inner, left, right, (ls, rs), sizes = problem
    a, b = (numbers(dtype, [sizes[c] for c in side]) for side in (ls, rs))
    dims = DotDims(*(tuple(side.index(c) for c in letters) for side in (ls, rs) for letters in (batch, inner)))
    got = contract(a, b, dims, element_type(dtype))
    wide = np.complex128 if dtype[0] == "c" else np.float64
    free = [c for c in (*ls, *rs) if c in left or c in right]
    equation = f"{''.join(ls)},{''.join(rs)}->{''.join((*batch, *free))}"
    want = np.einsum(equation, a.astype(wide), b.astype(wide))
    want = want % 256 if dtype == "u8" else want
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype(wide), want, rtol=2**-8 if dtype == "bf16" else 0)


# fmt: off
TYPES = [
    # left    right   result  values of left, right                  result
    ("s8",    "s8",   "s8",   [100, 100], [1, 1],                    -56),
    ("s8",    "s8",   "s32",  [100, 100], [100, 100],                20000),
    ("u8",    "s8",   "s32",  [200, 1],   [-2, 1],                   -399),
    ("s64",   "s64",  "s64",  [2**62, 1], [2, 5],                    -2**63 + 5),
    ("u64",   "u64",  "u64",  [2**63, 3], [1, 7],                    2**63 + 21),
    ("bf16",  "bf16", "bf16", [256, 1, 1, 1, 1], [1] * 5,            260),
    ("f16",   "f16",  "f16",  [60000, 60000, -60000], [1, 1, 1],     60000),
    ("bf16",  "bf16", "f32",  [256, 1], [1, 1],                      257),
    ("f32",   "f32",  "f32",  [1e8, 1, -1e8], [1, 1, 1],             1),
    ("f32",   "f32",  "f64",  [1e8, 1], [1, 1],                      1e8 + 1),
    ("f8e4m3fn", "f8e5m2", "f16", [448, 448], [1, 1],                896),
    ("s4",    "s4",   "s32",  [-8, 7], [7, 7],                       -7),
    ("c64",   "c64",  "c64",  [1j, 2], [1j, 3],                      5),
    ("pred",  "pred", "pred", [True, False], [True, True],           True),
    ("pred",  "pred", "pred", [True, False], [False, True],          False),
]
# fmt: on


@pytest.mark.parametrize("left, right, result, a, b, want", TYPES)
def test_sums_run_in_a_wide_type_and_round_once(run, left, right, result, a, b, want):
    got = run(
        "dot",
        run.array(left, a),
        run.array(right, b),
        to=result,
        dims=(),
        lhs_contracting_dims=(0,),
        rhs_contracting_dims=(0,),
    )
    assert got.dtype == element_type(result).numpy_dtype
    assert got.astype(object) == want


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)), max_size=6))
def test_integers_wrap(pairs):
    a, b = (np.array([p[i] for p in pairs], np.int32).reshape(1, *shape) for i, shape in ((0, (1, -1)), (1, (-1, 1))))
    got = int(batched_product(a.reshape(1, 1, len(pairs)), b.reshape(1, len(pairs), 1), ElementType.S32)[0, 0, 0])
    assert (got - sum(x * y for x, y in pairs)) % 2**32 == 0


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_complex_products_of_infinities_follow_the_definition(dtype):
    """BLAS scales sums by 1 + 0j, and has NaN in place of infinities."""
    a, b = (np.array(x, element_type(dtype).numpy_dtype)[None] for x in ([[1 + 1.25j, 2]], [[-np.inf], [1]]))
    with np.errstate(invalid="ignore"):
        (got,) = batched_product(a, b, element_type(dtype)).ravel()
    assert (got.real, got.imag) == (-np.inf, -np.inf)


def test_large_products_stay_in_single_precision(monkeypatch):
    monkeypatch.setattr(products, "WIDE_LIMIT", 10)
    x = np.ones((1, 4, 4), np.float32)
    assert accumulator(x, x, ElementType.F32, 64) is ElementType.F32
    assert accumulator(x, x, ElementType.F32, 10) is ElementType.F64
    assert accumulator(x.astype(np.float64), x, ElementType.F64, 64) is ElementType.F64
    np.testing.assert_array_equal(batched_product(x, x, ElementType.F32), 4 * x)


def test_scaled_dot_has_one_scale_for_a_block(hlo):
    a, b = numbers("f8e4m3fn", (2, 4)), numbers("f8e4m3fn", (4, 3))
    left = np.array([[1, 2], [4, 0.5]]).astype(element_type("f8e8m0fnu").numpy_dtype)
    right = np.array([[2, 1, 1], [1, 1, 8]]).astype(left.dtype)
    got = hlo(
        "f32[2,3] scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, rhs_contracting_dims={0}", a, b, left, right
    )
    wide = [x.astype(np.float64) for x in (a, b, left, right)]
    np.testing.assert_array_equal(got, (wide[0] * wide[2].repeat(2, 1)) @ (wide[1] * wide[3].repeat(2, 0)))


def owners(sizes, extent):
    """Which group owns each row; -1 for none."""
    return np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(extent, -1)])[:extent]


@pytest.mark.parametrize("sizes", [(3, 0, 4), (7, 0, 0), (2, 1, 1), (0, 0, 0), (5, 5, 5)])
class TestRagged:
    def test_free(self, hlo, sizes):
        a, b, g = numbers("f32", (7, 3)), numbers("f32", (3, 3, 4)), np.array(sizes, np.int32)
        got = hlo(
            "f32[7,4] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
            "lhs_ragged_dims={0}, rhs_group_dims={0}",
            a, b, g,
        )  # fmt: skip
        rows = owners(sizes, 7)
        np.testing.assert_array_equal(
            got, np.stack([a[i] @ b[r] if r >= 0 else np.zeros(4) for i, r in enumerate(rows)])
        )

    def test_contracting(self, hlo, sizes):
        a, b, g = numbers("bf16", (5, 7)), numbers("bf16", (7, 2)), np.array(sizes, np.int64)
        got = hlo(
            "bf16[3,5,2] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
            "lhs_ragged_dims={1}",
            a,
            b,
            g,
        )
        rows, wide = owners(sizes, 7), [x.astype(np.float64) for x in (a, b)]
        want = np.stack([wide[0][:, rows == n] @ wide[1][rows == n] for n in range(3)])
        np.testing.assert_array_equal(got.astype(np.float64), want)

    def test_batch(self, hlo, sizes):
        a, b, g = numbers("f64", (7, 2, 3)), numbers("f64", (7, 3, 2)), np.array(sizes, np.int32)
        got = hlo(
            "f64[7,2,2] ragged-dot(p0, p1, p2), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
            "rhs_contracting_dims={1}, lhs_ragged_dims={0}", a, b, g,
        )  # fmt: skip
        np.testing.assert_array_equal(got, a @ b)


def test_ragged_groups_of_each_batch_entry(hlo):
    a, b = numbers("f32", (2, 5, 3)), numbers("f32", (2, 3, 3, 4))
    sizes = np.array([[1, 4], [3, 1]], np.int32)
    got = hlo(
        "f32[2,5,4] ragged-dot(p0, p1, p2), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={1}, "
        "rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}", a, b[:, :2], sizes,
    )  # fmt: skip
    want = np.zeros((2, 5, 4))
    for n in range(2):
        for row, group in enumerate(owners(sizes[n], 5)):
            want[n, row] = a[n, row] @ b[group, n] if group >= 0 else 0
    np.testing.assert_array_equal(got, want)
