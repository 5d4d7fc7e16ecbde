"""Combiners of argmax and argmin, and others of two arrays that only compare and select.

The results of such a computation depend only on how its parameters compare. So a few values that compare in every way
decide for all values whether the combiner is associative and idempotent, given that of two elements the one with the
lower index comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.hlo import Computation, Instruction

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
    "select": np.where, "minimum": np.minimum, "maximum": np.maximum,
}  # fmt: skip
_COMPARE: dict[str, Callable[..., Any]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
_FLOATS = (0.0, 1.0, 2.0, np.nan)
_MOST_INSPECTED = 1 << 20  # elements of a constant
_INTEGERS = (0, 1, 2)


def allows_any_order(reduction: Instruction) -> bool:
    """Return whether the elements of a reduction of two arrays may be combined in any order, the lower index first.

    Either the combiner decides by itself, or the second array increases in the order of the elements.
    """
    order = _order(reduction.called[0])
    return order is _Order.ANY or (
        order is _Order.BY_INDEX and _increases(reduction.operands[1], reduction.attrs["dimensions"])
    )


class _Order(Enum):
    """Orders in which a combiner of values and their indices may take elements."""

    GIVEN = auto()
    BY_INDEX = auto()  # any, as long as it gets the element with the lower index first
    ANY = auto()


@cache
def _order(combiner: Computation) -> _Order:
    types = [p.shape.dtype for p in combiner.parameters]
    if len(types) != 4 or not types[3].is_integer or types[0].is_complex or not _only_compares(combiner):
        return _Order.GIVEN
    values = _FLOATS if types[0].is_float else _INTEGERS
    elements = list(product(values, _INTEGERS))

    def combine(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        return _run(combiner, [*x, *y])

    def combine_by_index(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        is_later = x[1] > y[1]
        first = [np.where(is_later, q, p) for p, q in zip(x, y, strict=True)]
        return combine(first, [np.where(is_later, p, q) for p, q in zip(x, y, strict=True)])

    a, b, c = _columns(list(product(elements, repeat=3)))
    if _all_equal(combine(a, b), combine(b, a)) and _is_associative(combine, a, b, c):
        return _Order.ANY
    a, b, c = _columns([t for t in product(elements, repeat=3) if _consistent(t)])
    return _Order.BY_INDEX if _is_associative(combine_by_index, a, b, c) else _Order.GIVEN


_Elements: TypeAlias = Sequence[Any]  # arrays of values and of indices


def _columns(triples: Sequence[tuple[tuple[Any, int], ...]]) -> Iterator[list[Any]]:
    return ([np.array(column) for column in zip(*side, strict=True)] for side in zip(*triples, strict=True))


def _is_associative(
    combine: Callable[[_Elements, _Elements], _Elements], a: _Elements, b: _Elements, c: _Elements
) -> bool:
    """Return whether a function of elements is associative and idempotent."""
    return _all_equal(combine(a, a), a) and _all_equal(combine(combine(a, b), c), combine(a, combine(b, c)))


def _increases(ins: Instruction, dims: Sequence[int]) -> bool:
    """Return whether the elements of an array increase along some dimensions, in row-major order; False in doubt."""
    wide = [d for d in sorted(dims) if ins.shape.dims[d] > 1]
    if not wide:
        return True
    if ins.opcode == "iota":
        return wide == [ins.attrs["iota_dimension"]]
    if ins.opcode == "constant":
        return _values_increase(ins.attrs["literal"].array, wide)
    if ins.opcode == "broadcast":
        mapping = list(ins.attrs["dimensions"])
        inner = [mapping.index(d) for d in wide if d in mapping]
        return len(inner) == len(wide) and inner == sorted(inner) and _increases(ins.operands[0], inner)
    if ins.opcode == "reshape":
        return ins.operands[0].shape.rank == 1 and _increases(ins.operands[0], (0,))
    return ins.opcode == "copy" and _increases(ins.operands[0], dims)


def _values_increase(array: np.ndarray[Any, Any], dims: Sequence[int]) -> bool:
    if array.size > _MOST_INSPECTED:
        return False
    lines = np.moveaxis(array, dims, range(len(dims)))
    lines = lines.reshape(-1, *lines.shape[len(dims) :])
    return bool(np.all(lines[1:] > lines[:-1]))


def _consistent(elements: Sequence[tuple[Any, int]]) -> bool:
    """Return whether elements with the same index are the same."""
    return all(str(x) == str(y) for x in elements for y in elements if x[1] == y[1])


def _only_compares(combiner: Computation) -> bool:
    for ins in combiner.instructions:
        if ins.opcode == "compare" and ins.attrs.get("type") == "TOTALORDER" and ins.operands[0].shape.dtype.is_float:
            return False
        if ins.opcode not in _FUNCTIONS and ins.opcode not in ("parameter", "compare", "tuple"):
            return False
        is_logical = ins.opcode in ("and", "or", "xor", "not")
        if is_logical and ins.shape.dtype is not ElementType.PRED:
            return False
    return combiner.root.opcode == "tuple"


def _run(combiner: Computation, arguments: Sequence[Any]) -> list[Any]:
    evaluated: dict[Instruction, Any] = dict(zip(combiner.parameters, arguments, strict=True))
    for ins in combiner.instructions:
        operands = [evaluated[o] for o in ins.operands] if ins.opcode not in ("parameter", "tuple") else []
        if ins.opcode == "compare":
            evaluated[ins] = _COMPARE[ins.attrs["direction"]](*operands)
        elif ins.opcode in _FUNCTIONS:
            evaluated[ins] = _FUNCTIONS[ins.opcode](*operands)
    return [evaluated[o] for o in combiner.root.operands]


def _all_equal(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
    return all(np.array_equal(x, y, equal_nan=np.issubdtype(x.dtype, np.floating)) for x, y in zip(xs, ys, strict=True))
