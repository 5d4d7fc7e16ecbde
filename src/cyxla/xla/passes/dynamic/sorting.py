"""Sorts: elements beyond the size stay behind all others."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, pads, refuse
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
    """Choose elements of each row."""
    x = pad.array(operand)
    if x.padded.shape.rank - 1 in x.sizes:
        refuse(ins, "rows of dynamic size may have fewer elements than it chooses")
    return tuple([Bounded(pad.anchor(e), x.sizes) for e in pad.elements(pad.copy(ins, [x.padded]))])
