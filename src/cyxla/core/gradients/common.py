"""Helpers shared by gradient functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import COMPLEX

Tensor = Any  # a graph's tensor; the class is in `core.graph`, a layer above this one


def conj(x: Tensor) -> Tensor:
    """Return the conjugate of a complex tensor, or a real tensor itself."""
    return apply_op("Conj", x) if x.dtype.base in COMPLEX else x


def shape_of(x: Tensor) -> Any:
    """Return a tensor's shape as a list if fully known, else as a tensor."""
    return x.shape.as_list() if x.shape.is_fully_defined else apply_op("Shape", x)


def reshape_like(grad: Tensor, x: Tensor) -> Tensor:
    """Reshape a gradient to the shape of a tensor."""
    if grad.shape.is_fully_defined and grad.shape == x.shape:
        return grad
    return apply_op("Reshape", grad, shape_of(x))


def unbroadcast(x: Tensor, y: Tensor, gx: Tensor, gy: Tensor) -> tuple[Tensor, Tensor]:
    """Sum gradients of a broadcasting op down to the shapes of its operands; None stays None."""
    if x.shape.is_fully_defined and x.shape == y.shape:
        return gx, gy
    if x.shape.is_fully_defined and y.shape.is_fully_defined:
        return _sum_to(gx, x, _broadcast_axes(x.shape, y.shape)), _sum_to(gy, y, _broadcast_axes(y.shape, x.shape))
    x_axes, y_axes = apply_op("BroadcastGradientArgs", apply_op("Shape", x), apply_op("Shape", y))
    return _sum_to(gx, x, x_axes), _sum_to(gy, y, y_axes)


def _broadcast_axes(shape: TensorShape, other: TensorShape) -> list[int]:
    """Return the dimensions of the broadcast shape along which an operand is repeated."""
    sizes, other_sizes = shape.as_list(), other.as_list()
    rank = max(len(sizes), len(other_sizes))
    sizes, other_sizes = [1] * (rank - len(sizes)) + sizes, [1] * (rank - len(other_sizes)) + other_sizes
    return [i for i in range(rank) if (sizes[i] == 1 and other_sizes[i] != 1) or i < rank - len(shape)]


def _sum_to(grad: Tensor, x: Tensor, axes: Any) -> Tensor:
    if grad is None or (isinstance(axes, list) and not axes):
        return grad
    return reshape_like(apply_op("Sum", grad, axes), x)


def unary_gradient(name: str | tuple[str, ...], fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Register the gradient of a unary op: ``fn(x, y, dy)`` returns dx."""
    names = (name,) if isinstance(name, str) else name
    gradient(*names)(lambda op, dy: fn(op.inputs[0], op.outputs[0], dy))


def binary_gradient(name: str | tuple[str, ...], fn: Callable[[Tensor, Tensor, Tensor, Tensor], Any]) -> None:
    """Register the gradient of a broadcasting op: ``fn(x, y, z, dz)`` returns dx and dy before `unbroadcast`."""
    names = (name,) if isinstance(name, str) else name

    def gradient_fn(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
        x, y = op.inputs
        return unbroadcast(x, y, *fn(x, y, op.outputs[0], dz))

    gradient(*names)(gradient_fn)


def cast_like(x: Tensor, like: Tensor) -> Tensor:
    """Cast a tensor to the type of another."""
    return x if x.dtype.base == like.dtype.base else apply_op("Cast", x, DstT=like.dtype.base)


def length_of(x: Tensor, axis: int) -> Tensor:
    """Return the size of a dimension."""
    return apply_op("StridedSlice", apply_op("Shape", x), [axis], [axis + 1], [1], shrink_axis_mask=1)


def sum_rows(values: Tensor, indices: Tensor, count: Tensor) -> Tensor:
    """Sum the rows of equal index: the dense gradient of a gather."""
    return apply_op("UnsortedSegmentSum", values, indices, count)


def patches_gradient(op: Any, dy: Tensor) -> Tensor:
    """Sum the gradients of all copies of each pixel, found by extracting patches of pixel indices."""
    x = op.inputs[0]
    batch, height, width, channels = (length_of(x, i) for i in range(4))
    attrs = {name: op.attr(name) for name in ("ksizes", "strides", "rates", "padding")}
    numbers = apply_op("Reshape", apply_op("Range", 1, height * width + 1, 1), apply_op("Pack", [1, height, width, 1]))
    pixel_indices = apply_op("ExtractImagePatches", apply_op("Cast", numbers, DstT="int64"), **attrs)
    window = op.attr("ksizes")[1] * op.attr("ksizes")[2]
    copies = apply_op("Reshape", dy, apply_op("Pack", [batch, -1, window, channels]))
    rows = apply_op("Reshape", apply_op("Transpose", copies, [1, 2, 0, 3]), apply_op("Pack", [-1, batch, channels]))
    sums = sum_rows(rows, apply_op("Reshape", pixel_indices, [-1]), height * width + 1)  # row 0: padding
    pixels = apply_op("Slice", sums, [1, 0, 0], [-1, -1, -1])
    return apply_op("Reshape", apply_op("Transpose", pixels, [1, 0, 2]), shape_of(x))


def gamma_gradient(alpha: Tensor, sample: Tensor, dy: Tensor) -> Tensor:
    """Return the gradient of the shape parameters of gamma samples, whose shape ends with that of the parameters."""
    derivatives = apply_op("RandomGammaGrad", apply_op("BroadcastTo", alpha, apply_op("Shape", sample)), sample)
    return unbroadcast(alpha, sample, dy * derivatives, None)[0]
