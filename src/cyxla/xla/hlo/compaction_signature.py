"""Signatures of the custom calls that compact arrays by a mask, which `xla.lib.compaction` emits.

    (f32[8,3], s64[]) custom-call(pred[8] mask, f32[8,3] x), custom_call_target="cyxla_compact"
    (s32[8], s64[]) custom-call(pred[8] mask), custom_call_target="cyxla_compact_indices"

The rows of each operand at which the mask is true, or their indices, come first, followed by zeros; the last result is
their number. With ``backend_config={zero_fill = false}`` anything may follow the selected rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.opcode import Site

COMPACT: Final = "cyxla_compact"
COMPACT_INDICES: Final = "cyxla_compact_indices"
#: Configuration of a call whose results hold anything behind the selected rows.
NO_ZERO_FILL: Final = "{zero_fill = false}"
#: Types of indices.
INDEX_TYPES: Final = (ElementType.S32, ElementType.S64)
_RULE: Final = "C4"


def has_zero_fill(options: Mapping[str, Any]) -> bool:
    """Return whether zeros follow the selected rows, by the options of a call."""
    return bool(options.get("zero_fill", True))


def is_compaction(target: str) -> bool:
    """Return whether a custom-call target is one of these."""
    return target in (COMPACT, COMPACT_INDICES)


def is_pure_compaction(ins: Instruction) -> bool:
    """Return whether an instruction is a call of one of these targets whose results are all that it does."""
    is_call = ins.opcode == "custom-call" and is_compaction(ins.attrs["custom_call_target"])
    return is_call and not ins.has_side_effect


def check_compaction(site: Site) -> None:
    """Raise unless the shapes of a call of one of these targets fit.

    Raises
    ------
    ShapeError
        An operand or result does not fit.
    UnimplementedError
        Sizes are dynamic.
    """
    target, declared = site.attrs["custom_call_target"], site.declared
    assert declared is not None
    results = declared.elements if declared.is_tuple else (declared,)
    if any(s.is_dynamic for s in (*site.operands, *results)):
        raise UnimplementedError(f"{target} with sizes that are known only at run time", rule=f"custom-call {_RULE}")
    masks, operands = site.operands[:1], site.operands[1:]
    has_mask = bool(masks) and masks[0].is_array and masks[0].rank == 1 and masks[0].dtype is ElementType.PRED
    site.require(has_mask, _RULE, f"{target}: the first operand is a mask pred[n]")
    (size,) = masks[0].dims
    takes_rows = target == COMPACT or not operands
    site.require(takes_rows, _RULE, f"{target}: the mask is the only operand")
    for shape in operands:
        fits = shape.is_array and shape.rank > 0 and shape.dims[0] == size
        site.require(fits, _RULE, f"{target}: {shape} does not have the {size} rows of the mask")
    expected = _results(target, size, operands)
    site.require(results in expected, _RULE, f"{target}: the result is {' or '.join(map(_text, expected))}")


def _results(target: str, size: int, operands: tuple[Shape, ...]) -> list[tuple[Shape, ...]]:
    """Return the possible results of a call."""
    count = Shape.array(ElementType.S64)
    if target == COMPACT:
        return [(*operands, count)]
    wide_enough = [dtype for dtype in INDEX_TYPES if size <= 1 << (dtype.bits - 1)]
    return [(Shape.array(dtype, (size,)), count) for dtype in wide_enough]


def _text(shapes: tuple[Shape, ...]) -> str:
    return f"({', '.join(map(str, shapes))})"
