"""Batching of opcodes that compute each element of a result from the same element of the operands."""

from __future__ import annotations

from cyxla.types import Shape
from cyxla.xla.batching.table import Node, rule
from cyxla.xla.batching.values import Value
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.opcode import OPCODES


@rule(*[name for name, row in OPCODES.items() if row.elementwise])
def elementwise(node: Node) -> Value:
    """Repeat operands that all elements share; a scalar predicate or bound is repeated along all dimensions."""
    return node.emit([_fitted(node, k, shape) for k, shape in enumerate(node.shapes)])


def _fitted(node: Node, index: int, shape: Shape) -> XlaOp:
    value, result = node.operands[index], node.instruction.shape
    if shape.rank == result.rank:
        return node.lead(index)
    return node.batcher.rows(value.array, result) if value.mapped else value.array


@rule("map")
def map_(node: Node) -> Value:
    """Apply the same computation of scalars."""
    return node.emit(node.all_lead(), dimensions=tuple(range(node.instruction.shape.rank + 1)))


@rule("bitcast-convert")
def bitcast_convert(node: Node) -> Value:
    """Convert the bits of each element; a dimension that is added or removed is the last one."""
    return node.emit([node.lead(0)])
