"""Butterflies: transforms of a few points as straight-line C.

A point is a pair of names, those of its real and its imaginary part, which have the type ``FFT_V``. All transforms are
forward ones; an inverse one is a forward one whose results are written in reverse order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

from cyxla.xla.cpu.c.writer import CWriter

Point = tuple[str, str]

#: Radices whose butterflies are straight lines.
STRAIGHT = frozenset({2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 16})
_FIRST_FACTOR = {16: 4, 15: 3, 10: 5, 9: 3, 8: 2, 6: 3}  # first factor of composite radices


def transform(c: CWriter, points: Sequence[Point]) -> list[Point]:
    """Write the transform of some points, one or a number in `STRAIGHT`; return its results."""
    r = len(points)
    if r == 1:
        return list(points)
    if r == 2:
        (ar, ai), (br, bi) = points
        return [_point(c, f"{ar} + {br}", f"{ai} + {bi}"), _point(c, f"{ar} - {br}", f"{ai} - {bi}")]
    if r == 4:
        return _radix_4(c, points)
    return _composite(c, points, _FIRST_FACTOR[r]) if r in _FIRST_FACTOR else _prime(c, points)


def _point(c: CWriter, re: str, im: str) -> Point:
    return c.local("FFT_V", re), c.local("FFT_V", im)


def _radix_4(c: CWriter, points: Sequence[Point]) -> list[Point]:
    (s, d), (t, e) = transform(c, points[::2]), transform(c, points[1::2])
    return [
        _point(c, f"{s[0]} + {t[0]}", f"{s[1]} + {t[1]}"),
        _point(c, f"{d[0]} + {e[1]}", f"{d[1]} - {e[0]}"),
        _point(c, f"{s[0]} - {t[0]}", f"{s[1]} - {t[1]}"),
        _point(c, f"{d[0]} - {e[1]}", f"{d[1]} + {e[0]}"),
    ]


def _composite(c: CWriter, points: Sequence[Point], a: int) -> list[Point]:
    """Write a transform of ``a * b`` points: transforms of `a` points, twiddle factors, transforms of `b` points."""
    r = len(points)
    b = r // a
    inner = [transform(c, points[k::b]) for k in range(b)]
    results: list[Point] = [("", "")] * r
    for j in range(a):
        results[j::a] = transform(c, [_times_root(c, inner[k][j], j * k, r) for k in range(b)])
    return results


def _times_root(c: CWriter, point: Point, power: int, r: int) -> Point:
    """Write the product of a point and a power of the root of unity of order `r`."""
    re, im = point
    if 8 * power % r:
        x, y = cos(2 * pi * power / r), -sin(2 * pi * power / r)
        return _point(c, f"{re} * {_number(x)} - {im} * {_number(y)}", f"{re} * {_number(y)} + {im} * {_number(x)}")
    eighth = 8 * power // r % 8
    if eighth % 2:
        half = _number(0.5**0.5)
        re, im = _point(c, f"({re} + {im}) * {half}", f"({im} - {re}) * {half}")
    return [(re, im), (im, f"-{re}"), (f"-{re}", f"-{im}"), (f"-{im}", re)][eighth // 2]


def _prime(c: CWriter, points: Sequence[Point]) -> list[Point]:
    """Write a transform of a prime number of points; those at equal distance from the first have conjugate roots."""
    r = len(points)
    half = range(1, (r + 1) // 2)
    pairs = [transform(c, [points[k], points[r - k]]) for k in half]
    (zr, zi), sums = points[0], [p[0] for p in pairs]
    results = [_point(c, " + ".join([zr, *(s[0] for s in sums)]), " + ".join([zi, *(s[1] for s in sums)]))] * r
    for j in half:
        cosines = [_number(cos(2 * pi * (j * k % r) / r)) for k in half]
        sines = [_number(sin(2 * pi * (j * k % r) / r)) for k in half]
        even = [[f"{p[0][part]} * {x}" for p, x in zip(pairs, cosines, strict=True)] for part in (0, 1)]
        odd = [[f"{p[1][part]} * {x}" for p, x in zip(pairs, sines, strict=True)] for part in (0, 1)]
        er, ei = _point(c, " + ".join([zr, *even[0]]), " + ".join([zi, *even[1]]))
        dr, di = _point(c, " + ".join(odd[0]), " + ".join(odd[1]))
        results[j] = _point(c, f"{er} + {di}", f"{ei} - {dr}")
        results[r - j] = _point(c, f"{er} - {di}", f"{ei} + {dr}")
    return results


def _number(value: float) -> str:
    return f"(FFT_REAL){value.hex()}"
