"""Fourier transforms, Cholesky factors and triangular systems of dynamic batches and sizes."""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, pads


@pads("fft")
def fft(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Transform whole bounds, with zeros beyond the sizes; the batch keeps its sizes."""
    x = pad.array(operand)
    rank = x.padded.shape.rank
    x = pad.zero_extended(x, range(rank - len(ins.attrs["fft_length"]), rank))
    return Bounded(pad.copy(ins, [x.padded]), x.sizes)


@pads("cholesky")
def cholesky(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Factorise the present matrix, continued by the identity."""
    x = _square(pad, pad.array(operand))
    return Bounded(pad.copy(ins, [_continued(pad, x)]), x.sizes)


@pads("triangular-solve")
def triangular_solve(pad: Padder, ins: Instruction, a: Value, b: Value) -> Value:
    """Solve the present system, continued by the identity and zeros."""
    x, y = _square(pad, pad.array(a)), pad.array(b)
    row, column = y.padded.shape.rank - 2, y.padded.shape.rank - 1
    along = row if ins.attrs["left_side"] else column
    sizes: Sizes = dict(y.sizes)
    for d in (*range(row), along):
        size = pad.common_size([(x, d if d < row else column), (y, d)])
        if size is not None:
            sizes[d] = size
    if along in sizes:
        x = Bounded(x.padded, {row: sizes[along], column: sizes[along]})
    right = pad.masked(Bounded(y.padded, sizes), [along], pad.constant(0, y.padded.shape.dtype))
    return Bounded(pad.copy(ins, [_continued(pad, x), right]), sizes)


def _square(pad: Padder, x: Bounded) -> Bounded:
    """Give both dimensions of matrices the lesser of their sizes."""
    row, column = x.padded.shape.rank - 2, x.padded.shape.rank - 1
    size = pad.common_size([(x, row), (x, column)])
    return x if size is None else Bounded(x.padded, {**x.sizes, row: size, column: size})


def _continued(pad: Padder, x: Bounded) -> Instruction:
    """Continue matrices by the identity beyond their size."""
    shape = x.padded.shape.static
    row, column = shape.rank - 2, shape.rank - 1
    if column not in x.sizes:
        return x.padded
    index = shape.with_dtype(ElementType.S32)
    diagonal = pad.compare("EQ", pad.iota(index, row), pad.iota(index, column))
    identity = pad.convert(diagonal, shape.dtype)
    inside = pad.op("and", *(pad.inside(shape, d, x.sizes[d]) for d in (row, column)))
    return pad.select(inside, x.padded, identity)
