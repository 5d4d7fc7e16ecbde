"""Kernels of equal groups: of groups that differ in their arrays alone, such as those of equal layers, one is emitted.

Two groups are equal if the same opcodes, shapes and attributes stand in the same places, with the same arrays in
common. What emitters look into beyond a group, such as constants, must be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from cyxla.xla.cpu.emitters import emit
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Step, Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner

_KINDS: Final = frozenset({GroupKind.LOOP, GroupKind.REDUCE, GroupKind.ROW, GroupKind.DOT})
#: Opcodes of arrays in memory that emitters look into.
_LOOKED_INTO: Final = frozenset({"broadcast", "constant", "iota", "transpose"})
_MOST_CANDIDATES: Final = 8  # groups of one outline that a group is compared with


class _UniqueGroupError(Exception):
    """Raised for a group that is not compared with others."""


class _Form:
    """Form of a group, equal for groups that differ in their arrays alone.

    Parameters
    ----------
    group : Group
        Group.

    Attributes
    ----------
    arrays : dict of Value to int
        Arrays that the group reads, numbered.
    text : tuple
        Instructions with the numbers of their operands, results, and sizes at which loops end.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.arrays: dict[Value, int] = {}
        self._numbers = {ins: n for n, ins in enumerate(group.instructions)}
        self.text = (tuple(map(self._instruction, group.instructions)), self._part(group))

    def _instruction(self, ins: Instruction) -> tuple[Any, ...]:
        if ins.control_predecessors:
            raise _UniqueGroupError
        called = [combiner(c) if ins.opcode == "reduce" and ins.shape.is_array else None for c in ins.called]
        if None in called:
            raise _UniqueGroupError
        return ins.opcode, ins.shape, ins.attrs, called, [self._operand(o) for o in ins.operands]

    def _operand(self, ins: Instruction) -> Any:
        if ins in self._numbers:
            return self._numbers[ins]
        if not ins.shape.is_array:
            raise _UniqueGroupError
        return ins.shape, self._array(resolve(ins))

    def _array(self, value: Value) -> tuple[Any, ...]:
        """Return the number of an array, computed here or read; of one that emitters look into, the array itself."""
        if value.instruction in self._numbers:
            return "computed", self._numbers[value.instruction], value.index
        if value.instruction.opcode in _LOOKED_INTO:
            self.arrays.setdefault(value, len(self.arrays))
            return "same", value
        return "read", self.arrays.setdefault(value, len(self.arrays)), value.shape

    def _part(self, group: Group) -> tuple[Any, ...]:
        """Return the numbers of the instructions and results of a group, or of a part of it, and its sizes."""
        try:
            instructions = [self._numbers[ins] for ins in group.instructions]
            outputs = [self._numbers[ins] for ins in group.outputs]
        except KeyError:
            raise _UniqueGroupError from None
        return group.kind, instructions, outputs, self._sizes(group.live), self._sizes(group.stops), [
            self._part(part) for part in group.parts
        ]  # fmt: skip

    def _sizes(self, sizes: Mapping[int, Sequence[Value]]) -> list[Any]:
        return [(d, [self._array(value) for value in values]) for d, values in sizes.items()]

    def translation(self, other: _Form) -> dict[Value, Value]:
        """Return the arrays of another group of the same form by those of this one."""
        return dict(zip(self.arrays, other.arrays, strict=True))


class _Emitted:
    """Group with its steps.

    Parameters
    ----------
    group : Group
        Group.
    steps : list of Step
        Steps that were emitted for it.
    """

    def __init__(self, group: Group, steps: list[Step]) -> None:
        self.group, self.steps = group, steps

    @cached_property
    def form(self) -> _Form | None:
        """Form of the group; None if no other group takes over its steps."""
        if any(s.functions or s.state or s.context or s.groups != (self.group,) for s in self.steps):
            return None
        try:
            return _Form(self.group)
        except _UniqueGroupError:
            return None

    def steps_of(self, other: _Form) -> list[Step] | None:
        """Return the steps of a group of the same form; None if they have arrays of their own."""
        assert self.form is not None
        arrays = self.form.translation(other)
        counterparts = zip(self.group.instructions, other.group.instructions, strict=True)
        instructions: dict[Instruction, Instruction] = dict(counterparts)
        try:
            return [
                replace(
                    step,
                    reads=tuple([_counterpart(v, instructions, arrays) for v in step.reads]),
                    writes=tuple([_counterpart(v, instructions, arrays) for v in step.writes]),
                    groups=(other.group,),
                )
                for step in self.steps
            ]
        except KeyError:
            return None


def _counterpart(value: Value, instructions: Mapping[Instruction, Instruction], arrays: Mapping[Value, Value]) -> Value:
    own = instructions.get(value.instruction)
    return arrays[value] if own is None else Value(own, value.index)


class GroupEmitter:
    """Emitter of the groups of a computation."""

    def __init__(self) -> None:
        self._emitted: dict[Any, list[_Emitted]] = {}  # by an outline that is quickly computed

    def emit(self, group: Group) -> list[Step]:
        """Return the kernels of a group, in the order in which they run.

        Raises
        ------
        UnimplementedError
            No emitter is registered for an opcode.
        """
        if group.kind not in _KINDS or variants.is_observed():
            return emit(group)
        outline = (group.kind, tuple([(i.opcode, i.shape) for i in group.instructions]))
        candidates = self._emitted.setdefault(outline, [])
        steps = _steps_of_equal(group, candidates) if candidates else None
        if steps is None:
            steps = emit(group)
            if len(candidates) < _MOST_CANDIDATES:
                candidates.append(_Emitted(group, steps))
        return steps


def _steps_of_equal(group: Group, candidates: Sequence[_Emitted]) -> list[Step] | None:
    try:
        form = _Form(group)
    except _UniqueGroupError:
        return None
    equal = next((c for c in candidates if c.form is not None and c.form.text == form.text), None)
    return None if equal is None else equal.steps_of(form)
