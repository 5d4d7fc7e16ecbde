"""Loops of floats that need more than one HLO instruction, or deviate from it."""

from __future__ import annotations

from math import e, log, log10, pi

import numpy as np

from cyxla.numpy.ufuncs.integer_loops import known_constant
from cyxla.numpy.ufuncs.loop_helpers import (
    BIAS,
    BITS,
    MANTISSA,
    NARROW,
    Cotangents,
    Emit,
    Ops,
    Vjp,
    full,
    in_f32,
    with_vjp,
    zero_gradient,
)
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_LN2 = log(2)


# -- bits


def bits_of(x: XlaOp) -> XlaOp:
    """Bitcast to a signed integer."""
    return xla.bitcast_convert(x, BITS[x.shape.dtype])


def signbit(x: XlaOp) -> XlaOp:
    """Test the sign bit, also of zero and nan."""
    bits = bits_of(x)
    return xla.lt(bits, full(bits, 0))


def is_nan(x: XlaOp) -> XlaOp:
    """Test for nan."""
    return xla.ne(x, x)


def is_inf(x: XlaOp) -> XlaOp:
    """Test for infinity."""
    return xla.eq(xla.abs_(x), full(x, np.inf))


def _copysign(x: XlaOp, y: XlaOp) -> XlaOp:
    magnitude = xla.abs_(x)
    return xla.select(signbit(y), xla.negate(magnitude), magnitude)


copysign = with_vjp(
    _copysign,
    lambda ops, outs, cts: [
        None if cts[0] is None else xla.select(xla.eq(signbit(ops[0]), signbit(ops[1])), cts[0], -cts[0]), None,
    ],
)  # fmt: skip


def _adjacent(x: XlaOp, up: XlaOp) -> XlaOp:
    """Return the next float above, or below, a number: one step of its bits as an integer."""
    bits = bits_of(x)
    one = full(bits, 1)
    away_from_zero = xla.eq(up, xla.gt(x, full(x, 0)))
    stepped = xla.select(away_from_zero, xla.add(bits, one), xla.subtract(bits, one))
    smallest = xla.bitcast_convert(one, x.shape.dtype)
    from_zero = xla.select(up, smallest, xla.negate(smallest))
    return xla.select(xla.eq(x, full(x, 0)), from_zero, xla.bitcast_convert(stepped, x.shape.dtype))


def _nextafter(x: XlaOp, y: XlaOp) -> XlaOp:
    equal_result = x if x.shape.dtype is ElementType.F16 else y  # of zeros with different signs
    adjacent = xla.select(xla.eq(x, y), equal_result, _adjacent(x, xla.gt(y, x)))
    return xla.select(is_nan(x), x, xla.select(is_nan(y), y, adjacent))


nextafter = with_vjp(_nextafter, lambda ops, outs, cts: [cts[0], None])


def _spacing(x: XlaOp) -> XlaOp:
    up = xla.ge(x, full(x, 0)) if x.shape.dtype is not ElementType.F16 else full(x, True, ElementType.PRED)
    step = xla.subtract(_adjacent(x, up), x)  # for 16-bit floats NumPy's spacing is never negative
    return xla.select(xla.is_finite(x), step, full(x, np.nan))


spacing = zero_gradient(_spacing)


# -- rounding and signs


def trunc(x: XlaOp) -> XlaOp:
    """Round towards zero."""
    return xla.select(xla.lt(x, full(x, 0)), xla.ceil(x), xla.floor(x))


def sign(x: XlaOp) -> XlaOp:
    """Compute the sign: -1, 0 without a sign, 1 or nan."""
    return xla.select(xla.eq(x, full(x, 0)), full(x, 0), xla.sign(x))


def heaviside(x: XlaOp, middle: XlaOp) -> XlaOp:
    """Compute the step function: 0 below zero, 1 above, the second operand at zero."""
    zero = full(x, 0)
    sides = xla.select(xla.lt(x, zero), zero, xla.select(xla.gt(x, zero), full(x, 1), middle))
    return xla.select(is_nan(x), x, sides)


# -- extremes


def fmax(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute the maximum, ignoring nan."""
    return xla.select(is_nan(x), y, xla.select(is_nan(y), x, xla.maximum(x, y)))


def fmin(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute the minimum, ignoring nan."""
    return xla.select(is_nan(x), y, xla.select(is_nan(y), x, xla.minimum(x, y)))


# -- division with a remainder


def _floor_divmod(x: XlaOp, y: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return the floored quotient and the remainder with the sign of y, for nonzero y, by NumPy's algorithm."""
    zero, one = full(x, 0), full(x, 1)
    rest = xla.remainder(x, y)
    quotient = xla.divide(xla.subtract(x, rest), y)
    nonzero = xla.ne(rest, zero)
    needs_correction = xla.and_(nonzero, xla.ne(xla.lt(y, zero), xla.lt(rest, zero)))
    quotient = xla.select(needs_correction, xla.subtract(quotient, one), quotient)
    modulus = xla.select(needs_correction, xla.add(rest, y), xla.select(nonzero, rest, _copysign(zero, y)))
    floor = xla.floor(quotient)
    floor = xla.select(xla.gt(xla.subtract(quotient, floor), full(x, 0.5)), xla.add(floor, one), floor)
    signed_zero = _copysign(zero, xla.divide(x, y))
    return xla.select(xla.ne(quotient, zero), floor, signed_zero), modulus


def _divmod(x: XlaOp, y: XlaOp) -> tuple[XlaOp, XlaOp]:
    quotient, modulus = _floor_divmod(x, y)
    by_zero = xla.eq(y, full(y, 0))
    return xla.select(by_zero, xla.divide(x, y), quotient), xla.select(by_zero, full(x, np.nan), modulus)


def _negated_product(a: XlaOp | None, b: XlaOp) -> XlaOp | None:
    return None if a is None else xla.negate(xla.multiply(a, b))


divmod_ = with_vjp(
    in_f32(_divmod), lambda ops, outs, cts: [cts[1], _negated_product(cts[1], xla.floor(xla.divide(*ops)))]
)
floor_divide = zero_gradient(in_f32(lambda x, y: _divmod(x, y)[0]))
remainder = with_vjp(
    in_f32(lambda x, y: _divmod(x, y)[1]),
    lambda ops, outs, cts: [cts[0], _negated_product(cts[0], xla.floor(xla.divide(*ops)))],
)
fmod = with_vjp(xla.remainder, lambda ops, outs, cts: [cts[0], _negated_product(cts[0], trunc(xla.divide(*ops)))])


def _modf(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    integer_part = trunc(x)
    part = xla.select(is_inf(x), full(x, 0), xla.subtract(x, integer_part))
    return xla.select(is_nan(x), x, _copysign(part, x)), integer_part


modf = with_vjp(_modf, lambda ops, outs, cts: [cts[0]])


# -- mantissa and exponent


def _split(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Split finite nonzero floats: signed mantissa of magnitude in [1, 2), exponent as an integer of the same width."""
    dtype = x.shape.dtype
    width, bias = MANTISSA[dtype], BIAS[dtype]
    is_tiny = xla.lt(xla.abs_(x), full(x, 2.0 ** (2 - bias)))
    normalized = xla.select(is_tiny, xla.multiply(x, full(x, 2.0 ** (width + 2))), x)
    bits = bits_of(normalized)
    exponent_mask = (1 << (bits.shape.dtype.bits - 1 - width)) - 1
    exponent = xla.and_(xla.shift_right_logical(bits, full(bits, width)), full(bits, exponent_mask))
    shift = xla.select(is_tiny, full(bits, bias + width + 2), full(bits, bias))
    mantissa = xla.or_(xla.and_(bits, full(bits, ~(exponent_mask << width))), full(bits, bias << width))
    return xla.bitcast_convert(mantissa, dtype), xla.subtract(exponent, shift)


def _frexp(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    mantissa, exponent = _split(x)
    is_regular = xla.and_(xla.is_finite(x), xla.ne(x, full(x, 0)))
    shifted_exponent = xla.convert(xla.add(exponent, full(exponent, 1)), ElementType.S32)
    half = xla.multiply(mantissa, full(x, 0.5))
    return xla.select(is_regular, half, x), xla.select(is_regular, shifted_exponent, full(shifted_exponent, 0))


def _power_of_two(n: XlaOp, dtype: ElementType) -> XlaOp:
    """Compute 2**n for exponents of normal floats."""
    bits = xla.convert(n, BITS[dtype])
    width = MANTISSA[dtype]
    return xla.bitcast_convert(xla.shift_left(xla.add(bits, full(bits, BIAS[dtype])), full(bits, width)), dtype)


def _ldexp(x: XlaOp, n: XlaOp) -> XlaOp:
    """Compute x * 2**n in up to three steps, of which only the last one can round."""
    dtype = x.shape.dtype
    top, width = BIAS[dtype], MANTISSA[dtype]
    n = xla.clamp(full(n, -3 * top), n, full(n, 3 * top))
    n = xla.convert(n, ElementType.S32)
    for _ in range(2):
        high, low = xla.gt(n, full(n, top)), xla.lt(n, full(n, 1 - top))
        step = xla.select(high, full(x, 2.0**top), full(x, 2.0 ** (1 - top + width + 1)))
        x = xla.select(xla.or_(high, low), xla.multiply(x, step), x)
        n = xla.subtract(n, xla.select(high, full(n, top), xla.select(low, full(n, width + 2 - top), full(n, 0))))
    last = xla.clamp(full(n, 1 - top), n, full(n, top))
    return xla.multiply(x, _power_of_two(last, dtype))


def _ldexp_vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
    return [None if cts[0] is None else ldexp(cts[0], ops[1]), None]


ldexp = with_vjp(in_f32(_ldexp), _ldexp_vjp)
frexp = with_vjp(
    in_f32(_frexp), lambda ops, outs, cts: [None if cts[0] is None else ldexp(cts[0], xla.negate(outs[1]))]
)


# -- exponentials and logarithms to other bases


def _exp2(x: XlaOp) -> XlaOp:
    return xla.power(full(x, 2), x)


exp2 = with_vjp(_exp2, lambda ops, outs, cts: [None if cts[0] is None else cts[0] * outs[0] * full(outs[0], _LN2)])


def _split_near_one(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return the mantissa in (sqrt(1/2), sqrt(2)] and the exponent, as a float, for x > 0."""
    mantissa, exponent = _split(x)
    above = xla.gt(mantissa, full(x, 2**0.5))
    exponent_float = _as_float(exponent, x.shape.dtype)
    exponent_float = xla.select(above, xla.add(exponent_float, full(x, 1)), exponent_float)
    return xla.select(above, xla.multiply(mantissa, full(x, 0.5)), mantissa), exponent_float


def _as_float(n: XlaOp, dtype: ElementType) -> XlaOp:
    """Convert a small integer to a float through the mantissa of a large one: conversions of 64 bits are slow."""
    width = MANTISSA[dtype]
    large = 1.5 * 2.0**width
    bits = int(np.asarray(large, dtype.numpy_dtype).view(f"i{dtype.bits // 8}"))
    return xla.subtract(xla.bitcast_convert(xla.add(n, full(n, bits)), dtype), full(n, large, dtype))


def _log_special_cases(x: XlaOp, logarithm: XlaOp) -> XlaOp:
    """Replace the logarithms of zero, infinity, negative numbers and nan."""
    zero = full(x, 0)
    positive_result = xla.select(xla.eq(x, full(x, np.inf)), x, logarithm)
    other_result = xla.select(xla.eq(x, zero), full(x, -np.inf), full(x, np.nan))
    return xla.select(xla.gt(x, zero), positive_result, other_result)


def _log2(x: XlaOp) -> XlaOp:
    """Compute the logarithm to base 2, exact for powers of two."""
    mantissa, exponent = _split_near_one(x)
    return _log_special_cases(x, xla.add(exponent, xla.multiply(xla.log(mantissa), full(x, 1 / _LN2))))


def _log10(x: XlaOp) -> XlaOp:
    """Compute the logarithm to base 10, exact for powers of ten: the exponent times a short log10(2) is exact."""
    mantissa, exponent = _split_near_one(x)
    spare = MANTISSA[x.shape.dtype] - 10
    high = np.floor(log10(2) * 2.0**spare) / 2.0**spare
    low = float(np.log10(np.longdouble(2)) - np.longdouble(high))
    rest = xla.add(xla.multiply(exponent, full(x, low)), xla.multiply(xla.log(mantissa), full(x, log10(e))))
    return _log_special_cases(x, xla.add(xla.multiply(exponent, full(x, high)), rest))


def _log_vjp(base: float) -> Vjp:
    def vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
        return [None if cts[0] is None else xla.divide(cts[0], ops[0] * full(ops[0], log(base)))]

    return vjp


log2 = with_vjp(in_f32(_log2), _log_vjp(2))
log10_ = with_vjp(in_f32(_log10), _log_vjp(10))


def _logaddexp(x: XlaOp, y: XlaOp) -> XlaOp:
    difference = xla.subtract(x, y)
    result = xla.add(xla.maximum(x, y), xla.log_plus_one(xla.exponential(xla.negate(xla.abs_(difference)))))
    return xla.select(xla.eq(x, y), xla.add(x, full(x, _LN2)), result)


def _logaddexp2(x: XlaOp, y: XlaOp) -> XlaOp:
    difference = xla.subtract(x, y)
    correction = xla.multiply(xla.log_plus_one(_exp2(xla.negate(xla.abs_(difference)))), full(x, 1 / _LN2))
    return xla.select(xla.eq(x, y), xla.add(x, full(x, 1)), xla.add(xla.maximum(x, y), correction))


def _softmax_vjp(scale: float) -> Vjp:
    """Return the derivative rule of log(exp(x) + exp(y)): the softmax weights of the operands."""

    def vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
        if cts[0] is None:
            return [None, None]
        x, y = ops
        difference = xla.select(xla.eq(x, y), full(x, 0), xla.subtract(x, y)) * full(x, scale)
        return [cts[0] * xla.logistic(difference), cts[0] * xla.logistic(xla.negate(difference))]

    return vjp


logaddexp = with_vjp(in_f32(_logaddexp), _softmax_vjp(1))
logaddexp2 = with_vjp(in_f32(_logaddexp2), _softmax_vjp(_LN2))


# -- others


def length(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute sqrt(x**2 + y**2) without overflow; infinite if an operand is, even if the other is nan."""
    if x.shape.dtype is ElementType.F32:  # squares of f32 fit into f64
        doubles = [xla.convert(v, ElementType.F64) for v in (x, y)]
        result = xla.convert(xla.sqrt(doubles[0] * doubles[0] + doubles[1] * doubles[1]), ElementType.F32)
    else:
        result = _length_f64(x, y)
    return xla.select(xla.or_(is_inf(x), is_inf(y)), full(x, np.inf), result)


def _length_f64(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute sqrt(x**2 + y**2) on values scaled by a power of two, with one correction of the root.

    The correction is Borges's (An Improved Algorithm for hypot(a,b), 2019), as in glibc since 2.35.
    """
    a, b = xla.abs_(x), xla.abs_(y)
    greater = xla.maximum(a, b)
    scale = xla.select(xla.gt(greater, full(x, 2.0**500)), full(x, 2.0**-600), full(x, 1))
    scale = xla.select(xla.lt(greater, full(x, 2.0**-400)), full(x, 2.0**600), scale)
    long, short, two = greater * scale, xla.minimum(a, b) * scale, full(x, 2)
    root = xla.sqrt(long * long + short * short)
    over_short = root - short
    error_if_close = long * (two * over_short - long) + (over_short - two * (long - short)) * over_short
    over_long = root - long
    error_if_far = two * over_long * (long - two * short) + (
        (full(x, 4) * over_long - short) * short + over_long * over_long
    )
    error = xla.select(xla.le(root, two * short), error_if_close, error_if_far)  # root**2 - long**2 - short**2
    safe = xla.select(xla.eq(root, full(x, 0)), full(x, 1), root)
    return (root - error / (two * safe)) / scale


def _hypot_vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
    if cts[0] is None:
        return [None, None]
    hypotenuse = outs[0]
    safe = xla.select(xla.eq(hypotenuse, full(hypotenuse, 0)), full(hypotenuse, 1), hypotenuse)
    return [cts[0] * (x / safe) for x in ops]


hypot = with_vjp(in_f32(length), _hypot_vjp)


def multiplication_by(factor: float) -> Emit:
    """Return a multiplication by a constant."""
    return in_f32(lambda x: xla.multiply(x, full(x, factor)))


deg2rad, rad2deg = multiplication_by(pi / 180), multiplication_by(180 / pi)


# -- powers with known exponents


def power(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute a power; small integer or half-integer exponents known while tracing use products and a root."""
    known = known_constant(y)
    doubled = 2 * float(known) if known is not None and known.ndim == 0 else np.nan
    if not (abs(doubled) <= 8 and doubled == round(doubled)):
        return xla.power(x, y)
    if doubled == 1 and x.shape.dtype not in NARROW:
        return xla.sqrt(x)  # as in NumPy: nan of minus infinity
    result: XlaOp = in_f32(lambda v: _half_integer_power(v, int(doubled)))(x)
    return result


def float_power(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compute a power as `numpy.float_power`; the square root is corrected for minus infinity and minus zero."""
    known = known_constant(y)
    return _half_integer_power(x, 1) if known is not None and known.ndim == 0 and known == 0.5 else power(x, y)


def _half_integer_power(x: XlaOp, doubled: int) -> XlaOp:
    count, half = divmod(abs(doubled), 2)
    result = None if count == 0 else integer_power(x, count)
    if half:
        root = xla.sqrt(x)
        result = root if result is None else xla.multiply(result, root)
        result = xla.select(xla.eq(x, full(x, -np.inf)), full(x, np.inf), xla.abs_(result))
    if result is None:
        return full(x, 1)
    return result if doubled > 0 else xla.divide(full(x, 1), result)


def integer_power(x: XlaOp, count: int) -> XlaOp:
    """Compute x**count by multiplication, for count of at least one."""
    result, square = None, x
    while True:
        if count & 1:
            result = square if result is None else xla.multiply(result, square)
        count >>= 1
        if not count:
            assert result is not None
            return result
        square = xla.multiply(square, square)
