"""Derivatives of reductions of whole dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.gradient.backward import Linear, no_rule
from cyxla.numpy.gradient.elementwise import is_zero, number, summed
from cyxla.numpy.gradient.table import Cotangents, Node, rule
from cyxla.numpy.tracing.bodies import record_values
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.hlo.computation import Computation


def spread(x: XlaOp, shape: Shape, dims: Sequence[int]) -> XlaOp:
    """Broadcast a reduced value along the reduced dimensions."""
    return xla.broadcast_in_dim(x, shape.dims, [d for d in range(shape.rank) if d not in dims])


@rule("reduce")
def reduce(node: Node) -> Cotangents:
    """Differentiate: sums broadcast the cotangent, extremes share it among the elements that attained them."""
    if len(node.needs) > 2:
        return _paired(node)
    found = "maximum" if _chooses(node.called[0]) else combiner(node.called[0])
    if found not in _BY_COMBINER:
        raise no_rule(node.instruction, f" by {found or 'a function of its own'}")
    return _BY_COMBINER[found](node)


def _chooses(computation: Computation) -> bool:
    """Return True if a combiner selects one of its operands, as extremes of complex numbers do."""
    root, parameters = computation.root, computation.parameters
    return root.opcode == "select" and set(root.operands[1:]) == set(parameters)


def _sum(node: Node) -> Cotangents:
    back = spread(node.g, node.shapes[0], node.attrs["dimensions"]) if node.needs[0] else None
    return [back, summed(node.g) if node.needs[1] else None]


def _extreme(node: Node) -> Cotangents:
    dims, (x, init) = node.attrs["dimensions"], node.operands
    hits = xla.eq(x, spread(node.out, x.shape, dims))
    one, nil = number(x, 1), number(x, 0)
    count = summed(xla.select(hits, one, nil), dims)
    floor = xla.eq(node.out, xla.broadcast(init, node.out.shape.dims)) if node.needs[1] else None
    if floor is not None:
        count = count + xla.select(floor, number(count, 1), number(count, 0))
    share = node.g / xla.select(is_zero(count), number(count, 1), count)
    start = None if floor is None else summed(xla.select(floor, share, number(share, 0)))
    return [xla.select(hits, spread(share, x.shape, dims), nil) if node.needs[0] else None, start]


def _product(node: Node) -> Cotangents:
    """Differentiate a product as a tree of products, which is exact also for zeros."""
    dims = node.attrs["dimensions"]
    body = record_values("product", node.shapes, lambda x, init: [_halved(x, init, dims)])
    return Linear(body, node.operands, node.needs).pull([node.g])


def _halved(x: XlaOp, init: XlaOp, dims: Sequence[int]) -> XlaOp:
    kept = [d for d in range(x.shape.rank) if d not in dims]
    sizes = [x.shape.dims[d] for d in kept]
    whole = xla.reshape(xla.transpose(x, [*kept, *dims]), (*sizes, x.shape.size // max(_count(sizes), 1)))
    axis = len(kept)
    while (n := whole.shape.dims[axis]) > 1:
        half = n // 2
        pairs = xla.slice_in_dim(whole, 0, half, 1, axis) * xla.slice_in_dim(whole, half, 2 * half, 1, axis)
        odd = xla.slice_in_dim(whole, 2 * half, n, 1, axis)
        whole = xla.concatenate([pairs, odd], axis) if n % 2 else pairs
    start = xla.broadcast(init, sizes) if sizes else init
    return start * xla.reshape(whole, sizes) if whole.shape.dims[axis] else start


def _count(sizes: Sequence[int]) -> int:
    found = 1
    for s in sizes:
        found *= s
    return found


_BY_COMBINER = {"add": _sum, "maximum": _extreme, "minimum": _extreme, "multiply": _product}


def _paired(node: Node) -> Cotangents:
    """Differentiate a reduction to an extreme and its index: the cotangent goes to that index."""
    value, place = node.operands[0], node.operands[1]
    asked = [k for k, c in enumerate(node.cotangents) if c is not None]
    if len(node.needs) != 4 or asked != [0] or not place.shape.dtype.is_integer or any(node.needs[1:]):
        raise no_rule(node.instruction, " of several arrays")
    dims = node.attrs["dimensions"]
    found = spread(xla.get_tuple_element(node.out, 1), value.shape, dims)
    back = spread(node.g, value.shape, dims)
    return [xla.select(xla.eq(place, found), back, number(back, 0)), None, None, None]
