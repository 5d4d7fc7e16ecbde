"""Logarithm, sine and cosine of f32 with the rounding of glibc.

TensorFlow's random normals are computed with these functions, whose error is up to 0.8 ulp; bit equality needs the same
polynomials in f64. Polynomials and coefficients are those of Arm's optimized routines, from which glibc took them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_hex = float.fromhex
_TWO_OVER_PI, _PI_OVER_2 = _hex("0x1.45F306DC9C883p-1"), _hex("0x1.921FB54442D18p0")
_SINE = tuple(map(_hex, ("-0x1.555545995a603p-3", "0x1.1107605230bc4p-7", "-0x1.994eb3774cf24p-13")))
_COSINE = tuple(
    map(
        _hex,
        ("0x1p0", "-0x1.ffffffd0c621cp-2", "0x1.55553e1068f19p-5", "-0x1.6c087e89a359dp-10", "0x1.99343027bf8c3p-16"),
    )
)
_LN2 = _hex("0x1.62e42fefa39efp-1")
_LOG = tuple(map(_hex, ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2")))
_LOG_MIN_BITS = 0x3F330000  # bit pattern of about 0.7; mantissas are reduced to [0.7, 1.4)
_LOG_TABLE = [  # for each sixteenth of that range: the inverse of a point in it, and the logarithm of the point
    ("0x1.661ec79f8f3bep+0", "-0x1.57bf7808caadep-2"), ("0x1.571ed4aaf883dp+0", "-0x1.2bef0a7c06ddbp-2"),
    ("0x1.49539f0f010bp+0", "-0x1.01eae7f513a67p-2"), ("0x1.3c995b0b80385p+0", "-0x1.b31d8a68224e9p-3"),
    ("0x1.30d190c8864a5p+0", "-0x1.6574f0ac07758p-3"), ("0x1.25e227b0b8eap+0", "-0x1.1aa2bc79c81p-3"),
    ("0x1.1bb4a4a1a343fp+0", "-0x1.a4e76ce8c0e5ep-4"), ("0x1.12358f08ae5bap+0", "-0x1.1973c5a611cccp-4"),
    ("0x1.0953f419900a7p+0", "-0x1.252f438e10c1ep-5"), ("0x1p+0", "0x0p+0"),
    ("0x1.e608cfd9a47acp-1", "0x1.aa5aa5df25984p-5"), ("0x1.ca4b31f026aap-1", "0x1.c5e53aa362eb4p-4"),
    ("0x1.b2036576afce6p-1", "0x1.526e57720db08p-3"), ("0x1.9c2d163a1aa2dp-1", "0x1.bc2860d22477p-3"),
    ("0x1.886e6037841edp-1", "0x1.1058bc8a07ee1p-2"), ("0x1.767dcf5534862p-1", "0x1.4043057b6ee09p-2"),
]  # fmt: skip
_INVERSES, _LOGARITHMS = (np.array([_hex(row[k]) for row in _LOG_TABLE]) for k in (0, 1))


def log32(x: Array) -> Array:
    """Return the natural logarithm of positive normal f32."""
    bits = x.view(np.int32)
    part = bits - np.int32(_LOG_MIN_BITS)
    index = (part >> 19) & 15
    exponent = part >> 23
    mantissa = (bits - (exponent << 23)).view(np.float32).astype(np.float64)
    r = mantissa * _INVERSES[index] - 1
    square = r * r
    y = _LOG[0] * square + (_LOG[1] * r + _LOG[2])
    return np.asarray(y * square + (_LOGARITHMS[index] + exponent * _LN2 + r)).astype(np.float32)


def sincos32(x: Array) -> tuple[Array, Array]:
    """Return sine and cosine of f32 in [0, 120)."""
    wide = x.astype(np.float64)
    quarter = np.floor(wide * _TWO_OVER_PI + 0.5)
    r = wide - quarter * _PI_OVER_2
    s, c = _sine(r), _cosine(r)
    n = quarter.astype(np.int64)
    odd = (n & 1).astype(bool)
    sine = np.where(odd, c, s) * np.where(n & 2, -1.0, 1.0)
    cosine = np.where(odd, s, c) * np.where((n + 1) & 2, -1.0, 1.0)
    return sine.astype(np.float32), cosine.astype(np.float32)


def _sine(x: Array) -> Array:
    square = x * x
    cube = x * square
    result: Array = x + cube * _SINE[0] + cube * square * (_SINE[1] + square * _SINE[2])
    return result


def _cosine(x: Array) -> Array:
    square = x * x
    fourth = square * square
    start = _COSINE[0] + square * _COSINE[1] + fourth * _COSINE[2]
    result: Array = start + fourth * square * (_COSINE[3] + square * _COSINE[4])
    return result
