"""Custom calls of XLA's own: conversions between padded and bounded arrays, and operations that have no opcode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cyxla.errors import UnimplementedError
from cyxla.xla.evaluator.custom_calls import find_custom_call, options_of
from cyxla.xla.evaluator.targets.built_in import ELEMENTWISE, IDENTITIES
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.dynamic.contraction import dynamic_convolution_forward
from cyxla.xla.passes.dynamic.packing import Bounded, Value, dynamic_dims
from cyxla.xla.passes.dynamic.padder import Padder, pads, refuse
from cyxla.xla.passes.dynamic.sorting import choose

_EVALUATOR: Final = "cyxla.xla.evaluator"
_SAME_SIZES: Final = frozenset(
    (*IDENTITIES, *(f"{dialect}.{name}" for dialect in ("mhlo", "chlo") for name in ELEMENTWISE))
)


@pads("custom-call")
def custom_call(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Apply the rule of a target of XLA's own, or refuse any other."""
    target = ins.attrs["custom_call_target"]
    rule = _TARGETS.get(target) or (_same_sizes if target in _SAME_SIZES else None)
    own = target in pad.custom_calls or not _is_built_in(target)
    if rule is None or own:
        refuse(ins, f"target {target!r} takes and gives arrays of static sizes")
    return rule(pad, ins, *operands)


def _is_built_in(target: str) -> bool:
    try:
        return find_custom_call(target).__module__.startswith(_EVALUATOR)
    except UnimplementedError:
        return False


def _same_sizes(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Compute all elements, or annotate an array."""
    if ins.shape.is_tuple or ins.shape.dims != ins.operands[0].shape.dims:
        refuse(ins, "its result has another shape")
    x = pad.array(operand)
    return Bounded(pad.copy(ins, [x.padded]), x.sizes)


def _top(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Choose elements of each row; a row with fewer gives zeros."""
    direction = ins.called[0].root.attrs.get("direction", "GT") if ins.called else "GT"
    largest = bool(options_of(ins).get("largest", direction in ("GT", "GE")))
    return choose(pad, ins, pad.array(operand), largest=largest)


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
    "DynamicConvolutionForward": dynamic_convolution_forward,
    "TopK": _top,
    "mhlo.topk": _top,
}
