"""Twiddle factors, and the factors of a length."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
import numpy.typing as npt

from cyxla.xla.cpu.fft.passes import LARGEST_PRIME
from cyxla.xla.cpu.fft.templates import VECTOR_BYTES

Roots = npt.NDArray[np.complex128]

_ALIGNED = 16  # elements; index of a table's first element is a multiple


def roots(n: int, powers: Any) -> Roots:
    """Return powers of exp(-2 pi i / n) with parts that are correctly rounded or nearly so."""
    eighths = np.asarray(powers, np.int64) % n * 8
    octant, rest = eighths // n, eighths % n
    angle = np.where(octant % 2 == 1, n - rest, rest) * (pi / 4 / n)
    c, s = np.cos(angle), np.sin(angle)
    is_swapped = np.isin(octant, (1, 2, 5, 6))
    c, s = np.where(is_swapped, s, c), np.where(is_swapped, c, s)
    result: Roots = np.where(np.isin(octant, (2, 3, 4, 5)), -c, c) - 1j * np.where(octant >= 4, -s, s)
    return result


def factors(n: int) -> list[int]:
    """Return the radices of the passes of a length: powers of two of like size up to 16, small odd ones, primes."""
    twos = (n & -n).bit_length() - 1
    n >>= twos
    radices = []
    if twos == 1 and (r := next((r for r in (3, 5) if n % r == 0), 0)):
        radices, n, twos = [2 * r], n // r, 0
    passes = -(-twos // 4)
    radices += [1 << (twos // passes + (k < twos % passes)) for k in range(passes)]
    for r in (9, 15, 5, 7, 3, 11, 13):
        while n % r == 0:
            radices.append(r)
            n //= r
    r = 17
    while n > 1:
        r = r if r * r <= n else n
        while n % r == 0:
            radices.append(r)
            n //= r
        r += 2
    return radices


def is_smooth(n: int) -> bool:
    """Return whether there are passes for all factors of a length."""
    return max(factors(n), default=1) <= LARGEST_PRIME


class Tables:
    """Tables that a kernel reads, one after the other in one constant."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.float64]] = []
        self._indices: dict[Any, int] = {}
        self._size = 0

    def add(self, key: Any, make: Callable[[], npt.NDArray[Any]]) -> int:
        """Return the index of the first element of a table, in which complex numbers are pairs."""
        if key not in self._indices:
            part = np.ascontiguousarray(make()).reshape(-1)
            part = part.view(np.float64) if part.dtype == np.complex128 else part.astype(np.float64)
            part = np.pad(part, (0, -part.size % _ALIGNED))
            self._indices[key] = self._size
            self._parts.append(part)
            self._size += part.size
        return self._indices[key]

    def array(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return all tables as one array, aligned to the widest vectors."""
        parts = [*self._parts, np.zeros(_ALIGNED)]
        memory = np.empty(sum(p.size for p in parts) * np.dtype(dtype).itemsize + VECTOR_BYTES, np.uint8)
        start = -memory.__array_interface__["data"][0] % VECTOR_BYTES
        numbers = memory[start : start + memory.size - VECTOR_BYTES].view(dtype)
        return np.concatenate(parts, out=numbers, casting="same_kind")
