"""`Batcher`: emits the instructions of a program for one element in a form for all elements of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyxla.errors import OpError, UnimplementedError
from cyxla.types import Shape
from cyxla.xla.batching.table import STRUCTURAL, Node, find
from cyxla.xla.batching.values import Value, mapped, shared_op, tuple_of, with_batch, zeros
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction


class Batcher:
    """Batching of one computation.

    Parameters
    ----------
    builder : XlaBuilder
        Builder of the batched computation.
    size : int
        Number of elements of the batch.
    mask : XlaOp, optional
        pred[size], the elements for which the computation runs, of a branch or loop that others do not take. The values
        of the others are not used; loops and side effects leave them out.
    """

    def __init__(self, builder: XlaBuilder, size: int, mask: XlaOp | None = None) -> None:
        self.builder, self.size, self.mask = builder, size, mask

    def apply(self, ins: Instruction, operands: Sequence[Value]) -> Value:
        """Emit an instruction of the program for one element, and return its value.

        Raises
        ------
        UnimplementedError
            The opcode has no rule, or not for these operands.
        """
        is_guarded = self.mask is not None and _has_loop(ins)  # which need not end if no element enters it
        if not any(v.mapped for v in operands) and not ins.has_side_effect and not is_guarded:
            return Value(self.builder.clone(ins, [shared_op(self.builder, v) for v in operands]))
        rule = find(ins.opcode)
        if rule is None:
            raise UnimplementedError(f"{ins.opcode} has no batching rule", where=source_line(ins))
        with self.builder.derived_from(ins):
            if self.size == 0 and ins.opcode not in STRUCTURAL:
                return self._empty(ins.shape)
            try:
                return rule(Node(ins, list(operands), self))
            except OpError as error:
                error.where = error.where or source_line(ins)
                raise

    def run(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """Emit all instructions of a computation, and return the value of its root."""
        values = dict(zip(computation.parameters, arguments, strict=True))
        for ins in computation.post_order():
            if ins not in values:
                values[ins] = self.apply(ins, [values[o] for o in ins.operands])
        return values[computation.root]

    def within(self, builder: XlaBuilder, mask: XlaOp | None) -> Batcher:
        """Return the batcher of a computation that this one calls."""
        return Batcher(builder, self.size, mask)

    def lead(self, value: Value) -> XlaOp:
        """Return an array with the batch as first dimension; one that all elements share is repeated."""
        return value.array if value.mapped else xla.broadcast(value.array, (self.size,))

    def rows(self, op: XlaOp, shape: Shape) -> XlaOp:
        """Repeat an array of one number for each element along the dimensions of a shape for one element."""
        return xla.broadcast_in_dim(op, (self.size, *shape.dims), (0,)) if shape.rank else op

    def _empty(self, shape: Shape) -> Value:
        if shape.is_tuple:
            return tuple_of([self._empty(e) for e in shape.elements])
        return mapped(zeros(self.builder, with_batch(shape, 0)))


def _has_loop(ins: Instruction) -> bool:
    return ins.opcode == "while" or any(_has_loop(inner) for c in ins.called for inner in c.instructions)


def source_line(ins: Instruction) -> str:
    """Return the line of the user's program that an instruction comes from; its name if that is not known."""
    metadata = dict(ins.metadata)
    if "source_file" not in metadata:
        return f"%{ins.name or ins.opcode}"
    return f"{metadata['source_file']}:{metadata.get('source_line', '')}"


def state_computation(
    name: str, shapes: Sequence[Shape], step: Callable[[XlaBuilder, list[XlaOp]], XlaOp | Sequence[XlaOp]]
) -> XlaComputation:
    """Build a computation from a tuple to a value, or to another tuple.

    Parameters
    ----------
    name : str
        Name of the computation.
    shapes : sequence of Shape
        Shapes of the parts of the tuple.
    step : callable
        Function from the builder and the parts to the result, or to the parts of it.
    """
    builder = XlaBuilder(name)
    state = xla.parameter(builder, 0, Shape.tuple(shapes), "state")
    result = step(builder, [xla.get_tuple_element(state, k) for k in range(len(shapes))])
    root = result if isinstance(result, XlaOp) else xla.tuple_(builder, result)
    builder.order_effects()
    return builder.build(root)
