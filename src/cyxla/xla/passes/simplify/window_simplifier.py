"""Simplify scatters of one window and updates at constant indices.

A scatter of one window is a dynamic-update-slice. A dynamic-update-slice at constant indices that replaces most of an
array is a concatenation of the parts around it and the update: loops then write every element once, and the update may
be computed from the same array.

Before::

    at = s32[2] constant({1, 1})
    ROOT r = f32[8,8] scatter(x, at, f32[6,6] y), update_window_dims={0,1}, inserted_window_dims={},
      scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=add

After::

    old = f32[6,6] slice(x), slice={[1:7], [1:7]}
    new = f32[6,6] add(old, y)
    row = f32[6,8] concatenate(slice(x), new, slice(x)), dimensions={1}
    ROOT r = f32[8,8] concatenate(slice(x), row, slice(x)), dimensions={0}
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.engine.pattern import uniform_value
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_in

_SMALLEST_SHARE: Final = 0.5  # of an array that an update has to replace


def run(module: HloModule) -> bool:
    """Rewrite scatters of one window, then updates of most of an array."""
    changed = False
    for computation in module.post_order():
        changed |= run_computation(computation)
    return changed


def run_computation(computation: Computation) -> bool:
    """Rewrite those of one computation."""
    return rewrite_in(computation, {"scatter": _scatter, "dynamic-update-slice": _update})


def _scatter(ins: Instruction) -> Instruction | None:
    if len(ins.operands) != 3 or ins.control_predecessors or not ins.shape.is_array or ins.shape.is_dynamic:
        return None
    operand, indices, updates = ins.operands
    a = ins.attrs
    dims = a["scatter_dims_to_operand_dims"]
    if indices.shape.size != len(dims) or a.get("input_batching_dims") or updates.shape.size == 0:
        return None
    at, window = _constant_indices(indices), _window_sizes(ins)
    if at is None or prod(window) != updates.shape.size:  # without indices there may be many windows
        return None
    start = [0] * operand.shape.rank
    for d, index in zip(dims, at, strict=True):
        start[d] = index
    if any(s < 0 or s + w > n for s, w, n in zip(start, window, operand.shape.dims, strict=True)):
        return operand  # a window that is not inside has no effect
    write = Writer(ins.computation)
    new = _combine(write, ins.called[0], operand, write.reshape(updates, window), start)
    if new is None:
        return None
    starts = [write.constant(s, ElementType.S32) for s in start]
    return write.op("dynamic-update-slice", operand, new, *starts)


def _constant_indices(ins: Instruction) -> list[int] | None:
    if ins.opcode == "reshape":
        ins = ins.operands[0]
    if ins.opcode == "constant":
        return [int(x) for x in np.asarray(ins.attrs["literal"].array).reshape(-1)]
    value = uniform_value(ins)
    return None if value is None else [int(value.reshape(-1)[0])] * ins.shape.size


def _window_sizes(ins: Instruction) -> list[int]:
    """Return the sizes of the window along the operand's dimensions."""
    operand, _, updates = ins.operands
    sizes = [updates.shape.dims[d] for d in ins.attrs["update_window_dims"]][::-1]
    inserted = ins.attrs["inserted_window_dims"]
    return [1 if d in inserted else sizes.pop() for d in range(operand.shape.rank)]


def _combine(
    write: Writer, combine: Computation, operand: Instruction, new: Instruction, start: Sequence[int]
) -> Instruction | None:
    """Write the new elements of the window."""
    old_one, new_one = combine.parameters
    root = combine.root
    if root is new_one:
        return new
    if not root.row.elementwise or len(root.operands) != 2 or root.shape.dtype is not operand.shape.dtype:
        return None
    if any(o not in (old_one, new_one) for o in root.operands) or new.shape.dtype is not operand.shape.dtype:
        return None
    parts = [SliceDim(s, s + w, 1) for s, w in zip(start, new.shape.dims, strict=True)]
    old = _slice(write, operand, parts)
    operands = [old if o is old_one else new for o in root.operands]
    return write.op(root.opcode, *operands, shape=new.shape.logical, **root.attrs)


def _slice(write: Writer, x: Instruction, parts: Sequence[SliceDim]) -> Instruction:
    if all(p.start == 0 and p.limit == n for p, n in zip(parts, x.shape.dims, strict=True)):
        return x
    dims = [p.limit - p.start for p in parts]
    return write.op("slice", x, shape=x.shape.logical.with_dims(dims), slice=tuple(parts))


def _update(ins: Instruction) -> Instruction | None:
    operand, new, *starts = ins.operands
    if ins.control_predecessors or ins.shape.is_dynamic or not ins.shape.size or not (ins.users or ins.is_root):
        return None
    if new.shape.size < _SMALLEST_SHARE * ins.shape.size or new.shape.is_dynamic or operand.opcode == "broadcast":
        return None
    starts_known = [_constant_indices(s) for s in starts]
    flat = [x for f in starts_known if f is not None for x in f]
    if any(f is None for f in starts_known) or len(flat) != ins.shape.rank:
        return None
    dims = ins.shape.dims
    at = [min(max(s, 0), n - w) for s, w, n in zip(flat, new.shape.dims, dims, strict=True)]
    if _is_row_range(new.shape.dims, dims) and prod(new.shape.dims) < prod(dims):
        return None  # one range in memory: cheap to copy
    write = Writer(ins.computation)
    return _replace_middle(write, operand, new, at)


def _is_row_range(part: Sequence[int], full_range: Sequence[int]) -> bool:
    return tuple(part[1:]) == tuple(full_range[1:])


def _replace_middle(write: Writer, operand: Instruction, new: Instruction, at: Sequence[int]) -> Instruction:
    """Write the operand with its middle replaced, one dimension after the other, the last first."""
    dims = operand.shape.dims
    middle = new
    for d in range(len(dims) - 1, -1, -1):
        limit = at[d] + new.shape.dims[d]
        inner = [SliceDim(at[k], at[k] + new.shape.dims[k], 1) for k in range(d)]
        outer = [SliceDim(0, n, 1) for n in dims[d + 1 :]]
        parts = [
            _slice(write, operand, [*inner, SliceDim(low, high, 1), *outer])
            for low, high in ((0, at[d]), (limit, dims[d]))
            if low < high
        ]
        if at[d] > 0:
            parts.insert(1, middle)
        else:
            parts.insert(0, middle)
        if len(parts) > 1:
            sizes = [*new.shape.dims[:d], *dims[d:]]
            shape = operand.shape.logical.with_dims(sizes)
            middle = write.op("concatenate", *parts, shape=shape, dimensions=(d,))
    return middle
