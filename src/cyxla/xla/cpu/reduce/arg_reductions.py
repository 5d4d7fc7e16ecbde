"""Combiners of argmax and argmin, and others of two arrays that only compare and select.

The results of such a computation depend only on how its parameters compare. So a few values that compare in every way
decide for all values whether the combiner is associative and idempotent, given that of two elements the one with the
lower index comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

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
_INTEGERS = (0, 1, 2)


@cache
def is_arg_reduction(combiner: Computation) -> bool:
    """Return whether a combiner of values and their indices allows any order, with the lower index first."""
    types = [p.shape.dtype for p in combiner.parameters]
    if len(types) != 4 or not types[3].is_integer or types[0].is_complex or not _only_compares(combiner):
        return False
    values = _FLOATS if types[0].is_float else _INTEGERS
    elements = list(product(values, _INTEGERS))
    triples = [t for t in product(elements, repeat=3) if _consistent(t)]
    a, b, c = ([np.array(column) for column in zip(*side, strict=True)] for side in zip(*triples, strict=True))

    def combine(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        is_later = x[1] > y[1]
        first = [np.where(is_later, q, p) for p, q in zip(x, y, strict=True)]
        return _run(combiner, [*first, *(np.where(is_later, p, q) for p, q in zip(x, y, strict=True))])

    return _all_equal(combine(a, a), a) and _all_equal(combine(combine(a, b), c), combine(a, combine(b, c)))


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
