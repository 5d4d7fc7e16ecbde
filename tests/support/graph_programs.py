"""Random graphs: arithmetic, variables, branches and loops of both kinds, calls, ops that are never compiled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph, Node, Tensor
from support.graphs.symbolic import add_function

F = DataType.DT_FLOAT
UNARY = ("Tanh", "Sigmoid", "Neg", "Abs", "Sin", "Relu", "Softsign", "Identity", "Square", "Softmax")
BINARY = ("AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "Atan2")


@dataclass
class Program:
    """A random graph with its fetches and feeds."""

    graph: Graph
    fetches: list[str]
    ready: list[str]
    feeds: dict[str, np.ndarray[Any, Any]]
    compiles: bool  # whether the graph compiles as a whole


@dataclass
class Writer:
    """Adds random nodes to the current graph; every value is f32[2,3] with small elements."""

    rng: np.random.Generator
    graph: Graph
    host: bool
    older: bool
    values: list[Tensor] = field(default_factory=list)
    last: dict[Tensor, Node] = field(default_factory=dict)  # latest access of each variable
    done: list[Node] = field(default_factory=list)
    functions: int = 0

    def pick(self) -> Tensor:
        return self.values[int(self.rng.integers(len(self.values)))]

    def choice(self, names: tuple[str, ...]) -> str:
        return names[int(self.rng.integers(len(names)))]

    def unary(self) -> Tensor:
        return apply_op(self.choice(UNARY), self.pick())

    def binary(self) -> Tensor:
        return apply_op("Tanh", apply_op(self.choice(BINARY), self.pick(), self.pick()))

    def product(self) -> Tensor:
        turned = apply_op("MatMul", self.pick(), self.pick(), transpose_b=True)
        return apply_op("Tanh", apply_op("MatMul", turned, self.pick()))

    def reduction(self) -> Tensor:
        axis = np.int32([int(self.rng.integers(2))])
        return self.pick() - apply_op(self.choice(("Mean", "Max", "Sum")), self.pick(), axis, keep_dims=True)

    def reshaped(self) -> Tensor:
        x = self.pick()
        turned = apply_op("Transpose", apply_op("Reshape", x, np.int32([3, 2])), np.int32([1, 0]))
        return apply_op("Reshape", turned, apply_op("Shape", self.pick()))

    def function(self, made: Any, *types: str) -> NameAttrList:
        self.functions += 1
        name = f"function_{self.functions}"
        add_function(self.graph, name, made, *types)
        return NameAttrList(name, {})

    def body(self) -> Any:
        """Return a function that builds the same nodes from two values in every call."""
        ops = [(self.choice(UNARY), self.choice(BINARY)) for _ in range(1 + int(self.rng.integers(3)))]

        def made(x: Tensor, y: Tensor) -> Tensor:
            for unary, binary in ops:
                x, y = apply_op("Tanh", apply_op(binary, x, y)), apply_op(unary, x)
            return x + y * np.float32(0.5)

        return made

    def call(self) -> Tensor:
        f = self.function(self.body(), "float", "float")
        return apply_op("PartitionedCall", [self.pick(), self.pick()], Tout=[F], f=f)[0]

    def predicate(self) -> Tensor:
        return apply_op(
            "Less", apply_op("Sum", self.pick(), np.int32([0, 1])), np.float32(0.123)
        )  # a threshold that no sum comes near enough for rounding to matter

    def branch(self) -> Tensor:
        sides = [self.function(self.body(), "float", "float") for _ in range(2)]
        args = [self.pick(), self.pick()]
        op = self.choice(("If", "StatelessIf"))
        return apply_op(op, self.predicate(), args, Tout=[F], then_branch=sides[0], else_branch=sides[1])[0]

    def loop(self) -> Tensor:
        trips, inner = np.int32(self.rng.integers(4)), self.body()
        cond = self.function(lambda i, x, y: apply_op("Less", i, trips), "int32", "float", "float")
        body = self.function(
            lambda i, x, y: (i + np.int32(1), apply_op("Tanh", inner(x, y)), y), "int32", "float", "float"
        )
        args = [np.int32(0), self.pick(), self.pick()]
        return apply_op(self.choice(("While", "StatelessWhile")), args, cond=cond, body=body)[1]

    def switch(self) -> Tensor:
        """Add a conditional of Switch and Merge."""
        chosen, inner = self.predicate(), self.body()
        (no, yes), (no_y, _) = (apply_op("Switch", self.pick(), chosen) for _ in range(2))
        return apply_op("Merge", [apply_op("Tanh", inner(no, no_y)), apply_op("Sin", yes)])[0]

    def frame(self) -> Tensor:
        """Add a loop of control-flow nodes."""
        name, trips = f"frame_{len(self.graph.nodes)}", np.int32(self.rng.integers(4))
        start = [apply_op("Enter", x, frame_name=name) for x in (np.int32(0), self.pick())]
        once = apply_op("Enter", self.pick(), frame_name=name, is_constant=True)
        limit = apply_op("Enter", trips, frame_name=name, is_constant=True)
        merged = [apply_op("Merge", [x, x])[0] for x in start]
        going = apply_op("LoopCond", apply_op("Less", merged[0], limit))
        (_, i), (out, x) = (apply_op("Switch", m, going) for m in merged)
        one = apply_op("Const", value=np.int32(1), dtype=DataType.DT_INT32)
        one.node.control_inputs.append(i.node)
        for m, value in zip(merged, (i + one, apply_op("Tanh", x + once)), strict=True):
            m.node.inputs[1] = apply_op("NextIteration", value)
        return apply_op("Exit", out)

    def uncompiled(self) -> Tensor:
        """Add an op without a kernel that emits HLO."""
        return apply_op("Tanh", apply_op("BesselI0", self.pick()))

    def variable(self) -> Tensor | None:
        """Add a read or write of a variable that waits for its latest access."""
        handles = list(self.last)
        handle = handles[int(self.rng.integers(len(handles)))]
        op = self.choice(("ReadVariableOp", "AssignVariableOp", "AssignAddVariableOp"))
        if op == "ReadVariableOp":
            found = apply_op(op, handle, dtype=F)
            node = found.node
        else:
            found, node = None, apply_op(op, handle, apply_op("Tanh", self.pick()))
        node.control_inputs.append(self.last[handle])
        self.last[handle] = node
        self.done.append(node)
        return found

    def updating(self) -> Any:
        """Return a function that updates a variable and returns the new value."""
        inner = self.body()

        def made(v: Tensor, x: Tensor) -> Tensor:
            changed = apply_op("AssignVariableOp", v, inner(apply_op("ReadVariableOp", v, dtype=F), x))
            read = apply_op("ReadVariableOp", v, dtype=F)
            read.node.control_inputs.append(changed)
            return read

        return made

    def stateful(self) -> Tensor:
        """Add a function call, branch or loop that updates a variable."""
        handles, x = list(self.last), self.pick()
        handle = handles[int(self.rng.integers(len(handles)))]
        updating, plain = self.updating(), self.body()
        types = ("resource", "float")
        f = self.function(updating, *types)
        kind = int(self.rng.integers(3))
        if kind == 0:
            (found,) = apply_op("StatefulPartitionedCall", [handle, x], Tout=[F], f=f)
        elif kind == 1:
            other = self.function(lambda v, x: plain(x, x), *types)
            (found,) = apply_op("If", self.predicate(), [handle, x], Tout=[F], then_branch=f, else_branch=other)
        else:
            types = ("int32", *types)
            cond = self.function(lambda i, v, x: apply_op("Less", i, np.int32(3)), *types)
            body = self.function(lambda i, v, x: (i + np.int32(1), v, apply_op("Tanh", updating(v, x))), *types)
            found = apply_op("While", [np.int32(0), handle, x], cond=cond, body=body)[2]
        found.node.control_inputs.append(self.last[handle])
        self.last[handle] = found.node
        return found

    def write(self) -> None:
        makers = [self.unary, self.binary, self.binary, self.product, self.reduction, self.reshaped, self.call]
        makers += [self.branch, self.loop, self.variable, self.variable, self.stateful]
        makers += [self.switch, self.frame] if self.older else []
        makers += [self.uncompiled] if self.host else []
        made = makers[int(self.rng.integers(len(makers)))]()
        if made is not None:
            self.values.append(made)


def random_graph(seed: int) -> Program:
    """Return the graph of a seed: odd ones have control-flow nodes, multiples of 3 ops that are never compiled."""
    rng, graph = np.random.default_rng(seed), Graph()
    with graph.as_default():
        writer = Writer(rng, graph, host=seed % 3 == 0, older=seed % 2 == 1)
        writer.values = [graph.placeholder("float", [2, 3], name=name) for name in ("x", "y")]
        ready = []
        for i in range(2):
            handle = apply_op("VarHandleOp", dtype=F, shape=[2, 3], shared_name=f"v{i}", name=f"v{i}")
            ready.append(apply_op("AssignVariableOp", handle, np.full((2, 3), i, np.float32), name=f"ready{i}").name)
            writer.last[handle] = handle.node
        for _ in range(int(rng.integers(5, 25))):
            writer.write()
        fetches = [t.name for t in writer.values[-3:]] + [node.name for node in writer.done]
        for i, handle in enumerate(writer.last):
            final = apply_op("ReadVariableOp", handle, dtype=F, name=f"final{i}")
            final.node.control_inputs.append(writer.last[handle])
            fetches.append(final.name)
    feeds = {f"{name}:0": rng.standard_normal((2, 3)).astype(np.float32) for name in ("x", "y")}
    return Program(graph, fetches, ready, feeds, not writer.host)
