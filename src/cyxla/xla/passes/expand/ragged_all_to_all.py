"""Expand ragged-all-to-all of one device into a gather: it copies slices of rows from its input to its output.

Before::

    ROOT r = f32[8,2] ragged-all-to-all(f32[6,2] x, f32[8,2] out, s32[3] starts, s32[3] sizes, s32[3] targets, ..)

After, with a table of slices and rows of the result::

    offset = s64[3,8] subtract(iota(1), targets)
    from = s64[3,8] add(starts, offset)
    sent = pred[3,8] (0 <= offset < sizes) and (0 <= from < 6)
    last = s64[8] reduce(select(sent, iota(0), -1)), to_apply=max
    index = s64[8] reduce(select(sent and iota(0) == last, from, 0)), to_apply=add
    ROOT r = f32[8,2] select(last >= 0, gather(x, index), out)
"""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer

_INDEX = ElementType.S64


def expand(ins: Instruction) -> Instruction | None:
    """Return the result of one device."""
    source, out, starts, sizes, targets, _ = ins.operands
    if any(o.shape.is_dynamic for o in ins.operands):
        return None
    slices, rows, source_rows = starts.shape.size, out.shape.dims[0], source.shape.dims[0]
    if not (slices and rows and source_rows):
        return out
    write = Writer(ins.computation)
    table = Shape.array(_INDEX, (slices, rows))
    start, size, target = (_rows(write, x, table) for x in (starts, sizes, targets))
    zero = write.full(0, table)
    offset = write.op("subtract", write.iota(table, 1), target)
    taken = write.op("add", start, offset)
    sent = _all(write, [
        write.compare("GE", offset, zero), write.compare("LT", offset, size), write.compare("GE", taken, zero),
        write.compare("LT", taken, write.full(source_rows, table)),
    ])  # fmt: skip
    order = write.iota(table, 0)
    last = _greatest(write, write.select(sent, order, write.full(-1, table)))
    is_last = write.compare("EQ", order, write.broadcast(last, table, (1,)))
    index = write.sum(write.select(_all(write, [sent, is_last]), taken, zero), (0,))
    is_sent = write.compare("GE", last, write.full(0, last.shape))
    rest = range(1, out.shape.rank)
    received = write.op(
        "gather", source, index, shape=out.shape.logical, offset_dims=tuple(rest), collapsed_slice_dims=(0,),
        start_index_map=(0,), index_vector_dim=1, slice_sizes=(1, *(out.shape.dims[d] for d in rest)),
    )  # fmt: skip
    return write.select(write.broadcast(is_sent, out.shape, (0,)), received, out)


def _rows(write: Writer, x: Instruction, table: Shape) -> Instruction:
    """Return one number for each slice, repeated for each row of the result."""
    return write.broadcast(write.reshape(write.convert(x, _INDEX), table.dims[:1]), table, (0,))


def _all(write: Writer, conditions: Sequence[Instruction]) -> Instruction:
    result = conditions[0]
    for condition in conditions[1:]:
        result = write.op("and", result, condition)
    return result


def _greatest(write: Writer, x: Instruction) -> Instruction:
    """Return the maximum over the first dimension."""

    def body(c: Computation) -> Instruction:
        a, b = (c.add("parameter", (), {"parameter_number": n}, shape=Shape.array(_INDEX)) for n in range(2))
        return c.add("maximum", (a, b), shape=Shape.array(_INDEX))

    return write.computation.add(
        "reduce", (x, write.constant(-1, _INDEX)), {"dimensions": (0,)}, shape=x.shape.with_dims(x.shape.dims[1:]),
        called=(write.function("maximum_s64", body),),
    )  # fmt: skip
