"""Application of element-wise opcodes to arrays, by the kind of their elements."""

from __future__ import annotations

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Kind
from cyxla.xla.evaluator.numerics.conversion import dtype_of, round_float, widen_integer, wrap_integer
from cyxla.xla.evaluator.numerics.elementwise_functions import MEANINGS, Meaning
from cyxla.xla.evaluator.values import Array

_NO_MEANING = Meaning()
_FLUSHED = (ElementType.BF16, ElementType.F32, ElementType.F64)
_COPIES = ("negate", "maximum", "minimum")


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


def flush_denormals(x: Array) -> Array:
    """Replace numbers below the normal range by zeros of their sign."""
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    small = np.abs(wide) < np.finfo(wide.dtype).tiny
    return np.where(small, np.copysign(wide.dtype.type(0), wide).astype(x.dtype), x) if small.any() else x


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
