"""Batch norms: sums take the present elements, and means divide by their number."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, pads
from cyxla.xla.passes.engine.batch_norm import RESULTS, BatchNorm


@pads(*RESULTS)
def batch_norm(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Normalise the present elements."""
    arrays, feature = [pad.array(o) for o in operands], int(ins.attrs["feature_index"])
    rank = arrays[0].padded.shape.rank
    wide = [x for x in arrays if x.padded.shape.rank == rank]
    sizes: Sizes = pad.common_sizes(wide)
    columns = [(x, 0) for x in arrays if x.padded.shape.rank != rank]
    of_feature = pad.common_size([(Bounded(arrays[0].padded, sizes), feature), *columns])
    if of_feature is not None:
        sizes[feature] = of_feature
    norm = _PresentNorm(pad, ins, [x.padded for x in arrays], sizes)
    results = RESULTS[ins.opcode](norm)
    column = {0: of_feature} if of_feature is not None else {}
    bounded = [Bounded(r, sizes if k == 0 else column) for k, r in enumerate(results)]
    return tuple(bounded) if ins.shape.is_tuple else bounded[0]


class _PresentNorm(BatchNorm):
    """The parts of a batch norm, for the present elements."""

    def __init__(self, pad: Padder, ins: Instruction, operands: Sequence[Instruction], sizes: Sizes) -> None:
        super().__init__(pad, ins.attrs, operands)
        self._pad, self._sizes = pad, sizes

    def sum(self, x: Instruction) -> Instruction:
        """Compute the sum over all dimensions but the features."""
        dims = [d for d in self.reduced_dims if d in self._sizes]
        return super().sum(self._pad.masked(Bounded(x, self._sizes), dims, self._pad.constant(0, x.shape.dtype)))

    def number_of_elements(self, shape: Shape) -> Instruction:
        """Return the number of present elements of a feature, for each."""
        count = self._pad.constant(1, ElementType.S64)
        for d in self.reduced_dims:
            size = self._sizes.get(d)
            of_dim = self._pad.number(self.shape.dims[d]) if size is None else size
            count = self._pad.op("multiply", count, self._pad.convert(of_dim, ElementType.S64))
        return self._pad.broadcast(self._pad.convert(count, shape.dtype), shape)
