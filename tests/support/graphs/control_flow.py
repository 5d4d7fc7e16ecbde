"""Loops and conditionals of control-flow nodes with their gradients, as TensorFlow 1 writes them into graphs.

A loop counts its iterations. Values that its gradient needs are pushed on stacks, which are created outside of all
loops, colocated with those values, and enter each frame; the gradient's loop runs as many iterations and pops them. All
control edges are present: pushes and pops come after the counter's step and before its next iteration, which waits for
those in branches through a ``ControlTrigger``; the edges of an outer loop order the inner loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph, Node, Tensor

Build = Callable[..., Any]


def merge(*inputs: Tensor | None) -> Tensor:
    """Add a Merge; an input that is None is connected later."""
    graph, first = inputs[0].graph, inputs[0]  # type: ignore[union-attr]
    attrs = {"T": AttrValue("type", first.dtype), "N": AttrValue("int", len(inputs))}  # type: ignore[union-attr]
    name = graph.unique_name("merge")
    sources = [first.name] * len(inputs)  # type: ignore[union-attr]
    return graph.add_node(NodeDef(name, "Merge", sources, "", attrs), inputs, []).outputs[0]


@contextmanager
def after(tensor: Tensor | None, graph: Graph | None = None) -> Iterator[None]:
    """Give nodes created inside a control dependency on `tensor` alone, or none, in place of those around."""
    graph = tensor.graph if tensor is not None else graph
    assert graph is not None
    before, graph._scope = graph._scope, replace(graph._scope, controls=[] if tensor is None else [tensor.node])
    try:
        yield
    finally:
        graph._scope = before


def constant(value: Any, dtype: Any = np.float32) -> Tensor:
    """Add a constant that obeys the control dependencies of the graph."""
    array = np.asarray(value, dtype)
    return apply_op("Const", value=array, dtype=DataType.DT_INT32 if array.dtype == np.int32 else DataType.DT_FLOAT)


def switch(value: Tensor, pred: Tensor) -> tuple[Tensor, Tensor]:
    """Add a Switch that is colocated with its input."""
    off, on = apply_op("Switch", value, pred)
    off.node.attrs["_class"] = AttrValue("list(string)", (f"loc:@{value.node.name}",))
    return off, on


@dataclass
class Frame:
    """A loop under construction."""

    name: str
    step: Node | None = None  # increment or decrement of the counter; nodes of an iteration wait for it
    next_step: Node | None = None  # the counter's next iteration, which waits for the nodes of this one
    trigger: Node | None = None  # the same for nodes that may be dead
    entered: dict[Tensor, Tensor] = field(default_factory=dict)

    def order(self, node: Node, *, may_be_dead: bool) -> None:
        """Order a node within each iteration: after the counter's step, before the next iteration."""
        assert self.step is not None
        node.control_inputs.append(self.step)
        self.wait_for(node, may_be_dead=may_be_dead)

    def wait_for(self, node: Node, *, may_be_dead: bool) -> None:
        """Make the next iteration wait for a node."""
        assert self.next_step is not None
        if may_be_dead and self.trigger is None:
            assert self.step is not None
            with after(self.step.outputs[0]):
                self.trigger = apply_op("ControlTrigger")
            self.next_step.control_inputs.append(self.trigger)
        waiting = self.trigger if may_be_dead else self.next_step
        assert waiting is not None
        waiting.control_inputs.append(node)

    def bring(self, value: Tensor) -> Tensor:
        """Bring a value in from outside."""
        return apply_op("Enter", value, frame_name=self.name, is_constant=True)


@dataclass
class Branch:
    """One side of a conditional under construction."""

    pred: Tensor
    side: int
    entered: dict[Tensor, Tensor] = field(default_factory=dict)

    def bring(self, value: Tensor) -> Tensor:
        """Bring a value in from outside."""
        return switch(value, self.pred)[self.side]


class Builder:
    """Adds loops, conditionals and stacks to a graph.

    Parameters
    ----------
    graph : Graph
    size : int
        ``max_size`` of all stacks; -1 for stacks of any size.
    """

    def __init__(self, graph: Graph, size: int = 100) -> None:
        self.graph, self.size = graph, size
        self.scopes: list[Frame | Branch] = []

    def enter(self, value: Tensor, depth: int = 0) -> Tensor:
        """Bring a value from outside into the open scopes from `depth` on; -1 is the innermost."""
        for scope in self.scopes[depth:]:
            if value not in scope.entered:
                with after(None, self.graph):
                    scope.entered[value] = scope.bring(value)
            value = scope.entered[value]
        return value

    def _frame(self) -> Frame | None:
        """Return the innermost loop."""
        return next((scope for scope in reversed(self.scopes) if isinstance(scope, Frame)), None)

    # The forward pass

    def loop(self, name: str, inits: Sequence[Tensor], cond: Build, body: Build) -> tuple[list[Tensor], Tensor]:
        """Add a loop and return its results and its number of iterations."""
        outer = self._frame()
        with after(None, self.graph):
            zero = constant(0, np.int32)
            for scope in self.scopes[-1:]:
                if isinstance(scope, Branch):  # a node without inputs gets a control edge from the branch
                    zero.node.control_inputs.append(apply_op("Identity", scope.bring(scope.pred)).node)
            if outer is not None:
                assert outer.step is not None
                zero.node.control_inputs.append(outer.step)
            frame = Frame(name)
            self.scopes.append(frame)
            merges = [merge(apply_op("Enter", x, frame_name=name), None) for x in (zero, *inits)]
            with after(merges[1]):
                verdict = apply_op("LoopCond", cond(*merges[1:]))
            switched = [switch(m, verdict) for m in merges]
            pivot = apply_op("Identity", switched[1][1])
            with after(pivot):
                count = switched[0][1] + constant(1, np.int32)
            next_count = apply_op("NextIteration", count)
            self.graph.set_input(merges[0].node, 1, next_count)
            frame.step, frame.next_step = count.node, next_count.node
            with after(pivot):
                results = body(pivot, *(apply_op("Identity", s[1]) for s in switched[2:]))
            self.scopes.pop()
            self._close(merges[1:], results)
            exits = [apply_op("Exit", s[0]) for s in switched]
        return exits[1:], exits[0]

    def _close(self, merges: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        for m, result in zip(merges, results, strict=True):
            self.graph.set_input(m.node, 1, apply_op("NextIteration", result))

    def cond(self, pred: Tensor, values: Sequence[Tensor], then: Build, other: Build) -> Tensor:
        """Add a conditional and return its result."""
        results = []
        pred = apply_op("Identity", pred)
        for side, build in enumerate((other, then)):
            self.scopes.append(Branch(pred, side))
            pivot = apply_op("Identity", switch(pred, pred)[side])
            with after(pivot):
                results.append(build(*(switch(v, pred)[side] for v in values)))
            self.scopes.pop()
        return merge(*results)

    def save(self, value: Tensor) -> Tensor:
        """Push a value in the innermost loop and return its stack."""
        with after(None, self.graph):
            stack = apply_op("StackV2", constant(self.size, np.int32), elem_type=value.dtype)
            push = apply_op("StackPushV2", self.enter(stack), value)
        for node in (stack.node, push.node):
            node.attrs["_class"] = AttrValue("list(string)", (f"loc:@{value.node.name}",))
        frame = self._frame()
        assert frame is not None
        frame.order(push.node, may_be_dead=isinstance(self.scopes[-1], Branch))
        return stack

    # The backward pass

    def back(self, name: str, count: Tensor, inits: Sequence[Tensor], body: Build) -> list[Tensor]:
        """Add the gradient's loop, which runs `count` iterations and pops values by `load`."""
        outer = self._frame()
        with after(None, self.graph):
            one = apply_op("Enter", self.enter(constant(1, np.int32)), frame_name=name, is_constant=True)
            merges = [merge(apply_op("Enter", x, frame_name=name), None) for x in (count, *inits)]
            verdict = apply_op("LoopCond", apply_op("GreaterEqual", merges[0], one))
            switched = [switch(m, verdict) for m in merges]
            index = switched[0][1] - one
            next_index = apply_op("NextIteration", index)
            self.graph.set_input(merges[0].node, 1, next_index)
            self.scopes.append(Frame(name, index.node, next_index.node))
            with after(index):
                results = body(*(apply_op("Identity", s[1]) for s in switched[1:]))
            self.scopes.pop()
            self._close(merges[1:], results)
            exits = [apply_op("Exit", s[0]) for s in switched]
        if outer is not None:
            outer.wait_for(exits[0].node, may_be_dead=True)
        return exits[1:]

    def load(self, stack: Tensor, elem_type: DataType = DataType.DT_FLOAT) -> Tensor:
        """Pop a value in the gradient's loop."""
        frame = self._frame()
        assert frame is not None
        with after(None, self.graph):
            pop = apply_op("StackPopV2", self.enter(stack), elem_type=elem_type)
        frame.order(pop.node, may_be_dead=True)
        return pop
