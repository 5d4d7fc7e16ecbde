"""Arrays of dynamic size: padded arrays whose size is set by ``set-dimension-size``.

Kernels that produce such arrays return `set_dynamic_size`. When a value leaves the program, or is a result of a
function, the padded array is passed together with its sizes; kernels without support never see it.
"""

from __future__ import annotations

from typing import NoReturn

from cyxla.errors import UnimplementedError
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def set_dynamic_size(value: XlaOp, size: XlaOp, dimension: int = 0) -> XlaOp:
    """Set the size of a dimension to `size`, an s32 scalar."""
    return xla.set_dimension_size(value, size, dimension)


def is_dynamic(op: XlaOp) -> bool:
    """Return whether a dimension of a value has a dynamic size."""
    return op.shape.is_array and op.shape.is_dynamic


def split_dynamic(op: XlaOp) -> tuple[XlaOp, dict[int, XlaOp]]:
    """Split a value into the padded array and the dynamic sizes by dimension.

    Raises
    ------
    UnimplementedError
        The dynamic size was not set by set-dimension-size.
    """
    sizes: dict[int, XlaOp] = {}
    while is_dynamic(op):
        instruction = op.instruction
        if instruction is None or instruction.opcode != "set-dimension-size":
            raise UnimplementedError(f"the sizes of {op} are known only at run time")
        (dimension,) = instruction.attrs["dimensions"]
        sizes.setdefault(dimension, XlaOp(op.builder, instruction.operands[1]))
        op = XlaOp(op.builder, instruction.operands[0])
    return op, sizes


def require_static(op: XlaOp, description: str) -> XlaOp:
    """Return the value after checking that its sizes are static.

    Raises
    ------
    UnimplementedError
        A size is dynamic.
    """
    if is_dynamic(op):
        refuse_dynamic(op, description)
    return op


def refuse_dynamic(op: XlaOp, description: str, reason: str = "") -> NoReturn:
    """Raise the error about a value of dynamic size."""
    raise UnimplementedError(
        f"{description} is {op.shape}, whose size is known only at run time{reason}",
        hint="leave this node out of what is compiled",
    )
