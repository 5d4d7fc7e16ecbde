"""Gradients of pooling."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor

_ATTRS = ("ksize", "strides", "padding", "data_format")


def _geometry(op: Any, *extra_attrs: str) -> dict[str, Any]:
    return {name: op.attr(name) for name in (*_ATTRS, *extra_attrs)}


def _zeros(x: Tensor) -> Tensor:
    return apply_op("ZerosLike", x)


def _register_mean(forward: str, backward: str) -> None:
    @gradient(forward)
    def of_mean(op: Any, dy: Tensor) -> Tensor:
        return apply_op(backward, apply_op("Shape", op.inputs[0]), dy, **_geometry(op))

    @gradient(backward)
    def of_its_gradient(op: Any, g: Tensor) -> tuple[None, Tensor]:
        return None, apply_op(forward, g, **_geometry(op))


_register_mean("AvgPool", "AvgPoolGrad")
_register_mean("AvgPool3D", "AvgPool3DGrad")


def _register_max(forward: str, backward: str, twice: str, *extra_attrs: str) -> None:
    @gradient(forward)
    def of_max(op: Any, dy: Tensor) -> Tensor:
        return apply_op(backward, op.inputs[0], op.outputs[0], dy, **_geometry(op, *extra_attrs))

    @gradient(backward)
    def of_its_gradient(op: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, y, _ = op.inputs
        return _zeros(x), _zeros(y), apply_op(twice, x, y, g, **_geometry(op))

    @gradient(twice)
    def of_second_gradient(op: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, y, _ = op.inputs
        return _zeros(x), _zeros(y), apply_op(backward, x, y, g, **_geometry(op))


_register_max("MaxPool", "MaxPoolGrad", "MaxPoolGradGrad", "explicit_paddings")
_register_max("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad")


# Variants whose windows are operands.
def _layout(op: Any) -> dict[str, Any]:
    return {name: op.attr(name) for name in ("padding", "data_format")}


@gradient("MaxPoolV2")
def max_pool_v2_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Pass the gradient to the maximum of each window."""
    x, ksize, strides = op.inputs
    return apply_op("MaxPoolGradV2", x, op.outputs[0], dy, ksize, strides, **_layout(op)), None, None


@gradient("MaxPoolGradV2", "MaxPoolGradGradV2")
def max_pool_grad_v2_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
    """Apply the other op of the pair."""
    x, y, _, ksize, strides = op.inputs
    other = "MaxPoolGradGradV2" if op.op == "MaxPoolGradV2" else "MaxPoolGradV2"
    return _zeros(x), _zeros(y), apply_op(other, x, y, g, ksize, strides, **_layout(op)), None, None


_ARGMAX = ("ksize", "strides", "padding", "include_batch_in_index")


@gradient("MaxPoolWithArgmax")
def max_pool_with_argmax_grad(op: Any, dy: Tensor, _: Tensor) -> Tensor:
    """Pass the gradient to the elements at the given indices."""
    geometry = {name: op.attr(name) for name in _ARGMAX}
    return apply_op("MaxPoolGradWithArgmax", op.inputs[0], dy, op.outputs[1], **geometry)


@gradient("MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax")
def max_pool_grad_with_argmax_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
    """Apply the other op of the pair."""
    x, _, indices = op.inputs
    other = "MaxPoolGradGradWithArgmax" if op.op == "MaxPoolGradWithArgmax" else "MaxPoolGradWithArgmax"
    geometry = {name: op.attr(name) for name in _ARGMAX}
    return _zeros(x), apply_op(other, x, g, indices, **geometry), None
