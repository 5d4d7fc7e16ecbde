"""Simplify arithmetic, and replace it by cheaper arithmetic.

Before::

    one = f32[] constant(1)
    ones = f32[4] broadcast(one), dimensions={}
    y = f32[4] multiply(x, ones)
    t = f32[4,4] broadcast(y), dimensions={0}
    ROOT r = f32[4,4] transpose(t), dimensions={1,0}

After::

    ROOT r = f32[4,4] broadcast(x), dimensions={1}

Rules that are not `exact` may change a NaN, an infinity, the sign of a zero or a rounding; the pass leaves them out.
Rules of data movement are in `algebra_movement`, those of reductions and contractions in `algebra_reduce`. The first
line of a replacement function's docstring is its right side in dumps.
"""

# ruff: noqa: E501  a rule is a line

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.hlo import OPCODES, HloModule, Instruction
from cyxla.xla.passes.engine.pattern import UNIFORM, Const, Match, Uniform, Var, attr, op, uniform_value
from cyxla.xla.passes.engine.rewrite import RewritePass, Rule, any_of, rule
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify.algebra_movement import MOVEMENT
from cyxla.xla.passes.simplify.algebra_reduce import REDUCTIONS

x, y, z, p = Var("x"), Var("y"), Var("z"), Var("p")
c, d = Uniform("c"), Uniform("d")
direction = attr("direction")
ONES, LOWEST, HIGHEST, MINUS_ZERO = Const("ones"), Const("lowest"), Const("highest"), Const(-0.0)
INVERSE: Final = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
SWAPPED: Final = {"EQ": "EQ", "NE": "NE", "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
ROUNDINGS: Final = ("floor", "ceil", "round-nearest-afz", "round-nearest-even")


def _dtype(m: Match) -> ElementType:
    return m.root.operands[0].shape.dtype


def integral(m: Match) -> bool:
    """Match integers and booleans."""
    return _dtype(m).is_integer or _dtype(m) is ElementType.PRED


def integer(m: Match) -> bool:
    """Match integers."""
    return _dtype(m).is_integer


def floating(m: Match) -> bool:
    """Match real floats."""
    return _dtype(m).is_float


def real(m: Match) -> bool:
    """Match all but complex numbers, whose products with 1 turn infinities into NaN."""
    return not _dtype(m).is_complex


def predicate(m: Match) -> bool:
    """Match booleans."""
    return _dtype(m) is ElementType.PRED


def unsigned(m: Match) -> bool:
    """Match unsigned integers."""
    return _dtype(m).is_unsigned


def wide_float(m: Match) -> bool:
    """Match f32 and f64."""
    return _dtype(m) in (ElementType.F32, ElementType.F64)


def ordinary_float(m: Match) -> bool:
    """Match floats of 16 bits or more."""
    return _dtype(m).is_float and _dtype(m).bits >= 16


def mergeable(m: Match) -> bool:
    """Match integers whose variable is no constant."""
    return integral(m) and uniform_value(m.x) is None


def _comparable(m: Match) -> bool:
    return real(m) and uniform_value(m.x) is None


def _mergeable_floats(m: Match) -> bool:
    return floating(m) and uniform_value(m.x) is None


def _squarable(m: Match) -> bool:
    return integer(m) or ordinary_float(m)


def _cubable(m: Match) -> bool:
    return integer(m) or wide_float(m)


# --- powers of two ---


def _exponent(ins: Instruction) -> int | None:
    """Return k for an array of the unsigned number 2^k."""
    exponent = uniform_value(ins)
    value = int(exponent.reshape(())) if exponent is not None else 0
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _shift_for_division(m: Match) -> Instruction | None:
    """shift-right-logical(x, k) for c = 2^k.."""
    k = _exponent(m.c)
    if k is None:
        return None
    write = Writer(m.root.computation)
    return write.op("shift-right-logical", m.x, write.full(k, m.x.shape.logical))


def _mask_for_remainder(m: Match) -> Instruction | None:
    """and(x, 2^k - 1) for c = 2^k.."""
    k = _exponent(m.c)
    if k is None:
        return None
    write = Writer(m.root.computation)
    return write.op("and", m.x, write.full((1 << k) - 1, m.x.shape.logical))


def _multiply_by_reciprocal(m: Match) -> Instruction | None:
    """multiply(x, 1 / c) for c a power of two.."""
    divisor = uniform_value(m.c)
    assert divisor is not None
    value, kind = float(divisor.reshape(())), divisor.dtype
    if value == 0 or not np.isfinite(value) or abs(np.frexp(value)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        reciprocal = float(np.asarray(1 / value).astype(kind))
    if reciprocal * value != 1.0 or abs(reciprocal) < _smallest(_dtype(m)):
        return None
    write = Writer(m.root.computation)
    return write.op("multiply", m.x, write.full(reciprocal, m.x.shape.logical))


def _smallest(dtype: ElementType) -> float:
    """Return the smallest normal number."""
    return float(_limits(dtype).tiny)


def _limits(dtype: ElementType) -> Any:
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    return finfo(dtype.numpy_dtype)


def _cube(m: Match) -> Instruction:
    """multiply(multiply(x, x), x).."""
    write = Writer(m.root.computation)
    return write.op("multiply", write.op("multiply", m.x, m.x), m.x)


def _fourth(m: Match) -> Instruction:
    """the square of multiply(x, x).."""
    write = Writer(m.root.computation)
    square = write.op("multiply", m.x, m.x)
    return write.op("multiply", square, square)


# --- comparisons ---


def _inverse_direction(direction: str) -> str:
    return INVERSE[direction]


def _is_negation_exact(m: Match) -> bool:
    """Return True if not (x < y) is (x >= y), which fails only for NaN."""
    inner = m.root.operands[0]
    return inner.attrs["type"] != "FLOAT" or m.direction in ("EQ", "NE")


def _compare_opposite(m: Match) -> Instruction:
    """compare(x, y, inverse direction).."""
    inner = m.root.operands[0]
    attrs = {**inner.attrs, "direction": _inverse_direction(m.direction)}
    return m.root.computation.add("compare", inner.operands, attrs, shape=m.root.shape.logical)


def _compare_with_itself(m: Match) -> Instruction | None:
    """true or false, depending on the direction.."""
    equals = m.direction in ("EQ", "GE", "LE")
    if m.root.attrs["type"] == "FLOAT" and m.direction not in ("LT", "GT"):
        return None
    return Writer(m.root.computation).full(equals, m.root.shape)


def _constant_to_the_right(m: Match) -> Instruction | None:
    """compare(x, c, swapped direction).."""
    if uniform_value(m.x) is not None:
        return None
    attrs = {**m.root.attrs, "direction": SWAPPED[m.direction]}
    return m.root.computation.add("compare", (m.x, m.c), attrs, shape=m.root.shape.logical)


#: Results of comparing any integer with the end of its range.
_AT_LOWEST = {"LT": False, "GE": True}
_AT_HIGHEST = {"GT": False, "LE": True}


def _compare_with_lowest(m: Match) -> Instruction | None:
    """false for LT, true for GE.."""
    answer = _AT_LOWEST.get(m.direction)
    return None if answer is None else Writer(m.root.computation).full(answer, m.root.shape)


def _compare_with_highest(m: Match) -> Instruction | None:
    """false for GT, true for LE.."""
    answer = _AT_HIGHEST.get(m.direction)
    return None if answer is None else Writer(m.root.computation).full(answer, m.root.shape)


def _from_predicate(m: Match) -> bool:
    return m.x.shape.dtype is ElementType.PRED


# --- numbers in other types ---


def lossless(a: ElementType, b: ElementType) -> bool:
    """Return True if every value of `a` is one of `b`, and converts to it."""
    if a is b:
        return True
    if a is ElementType.PRED:
        return (b.is_integer and b.bits >= 8) or (b.is_float and b.bits >= 16)
    if a.is_integer and b.is_integer:
        return b.bits > a.bits and (b.is_signed or a.is_unsigned)
    if b.is_float and b.bits >= 16:
        return _fits_float(a, b)
    return False


def _fits_float(a: ElementType, b: ElementType) -> bool:
    wide = _limits(b)
    if a.is_integer:
        return bool(a.bits - a.is_signed <= int(wide.nmant) + 1 and a.bits < int(wide.maxexp))
    if not a.is_float or a is ElementType.F8E8M0FNU:
        return False
    narrow = _limits(a)
    return bool(
        narrow.nmant <= wide.nmant
        and float(narrow.max) <= float(wide.max)
        and float(narrow.smallest_subnormal) >= float(wide.tiny)
    )


def _skip_conversion(m: Match) -> bool:
    """Return True if the inner conversion neither changes a value nor how the outer one treats values out of range."""
    a, b, last = m.x.shape.dtype, _dtype(m), m.root.shape.dtype
    if not lossless(a, b):
        return False
    if a is last or a.is_float == b.is_float or a is ElementType.PRED:
        return True
    return lossless(a, last) or not last.is_integer  # integer, float, integer: one saturates, the other wraps


def _convert(m: Match) -> Instruction:
    """convert(x).."""
    return Writer(m.root.computation).convert(m.x, m.root.shape.dtype)


def _same_width(m: Match) -> bool:
    return bool(m.x.shape.dims == m.root.operands[0].shape.dims == m.root.shape.dims)


def _same_shape(m: Match) -> bool:
    return bool(m.x.shape.compatible(m.root.shape))


def _same_predicate_shape(m: Match) -> bool:
    return predicate(m) and m.p.shape.dims == m.root.shape.dims and m.root.shape.dtype is ElementType.PRED


def _is_real_array(m: Match) -> bool:
    return not m.x.shape.dtype.is_complex


# --- arrays of one number ---

_ELEMENTWISE: Final = sorted(r.name for r in OPCODES.values() if r.elementwise and r.name != "stochastic-convert")


def _apply_before_broadcast(m: Match) -> Instruction | None:
    """broadcast of the operation on the operands before their broadcasts.."""
    ins = m.root
    if not ins.shape.rank or not all(o.opcode in UNIFORM for o in ins.operands):
        return None
    broadcasts = [o for o in ins.operands if o.opcode == "broadcast" and o.operands[0].shape.rank]
    wide = broadcasts[0] if broadcasts else next((o for o in ins.operands if o.opcode == "broadcast"), None)
    if wide is None or wide.operands[0].shape.size >= ins.shape.size:
        return None
    inner, dims = wide.operands[0].shape, wide.attrs["dimensions"]
    operands = [_broadcast_source(o, inner.dims, dims) for o in ins.operands]
    if any(o is None for o in operands):
        return None
    narrow = ins.computation.add(
        ins.opcode, [o for o in operands if o], ins.attrs, shape=ins.shape.with_dims(inner.dims)
    )
    return Writer(ins.computation).op("broadcast", narrow, shape=ins.shape.logical, dimensions=dims)


def _broadcast_source(ins: Instruction, sizes: tuple[int, ...], dims: tuple[int, ...]) -> Instruction | None:
    """Return the operand of a broadcast, at the given sizes."""
    if ins.opcode == "constant":
        return ins if ins.shape.rank == 0 else None
    inner: Instruction = ins.operands[0]
    if inner.shape.rank == 0:
        return Writer(ins.computation).broadcast(inner, ins.shape.with_dims(sizes).logical)
    return inner if inner.shape.dims == sizes and ins.attrs["dimensions"] == dims else None


def _as_broadcast(m: Match) -> Instruction | None:
    """broadcast of one number, if all elements have the same bits.."""
    ins = m.root
    if not ins.shape.is_array or ins.shape.size < 2:
        return None
    array = ins.attrs["literal"].array
    flat = array.reshape(-1)
    first = flat[:1]
    if flat[-1:].tobytes() != first.tobytes() or array.tobytes() != first.tobytes() * ins.shape.size:
        return None
    return Writer(ins.computation).full(first[0], ins.shape)


def _as_iota(m: Match) -> Instruction | None:
    """iota, if the elements of a vector are their indices."""
    ins = m.root
    if not ins.shape.is_array or ins.shape.rank != 1 or ins.shape.size < 2 or not ins.shape.dtype.is_integer:
        return None
    array = ins.attrs["literal"].array
    if array[-1] != array.size - 1 or array[0] != 0 or not np.array_equal(array, np.arange(array.size)):
        return None
    return Writer(ins.computation).op("iota", shape=ins.shape, iota_dimension=0)


# fmt: off
#     pattern                                       becomes                        only if
ARITHMETIC: Final[list[Rule]] = [
    rule(x + 0,                                     x,                             when=integral),
    rule(x + MINUS_ZERO,                            x,                             when=floating),
    rule(x - 0,                                     x,                             when=real),
    rule(x * 1,                                     x,                             when=real),
    rule(x / 1,                                     x,                             when=real),
    rule(x * 0,                                     0,                             when=integral),
    rule(x * -1,                                    -x,                            when=real),
    rule(x / -1,                                    -x,                            when=real),
    rule(x - x,                                     0,                             when=integral),
    rule(x % 1,                                     0,                             when=integer),
    rule(op("negate", -x),                                     x),
    rule(x + (-y),                                  x - y),
    rule(x - (-y),                                  x + y),
    rule((-x) * (-y),                               x * y,                         when=real),
    rule((-x) / (-y),                               x / y,                         when=floating),
    rule(op("abs", op("abs", x)),                   op("abs", x),                  when=real),
    rule(op("abs", -x),                             op("abs", x),                  when=real),
    rule(op("multiply", op("abs", x), op("abs", x)), x * x,                        when=_is_real_array),
    rule((x + c) + d,                               x + (c + d),                   when=mergeable),
    rule((x * c) * d,                               x * (c * d),                   when=mergeable),
    rule((x & c) & d,                               x & (c & d),                   when=mergeable),
    rule((x | c) | d,                               x | (c | d),                   when=mergeable),
    rule((x ^ c) ^ d,                               x ^ (c ^ d),                   when=mergeable),
    rule(op("maximum", op("maximum", x, c), d),     op("maximum", x, op("maximum", c, d)), when=_comparable),
    rule(op("minimum", op("minimum", x, c), d),     op("minimum", x, op("minimum", c, d)), when=_comparable),
    rule(op("maximum", x, x),                       x,                             when=real),
    rule(op("minimum", x, x),                       x,                             when=real),
    rule(op("maximum", x, LOWEST),                  x,                             when=real),
    rule(op("minimum", x, HIGHEST),                 x,                             when=real),
    rule(op("maximum", x, HIGHEST),                 HIGHEST,                       when=integral),
    rule(op("minimum", x, LOWEST),                  LOWEST,                        when=integral),
    rule(op("clamp", x, op("clamp", x, y, z), z),   op("clamp", x, y, z)),
    rule(x & x,                                     x),
    rule(x | x,                                     x),
    rule(x ^ x,                                     0),
    rule(x & 0,                                     0),
    rule(x | 0,                                     x),
    rule(x ^ 0,                                     x),
    rule(x & ONES,                                  x),
    rule(x | ONES,                                  ONES),
    rule(x ^ ONES,                                  ~x),
    rule(x & ~x,                                    0),
    rule(x | ~x,                                    ONES),
    rule(~~x,                                       x),
    rule(op("shift-left", x, 0),                    x),
    rule(op("shift-right-logical", x, 0),           x),
    rule(op("shift-right-arithmetic", x, 0),        x),
    # strength reduction
    rule(x ** 0,                                    1,                             when=_squarable),
    rule(x ** 1,                                    x,                             when=_squarable),
    rule(x ** 2,                                    x * x,                         when=_squarable,  ulp=1),
    rule(x ** 3,                                    _cube,                         when=_cubable,    ulp=2),
    rule(x ** 4,                                    _fourth,                       when=_cubable,    ulp=2),
    rule(x ** -1,                                   op("divide", 1, x),            when=wide_float,  ulp=1),
    rule(x / c,                                     _shift_for_division,           when=unsigned),
    rule(x % c,                                     _mask_for_remainder,           when=unsigned),
    rule(x / c,                                     _multiply_by_reciprocal,       when=ordinary_float),
    # comparisons
    rule(op("compare", x, x, direction=direction),        _compare_with_itself,          when=real),
    rule(~op("compare", x, y, direction=direction),       _compare_opposite,                when=_is_negation_exact),
    rule(op("compare", c, x, direction=direction),        _constant_to_the_right),
    rule(op("compare", x, LOWEST, direction=direction),   _compare_with_lowest,                when=integer),
    rule(op("compare", x, HIGHEST, direction=direction),  _compare_with_highest,               when=integer),
    rule(op("compare", x, 1, direction="EQ"),       x,                             when=predicate),
    rule(op("compare", x, 0, direction="NE"),       x,                             when=predicate),
    rule(op("compare", x, 0, direction="EQ"),       ~x,                            when=predicate),
    rule(op("compare", x, 1, direction="NE"),       ~x,                            when=predicate),
    rule(op("compare", op("convert", x), 0, direction="NE"), x,                    when=_from_predicate),
    rule(op("compare", op("convert", x), 0, direction="EQ"), ~x,                   when=_from_predicate),
    # selection
    rule(op("select", 1, x, y),                     x),
    rule(op("select", 0, x, y),                     y),
    rule(op("select", p, x, x),                     x),
    rule(op("select", ~p, x, y),                    op("select", p, y, x)),
    rule(op("select", p, 1, 0),                     p,                             when=_same_predicate_shape),
    rule(op("select", p, 0, 1),                     ~p,                            when=_same_predicate_shape),
    rule(op("select", p, op("select", p, x, y), z), op("select", p, x, z)),
    rule(op("select", p, x, op("select", p, y, z)), op("select", p, x, z)),
    # element types
    rule(op("convert", x),                          x,                             when=_same_shape),
    rule(op("convert", op("convert", x)),           _convert,                      when=_skip_conversion),
    rule(op("bitcast-convert", x),                  x,                             when=_same_shape),
    rule(op("bitcast-convert", op("bitcast-convert", x)), op("bitcast-convert", x), when=_same_width),
    rule(op("copy", x),                             x,                             when=lambda m: m.x.shape.is_array),
    rule(op("real", x),                             x,                             when=_is_real_array),
    rule(op("real", op("complex", x, y)),           x),
    rule(op("imag", op("complex", x, y)),           y),
    rule(op("complex", op("real", x), op("imag", x)), x,                           when=_same_shape),
    *[rule(op(outer, op(inner, x)),                 op(inner, x)) for outer in ROUNDINGS for inner in ROUNDINGS],
    # constants that are generated
    *any_of(["constant"], _as_broadcast),
    *any_of(["constant"], _as_iota),
    *any_of(_ELEMENTWISE, _apply_before_broadcast),
    # off by default
    rule(x + 0,                                     x,                             when=floating, exact=False),  # -0.0
    rule(x * 0,                                     0,                             when=floating, exact=False),  # inf
    rule(x - x,                                     0,                             when=floating, exact=False),  # inf
    rule(x / x,                                     1,                             when=floating, exact=False),  # 0, inf
    rule(-(x - y),                                  y - x,                         when=floating, exact=False),  # -0.0
    rule((x + c) + d,                               x + (c + d),                   when=_mergeable_floats, exact=False),
    rule((x * c) * d,                               x * (c * d),                   when=_mergeable_floats, exact=False),
    rule(x / c,                                     x * op("divide", 1, c),        when=_mergeable_floats, exact=False),
    rule(op("exponential", x) / op("exponential", y), op("exponential", x - y),    when=floating, exact=False),
    rule(op("exponential", x) * op("exponential", y), op("exponential", x + y),    when=floating, exact=False),
    rule(op("log", op("exponential", x)),           x,                             when=floating, exact=False),
    rule(x / op("sqrt", y),                         x * op("rsqrt", y),            when=floating, exact=False),
]
# fmt: on

RULES: Final[list[Rule]] = [*ARITHMETIC, *MOVEMENT, *REDUCTIONS]
algebra: Final = RewritePass("algebra", RULES)


def run(module: HloModule) -> bool:
    """Apply the exact rules to a fixed point."""
    return algebra.run(module)
