"""Loops over the elements of a batch, for instructions that have no form for several."""

from __future__ import annotations

from collections.abc import Callable

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.batching.batcher import state_computation
from cyxla.xla.batching.table import Node, rule
from cyxla.xla.batching.values import Value, from_leaves, leaves, mapped, shared_op, with_batch, zeros
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.custom_call_signatures import targets_with_signature

_INDEX = Shape.array(ElementType.S64)


@rule("ragged-dot", "scaled-dot", "rng-bit-generator", "rng-get-and-update-state")
def by_element(node: Node) -> Value:
    """Run the instruction for one element after another; those that the mask leaves out have no side effects."""
    _require_arrays(node)
    if node.size == 1 and node.batcher.mask is None:
        first = [_at(node.batcher.builder, v, xla.constant(node.batcher.builder, 0, ElementType.S64))
                 for operand in node.operands for v in leaves(operand)]  # fmt: skip
        return _lead_all(node, _instruction(node, node.batcher.builder, first))
    return _ElementLoop(node).emit()


@rule("rng")
def rng(node: Node) -> Value:
    """Draw numbers for all elements at once, unless bounds or parameters differ."""
    if any(v.mapped for v in node.operands) or node.batcher.mask is not None:
        return by_element(node)
    return node.emit([v.array for v in node.operands])


@rule("custom-call")
def custom_call(node: Node) -> Value:
    """Call a routine for stacks of matrices once; others for one element after another."""
    takes_stacks = node.attrs["custom_call_target"] in targets_with_signature()
    if takes_stacks and node.attrs["operand_layout_constraints"] is None:
        return node.emit(node.all_lead())
    return by_element(node)


def _require_arrays(node: Node) -> None:
    shapes = [leaf for s in (node.instruction.shape, *node.shapes) for leaf in s.leaves()]
    if not all(s.is_array for s in shapes):
        raise UnimplementedError(f"{node.instruction.opcode} of a token cannot be batched")


def _instruction(node: Node, builder: XlaBuilder, ops: list[XlaOp]) -> list[XlaOp]:
    """Append the instruction for one element, and return the leaves of its result."""
    values = iter([Value(op) for op in ops])
    operands = [shared_op(builder, from_leaves(s, values)) for s in node.shapes]
    return [v.array for v in leaves(Value(builder.clone(node.instruction, operands)))]


def _at(builder: XlaBuilder, value: Value, index: XlaOp) -> XlaOp:
    """Return the value of one element."""
    if not value.mapped:
        return value.array
    _, *dims = value.array.shape.dims
    zero = xla.constant(builder, 0, ElementType.S64)
    return xla.reshape(xla.dynamic_slice(value.array, [index, *[zero] * len(dims)], (1, *dims)), dims)


def _lead_all(node: Node, results: list[XlaOp]) -> Value:
    values = [mapped(xla.reshape(r, (1, *r.shape.dims))) for r in results]
    return from_leaves(node.instruction.shape, iter(values))


class _ElementLoop:
    """Loop that runs an instruction for each element.

    Its state is the number of the element, the results so far, the operands, and the mask if there is one.
    """

    def __init__(self, node: Node) -> None:
        self.node, self.builder, self.size = node, node.batcher.builder, node.size
        self.operands = [v for operand in node.operands for v in leaves(operand)]
        self.result_shapes = list(node.instruction.shape.logical.leaves())
        self.mask = node.batcher.mask if node.instruction.has_side_effect else None

    def emit(self) -> Value:
        """Append the loop, and return the results."""
        buffers = [zeros(self.builder, with_batch(s, self.size)) for s in self.result_shapes]
        ops = [xla.constant(self.builder, 0, ElementType.S64), *buffers, *[v.array for v in self.operands]]
        ops += [] if self.mask is None else [self.mask]
        shapes = [op.shape for op in ops]
        final = xla.while_(
            state_computation("has_elements", shapes, self._goes_on),
            state_computation("element", shapes, self._step), xla.tuple_(self.builder, ops),
        )  # fmt: skip
        values = [mapped(xla.get_tuple_element(final, 1 + k)) for k in range(len(buffers))]
        return from_leaves(self.node.instruction.shape, iter(values))

    def _goes_on(self, builder: XlaBuilder, ops: list[XlaOp]) -> XlaOp:
        return xla.lt(ops[0], xla.constant(builder, self.size, ElementType.S64))

    def _step(self, builder: XlaBuilder, ops: list[XlaOp]) -> list[XlaOp]:
        index, count = ops[0], len(self.result_shapes)
        buffers, rest = ops[1 : 1 + count], ops[1 + count :]
        given = [_at(builder, Value(op, v.mapped), index) for op, v in zip(rest, self.operands, strict=False)]
        with builder.derived_from(self.node.instruction):
            results = self._run(
                builder, given, None if self.mask is None else _at(builder, Value(rest[-1], True), index)
            )
        updated = [_with_element(builder, b, r, index) for b, r in zip(buffers, results, strict=True)]
        return [xla.add(index, xla.constant(builder, 1, ElementType.S64)), *updated, *rest]

    def _run(self, builder: XlaBuilder, given: list[XlaOp], takes: XlaOp | None) -> list[XlaOp]:
        """Return the results for an element; zeros if it does not take the branch that the instruction is in."""
        if takes is None:
            return _instruction(self.node, builder, given)
        run: Callable[[XlaBuilder, list[XlaOp]], list[XlaOp]] = lambda b, ops: _instruction(self.node, b, ops)  # noqa: E731
        skip: Callable[[XlaBuilder, list[XlaOp]], list[XlaOp]] = lambda b, ops: [  # noqa: E731
            zeros(b, s) for s in self.result_shapes
        ]
        branches = [
            state_computation("run", [op.shape for op in given], run), state_computation("skip", [], skip)
        ]  # fmt: skip
        result = xla.conditional(takes, branches, [xla.tuple_(builder, given), xla.tuple_(builder, [])])
        return [xla.get_tuple_element(result, k) for k in range(len(self.result_shapes))]


def _with_element(builder: XlaBuilder, buffer: XlaOp, result: XlaOp, index: XlaOp) -> XlaOp:
    zero = xla.constant(builder, 0, ElementType.S64)
    update = xla.reshape(result, (1, *result.shape.dims))
    return xla.dynamic_update_slice(buffer, update, [index, *[zero] * result.shape.rank])
