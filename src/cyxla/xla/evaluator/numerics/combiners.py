"""Combiners of reductions and scatters: the opcode of one, and its application at indices."""

from __future__ import annotations

import numpy as np

from cyxla.types import from_numpy
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.values import Array
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.hlo.computation import Computation

_UFUNCS = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def combine_at(
    ev: Evaluation, body: Computation, arrays: list[Array], positions: Array, updates: list[Array]
) -> list[Array]:
    """Replace ``array[where]`` by ``body(array[where], update)``, one update after the other.

    Parameters
    ----------
    arrays : list of array
        Arrays of rank 1, which may be modified.
    positions : array
        Indices, which may repeat.
    updates : list of array
        One value for each index, for each array.
    """
    if positions.size == 0:
        return arrays
    name = ev.scalar_function(body) if len(arrays) == 1 else None
    ufunc = _UFUNCS.get(name or "")
    if _is_overwrite(body) and len(arrays) == len(updates):
        for a, u in zip(arrays, updates, strict=True):
            a[positions] = u  # of equal indices, the last one is kept
        return arrays
    if ufunc is not None and _matches_ufunc(name, arrays[0], positions):
        ufunc.at(arrays[0], positions, updates[0])
        return arrays
    return _combine_in_rounds(ev, body, arrays, positions, updates)


def _is_overwrite(body: Computation) -> bool:
    """Return True if the body returns the second half of its parameters, unchanged and in order."""
    parameters = body.parameters
    roots = list(body.root.operands) if body.root.opcode == "tuple" else [body.root]
    return roots == parameters[len(parameters) // 2 :]


def _matches_ufunc(name: str | None, array: Array, positions: Array) -> bool:
    """Return True if NumPy's ufunc rounds, wraps and treats signed zeros as HLO does."""
    dtype = from_numpy(array.dtype)
    if array.dtype.kind not in "biufc":
        return False
    return name in ("add", "multiply") or not (dtype.is_float or dtype.is_complex)


def _combine_in_rounds(
    ev: Evaluation, body: Computation, arrays: list[Array], positions: Array, updates: list[Array]
) -> list[Array]:
    """Combine in rounds, each with the next update of every index, so that indices in a round are distinct."""
    order = np.argsort(positions, kind="stable")
    indices, firsts, counts = np.unique(positions[order], return_index=True, return_counts=True)
    for round_ in range(int(counts.max())):
        active = counts > round_
        selected = order[firsts[active] + round_]
        at = indices[active]
        results = ev.apply_elementwise(body, [*(a[at] for a in arrays), *(u[selected] for u in updates)])
        for a, r in zip(arrays, results, strict=True):
            a[at] = r
    return arrays


def combining_opcode(ev: Evaluation, computation: Computation) -> str | None:
    """Return the opcode of a reduction of one array; a combiner in a wider float type, between converts, counts."""
    return ev.scalar_function(computation) or combiner(computation)
