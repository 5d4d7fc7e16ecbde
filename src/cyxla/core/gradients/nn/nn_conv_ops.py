"""Gradients of convolutions; each of input, filter and result is linear in the other two."""

from __future__ import annotations

from math import inf
from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, patches_gradient, reshape_like
from cyxla.errors import UnimplementedError

_2D = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
_3D = ("strides", "padding", "data_format", "dilations")


def _family(forward: str, by_input: str, by_filter: str, names: tuple[str, ...]) -> None:
    def geometry(op: Any) -> dict[str, Any]:
        return {name: op.attr(name) for name in names}

    @gradient(forward)
    def of_result(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
        x, w = op.inputs
        dx = apply_op(by_input, apply_op("Shape", x), w, dy, **geometry(op))
        return dx, apply_op(by_filter, x, apply_op("Shape", w), dy, **geometry(op))

    @gradient(by_input)
    def of_input_gradient(op: Any, g: Tensor) -> tuple[None, Tensor, Tensor]:
        _, w, dy = op.inputs
        dw = apply_op(by_filter, g, apply_op("Shape", w), dy, **geometry(op))
        return None, dw, apply_op(forward, g, w, **geometry(op))

    @gradient(by_filter)
    def of_filter_gradient(op: Any, g: Tensor) -> tuple[Tensor, None, Tensor]:
        x, _, dy = op.inputs
        dx = apply_op(by_input, apply_op("Shape", x), g, dy, **geometry(op))
        return dx, None, apply_op(forward, x, g, **geometry(op))


@gradient("Conv2DBackpropInputV2")
def conv2d_input_v2_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Differentiate as without V2; the first operand gives its shape only."""
    x, w, dy = op.inputs
    geometry = {name: op.attr(name) for name in _2D}
    dw = apply_op("Conv2DBackpropFilter", g, apply_op("Shape", w), dy, **geometry)
    return apply_op("ZerosLike", x), dw, apply_op("Conv2D", g, w, **geometry)


@gradient("Conv2DBackpropFilterV2")
def conv2d_filter_v2_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Differentiate as without V2; the second operand gives its shape only."""
    x, w, dy = op.inputs
    geometry = {name: op.attr(name) for name in _2D}
    dx = apply_op("Conv2DBackpropInput", apply_op("Shape", x), g, dy, **geometry)
    return dx, apply_op("ZerosLike", w), apply_op("Conv2D", x, g, **geometry)


@gradient("Conv")
def conv_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Use the ops for two or three spatial dimensions, with batch dimensions flattened."""
    x, w = op.inputs
    spatial = len(w.shape) - 2
    backprop_ops = ("Conv2DBackpropInput", "Conv2DBackpropFilter") if spatial == 2 else _CONV_3D
    flat, flat_dy = (_flatten_batch(t, op.attr("batch_dims"), spatial) for t in (x, dy))
    geometry = _conv_geometry(op, spatial)
    dx = apply_op(backprop_ops[0], apply_op("Shape", flat), w, flat_dy, **geometry)
    return reshape_like(dx, x), apply_op(backprop_ops[1], flat, apply_op("Shape", w), flat_dy, **geometry)


_CONV_3D = ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")
_LAYOUTS = {
    (2, "CHANNELS_LAST"): "NHWC",
    (2, "CHANNELS_FIRST"): "NCHW",
    (3, "CHANNELS_LAST"): "NDHWC",
    (3, "CHANNELS_FIRST"): "NCDHW",
}


def _conv_geometry(op: Any, spatial: int) -> dict[str, Any]:
    geometry = {name: op.attr(name) for name in ("strides", "padding", "explicit_paddings")}
    geometry["dilations"] = op.attr("dilations") or [1] * (spatial + 2)
    geometry["data_format"] = _LAYOUTS[spatial, op.attr("data_format")]
    if spatial == 3 and geometry.pop("explicit_paddings"):
        raise UnimplementedError("the gradient of Conv in three dimensions with explicit paddings", hint="pad with Pad")
    return geometry


def _flatten_batch(x: Tensor, batch_dims: int, spatial: int) -> Tensor:
    if batch_dims == 1:
        return x
    inner = apply_op("StridedSlice", apply_op("Shape", x), [-spatial - 1], [0], [1], end_mask=1)
    return apply_op("Reshape", x, apply_op("ConcatV2", [[-1], inner], 0))


@gradient("Dilation2D")
def dilation_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Pass the gradient to the first maximal element of each window, and to the filter's element at the same tap."""
    x, w = op.inputs
    if not w.shape.is_fully_defined:
        raise UnimplementedError(f"the gradient of Dilation2D for a filter of shape {w.shape}", hint="fix its shape")
    height, width, channels = w.shape.as_list()
    geometry = {name: op.attr(name) for name in ("strides", "rates", "padding")}
    geometry["ksizes"] = [1, height, width, 1]
    patches = apply_op("ExtractImagePatches", x, **geometry)
    valid = apply_op("ExtractImagePatches", apply_op("OnesLike", x), **geometry)
    sizes = apply_op("ConcatV2", [apply_op("Slice", apply_op("Shape", dy), [0], [3]), [height * width, channels]], 0)
    inside = apply_op("Reshape", valid, sizes)
    sums = apply_op("Reshape", patches, sizes) + apply_op("Reshape", w, [height * width, channels])
    sums = apply_op("SelectV2", apply_op("Greater", inside, 0.0), sums, apply_op("Cast", -inf, DstT=x.dtype))
    one, zero = (apply_op("Cast", n, DstT=x.dtype) for n in (1.0, 0.0))
    selected = apply_op("OneHot", apply_op("ArgMax", sums, 3), height * width, one, zero, axis=3) * inside
    grads = selected * apply_op("ExpandDims", dy, 3)
    dw = apply_op("Reshape", apply_op("Sum", grads, [0, 1, 2]), [height, width, channels])
    return patches_gradient(patches.node, apply_op("Reshape", grads, apply_op("Shape", patches))), dw


_family("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", _2D)
_family("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", _3D)
_family("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", _2D)
