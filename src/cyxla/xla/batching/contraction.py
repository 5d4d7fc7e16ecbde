"""Batching of matrix products, Fourier transforms, factorisations and batch normalisation."""

from __future__ import annotations

from cyxla.types import Shape
from cyxla.xla.batching.folding import fold, move_to_front, unfold
from cyxla.xla.batching.table import Node, rule, shifted
from cyxla.xla.batching.values import Value, from_leaves
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_SIDES = ("lhs", "rhs")
_BATCH, _CONTRACTING = "_batch_dims", "_contracting_dims"


@rule("dot")
def dot(node: Node) -> Value:
    """Make the batch a batch dimension if both operands differ, else a free dimension of the one that does."""
    lhs, rhs = node.operands
    if lhs.mapped and rhs.mapped:
        dims = {s + _BATCH: (0, *shifted(node.attrs[s + _BATCH])) for s in _SIDES}
        contracting = {s + _CONTRACTING: shifted(node.attrs[s + _CONTRACTING]) for s in _SIDES}
        return node.emit([lhs.array, rhs.array], **dims, **contracting)
    number = 0 if lhs.mapped else 1
    attrs = {**node.attrs, **_moved(node, _SIDES[number])}
    free = [_free_dims(node, k) for k in range(2)]
    if number and not free[1]:  # of a vector for each element: the batch comes first if the operands change places
        return Value(_exchanged(node, attrs), True)
    batch = node.attrs["lhs_batch_dims"]
    before = [node.shapes[0].dims[d] for d in batch] + (free[0] if number else [])
    dims_ = (*before, node.size, *(free[1] if number else free[0] + free[1]))
    product = node.batcher.builder.clone(
        node.instruction, [lhs.array, rhs.array], attrs, Shape.array(node.instruction.shape.dtype, dims_)
    )
    return Value(move_to_front(product, len(before)), True)


def _moved(node: Node, side: str) -> dict[str, tuple[int, ...]]:
    """Return the dimension numbers of an operand with the batch in front of its dimensions."""
    return {side + kind: shifted(node.attrs[side + kind]) for kind in (_BATCH, _CONTRACTING)}


def _free_dims(node: Node, index: int) -> list[int]:
    """Return the sizes of the free dimensions of an operand for one element."""
    side = _SIDES[index]
    used = {*node.attrs[side + _BATCH], *node.attrs[side + _CONTRACTING]}
    return [n for d, n in enumerate(node.shapes[index].dims) if d not in used]


def _exchanged(node: Node, attrs: dict[str, object]) -> XlaOp:
    """Return the product of a shared operand and one without free dimensions but the batch, as their exchange."""
    lhs, rhs = node.operands
    exchanged = {**attrs, "operand_precision": tuple(reversed(node.attrs["operand_precision"]))}
    for kind in (_BATCH, _CONTRACTING):
        exchanged["lhs" + kind], exchanged["rhs" + kind] = attrs["rhs" + kind], attrs["lhs" + kind]
    before = [node.shapes[0].dims[d] for d in node.attrs["lhs_batch_dims"]]
    shape = Shape.array(node.instruction.shape.dtype, (*before, node.size, *_free_dims(node, 0)))
    product = node.batcher.builder.clone(node.instruction, [rhs.array, lhs.array], exchanged, shape)
    return move_to_front(product, len(before))


@rule("fft", "cholesky")
def last_dimensions(node: Node) -> Value:
    """Transform or factorise along the last dimensions."""
    return node.emit([node.lead(0)])


@rule("triangular-solve")
def triangular_solve(node: Node) -> Value:
    """Solve the systems of all elements."""
    return node.emit(node.all_lead())


@rule("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(node: Node) -> Value:
    """Make the features of each element features of their own."""
    rank, feature = node.shapes[0].rank, node.attrs["feature_index"]

    def axis(shape: Shape) -> int:
        return feature if shape.rank == rank else 0

    operands = [fold(node.lead(k), axis(s)) for k, s in enumerate(node.shapes)]
    shape = node.instruction.shape
    folded = [_scaled(s, axis(s), node.size) for s in shape.leaves()]
    result = node.batcher.builder.clone(
        node.instruction, operands, shape=Shape.tuple(folded) if shape.is_tuple else folded[0]
    )
    parts = [xla.get_tuple_element(result, k) for k in range(len(folded))] if shape.is_tuple else [result]
    values = [Value(unfold(p, axis(s), node.size), True) for p, s in zip(parts, shape.leaves(), strict=True)]
    return from_leaves(shape, iter(values))


def _scaled(shape: Shape, axis: int, factor: int) -> Shape:
    return shape.with_dims([n * factor if d == axis else n for d, n in enumerate(shape.dims)])
