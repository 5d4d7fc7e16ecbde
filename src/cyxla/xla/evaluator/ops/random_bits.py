"""Random numbers: counter-based generators, bit for bit, and those that HLO does not define.

References
----------
.. [1] J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011: Threefry and Philox.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, numpy_dtype
from cyxla.xla.hlo.instruction import Instruction

_WORD: Final = 0xFFFFFFFF
_STATE: Final = "rng-get-and-update-state"
_FIRST_STATE: Final = 0x7012395  # initial value of XLA's global state


def threefry(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Compute Threefry-2x32 with 20 rounds.

    Parameters
    ----------
    key, counter : pair of u32 arrays
        Low and high words; the four arrays broadcast.
    """
    x, y = counter
    schedule = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    x, y = x + schedule[0], y + schedule[1]
    for group in range(5):
        for distance in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y
            y = (y << np.uint32(distance) | y >> np.uint32(32 - distance)) ^ x
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def philox(key: int, counters: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
    """Compute Philox-4x32 with 10 rounds.

    Parameters
    ----------
    key : int
        Key of 64 bits.
    counters : four u32 arrays
        Counter words, lowest first.
    """
    low, high = key & _WORD, key >> 32
    a, b, c, d = counters
    for _ in range(10):
        product0, product1 = a.astype(np.uint64) * np.uint64(0xD2511F53), c.astype(np.uint64) * np.uint64(0xCD9E8D57)
        a, b, c, d = (
            _high(product1) ^ b ^ np.uint32(low),
            _low(product1),
            _high(product0) ^ d ^ np.uint32(high),
            _low(product0),
        )
        low, high = (low + 0x9E3779B9) & _WORD, (high + 0xBB67AE85) & _WORD
    return a, b, c, d


def _low(x: Array) -> Array:
    return x.astype(np.uint32)


def _high(x: Array) -> Array:
    return (x >> np.uint64(32)).astype(np.uint32)


def _split(value: int) -> tuple[Array, Array]:
    return np.array(value & _WORD, np.uint32), np.array(value >> 32 & _WORD, np.uint32)


def _threefry_blocks(key: int, counter: int, blocks: int) -> tuple[Array, Array]:
    counters = np.uint64(counter) + np.arange(blocks, dtype=np.uint64)
    return threefry(_split(key), (_low(counters), _high(counters)))


def _threefry_bits(state: Array, shape: Shape) -> tuple[Array, Array]:
    """Return the new state, and words of the shape; the counter is a 64-bit number."""
    key, counter = (int(s) for s in state[:2])
    if shape.dtype.bits == 64:
        blocks = shape.size
        x, y = _threefry_blocks(key, counter, blocks)
        bits = (x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)).reshape(shape.dims)
    else:
        dims = shape.dims or (1,)
        at = next((d for d, n in enumerate(dims) if n % 2 == 0), None)
        at = dims.index(max(dims)) if at is None else at
        half = (*dims[:at], (dims[at] + 1) // 2, *dims[at + 1 :])
        blocks = prod(half)
        pair = np.stack([w.reshape(half) for w in _threefry_blocks(key, counter, blocks)], axis=at + 1)
        bits_of_all = pair.reshape(*dims[:at], 2 * half[at], *dims[at + 1 :])
        bits = bits_of_all[(*[slice(None)] * at, slice(dims[at]))].reshape(shape.dims)
    return np.array([key, (counter + blocks) % 2**64], np.uint64), bits


def _philox_bits(state: Array, shape: Shape) -> tuple[Array, Array]:
    """Return the new state, and words of the shape; a state of two words has the lower half of the 128-bit counter."""
    key, low = int(state[0]), int(state[1])
    high = int(state[2]) if state.size > 2 else key
    wide = shape.dtype.bits == 64
    blocks = -(-shape.size * (2 if wide else 1) // 4)
    first = low + (high << 64)
    lows = np.uint64(low) + np.arange(blocks, dtype=np.uint64)
    highs = np.uint64(high) + (lows < np.uint64(low)).astype(np.uint64)
    words = np.stack(philox(key, (_low(lows), _high(lows), _low(highs), _high(highs))), axis=-1).reshape(-1)
    if wide:
        words = words[0::2].astype(np.uint64) | words[1::2].astype(np.uint64) << np.uint64(32)
    after = (first + blocks) % 2**128
    new = [key, after % 2**64, after >> 64][: state.size]
    return np.array(new, np.uint64), words[: shape.size].reshape(shape.dims)


_ALGORITHMS = {"rng_three_fry": _threefry_bits, "rng_philox": _philox_bits, "rng_default": _philox_bits}


@evaluates("rng-bit-generator")
def rng_bit_generator(ev: Evaluation, ins: Instruction, state: Value) -> Value:
    """Return the new state and random bits; narrow results have the low bits of one 32-bit word each."""
    old = array_of(state)
    as_words = np.ascontiguousarray(old).reshape(-1).view(np.uint64)  # a state of u32 holds pairs, lower word first
    new_shape, shape = ins.shape.elements
    new, bits = _ALGORITHMS[ins.attrs["algorithm"]](as_words, shape)
    return new.view(old.dtype).reshape(new_shape.dims), _narrow(bits, shape.dtype)


def _narrow(bits: Array, dtype: ElementType) -> Array:
    if dtype.is_float:
        raise UnimplementedError(f"rng-bit-generator returns integers, not {dtype}")
    unsigned = bits.astype(np.dtype(f"u{dtype.itemsize}")) if dtype.bits >= 8 else bits & np.uint32(2**dtype.bits - 1)
    return convert_array(unsigned, dtype)


@evaluates("rng-get-and-update-state")
def rng_get_and_update_state(ev: Evaluation, ins: Instruction) -> Value:
    """Return the run's 128-bit state, lower half first, and add `delta` to it."""
    state = int(ev.state.get(_STATE, _FIRST_STATE + (ev.options.seed << 64))) % 2**128
    ev.state[_STATE] = state + int(ins.attrs["delta"])
    return np.array([state % 2**64, state >> 64], np.uint64).reshape(ins.shape.dims)


@evaluates("rng")
def rng(ev: Evaluation, ins: Instruction, first: Value, second: Value) -> Value:
    """Draw from [first, second), or normally with mean `first` and deviation `second`; the generator is per run."""
    generator = ev.state.setdefault("rng", np.random.default_rng(ev.options.seed))
    dtype = ins.shape.dtype
    if dtype.is_complex:
        raise UnimplementedError(f"rng of {dtype}")
    a, b = array_of(first), array_of(second)
    if ins.attrs["distribution"] == "rng_normal":
        return convert_array(generator.normal(size=ins.shape.dims) * float(b) + float(a), dtype)
    return _uniform(generator, a, b, ins.shape)


def _uniform(generator: np.random.Generator, low: Array, high: Array, shape: Shape) -> Array:
    dtype: Any = numpy_dtype(shape)
    if shape.dtype.is_float:
        unit = np.asarray(generator.random(shape.dims))
        samples = convert_array(unit * (float(high) - float(low)) + float(low), shape.dtype)
        return np.where(samples < high, samples, low)  # rounding may have reached the end, which is excluded
    start, end = int(low), int(high)
    if shape.dtype is ElementType.PRED:
        return (
            generator.integers(0, 2, shape.dims).astype(np.bool_)
            if end > start
            else np.full(shape.dims, start, np.bool_)
        )
    if end <= start:
        return np.full(shape.dims, start, dtype)
    span = generator.integers(0, end - start, shape.dims, dtype=np.uint64)
    return convert_array(span + np.uint64(start % 2**64), shape.dtype)
