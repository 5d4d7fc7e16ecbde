"""Opcodes that work element by element."""

from __future__ import annotations

from typing import Any

from cyxla.xla.hlo.opcode import (
    ANY, COMPLEX, FLOAT, INEXACT, INTEGER, NUMBER, PRED, REAL, SIGNED, Attr, opcode, opt, req,
)  # fmt: skip

_ACCURACY = (opt("result_accuracy", "accuracy"),)


def unary(name: str, accepts: frozenset[Any], *attrs: Attr, **facts: Any) -> None:
    """One operand, result of the same shape."""
    opcode(name, 1, accepts=accepts, attrs=attrs, elementwise=True, **facts)


def binary(name: str, accepts: frozenset[Any], *attrs: Attr, **facts: Any) -> None:
    """Two operands of one shape, result of the same shape."""
    opcode(name, 2, accepts=accepts, attrs=attrs, elementwise=True, **facts)


# fmt: off
#      name                     accepts                attributes    tolerance, algebra
unary( "abs",                   SIGNED | INEXACT)
unary( "negate",                NUMBER)
unary( "sign",                  SIGNED | INEXACT)
unary( "not",                   INTEGER | PRED)
unary( "popcnt",                INTEGER)
unary( "count-leading-zeros",   INTEGER)
unary( "ceil",                  FLOAT)
unary( "floor",                 FLOAT)
unary( "round-nearest-afz",     FLOAT)
unary( "round-nearest-even",    FLOAT)
unary( "exponential",           INEXACT,               *_ACCURACY,   ulp=2)
unary( "exponential-minus-one", INEXACT,               *_ACCURACY,   ulp=2)
unary( "log",                   INEXACT,               *_ACCURACY,   ulp=2)
unary( "log-plus-one",          INEXACT,               *_ACCURACY,   ulp=2)
unary( "logistic",              INEXACT,               *_ACCURACY,   ulp=2)
unary( "tanh",                  INEXACT,               *_ACCURACY,   ulp=2)
unary( "tan",                   INEXACT,               *_ACCURACY,   ulp=2)
unary( "sine",                  INEXACT,               *_ACCURACY,   ulp=2)
unary( "cosine",                INEXACT,               *_ACCURACY,   ulp=2)
unary( "sqrt",                  INEXACT,               *_ACCURACY,   ulp=1)
unary( "rsqrt",                 INEXACT,               *_ACCURACY,   ulp=2)
unary( "cbrt",                  FLOAT,                 *_ACCURACY,   ulp=2)
unary( "erf",                   FLOAT,                 *_ACCURACY,   ulp=2)
unary( "acos",                  INEXACT,               ulp=2)
unary( "acosh",                 INEXACT,               ulp=2)
unary( "asin",                  INEXACT,               ulp=2)
unary( "asinh",                 INEXACT,               ulp=2)
unary( "atanh",                 INEXACT,               ulp=2)
unary( "sinh",                  INEXACT,               ulp=2)
unary( "cosh",                  INEXACT,               ulp=2)
unary( "is-finite",             FLOAT)
unary( "real",                  INEXACT)
unary( "imag",                  INEXACT)
unary( "convert",               ANY)
unary( "reduce-precision",      FLOAT,                 req("exponent_bits", "int"), req("mantissa_bits", "int"))

binary("add",                   NUMBER | PRED,         commutes=True, unit=0)
binary("subtract",              NUMBER)
binary("multiply",              NUMBER | PRED,         commutes=True, unit=1)
binary("divide",                NUMBER)
binary("remainder",             REAL)
binary("power",                 NUMBER,                ulp=2)
binary("maximum",               ANY,                   commutes=True)
binary("minimum",               ANY,                   commutes=True)
binary("atan2",                 INEXACT,               ulp=2)
binary("and",                   INTEGER | PRED,        commutes=True)
binary("or",                    INTEGER | PRED,        commutes=True, unit=0)
binary("xor",                   INTEGER | PRED,        commutes=True, unit=0)
binary("shift-left",            INTEGER)
binary("shift-right-arithmetic", INTEGER)
binary("shift-right-logical",   INTEGER)
binary("complex",               FLOAT)
binary("compare",               ANY,                   req("direction", "enum:EQ,NE,GE,GT,LE,LT"), opt("type", "enum:FLOAT,TOTALORDER,SIGNED,UNSIGNED"))
binary("mulhi",                 INTEGER)
binary("stochastic-convert",    FLOAT)

opcode("select", 3, accepts=PRED, elementwise=True)  # the predicate may be a scalar
opcode("clamp",  3, accepts=REAL | PRED | COMPLEX, elementwise=True)  # the bounds may be scalars
# fmt: on
