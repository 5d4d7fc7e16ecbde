"""Custom calls that compact arrays by a mask; `hlo.compaction_signature` has their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.xla.evaluator.custom_calls import options_of, register_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.values import Array, Value, array_of
from cyxla.xla.hlo.compaction_signature import COMPACT, COMPACT_INDICES, has_zero_fill
from cyxla.xla.hlo.instruction import Instruction


@register_custom_call(COMPACT)
def _compact(ev: Evaluation, ins: Instruction, mask: Value, *operands: Value) -> Value:
    """Return the rows at which the mask is true, followed by zeros or undefined rows, and their number."""
    indices = np.flatnonzero(array_of(mask))
    return (*(_padded(array_of(x)[indices], len(array_of(x)), ins) for x in operands), np.array(indices.size, np.int64))


@register_custom_call(COMPACT_INDICES)
def _compact_indices(ev: Evaluation, ins: Instruction, mask: Value) -> Value:
    """Return the indices at which the mask is true, followed by zeros or undefined ones, and their number."""
    indices = np.flatnonzero(array_of(mask)).astype(ins.shape.elements[0].dtype.numpy_dtype)
    return _padded(indices, len(array_of(mask)), ins), np.array(indices.size, np.int64)


def _padded(rows: Array, size: int, ins: Instruction) -> Array:
    """Append rows up to a number; undefined ones are conspicuous, so that programs that read them fail tests."""
    filler = 0 if has_zero_fill(options_of(ins)) else _undefined(rows.dtype)
    padded = np.full((size, *rows.shape[1:]), filler, rows.dtype)
    padded[: len(rows)] = rows
    return padded


def _undefined(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).max
    return 1 if dtype.kind == "b" else np.array(np.nan, np.float32).astype(dtype)
