"""Expand ragged-dot into a dot with masks.

Before::

    ROOT d = f32[3,5,4] ragged-dot(f32[5,6] a, f32[6,4] b, s32[3] sizes), lhs_ragged_dims={1},
      lhs_contracting_dims={1}, rhs_contracting_dims={0}

After, with mask[g, k] true if k belongs to group g::

    x = f32[3,5,6] select(mask.all, a.all, 0)
    y = f32[3,6,4] select(mask.all, b.all, 0)
    ROOT d = f32[3,5,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0},
      lhs_contracting_dims={2}, rhs_contracting_dims={1}

If the ragged dimension is one of rows, each row is multiplied by the operands of all groups, and the others are masked
out of the sum. A ragged batch dimension needs no mask. Sizes that differ along leading dimensions are not expanded.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each

_DIMS = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")


def run(module: HloModule) -> bool:
    """Expand ragged-dot."""
    return rewrite_each(module, {"ragged-dot": _ragged_dot})


def _ragged_dot(ins: Instruction) -> Instruction | None:
    a, (lhs, rhs, sizes) = ins.attrs, ins.operands
    if len(a["lhs_ragged_dims"]) != 1 or sizes.shape.rank != 1:
        return None
    (ragged,) = a["lhs_ragged_dims"]
    write = Writer(ins.computation)
    attrs = {name: tuple(a[name]) for name in _DIMS}
    if ragged in attrs["lhs_batch_dims"]:
        return ins.computation.add("dot", (lhs, rhs), attrs, shape=ins.shape)
    mask = _mask(write, sizes, lhs.shape.dims[ragged])
    if ragged in attrs["lhs_contracting_dims"]:
        return _contracting(ins, write, mask, attrs, ragged)
    return _rows(ins, write, mask, attrs, ragged)


def _mask(write: Writer, sizes: Instruction, extent: int) -> Instruction:
    """Return a mask of the indices of each group: from the sum of the sizes before to the sum with its own."""
    groups, number = sizes.shape.dims[0], ElementType.S64
    square, table = Shape.array(number, (groups, groups)), Shape.array(number, (groups, extent))
    row, column = (write.iota(square, d) for d in range(2))
    wide = write.broadcast(write.convert(sizes, number), square, (1,))
    ends = write.sum(write.select(write.compare("LE", column, row), wide, write.full(0, square)), (1,))
    starts = write.sum(write.select(write.compare("LT", column, row), wide, write.full(0, square)), (1,))
    index = write.iota(table, 1)
    after = write.compare("GE", index, write.broadcast(starts, table, (0,)))
    before = write.compare("LT", index, write.broadcast(ends, table, (0,)))
    return write.op("and", after, before)


def _apply_mask(write: Writer, mask: Instruction, x: Instruction, at: Sequence[int]) -> Instruction:
    """Return `x` where the mask, whose dimensions are the dimensions `at` of `x`, is true, else zero."""
    return write.select(write.broadcast(mask, x.shape, at), x, write.full(0, x.shape))


def _contracting(
    ins: Instruction, write: Writer, mask: Instruction, attrs: dict[str, tuple[int, ...]], ragged: int
) -> Instruction:
    groups = mask.shape.dims[0]
    other = attrs["rhs_contracting_dims"][attrs["lhs_contracting_dims"].index(ragged)]
    operands = []
    for x, d in zip(ins.operands[:2], (ragged, other), strict=True):
        all_groups = write.broadcast(x, x.shape.with_dims((groups, *x.shape.dims)), range(1, x.shape.rank + 1))
        operands.append(_apply_mask(write, mask, all_groups, (0, d + 1)))
    shifted = {name: tuple(d + 1 for d in dims) for name, dims in attrs.items()}
    shifted["lhs_batch_dims"] = (0, *shifted["lhs_batch_dims"])
    shifted["rhs_batch_dims"] = (0, *shifted["rhs_batch_dims"])
    return ins.computation.add("dot", operands, shifted, shape=ins.shape)


def _rows(
    ins: Instruction, write: Writer, mask: Instruction, attrs: dict[str, tuple[int, ...]], ragged: int
) -> Instruction | None:
    lhs, rhs = ins.operands[:2]
    if len(ins.attrs["rhs_group_dims"]) != 1:
        return None
    (group,) = ins.attrs["rhs_group_dims"]
    batch = [lhs.shape.dims[d] for d in attrs["lhs_batch_dims"]]
    rows = [d for d in range(lhs.shape.rank) if d not in attrs["lhs_batch_dims"] + attrs["lhs_contracting_dims"]]
    columns = [d for d in range(rhs.shape.rank) if d not in attrs["rhs_batch_dims"] + attrs["rhs_contracting_dims"]]
    dims = (*batch, *(lhs.shape.dims[d] for d in rows), *(rhs.shape.dims[d] for d in columns))
    all_groups = ins.computation.add("dot", (lhs, rhs), attrs, shape=ins.shape.with_dims(dims))
    group_at = len(batch) + len(rows) + columns.index(group)
    row_at = len(batch) + rows.index(ragged)
    return write.sum(_apply_mask(write, mask, all_groups, (group_at, row_at)), (group_at,))
