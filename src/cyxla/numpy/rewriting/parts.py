"""Parts of a program that statements record in place: the sides of a branch, and the body of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from cyxla.numpy.control.carry import is_array
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.bodies import Body
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.trace import Trace, WriteLog, require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp


class Part:
    """Trace of statements that run in the frame of the user's function.

    Parameters
    ----------
    name : str
        Name of the trace.
    """

    def __init__(self, name: str) -> None:
        self.outer = require_current()
        self.trace = Trace(name, self.outer)
        self.log = self.trace.writes = WriteLog()
        self.parameters: list[XlaOp] = []
        self.is_open = True
        _trace.begin(self.trace)

    def parameter(self, shape: Shape) -> XlaOp:
        """Add a parameter; all must be added before the first value is captured."""
        op = self.trace.parameter(shape)
        self.parameters.append(op)
        return op

    def close(self) -> None:
        """End the trace; arrays of enclosing functions get back their values."""
        if self.is_open:
            self.is_open = False
            _trace.end(self.trace)
            self.log.restore()

    def body(self, results: Sequence[XlaOp]) -> Body:
        """Return the recorded instructions as a function of the parameters, with the failures of all of them."""
        return Body(self.trace, self.parameters, list(results))

    def body_with_failures(self, results: Sequence[XlaOp], failures: Sequence[Any]) -> Body:
        """Return the recorded instructions as a function that checks only some failures."""
        trace = copy(self.trace)
        trace.failures = list(failures)
        return Body(trace, self.parameters, list(results))

    @property
    def size(self) -> int:
        """Number of instructions, those of called computations included."""
        return sum(_size(i, 3) for i in self.trace.builder.instructions)


def _size(instruction: Any, depth: int) -> int:
    called = instruction.called if depth else ()
    return 1 + sum(_size(i, depth - 1) for c in called for i in c.instructions)


class Leaves:
    """A value of a local variable, taken apart.

    Attributes
    ----------
    tree : Tree
        Structure of the container.
    arrays : list of TracedArray
        Leaves that are arrays or numbers.
    static : tuple
        Other leaves, in their places, with None for the arrays.
    """

    def __init__(self, value: Any) -> None:
        leaves, self.tree = flatten(value)
        self._leaves = leaves
        self.positions = [k for k, leaf in enumerate(leaves) if is_array(leaf) and not isinstance(leaf, list)]
        self.arrays = [as_traced(leaves[k]) for k in self.positions]
        is_static = [True] * len(leaves)
        for k in self.positions:
            is_static[k] = False
        self.static = tuple([leaf if s else None for leaf, s in zip(leaves, is_static, strict=True)])

    def build(self, arrays: Sequence[Any]) -> Any:
        """Build the value with other arrays."""
        leaves = list(self._leaves)
        for k, array in zip(self.positions, arrays, strict=True):
            leaves[k] = array
        return self.tree.build(leaves)

    def same_structure(self, other: Leaves) -> bool:
        """Return True if another value differs in its arrays at most."""
        if self.tree != other.tree or self.positions != other.positions or len(self.static) != len(other.static):
            return False
        return all(a is b or _equal(a, b) for a, b in zip(self.static, other.static, strict=True))


def _equal(first: Any, second: Any) -> bool:
    try:
        return type(first) is type(second) and bool(first == second)
    except Exception:
        return False


def like(array: TracedArray, op: XlaOp, weak: type | None) -> TracedArray:
    """Return an array of another value, of the same kind of number."""
    return TracedArray(op, weak, origin=array.origin, rank0=array.rank0)


def current_value(array: TracedArray) -> XlaOp:
    """Return the present value of an array in the current trace."""
    return value_of(array)


__all__ = ["Leaves", "Part", "Tree", "current_value", "like"]
