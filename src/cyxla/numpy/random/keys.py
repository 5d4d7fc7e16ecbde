"""Keys: arrays of 128 bits that determine random numbers.

A key is a plain array, uint64[2], so it can be an argument, the carry of a loop, or a row of an array of keys. `split`
and `fold_in` derive keys from it that are independent of it and of each other.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, ShapeError, TraceError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = Any
WORDS = 2
_U64 = ElementType.U64
_INCREMENT, _MULTIPLIER_1, _MULTIPLIER_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_SPLIT_STREAM, _FOLD_IN_STREAM = 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7  # streams that keys are derived from


def key(seed: Any) -> Array:
    """Make a key from a number.

    Parameters
    ----------
    seed : int or integer array of rank 0
        Seed from 0 to 2**64 - 1.

    Returns
    -------
    array of uint64[2]
        Key; traced inside a traced function.

    Raises
    ------
    ValueError
        The seed is out of range.
    """
    if isinstance(seed, TracedArray):
        if seed.shape != () or seed.dtype.kind not in "iu":
            raise DTypeError(f"a seed must be an integer, not {seed.dtype}{list(seed.shape)}")
        start: Array = np.reshape(seed.astype(np.uint64), (1,))
    else:
        number = index(seed)
        if not 0 <= number < 2**64:
            raise ValueError(f"the seed {number} is not in 0 .. 2**64 - 1")
        start = np.array([number], np.uint64)
    steps = np.array([_INCREMENT, 2 * _INCREMENT % 2**64], np.uint64)
    words = _mix(start + steps)
    return as_traced(words) if _trace.current() is not None else words


def _mix(x: Array) -> Array:
    """Mix the bits of words by a bijection, so that every bit depends on all bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_MULTIPLIER_1)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_MULTIPLIER_2)
    return x ^ (x >> np.uint64(31))


def state_of(key: Any) -> XlaOp:
    """Return the state of the bit generator for a key: key, counter, stream.

    Raises
    ------
    ShapeError
        The key is not an array of two words.
    DTypeError
        The dtype is not uint64.
    """
    first, second = _key_words(key)
    return xla.concatenate([first, xla.broadcast(xla.constant(first.builder, 0, _U64), (1,)), second], 0)


def _key_words(key: Any) -> tuple[XlaOp, XlaOp]:
    array = as_traced(key)
    if array.dtype != np.uint64:
        raise DTypeError(f"a key must have dtype uint64, not {array.dtype}", hint="make keys by cyxla.random.key(seed)")
    if array.shape != (WORDS,):
        raise ShapeError(
            f"a key must have shape ({WORDS},), not {array.shape}", hint="pass one row of the result of split()"
        )
    op = value_of(array)
    return xla.slice_(op, (0,), (1,)), xla.slice_(op, (1,), (2,))


def _derive(key: Any, stream_key: int, start: XlaOp | None, count: int) -> TracedArray:
    """Derive keys from a stream that is used for nothing else, starting at a counter."""
    first_word, second_word = _key_words(key)
    counter = xla.broadcast(xla.constant(first_word.builder, 0, _U64), (1,)) if start is None else start
    stream = xla.xor(second_word, xla.broadcast(xla.constant(first_word.builder, np.uint64(stream_key)), (1,)))
    state = xla.concatenate([first_word, counter, stream], 0)
    generated = xla.rng_bit_generator(state, Shape.array(_U64, (count, WORDS)), "rng_philox")
    return TracedArray(xla.get_tuple_element(generated, 1))


def split(key: Any, num: int = 2) -> Array:
    """Derive several keys from one, which must not be used any more.

    Parameters
    ----------
    key : array of uint64[2]
        Key, as made by `key`.
    num : int
        Number of keys to derive.

    Returns
    -------
    array of uint64[num, 2]
        One key in each row.
    """
    count = index(num)
    if count < 0:
        raise ValueError(f"split: num must not be negative, but is {count}")
    if count == 0:
        return as_traced(np.zeros((0, WORDS), np.uint64))
    return _derive(key, _SPLIT_STREAM, None, count)


def fold_in(key: Any, data: Any) -> Array:
    """Derive a key from a key and a number, such as that of a loop's iteration.

    Parameters
    ----------
    key : array of uint64[2]
        Key, as made by `key`. It may be folded with other numbers, but not used otherwise.
    data : int or integer array of rank 0
        Number; different numbers give different keys.
    """
    number: Array = as_traced(data)
    if number.shape != () or number.dtype.kind not in "iu":
        raise DTypeError(f"fold_in: data must be an integer, not {number.dtype}{list(number.shape)}")
    counter: Array = np.reshape(number.astype(np.uint64), (1,))
    derived: Array = _derive(key, _FOLD_IN_STREAM, value_of(counter), 1)
    return np.reshape(derived, (WORDS,))


def require_trace(name: str) -> None:
    """Refuse calls outside of traced functions.

    Raises
    ------
    TraceError
        No function is being traced.
    """
    if _trace.current() is None:
        raise TraceError(
            f"{name} can only be called in a traced function", hint="cyxla.random.normal(key, ...) works anywhere"
        )
