"""Batching of data movement: dimensions move behind the batch."""

from __future__ import annotations

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType
from cyxla.xla.batching.table import Node, rule, shifted
from cyxla.xla.batching.values import Value, from_leaves, leaves, part, tuple_of
from cyxla.xla.hlo.attributes import PaddingDim, SliceDim
from cyxla.xla.hlo.builder import functions as xla


@rule("broadcast")
def broadcast(node: Node) -> Value:
    """Keep the batch in front."""
    return node.emit([node.lead(0)], dimensions=(0, *shifted(node.attrs["dimensions"])))


@rule("reshape")
def reshape(node: Node) -> Value:
    """Change the sizes behind the batch."""
    return node.emit([node.lead(0)], inferred_dimension=None)


@rule("bitcast")
def bitcast(node: Node) -> Value:
    """Reinterpret the memory of each element."""
    if any(s.layout is not None for s in (node.instruction.shape, *node.shapes)):
        raise UnimplementedError("a bitcast between memory layouts cannot be batched")
    return node.emit([node.lead(0)])


@rule("dynamic-reshape")
def dynamic_reshape(node: Node) -> Value:
    """Change the sizes behind the batch, to sizes that all elements share."""
    if any(v.mapped for v in node.operands[1:]):
        raise _differing_sizes(node)
    batch = xla.constant(node.batcher.builder, node.size, ElementType.S32)
    return node.emit([node.lead(0), batch, *[v.array for v in node.operands[1:]]])


@rule("set-dimension-size")
def set_dimension_size(node: Node) -> Value:
    """Set a size that all elements share."""
    if node.operands[1].mapped:
        raise _differing_sizes(node)
    return node.emit([node.lead(0), node.operands[1].array], dimensions=shifted(node.attrs["dimensions"]))


def _differing_sizes(node: Node) -> UnimplementedError:
    return UnimplementedError(f"{node.instruction.opcode} of a size that differs by element of a batch")


@rule("get-dimension-size")
def get_dimension_size(node: Node) -> Value:
    """Return the size, which all elements share."""
    dimensions = {"dimensions": shifted(node.attrs["dimensions"])}
    return Value(node.batcher.builder.clone(node.instruction, [node.lead(0)], dimensions))


@rule("transpose")
def transpose(node: Node) -> Value:
    """Keep the batch in front."""
    return node.emit([node.lead(0)], dimensions=(0, *shifted(node.attrs["dimensions"])))


@rule("reverse")
def reverse(node: Node) -> Value:
    """Reverse dimensions behind the batch."""
    return node.emit([node.lead(0)], dimensions=shifted(node.attrs["dimensions"]))


@rule("slice")
def slice_(node: Node) -> Value:
    """Take all elements of the batch."""
    return node.emit([node.lead(0)], slice=(SliceDim(0, node.size), *node.attrs["slice"]))


@rule("pad")
def pad(node: Node) -> Value:
    """Pad behind the batch; padding values that differ are selected where there is padding."""
    x, value = node.operands
    padding = (PaddingDim(0, 0), *node.attrs["padding"])
    if not value.mapped:
        return node.emit([node.lead(0), value.array], padding=padding)
    shape = node.instruction.shape
    builder = node.batcher.builder
    ones = xla.broadcast(xla.constant(builder, True, ElementType.PRED), node.shapes[0].dims)
    inside = xla.broadcast(xla.pad(ones, False, node.attrs["padding"]), (node.size,))
    padded = node.emit([node.batcher.lead(x), xla.constant(builder, 0, shape.dtype)], padding=padding)
    return Value(xla.select(inside, padded.array, node.batcher.rows(value.array, shape)), True)


@rule("concatenate")
def concatenate(node: Node) -> Value:
    """Concatenate along a dimension behind the batch."""
    return node.emit(node.all_lead(), dimensions=shifted(node.attrs["dimensions"]))


@rule("add-dependency")
def add_dependency(node: Node) -> Value:
    """Order the array of all elements."""
    return node.emit([node.lead(0), node.operands[1].array])


# -- tuples


@rule("tuple")
def tuple_(node: Node) -> Value:
    """Keep the parts."""
    return tuple_of(node.operands)


@rule("get-tuple-element")
def get_tuple_element(node: Node) -> Value:
    """Return the part."""
    return part(node.operands[0], node.attrs["index"])


@rule("copy")
def copy(node: Node) -> Value:
    """Copy all parts."""
    return from_leaves(
        node.shapes[0], iter([Value(xla.copy(v.array), v.mapped) for v in leaves(node.operands[0])])
    )  # fmt: skip


@rule("opt-barrier")
def opt_barrier(node: Node) -> Value:
    """Put one barrier around all parts."""
    parts = leaves(node.operands[0])
    behind = xla.opt_barrier(xla.tuple_(node.batcher.builder, [v.array for v in parts]))
    values = [Value(xla.get_tuple_element(behind, k), v.mapped) for k, v in enumerate(parts)]
    return from_leaves(node.shapes[0], iter(values))
