"""Stable sorting by any comparator, and top-k."""

from __future__ import annotations

from math import prod

import numpy as np

from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.ordering import comparable, total_order_key
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.scalar_computations import vectorises
from cyxla.xla.evaluator.values import Array, Value, array_of
from cyxla.xla.hlo.comparators import same_key
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction


@evaluates("sort")
def sort(ev: Evaluation, ins: Instruction, *arrays: Array) -> Value:
    """Sort the operands together along one dimension, by a comparator of (a0, b0, a1, b1, ..)."""
    along = int(ins.attrs["dimensions"][0])
    operands_by_row = [np.moveaxis(a, along, -1) for a in arrays]
    order = _order_by_key(ev, ins.called[0], operands_by_row)
    rows = [m.reshape(prod(m.shape[:-1]), m.shape[-1]) for m in operands_by_row]
    order = _merge_sort(ev, ins.called[0], rows) if order is None else order.reshape(rows[0].shape)
    sorted_rows = (np.take_along_axis(r, order, axis=1).reshape(operands_by_row[0].shape) for r in rows)
    results = [np.moveaxis(x, -1, along) for x in sorted_rows]
    return tuple(results) if ins.shape.is_tuple else results[0]


@evaluates("topk")
def topk(ev: Evaluation, ins: Instruction, x: Array) -> Value:
    """Return the k greatest (or least) elements along the last dimension, and their indices."""
    return top(x, int(ins.attrs["k"]), largest=bool(ins.attrs["largest"]))


def top(x: Array, k: int, *, largest: bool) -> tuple[Array, Array]:
    """Return the k greatest or least elements along the last dimension, in total order, and their indices.

    Rows of fewer elements, which have a dynamic size, are continued by zeros.
    """
    key = total_order_key(x)
    order = (_descending(key) if largest else np.argsort(key, axis=-1, kind="stable"))[..., :k]
    values, indices = np.take_along_axis(x, order, axis=-1), order.astype(np.int32)
    if x.shape[-1] >= k:
        return values, indices
    missing = [(0, 0)] * (x.ndim - 1) + [(0, k - x.shape[-1])]
    return np.pad(values, missing), np.pad(indices, missing)


def _descending(key: Array) -> Array:
    """Argsort in descending order; equal elements stay in order."""
    backwards = np.argsort(key[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.asarray(key.shape[-1] - 1 - backwards)


# --- comparators that compare one function of one operand ---


def _order_by_key(ev: Evaluation, comparator: Computation, arrays: list[Array]) -> Array | None:
    """Sort by key if the comparator is ``f(a) < f(b)`` (or ``>``) for one operand; else return None."""
    root = comparator.root
    if root.opcode != "compare" or root.attrs["direction"] not in ("LT", "GT") or not vectorises(ev, comparator):
        return None
    left, right = root.operands
    key_operand = same_key(left, right)
    if key_operand is None:
        return None
    args = tuple(a for array in arrays for a in (array, array))
    values = np.broadcast_to(array_of(ev.apply_batch(comparator, args, left)), arrays[0].shape)
    key = total_order_key(values) if root.attrs["type"] == "TOTALORDER" else comparable(values)
    return _descending(key) if root.attrs["direction"] == "GT" else np.argsort(key, axis=-1, kind="stable")


# --- any comparator ---


def _merge_sort(ev: Evaluation, comparator: Computation, rows: list[Array]) -> Array:
    """Argsort each row: runs of 1, 2, 4 .. are merged, all at once, by binary search of the left run's elements."""
    count, length = rows[0].shape
    order = np.broadcast_to(np.arange(length), (count, length)).copy()
    width = 1
    while width < length:
        _merge_level(ev, comparator, rows, order, width)
        width *= 2
    return order


def _merge_level(ev: Evaluation, comparator: Computation, rows: list[Array], order: Array, width: int) -> None:
    count, length = order.shape
    positions = np.arange(length)
    middle = (positions // (2 * width)) * 2 * width + width
    left_runs = positions[(positions < middle) & (middle < length)]  # left runs that have a right run
    start, end = middle[left_runs], np.minimum(middle[left_runs] + width, length)
    low, high = (
        np.broadcast_to(start, (count, len(left_runs))).copy(),
        np.broadcast_to(end, (count, len(left_runs))).copy(),
    )
    left_elements = order[:, left_runs]
    while (low < high).any():
        probe = (low + high) // 2
        probed = np.take_along_axis(order, np.minimum(probe, length - 1), axis=1)
        args = [
            operand
            for r in rows
            for operand in (np.take_along_axis(r, probed, 1), np.take_along_axis(r, left_elements, 1))
        ]
        before = ev.apply_elementwise(comparator, args)[0] & (low < high)
        high = np.where(before, high, probe)
        low = np.where(before, probe + 1, low)
    _scatter_runs(order, left_runs, left_runs + low - start)


def _scatter_runs(order: Array, left: Array, target: Array) -> None:
    """Write the left runs' elements to `target`; all others fill the remaining positions in order."""
    left_elements = order[:, left]
    right_elements = np.delete(order, left, axis=1)
    is_free = np.ones(order.shape, bool)
    np.put_along_axis(is_free, target, False, axis=1)
    np.put_along_axis(order, target, left_elements, axis=1)
    order[is_free] = right_elements.reshape(-1)
