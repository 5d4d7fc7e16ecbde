"""Philox 4x32-10 and distributions of its words, bit for bit those of TensorFlow.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A block is four 32-bit words from a 128-bit
counter and a 64-bit key; an element of an output depends on the block of its index only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from cyxla.core.framework.philox_state import RESERVED, ROUNDS, PhiloxState
from cyxla.core.kernels.lib.glibc_functions import log32, sincos32

Array = np.ndarray[Any, Any]

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_MASK64 = (1 << 64) - 1

# Key of the Philox block that scrambles a pair of seeds into a key and a counter.
_SEED_KEY = 0x3EC8F720 | 0x02461E29 << 32

_MIN_UNIFORM = 1.0e-7  # lower bound of logarithms' arguments


class Philox(PhiloxState):
    """Philox generator that computes blocks."""

    @classmethod
    def from_seeds(cls, seed: int, seed2: int) -> Philox:
        """Make the generator of a seed tensor, whose two numbers are scrambled by one block."""
        words = Philox(_SEED_KEY, (seed & _MASK64) | (seed2 & _MASK64) << 64).blocks(1)[0].tolist()
        return cls(words[0] | words[1] << 32, words[2] << 64 | words[3] << 96)

    def blocks(self, count: int) -> Array:
        """Return the next blocks as u32[count, 4]."""
        return self.blocks_at(np.arange(count, dtype=np.uint64))

    def blocks_at(self, offsets: Array) -> Array:
        """Return the blocks at offsets u64[n] from the counter as u32[n, 4]."""
        low, high = np.uint64(self.counter & _MASK64), np.uint64(self.counter >> 64)
        with np.errstate(over="ignore"):
            at = offsets + low
            above = high + (at < low)
        x = [at & _LOW, at >> _HALF, above & _LOW, above >> _HALF]
        k0, k1 = self.key & 0xFFFFFFFF, self.key >> 32
        for _ in range(ROUNDS):
            a, b = _MULTIPLIERS[0] * x[0], _MULTIPLIERS[1] * x[2]
            x = [b >> _HALF ^ x[1] ^ np.uint64(k0), b & _LOW, a >> _HALF ^ x[3] ^ np.uint64(k1), a & _LOW]
            k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
        return np.stack(x, axis=1).astype(np.uint32)


# ------------------------------------------------------------------------------------------------ words to numbers


def float32_of(words: Array) -> Array:
    """Convert words to f32 in [0, 1): 23 bits of each become a fraction."""
    bits = (words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)
    return np.subtract(bits.view(np.float32), np.float32(1))


def float64_of(words: Array) -> Array:
    """Convert pairs of words along the last axis, upper bits first, to f64 in [0, 1)."""
    bits = (words[..., 0].astype(np.uint64) & np.uint64(0xFFFFF)) << _HALF | words[..., 1]
    return (bits | np.uint64(1023 << 52)).view(np.float64) - 1.0


def _float16_of(words: Array) -> Array:
    return ((words.astype(np.uint16) & np.uint16(0x3FF)) | np.uint16(15 << 10)).view(np.float16) - np.float16(1)


def _bfloat16_of(words: Array) -> Array:
    bits = (words.astype(np.uint16) & np.uint16(0x7F)) | np.uint16(127 << 7)
    return bits.view(ml_dtypes.bfloat16) - ml_dtypes.bfloat16(1)


def _pairs(words: Array) -> Array:
    return words.reshape(*words.shape[:-1], words.shape[-1] // 2, 2)


def _uint64_of(words: Array) -> Array:
    pairs = _pairs(words)
    return pairs[..., 0].astype(np.uint64) | pairs[..., 1].astype(np.uint64) << _HALF


def _normal32(words: Array) -> Array:
    """Apply the Box-Muller transform in f32: a pair of words becomes a sine part and a cosine part."""
    pairs = _pairs(words)
    u = np.maximum(float32_of(pairs[..., 0]), np.float32(_MIN_UNIFORM))
    angle = (2 * np.pi * float32_of(pairs[..., 1]).astype(np.float64)).astype(np.float32)
    radius = np.sqrt(np.float32(-2) * log32(u))
    return np.stack([part * radius for part in sincos32(angle)], axis=-1).reshape(words.shape)


def normal_pairs(words: Array) -> Array:
    """Apply the Box-Muller transform in f64: four words become two numbers."""
    numbers = float64_of(_pairs(words))
    u = np.maximum(numbers[..., 0::2], _MIN_UNIFORM)
    angle = 2 * np.pi * numbers[..., 1::2]
    radius = np.sqrt(-2.0 * np.log(u))
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=-1).reshape(numbers.shape)


_UNIFORM: dict[str, Callable[[Array], Array]] = {
    "float16": _float16_of,
    "bfloat16": _bfloat16_of,
    "float32": float32_of,
    "float64": lambda words: float64_of(_pairs(words)),
    "int32": lambda words: words.view(np.int32),
    "uint32": lambda words: words,
    "int64": lambda words: _uint64_of(words).view(np.int64),
    "uint64": _uint64_of,
}


def elements_per_block(dtype: np.dtype[Any]) -> int:
    """Return the number of elements that a block yields."""
    return 2 if dtype.itemsize == 8 else 4


def _fill(generator: Philox, count: int, dtype: np.dtype[Any], of: Callable[[Array], Array]) -> Array:
    blocks = generator.blocks(-(-count // elements_per_block(dtype)))
    return of(blocks).astype(dtype, copy=False).reshape(-1)[:count]


def uniform(generator: Philox, count: int, dtype: np.dtype[Any]) -> Array:
    """Draw floats in [0, 1), or integers over their whole range."""
    return _fill(generator, count, dtype, _UNIFORM[dtype.name])


def uniform_int(generator: Philox, count: int, low: Array, high: Array) -> Array:
    """Draw integers in [low, high) of the scalars' type, by the remainder of whole words."""
    dtype = low.dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    with np.errstate(over="ignore"):
        span = high.astype(unsigned) - low.astype(unsigned)
        return (low.astype(unsigned) + uniform(generator, count, unsigned) % span).astype(dtype)


def normal(generator: Philox, count: int, dtype: np.dtype[Any]) -> Array:
    """Draw floats of the normal distribution; narrow ones are rounded from f32."""
    return _fill(generator, count, dtype, normal_pairs if dtype == np.float64 else _normal32)


def truncated_normal(generator: Philox, count: int, dtype: np.dtype[Any]) -> Array:
    """Draw normal floats within two standard deviations, redrawing the others.

    Each group of elements has its own blocks, so an element does not depend on earlier groups.
    """
    size = elements_per_block(dtype)
    groups = -(-count // size)
    start = np.arange(groups, dtype=np.uint64) * np.uint64(size * RESERVED // 4)
    draw = normal_pairs if dtype == np.float64 else _normal32
    out = np.empty((groups, size), dtype=np.float64 if dtype == np.float64 else np.float32)
    filled = np.zeros(groups, dtype=np.intp)
    todo, round_ = np.arange(groups), 0
    while todo.size:
        samples = draw(generator.blocks_at(start[todo] + np.uint64(round_)))
        for number in samples.T:
            fits = (np.abs(number) < 2) & (filled[todo] < size)
            rows = todo[fits]
            out[rows, filled[rows]] = number[fits]
            filled[rows] += 1
        todo = todo[filled[todo] < size]
        round_ += 1
    return out.astype(dtype, copy=False).reshape(-1)[:count]
