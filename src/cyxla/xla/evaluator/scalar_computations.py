"""Vectorised evaluation of computations of scalars on whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cyxla.xla.evaluator.values import Array, Value, array_of, numpy_dtype
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import computations_post_order
from cyxla.xla.hlo.opcode import lookup

if TYPE_CHECKING:
    from cyxla.xla.evaluator.evaluation import Evaluation

# Opcodes, besides element-wise ones, that apply to a batch of scalars unchanged.
_ALSO = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "copy", "opt-barrier", "call", "fusion", "broadcast",
    "reshape",
})  # fmt: skip


def apply_elementwise(ev: Evaluation, computation: Computation, arrays: Sequence[Array]) -> list[Array]:
    """Evaluate a computation of scalars on each element; see `Evaluation.apply_elementwise`."""
    shape = arrays[0].shape if arrays else ()
    if vectorises(ev, computation):
        return _flat(ev.apply_batch(computation, tuple(arrays)), shape)
    columns = [ev.apply(computation, *(a[i].reshape(()) for a in arrays)) for i in np.ndindex(shape)]
    return _stack(columns, computation, shape)


def vectorises(ev: Evaluation, computation: Computation) -> bool:
    """Return True if every instruction, in callees too, is a scalar operation that NumPy can vectorise."""
    cache = ev.vectorises
    if computation not in cache:
        for comp in computations_post_order(computation):
            cache.setdefault(comp, all(_is_batchable(i) and all(cache[c] for c in i.called) for i in comp.instructions))
    return cache[computation]


def _is_batchable(ins: Instruction) -> bool:
    row = lookup(ins.opcode)
    scalars = all(leaf.is_scalar for leaf in ins.shape.leaves())
    return scalars and (row.elementwise or ins.opcode in _ALSO)


def _flat(value: Value, shape: tuple[int, ...]) -> list[Array]:
    parts = value if isinstance(value, tuple) else (value,)
    return [np.broadcast_to(array_of(p), shape) for p in parts]


def _stack(columns: list[Value], computation: Computation, shape: tuple[int, ...]) -> list[Array]:
    results = []
    for n, leaf in enumerate(computation.root.shape.leaves()):
        cells = [array_of(c[n] if isinstance(c, tuple) else c) for c in columns]
        results.append(np.array(cells, numpy_dtype(leaf)).reshape(shape))
    return results


def scalar_function(computation: Computation) -> str | None:
    """Return the opcode that a computation applies; see `Evaluation.scalar_function`."""
    root, parameters = computation.root, computation.parameters
    if len(parameters) != 2 or len(root.operands) != 2 or not root.row.elementwise or root.attrs:
        return None
    if root.shape.dtype is not parameters[0].shape.dtype or not all(i.shape.is_scalar for i in (root, *parameters)):
        return None
    if list(root.operands) == parameters or (root.row.commutes and list(root.operands) == parameters[::-1]):
        return root.opcode
    return None
