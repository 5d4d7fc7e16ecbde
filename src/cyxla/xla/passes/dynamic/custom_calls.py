"""Custom calls of XLA's own that convert between padded and bounded arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.dynamic.packing import Bounded, Value, dynamic_dims
from cyxla.xla.passes.dynamic.padder import Padder, pads, refuse


@pads("custom-call")
def custom_call(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Convert, or refuse any other target."""
    convert = _TARGETS.get(ins.attrs["custom_call_target"])
    if convert is None:
        refuse(ins, f"target {ins.attrs['custom_call_target']!r} takes and gives arrays of static sizes")
    return convert(pad, ins, *operands)


def _slice_to_dynamic(pad: Padder, ins: Instruction, operand: Value, *sizes: Value) -> Value:
    """Set all sizes of an array that is padded."""
    x = pad.zero_extended(pad.array(operand), range(ins.shape.rank))
    bounds = ins.shape.dims
    return Bounded(x.padded, {d: pad.clamped(pad.anchor(sizes[d]), bounds[d]) for d in dynamic_dims(ins.shape)})


def _pad_to_static(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Return the padded array, with zeros beyond the sizes, and all sizes."""
    x = pad.array(operand)
    rank = x.padded.shape.rank
    return (pad.zero_extended(x, range(rank)), *(pad.size(x, d) for d in range(rank)))


_TARGETS: Final[Mapping[str, Callable[..., Value]]] = {
    "SliceToDynamic": _slice_to_dynamic,
    "PadToStatic": _pad_to_static,
}
