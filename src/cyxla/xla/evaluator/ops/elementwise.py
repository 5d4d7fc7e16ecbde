"""Opcodes that apply to each element.

Each rounds once to its declared type. Floats below 32 bits compute in f32 (arithmetic) or f64 (functions), f32
functions
in f64, and f64 functions in long double, so that the last rounding is nearly always the only error.

Operands may have rank 0 beside arrays: computations of scalars are vectorised that way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Kind, from_numpy
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.complex_math import absolute, complex_of
from cyxla.xla.evaluator.numerics.elementwise_functions import MEANINGS, Meaning
from cyxla.xla.evaluator.ops.convert import convert_array, dtype_of, round_float, widen_integer, wrap_integer
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array
from cyxla.xla.hlo.instruction import Instruction

_BY_NAME = sorted(MEANINGS.keys() - {"real", "imag", "abs"})
_NO_MEANING = Meaning()


@evaluates(*_BY_NAME)
def apply_by_name(ev: Evaluation, ins: Instruction, *operands: Array) -> Array:
    """Apply an opcode that is implemented by name and element type alone."""
    result = apply_named(ins.opcode, ins.shape.dtype, *operands)
    flushes = ev.options.flush_denormals and ins.shape.dtype in _FLUSHED and ins.opcode not in _COPIES
    return flush_denormals(result) if flushes else result


_FLUSHED = (ElementType.BF16, ElementType.F32, ElementType.F64)
_COPIES = ("negate", "maximum", "minimum")


def flush_denormals(x: Array) -> Array:
    """Replace numbers below the normal range by zeros of their sign."""
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    small = np.abs(wide) < np.finfo(wide.dtype).tiny
    return np.where(small, np.copysign(wide.dtype.type(0), wide).astype(x.dtype), x) if small.any() else x


def apply_named(name: str, element: ElementType, *operands: Array) -> Array:
    """Apply an element-wise opcode to arrays of one element type.

    Parameters
    ----------
    name : str
        Name of the opcode.
    element : ElementType
        Type of the operands and the result.
    operands : array
        Operands of equal shapes, or rank 0.

    Raises
    ------
    UnimplementedError
        The opcode is not defined for the type.
    """
    apply = _APPLY.get(element.kind)
    result = apply(MEANINGS.get(name, _NO_MEANING), element, operands) if apply is not None else None
    if result is None:
        raise UnimplementedError(f"the evaluator has no {name} of {element}")
    return np.asarray(result)


def _apply_pred(meaning: Meaning, element: ElementType, operands: tuple[Array, ...]) -> Array | None:
    return None if meaning.predicate is None else meaning.predicate(*operands)


def _apply_integer(meaning: Meaning, element: ElementType, operands: tuple[Array, ...]) -> Array | None:
    if meaning.integer is None:
        return None
    result = np.asarray(meaning.integer(element.bits, *map(widen_integer, operands)))
    return wrap_integer(result, element)


def _apply_float(meaning: Meaning, element: ElementType, operands: tuple[Array, ...]) -> Array | None:
    if meaning.exact is not None:
        wide = dtype_of(element) if element.bits >= 32 else np.dtype(np.float32)
        return round_float(np.asarray(meaning.exact(*(x.astype(wide, copy=False) for x in operands))), element)
    if meaning.smooth is None:
        return None
    wider = np.longdouble if element is ElementType.F64 else np.float64
    return round_float(np.asarray(meaning.smooth(*(x.astype(wider) for x in operands))), element)


def _apply_complex(meaning: Meaning, element: ElementType, operands: tuple[Array, ...]) -> Array | None:
    if meaning.complex is None:
        return None
    if meaning.exact is not None and not meaning.wide:
        return np.asarray(meaning.complex(*operands)).astype(dtype_of(element))
    wide = np.clongdouble if element is ElementType.C128 else np.complex128
    return np.asarray(meaning.complex(*(x.astype(wide) for x in operands))).astype(dtype_of(element))


_APPLY = {
    Kind.PRED: _apply_pred,
    Kind.SIGNED: _apply_integer,
    Kind.UNSIGNED: _apply_integer,
    Kind.FLOAT: _apply_float,
    Kind.COMPLEX: _apply_complex,
}


@evaluates("abs")
def absolute_value(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Return the absolute value; for a complex number, the modulus."""
    if from_numpy(x.dtype).is_complex:
        wide = np.clongdouble if x.dtype == np.complex128 else np.complex128
        return absolute(x.astype(wide)).astype(dtype_of(ins.shape.dtype))
    return apply_named("abs", ins.shape.dtype, x)


@evaluates("real")
def real(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Return the real part."""
    return x.real.copy() if from_numpy(x.dtype).is_complex else x


@evaluates("imag")
def imag(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Return the imaginary part, 0 for a real number."""
    return x.imag.copy() if from_numpy(x.dtype).is_complex else np.zeros_like(x)


@evaluates("complex")
def make_complex(ev: Evaluation, ins: Instruction, x: Array, y: Array) -> Array:
    """Return complex numbers of two parts."""
    return complex_of(x, y)


@evaluates("is-finite")
def is_finite(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Return a pred: elements are neither infinite nor NaN."""
    return np.isfinite(x.astype(np.float64))


@evaluates("select")
def select(ev: Evaluation, ins: Instruction, pred: Array, on_true: Array, on_false: Array) -> Array:
    """Select the second operand where the predicate is true, else the third."""
    return np.where(pred, on_true, on_false)


@evaluates("clamp")
def clamp(ev: Evaluation, ins: Instruction, low: Array, x: Array, high: Array) -> Array:
    """Return min(max(x, low), high); if low > high, the result is high."""
    element = ins.shape.dtype
    return apply_named("minimum", element, apply_named("maximum", element, x, low), high)


# --- comparisons ---

_DIRECTIONS: dict[str, Any] = {
    "EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal, "LT": np.less,
}  # fmt: skip


@evaluates("compare")
def compare(ev: Evaluation, ins: Instruction, x: Array, y: Array) -> Array:
    """Compare in the order of numbers, where NaN equals nothing, or in the total order of floats."""
    return compare_arrays(str(ins.attrs["direction"]), str(ins.attrs["type"]), x, y)


def compare_arrays(direction: str, order: str, x: Array, y: Array) -> Array:
    """Compare arrays of one element type; `order` is FLOAT, TOTALORDER, SIGNED or UNSIGNED."""
    key = total_order_key if order == "TOTALORDER" else comparable
    return np.asarray(_DIRECTIONS[direction](key(x), key(y)))


def comparable(x: Array) -> Array:
    """Return the elements in a type that NumPy can compare."""
    element = from_numpy(x.dtype)
    if element.is_integer:
        return widen_integer(x)
    return x.astype(np.float32) if element.is_float and element.bits < 32 else x


def total_order_key(x: Array) -> Array:
    """Return integers in the total order of the elements: -NaN < -inf < .. < -0 < +0 < .. < inf < NaN."""
    element = from_numpy(x.dtype)
    if not element.is_float:
        return comparable(x)
    size = x.dtype.itemsize
    bits = np.ascontiguousarray(x).reshape(x.shape).view(f"i{size}") << (8 * size - element.bits)
    if element is ElementType.F8E8M0FNU:  # without a sign
        return bits.view(np.uint8)
    if element.text.endswith("fnuz"):  # the only NaN has the bits of -0, and is the least
        return np.where(bits == -128, np.int16(-129), np.where(bits < 0, bits ^ np.int8(127), bits))
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


__all__ = ["apply_named", "comparable", "compare_arrays", "convert_array", "total_order_key"]
