"""Convolution against its definition, one product at a time."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import ElementType, element_type
from cyxla.xla.evaluator.numerics.window_views import window_count
from cyxla.xla.evaluator.ops import convolution
from cyxla.xla.evaluator.ops.convolution import convolve
from cyxla.xla.hlo.attributes import ConvDims, WindowDim

PLAIN = ConvDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))  # bf01_oi01->bf01


def by_definition(x, k, window, feature_groups, batch_groups):
    """x[b, f, s..] and k[o, i, s..] to [b, o, s..]."""
    batch, outputs, inner = x.shape[0] // batch_groups, k.shape[0], k.shape[1]
    places = [window_count(n, w) for n, w in zip(x.shape[2:], window, strict=True)]
    out = np.zeros((batch, outputs, *places), np.result_type(x, k))
    for b, o, *at in np.ndindex(out.shape):
        block = o // (outputs // (feature_groups * batch_groups))
        row = b + block * batch if batch_groups > 1 else b
        first = block * inner if feature_groups > 1 else 0
        for i, *tap in product(range(inner), *(range(w.size) for w in window)):
            place = [
                p * w.stride + t * w.window_dilation - w.padding_low for p, t, w in zip(at, tap, window, strict=True)
            ]
            real = [n // w.base_dilation for n, w in zip(place, window, strict=True)]
            inside = all(
                n % w.base_dilation == 0 and 0 <= r < size
                for n, r, w, size in zip(place, real, window, x.shape[2:], strict=True)
            )
            if inside:
                flipped = [w.size - 1 - t if w.window_reversal else t for t, w in zip(tap, window, strict=True)]
                out[b, o, *at] += x[row, first + i, *real] * k[o, i, *flipped]
    return out


def windows(size):
    small = st.integers(1, 2)
    return st.builds(
        WindowDim, st.just(size), small, st.integers(-2, 3), st.integers(-2, 3), small, small, st.booleans()
    )


@st.composite
def problems(draw):
    spatial = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=2))
    feature, batch = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (3, 1)]))
    inner, outer, rows = (draw(st.integers(1, 2)) for _ in range(3))
    x = (rows * batch, inner * feature, *(n for n, _ in spatial))
    k = (outer * feature * batch, inner, *(m for _, m in spatial))
    return x, k, tuple(draw(windows(m)) for _, m in spatial), feature, batch


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(["f32", "s16", "c128"]), st.integers(0, 99))
def test_convolution_is_its_definition(problem, dtype, seed):
    x_shape, k_shape, window, feature, batch = problem
    rng, kind = np.random.default_rng(seed), element_type(dtype)
    x, k = (rng.integers(-5, 6, s).astype(kind.numpy_dtype) for s in (x_shape, k_shape))
    spatial = tuple(range(2, len(x_shape)))
    labels = ConvDims(0, 1, spatial, 1, 0, spatial, 0, 1, spatial)
    got = convolve(x, k, window, labels, kind, feature_groups=feature, batch_groups=batch)
    np.testing.assert_array_equal(got, by_definition(x, k, window, feature, batch))


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(["f32", "c64"]), st.integers(0, 99))
def test_padding_adds_nothing_for_any_weights(problem, dtype, seed):
    x_shape, k_shape, window, feature, batch = problem
    rng, kind = np.random.default_rng(seed), element_type(dtype)
    x = rng.integers(1, 6, x_shape).astype(kind.numpy_dtype)
    k = rng.choice([1, 2, 3, np.nan, np.inf, -np.inf], k_shape, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    spatial = tuple(range(2, len(x_shape)))
    labels = ConvDims(0, 1, spatial, 1, 0, spatial, 0, 1, spatial)
    with np.errstate(all="ignore"):
        k = k.astype(kind.numpy_dtype)
        got = convolve(x, k, window, labels, kind, feature_groups=feature, batch_groups=batch)
        want = by_definition(x, k, window, feature, batch)
    if kind.is_complex:  # infinities become NaN in other parts, depending on how products are written
        got, want = np.isfinite(got), np.isfinite(want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "x_order, k_order, out_order", [("bf01", "oi01", "bf01"), ("b10f", "01io", "1fb0"), ("0fb1", "i1o0", "f01b")]
)
def test_labels_only_permute(x_order, k_order, out_order):
    rng = np.random.default_rng(1)
    x, k = rng.integers(-5, 6, (2, 3, 5, 4)), rng.integers(-5, 6, (4, 3, 2, 3))
    window = (WindowDim(2, 2, 1, 0), WindowDim(3))
    plain = convolve(x, k, window, PLAIN, ElementType.S64)
    labels = ConvDims(
        x_order.index("b"), x_order.index("f"), (x_order.index("0"), x_order.index("1")),
        k_order.index("i"), k_order.index("o"), (k_order.index("0"), k_order.index("1")),
        out_order.index("b"), out_order.index("f"), (out_order.index("0"), out_order.index("1")),
    )  # fmt: skip
    moved = convolve(
        x.transpose(["bf01".index(c) for c in x_order]),
        k.transpose(["oi01".index(c) for c in k_order]),
        window,
        labels,
        ElementType.S64,
    )
    np.testing.assert_array_equal(moved, plain.transpose(["bf01".index(c) for c in out_order]))


def test_large_inputs_are_cut_into_pieces(monkeypatch):
    rng = np.random.default_rng(2)
    x, k = rng.standard_normal((3, 2, 6, 5)), rng.standard_normal((4, 1, 3, 2))
    window = (WindowDim(3, 1, 1, 1), WindowDim(2, 2))
    whole = convolve(x, k, window, PLAIN, ElementType.F64, feature_groups=2)
    monkeypatch.setattr(convolution, "MAX_COPIED_ELEMENTS", 8)
    np.testing.assert_allclose(convolve(x, k, window, PLAIN, ElementType.F64, feature_groups=2), whole, rtol=1e-12)


# fmt: off
ROUNDING = [
    ("bf16", "bf16", [256, 1, 1, 1, 1],    260),
    ("f16",  "f16",  [60000, 60000, -6e4], 60000),
    ("s8",   "s8",   [100, 100],           -56),
    ("s8",   "s32",  [100, 100],           200),
    ("f32",  "f32",  [1e8, 1, -1e8],       1),
]
# fmt: on


@pytest.mark.parametrize("dtype, result, values, want", ROUNDING)
def test_one_rounding(hlo, dtype, result, values, want):
    x = np.array(values).astype(element_type(dtype).numpy_dtype).reshape(1, -1, 1)
    n = len(values)
    got = hlo(
        f"{result}[1,1,1] convolution(p0, p1), window={{size={n}}}, dim_labels=b0f_0io->b0f",
        x,
        np.ones((n, 1, 1), x.dtype),
    )
    assert got.astype(np.float64).item() == want
