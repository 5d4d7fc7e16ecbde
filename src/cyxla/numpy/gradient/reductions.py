"""Derivatives of reductions of whole dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.gradient.backward import Linearised, no_derivative
from cyxla.numpy.gradient.elementwise import full_like, is_zero, sum_over
from cyxla.numpy.gradient.table import Cotangents, Node, rule
from cyxla.numpy.tracing.bodies import record_body
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.hlo.computation import Computation


def broadcast_back(x: XlaOp, shape: Shape, dims: Sequence[int]) -> XlaOp:
    """Broadcast a reduced value along the reduced dimensions."""
    return xla.broadcast_in_dim(x, shape.dims, [d for d in range(shape.rank) if d not in dims])


@rule("reduce")
def reduce(node: Node) -> Cotangents:
    """Differentiate: sums broadcast the cotangent, extremes share it among the elements that attained them."""
    if len(node.needs) > 2:
        return _arg_extreme(node)
    combiner_name = "maximum" if _selects_operand(node.called[0]) else combiner(node.called[0])
    if combiner_name not in _BY_COMBINER:
        raise no_derivative(node.instruction, f" by {combiner_name or 'a custom combiner'}")
    return _BY_COMBINER[combiner_name](node)


def _selects_operand(computation: Computation) -> bool:
    """Return True if a combiner selects one of its operands, as extremes of complex numbers do."""
    root, parameters = computation.root, computation.parameters
    return root.opcode == "select" and set(root.operands[1:]) == set(parameters)


def _sum(node: Node) -> Cotangents:
    operand_cotangent = broadcast_back(node.g, node.shapes[0], node.attrs["dimensions"]) if node.needs[0] else None
    return [operand_cotangent, sum_over(node.g) if node.needs[1] else None]


def _extreme(node: Node) -> Cotangents:
    dims, (x, init) = node.attrs["dimensions"], node.operands
    is_extreme = xla.eq(x, broadcast_back(node.out, x.shape, dims))
    one, zero = full_like(x, 1), full_like(x, 0)
    count = sum_over(xla.select(is_extreme, one, zero), dims)
    init_selected = xla.eq(node.out, xla.broadcast(init, node.out.shape.dims)) if node.needs[1] else None
    if init_selected is not None:
        count = count + xla.select(init_selected, full_like(count, 1), full_like(count, 0))
    share = node.g / xla.select(is_zero(count), full_like(count, 1), count)
    init_cotangent = None if init_selected is None else sum_over(xla.select(init_selected, share, full_like(share, 0)))
    return [
        xla.select(is_extreme, broadcast_back(share, x.shape, dims), zero) if node.needs[0] else None,
        init_cotangent,
    ]


def _product(node: Node) -> Cotangents:
    """Differentiate a product as a tree of products, which is exact also for zeros."""
    dims = node.attrs["dimensions"]
    body = record_body("product", node.shapes, lambda x, init: [_product_tree(x, init, dims)])
    return Linearised(body, node.operands, node.needs).pull([node.g])


def _product_tree(x: XlaOp, init: XlaOp, dims: Sequence[int]) -> XlaOp:
    remaining = [d for d in range(x.shape.rank) if d not in dims]
    sizes = [x.shape.dims[d] for d in remaining]
    factors = xla.reshape(xla.transpose(x, [*remaining, *dims]), (*sizes, x.shape.size // max(_count(sizes), 1)))
    axis = len(remaining)
    while (n := factors.shape.dims[axis]) > 1:
        half = n // 2
        pairs = xla.slice_in_dim(factors, 0, half, 1, axis) * xla.slice_in_dim(factors, half, 2 * half, 1, axis)
        odd = xla.slice_in_dim(factors, 2 * half, n, 1, axis)
        factors = xla.concatenate([pairs, odd], axis) if n % 2 else pairs
    start = xla.broadcast(init, sizes) if sizes else init
    return start * xla.reshape(factors, sizes) if factors.shape.dims[axis] else start


def _count(sizes: Sequence[int]) -> int:
    product = 1
    for s in sizes:
        product *= s
    return product


_BY_COMBINER = {"add": _sum, "maximum": _extreme, "minimum": _extreme, "multiply": _product}


def _arg_extreme(node: Node) -> Cotangents:
    """Differentiate a reduction to an extreme and its index: the cotangent goes to that index."""
    value, index = node.operands[0], node.operands[1]
    requested = [k for k, c in enumerate(node.cotangents) if c is not None]
    if len(node.needs) != 4 or requested != [0] or not index.shape.dtype.is_integer or any(node.needs[1:]):
        raise no_derivative(node.instruction, " of several arrays")
    dims = node.attrs["dimensions"]
    selected_index = broadcast_back(xla.get_tuple_element(node.out, 1), value.shape, dims)
    cotangent = broadcast_back(node.g, value.shape, dims)
    return [xla.select(xla.eq(index, selected_index), cotangent, full_like(cotangent, 0)), None, None, None]
