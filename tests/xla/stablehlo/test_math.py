"""Complex functions over the whole plane are as exact as StableHLO wants, and bits are those that it means."""

import io
import lzma
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import cyxla

ARCHIVE = Path(__file__).parents[2] / "data" / "complex_values.npz.xz"


@cache
def recorded():
    return dict(np.load(io.BytesIO(lzma.decompress(ARCHIVE.read_bytes()))))


def places(x):
    """Numbers in their order, one apart for neighbours; both zeros are one."""
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, np.iinfo(bits.dtype).min - bits, bits).astype(object)


def far(got, want, ulp):
    """Which parts are further apart; infinities and nan are near themselves alone."""
    odd = ~np.isfinite(want) | ~np.isfinite(got)
    apart = np.abs(places(got) - places(want)) > ulp
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    return np.where(odd, ~same, apart.astype(bool))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("key", sorted(recorded()))
def test_recorded_values(key, backend):
    operation, ulp, kind = key.split()
    x, want = recorded()[key]
    shape = f"tensor<{len(x)}xcomplex<{'f32' if kind == 'complex64' else 'f64'}>>"
    text = (
        f'func.func @main(%0: {shape}) -> {shape} {{ %1 = "{operation}"(%0) : ({shape}) -> {shape} '
        f"func.return %1 : {shape} }}"
    )
    got = cyxla.compile(text, platform=backend)(x)
    wrong = far(got.real, want.real, int(ulp)) | far(got.imag, want.imag, int(ulp))
    assert not wrong.any(), [(x[k], got[k], want[k]) for k in np.flatnonzero(wrong)[:5]]


BOOLS = np.random.default_rng(0).integers(0, 2, (2, 64)).astype(bool)
WORDS = np.packbits(BOOLS, axis=-1, bitorder="little").view(np.int64).reshape(2)
NIBBLES = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]], bool)
PAIRS = np.arange(12, dtype=np.float64).view(np.complex128)
HALVES = PAIRS.view(np.complex64).reshape(6, 2)
BYTES = np.uint8([0x11, 0x66, 0xFF])
# fmt: off
BITS = [
    # from                       to                           values                to these
    ("tensor<2x64xi1>",          "tensor<2xi64>",             BOOLS,                WORDS),
    ("tensor<2xi64>",            "tensor<2x64xi1>",           WORDS,                BOOLS),
    ("tensor<3x8xi1>",           "tensor<3xui8>",             np.tile(NIBBLES, 2),  BYTES),
    ("tensor<3xui8>",            "tensor<3x8xi1>",            BYTES,                np.tile(NIBBLES, 2)),
    ("tensor<3x4xi1>",           "tensor<3x4xi1>",            NIBBLES,              NIBBLES),
    ("tensor<6xcomplex<f64>>",   "tensor<6x2xcomplex<f32>>",  PAIRS,                HALVES),
    ("tensor<6x2xcomplex<f32>>", "tensor<6xcomplex<f64>>",    HALVES,               PAIRS),
]
# fmt: on


@pytest.mark.parametrize("of, to, values, want", BITS, ids=[f"{r[0]}-{r[1]}" for r in BITS])
def test_bits(of, to, values, want, backend):
    text = (
        f"func.func @main(%a: {of}) -> {to} {{ %r = stablehlo.bitcast_convert %a : ({of}) -> {to} return %r : {to} }}"
    )
    got = cyxla.compile(text, platform=backend)(values)
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes()
