"""Philox 4x32-10 in HLO, and distributions of its words.

Integers and floats in [0, 1) equal those of the eager kernels bit for bit; normal numbers up to the rounding of
logarithm, sine and cosine.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, prod
from typing import Any

import numpy as np

from cyxla.core.framework.philox_state import RESERVED, ROUNDS
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.types import element_type
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota_along, scalar, select, sizes_of

U16, U32, U64 = ElementType.U16, ElementType.U32, ElementType.U64

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_SEED_KEY = (0x3EC8F720, 0x02461E29)
_MIN_UNIFORM = 1.0e-7  # lower bound of logarithms' arguments
_MANTISSAS = {ElementType.F32: (U32, 23, 127), ElementType.F16: (U16, 10, 15), ElementType.BF16: (U16, 7, 127)}


def number(builder: XlaBuilder, value: int, dtype: ElementType) -> XlaOp:
    """Return a constant of an unsigned type."""
    return xla.constant(builder, np.array(value, dtype.numpy_dtype), dtype)


def unsigned64(op: XlaOp) -> XlaOp:
    """Convert an integer to u64, modulo 2^64."""
    return op if op.shape.dtype is U64 else xla.convert(op, U64)


def _low(x: XlaOp) -> XlaOp:
    return xla.convert(x & scalar(x, 0xFFFFFFFF), U32)


def _high(x: XlaOp) -> XlaOp:
    return xla.convert(xla.shift_right_logical(x, _like(x, 32)), U32)


def _like(x: XlaOp, value: Any) -> XlaOp:
    return xla.broadcast(scalar(x, value), sizes_of(x))


def joined(low: XlaOp, high: XlaOp) -> XlaOp:
    """Join lower and upper u32 words to u64."""
    wide = xla.convert(high, U64)
    return xla.convert(low, U64) | xla.shift_left(wide, _like(wide, 32))


def _product(x: XlaOp, multiplier: int) -> tuple[XlaOp, XlaOp]:
    """Return lower and upper word of the product of a word and a constant."""
    wide = xla.convert(x, U64)
    full = wide * _like(wide, multiplier)
    return _low(full), _high(full)


@dataclass(frozen=True)
class Generator:
    """Philox generator with u64 scalars.

    Parameters
    ----------
    key : XlaOp
    low, high : XlaOp
        Halves of the counter of the next block.
    """

    key: XlaOp
    low: XlaOp
    high: XlaOp

    @classmethod
    def from_seed(cls, seed: XlaOp) -> Generator:
        """Make the generator of a seed of two integers, which are scrambled by one block."""
        builder = seed.builder
        first, second = (
            xla.reshape(xla.slice_in_dim(xla.convert(seed, ElementType.S64), i, i + 1), ()) for i in range(2)
        )
        key = number(builder, _SEED_KEY[0] | _SEED_KEY[1] << 32, U64)
        words = cls(key, xla.bitcast_convert(first, U64), xla.bitcast_convert(second, U64)).words(1)
        w = [xla.reshape(x, ()) for x in words]
        return cls(joined(w[0], w[1]), number(builder, 0, U64), joined(w[2], w[3]))

    def skip(self, blocks: XlaOp) -> Generator:
        """Return the generator advanced by a number of blocks, a u64 scalar."""
        low = self.low + blocks
        return Generator(self.key, low, self.high + xla.convert(xla.lt(low, self.low), U64))

    def words(self, count: int) -> list[XlaOp]:
        """Return the next blocks as four u32[count]."""
        return self.words_at(iota_along(self.key.builder, U64, (count,), 0))

    def words_at(self, offsets: XlaOp) -> list[XlaOp]:
        """Return the blocks at offsets u64[n] from the counter as four u32[n]."""
        sizes = sizes_of(offsets)
        first, above = xla.broadcast(self.low, sizes), xla.broadcast(self.high, sizes)
        at = offsets + first
        above = above + xla.convert(xla.lt(at, first), U64)
        x = [_low(at), _high(at), _low(above), _high(above)]
        key = xla.broadcast(self.key, sizes)
        k0, k1 = _low(key), _high(key)
        for _ in range(ROUNDS):
            (a_low, a_high), (b_low, b_high) = _product(x[0], _MULTIPLIERS[0]), _product(x[2], _MULTIPLIERS[1])
            x = [b_high ^ x[1] ^ k0, b_low, a_high ^ x[3] ^ k1, a_low]
            k0, k1 = k0 + _like(k0, _WEYL[0]), k1 + _like(k1, _WEYL[1])
        return x


def _interleave(columns: list[XlaOp], count: int) -> XlaOp:
    """Interleave columns row by row and return the first elements."""
    rows = sizes_of(columns[0])[0]
    table = xla.concatenate([xla.reshape(c, (rows, 1)) for c in columns], 1)
    return xla.slice_in_dim(xla.reshape(table, (rows * len(columns),)), 0, count)


def _unit(words: XlaOp, dtype: ElementType) -> XlaOp:
    """Convert words to floats in [0, 1): some bits of each become a fraction."""
    holder, mantissa, exponent = _MANTISSAS[dtype]
    bits = xla.convert(words, holder)
    bits = (bits & _like(bits, (1 << mantissa) - 1)) | _like(bits, exponent << mantissa)
    result = xla.bitcast_convert(bits, dtype)
    return result - _like(result, 1)


def unit64(upper: XlaOp, lower: XlaOp) -> XlaOp:
    """Convert pairs of words to f64 in [0, 1)."""
    bits = joined(lower, upper & _like(upper, 0xFFFFF))
    result = xla.bitcast_convert(bits | _like(bits, 1023 << 52), ElementType.F64)
    return result - _like(result, 1)


def _columns(words: list[XlaOp], dtype: ElementType) -> list[XlaOp]:
    """Return the uniform numbers in [0, 1), or over all integers, that each block yields, as columns."""
    if dtype is ElementType.F64:
        return [unit64(words[0], words[1]), unit64(words[2], words[3])]
    if dtype.is_float:
        return [_unit(w, dtype) for w in words]
    if dtype.bits == 64:
        return [xla.convert(joined(words[i], words[i + 1]), dtype) for i in (0, 2)]
    return [xla.convert(w, dtype) for w in words]


def _box_muller(first: XlaOp, second: XlaOp) -> list[XlaOp]:
    """Apply the Box-Muller transform: two uniform numbers become a sine part and a cosine part."""
    radius = xla.sqrt(xla.log(xla.maximum(first, _like(first, _MIN_UNIFORM))) * _like(first, -2))
    wide = xla.convert(second, ElementType.F64)
    angle = xla.convert(wide * _like(wide, 2 * pi), first.shape.dtype)
    return [xla.sine(angle) * radius, xla.cosine(angle) * radius]


def _normal_columns(words: list[XlaOp], dtype: ElementType) -> list[XlaOp]:
    """Return the normal numbers that each block yields, as columns; narrow types are in f32."""
    units = _columns(words, ElementType.F64 if dtype is ElementType.F64 else ElementType.F32)
    return [part for i in range(0, len(units), 2) for part in _box_muller(units[i], units[i + 1])]


def elements_per_block(dtype: ElementType) -> int:
    """Return the number of elements that a block yields."""
    return 2 if dtype.bits == 64 else 4


# Arrays


def uniform(generator: Generator, sizes: tuple[int, ...], dtype: DataType) -> XlaOp:
    """Draw floats in [0, 1), or integers over their whole range."""
    return _fill(generator, sizes, element_type(dtype), _columns)


def normal(generator: Generator, sizes: tuple[int, ...], dtype: DataType) -> XlaOp:
    """Draw floats of the normal distribution."""
    return _fill(generator, sizes, element_type(dtype), _normal_columns)


def _fill(generator: Generator, sizes: tuple[int, ...], dtype: ElementType, columns: Any) -> XlaOp:
    count = prod(sizes)
    result = _interleave(columns(generator.words(-(-count // elements_per_block(dtype))), dtype), count)
    if result.shape.dtype is not dtype:
        result = xla.convert(result, dtype)
    return xla.reshape(result, sizes)


def uniform_int(generator: Generator, sizes: tuple[int, ...], low: XlaOp, high: XlaOp) -> XlaOp:
    """Draw integers in [low, high) of the scalars' type, by the remainder of whole words."""
    dtype = low.shape.dtype
    unsigned = U64 if dtype.bits == 64 else U32
    bits = _fill(generator, sizes, unsigned, _columns)
    least, end = (xla.broadcast(xla.convert(x, unsigned), sizes) for x in (low, high))
    return xla.convert(least + xla.remainder(bits, end - least), dtype)


def truncated_normal(generator: Generator, sizes: tuple[int, ...], dtype: DataType) -> XlaOp:
    """Draw normal floats within two standard deviations, redrawing the others in a loop.

    Each group of elements has its own blocks; accepted numbers fill the group in order.
    """
    element, count = element_type(dtype), prod(sizes)
    group = elements_per_block(element)
    groups = -(-count // group)
    builder = generator.key.builder
    wide = ElementType.F64 if element is ElementType.F64 else ElementType.F32
    init = [
        number(builder, 0, U64),
        xla.broadcast(number(builder, 0, ElementType.S32), (groups,)),
        xla.broadcast(number(builder, 0, wide), (groups, group)),
        generator.key, generator.low, generator.high,
    ]  # fmt: skip
    state = xla.tuple_(builder, init)
    loop = xla.while_(_has_unfilled(state.shape, group), _draw(state.shape, group, wide), state)
    result = xla.reshape(xla.get_tuple_element(loop, 2), (groups * group,))
    return xla.reshape(xla.convert(xla.slice_in_dim(result, 0, count), element), sizes)


def _state(builder: XlaBuilder, shape: Shape) -> list[XlaOp]:
    state = xla.parameter(builder, 0, shape)
    return [xla.get_tuple_element(state, i) for i in range(len(shape.elements))]


def _has_unfilled(shape: Shape, group: int) -> XlaComputation:
    """Build the condition: true while a group is not full."""
    builder = XlaBuilder("unfilled")
    filled = _state(builder, shape)[1]
    minimum = scalar_computation("minimum", ElementType.S32)
    least = xla.reduce(filled, scalar(filled, group), minimum, [0])
    return builder.build(xla.lt(least, scalar(filled, group)))


def _draw(shape: Shape, group: int, dtype: ElementType) -> XlaComputation:
    """Build the body: draw one block per group, and append the accepted numbers."""
    builder = XlaBuilder("draw")
    iteration, filled, out, key, low, high = _state(builder, shape)
    groups = sizes_of(filled)[0]
    starts = iota_along(builder, U64, (groups,), 0)
    offsets = starts * _like(starts, group * RESERVED // 4) + xla.broadcast(iteration, (groups,))
    positions = iota_along(builder, ElementType.S32, (groups, group), 1)
    for samples in _normal_columns(Generator(key, low, high).words_at(offsets), dtype):
        accepted = xla.lt(xla.abs_(samples), _like(samples, 2)) & xla.lt(filled, _like(filled, group))
        selected = xla.eq(positions, _rows(filled, group)) & _rows(accepted, group)
        out = select(selected, _rows(samples, group), out)
        filled = filled + xla.convert(accepted, ElementType.S32)
    return builder.build(xla.tuple_(builder, [iteration + scalar(iteration, 1), filled, out, key, low, high]))


def _rows(x: XlaOp, width: int) -> XlaOp:
    """Broadcast each element of a vector along a row."""
    return xla.broadcast_in_dim(x, (sizes_of(x)[0], width), (0,))
