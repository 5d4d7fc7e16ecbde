"""Branches: statements of which one side runs, in Python for a known condition, else in the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.control.carry import agreed_kind, array_text
from cyxla.numpy.control.lower_cond import emit_conditional
from cyxla.numpy.rewriting.builtins_of_traced import truth
from cyxla.numpy.rewriting.jumps import VALUE
from cyxla.numpy.rewriting.parts import Leaves, Part
from cyxla.numpy.rewriting.unbound import Unbound
from cyxla.numpy.tracing.bodies import Body, inline, record_body
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.promotion import Kind, dtype_of
from cyxla.numpy.tracing.trace import require_current, resumed, user_line
from cyxla.numpy.tracing.traced_array import TracedArray, View, as_traced, value_of
from cyxla.numpy.tracing.zero_dim import Rank0
from cyxla.xla.hlo.builder import XlaOp


class TracedBranch:
    """Branch on a traced condition: both sides are recorded, one after the other.

    Parameters
    ----------
    test : TracedArray
        Condition, a traced bool.
    names : sequence of str
        Names of the variables that the sides bind and that are read later.
    """

    def __init__(self, test: TracedArray, names: Sequence[str]) -> None:
        self._test, self._names = test, names
        self.entry: tuple[Any, ...] = ()
        self._part: Part | None = None
        self._sides: list[_Side] = []

    def first(self, state: tuple[Any, ...]) -> bool:
        """Begin the first side."""
        self.entry = state
        self._part = Part("true_side")
        return True

    def second(self) -> bool:
        """Begin the second side."""
        self._part = Part("false_side")
        return True

    def end(self, state: tuple[Any, ...]) -> None:
        """End a side."""
        assert self._part is not None
        self._sides.append(_Side(self._part, state))

    def merged(self) -> tuple[Any, ...]:
        """Emit the branch, and return the values of the variables after it."""
        one, other = self._sides
        arrays = list({id(a): a for s in self._sides for a in s.part.log.arrays}.values())
        pairs = zip(self._names, one.values, other.values, strict=True)
        joined = [_Joined(name, (a, b)) for name, a, b in pairs]
        kinds: list[Kind] = [k for j in joined for k in j.kinds] + [a.dtype for a in arrays]
        bodies = [
            s.part.body([*[op for j in joined for op in j.ops(k, s.part)], *[s.value_of(a) for a in arrays]])
            for k, s in enumerate(self._sides)
        ]
        results = _emit(bodies, kinds, value_of(self._test))
        count = len(results) - len(arrays)
        for array, result in zip(arrays, results[count:], strict=True):
            array.overwrite(result)
        values = iter(results[:count])
        return tuple([j.take(values) for j in joined])


class _Value:
    """Value of a variable after a side of a branch, as values of that side's trace.

    Attributes
    ----------
    value : object
        Value.
    leaves : Leaves, optional
        Parts of the value; None for a variable that is not bound.
    ops : list of XlaOp
        Values of its arrays.
    outer : list of (TracedArray or None)
        Array of an enclosing function of which each of its arrays is a view, or which it is.
    """

    def __init__(self, value: Any, part: Part) -> None:
        self.value = value
        self.leaves = None if isinstance(value, Unbound) else Leaves(value)
        arrays = [] if self.leaves is None else self.leaves.arrays
        self.ops = [part.trace.capture(a.op) for a in arrays]
        roots = [a.root for a in arrays]
        self.outer = [r if r.owner is not part.trace and _is_shared(r) else None for r in roots]


def _is_shared(array: TracedArray) -> bool:
    return array.ndim > 0 or (array.rank0 is Rank0.ARRAY and array.weak is None)


class _Side:
    """Side of a branch after it was recorded."""

    def __init__(self, part: Part, state: tuple[Any, ...]) -> None:
        self.part = part
        self.values = [_Value(v, part) for v in state]
        self._written = {id(a): a.root_op for a in part.log.arrays}
        part.close()

    def value_of(self, array: TracedArray) -> XlaOp:
        """Return the value of an array of an enclosing function after this side."""
        op = self._written.get(id(array))
        return self.part.trace.capture(array.root_op if op is None else op)


class _Joined:
    """Variable with its values after both sides."""

    def __init__(self, name: str, values: tuple[_Value, _Value]) -> None:
        self.name, self._values = "the result" if name == VALUE else name, values
        self.kinds: list[Kind] = []
        self._is_same = values[0].value is values[1].value
        if not self._is_same:
            self._pattern = self._common_structure()
            self.kinds = [self._kind(k) for k in range(len(self._pattern.arrays))]

    def _common_structure(self) -> Leaves:
        found = [v.leaves for v in self._values if v.leaves is not None]
        if not found:
            return Leaves(None)
        if not found[0].same_structure(found[-1]):
            one, other = (_text(v.value) for v in self._values)
            raise TraceError(
                f"a branch on a traced condition leaves {self.name} as {one} or as {other}", where=user_line(),
                hint="give it values of one kind on both sides",
            )  # fmt: skip
        return found[0]

    def _arrays(self, k: int) -> list[TracedArray]:
        return [v.leaves.arrays[k] for v in self._values if v.leaves is not None]

    def _kind(self, k: int) -> Kind:
        sides = self._arrays(k)
        kind = agreed_kind([s.kind for s in sides])
        if kind is None and all(s.shape == () and s.dtype.kind in "biufc" for s in sides):
            kind = np.result_type(*[s.dtype for s in sides])
        if kind is None or len({s.shape for s in sides}) > 1:
            shown = " or as ".join(dict.fromkeys(map(array_text, sides)))
            raise TraceError(
                f"a branch on a traced condition leaves {self.name} as {shown}", where=user_line(),
                hint="convert it to one dtype and shape on both sides",
            )  # fmt: skip
        return kind

    def ops(self, number: int, part: Part) -> list[XlaOp]:
        """Return the values of the arrays after a side; zeros for a variable that it leaves unbound."""
        if self._is_same:
            return []
        value = self._values[number]
        if value.leaves is not None:
            return value.ops
        with resumed(part.trace):
            return [as_traced(np.zeros(a.shape, a.dtype)).op for a in self._pattern.arrays]

    def take(self, results: Iterator[XlaOp]) -> Any:
        """Build the value after the branch from the next results."""
        if self._is_same:
            return self._values[0].value
        return self._pattern.build([self._array(k, next(results)) for k in range(len(self.kinds))])

    def _array(self, k: int, op: XlaOp) -> TracedArray:
        kind, sides = self.kinds[k], self._arrays(k)
        weak = kind if isinstance(kind, type) and kind is not bool else None
        rank0 = sides[0].rank0 if len({s.rank0 for s in sides}) == 1 else Rank0.SCALAR
        array = TracedArray(op, weak, rank0=rank0)
        shared = [v.outer[k] for v in self._values if v.leaves is not None and v.outer[k] is not None]
        if shared and shared[0] is not None:
            _refuse_sharing(array, self.name, shared[0])
        return array


def _refuse_sharing(array: TracedArray, name: str, other: TracedArray) -> None:
    """Make later writes to an array, or to the one that it is after one side of a branch, an error."""

    def refuse(*_: XlaOp) -> NoReturn:
        raise TraceError(
            f"{name} is another array or a new one, by a branch on a traced condition, and one of them is written",
            where=user_line(), hint=f"copy it on both sides: {name} = {name}.copy()",
        )  # fmt: skip

    array._view = View(other, refuse, refuse, other.op)


def _text(value: Any) -> str:
    return array_text(value) if isinstance(value, TracedArray) else type(value).__name__


def _emit(bodies: Sequence[Body], kinds: Sequence[Kind], selector: XlaOp) -> list[XlaOp]:
    """Emit a conditional whose sides take the values that they capture."""
    captures: list[XlaOp] = []
    positions: dict[Any, int] = {}
    for body in bodies:
        for c in body.captures:
            if c.instruction not in positions:
                positions[c.instruction] = len(captures)
                captures.append(c)
    shapes = [c.shape for c in captures]

    def side(body: Body) -> Body:
        order = [positions[c.instruction] for c in body.captures]

        def step(*values: XlaOp) -> list[XlaOp]:
            results = inline(body, [values[k] for k in order])
            return [convert(r, dtype_of(k)) for r, k in zip(results, kinds, strict=True)]

        return record_body(body.trace.builder.name, shapes, step)

    return emit_conditional([side(bodies[0]), side(bodies[1])], require_current().capture(selector), captures)


def choose(test: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Return the value of ``first() if test else second()`` for a traced condition."""
    made = TracedBranch(truth(test), ("the result",))
    value: Any = Unbound("the result")
    if made.first((value,)):
        made.end((first(),))
    if made.second():
        made.end((second(),))
    return made.merged()[0]
