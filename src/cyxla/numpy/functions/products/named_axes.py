"""Products of arrays with named axes: shared axes are paired, axes that are not wanted are summed."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla

Label = Hashable
_NARROW = (ElementType.F16, ElementType.BF16)


@dataclass(frozen=True)
class NamedArray:
    """Array with a name for each axis.

    Attributes
    ----------
    op : XlaOp
        Value of the array.
    labels : tuple
        Name of each axis, all distinct.
    """

    op: XlaOp
    labels: tuple[Label, ...]

    @property
    def sizes(self) -> dict[Label, int]:
        """Size of each axis by name."""
        return dict(zip(self.labels, self.op.shape.dims, strict=True))

    def transpose(self, labels: Sequence[Label]) -> NamedArray:
        """Transpose to this order of axes."""
        if tuple(labels) == self.labels:
            return self
        return NamedArray(xla.transpose(self.op, [self.labels.index(n) for n in labels]), tuple(labels))

    def sum_over(self, labels: Collection[Label]) -> NamedArray:
        """Sum over these axes."""
        axes = [k for k, n in enumerate(self.labels) if n in labels]
        return NamedArray(sum_axes(self.op, axes), tuple(n for n in self.labels if n not in labels)) if axes else self

    def squeeze(self, labels: Collection[Label]) -> NamedArray:
        """Remove these axes of size 1."""
        remaining = [n for n in self.labels if n not in labels]
        sizes = self.sizes
        return NamedArray(xla.reshape(self.op, [sizes[n] for n in remaining]), tuple(remaining)) if labels else self

    def broadcast(self, labels: Sequence[Label], sizes: dict[Label, int]) -> NamedArray:
        """Broadcast to axes of these sizes; existing axes must be in this order."""
        if tuple(labels) == self.labels:
            return self
        positions = [list(labels).index(n) for n in self.labels]
        return NamedArray(xla.broadcast_in_dim(self.op, [sizes[n] for n in labels], positions), tuple(labels))


def sum_axes(op: XlaOp, axes: Sequence[int]) -> XlaOp:
    """Sum along dimensions, narrow floats in f32; predicates are combined by or."""
    dtype = op.shape.dtype
    if not axes:
        return op
    if dtype in _NARROW:
        return xla.convert(sum_axes(xla.convert(op, ElementType.F32), axes), dtype)
    opcode = "or" if dtype is ElementType.PRED else "add"
    zero = xla.constant(op.builder, 0, dtype)
    return xla.reduce(op, zero, scalar_computation(opcode, dtype), tuple(axes))


def multiply(x: XlaOp, y: XlaOp) -> XlaOp:
    """Multiply element by element; predicates are combined by and."""
    return xla.and_(x, y) if x.shape.dtype is ElementType.PRED else xla.multiply(x, y)


def product(x: NamedArray, y: NamedArray, result_labels: Sequence[Label]) -> NamedArray:
    """Multiply two arrays of one dtype and sum over all axes that are not wanted.

    Parameters
    ----------
    x, y : NamedArray
        Operands; an axis of both must have the same size.
    result_labels : sequence
        Axes of the result, in order; those of neither operand are dropped.
    """
    result_labels = tuple(n for n in result_labels if n in x.labels or n in y.labels)
    x = x.sum_over([n for n in x.labels if n not in result_labels and n not in y.labels])
    y = y.sum_over([n for n in y.labels if n not in result_labels and n not in x.labels])
    if all(n in result_labels for n in (*x.labels, *y.labels)):
        sizes = x.sizes | y.sizes
        parts = [
            v.transpose([n for n in result_labels if n in v.labels]).broadcast(result_labels, sizes) for v in (x, y)
        ]
        return NamedArray(multiply(parts[0].op, parts[1].op), result_labels)
    if dot_order(x, y, result_labels) != result_labels and dot_order(y, x, result_labels) == result_labels:
        x, y = y, x
    return _dot(x, y, result_labels).transpose(result_labels)


def _common_axes(x: NamedArray, y: NamedArray, result_labels: Collection[Label]) -> tuple[list[Label], list[Label]]:
    """Return the axes of both that are kept, in the order of the result if it has one, and those that are summed."""
    common = [n for n in x.labels if n in y.labels]
    return [n for n in result_labels if n in common], [n for n in common if n not in result_labels]


def dot_order(x: NamedArray, y: NamedArray, result_labels: Collection[Label]) -> tuple[Label, ...]:
    """Return the axes of a product in the order of a dot's result: common ones first."""
    batch, summed_labels = _common_axes(x, y, result_labels)
    return (*batch, *(n for v in (x, y) for n in v.labels if n not in batch and n not in summed_labels))


def _dot(x: NamedArray, y: NamedArray, result_labels: Collection[Label]) -> NamedArray:
    batch, summed_labels = _common_axes(x, y, result_labels)
    output = xla.dot_general(
        x.op,
        y.op,
        lhs_contracting_dims=[x.labels.index(n) for n in summed_labels],
        rhs_contracting_dims=[y.labels.index(n) for n in summed_labels],
        lhs_batch_dims=[x.labels.index(n) for n in batch],
        rhs_batch_dims=[y.labels.index(n) for n in batch],
    )
    return NamedArray(output, dot_order(x, y, result_labels))


def drop_broadcast_axes(terms: Sequence[NamedArray]) -> tuple[list[NamedArray], dict[Label, int]]:
    """Remove axes of size 1 that broadcast; return the arrays and the sizes of all axes."""
    sizes: dict[Label, int] = {}
    for term in terms:
        for name, size in term.sizes.items():
            sizes[name] = size if sizes.get(name, 1) == 1 else sizes[name]
    return [t.squeeze([n for n, size in t.sizes.items() if size == 1 != sizes[n]]) for t in terms], sizes
