"""Rewrite products of complex matrices as one product of real ones, which has better kernels.

With ``A = Ar + i Ai`` and ``B = Br + i Bi``, before::

    ROOT d = c64[8,5] dot(c64[8,4] A, c64[4,5] B), lhs_contracting_dims={1}, rhs_contracting_dims={0}

After::

    a = f32[8,8] concatenate(Ar, Ai), dimensions={1}
    b = f32[8,10] ..                                    # rows Br, Bi, then -Bi, Br
    r = f32[8,10] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT d = c64[8,5] complex(slice(r) of the first five columns, slice(r) of the others)

The number of multiplications is the same. Small products, and those whose right operand has only contracted and batch
dimensions, stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each
from cyxla.xla.passes.expand.dot import DotDims, work_type

MIN_MULTIPLICATIONS = 1 << 12  # multiplications; below, the rewrite costs more than it saves
MIN_SIDE = 8  # rows and columns; below, the rewrite does not pay


def run(module: HloModule) -> bool:
    """Rewrite large products."""
    return rewrite_each(module, {"dot": _dot})


def _dot(ins: Instruction) -> Instruction | None:
    lhs, rhs = ins.operands
    dims = DotDims.of(ins)
    if not ins.shape.dtype.is_complex or not dims.rhs_free or not dims.lhs_contracting:
        return None
    rows, depth = (prod(lhs.shape.dims[d] for d in part) for part in (dims.lhs_free, dims.lhs_contracting))
    columns = prod(rhs.shape.dims[d] for d in dims.rhs_free)
    if min(rows, columns) < MIN_SIDE or rows * columns * depth < MIN_MULTIPLICATIONS:
        return None
    write, dtype = Writer(ins.computation), work_type(ins)
    left, right = write.convert(lhs, dtype), write.convert(rhs, dtype)
    along, across = dims.rhs_contracting[0], dims.rhs_free[0]
    a = _concatenate(write, [_component(write, "real", left), _component(write, "imag", left)], dims.lhs_contracting[0])
    real, imag = _component(write, "real", right), _component(write, "imag", right)
    top = _concatenate(write, [real, imag], across)
    b = _concatenate(write, [top, _concatenate(write, [write.op("negate", imag), real], across)], along)
    axis = len(dims.lhs_batch) + len(dims.lhs_free)  # of the doubled columns in the result
    size = ins.shape.dims[axis]
    shape = ins.shape.logical.with_dtype(dtype.real_part)
    doubled = shape.with_dims((*shape.dims[:axis], 2 * size, *shape.dims[axis + 1 :]))
    product = ins.computation.add("dot", (a, b), dict(ins.attrs), shape=doubled)
    halves = [_slice_columns(write, product, axis, start, size) for start in (0, size)]
    result = write.op("complex", *halves, shape=shape.with_dtype(dtype))
    return write.convert(result, ins.shape.dtype)


def _component(write: Writer, opcode: str, x: Instruction) -> Instruction:
    return write.op(opcode, x, shape=x.shape.logical.with_dtype(x.shape.dtype.real_part))


def _concatenate(write: Writer, parts: Sequence[Instruction], axis: int) -> Instruction:
    dims = list(parts[0].shape.dims)
    dims[axis] = sum(p.shape.dims[axis] for p in parts)
    return write.op("concatenate", *parts, shape=parts[0].shape.with_dims(dims), dimensions=(axis,))


def _slice_columns(write: Writer, x: Instruction, axis: int, start: int, size: int) -> Instruction:
    dims = list(x.shape.dims)
    ranges = [SliceDim(start, start + size) if d == axis else SliceDim(0, n) for d, n in enumerate(dims)]
    dims[axis] = size
    return write.op("slice", x, shape=x.shape.with_dims(dims), slice=tuple(ranges))
