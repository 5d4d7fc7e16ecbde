"""Nodes of the loop IR: the values of a loop body, of which equal ones are one node.

Each kind of value is a class with its own fields; `Graph` makes the nodes, and is the only one that does.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from cyxla.types import ElementType, Literal
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.loops.index_map import Affine, Condition
from cyxla.xla.hlo import Computation, Instruction

_UNKNOWN_FLOPS = 1000  # operations of a computation or call


class Node:
    """Value of a loop body.

    Attributes
    ----------
    number : int
        Order of creation: operands have smaller numbers.
    dtype : ElementType
        Element type of the value.
    operands : tuple of Node
        Values it is computed from.
    """

    __slots__ = ("dtype", "number", "operands")

    def __init__(self, number: int, dtype: ElementType, operands: tuple[Node, ...]) -> None:
        self.number, self.dtype, self.operands = number, dtype, operands

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}#{self.number}"

    @property
    def forms(self) -> tuple[Affine, ...]:
        """Index forms among the node's own fields."""
        return ()


class Load(Node):
    """Load of an element of an array: its slot among the reads, and the linear index."""

    __slots__ = ("form", "slot")

    def __init__(self, number: int, dtype: ElementType, slot: int, form: Affine) -> None:
        self.number, self.dtype, self.operands = number, dtype, ()
        self.slot, self.form = slot, form

    @property
    def forms(self) -> tuple[Affine, ...]:
        """Index of the element."""
        return (self.form,)


class Table(Node):
    """Element of a small constant array, which is a table in the C of the kernel."""

    __slots__ = ("form", "literal")

    def __init__(self, number: int, dtype: ElementType, literal: Literal, form: Affine) -> None:
        self.number, self.dtype, self.operands = number, dtype, ()
        self.literal, self.form = literal, form

    @property
    def forms(self) -> tuple[Affine, ...]:
        """Index of the element."""
        return (self.form,)


class Constant(Node):
    """Scalar constant, as C."""

    __slots__ = ("text",)

    def __init__(self, number: int, dtype: ElementType, text: str) -> None:
        self.number, self.dtype, self.operands = number, dtype, ()
        self.text = text


class IndexValue(Node):
    """Index converted to an element type, as of an iota."""

    __slots__ = ("form",)

    def __init__(self, number: int, dtype: ElementType, form: Affine) -> None:
        self.number, self.dtype, self.operands = number, dtype, ()
        self.form = form

    @property
    def forms(self) -> tuple[Affine, ...]:
        """The index."""
        return (self.form,)


class Apply(Node):
    """Element-wise opcode: that of an instruction, with its attributes."""

    __slots__ = ("instruction",)

    def __init__(self, number: int, dtype: ElementType, operands: tuple[Node, ...], instruction: Instruction) -> None:
        self.number, self.dtype, self.operands = number, dtype, operands
        self.instruction = instruction

    @property
    def opcode(self) -> str:
        """Opcode of the instruction."""
        return self.instruction.opcode


class Map(Node):
    """Computation over scalars, as of a map."""

    __slots__ = ("computation",)

    def __init__(self, number: int, dtype: ElementType, operands: tuple[Node, ...], computation: Computation) -> None:
        self.number, self.dtype, self.operands = number, dtype, operands
        self.computation = computation


class Guard(Node):
    """The first operand where all conditions hold, and the second one elsewhere."""

    __slots__ = ("conditions",)

    def __init__(
        self, number: int, dtype: ElementType, operands: tuple[Node, ...], conditions: tuple[Condition, ...]
    ) -> None:
        self.number, self.dtype, self.operands = number, dtype, operands
        self.conditions = conditions

    @property
    def forms(self) -> tuple[Affine, ...]:
        """Indices that the conditions test."""
        return tuple([c.form for c in self.conditions])


class CallWriter(Protocol):
    """C of a `Call`; an emitter's own, hashable by its value."""

    def write(self, writer: CWriter, texts: list[str]) -> str:
        """Emit lines for the C of the operands; return the C of the result."""
        ...


class Call(Node):
    """Value whose C an emitter writes from that of the operands."""

    __slots__ = ("writer",)

    def __init__(self, number: int, dtype: ElementType, operands: tuple[Node, ...], writer: CallWriter) -> None:
        self.number, self.dtype, self.operands = number, dtype, operands
        self.writer = writer


class External(Node):
    """Value that an emitter computes itself; the key is the emitter's own."""

    __slots__ = ("key",)

    def __init__(self, number: int, dtype: ElementType, key: Hashable) -> None:
        self.number, self.dtype, self.operands = number, dtype, ()
        self.key = key


def flops(node: Apply | Map | Call) -> int:
    """Return the number of simple operations of a node; a large number for nodes not to recompute."""
    return cost.flops(node.instruction) if isinstance(node, Apply) else _UNKNOWN_FLOPS


class Graph:
    """Nodes in the order of their creation, operands first; a node that exists is returned rather than made again."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbered: dict[tuple[Any, ...], Node] = {}

    @property
    def dtypes(self) -> frozenset[ElementType]:
        """Element types of all nodes."""
        return frozenset(n.dtype for n in self.nodes)

    def load(self, dtype: ElementType, slot: int, form: Affine) -> Node:
        """Return the load of an array's element."""
        key = (Load, dtype, slot, form)
        return self._numbered.get(key) or self._add(key, Load(len(self.nodes), dtype, slot, form))

    def table(self, literal: Literal, form: Affine) -> Node:
        """Return an element of a small constant array."""
        key = (Table, literal, form)
        return self._numbered.get(key) or self._add(key, Table(len(self.nodes), literal.shape.dtype, literal, form))

    def constant_text(self, dtype: ElementType, text: str) -> Node:
        """Return a constant that is given as C."""
        key = (Constant, dtype, text)
        return self._numbered.get(key) or self._add(key, Constant(len(self.nodes), dtype, text))

    def constant(self, dtype: ElementType, value: Any) -> Node:
        """Return the constant of a value."""
        return self.constant_text(dtype, scalar.literal(dtype, value))

    def index_value(self, dtype: ElementType, form: Affine) -> Node:
        """Return an index as a value."""
        key = (IndexValue, dtype, form)
        return self._numbered.get(key) or self._add(key, IndexValue(len(self.nodes), dtype, form))

    def apply(self, ins: Instruction, operands: tuple[Node, ...]) -> Node:
        """Return an element-wise opcode of some operands."""
        key: tuple[Any, ...] = (Apply, ins.shape.dtype, operands, ins.opcode, tuple(ins.attrs.items()))
        try:
            node = self._numbered.get(key)
        except TypeError:  # an attribute that cannot be hashed: never shared
            node, key = None, (Apply, id(ins), operands)
        return node or self._add(key, Apply(len(self.nodes), ins.shape.dtype, operands, ins))

    def map(self, ins: Instruction, operands: tuple[Node, ...]) -> Node:
        """Return the computation of a map over some operands."""
        key = (Map, ins.shape.dtype, operands, ins.called[0])
        return self._numbered.get(key) or self._add(key, Map(len(self.nodes), ins.shape.dtype, operands, ins.called[0]))

    def guard(self, conditions: tuple[Condition, ...], inside: Node, outside: Node) -> Node:
        """Return one node where the conditions hold, and the other elsewhere."""
        key, operands = (Guard, inside, outside, conditions), (inside, outside)
        return self._numbered.get(key) or self._add(key, Guard(len(self.nodes), inside.dtype, operands, conditions))

    def call(self, dtype: ElementType, operands: tuple[Node, ...], writer: CallWriter) -> Node:
        """Return a value whose C is that of a writer."""
        key = (Call, dtype, operands, writer)
        return self._numbered.get(key) or self._add(key, Call(len(self.nodes), dtype, operands, writer))

    def external(self, dtype: ElementType, key: Hashable) -> Node:
        """Return the value that an emitter knows under a key."""
        graph_key = (External, dtype, key)
        return self._numbered.get(graph_key) or self._add(graph_key, External(len(self.nodes), dtype, key))

    def _add(self, key: tuple[Any, ...], node: Node) -> Node:
        self.nodes.append(node)
        self._numbered[key] = node
        return node
