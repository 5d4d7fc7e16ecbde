"""Results with bounds: arrays whose sizes are computed at run time, and known ones that are smaller than a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from cyxla.errors import ShapeError
from cyxla.types import UNBOUNDED, ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.stablehlo.sizes.equal_values import are_equal

_WIDE: Final = frozenset({ElementType.S64, ElementType.U64, ElementType.U32})  # not all of them are s32 numbers


def as_bounded(x: XlaOp, stated: Shape) -> XlaOp:
    """Return an array that is smaller than the bounds of its type as one that has the bounds."""
    if not x.shape.is_array or not stated.is_array or x.shape.rank != stated.rank:
        return x
    smaller = [d for d in bounded_dims(stated) if not x.shape.dynamic[d] and x.shape.dims[d] < stated.dims[d]]
    sizes = [(x.shape.dims[d], d) for d in smaller]
    for size, d in sizes:
        x = xla.set_dimension_size(_enlarged(x, d, stated.dims[d]), size, d)
    return x


def bounded_dims(stated: Shape) -> list[int]:
    """Return the dimensions of a type that have bounds."""
    return [d for d, n in enumerate(stated.dims) if stated.dynamic[d] and n != UNBOUNDED]


def known_size(x: XlaOp, dimension: int) -> int | None:
    """Return the size of a dimension that is static, or that `as_bounded` has set."""
    ins = x.instruction
    if ins is None or not 0 <= dimension < x.shape.rank:
        return None
    while ins.opcode == "set-dimension-size" and ins.attrs["dimensions"] != (dimension,):
        ins = ins.operands[0]
    if ins.opcode == "set-dimension-size" and ins.operands[1].opcode == "constant":
        size = int(ins.operands[1].attrs["literal"].array)
        return max(0, min(size, ins.shape.dims[dimension]))
    return None if ins.shape.dynamic[dimension] else ins.shape.dims[dimension]


class RunTimeSizes:
    """The sizes of a result with bounds, which an operand holds.

    Parameters
    ----------
    operation : str
        Name of the operation.
    stated : Shape
        Type of the result.
    operand : XlaOp
        Vector of the sizes.
    known : callable
        Returns the value of a scalar that must be known; the second argument says for an error what it is.

    Attributes
    ----------
    dims : tuple of int
        Sizes of the result, the bound of each dimension that has one.
    dynamic : tuple of bool
        The dimensions that have bounds.

    Raises
    ------
    UnknownSizeError
        A size that has no bound is not known.
    """

    def __init__(self, operation: str, stated: Shape, operand: XlaOp, known: Callable[[XlaOp, str], int]) -> None:
        self.stated = stated
        if operand.shape.dims != (stated.rank,):
            raise ShapeError(f"{operation}: {operand.shape} does not hold the sizes of {stated}")
        self._all = [_element(operand, d) for d in range(stated.rank)]
        self.dynamic = tuple([d in bounded_dims(stated) for d in range(stated.rank)])
        self.dims = tuple(
            known(size, f"the result of {operation}") if n == UNBOUNDED else n
            for size, n in zip(self._all, stated.dims, strict=True)
        )

    def scalars(self) -> list[XlaOp]:
        """Return all sizes, as scalars of s32."""
        return [self._scalar(d) for d in range(len(self.dims))]

    def set(self, x: XlaOp) -> XlaOp:
        """Return an array of the bounds with the sizes."""
        for d in bounded_dims(self.stated):
            x = xla.set_dimension_size(x, self._scalar(d), d)
        return x

    def broadcast(self, x: XlaOp, dimensions: Sequence[int]) -> XlaOp:
        """Return an array repeated to the sizes, along new dimensions and along those of one element."""
        bounded = {d: i for i, d in enumerate(dimensions) if d in bounded_dims(self.stated)}
        for d, i in bounded.items() if len(dimensions) == x.shape.rank else ():
            x = self._repeated(x, i, d)
        return self.set(xla.broadcast_in_dim(x, self.dims, dimensions))

    def _repeated(self, x: XlaOp, i: int, d: int) -> XlaOp:
        """Return an array with the bound of dimension `d` as the size of `i`, unless that is 1."""
        bound, shape = self.dims[d], x.shape
        if not shape.dynamic[i]:
            return x if shape.dims[i] == 1 else _enlarged(x, i, bound)
        size = xla.get_dimension_size(x, i)
        x = _enlarged(xla.set_dimension_size(x, shape.dims[i], i), i, bound)
        if bound < 2 or self._is_size(d, size):
            return x
        first = xla.broadcast_in_dim(xla.slice_in_dim(x, 0, 1, 1, i), x.shape.dims, range(shape.rank))
        is_single = xla.broadcast(xla.compare(size, 1, "EQ"), x.shape.dims)
        return xla.select(is_single, first, x)

    def _is_size(self, d: int, size: XlaOp) -> bool:
        """Return True if a size is dimension `d` of the result."""
        ins = self._all[d].instruction
        while ins is not None and ins.opcode in ("reshape", "convert"):
            ins = ins.operands[0]
        return are_equal(ins, size.instruction)

    def _scalar(self, d: int) -> XlaOp:
        size, bound = self._all[d], self.dims[d]
        if size.shape.dtype in _WIDE:
            limits = [xla.constant(size.builder, n, size.shape.dtype) for n in (0, bound)]
            size = xla.clamp(limits[0], size, limits[1])
        return xla.convert(size, ElementType.S32)


def _enlarged(x: XlaOp, dimension: int, bound: int) -> XlaOp:
    """Return an array with zeros behind its elements up to a bound; elements beyond it are dropped."""
    zero = xla.constant(x.builder, 0, x.shape.dtype)
    added = bound - x.shape.dims[dimension]
    return xla.pad_in_dim(x, zero, dimension, 0, added) if added else x


def _element(vector: XlaOp, number: int) -> XlaOp:
    """Return an element of a vector as a scalar; that of a concatenation is one of its operand's."""
    ins = vector.instruction
    while ins is not None and ins.opcode == "concatenate":
        for operand in ins.operands:
            if number < operand.shape.dims[0]:
                break
            number -= operand.shape.dims[0]
        ins = operand
    part = XlaOp(vector.builder, ins) if ins is not None else vector
    return xla.reshape(part if part.shape.size == 1 else xla.slice_in_dim(part, number, number + 1), ())
