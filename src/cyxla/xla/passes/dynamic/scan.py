"""scan: steps beyond the size keep the carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, pads, refuse
from cyxla.xla.passes.engine.clone import copy_body

_PRED = Shape.array(ElementType.PRED)


@pads("scan")
def scan(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Scan a mask of the present steps beside the arrays."""
    (along,), carried = ins.attrs["dimensions"], ins.attrs["num_carries"]
    arrays = [pad.array(o) for o in operands]
    scanned, carries = arrays[: len(arrays) - carried], arrays[len(arrays) - carried :]
    length = pad.common_size([(x, along) for x in scanned])
    if length is None or any(x.sizes for x in carries) or any(set(x.sizes) - {along} for x in scanned):
        refuse(ins, "only the dimension that is scanned may be dynamic")
    padded = [x.padded for x in arrays]
    steps = Shape.array(
        ElementType.PRED, [n if d == along else 1 for d, n in enumerate(padded[0].shape.dims[: along + 1])]
    )
    mask = pad.inside(steps, along, length)
    attrs: dict[str, Any] = {**ins.attrs, "is_associative": False}
    function = _present_step(pad, ins.called[0], carried, along)
    both = pad.computation.add("scan", (mask, *padded), attrs, shape=ins.shape.static, called=(function,))
    results = pad.elements(both) if ins.shape.is_tuple else (both,)
    outs = len(results) - carried
    values: list[Value] = [Bounded(pad.anchor(r), {along: length}) for r in results[:outs]]
    values += results[outs:]
    return tuple(values) if ins.shape.is_tuple else values[0]


def _present_step(pad: Padder, step: Computation, carried: int, along: int) -> Computation:
    """Return the step with a mask as its first slice, which has as many dimensions as stand before the scanned one."""
    shapes: Sequence[Shape] = [Shape.array(ElementType.PRED, [1] * along), *(p.shape for p in step.parameters)]

    def body(c: Computation) -> Instruction:
        mask, *parts = [c.add("parameter", (), {"parameter_number": n}, shape=s) for n, s in enumerate(shapes)]
        present = c.add("reshape", (mask,), shape=_PRED) if along else mask
        root = copy_body(step, c, parts)
        results = list(root.operands) if root.opcode == "tuple" else [root]
        for k in range(1, carried + 1):
            shape = parts[-k].shape
            wide = c.add("broadcast", (present,), shape=shape.with_dtype(ElementType.PRED)) if shape.rank else present
            results[-k] = c.add("select", (wide, results[-k], parts[-k]), shape=shape)
        return c.add("tuple", results, shape=root.shape) if root.opcode == "tuple" else results[0]

    return pad.function(f"present_{step.name}", body)
