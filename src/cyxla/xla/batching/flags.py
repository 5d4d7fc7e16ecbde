"""Analysis of the values that differ by element of a batch, for loops and branches, before anything is emitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from cyxla.types import Shape
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

#: Whether an array differs by element; for a tuple, a tuple of flags.
Flags = Any


def nest(shape: Shape, flags: Iterator[bool]) -> Flags:
    """Return the flags of a value from those of its leaves."""
    return tuple([nest(e, flags) for e in shape.elements]) if shape.is_tuple else next(flags)


def flat(flags: Flags) -> list[bool]:
    """Return the flags of the leaves of a value."""
    return [leaf for part in flags for leaf in flat(part)] if isinstance(flags, tuple) else [flags]


def result_flags(computation: Computation, arguments: Sequence[Flags]) -> Flags:
    """Return the flags of the result of a computation."""
    flags = dict(zip(computation.parameters, arguments, strict=True))
    for ins in computation.post_order():
        if ins not in flags:
            flags[ins] = _RULES.get(ins.opcode, _of_any)(ins, [flags[o] for o in ins.operands])
    return flags[computation.root]


def _of_any(ins: Instruction, operands: list[Flags]) -> Flags:
    differs = any(leaf for o in operands for leaf in flat(o)) or ins.has_side_effect
    return _full(ins.shape, differs)


def _full(shape: Shape, flag: bool) -> Flags:
    return tuple([_full(e, flag) for e in shape.elements]) if shape.is_tuple else flag


def _called(ins: Instruction, operands: list[Flags]) -> Flags:
    return result_flags(ins.called[0], operands)


def _while(ins: Instruction, operands: list[Flags]) -> Flags:
    return nest(ins.shape, iter(loop_flags(ins, flat(operands[0]))[0]))


def _conditional(ins: Instruction, operands: list[Flags]) -> Flags:
    return nest(ins.shape, iter(branch_flags(ins, operands)))


_RULES: Final[dict[str, Callable[[Instruction, list[Flags]], Flags]]] = {
    "tuple": lambda ins, operands: tuple(operands),
    "get-tuple-element": lambda ins, operands: operands[0][ins.attrs["index"]],
    "get-dimension-size": lambda ins, operands: False,
    "copy": lambda ins, operands: operands[0],
    "opt-barrier": lambda ins, operands: operands[0],
    "call": _called,
    "fusion": _called,
    "while": _while,
    "conditional": _conditional,
}


def branch_flags(ins: Instruction, operands: Sequence[Flags]) -> list[bool]:
    """Return the flags of the leaves of a conditional's result."""
    if operands[0]:
        return flat(_full(ins.shape, True))
    branches = [flat(result_flags(c, [o])) for c, o in zip(ins.called, operands[1:], strict=True)]
    return [any(leaf) for leaf in zip(*branches, strict=True)]


def loop_flags(ins: Instruction, init: Sequence[bool]) -> tuple[list[bool], bool]:
    """Return the flags of the leaves of a loop's state, and that of its condition.

    Parameters
    ----------
    ins : Instruction
        While loop.
    init : sequence of bool
        Flags of the leaves of the initial state.
    """
    body, condition = ins.called
    kept, flags = kept_leaves(body), list(init)
    while True:
        state = nest(ins.shape, iter(flags))
        differs = bool(result_flags(condition, [state]))
        after = flat(result_flags(body, [state]))
        joined = [f or (not k and (differs or a)) for f, a, k in zip(flags, after, kept, strict=True)]
        if joined == flags:
            return flags, differs
        flags = joined


def kept_leaves(body: Computation) -> list[bool]:
    """Return for each leaf of the state whether a loop's body returns it as it is."""
    (state,), root = body.parameters, body.root
    if root is state or root.opcode != "tuple":
        return [root is state] * len(root.shape.leaves())
    return [
        leaf
        for k, part in enumerate(root.operands)
        for leaf in [_is_element(part, state, k)] * len(part.shape.leaves())
    ]


def _is_element(part: Instruction, state: Instruction, index: int) -> bool:
    return part.opcode == "get-tuple-element" and part.operands[0] is state and part.attrs["index"] == index
