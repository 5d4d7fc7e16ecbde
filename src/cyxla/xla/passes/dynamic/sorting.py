"""Sorts: elements beyond the size stay behind all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator.numerics.ordering import total_order_key
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, pads
from cyxla.xla.passes.engine.clone import copy_body

_PRED = Shape.array(ElementType.PRED)


@pads("sort")
def sort(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Sort with a mask as the last operand, which comes first in comparisons."""
    arrays, (along,) = [pad.array(o) for o in operands], ins.attrs["dimensions"]
    sizes, padded = pad.common_sizes(arrays), [x.padded for x in arrays]
    if along not in sizes:
        sorted_ = pad.copy(ins, padded)
        results = pad.elements(sorted_) if ins.shape.is_tuple else (sorted_,)
    else:
        padded.append(pad.inside(padded[0].shape, along, sizes[along]))
        function = _present_first(pad, ins.called[0], padded)
        shape = Shape.tuple([x.shape.logical for x in padded])
        results = pad.elements(pad.computation.add("sort", padded, ins.attrs, shape=shape, called=(function,)))[:-1]
    bounded = tuple([Bounded(pad.anchor(r), sizes) for r in results])
    return bounded if ins.shape.is_tuple else bounded[0]


def _present_first(pad: Padder, compare: Computation, operands: Sequence[Instruction]) -> Computation:
    shapes = [Shape.array(x.shape.dtype) for x in operands for _ in range(2)]

    def body(c: Computation) -> Instruction:
        parts = [c.add("parameter", (), {"parameter_number": n}, shape=s) for n, s in enumerate(shapes)]
        *values, left, right = parts
        before = copy_body(compare, c, values)
        absent = c.add("not", (right,), shape=_PRED)
        return c.add("and", (left, c.add("or", (absent, before), shape=_PRED)), shape=_PRED)

    return pad.function(f"present_{compare.name}", body)


@pads("topk")
def topk(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Choose elements of each row; a row with fewer gives zeros."""
    return choose(pad, ins, pad.array(operand), largest=bool(ins.attrs["largest"]))


def choose(pad: Padder, ins: Instruction, x: Bounded, *, largest: bool) -> tuple[Value, ...]:
    """Return the greatest or least elements of each row, and their indices."""
    last = x.padded.shape.rank - 1
    kept = {d: n for d, n in x.sizes.items() if d != last}
    if last not in x.sizes:
        return tuple([Bounded(pad.anchor(e), kept) for e in pad.elements(pad.copy(ins, [x.padded]))])
    behind = pad.constant(_behind(x.padded.shape.dtype, largest=largest), x.padded.shape.dtype)
    chosen = pad.elements(pad.copy(ins, [pad.masked(x, [last], behind)]))
    size = {last: x.sizes[last]}
    zeros = [pad.constant(0, pad.anchor(e).shape.dtype) for e in chosen]
    return tuple(
        [
            Bounded(pad.masked(Bounded(pad.anchor(e), size), [last], zero), kept)
            for e, zero in zip(chosen, zeros, strict=True)
        ]
    )


def _behind(dtype: ElementType, *, largest: bool) -> Any:
    """Return an element that no other is behind, in total order."""
    kind = np.dtype(dtype.numpy_dtype)
    if dtype.is_integer and kind.itemsize > 1:
        limits = np.iinfo(kind)
        values = np.array([limits.min, limits.max], kind)
    elif kind.itemsize == 1:
        values = np.arange(256, dtype=np.uint8).view(kind)
    else:  # NaNs with all bits set, and such without a sign
        ones = [0xFF] * (kind.itemsize - 1)
        values = np.array([[*ones, 0xFF], [*ones, 0x7F]], np.uint8).view(kind).reshape(-1)
    keys = total_order_key(values)
    return values[np.argmin(keys) if largest else np.argmax(keys)]
