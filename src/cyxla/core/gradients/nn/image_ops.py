"""Gradients of resizing, cropping and colour conversion."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, cast_like

_ATTRS = ("align_corners", "half_pixel_centers")


def _grid(op: Any) -> dict[str, Any]:
    return {name: op.attr(name) for name in _ATTRS}


def _size(x: Tensor) -> Tensor:
    return apply_op("StridedSlice", apply_op("Shape", x), [1], [3], [1])


@gradient("ResizeBilinear")
def resize_bilinear_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, None]:
    """Distribute the gradient to the interpolated pixels."""
    x = op.inputs[0]
    if x.dtype.text not in ("half", "bfloat16", "float", "double"):
        return None, None
    return apply_op("ResizeBilinearGrad", dy, x, **_grid(op)), None


@gradient("ResizeBilinearGrad")
def resize_bilinear_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """Resize the gradient."""
    return apply_op("ResizeBilinear", g, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeBicubic")
def resize_bicubic_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, None]:
    """Distribute the gradient to the interpolated pixels."""
    x = op.inputs[0]
    if x.dtype.text not in ("float", "double"):
        return None, None
    return apply_op("ResizeBicubicGrad", dy, x, **_grid(op)), None


@gradient("ResizeBicubicGrad")
def resize_bicubic_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """Resize the gradient."""
    return apply_op("ResizeBicubic", g, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeNearestNeighbor")
def resize_nearest_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Sum the gradients of all copies of each pixel."""
    return apply_op("ResizeNearestNeighborGrad", dy, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeNearestNeighborGrad")
def resize_nearest_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """Resize the gradient."""
    return apply_op("ResizeNearestNeighbor", g, _size(op.inputs[0]), **_grid(op)), None


@gradient("RGBToHSV")
def rgb_to_hsv_grad(op: Any, dy: Tensor) -> Tensor:
    """Differentiate value = max, saturation = 1 - min / max, hue = (offset + (next - last) / (max - min)) / 6.

    The first maximal and minimal channel count; `next` and `last` are the channels after the maximal one, cyclically.
    """
    rgb = op.inputs[0]
    max_mask, min_mask = (_one_hot_of(choice, rgb) for choice in ("ArgMax", "ArgMin"))
    value = apply_op("Max", rgb, [-1], keep_dims=True)
    low = apply_op("Min", rgb, [-1], keep_dims=True)
    chroma = value - low
    following = apply_op("Roll", rgb, -1, -1) - apply_op("Roll", rgb, -2, -1)
    numerator = apply_op("Sum", max_mask * following, [-1], keep_dims=True)
    d_hue, d_saturation, d_value = apply_op("Split", -1, dy, num_split=3)
    d_numerator = _div_no_nan(d_hue, chroma * 6.0)
    d_chroma = _div_no_nan(d_numerator * numerator, chroma)
    to_max = d_value + _div_no_nan(d_saturation * low, apply_op("Square", value)) - d_chroma
    to_min = d_chroma - _div_no_nan(d_saturation, value)
    neighbours = apply_op("Roll", max_mask, 1, -1) - apply_op("Roll", max_mask, 2, -1)
    return max_mask * to_max + min_mask * to_min + neighbours * d_numerator


def _one_hot_of(choice: str, rgb: Tensor) -> Tensor:
    one, zero = (apply_op("Cast", n, DstT=rgb.dtype) for n in (1.0, 0.0))
    return apply_op("OneHot", apply_op(choice, rgb, -1), 3, one, zero, axis=-1)


def _div_no_nan(x: Tensor, y: Tensor) -> Tensor:
    return apply_op("DivNoNan", x, y)


# Boxes ----------------------------------------------------------------------------------------------------------------
# A crop is a product of matrices: crops[n] = down[n] image[box_ind[n]] across[n]'. Each row of `down` and `across`
# holds the interpolation weights of a sample; they are zero outside the image.
def _einsum(equation: str, *operands: Tensor) -> Tensor:
    return apply_op("Einsum", list(operands), equation=equation)


class _SampleWeights:
    """Interpolation weights along one dimension of the image."""

    def __init__(self, boxes: Tensor, corner: int, pixels: Tensor, count: Tensor, nearest: bool) -> None:
        start, end = (apply_op("Slice", boxes, [0, d], [-1, 1]) for d in (corner, corner + 2))
        self.last = apply_op("Cast", pixels - 1, DstT="float")
        steps = apply_op("Cast", apply_op("Range", 0, count, 1), DstT="float")
        last_pixel = apply_op("Cast", apply_op("Maximum", count - 1, 1), DstT="float")
        self.fraction = apply_op("SelectV2", apply_op("Equal", count, 1), 0.5, steps / last_pixel)
        position = (start * (1.0 - self.fraction) + end * self.fraction) * self.last
        inside = apply_op(
            "LogicalAnd", apply_op("GreaterEqual", position, 0.0), apply_op("LessEqual", position, self.last)
        )
        self.inside = apply_op("ExpandDims", apply_op("Cast", inside, DstT="float"), -1)
        position = apply_op("Round", position) if nearest else position
        pixel_indices = apply_op("Cast", apply_op("Range", 0, pixels, 1), DstT="float")
        self.distance = apply_op("ExpandDims", position, -1) - pixel_indices
        self.weights = apply_op("Maximum", 1.0 - apply_op("Abs", self.distance), 0.0) * self.inside

    def corners(self, dweights: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of both ends of each box."""
        adjacent = apply_op("Cast", apply_op("Less", apply_op("Abs", self.distance), 1.0), DstT="float")
        slope = -apply_op("Sign", self.distance) * adjacent * self.inside
        d_pos = apply_op("Sum", dweights * slope, [-1]) * self.last
        return apply_op("Sum", d_pos * (1.0 - self.fraction), [-1]), apply_op("Sum", d_pos * self.fraction, [-1])


@gradient("CropAndResize")
def crop_and_resize_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
    """Return the gradients of the pixels, and of the boxes unless sampling is by the nearest pixel."""
    image, boxes, numbers, size = op.inputs
    nearest = op.attr("method") in ("nearest", b"nearest")
    batch, *pixels = apply_op("Unpack", apply_op("Slice", apply_op("Shape", image), [0], [3]), num=3)
    axes = [_SampleWeights(boxes, d, pixels[d], apply_op("GatherV2", size, d, 0), nearest) for d in (0, 1)]
    down, across = (side.weights for side in axes)
    dimage = None
    if image.dtype.text in ("half", "float", "double"):
        parts = _einsum("nqj,niqc->nijc", across, _einsum("npi,npqc->niqc", down, dy))
        dimage = cast_like(apply_op("UnsortedSegmentSum", parts, numbers, batch), image)
    if nearest:
        return dimage, None, None, None
    images = apply_op("Cast", apply_op("GatherV2", image, numbers, 0), DstT="float")
    ddown = _einsum("npqc,niqc->npi", dy, _einsum("nqj,nijc->niqc", across, images))
    dacross = _einsum("npqc,npjc->nqj", dy, _einsum("npi,nijc->npjc", down, images))
    (top, bottom), (left, right) = axes[0].corners(ddown), axes[1].corners(dacross)
    return dimage, apply_op("Pack", [top, left, bottom, right], axis=1), None, None


no_gradient(
    "CombinedNonMaxSuppression", "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3",
    "NonMaxSuppressionV4", "NonMaxSuppressionV5",
)  # fmt: skip
