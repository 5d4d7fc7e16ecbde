"""Batching of calls, branches and loops.

A branch or loop whose predicate all elements share stays what it is. Else both branches run, and each element selects
its result; a loop runs until it has ended for all elements, and keeps the state of those for which it has.
"""

from __future__ import annotations

from functools import cached_property, reduce

from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.batching.batcher import Batcher, state_computation
from cyxla.xla.batching.flags import branch_flags, flat, loop_flags
from cyxla.xla.batching.table import Node, rule
from cyxla.xla.batching.values import Value, from_leaves, leaves
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.computation import Computation


@rule("call", "fusion")
def call(node: Node) -> Value:
    """Emit the instructions of the computation."""
    return node.batcher.run(node.called[0], node.operands)


def any_of(mask: XlaOp) -> XlaOp:
    """Return whether a mask holds for any element."""
    return xla.reduce(mask, False, scalar_computation("or", ElementType.PRED), [0])


def _both(mask: XlaOp | None, condition: XlaOp) -> XlaOp:
    return condition if mask is None else xla.and_(mask, condition)


def _flags_of(value: Value) -> object:
    """Return the flags of a value as `cyxla.xla.batching.flags` represents them."""
    if value.parts is not None:
        return tuple([_flags_of(p) for p in value.parts])
    return _shared(value.array.shape) if value.array.shape.is_tuple else value.mapped


def _shared(shape: Shape) -> object:
    return tuple([_shared(e) for e in shape.elements]) if shape.is_tuple else False


# -- branches


@rule("conditional")
def conditional(node: Node) -> Value:
    """Run the chosen branch for all elements, or all branches if elements choose differently."""
    return _selected(node) if node.operands[0].mapped else _chosen(node)


def _selected(node: Node) -> Value:
    """Run all branches, each for the elements that take it, and select the results."""
    batcher = node.batcher
    takes = _takes(node.operands[0].array, len(node.called))
    results = [
        leaves(Batcher(batcher.builder, batcher.size, _both(batcher.mask, mask)).run(branch, [argument]))
        for mask, branch, argument in zip(takes, node.called, node.operands[1:], strict=True)
    ]
    chosen = results[-1]
    for mask, values in zip(takes[-2::-1], results[-2::-1], strict=True):
        shapes = node.instruction.shape.leaves()
        chosen = [_choice(batcher, mask, *parts) for parts in zip(values, chosen, shapes, strict=True)]
    return from_leaves(node.instruction.shape, iter(chosen))


def _takes(selector: XlaOp, count: int) -> list[XlaOp]:
    """Return for each branch which elements take it; an index out of range takes the last."""
    if selector.shape.dtype is ElementType.PRED:
        return [selector, xla.not_(selector)]
    first = [xla.eq(selector, _repeated(selector, k)) for k in range(count - 1)]
    others = reduce(xla.or_, first) if first else _repeated(selector, False)
    return [*first, xla.not_(others)]


def _repeated(like: XlaOp, value: int | bool) -> XlaOp:
    dtype = ElementType.PRED if isinstance(value, bool) else like.shape.dtype
    return xla.broadcast(xla.constant(like.builder, value, dtype), like.shape.dims)


def _choice(batcher: Batcher, mask: XlaOp, first: Value, second: Value, shape: Shape) -> Value:
    return Value(xla.select(batcher.rows(mask, shape), batcher.lead(first), batcher.lead(second)), True)


def _chosen(node: Node) -> Value:
    """Run the branch that all elements take."""
    batcher = node.batcher
    flags = branch_flags(node.instruction, [_flags_of(v) for v in node.operands])
    branches = [_Branch(batcher, c, leaves(v), flags) for c, v in zip(node.called, node.operands[1:], strict=True)]
    result = xla.conditional(
        node.operands[0].array, [b.computation() for b in branches],
        [xla.tuple_(batcher.builder, b.operands) for b in branches],
    )  # fmt: skip
    values = [Value(xla.get_tuple_element(result, k), flag) for k, flag in enumerate(flags)]
    return from_leaves(node.instruction.shape, iter(values))


@dataclass(frozen=True)
class _Branch:
    """Branch that all elements take or none, as a computation of a tuple; the mask of elements follows its operands.

    Attributes
    ----------
    batcher : Batcher
        Batcher around the branch.
    called : Computation
        Branch for one element.
    arguments : list of Value
        Leaves of its argument.
    flags : list of bool
        Whether the leaves of the result differ by element.
    """

    batcher: Batcher
    called: Computation
    arguments: list[Value]
    flags: list[bool]

    @property
    def operands(self) -> list[XlaOp]:
        """Parts of the tuple."""
        mask = self.batcher.mask
        return [*[v.array for v in self.arguments], *([] if mask is None else [mask])]

    def computation(self) -> XlaComputation:
        """Return the branch for all elements."""
        return state_computation(self.called.name, [op.shape for op in self.operands], self._run)

    def _run(self, builder: XlaBuilder, ops: list[XlaOp]) -> list[XlaOp]:
        inner = self.batcher.within(builder, None if self.batcher.mask is None else ops[-1])
        given = [Value(op, v.mapped) for op, v in zip(ops, self.arguments, strict=False)]
        argument = from_leaves(self.called.parameters[0].shape, iter(given))
        results = leaves(inner.run(self.called, [argument]))
        return [inner.lead(v) if flag else v.array for v, flag in zip(results, self.flags, strict=True)]


# -- loops


@rule("while")
def while_(node: Node) -> Value:
    """Run a loop over the states of all elements."""
    return _Loop(node).emit()


class _Loop:
    """Batched loop, whose state is a flat tuple of the leaves.

    What follows them tells the elements for which the loop runs: if the condition differs, a mask of those for which it
    holds; else the mask of the enclosing branch or loop, if there is one, and whether it holds for any element.
    """

    def __init__(self, node: Node) -> None:
        self.node, self.batcher = node, node.batcher
        self.body, self.condition = node.called
        self.shape = node.instruction.shape
        self.init = leaves(node.operands[0])
        self.flags, self.differs = loop_flags(node.instruction, flat(_flags_of(node.operands[0])))
        self.count = len(self.flags)

    @cached_property
    def first_mask(self) -> list[XlaOp]:
        """Return the initial values behind those of the leaves."""
        if self.differs:
            return [_both(self.batcher.mask, self._test(self.batcher, self._state(self._init_ops())))]
        mask = self.batcher.mask
        return [] if mask is None else [mask, any_of(mask)]

    def emit(self) -> Value:
        """Append the loop, and return its final state."""
        ops = [*self._init_ops(), *self.first_mask]
        shapes = [op.shape for op in ops]
        final = xla.while_(
            state_computation(self.condition.name, shapes, self._goes_on),
            state_computation(self.body.name, shapes, self._step), xla.tuple_(self.batcher.builder, ops),
        )  # fmt: skip
        return self._state([xla.get_tuple_element(final, k) for k in range(self.count)])

    def _init_ops(self) -> list[XlaOp]:
        return [self._leaf(self.batcher, v, flag) for v, flag in zip(self.init, self.flags, strict=True)]

    @staticmethod
    def _leaf(batcher: Batcher, value: Value, flag: bool) -> XlaOp:
        return batcher.lead(value) if flag else value.array

    def _state(self, ops: list[XlaOp]) -> Value:
        values = [Value(op, flag) for op, flag in zip(ops, self.flags, strict=True)]
        return from_leaves(self.shape, iter(values))

    def _test(self, batcher: Batcher, state: Value) -> XlaOp:
        """Return the condition, with the batch in front if it differs."""
        holds = batcher.run(self.condition, [state])
        return self._leaf(batcher, holds, self.differs)

    def _inner(self, builder: XlaBuilder, ops: list[XlaOp]) -> Batcher:
        return self.batcher.within(builder, ops[self.count] if self.first_mask else None)

    def _goes_on(self, builder: XlaBuilder, ops: list[XlaOp]) -> XlaOp:
        if self.differs:
            return any_of(ops[self.count])
        holds = self._test(self._inner(builder, ops), self._state(ops[: self.count]))
        return xla.and_(holds, ops[self.count + 1]) if self.first_mask else holds

    def _step(self, builder: XlaBuilder, ops: list[XlaOp]) -> list[XlaOp]:
        inner, before, rest = self._inner(builder, ops), ops[: self.count], ops[self.count :]
        results = leaves(inner.run(self.body, [self._state(before)]))
        after = [self._leaf(inner, v, flag) for v, flag in zip(results, self.flags, strict=True)]
        if not self.differs:
            return [*after, *rest]
        mask = rest[0]
        kept = [
            new if new is old else xla.select(inner.rows(mask, shape), new, old)
            for new, old, shape in zip(after, before, self.shape.leaves(), strict=True)
        ]
        return [*kept, xla.and_(mask, self._test(inner, self._state(kept)))]
