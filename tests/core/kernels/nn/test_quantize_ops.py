"""Quantised numbers against the floats that they stand for."""

import numpy as np
import pytest

from cyxla.core.framework.apply import apply_op
from cyxla.errors import InvalidArgumentError

F32 = np.float32
X = np.array([-2.0, -1.0, -0.4, 0.0, 0.3, 1.0, 1.9, 3.0], F32)
Q = np.zeros(1, np.int32)
TYPES = ("qint8", "quint8", "qint16", "quint16", "qint32")


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@pytest.mark.parametrize("t", TYPES)
def test_there_and_back(mode, t):
    """Inside of the range, dequantised values are off by half of a step at most."""
    found, low, high = apply_op("QuantizeV2", X, F32(-1), F32(2), T=t, mode=mode)
    back = apply_op("Dequantize", found, low, high, T=t, mode=mode)
    bits = min(8 * found.itemsize, 24)
    reach = max(abs(float(low)), abs(float(high)))
    want = np.clip(X, 0 if t.startswith("qu") and mode == "SCALED" else low, high)
    np.testing.assert_allclose(back, want, atol=2.5 * reach / 2**bits)


def test_known_integers():
    x = np.array([0, 0.5, 1, 2], F32)
    found, low, high = apply_op("QuantizeV2", x, F32(0), F32(1), T="quint8")
    assert found.tolist() == [0, 128, 255, 255]
    assert (float(low), float(high)) == (0, 1)
    found, *ends = apply_op("QuantizeV2", x, F32(-1), F32(0.5), T="qint8", mode="SCALED", narrow_range=True)
    assert found.tolist() == [0, 64, 127, 127]
    np.testing.assert_allclose(ends, [-1, 1], rtol=1e-6)
    halves = np.array([0.5, 1.5, 2.5, -2.5], F32)
    even = {"T": "qint8", "mode": "SCALED", "round_mode": "HALF_TO_EVEN"}
    assert apply_op("QuantizeV2", halves, F32(-1), F32(127), **even)[0].tolist() == [0, 2, 2, -2]
    assert apply_op("QuantizeV2", halves, F32(-1), F32(127), T="qint8", mode="SCALED")[0].tolist() == [1, 2, 3, -3]


def test_slices_have_ranges_of_their_own():
    x = np.array([[1, 2], [1, 2]], F32)
    found, low, high = apply_op(
        "QuantizeV2", x, np.zeros(2, F32), np.array([1, 2], F32), T="quint8", mode="SCALED", axis=1
    )
    assert found.tolist() == [[255, 255], [255, 255]]
    assert low.shape == high.shape == (2,)


def test_narrow_ranges_are_widened():
    _, low, high = apply_op("QuantizeV2", X, F32(5), F32(5), T="quint8")
    assert (float(low), float(high)) == (0, 5)
    _, low, high = apply_op("QuantizeV2", X, F32(0), F32(0), T="quint8")
    np.testing.assert_allclose((low, high), (0, 0.01), rtol=1e-6)


def _as_floats(x, low, high):
    return low + x.astype(float) * (high - low) / 255


def test_products_of_matrices():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 256, (2, 3), np.uint8), rng.integers(0, 256, (4, 3), np.uint8)
    got, low, high = apply_op(
        "QuantizedMatMul", a, b, F32(-1), F32(2), F32(-3), F32(1), T1="quint8", T2="quint8", transpose_b=True
    )
    assert got.dtype == np.int32
    real = got * ((float(high) - float(low)) / 2.0**32)
    np.testing.assert_allclose(real, _as_floats(a, -1, 2) @ _as_floats(b, -3, 1).T, atol=0.15)


def test_convolutions_pad_with_the_quantised_zero():
    x, w = np.full((1, 2, 2, 1), 255, np.uint8), np.full((2, 2, 1, 1), 255, np.uint8)
    facts = {"strides": [1, 1, 1, 1], "padding": "SAME", "Tinput": "quint8", "Tfilter": "quint8"}
    got, low, high = apply_op("QuantizedConv2D", x, w, F32(-1), F32(1), F32(0), F32(1), **facts)
    real = got * ((float(high) - float(low)) / 2.0**32)
    np.testing.assert_allclose(real[0, :, :, 0], [[4, 2], [2, 1]], atol=0.05)


def test_fewer_bits():
    x = np.array([-(2**31), -(2**29), 0, 2**30, 2**31 - 1], np.int32)
    got, low, high = apply_op("Requantize", x, F32(-4), F32(4), F32(-1), F32(2), Tinput="qint32", out_type="quint8")
    want = np.round((np.clip(x / 2.0**31 * 4, -1, 2) + 1) / 3 * 255)
    np.testing.assert_allclose(got, want, atol=1)
    assert (float(low), float(high)) == (-1, 2)


REFUSALS = [
    ("QuantizeV2", (X, F32(1), F32(0)), {"T": "qint8"}, "must not exceed"),
    ("QuantizeV2", (X, F32(0), F32(1)), {"T": "qint8", "round_mode": "HALF_TO_EVEN"}, "for mode SCALED"),
    ("Requantize", (Q, F32(0), F32(1), F32(1), F32(2)), {"Tinput": "qint32", "out_type": "quint8"}, "requested range"),
]  # fmt: skip


@pytest.mark.parametrize("op, args, attrs, text", REFUSALS, ids=[r[3] for r in REFUSALS])
def test_refusals(op, args, attrs, text):
    with pytest.raises(InvalidArgumentError, match=text):
        apply_op(op, *args, **attrs)
