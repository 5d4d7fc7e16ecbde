"""Derivatives of data movement: cotangents are moved back."""

from __future__ import annotations

from cyxla.numpy.gradient.elementwise import sum_over
from cyxla.numpy.gradient.table import Cotangents, Node, full_constant, rule, zeros
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


@rule("reshape", "bitcast")
def reshape(node: Node) -> Cotangents:
    """Reshape back."""
    return [xla.reshape(node.g, node.shapes[0].dims)]


@rule("broadcast")
def broadcast(node: Node) -> Cotangents:
    """Sum over the broadcast dimensions, and transpose if the others are permuted."""
    dims = node.attrs["dimensions"]
    total = sum_over(node.g, tuple(d for d in range(node.g.shape.rank) if d not in dims))
    order = sorted(dims)
    return [total if tuple(order) == tuple(dims) else xla.transpose(total, [order.index(p) for p in dims])]


@rule("transpose")
def transpose(node: Node) -> Cotangents:
    """Transpose back."""
    order = node.attrs["dimensions"]
    return [xla.transpose(node.g, [order.index(d) for d in range(len(order))])]


@rule("reverse")
def reverse(node: Node) -> Cotangents:
    """Reverse back."""
    return [xla.reverse(node.g, node.attrs["dimensions"])]


@rule("slice")
def slice_(node: Node) -> Cotangents:
    """Pad the cotangent with zeros, around it and in between."""
    if not node.g.shape.size:
        return [zeros(node.shapes[0])]
    padding = []
    for r, size, count in zip(node.attrs["slice"], node.shapes[0].dims, node.g.shape.dims, strict=True):
        end = r.start + (count - 1) * r.stride + 1
        padding.append((r.start, size - end, r.stride - 1))
    return [xla.pad(node.g, 0, padding)]


@rule("pad")
def pad(node: Node) -> Cotangents:
    """Slice the elements out; the sum of the rest is the padding value's cotangent."""
    inner = _unpad(node.g, node.attrs["padding"], node.shapes[0])
    value = sum_over(node.g) - sum_over(inner) if node.needs[1] else None
    return [inner if node.needs[0] else None, value]


def _unpad(g: XlaOp, config: tuple[tuple[int, int, int], ...], shape: Shape) -> XlaOp:
    if not shape.size or not g.shape.size:
        return zeros(shape)
    if any(low or high for low, high, _ in config):
        g = xla.pad(g, 0, [(-low, -high, 0) for low, high, _ in config])
    if not any(interior for _, _, interior in config):
        return g
    return xla.slice_(g, [0] * shape.rank, g.shape.dims, [interior + 1 for _, _, interior in config])


@rule("concatenate")
def concatenate(node: Node) -> Cotangents:
    """Slice the cotangent of each operand."""
    (axis,) = node.attrs["dimensions"]
    cotangents: list[XlaOp | None] = []
    start = 0
    for shape, needed in zip(node.shapes, node.needs, strict=True):
        end = start + shape.dims[axis]
        cotangents.append(xla.slice_in_dim(node.g, start, end, 1, axis) if needed else None)
        start = end
    return cotangents


@rule("dynamic-slice")
def dynamic_slice(node: Node) -> Cotangents:
    """Write the cotangent into zeros."""
    operand_cotangent = xla.dynamic_update_slice(zeros(node.shapes[0]), node.g, node.operands[1:])
    return [operand_cotangent, *[None] * (len(node.needs) - 1)]


@rule("dynamic-update-slice")
def dynamic_update_slice(node: Node) -> Cotangents:
    """Pass the updated part to the update, the rest to the operand."""
    update, starts = node.shapes[1], node.operands[2:]
    operand_cotangent = xla.dynamic_update_slice(node.g, full_constant(update, 0), starts) if node.needs[0] else None
    update_cotangent = xla.dynamic_slice(node.g, starts, update.dims) if node.needs[1] else None
    return [operand_cotangent, update_cotangent, *[None] * len(starts)]
