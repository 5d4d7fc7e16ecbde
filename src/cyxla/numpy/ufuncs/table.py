"""Table of NumPy's ufuncs: the HLO loop of each, dispatched on the kind of elements."""

from __future__ import annotations

import numpy as np

from cyxla.numpy.ufuncs import complex_loops as cplx
from cyxla.numpy.ufuncs import float_loops as flt
from cyxla.numpy.ufuncs import integer_loops as integer
from cyxla.numpy.ufuncs.loop_helpers import Emit, by_kind, full, identity, in_f32, zero_gradient
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.arctangent import atan


def _constant_result(value: bool) -> Emit:
    """Return a loop with a constant result."""
    return lambda x: full(x, value, ElementType.PRED)


def _as_bool(x: XlaOp) -> XlaOp:
    return x if x.shape.dtype is ElementType.PRED else xla.ne(x, full(x, 0))


def _logical(function: Emit) -> Emit:
    return lambda *ops: function(*map(_as_bool, ops))


def _comparison(function: Emit, ordered: Emit | None) -> Emit:
    by_value = integer.compare_by_value(function)
    return by_kind(function, integer=by_value, real=function, complex_=ordered or function)


def _test(integer_: bool, real: Emit, complex_: Emit) -> Emit:
    return by_kind(_constant_result(integer_), integer=_constant_result(integer_), real=real, complex_=complex_)


def _rounding(function: Emit) -> Emit:
    return by_kind(identity, integer=identity, real=function)


def _float_or_complex(function: Emit, complex_: Emit | None = None) -> Emit:
    return by_kind(real=function, complex_=complex_ or function)


def _bitwise(function: Emit) -> Emit:
    return by_kind(function, integer=function)


def _sign_of_unsigned(x: XlaOp) -> XlaOp:
    return xla.minimum(x, full(x, 1))


_right = by_kind(signed=xla.shift_right_arithmetic, unsigned=xla.shift_right_logical)
_power = by_kind(integer=integer.power, real=flt.power, complex_=cplx.power)
_square = by_kind(integer=lambda x: xla.multiply(x, x), real=lambda x: xla.multiply(x, x), complex_=cplx.square)
_reciprocal = by_kind(integer=integer.reciprocal, real=lambda x: xla.divide(full(x, 1), x), complex_=cplx.reciprocal)
_sign = by_kind(signed=xla.sign, unsigned=_sign_of_unsigned, real=flt.sign, complex_=cplx.sign)
_absolute = by_kind(identity, xla.abs_, identity, xla.abs_, cplx.absolute)
_max = by_kind(xla.or_, integer=xla.maximum, real=xla.maximum, complex_=cplx.maximum)
_min = by_kind(xla.and_, integer=xla.minimum, real=xla.minimum, complex_=cplx.minimum)


def _clip(x: XlaOp, low: XlaOp, high: XlaOp) -> XlaOp:
    clipped: XlaOp = _max(x, low)
    result: XlaOp = _min(clipped, high)
    return result


# fmt: off
_TABLE: dict[np.ufunc, Emit] = {
    np.absolute:       _absolute,
    np.add:            xla.add,
    np.arccos:         _float_or_complex(in_f32(xla.acos)),
    np.arccosh:        _float_or_complex(in_f32(xla.acosh)),
    np.arcsin:         _float_or_complex(in_f32(xla.asin)),
    np.arcsinh:        _float_or_complex(in_f32(xla.asinh)),
    np.arctan:         _float_or_complex(in_f32(atan)),
    np.arctan2:        in_f32(xla.atan2),
    np.arctanh:        _float_or_complex(in_f32(xla.atanh)),
    np.bitwise_and:    _bitwise(xla.and_),
    np.bitwise_count:  integer.bitwise_count,
    np.bitwise_or:     _bitwise(xla.or_),
    np.bitwise_xor:    _bitwise(xla.xor),
    np.cbrt:           in_f32(xla.cbrt),
    np.ceil:           _rounding(xla.ceil),
    np._core.umath.clip: _clip,  # type: ignore[attr-defined]
    np.conjugate:      by_kind(integer=identity, real=identity, complex_=cplx.conjugate),
    np.copysign:       flt.copysign,
    np.cos:            _float_or_complex(xla.cosine),
    np.cosh:           _float_or_complex(in_f32(xla.cosh)),
    np.deg2rad:        flt.deg2rad,
    np.degrees:        flt.rad2deg,
    np.divide:         _float_or_complex(xla.divide, cplx.divide),
    np.divmod:         by_kind(integer=integer.divmod_, real=flt.divmod_),
    np.equal:          _comparison(xla.eq, None),
    np.exp:            _float_or_complex(xla.exponential, cplx.exp),
    np.exp2:           _float_or_complex(flt.exp2, cplx.exp2),
    np.expm1:          _float_or_complex(xla.exponential_minus_one, cplx.expm1),
    np.fabs:           xla.abs_,
    np.float_power:    by_kind(real=flt.float_power, complex_=cplx.power),
    np.floor:          _rounding(xla.floor),
    np.floor_divide:   by_kind(integer=integer.floor_divide, real=flt.floor_divide),
    np.fmax:           by_kind(xla.or_, integer=xla.maximum, real=flt.fmax, complex_=cplx.fmax),
    np.fmin:           by_kind(xla.and_, integer=xla.minimum, real=flt.fmin, complex_=cplx.fmin),
    np.fmod:           by_kind(integer=integer.fmod, real=flt.fmod),
    np.frexp:          flt.frexp,
    np.gcd:            integer.gcd,
    np.greater:        _comparison(xla.gt, cplx.greater),
    np.greater_equal:  _comparison(xla.ge, cplx.greater_equal),
    np.heaviside:      flt.heaviside,
    np.hypot:          flt.hypot,
    np.invert:         _bitwise(xla.not_),
    np.isfinite:       _test(True, xla.is_finite, cplx.is_finite),
    np.isinf:          _test(False, flt.is_inf, cplx.either(flt.is_inf)),
    np.isnan:          _test(False, flt.is_nan, cplx.either(flt.is_nan)),
    np.lcm:            integer.lcm,
    np.ldexp:          flt.ldexp,
    np.left_shift:     xla.shift_left,
    np.less:           _comparison(xla.lt, cplx.less),
    np.less_equal:     _comparison(xla.le, cplx.less_equal),
    np.log:            _float_or_complex(xla.log),
    np.log10:          _float_or_complex(flt.log10_, cplx.log10_),
    np.log1p:          _float_or_complex(xla.log_plus_one, cplx.log1p),
    np.log2:           _float_or_complex(flt.log2, cplx.log2_),
    np.logaddexp:      flt.logaddexp,
    np.logaddexp2:     flt.logaddexp2,
    np.logical_and:    _logical(xla.and_),
    np.logical_not:    _logical(xla.not_),
    np.logical_or:     _logical(xla.or_),
    np.logical_xor:    _logical(xla.xor),
    np.maximum:        _max,
    np.minimum:        _min,
    np.modf:           flt.modf,
    np.multiply:       xla.multiply,
    np.negative:       xla.negate,
    np.nextafter:      flt.nextafter,
    np.not_equal:      _comparison(xla.ne, None),
    np.positive:       identity,
    np.power:          _power,
    np.rad2deg:        flt.rad2deg,
    np.radians:        flt.deg2rad,
    np.reciprocal:     _reciprocal,
    np.remainder:      by_kind(integer=integer.remainder, real=flt.remainder),
    np.right_shift:    _right,
    np.rint:           _float_or_complex(xla.round_nearest_even, cplx.rint),
    np.sign:           _sign,
    np.signbit:        flt.signbit,
    np.sin:            _float_or_complex(xla.sine),
    np.sinh:           _float_or_complex(in_f32(xla.sinh)),
    np.spacing:        flt.spacing,
    np.sqrt:           _float_or_complex(xla.sqrt),
    np.square:         _square,
    np.subtract:       xla.subtract,
    np.tan:            _float_or_complex(xla.tan),
    np.tanh:           _float_or_complex(xla.tanh),
    np.trunc:          _rounding(zero_gradient(flt.trunc)),
}
# fmt: on


def known() -> list[np.ufunc]:
    """Return the supported ufuncs of NumPy by name; matrix products are gufuncs, registered elsewhere."""
    # The table may hold ufuncs of SciPy; and NumPy's substitutes while tracing are equal to the originals.
    ufuncs = [np.__dict__[u.__name__] for u in _TABLE if np.__dict__.get(u.__name__) == u]
    return sorted(ufuncs, key=lambda ufunc: ufunc.__name__)


def find(ufunc: np.ufunc) -> Emit | None:
    """Return the loop of a ufunc of NumPy or SciPy; None if it is not supported."""
    emitter = _TABLE.get(ufunc)
    if emitter is None:
        from cyxla.numpy.ufuncs.scipy_ufuncs import find_special

        emitter = find_special(ufunc)
        if emitter is not None:
            _TABLE[ufunc] = emitter
    return emitter
