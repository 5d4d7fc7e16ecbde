"""Opcodes that apply to each element."""

from __future__ import annotations

from typing import Any

from cyxla.errors import DTypeError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.opcode import (
    ANY,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    PRED,
    REAL,
    SIGNED,
    Attr,
    ShapeRule,
    Site,
    opcode,
    opt,
    req,
)
from cyxla.xla.hlo.ops.checks import arrays, merged_dims, same_dtype, stated

_ACCURACY = (opt("result_accuracy", "accuracy"),)
_BITS = (req("exponent_bits", "int"), req("mantissa_bits", "int"))
_COMPARE = (req("direction", "enum:EQ,NE,GE,GT,LE,LT"), opt("type", "enum:FLOAT,TOTALORDER,SIGNED,UNSIGNED"))
_COMPLEX_OF = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}
_COMPARED = {
    "FLOAT": INEXACT,
    "TOTALORDER": REAL | PRED,
    "SIGNED": INTEGER | PRED,
    "UNSIGNED": INTEGER | PRED,
    None: ANY,
}


def same_shape(site: Site) -> Shape:
    """(C1) the operands are arrays; (C2) of one element type; (C3) and the same sizes, without broadcasting."""
    first = site.operands[0]
    if first.is_array and site.operands[-1] is first and len(site.operands) < 3:
        return first
    arrays(site)
    same_dtype(site, "C2", site.operands)
    dims, dynamic = merged_dims(site, "C3", site.operands)
    return first.with_dims(dims, dynamic)


def real_part(site: Site) -> Shape:
    """(C1) an array. The result has the real type of a complex operand."""
    arrays(site)
    return site.operands[0].with_dtype(site.operands[0].dtype.real_part)


def predicate(site: Site) -> Shape:
    """(C1) the operands are arrays; (C2) of one element type; (C3) and the same sizes."""
    return same_shape(site).with_dtype(ElementType.PRED)


def converted(site: Site) -> Shape:
    """(C1) an array; (C2) the result is a stated array."""
    arrays(site)
    return site.operands[0].with_dtype(stated(site, "C2").dtype)


def reduced_precision(site: Site) -> Shape:
    """(C1) an array; (C2) 1 <= exponent_bits < 2^31; (C3) 0 <= mantissa_bits < 2^31."""
    arrays(site)
    exponent, mantissa = site.attrs["exponent_bits"], site.attrs["mantissa_bits"]
    site.require(1 <= exponent < 1 << 31, "C2", f"exponent_bits is {exponent}, not at least 1 and of 32 bits")
    site.require(0 <= mantissa < 1 << 31, "C3", f"mantissa_bits is {mantissa}, not at least 0 and of 32 bits")
    return site.operands[0]


def complex_of(site: Site) -> Shape:
    """(C1) the operands are arrays; (C2) of one element type; (C3) and the same sizes; (C4) f32 or f64."""
    parts = same_shape(site)
    site.require(parts.dtype in _COMPLEX_OF, "C4", f"no complex type has parts of {parts.dtype}", DTypeError)
    return parts.with_dtype(_COMPLEX_OF[parts.dtype])


def comparison(site: Site) -> Shape:
    """A pred for each pair of elements.

    (C1) the operands are arrays; (C2) of one element type; (C3) and the same sizes; (C4) complex numbers have only EQ
    and NE; (C5) the comparison type suits the element type.
    """
    result, dtype, kind = predicate(site), site.operands[0].dtype, site.attrs["type"]
    order = site.attrs["direction"]
    site.require(
        not dtype.is_complex or order in ("EQ", "NE"),
        "C4",
        f"direction {order} needs an order, {dtype} has none",
        DTypeError,
    )
    site.require(dtype in _COMPARED[kind], "C5", f"comparison type {kind} does not suit {dtype}", DTypeError)
    return result


def stochastically_converted(site: Site) -> Shape:
    """The operand's sizes and the stated element type.

    (C1) the operands are arrays; (C2) of the same sizes; (C3) the random bits are unsigned integers as wide as the
    operand; (C4) the result is a stated array of real numbers.
    """
    arrays(site)
    value, bits = site.operands
    dims, dynamic = merged_dims(site, "C2", site.operands)
    fits = bits.dtype.is_unsigned and bits.dtype.bits == value.dtype.bits
    site.require(fits, "C3", f"random bits are {bits.dtype}, but must be u{value.dtype.bits}", DTypeError)
    target_dtype = stated(site, "C4").dtype
    site.require(
        target_dtype.is_integer or target_dtype.is_float, "C4", f"the result cannot be {target_dtype}", DTypeError
    )
    return Shape.array(target_dtype, dims, dynamic=dynamic)


def selection(site: Site) -> Shape:
    """The shape of the values.

    (C1) the operands are arrays; (C2) the values have one element type; (C3) and the same sizes; (C4) the predicate is
    a scalar or has their sizes.
    """
    arrays(site)
    pred, *values = site.operands
    same_dtype(site, "C2", values)
    dims, dynamic = merged_dims(site, "C3", values)
    if not pred.is_scalar:
        dims, dynamic = merged_dims(site, "C4", (values[0].with_dims(dims, dynamic), pred))
    return values[0].with_dims(dims, dynamic)


def clamped(site: Site) -> Shape:
    """(C1) the operands are arrays; (C2) of one element type; (C3) bounds are scalars or have the operand's sizes."""
    arrays(site)
    same_dtype(site, "C2", site.operands)
    low, x, high = site.operands
    dims, dynamic = merged_dims(site, "C3", [x, *(b for b in (low, high) if not b.is_scalar)])
    return x.with_dims(dims, dynamic)


def unary(name: str, accepts: frozenset[Any], *attrs: Attr, rule: ShapeRule = same_shape, **facts: Any) -> None:
    """Register an opcode with one operand and a result of the same sizes."""
    opcode(name, 1, accepts=accepts, attrs=attrs, elementwise=True, rule=rule, **facts)


def binary(name: str, accepts: frozenset[Any], *attrs: Attr, rule: ShapeRule = same_shape, **facts: Any) -> None:
    """Register an opcode with two operands of one shape and a result of the same sizes."""
    opcode(name, 2, accepts=accepts, attrs=attrs, elementwise=True, rule=rule, **facts)


# fmt: off
#      name                     accepts                attributes    tolerance, algebra, rule, other names, cost
unary( "abs",                   SIGNED | INEXACT,      rule=real_part)
unary( "negate",                NUMBER,                xla="Neg")
unary( "sign",                  SIGNED | INEXACT)
unary( "not",                   INTEGER | PRED)
unary( "popcnt",                INTEGER,               xla="PopulationCount")
unary( "count-leading-zeros",   INTEGER,               xla="Clz")
unary( "ceil",                  FLOAT)
unary( "floor",                 FLOAT)
unary( "round-nearest-afz",     FLOAT,                 xla="Round")
unary( "round-nearest-even",    FLOAT)
unary( "exponential",           INEXACT,               *_ACCURACY,   ulp=2, xla="Exp", cost=0.35)
unary( "exponential-minus-one", INEXACT,               *_ACCURACY,   ulp=2, xla="Expm1", cost=0.5)
unary( "log",                   INEXACT,               *_ACCURACY,   ulp=2, cost=0.5)
unary( "log-plus-one",          INEXACT,               *_ACCURACY,   ulp=2, xla="Log1p", cost=0.7)
unary( "logistic",              INEXACT,               *_ACCURACY,   ulp=2, cost=0.45)
unary( "tanh",                  INEXACT,               *_ACCURACY,   ulp=2, cost=0.6)
unary( "tan",                   INEXACT,               *_ACCURACY,   ulp=2, cost=0.8)
unary( "sine",                  INEXACT,               *_ACCURACY,   ulp=2, xla="Sin", cost=0.4)
unary( "cosine",                INEXACT,               *_ACCURACY,   ulp=2, xla="Cos", cost=0.4)
unary( "sqrt",                  INEXACT,               *_ACCURACY,   ulp=1, cost=0.2)
unary( "rsqrt",                 INEXACT,               *_ACCURACY,   ulp=2, cost=0.3)
unary( "cbrt",                  INEXACT,               *_ACCURACY,   ulp=2, cost=1.0)
unary( "erf",                   FLOAT,                 *_ACCURACY,   ulp=2, dialect="chlo", cost=0.8)
unary( "acos",                  INEXACT,               ulp=2, dialect="chlo", cost=0.8)
unary( "acosh",                 INEXACT,               ulp=2, dialect="chlo", cost=1.2)
unary( "asin",                  INEXACT,               ulp=2, dialect="chlo", cost=0.8)
unary( "asinh",                 INEXACT,               ulp=2, dialect="chlo", cost=1.2)
unary( "atanh",                 INEXACT,               ulp=2, dialect="chlo", cost=1.0)
unary( "sinh",                  INEXACT,               ulp=2, dialect="chlo", cost=0.8)
unary( "cosh",                  INEXACT,               ulp=2, dialect="chlo", cost=0.8)
unary( "is-finite",             FLOAT,                 rule=predicate)
unary( "real",                  INEXACT,               rule=real_part)
unary( "imag",                  INEXACT,               rule=real_part)
unary( "convert",               ANY,                   rule=converted, xla="ConvertElementType", dialect="")
unary( "reduce-precision",      FLOAT,                 *_BITS, rule=reduced_precision, dialect="")

binary("add",                   NUMBER | PRED,         commutes=True, unit=0)
binary("subtract",              NUMBER,                xla="Sub")
binary("multiply",              NUMBER | PRED,         commutes=True, unit=1, xla="Mul")
binary("divide",                NUMBER,                xla="Div", cost=0.2)
binary("remainder",             REAL,                  xla="Rem", cost=3.0)
binary("power",                 NUMBER,                ulp=2, xla="Pow", cost=3.0)
binary("maximum",               ANY,                   commutes=True, xla="Max")
binary("minimum",               ANY,                   commutes=True, xla="Min")
binary("atan2",                 INEXACT,               ulp=2, cost=1.0)
binary("and",                   INTEGER | PRED,        commutes=True)
binary("or",                    INTEGER | PRED,        commutes=True, unit=0)
binary("xor",                   INTEGER | PRED,        commutes=True, unit=0)
binary("shift-left",            INTEGER)
binary("shift-right-arithmetic", INTEGER)
binary("shift-right-logical",   INTEGER)
binary("complex",               FLOAT,                 rule=complex_of)
binary("compare",               ANY,                   *_COMPARE, rule=comparison, dialect="")
binary("mulhi",                 INTEGER,               xla="MulHi", dialect="mhlo")
binary("stochastic-convert",    FLOAT,                 rule=stochastically_converted, dialect="mhlo",
       xla="StochasticConvertType")

opcode("select", 3, accepts=PRED, elementwise=True, rule=selection)  # the predicate may be a scalar
opcode("clamp",  3, accepts=REAL | PRED | COMPLEX, elementwise=True, rule=clamped)  # the bounds may be scalars
# fmt: on
