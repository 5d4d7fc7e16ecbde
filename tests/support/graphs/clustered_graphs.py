"""Random graphs of ops with variables, branches, loops and functions, whose results do not depend on the schedule.

Every access to a variable waits for the one before it, on either side of a branch. Values are vectors that stay small.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph, Node, Tensor

SIZE = 3
UNARY = ["Neg", "Tanh", "Sin", "Cos", "Abs", "Sigmoid", "Relu", "Identity", "Softplus", "StopGradient"]
BINARY = ["AddV2", "Sub", "Maximum", "Minimum", "SquaredDifference"]


@dataclass
class RandomGraph:
    """A random graph, with nodes that initialise its variables and read their final values."""

    graph: Graph
    feeds: list[Tensor] = field(default_factory=list)
    fetches: list[Tensor] = field(default_factory=list)
    init: list[Node] = field(default_factory=list)
    reads: list[Tensor] = field(default_factory=list)


class Maker:
    """Builds one graph from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = Graph()
        self.made = RandomGraph(self.graph)
        self.handles: list[Tensor] = []
        self.last: list[Node | None] = []  # latest access of each variable; the next one waits for it

    def make(self, steps: int = 14) -> RandomGraph:
        """Return a graph of about `steps` parts."""
        with self.graph.as_default():
            self.made.feeds = [self.graph.placeholder("float", [SIZE], name=f"x{k}") for k in range(2)]
            self._variables(int(self.rng.integers(0, 3)))
            values = self._grow(list(self.made.feeds), steps, 0)
            self.made.fetches = [self.pick(values) for _ in range(int(self.rng.integers(1, 4)))]
            with self.graph.control_dependencies([n for n in self.last if n is not None]):
                reads = [apply_op("ReadVariableOp", handle, dtype=DataType.DT_FLOAT) for handle in self.handles]
            self.made.reads = reads
        return self.made

    def _variables(self, count: int) -> None:
        for k in range(count):
            handle = apply_op("VarHandleOp", dtype=DataType.DT_FLOAT, shape=[SIZE], shared_name=f"v{k}", name=f"v{k}")
            self.made.init.append(apply_op("AssignVariableOp", handle, self._number(), dtype=DataType.DT_FLOAT))
            self.handles.append(handle)
            self.last.append(None)

    def _number(self, *shape: int) -> Tensor:
        return self.graph.constant(self.rng.standard_normal(shape or SIZE).astype(np.float32))

    def _int(self, value: int | list[int]) -> Tensor:
        return self.graph.constant(np.array(value, np.int32))

    def pick(self, values: list[Tensor]) -> Tensor:
        """Return one of the values, more often a recent one."""
        return values[min(len(values) - 1, int(len(values) * self.rng.random() ** 0.5))]

    def _grow(self, values: list[Tensor], steps: int, depth: int) -> list[Tensor]:
        parts = [self._unary, self._binary, self._constant, self._reduce, self._matmul, self._slice]
        parts += [self._read, self._write, self._update] if self.handles else []
        parts += [self._branch] if depth < 2 else []
        parts += [self._loop, self._call] if depth == 0 else []
        for _ in range(steps):
            values.append(parts[int(self.rng.integers(len(parts)))](values, depth))
        return values

    # Values

    def _unary(self, values: list[Tensor], depth: int) -> Tensor:
        return apply_op(str(self.rng.choice(UNARY)), self.pick(values))

    def _binary(self, values: list[Tensor], depth: int) -> Tensor:
        return apply_op("Tanh", apply_op(str(self.rng.choice(BINARY)), self.pick(values), self.pick(values)))

    def _constant(self, values: list[Tensor], depth: int) -> Tensor:
        return apply_op("Mul", apply_op("Tanh", self.pick(values)), self._number())

    def _reduce(self, values: list[Tensor], depth: int) -> Tensor:
        total = apply_op("Sum", self.pick(values), self._int([0]))
        sizes = apply_op("Shape", self.pick(values), out_type=DataType.DT_INT32)
        return apply_op("Tanh", apply_op("Fill", sizes, total))

    def _matmul(self, values: list[Tensor], depth: int) -> Tensor:
        row = apply_op("ExpandDims", self.pick(values), self._int(0))
        return apply_op(
            "Tanh", apply_op("Squeeze", apply_op("MatMul", row, self._number(SIZE, SIZE)), squeeze_dims=[0])
        )

    def _slice(self, values: list[Tensor], depth: int) -> Tensor:
        """Rotate a value by an offset that depends on data."""
        value = self.pick(values)
        begin = apply_op("Reshape", apply_op("Cast", self._flag(values), DstT=DataType.DT_INT32), self._int([1]))
        return apply_op("Slice", apply_op("ConcatV2", [value, value], self._int(0)), begin, self._int([SIZE]))

    def _flag(self, values: list[Tensor]) -> Tensor:
        total = apply_op("Sum", self.pick(values), self._int([0]))
        return apply_op("Greater", total, self.graph.constant(np.array(0.25, np.float32)))

    # Variables

    def _access(self, op: str, *inputs: Tensor) -> Node:
        k = int(self.rng.integers(len(self.handles)))
        before = self.last[k]
        with self.graph.control_dependencies([] if before is None else [before]):
            found = apply_op(op, self.handles[k], *inputs, dtype=DataType.DT_FLOAT)
        self.last[k] = node = found.node if isinstance(found, Tensor) else found
        return node

    def _read(self, values: list[Tensor], depth: int) -> Tensor:
        return self._access("ReadVariableOp").outputs[0]

    def _write(self, values: list[Tensor], depth: int) -> Tensor:
        value = apply_op("Tanh", self.pick(values))
        self._access("AssignVariableOp", value)
        return value

    def _update(self, values: list[Tensor], depth: int) -> Tensor:
        value = apply_op("Tanh", self.pick(values))
        self._access(str(self.rng.choice(["AssignAddVariableOp", "AssignSubVariableOp"])), value)
        return value

    # Control flow

    def _branch(self, values: list[Tensor], depth: int) -> Tensor:
        """Add a conditional with accesses to variables in both branches."""
        flag = self._flag(values)
        split = [apply_op("Switch", self.pick(values), flag) for _ in range(2)]
        before, pivot = list(self.last), apply_op("Switch", flag, flag)
        ends = []
        for side in (0, 1):
            start = apply_op("Identity", pivot[side]).node
            self.last = [start if n is None else self._joined([start, n]) for n in before]
            inside = self._grow([pair[side] for pair in split], int(self.rng.integers(1, 5)), depth + 1)
            with self.graph.control_dependencies([n for n in self.last if n is not None]):
                ends.append(apply_op("Identity", inside[-1]))
        merged: Tensor = apply_op("Merge", ends)[0]
        self.last = [merged.node for _ in before]
        return merged

    def _joined(self, nodes: list[Node]) -> Node:
        with self.graph.control_dependencies(nodes):
            node: Node = apply_op("NoOp")
        return node

    def _loop(self, values: list[Tensor], depth: int) -> Tensor:
        """Add a loop of control-flow nodes over a counter and a value."""
        frame = f"loop_{len(self.graph.nodes)}"
        limit = apply_op("Enter", self._int(int(self.rng.integers(0, 4))), frame_name=frame, is_constant=True)
        enters = [apply_op("Enter", x, frame_name=frame) for x in (self._int(0), self.pick(values))]
        merges = [apply_op("Merge", [x, x])[0] for x in enters]
        going = apply_op("LoopCond", apply_op("Less", merges[0], limit))
        switches = [apply_op("Switch", x, going) for x in merges]
        with self.graph.control_dependencies([switches[0][1].node]):
            one = self._int(1)
        value = switches[1][1]
        for _ in range(int(self.rng.integers(1, 5))):
            value = apply_op(str(self.rng.choice(["Tanh", "Sin", "Neg", "Cos"])), value)
        for merge, back in zip(merges, (apply_op("AddV2", switches[0][1], one), value), strict=True):
            self.graph.set_input(merge.node, 1, apply_op("NextIteration", back))
        return apply_op("Exit", switches[1][0])

    def _call(self, values: list[Tensor], depth: int) -> Tensor:
        """Add a call of a function, or a conditional between two."""
        functions = [AttrValue("func", NameAttrList(self._function())) for _ in range(2)]
        types = {"Tin": [DataType.DT_FLOAT], "Tout": [DataType.DT_FLOAT]}
        if self.rng.random() < 0.5:
            return apply_op("PartitionedCall", [self.pick(values)], f=functions[0], **types)[0]
        branches = {"then_branch": functions[0], "else_branch": functions[1]}
        return apply_op("StatelessIf", self._flag(values), [self.pick(values)], **branches, **types)[0]

    def _function(self) -> str:
        name, body = f"function_{len(self.graph.library)}", Graph()
        body.library = self.graph.library
        with body.as_default():
            x = y = body.placeholder("float", [SIZE], name="x")
            for _ in range(int(self.rng.integers(1, 6))):
                y = apply_op(str(self.rng.choice(UNARY)), y)
        self.graph.library.add(graph_to_function(name, [x], [y]))
        return name
