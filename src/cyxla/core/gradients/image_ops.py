"""Gradients of sizes of images."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor

_ATTRS = ("align_corners", "half_pixel_centers")


def _grid(op: Any) -> dict[str, Any]:
    return {name: op.attr(name) for name in _ATTRS}


def _size(x: Tensor) -> Tensor:
    return apply_op("StridedSlice", apply_op("Shape", x), [1], [3], [1])


@gradient("ResizeBilinear")
def resize_bilinear_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, None]:
    """To the pixels each one was mixed from."""
    x = op.inputs[0]
    if x.dtype.text not in ("half", "bfloat16", "float", "double"):
        return None, None
    return apply_op("ResizeBilinearGrad", dy, x, **_grid(op)), None


@gradient("ResizeBilinearGrad")
def resize_bilinear_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """The images resized again."""
    return apply_op("ResizeBilinear", g, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeNearestNeighbor")
def resize_nearest_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """To the pixels that were repeated."""
    return apply_op("ResizeNearestNeighborGrad", dy, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeNearestNeighborGrad")
def resize_nearest_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """The images resized again."""
    return apply_op("ResizeNearestNeighbor", g, _size(op.inputs[0]), **_grid(op)), None


no_gradient(
    "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
)  # fmt: skip
