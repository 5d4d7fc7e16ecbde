"""What gradient functions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import COMPLEX

Tensor = Any  # a graph's tensor: graphs stand above this layer


def conj(x: Tensor) -> Tensor:
    """The conjugate; real tensors are their own."""
    return apply_op("Conj", x) if x.dtype.base in COMPLEX else x


def shape_of(x: Tensor) -> Any:
    """A tensor's shape: a list where it is known, else a tensor."""
    return x.shape.as_list() if x.shape.is_fully_defined else apply_op("Shape", x)


def reshape_like(grad: Tensor, x: Tensor) -> Tensor:
    """The same elements in the shape of another tensor."""
    if grad.shape.is_fully_defined and grad.shape == x.shape:
        return grad
    return apply_op("Reshape", grad, shape_of(x))


def unbroadcast(x: Tensor, y: Tensor, gx: Tensor, gy: Tensor) -> tuple[Tensor, Tensor]:
    """Sum gradients of a broadcast result down to the shapes of its two operands; None stays None."""
    if x.shape.is_fully_defined and x.shape == y.shape:
        return gx, gy
    if x.shape.is_fully_defined and y.shape.is_fully_defined:
        return _summed(gx, x, _axes(x.shape, y.shape)), _summed(gy, y, _axes(y.shape, x.shape))
    x_axes, y_axes = apply_op("BroadcastGradientArgs", apply_op("Shape", x), apply_op("Shape", y))
    return _summed(gx, x, x_axes), _summed(gy, y, y_axes)


def _axes(shape: TensorShape, other: TensorShape) -> list[int]:
    """Along which dimensions of the broadcast shape an operand was repeated."""
    mine, theirs = shape.as_list(), other.as_list()
    rank = max(len(mine), len(theirs))
    mine, theirs = [1] * (rank - len(mine)) + mine, [1] * (rank - len(theirs)) + theirs
    return [i for i in range(rank) if (mine[i] == 1 and theirs[i] != 1) or i < rank - len(shape)]


def _summed(grad: Tensor, x: Tensor, axes: Any) -> Tensor:
    if grad is None or (isinstance(axes, list) and not axes):
        return grad
    return reshape_like(apply_op("Sum", grad, axes), x)


def unary_gradient(name: str | tuple[str, ...], fn: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """Register the gradient of an op of one input: ``fn(x, y, dy)`` gives dx."""
    names = (name,) if isinstance(name, str) else name
    gradient(*names)(lambda op, dy: fn(op.inputs[0], op.outputs[0], dy))


def binary_gradient(name: str | tuple[str, ...], fn: Callable[[Tensor, Tensor, Tensor, Tensor], Any]) -> None:
    """Register the gradient of a broadcasting op: ``fn(x, y, z, dz)`` gives dx and dy before they are summed down."""
    names = (name,) if isinstance(name, str) else name

    def run(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
        x, y = op.inputs
        return unbroadcast(x, y, *fn(x, y, op.outputs[0], dz))

    gradient(*names)(run)


def cast_like(x: Tensor, like: Tensor) -> Tensor:
    """A tensor in the type of another."""
    return x if x.dtype.base == like.dtype.base else apply_op("Cast", x, DstT=like.dtype.base)
