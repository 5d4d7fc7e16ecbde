"""Meanings of the opcodes that work element by element: one row each, with a function for each kind of type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.records import dataclass
from cyxla.xla.evaluator.numerics import complex_math as complexes
from cyxla.xla.evaluator.numerics import float_math as floats
from cyxla.xla.evaluator.numerics import integer_math as integers

Function = Callable[..., Any]


@dataclass(frozen=True)
class Meaning:
    """Functions of an opcode on NumPy arrays; None for a kind of type that it does not accept.

    Attributes
    ----------
    predicate : callable
        Function of bools.
    integer : callable
        Function of the width in bits and of integers; the caller cuts the result to the width.
    exact : callable
        Function of floats that is one correctly rounded operation, or none.
    smooth : callable
        Function of floats of a type wider than the result's.
    complex : callable
        Function of complex numbers: of the result's type beside `exact`, else of a wider one.
    wide : bool
        True if complex numbers are of a wider type beside `exact` too: the function takes a modulus, which may be
        larger than the type of the parts holds.
    """

    predicate: Function | None = None
    integer: Function | None = None
    exact: Function | None = None
    smooth: Function | None = None
    complex: Function | None = None
    wide: bool = False


MEANINGS: dict[str, Meaning] = {}


def _meaning(name: str, **facts: Any) -> None:
    MEANINGS[name] = Meaning(**facts)


def _plain(ufunc: Function) -> Function:
    """Return a function of integers that does not depend on their width."""
    return lambda bits, *operands: ufunc(*operands)


# fmt: off
_meaning("abs",                      integer=_plain(np.abs), exact=np.abs)
_meaning("negate",                   integer=_plain(np.negative), exact=np.negative, complex=np.negative)
_meaning("sign",                     integer=_plain(np.sign), exact=floats.sign, complex=complexes.sign, wide=True)
_meaning("ceil",                     exact=np.ceil)
_meaning("floor",                    exact=np.floor)
_meaning("round-nearest-afz",        exact=floats.round_away)
_meaning("round-nearest-even",       exact=np.rint)
_meaning("real",                     exact=lambda x: x)
_meaning("imag",                     exact=np.zeros_like)
_meaning("sqrt",                     exact=np.sqrt, complex=np.sqrt, wide=True)
_meaning("add",                      predicate=np.logical_or, integer=_plain(np.add), exact=np.add, complex=np.add)
_meaning("subtract",                 integer=_plain(np.subtract), exact=np.subtract, complex=np.subtract)
_meaning("multiply",                 predicate=np.logical_and, integer=_plain(np.multiply), exact=np.multiply,
                                     complex=complexes.multiply)
_meaning("divide",                   integer=integers.divide, exact=np.divide, complex=complexes.divide)
_meaning("remainder",                integer=integers.remainder, exact=np.fmod)
_meaning("maximum",                  predicate=np.logical_or, integer=_plain(np.maximum), exact=floats.maximum,
                                     complex=np.maximum)
_meaning("minimum",                  predicate=np.logical_and, integer=_plain(np.minimum), exact=floats.minimum,
                                     complex=np.minimum)
_meaning("exponential",              smooth=np.exp, complex=complexes.exponential)
_meaning("exponential-minus-one",    smooth=np.expm1, complex=complexes.exponential_minus_one)
_meaning("log",                      smooth=np.log, complex=np.log)
_meaning("log-plus-one",             smooth=np.log1p, complex=complexes.log_plus_one)
_meaning("logistic",                 smooth=floats.logistic, complex=complexes.logistic)
_meaning("tanh",                     smooth=np.tanh, complex=np.tanh)
_meaning("tan",                      smooth=np.tan, complex=np.tan)
_meaning("sine",                     smooth=np.sin, complex=np.sin)
_meaning("cosine",                   smooth=np.cos, complex=np.cos)
_meaning("rsqrt",                    smooth=lambda x: 1 / np.sqrt(x), complex=complexes.rsqrt)
_meaning("cbrt",                     smooth=np.cbrt, complex=complexes.cbrt)
_meaning("erf",                      smooth=floats.erf)
_meaning("acos",                     smooth=np.arccos, complex=np.arccos)
_meaning("acosh",                    smooth=np.arccosh, complex=np.arccosh)
_meaning("asin",                     smooth=np.arcsin, complex=np.arcsin)
_meaning("asinh",                    smooth=np.arcsinh, complex=np.arcsinh)
_meaning("atanh",                    smooth=np.arctanh, complex=np.arctanh)
_meaning("sinh",                     smooth=np.sinh, complex=np.sinh)
_meaning("cosh",                     smooth=np.cosh, complex=complexes.cosh)
_meaning("power",                    integer=integers.power, smooth=np.power, complex=complexes.power)
_meaning("atan2",                    smooth=np.arctan2, complex=complexes.atan2)
_meaning("not",                      predicate=np.logical_not, integer=_plain(np.invert))
_meaning("popcnt",                   integer=lambda bits, x: np.bitwise_count(integers.unsigned(bits, x)))
_meaning("count-leading-zeros",      integer=integers.count_leading_zeros)
_meaning("and",                      predicate=np.logical_and, integer=_plain(np.bitwise_and))
_meaning("or",                       predicate=np.logical_or, integer=_plain(np.bitwise_or))
_meaning("xor",                      predicate=np.logical_xor, integer=_plain(np.bitwise_xor))
_meaning("shift-left",               integer=integers.shift_left)
_meaning("shift-right-arithmetic",   integer=integers.shift_right_arithmetic)
_meaning("shift-right-logical",      integer=integers.shift_right_logical)
_meaning("mulhi",                    integer=integers.mulhi)
# fmt: on
