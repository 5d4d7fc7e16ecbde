"""Loops of integers with NumPy's semantics: division by zero gives 0, nothing traps, negative powers are errors."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.ufuncs.loop_helpers import UNSIGNED_OF, Emit, full
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla


def _is_zero(x: XlaOp) -> XlaOp:
    return xla.eq(x, full(x, 0))


def _nonzero_divisor(y: XlaOp) -> XlaOp:
    return xla.select(_is_zero(y), full(y, 1), y)


def divmod_(x: XlaOp, y: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Compute floored quotient and remainder; both 0 for division by zero."""
    known = known_constant(y)
    if known is not None and (known != 0).all():
        return _floor_from_remainder(x, y, xla.remainder(x, y), bool((known > 0).all()))
    is_zero_divisor, zero, safe = _is_zero(y), full(x, 0), _nonzero_divisor(y)
    rest = xla.subtract(x, xla.multiply(xla.divide(x, safe), safe))  # a second division would take longer
    quotient, rest = _floor_from_remainder(x, safe, rest, False)
    return xla.select(is_zero_divisor, zero, quotient), xla.select(is_zero_divisor, zero, rest)


def _floor_from_remainder(x: XlaOp, y: XlaOp, rest: XlaOp, positive: bool) -> tuple[XlaOp, XlaOp]:
    """Return floored quotient and remainder for nonzero divisors, from the remainder of the truncated quotient."""
    quotient = xla.divide(x, y)
    if not x.shape.dtype.is_signed:
        return quotient, rest
    zero = full(x, 0)
    not_floored = xla.lt(rest, zero)
    if not positive:
        not_floored = xla.and_(xla.ne(rest, zero), xla.lt(xla.xor(rest, y), zero))
    floored = xla.select(not_floored, xla.subtract(quotient, full(x, 1)), quotient)
    return floored, xla.select(not_floored, xla.add(rest, y), rest)


def floor_divide(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute the floored quotient."""
    return divmod_(x, y)[0]


def remainder(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute the remainder of the floored quotient."""
    return divmod_(x, y)[1]


def fmod(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute the remainder of the truncated quotient; 0 for division by zero."""
    return xla.select(_is_zero(y), full(x, 0), xla.remainder(x, _nonzero_divisor(y)))


def reciprocal(x: XlaOp) -> XlaOp:
    """Compute 1 / x truncated; of zero, the integer to which C converts infinity."""
    dtype = x.shape.dtype.numpy_dtype
    assert dtype is not None
    with np.errstate(all="ignore"):
        of_zero = np.reciprocal(np.zeros(1, dtype))[0]
    return xla.select(_is_zero(x), full(x, of_zero), xla.divide(full(x, 1), _nonzero_divisor(x)))


def power(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute a power; a negative exponent is an error of the run, or while tracing if it is known.

    Raises
    ------
    ValueError
        A negative exponent is known while tracing.
    """
    if y.shape.dtype.is_signed:
        _fail_if_negative(y)
    return xla.power(x, y)


def _negative_power(_: int) -> Exception:
    return ValueError("Integers to negative integer powers are not allowed.")


def _fail_if_negative(y: XlaOp) -> None:
    if 0 in y.shape.dims:
        return
    known = known_constant(y)
    if known is not None:
        if (known < 0).any():
            raise _negative_power(0)
        return
    negative = any_of(xla.lt(y, full(y, 0)))
    _trace.require_current().fail_if(negative, xla.constant(y.builder, 0, ElementType.S64), _negative_power)


def known_constant(x: XlaOp) -> np.ndarray[Any, Any] | None:
    """Return the value of a constant or a broadcast constant; None for other values."""
    instruction = x.instruction
    while instruction is not None and instruction.opcode == "broadcast":
        instruction = instruction.operands[0]
    if instruction is None or instruction.opcode != "constant":
        return None
    return np.asarray(instruction.attrs["literal"].array)


def any_of(x: XlaOp) -> XlaOp:
    """Return a scalar that is true if any element is true."""
    if x.shape.rank == 0:
        return x
    return xla.reduce(x, False, scalar_computation("or", ElementType.PRED), range(x.shape.rank))


def absolute_as_unsigned(x: XlaOp) -> XlaOp:
    """Compute the absolute value in the unsigned type, which can hold that of the least integer."""
    unsigned = UNSIGNED_OF.get(x.shape.dtype)
    return x if unsigned is None else xla.convert(xla.abs_(x), unsigned)


def bitwise_count(x: XlaOp) -> XlaOp:
    """Count the bits set in the absolute value."""
    return xla.convert(xla.popcnt(absolute_as_unsigned(x)), ElementType.U8)


def gcd(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute the greatest common divisor by Euclid's algorithm on all elements at once."""
    return xla.convert(_gcd(absolute_as_unsigned(x), absolute_as_unsigned(y)), x.shape.dtype)


def _gcd(x: XlaOp, y: XlaOp) -> XlaOp:
    state = xla.tuple_(x.builder, [x, y])
    condition, step = _euclid_loop(x.shape.dtype, x.shape.dims)
    return xla.get_tuple_element(xla.while_(condition, step, state), 0)


@lru_cache(maxsize=64)
def _euclid_loop(dtype: ElementType, sizes: tuple[int, ...]) -> tuple[XlaComputation, XlaComputation]:
    one = Shape.array(dtype, sizes)
    shape = Shape.tuple((one, one))
    builders = XlaBuilder("going"), XlaBuilder("euclid")
    state, inner = (xla.parameter(b, 0, shape, "state") for b in builders)
    condition = any_of(xla.ne(xla.get_tuple_element(state, 1), full(xla.get_tuple_element(state, 1), 0)))
    x, y = (xla.get_tuple_element(inner, k) for k in range(2))
    done = _is_zero(y)
    next_values = [xla.select(done, x, y), xla.select(done, y, xla.remainder(x, _nonzero_divisor(y)))]
    return builders[0].build(condition), builders[1].build(xla.tuple_(builders[1], next_values))


def lcm(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute the least common multiple; 0 if one operand is 0."""
    a, b = absolute_as_unsigned(x), absolute_as_unsigned(y)
    common = _gcd(a, b)
    multiple = xla.multiply(xla.divide(a, _nonzero_divisor(common)), b)
    return xla.convert(xla.select(_is_zero(common), full(a, 0), multiple), x.shape.dtype)


def compare_by_value(function: Emit) -> Emit:
    """Return a comparison that orders signed and unsigned integers by value, as NumPy does."""

    def emit(x: XlaOp, y: XlaOp) -> XlaOp:
        result: XlaOp
        if x.shape.dtype is y.shape.dtype:
            result = function(x, y)
            return result
        if x.shape.dtype.is_signed:
            signed, as_unsigned = x, xla.convert(x, ElementType.U64)
            by_value = function(as_unsigned, y)
            if_negative = function(full(x, -1), full(x, 0))
        else:
            signed, as_unsigned = y, xla.convert(y, ElementType.U64)
            by_value = function(x, as_unsigned)
            if_negative = function(full(y, 0), full(y, -1))
        return xla.select(xla.lt(signed, full(signed, 0)), if_negative, by_value)

    return emit
