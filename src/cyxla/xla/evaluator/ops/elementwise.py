"""Opcodes that apply to each element.

Each rounds once to its declared type. Floats below 32 bits compute in f32 (arithmetic) or f64 (functions), f32
functions
in f64, and f64 functions in long double, so that the last rounding is nearly always the only error.

Operands may have rank 0 beside arrays: computations of scalars are vectorised that way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.types import from_numpy
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.apply_elementwise import _COPIES, _FLUSHED, apply_named, flush_denormals
from cyxla.xla.evaluator.numerics.complex_math import absolute, complex_of
from cyxla.xla.evaluator.numerics.conversion import dtype_of
from cyxla.xla.evaluator.numerics.elementwise_functions import MEANINGS
from cyxla.xla.evaluator.numerics.ordering import comparable, total_order_key
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array
from cyxla.xla.hlo.instruction import Instruction

_BY_NAME = sorted(MEANINGS.keys() - {"real", "imag", "abs"})


@evaluates(*_BY_NAME)
def apply_by_name(ev: Evaluation, ins: Instruction, *operands: Array) -> Array:
    """Apply an opcode that is implemented by name and element type alone."""
    result = apply_named(ins.opcode, ins.shape.dtype, *operands)
    flushes = ev.options.flush_denormals and ins.shape.dtype in _FLUSHED and ins.opcode not in _COPIES
    return flush_denormals(result) if flushes else result


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
