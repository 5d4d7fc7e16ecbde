"""Parts of a program that statements record in place: the sides of a branch, and the body of a loop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from types import FrameType
from typing import Any, Final

from cyxla.numpy.control.carry import is_array
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.bodies import Body
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.copies import noted_copy
from cyxla.numpy.tracing.trace import Trace, WriteLog, require_current
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp

MOST_RECURSIONS: Final = 32  # of a function, each inside of a traced branch of the one before it


class Part:
    """Trace of statements that run in the frame of the user's function.

    Parameters
    ----------
    name : str
        Name of the trace.

    Raises
    ------
    RecursionError
        A function calls itself under traced conditions again and again, which cannot end it while it is traced.
    """

    def __init__(self, name: str) -> None:
        self.outer = require_current()
        if _depth(self.outer) >= MOST_RECURSIONS and _recursions() >= MOST_RECURSIONS:
            raise RecursionError("a function calls itself under traced conditions")
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


def _depth(trace: Trace) -> int:
    """Return the number of traces around a trace."""
    depth, outer = 0, trace.parent
    while outer is not None:
        depth, outer = depth + 1, outer.parent
    return depth


def _recursions() -> int:
    """Return how often the function of the user that is running is on the stack."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_trace.PACKAGE):
        frame = frame.f_back
    code, count = frame and frame.f_code, 0
    while frame is not None:
        count, frame = count + (frame.f_code is code), frame.f_back
    return count


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

    def given(self, k: int) -> Any:
        """Return an array or number as the value has it: a traced one, NumPy's or Python's."""
        return self._leaves[self.positions[k]]

    def build(self, arrays: Sequence[Any]) -> Any:
        """Build the value with other arrays."""
        leaves = list(self._leaves)
        for k, array in zip(self.positions, arrays, strict=True):
            leaves[k] = array
        return noted_copy(self.tree.build(leaves))

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
