"""Products of batches of matrices, in an accumulator wider than the operands."""

from __future__ import annotations

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.values import Array

# With more multiplications than this, f32 accumulates in f32: twice the speed, half the memory.
WIDE_LIMIT = 2**30
_EXACT = 2**53  # integers below it are exact in double precision


def accumulator(lhs: Array, rhs: Array, result: ElementType, products: int) -> ElementType:
    """Return the type in which `products` products are summed.

    Integers wrap in the result type. Floats are summed in double precision, except that f32 is summed in f32 with more
    than
    `WIDE_LIMIT` products.
    """
    if not (result.is_float or result.is_complex):
        return result
    narrow = result.real_part.bits <= 32 and max(lhs.dtype.itemsize, rhs.dtype.itemsize) <= (
        8 if result.is_complex else 4
    )
    if narrow and products > WIDE_LIMIT:
        return ElementType.C64 if result.is_complex else ElementType.F32
    return ElementType.C128 if result.is_complex else ElementType.F64


def batched_product(lhs: Array, rhs: Array, result: ElementType) -> Array:
    """Return ``lhs[b, m, k] @ rhs[b, k, n]``, rounded once to `result`; for predicates, "or" of "and"."""
    if result is ElementType.PRED:
        return np.asarray(np.matmul(lhs.astype(np.float32), rhs.astype(np.float32)) != 0)
    if result.is_integer:
        return _integer_product(lhs, rhs, result)
    wide = accumulator(lhs, rhs, result, lhs.size * rhs.shape[2])
    a, b = (x.astype(wide.numpy_dtype, copy=False) for x in (lhs, rhs))
    exact = np.matmul(a, b)
    if wide.is_complex and not np.isfinite(exact).all():  # BLAS multiplies sums by 1 + 0j: infinities become NaN
        exact = np.einsum("bmk,bkn->bmn", a, b)
    return convert_array(exact, result)


def _integer_product(lhs: Array, rhs: Array, result: ElementType) -> Array:
    if lhs.size == 0 or rhs.size == 0:
        return np.zeros((lhs.shape[0], lhs.shape[1], rhs.shape[2]), result.numpy_dtype)
    # Bits above those of the result have no effect, so 64 bits are enough, whatever the signs.
    a, b = (x.astype(np.int64, copy=False) for x in (lhs, rhs))
    if lhs.shape[2] * _largest(a) * _largest(b) < _EXACT:
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    else:
        exact = np.matmul(a, b)
    return convert_array(exact, result)


def _largest(x: Array) -> int:
    return max(abs(int(x.max())), abs(int(x.min())))
