"""Arrays whose sizes are known only as the program runs: whole ones, cut by ``set-dimension-size``.

Kernels that make such arrays return `cut_to`. A value may leave the program, or enter or leave a function as a result,
and the whole array goes with its sizes; kernels that were not written for it never see it.
"""

from __future__ import annotations

from cyxla.errors import UnimplementedError
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def cut_to(whole: XlaOp, size: XlaOp, dimension: int = 0) -> XlaOp:
    """The first `size`, an s32 scalar, of what stands along a dimension."""
    return xla.set_dimension_size(whole, size, dimension)


def is_cut(op: XlaOp) -> bool:
    """Whether a size of a value is known only at run time."""
    return op.shape.is_array and op.shape.is_dynamic


def without_sizes(op: XlaOp) -> tuple[XlaOp, dict[int, XlaOp]]:
    """The whole array under the cuts, and the size that is left of each dimension.

    Raises
    ------
    UnimplementedError
        Something else than a cut stands on top.
    """
    sizes: dict[int, XlaOp] = {}
    while is_cut(op):
        instruction = op.instruction
        if instruction is None or instruction.opcode != "set-dimension-size":
            raise UnimplementedError(f"the sizes of {op} are known only as the program runs")
        (dimension,) = instruction.attrs["dimensions"]
        sizes.setdefault(dimension, XlaOp(op.builder, instruction.operands[1]))
        op = XlaOp(op.builder, instruction.operands[0])
    return op, sizes


def refuse_cut(op: XlaOp, what: str) -> XlaOp:
    """The value, if its sizes are known.

    Raises
    ------
    UnimplementedError
        They are known only at run time.
    """
    if is_cut(op):
        raise UnimplementedError(
            f"{what} is {op.shape}, whose size is known only as the program runs",
            hint="leave this node out of what is compiled",
        )
    return op
