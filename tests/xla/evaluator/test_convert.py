"""Conversions of values and of bits."""

from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator.numerics.conversion import convert_array, round_float

inf, nan = np.inf, np.nan

# fmt: off
CASES = [
    # from        to          values                                        want
    ("f32",       "s8",       [1.9, -1.9, 300, -300, nan, inf, -inf],       [1, -1, 127, -128, 0, 127, -128]),
    ("f32",       "u8",       [-1, 255.9, 256, nan],                        [0, 255, 255, 0]),
    ("f32",       "s64",      [9.3e18, -9.3e18, 2.0**62],                   [2**63 - 1, -2**63, 2**62]),
    ("f64",       "u64",      [1.9e19, -5, 2.0**63],                        [2**64 - 1, 0, 2**63]),
    ("f32",       "s4",       [7.9, 8, -9, nan],                            [7, 7, -8, 0]),
    ("bf16",      "u2",       [3, 4, -1],                                   [3, 3, 0]),
    ("f32",       "pred",     [0, -0.0, nan, .5],                           [False, False, True, True]),
    ("s4",        "pred",     [0, -1],                                      [False, True]),
    ("s32",       "s8",       [300, -129, 5],                               [44, 127, 5]),
    ("s64",       "u4",       [-1, 17],                                     [15, 1]),
    ("s4",        "u8",       [-1, 7],                                      [255, 7]),
    ("u64",       "s64",      [2**64 - 1],                                  [-1]),
    ("pred",      "s4",       [True, False],                                [1, 0]),
    ("pred",      "bf16",     [True, False],                                [1, 0]),
    ("s32",       "f32",      [2**24 + 1, 2**24 + 3],                       [2**24, 2**24 + 4]),
    ("s32",       "f16",      [65519, 65520, 2049],                         [65504, inf, 2048]),
    ("s32",       "bf16",     [257, 259],                                   [256, 260]),
    ("f32",       "f16",      [65519, 65520, 1e-8],                         [65504, inf, 0]),
    ("f64",       "bf16",     [1 + 2**-8 + 2**-40],                         [1 + 2**-7]),
    ("f32",       "f8e5m2",   [61439, 61440, inf],                          [57344, inf, inf]),
    ("f32",       "f8e4m3fn", [464, 465, inf, -1e9],                        [448, nan, nan, nan]),
    ("f32",       "f8e4m3fnuz", [-0.0, 1000, 240],                          [0, nan, 240]),
    ("f32",       "f8e5m2fnuz", [-0.0, inf],                                [0, nan]),
    ("f32",       "f4e2m1fn", [5, 7, -100, 0.25, 0.3],                      [4, 6, -6, 0, 0.5]),
    ("f32",       "f8e8m0fnu", [3, 1.4, 0, -1, inf],                        [4, 1, nan, nan, nan]),
    ("c64",       "f32",      [1 + 2j],                                     [1]),
    ("f32",       "c128",     [-0.0],                                       [complex(-0.0, 0)]),
    ("s8",        "c64",      [-3],                                         [-3]),
]
# fmt: on


def agree(got, want):
    assert got.dtype == want.dtype
    wide = np.complex128 if got.dtype.kind == "c" else np.float64 if got.dtype.kind in "fV" else object
    np.testing.assert_array_equal(got.astype(wide), want.astype(wide))


@pytest.mark.parametrize("source, to, values, want", CASES)
def test_convert(run, source, to, values, want):
    agree(run("convert", run.array(source, values), to=to), run.array(to, want))


POSITIVE = np.arange(0x7F80, dtype=np.uint16).view(ElementType.BF16.numpy_dtype).astype(np.float64)
BF16_VALUES = [Fraction(v) for v in sorted({v for p in POSITIVE.tolist() for v in (p, -p)})]

TYPES = sorted((e for e in ElementType if e.numpy_dtype is not None), key=str)


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_everything_converts_to_everything(source):
    ones = np.array([1, 1]).astype(source.numpy_dtype)
    for to in TYPES:
        want = np.array([1, 1]).astype(to.numpy_dtype)
        if {source, to} & {ElementType.S1}:  # holds 0 and -1
            continue
        agree(convert_array(ones, to), want)


def nearest(value):
    """The bf16 numbers nearest to a fraction: two in a tie."""
    above = bisect_left(BF16_VALUES, value)
    around = BF16_VALUES[max(above - 1, 0) : above + 1]
    return {f for f in around if abs(f - value) == min(abs(g - value) for g in around)}


@settings(max_examples=100, deadline=None)
@given(x=st.integers(-(2**63), 2**63 - 1))
@example(x=2**62 + 2**54 + 1)
@example(x=2**53 + 2**45)
def test_wide_integers_round_once(x):
    assert Fraction(float(convert_array(np.array(x), ElementType.BF16))) in nearest(x)


@settings(max_examples=100, deadline=None)
@given(x=st.floats(-1e30, 1e30))
@example(x=1 + 2.0**-8 + 2.0**-40)
@example(x=-(1 + 2.0**-8 + 2.0**-40))
def test_f64_rounds_once_to_bf16(x):
    assert Fraction(float(round_float(np.array(x), ElementType.BF16))) in nearest(Fraction(x))


# fmt: off
BITS = [
    # from   to      values                  want
    ("f32",  "s32",  [1.0, -0.0],            [0x3F800000, -2**31]),
    ("s32",  "u8",   [0x01020304],           [[4, 3, 2, 1]]),
    ("u8",   "s32",  [[4, 3, 2, 1]],         [0x01020304]),
    ("s8",   "s4",   [0x1E, -1],             [[-2, 1], [-1, -1]]),
    ("u4",   "u8",   [[14, 1]],              [0x1E]),
    ("s4",   "u4",   [-2, 7],                [14, 7]),
    ("u16",  "u2",   [0b11100100],           [[0, 1, 2, 3, 0, 0, 0, 0]]),
    ("bf16", "u16",  [1.0],                  [0x3F80]),
    ("f4e2m1fn", "u4", [6.0, -0.5],          [7, 9]),
]
# fmt: on


@pytest.mark.parametrize("source, to, values, want", BITS)
def test_bitcast_convert(run, source, to, values, want):
    want = run.array(to, want)
    agree(run("bitcast-convert", run.array(source, values), shape=Shape.of(want)), want)


# fmt: off
PRECISIONS = [
    # type  exponent, mantissa, values                       want
    ("f32", 5,        10,       [1e-5, 3e-8, 65520, 1.0 + 2**-11, nan, -inf], [0, 0, inf, 1, nan, -inf]),
    ("f32", 8,        7,        [1 + 3 * 2**-8, -1e-30],     [1 + 2**-6, -1.0026e-30]),
    ("f64", 8,        23,       [1e300, -1e300, 1 + 2**-24], [inf, -inf, 1]),
    ("f16", 5,        2,        [1.125, 1.375],              [1, 1.5]),
    ("bf16", 8,       3,        [1.0625, 1.1875],            [1, 1.25]),
    ("f8e5m2", 4,     2,        [57344, 1.5],                [inf, 1.5]),
]
# fmt: on


@pytest.mark.parametrize("dtype, exponent, mantissa, values, want", PRECISIONS)
def test_reduce_precision(run, dtype, exponent, mantissa, values, want):
    got = run("reduce-precision", run.array(dtype, values), exponent_bits=exponent, mantissa_bits=mantissa)
    np.testing.assert_allclose(
        got.astype(np.float64), run.array(dtype, want).astype(np.float64), rtol=1e-2 if dtype == "f32" else 0
    )


def test_stochastic_convert(run):
    x, random = np.float32([2.25, 2.25, nan, -2.25, 300]), np.uint32([0, 2**32 - 1, 0, 0, 0])
    got = run("stochastic-convert", x, random, to="s8")
    assert got.tolist() == [3, 2, 0, -3, 127]
