"""Expand topk into a sort of values with their indices, and slices of the first k.

Before::

    ROOT t = (f32[8,3], s32[8,3]) topk(f32[8,100] x), k=3, largest=true

After::

    places = s32[8,100] iota(), iota_dimension=1
    s = (f32[8,100], s32[8,100]) sort(x, places), dimensions={1}, is_stable=true, to_apply=greater
    ROOT t = (f32[8,3], s32[8,3]) tuple(slice(s.0), slice(s.1))

The order is the total order: NaN is greater than infinity, and -0 less than +0.
"""

from __future__ import annotations

from collections.abc import Callable

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes import Pass
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Expand topk."""
    return rewrite_each(module, {"topk": _topk})


def expand_unless(has_kernel: Callable[[Instruction], bool]) -> Pass:
    """Return a pass that expands only the topk for which `has_kernel` returns False."""
    return lambda module: rewrite_each(module, {"topk": lambda ins: None if has_kernel(ins) else _topk(ins)})


def _topk(ins: Instruction) -> Instruction:
    write, x = Writer(ins.computation), ins.operands[0]
    shape, last = x.shape.logical, x.shape.rank - 1
    number = ElementType.S32
    indices = write.computation.add("iota", (), {"iota_dimension": last}, shape=shape.with_dtype(number))
    result_shape = Shape.tuple([shape, indices.shape])
    order = write.function("order", lambda c: _comparator(c, shape.dtype, "GT" if ins.attrs["largest"] else "LT"))
    sorted_pair = write.computation.add(
        "sort", (x, indices), {"dimensions": (last,), "is_stable": True}, shape=result_shape, called=(order,)
    )
    parts = []
    for n, part in enumerate(ins.shape.elements):
        sorted_part = write.op("get-tuple-element", sorted_pair, shape=result_shape.elements[n], index=n)
        ranges = [SliceDim(0, d) for d in part.dims]
        parts.append(write.op("slice", sorted_part, shape=part.logical, slice=tuple(ranges)))
    return write.op("tuple", *parts, shape=ins.shape)


def _comparator(c: Computation, dtype: ElementType, direction: str) -> Instruction:
    types = (dtype, dtype, ElementType.S32, ElementType.S32)
    parameters = [c.add("parameter", (), {"parameter_number": n}, shape=Shape.array(t)) for n, t in enumerate(types)]
    attrs = {"direction": direction, **({"type": "TOTALORDER"} if dtype.is_float else {})}
    return c.add("compare", parameters[:2], attrs, shape=Shape.array(ElementType.PRED))
