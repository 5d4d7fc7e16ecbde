"""Loops of complex numbers: composed of real parts if HLO lacks the operation or deviates from NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import e, log, log2, log10

import numpy as np

from cyxla.numpy.ufuncs.float_loops import copysign, integer_power, is_inf, is_nan, length
from cyxla.numpy.ufuncs.integer_loops import known_constant
from cyxla.numpy.ufuncs.loop_helpers import Cotangents, Emit, Ops, Vjp, full, with_vjp
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def parts(z: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return the real and the imaginary part."""
    return xla.real(z), xla.imag(z)


def conjugate(z: XlaOp) -> XlaOp:
    """Compute the complex conjugate."""
    re, im = parts(z)
    return xla.complex_(re, xla.negate(im))


def either(test: Callable[[XlaOp], XlaOp]) -> Emit:
    """Return a predicate that holds if a test holds for either part."""
    return lambda z: xla.or_(test(xla.real(z)), test(xla.imag(z)))


def is_finite(z: XlaOp) -> XlaOp:
    """Test whether both parts are finite."""
    return xla.and_(xla.is_finite(xla.real(z)), xla.is_finite(xla.imag(z)))


def _absolute(z: XlaOp) -> XlaOp:
    return length(*parts(z))


def _absolute_vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
    if cts[0] is None:
        return [None]
    magnitude = xla.select(xla.eq(outs[0], full(outs[0], 0)), full(outs[0], 1), outs[0])
    scaled = xla.divide(cts[0], magnitude)
    re, im = parts(ops[0])
    return [xla.complex_(xla.multiply(scaled, re), xla.negate(xla.multiply(scaled, im)))]


absolute = with_vjp(_absolute, _absolute_vjp)


def rint(z: XlaOp) -> XlaOp:
    """Round both parts to the nearest even integer."""
    return xla.complex_(*map(xla.round_nearest_even, parts(z)))


def sign(z: XlaOp) -> XlaOp:
    """Compute z / abs(z); 0 for zero."""
    re, im = parts(z)
    magnitude = absolute(z)
    zero, one = full(re, 0), full(re, 1)
    safe = xla.select(xla.eq(magnitude, zero), one, magnitude)
    quotient = xla.complex_(xla.divide(re, safe), xla.divide(im, safe))
    infinite_re, nan = is_inf(re), full(re, np.nan)
    both_infinite = xla.and_(infinite_re, is_inf(im))
    unit_re = xla.select(both_infinite, nan, xla.select(infinite_re, xla.sign(re), zero))
    unit_im = xla.select(both_infinite, nan, xla.select(infinite_re, zero, xla.sign(im)))
    # NumPy gives a direction along an axis also if the absolute value overflows
    result = xla.select(is_inf(magnitude), xla.complex_(unit_re, unit_im), quotient)
    return xla.select(xla.eq(magnitude, zero), xla.complex_(zero, zero), result)


# -- comparisons: by real parts, then by imaginary ones


def _lexicographic(strict: Callable[[XlaOp, XlaOp], XlaOp], non_strict: Callable[[XlaOp, XlaOp], XlaOp]) -> Emit:
    def emit(x: XlaOp, y: XlaOp) -> XlaOp:
        (a, b), (c, d) = parts(x), parts(y)
        ordered = xla.and_(xla.eq(b, b), xla.eq(d, d))
        return xla.or_(xla.and_(strict(a, c), ordered), xla.and_(xla.eq(a, c), non_strict(b, d)))

    return emit


less, less_equal = _lexicographic(xla.lt, xla.lt), _lexicographic(xla.lt, xla.le)
greater, greater_equal = _lexicographic(xla.gt, xla.gt), _lexicographic(xla.gt, xla.ge)
_has_nan = either(is_nan)


def _extreme(first_wins: Emit) -> Emit:
    return lambda x, y: xla.select(xla.or_(_has_nan(x), first_wins(x, y)), x, y)


def _ignoring_nan(first_wins: Emit) -> Emit:
    return lambda x, y: xla.select(xla.or_(_has_nan(y), first_wins(x, y)), x, y)


maximum, minimum = _extreme(greater_equal), _extreme(less_equal)
fmax, fmin = _ignoring_nan(greater_equal), _ignoring_nan(less_equal)


# -- functions


def _scale(z: XlaOp, factor: float) -> XlaOp:
    re, im = parts(z)
    return xla.complex_(xla.multiply(re, full(re, factor)), xla.multiply(im, full(im, factor)))


def _exp(z: XlaOp) -> XlaOp:
    """Compute the exponential; for an infinite real part and no finite imaginary part infinity or zero, as NumPy."""
    result, (re, im) = xla.exponential(z), parts(z)
    overflowed = xla.and_(is_inf(re), xla.not_(xla.is_finite(im)))
    magnitude = xla.maximum(re, full(re, 0))
    return xla.select(overflowed, xla.complex_(magnitude, copysign(xla.multiply(magnitude, full(re, 0)), im)), result)


exp = with_vjp(_exp, lambda ops, outs, cts: [None if cts[0] is None else xla.multiply(cts[0], outs[0])])


def exp2(z: XlaOp) -> XlaOp:
    """Compute 2**z."""
    result: XlaOp = exp(_scale(z, log(2)))
    return result


def log2_(z: XlaOp) -> XlaOp:
    """Compute the logarithm to base 2."""
    return _scale(xla.log(z), log2(e))


def log10_(z: XlaOp) -> XlaOp:
    """Compute the logarithm to base 10."""
    return _scale(xla.log(z), log10(e))


def expm1(z: XlaOp) -> XlaOp:
    """Compute exp(z) - 1 by parts, accurately near 0."""
    re, im = parts(z)
    half = xla.sine(xla.multiply(im, full(im, 0.5)))
    twice = xla.multiply(xla.multiply(full(im, 2), half), half)
    real = xla.subtract(xla.multiply(xla.exponential_minus_one(re), xla.cosine(im)), twice)
    return xla.complex_(real, xla.multiply(xla.exponential(re), xla.sine(im)))


def _log1p(z: XlaOp) -> XlaOp:
    """Compute log(1 + z) by NumPy's formula, whose real part loses accuracy near 0."""
    re, im = parts(z)
    shifted = xla.add(re, full(re, 1))
    return xla.complex_(xla.log(length(shifted, im)), xla.atan2(im, shifted))


def _vjp_from_reciprocal(reciprocal_derivative: Callable[[XlaOp], XlaOp]) -> Vjp:
    """Return the derivative rule of a function, given the reciprocal of its derivative."""
    return lambda ops, outs, cts: [None if cts[0] is None else xla.divide(cts[0], reciprocal_derivative(ops[0]))]


log1p = with_vjp(_log1p, _vjp_from_reciprocal(lambda z: xla.add(full(z, 1), z)))


def square(z: XlaOp) -> XlaOp:
    """Compute the square."""
    return xla.multiply(z, z)


def _smith_ratio(w: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    """Return a mask of greater real parts, the ratio of the parts, and the squared length over the greater part.

    R. L. Smith, "Algorithm 116: complex division", 1962: the ratio avoids overflow of squares.
    """
    c, d = parts(w)
    real_is_greater = xla.ge(xla.abs_(c), xla.abs_(d))
    greater, smaller = xla.select(real_is_greater, c, d), xla.select(real_is_greater, d, c)
    ratio = xla.divide(smaller, greater)
    return real_is_greater, ratio, xla.add(greater, xla.multiply(smaller, ratio))


def _smith_divide(z: XlaOp, w: XlaOp) -> XlaOp:
    a, b = parts(z)
    real_is_greater, ratio, denominator = _smith_ratio(w)
    scale = xla.divide(full(a, 1), denominator)
    first, second = xla.select(real_is_greater, a, b), xla.select(real_is_greater, b, a)
    real = xla.multiply(xla.add(first, xla.multiply(second, ratio)), scale)
    cross = xla.multiply(first, ratio)
    imag = xla.subtract(xla.select(real_is_greater, second, cross), xla.select(real_is_greater, cross, second))
    return xla.complex_(real, xla.multiply(imag, scale))


def _reciprocal(z: XlaOp) -> XlaOp:
    real_is_greater, ratio, denominator = _smith_ratio(z)
    one = full(ratio, 1)
    imag = xla.divide(xla.select(real_is_greater, ratio, one), denominator)
    return xla.complex_(xla.divide(xla.select(real_is_greater, one, ratio), denominator), xla.negate(imag))


def _divide(z: XlaOp, w: XlaOp) -> XlaOp:
    magnitude = xla.abs_(xla.real(w))
    by_zero = xla.complex_(*(xla.divide(part, magnitude) for part in parts(z)))
    return xla.select(xla.eq(w, full(w, 0)), by_zero, _smith_divide(z, w))


def _divide_vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
    if cts[0] is None:
        return [None, None]
    quotient = xla.divide(cts[0], ops[1])
    return [quotient, xla.negate(xla.multiply(quotient, outs[0]))]


divide = with_vjp(_divide, _divide_vjp)
reciprocal = with_vjp(
    _reciprocal,
    lambda ops, outs, cts: [None if cts[0] is None else xla.negate(cts[0] * outs[0] * outs[0])],
)


# -- powers


def _product(z: XlaOp, w: XlaOp) -> XlaOp:
    """Multiply by parts; a part is nan if one of its terms is."""
    (a, b), (c, d) = parts(z), parts(w)
    return xla.complex_(a * c - b * d, a * d + b * c)


def _multiply_by_one(z: XlaOp) -> XlaOp:
    """Multiply by 1 + 0j, which makes a part nan beside an infinite one."""
    re, im = parts(z)
    nan = full(re, np.nan)
    return xla.complex_(xla.select(xla.is_finite(im), re, nan), xla.select(xla.is_finite(re), im, nan))


def power(z: XlaOp, w: XlaOp) -> XlaOp:
    """Compute a power; integer exponents below 100 by multiplication, as in NumPy."""
    exponent_value = known_constant(w)
    if exponent_value is not None and exponent_value.ndim == 0:
        exponent = complex(exponent_value)
        if exponent.imag == 0 and abs(exponent.real) < _MAX_PRODUCT_EXPONENT and exponent.real.is_integer():
            return _integer_power(z, int(exponent.real))
    result: XlaOp = _power(z, w)
    return result


_MAX_PRODUCT_EXPONENT = 100  # integer exponents of at least this magnitude use logarithms


def _integer_power(z: XlaOp, count: int) -> XlaOp:
    if count == 0:
        return full(z, 1)
    result = integer_power(z, count) if 1 <= count <= 3 else _binary_power(z, abs(count))
    if count > 0:
        return result
    nan = full(xla.real(z), np.nan)
    inverse: XlaOp = divide(full(z, 1), result)
    return xla.select(xla.eq(z, full(z, 0)), xla.complex_(nan, nan), inverse)


def _binary_power(z: XlaOp, count: int) -> XlaOp:
    result = None
    while count:
        if count & 1:
            result = _multiply_by_one(z) if result is None else xla.multiply(result, z)
        z, count = xla.multiply(z, z), count >> 1
    assert result is not None
    return result


def _power_by_squaring(z: XlaOp, count: XlaOp) -> XlaOp:
    """Compute the power by squaring for nonzero integer exponents from -99 to 99, given as floats."""
    half, two, magnitude = full(count, 0.5), full(count, 2), xla.abs_(count)
    result, square, remaining = full(z, 1), z, magnitude
    for k in range(_MAX_PRODUCT_EXPONENT.bit_length()):
        halved = xla.floor(remaining * half)
        product = _product(result, square) if k else _multiply_by_one(square)
        result = xla.select(xla.ne(halved * two, remaining), product, result)
        square, remaining = _product(square, square), halved
    inverse: XlaOp = divide(full(z, 1), result)
    result = xla.select(xla.lt(count, full(count, 0)), inverse, result)
    for exponent in (1, 2, 3):  # without a multiplication by 1
        result = xla.select(xla.eq(count, full(count, exponent)), integer_power(z, exponent), result)
    return result


def _power_by_logarithm(z: XlaOp, w: XlaOp) -> XlaOp:
    result: XlaOp = exp(_multiply_annex_g(w, xla.log(z)))
    return result


def _multiply_annex_g(z: XlaOp, w: XlaOp) -> XlaOp:
    """Multiply as C's Annex G: infinite if both parts are nan but a factor is infinite."""
    result = _product(z, w)
    terms = []
    for factor, other in ((z, w), (w, z)):
        is_infinite = either(is_inf)(factor)
        units = [xla.select(is_inf(p), full(p, 1), full(p, 0)) for p in parts(factor)]
        unit = xla.complex_(*(copysign(u, p) for u, p in zip(units, parts(factor), strict=True)))
        without_nan = xla.complex_(*(xla.select(is_nan(p), copysign(full(p, 0), p), p) for p in parts(other)))
        terms.append((is_infinite, unit, without_nan))
    (first, unit_z, plain_w), (second, unit_w, plain_z) = terms
    direction = _product(xla.select(first, unit_z, plain_z), xla.select(second, unit_w, plain_w))
    infinite = xla.complex_(*(p * full(p, np.inf) for p in parts(direction)))
    overflowed = xla.and_(xla.and_(is_nan(xla.real(result)), is_nan(xla.imag(result))), xla.or_(first, second))
    return xla.select(overflowed, infinite, result)


def _power_cases(z: XlaOp, w: XlaOp) -> XlaOp:
    """Compute the special cases of a power: exponent 0, base 0, and small integer exponents by multiplication."""
    zero, (re, im) = full(z, 0), parts(w)
    is_zero_exponent, is_zero_base = xla.eq(w, zero), xla.eq(z, zero)
    nan = full(re, np.nan)
    zero_power = xla.select(xla.gt(re, full(re, 0)), zero, xla.complex_(nan, nan))
    magnitude = xla.abs_(re)
    small = xla.and_(xla.lt(magnitude, full(re, _MAX_PRODUCT_EXPONENT)), xla.eq(xla.floor(re), re))
    is_integer = xla.and_(xla.and_(small, xla.eq(im, full(im, 0))), xla.ne(re, full(re, 0)))
    products = _power_by_squaring(z, xla.select(is_integer, re, full(re, 1)))
    result = xla.select(is_integer, products, _power_by_logarithm(xla.select(is_zero_base, full(z, 1), z), w))
    return xla.select(is_zero_exponent, full(z, 1), xla.select(is_zero_base, zero_power, result))


def _power_vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
    if cts[0] is None:
        return [None, None]
    z, w = ops
    is_zero_base = xla.eq(z, full(z, 0))
    exponent_derivative = xla.select(
        is_zero_base, full(z, 0), outs[0] * xla.log(xla.select(is_zero_base, full(z, 1), z))
    )
    base_derivative = xla.select(xla.eq(w, full(w, 0)), full(w, 0), w * power(z, w - full(w, 1)))
    return [cts[0] * base_derivative, cts[0] * exponent_derivative]


_power = with_vjp(_power_cases, _power_vjp)
