"""Custom calls that compact arrays by a mask; `hlo.compaction_signature` tells what they take and return."""

from __future__ import annotations

import numpy as np

from cyxla.xla.evaluator.custom_calls import register_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.values import Array, Value, array_of
from cyxla.xla.hlo.compaction_signature import COMPACT, COMPACT_INDICES
from cyxla.xla.hlo.instruction import Instruction


@register_custom_call(COMPACT)
def _compact(ev: Evaluation, ins: Instruction, mask: Value, *operands: Value) -> Value:
    """Return the rows at which the mask is true, followed by zeros, and their number."""
    indices = np.flatnonzero(array_of(mask))
    return (*(_zero_padded(array_of(x)[indices], len(array_of(x))) for x in operands), np.array(indices.size, np.int64))


@register_custom_call(COMPACT_INDICES)
def _compact_indices(ev: Evaluation, ins: Instruction, mask: Value) -> Value:
    """Return the indices at which the mask is true, followed by zeros, and their number."""
    indices = np.flatnonzero(array_of(mask)).astype(ins.shape.elements[0].dtype.numpy_dtype)
    return _zero_padded(indices, len(array_of(mask))), np.array(indices.size, np.int64)


def _zero_padded(rows: Array, size: int) -> Array:
    """Append zeros up to a number of rows."""
    padded = np.zeros((size, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded
