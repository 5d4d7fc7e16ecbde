"""Values that Python needs while a function is traced, and the inputs of the program that they depend on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cyxla.numpy.tracing.trace import Trace, current
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.instruction import Instruction

MOST_VISITED: Final = 1000  # instructions: values that take more to compute are not those of sizes and flags


class NeededValue(NamedTuple):
    """A value that Python needed.

    Attributes
    ----------
    inputs : frozenset of int, optional
        Inputs of the program that determine the value; None if they are unknown.
    is_index : bool
        True if the value was needed as an index or a size.
    outside : frozenset of str
        Values from outside that determine the value as well.
    """

    inputs: frozenset[int] | None
    is_index: bool
    outside: frozenset[str] = frozenset()


def inputs_of(op: XlaOp) -> frozenset[int] | None:
    """Return the inputs of the program that determine a value; None if the state of a loop does, or many operations."""
    trace = current()
    while trace is not None and trace.builder is not op.builder:
        trace = trace.parent
    if trace is None or op.instruction is None:
        return None
    found: set[int] = set()
    seen, pending = {op.instruction}, [(trace, op.instruction)]
    while pending:
        if len(seen) > MOST_VISITED:
            return None
        trace, instruction = pending.pop()
        operands = [(trace, operand) for operand in instruction.operands]
        if instruction.opcode == "parameter":
            if trace.parent is None:
                found.add(int(instruction.attrs["parameter_number"]))
            else:
                outer = _captured(trace, instruction)
                if outer is None:
                    return None
                operands = [outer]
        for owner, operand in operands:
            if operand not in seen:
                seen.add(operand)
                pending.append((owner, operand))
    return frozenset(found)


def needed_numbers(value: Any) -> NeededValue:
    """Return numbers in an array, or in lists, as values that were needed as sizes."""
    found: frozenset[int] = frozenset()
    for part in _traced_leaves(value):
        inputs = inputs_of(part.op)
        if inputs is None:
            return NeededValue(None, is_index=True)
        found |= inputs
    return NeededValue(found, is_index=True)


def _traced_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _traced_leaves(part)
    elif hasattr(value, "op"):
        yield value


def _captured(trace: Trace, parameter: Instruction) -> tuple[Trace, Instruction] | None:
    """Return the value of the enclosing trace that a parameter stands for; None for the state of a loop."""
    assert trace.parent is not None
    for outer, inner in trace.captures:
        if inner.instruction is parameter and outer.instruction is not None:
            return trace.parent, outer.instruction
    return None
