"""The arguments of a program on which an operation's sizes depend: a backward slice of the text's operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cached_property
from typing import Final

from cyxla.xla.stablehlo.function_order import Function, Functions, walk
from cyxla.xla.stablehlo.sizes.unknown import UnknownSizeError
from cyxla.xla.stablehlo.syntax import Operation, Region, Value

ALL: Final = slice(None)

# Operands that give sizes; those of an operation that is not listed may all do so.
_SIZE_OPERANDS: Final = {
    "dynamic_broadcast_in_dim": slice(1, 2),
    "case":                     slice(0, 1),  # a known one selects the branch that is lowered
    "dim":                      slice(1, 2),
    "dynamic_conv":             slice(2, 3),
    "dynamic_gather":           slice(2, 3),
    "dynamic_iota":             slice(0, 1),
    "dynamic_pad":              slice(2, 5),
    "dynamic_reshape":          slice(1, 2),
    "if":                       slice(0, 1),
    "real_dynamic_slice":       slice(1, 4),
    "rng":                      slice(2, 3),
    "set_dimension_size":       slice(1, 2),
    "stablehlo.dynamic_reduce_window":     slice(-5, None),
    "stablehlo.dynamic_rng_bit_generator": slice(1, 2),
    "stablehlo.dynamic_top_k":             slice(1, 2),
}  # fmt: skip
_CUSTOM_CALL: Final = "custom_call"
_SIZE_OF_OPERAND: Final = frozenset({"get_dimension_size", "shape_of"})  # results depend on sizes alone
_BRANCHES: Final = frozenset({"if", "case"})
_CALLEE: Final = {"call": "callee", "composite": "decomposition"}


class Dependence:
    """The origins of values in the functions of one module.

    Parameters
    ----------
    functions : Functions
        Functions of the module.
    entry : Function
        Function whose arguments are those of the program.
    """

    def __init__(self, functions: Functions, entry: Function) -> None:
        self._size_operands: list[Value] = []  # of all operations
        self._entry = {argument: k for k, argument in enumerate(entry.body.arguments)}
        self._callees: dict[Operation, Function] = {}
        self._origins: dict[Value, list[Value]] = {}  # of the arguments of regions and functions
        reached = [f for f in functions.in_order(entry) if f.op.regions]
        by_name = {f.name: f for f in reached}
        for function in reached:
            for op in walk(function.op):
                if op.kind == _CUSTOM_CALL or op.kind in _SIZE_OPERANDS:
                    self._size_operands += _size_operands(op)
                callee = by_name.get(str(op.attributes.get(_CALLEE.get(op.kind, ""))))
                if callee is not None:
                    self._callees[op] = callee
                    self._connect(callee.body.arguments, [[x] for x in op.operands])
                for region in op.regions:
                    self._connect(region.arguments, [_carried(op, k) for k in range(len(region.arguments))])

    def _connect(self, arguments: list[Value], origins: Iterable[list[Value]]) -> None:
        for argument, values in zip(arguments, origins, strict=False):
            self._origins.setdefault(argument, []).extend(values)

    def arguments_of(self, error: UnknownSizeError) -> list[int]:
        """Return the numbers of the arguments on whose values the unknown sizes of an operation depend."""
        return sorted(self._entry[v] for v in self._slice(_size_values(error)) if v in self._entry)

    @cached_property
    def sizes(self) -> Set[Value]:
        """The values on which a size in the program may depend."""
        return self._slice(self._size_operands)

    def _slice(self, values: Iterable[Value]) -> Set[Value]:
        """Return values, and those from which they are computed."""
        stack = list(values)
        seen: set[Value] = set()
        while stack:
            value = stack.pop()
            if value not in seen:
                seen.add(value)
                stack += self._origins.get(value, ()) if value.owner is None else self._operands(value.owner, value)
        return seen

    def _operands(self, op: Operation, result: Value) -> list[Value]:
        """Return the values from which an operation computes a result."""
        if op.kind in _SIZE_OF_OPERAND:
            return []
        callee = self._callees.get(op)
        if callee is not None:
            return _returned(callee.body)[op.results.index(result) :][:1]
        number = op.results.index(result)
        if op.kind == "while":
            nothing: list[Value] = []  # a text may lack regions
            condition, body, *_ = [*map(_returned, op.regions), nothing, nothing]
            return [*op.operands[number : number + 1], *condition, *body[number : number + 1]]
        if op.kind in _BRANCHES:
            return [*op.operands, *(v for region in op.regions for v in _returned(region)[number : number + 1])]
        return [*op.operands, *(v for region in op.regions for v in _returned(region))]


def _size_values(error: UnknownSizeError) -> Sequence[Value]:
    """Return the values that give the sizes of an operation."""
    op = error.operation
    if error.values is not None or op is None:
        return error.values or ()
    return _size_operands(op)


def _size_operands(op: Operation) -> Sequence[Value]:
    target = str(op.attributes.get("call_target_name", op.kind))
    return op.operands[_SIZE_OPERANDS.get(target, ALL)]


def _returned(region: Region) -> list[Value]:
    return region.operations[-1].operands if region.operations else []


def _carried(op: Operation, number: int) -> list[Value]:
    """Return the values that an argument of a region may have: those of a loop's state, else of any operand."""
    if op.kind != "while":
        return op.operands
    return [*op.operands[number : number + 1], *_returned(op.regions[-1])[number : number + 1]]
