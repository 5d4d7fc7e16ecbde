"""Plans of transforms for the kernel of ``fft.h``: records of panels and lines, each written once.

The points of a long line of N = A * B points are a matrix of A rows; two steps transform its columns and its rows. A
length with a large prime factor becomes a convolution with a chirp, made of transforms of a longer line (Bluestein).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from math import isqrt, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.fft.butterflies import STRAIGHT
from cyxla.xla.cpu.fft.passes import FIXED
from cyxla.xla.cpu.fft.templates import VECTOR_BYTES
from cyxla.xla.cpu.fft.twiddles import Roots, Tables, factors, is_smooth, roots

SMALLEST_FACTOR = 8  # with smaller factors, lanes of a panel would be empty
SHORT = 1024  # lines up to this length that are no product of such factors are one panel


@cache
def split(n: int) -> tuple[int, int]:
    """Return the two factors of a length that differ least, the larger one first."""
    a = next(a for a in range(isqrt(n), 0, -1) if n % a == 0)
    return n // a, a


@cache
def is_chirp(n: int) -> bool:
    """Return whether a length becomes a convolution: it has a large prime factor, or is long and no product of two."""
    return not is_smooth(n) or (n > SHORT and split(n)[1] < SMALLEST_FACTOR)


@cache
def padded(n: int) -> int:
    """Return the length of the convolution for a line of `n` points."""
    low = max(2 * n - 1, 256)
    return min(m for q in (1, 3, 5, 9, 15) for m in [q << max(8, (-(-low // q) - 1).bit_length())] if m >= low)


def line_bytes(points: int, item: int) -> int:
    """Return the bytes of scratch for a line of complex numbers."""
    return -(-2 * points * item // VECTOR_BYTES) * VECTOR_BYTES


def line_scratch(n: int, item: int) -> int:
    """Return the bytes of scratch that the transform of a line takes."""
    if is_chirp(n):
        m = padded(n)
        return 2 * line_bytes(m, item) + line_scratch(m, item)
    a, b = split(n)
    # A panel, the results of the first step, and the last columns if they do not fill the lanes.
    return 2 * VECTOR_BYTES * max(3 * a, 2 * b)


@dataclass(frozen=True)
class Transform:
    """A complex transform of one dimension.

    Attributes
    ----------
    n : int
        Number of points.
    inverse : bool
        True if the roots are conjugate.
    scale : int
        Divisor of the results.
    """

    n: int
    inverse: bool = False
    scale: int = 1


class Plan:
    """Records of a plan behind a head of some length.

    Attributes
    ----------
    tables : Tables
        Tables that the kernel reads.
    radices : set of int
        Radices of the passes that the plan needs; 0 for primes without passes of their own.
    fixed : set of int
        Lengths of the panels that the plan needs, among those with functions of their own.
    numbers : list of int
        Records, one after the other.
    """

    def __init__(self, real: ElementType, head: int) -> None:
        self.real, self.item = real, real.itemsize
        self.lanes = VECTOR_BYTES // self.item
        self.tables = Tables()
        self.radices: set[int] = set()
        self.fixed: set[int] = set()
        self.numbers: list[int] = []
        self._head = head
        self._indices: dict[Any, int] = {}

    def add(self, key: Any, make: Callable[[], Sequence[int]]) -> int:
        """Return the index of a record in the plan; `make` returns it when it is first asked for."""
        if key not in self._indices:
            record = make()  # may add other records first
            self._indices[key] = self._head + len(self.numbers)
            self.numbers += record
        return self._indices[key]

    def panel(self, t: Transform) -> int:
        """Return the index of the record of a panel, ``panel`` in ``fft_lines.h``."""
        return self.add(("panel", t), lambda: self._panel(t))

    def _panel(self, t: Transform) -> list[int]:
        radices = factors(t.n) or [1]
        (scale,) = struct.unpack("<q", struct.pack("<d", 1 / t.scale))
        self.fixed |= FIXED.keys() & {t.n}
        record = [t.n, int(t.inverse), scale, FIXED.get(t.n, (0,))[0], len(radices)]
        for level, r in enumerate(radices):
            m = prod(radices[level + 1 :])
            has_pass = r in STRAIGHT or r == 1
            self.radices |= set() if t.n in FIXED else {r if has_pass else 0}
            prime = 0 if has_pass else self.tables.add(("prime", r), lambda r=r: roots(r, np.arange(r)))  # type: ignore[misc]
            record += [r, prime, m, self._twiddles(r, m, 1 if level else t.scale) if m > 1 else 0]
        return record

    def _twiddles(self, r: int, m: int, scale: int) -> int:
        powers = np.outer(np.arange(m), np.arange(1, r))
        return self.tables.add(("pass", r, m, scale), lambda: roots(r * m, powers) / scale)

    def line(self, t: Transform) -> int:
        """Return the index of the record of a line, ``line`` or ``chirp_line`` in ``fft_lines.h``."""
        return self.add(("line", t), lambda: self._chirp(t) if is_chirp(t.n) else self._product(t))

    def _product(self, t: Transform) -> list[int]:
        (a, b), n = split(t.n), t.n
        # Result k of a forward transform is -k of an inverse one; negative powers of a root are those of its conjugate.
        k, blocks = _result_order([a] if a in FIXED else factors(a)), -(-b // self.lanes)
        powers = -(-k % a) if t.inverse else k
        coarse = self.tables.add(
            ("coarse", t), lambda: roots(n, np.outer(np.arange(blocks) * self.lanes, powers)) / t.scale
        )
        fine = self.tables.add(
            ("fine", n, t.inverse), lambda: _split_parts(roots(n, np.outer(powers, np.arange(self.lanes))))
        )
        return [0, a, b, *(self.panel(Transform(part, t.inverse)) for part in (a, b)), coarse, fine]

    def _chirp(self, t: Transform) -> list[int]:
        n, m = t.n, padded(t.n)

        def chirp() -> Roots:
            values = roots(2 * n, np.arange(n) ** 2 % (2 * n))
            return values.conj() if t.inverse else values

        def filter_() -> Roots:
            kernel = np.zeros(m, np.complex128)
            kernel[:n] = chirp().conj()
            kernel[m - n + 1 :] = kernel[1:n][::-1]
            return np.asarray(np.fft.fft(kernel)) / (m * t.scale)

        convolution = self.line(Transform(m))
        chirp_table = self.tables.add(("chirp", n, t.inverse), chirp)
        return [m + 1, n, convolution, chirp_table, self.tables.add(("filter", t), filter_)]

    def real_table(self, h: int) -> int:
        """Return the index of the table of real lines of length ``2 * h``, see ``fft_real.h``."""
        count = h // 2 + 1
        return self.tables.add(
            ("real", h), lambda: np.concatenate([(w := roots(2 * h, np.arange(count))).real, w.imag])
        )


def _result_order(radices: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the indices of the results of a panel, which are computed with the index of the first level slowest."""
    return np.arange(prod(radices)).reshape(radices[::-1]).transpose().reshape(-1)


def _split_parts(values: Roots) -> np.ndarray:
    """Return rows of real parts, each followed by its imaginary parts, of rows of complex numbers."""
    return np.concatenate([values.real, values.imag], axis=-1)
