"""Gradients of Fourier transforms."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor


def _sizes(x: Tensor, rank: int) -> Tensor:
    return apply_op("StridedSlice", apply_op("Shape", x), [-rank], [0], [1], end_mask=1)


def _count(x: Tensor, rank: int) -> Tensor:
    """How many elements are transformed together, as a number like x's."""
    return apply_op("Cast", apply_op("Prod", _sizes(x, rank), [0]), DstT=x.dtype)


def _register(rank: int, suffix: str) -> None:
    forward, backward = "FFT" + suffix, "IFFT" + suffix

    @gradient(forward)
    def of_forward(op: Any, dy: Tensor) -> Tensor:
        return apply_op(backward, dy) * _count(dy, rank)

    @gradient(backward)
    def of_backward(op: Any, dy: Tensor) -> Tensor:
        return apply_op(forward, dy) / _count(dy, rank)

    @gradient("R" + forward)
    def of_real(op: Any, dy: Tensor) -> tuple[Tensor, None]:
        x, lengths = op.inputs
        return _padded(_full_real(dy, lengths, rank, x.dtype), x), None

    @gradient("I" + "R" + forward)
    def of_half(op: Any, dy: Tensor) -> tuple[Tensor, None]:
        x, lengths = op.inputs
        return _padded(_half(dy, lengths, rank, x), x), None

    def _full_real(dy: Tensor, lengths: Tensor, rank: int, dtype: Any) -> Tensor:
        """The real part of the whole transform of a half that is filled up with zeros."""
        rest = apply_op("Sub", lengths, _sizes(dy, rank))
        full = _pad_end(dy, rest, rank)
        return apply_op("Real", apply_op(backward, full) * _count(full, rank), Tout=dtype)

    def _half(dy: Tensor, lengths: Tensor, rank: int, x: Tensor) -> Tensor:
        """The half transform over the count; elements that stand for their mirror images too count twice."""
        half = apply_op("R" + forward, dy, lengths, Tcomplex=x.dtype)
        last = apply_op("StridedSlice", lengths, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
        place = apply_op("Range", 0, apply_op("Add", apply_op("FloorDiv", last, 2), 1), 1)
        single = apply_op("LogicalOr", apply_op("Equal", place, 0), apply_op("Equal", apply_op("Mul", place, 2), last))
        weight = apply_op("SelectV2", single, 1.0, 2.0)
        count = apply_op("Cast", apply_op("Prod", lengths, [0]), DstT="float")
        return half * apply_op("Cast", weight / count, DstT=x.dtype)


def _pad_end(x: Tensor, rest: Tensor, rank: int) -> Tensor:
    """Zeros behind the last dimensions, where something is missing."""
    rest = apply_op("Maximum", rest, 0)
    kept = apply_op("Fill", apply_op("ExpandDims", apply_op("Sub", apply_op("Rank", x), rank), 0), 0)
    after = apply_op("ConcatV2", [kept, rest], 0)
    return apply_op("Pad", x, apply_op("Pack", [apply_op("ZerosLike", after), after], axis=1))


def _padded(grad: Tensor, x: Tensor) -> Tensor:
    """A gradient of what was cut to the lengths, in the shape of what was given."""
    rest = apply_op("Sub", apply_op("Shape", x), apply_op("Shape", grad))
    return apply_op("Pad", grad, apply_op("Pack", [apply_op("ZerosLike", rest), rest], axis=1))


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register(_rank, _suffix)
