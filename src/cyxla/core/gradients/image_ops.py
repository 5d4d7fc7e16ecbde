"""Gradients of sizes of images."""

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
    """To the pixels each one was mixed from."""
    x = op.inputs[0]
    if x.dtype.text not in ("half", "bfloat16", "float", "double"):
        return None, None
    return apply_op("ResizeBilinearGrad", dy, x, **_grid(op)), None


@gradient("ResizeBilinearGrad")
def resize_bilinear_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """The images resized again."""
    return apply_op("ResizeBilinear", g, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeBicubic")
def resize_bicubic_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, None]:
    """To the pixels each one was mixed from."""
    x = op.inputs[0]
    if x.dtype.text not in ("float", "double"):
        return None, None
    return apply_op("ResizeBicubicGrad", dy, x, **_grid(op)), None


@gradient("ResizeBicubicGrad")
def resize_bicubic_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """The images resized again."""
    return apply_op("ResizeBicubic", g, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeNearestNeighbor")
def resize_nearest_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """To the pixels that were repeated."""
    return apply_op("ResizeNearestNeighborGrad", dy, _size(op.inputs[0]), **_grid(op)), None


@gradient("ResizeNearestNeighborGrad")
def resize_nearest_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """The images resized again."""
    return apply_op("ResizeNearestNeighbor", g, _size(op.inputs[0]), **_grid(op)), None


@gradient("RGBToHSV")
def rgb_to_hsv_grad(op: Any, dy: Tensor) -> Tensor:
    """Of value = most, saturation = 1 - least / most, hue = (turn + (next - last) / (most - least)) / 6.

    `most` and `least` are the first of a pixel's colours that are so; `next` and `last` follow the greatest in order.
    """
    rgb = op.inputs[0]
    most, least = (_first(choice, rgb) for choice in ("ArgMax", "ArgMin"))
    value = apply_op("Max", rgb, [-1], keep_dims=True)
    low = apply_op("Min", rgb, [-1], keep_dims=True)
    spread = value - low
    following = apply_op("Roll", rgb, -1, -1) - apply_op("Roll", rgb, -2, -1)
    numerator = apply_op("Sum", most * following, [-1], keep_dims=True)
    d_hue, d_saturation, d_value = apply_op("Split", -1, dy, num_split=3)
    d_numerator = _over(d_hue, spread * 6.0)
    d_spread = _over(d_numerator * numerator, spread)
    to_most = d_value + _over(d_saturation * low, apply_op("Square", value)) - d_spread
    to_least = d_spread - _over(d_saturation, value)
    neighbours = apply_op("Roll", most, 1, -1) - apply_op("Roll", most, 2, -1)
    return most * to_most + least * to_least + neighbours * d_numerator


def _first(choice: str, rgb: Tensor) -> Tensor:
    one, zero = (apply_op("Cast", n, DstT=rgb.dtype) for n in (1.0, 0.0))
    return apply_op("OneHot", apply_op(choice, rgb, -1), 3, one, zero, axis=-1)


def _over(x: Tensor, y: Tensor) -> Tensor:
    return apply_op("DivNoNan", x, y)


# Boxes ----------------------------------------------------------------------------------------------------------------
# A crop is a product of matrices: crops[n] = down[n] image[box_ind[n]] across[n]', each row of `down` and `across`
# holding the weights of the pixels that a place lies between; none where it lies outside.
def _einsum(equation: str, *operands: Tensor) -> Tensor:
    return apply_op("Einsum", list(operands), equation=equation)


class _Side:
    """The weights along one dimension of the image."""

    def __init__(self, boxes: Tensor, corner: int, pixels: Tensor, count: Tensor, nearest: bool) -> None:
        start, end = (apply_op("Slice", boxes, [0, d], [-1, 1]) for d in (corner, corner + 2))
        self.last = apply_op("Cast", pixels - 1, DstT="float")
        steps = apply_op("Cast", apply_op("Range", 0, count, 1), DstT="float")
        ends = apply_op("Cast", apply_op("Maximum", count - 1, 1), DstT="float")
        self.along = apply_op("SelectV2", apply_op("Equal", count, 1), 0.5, steps / ends)
        at = (start * (1.0 - self.along) + end * self.along) * self.last
        inside = apply_op("LogicalAnd", apply_op("GreaterEqual", at, 0.0), apply_op("LessEqual", at, self.last))
        self.inside = apply_op("ExpandDims", apply_op("Cast", inside, DstT="float"), -1)
        at = apply_op("Round", at) if nearest else at
        places = apply_op("Cast", apply_op("Range", 0, pixels, 1), DstT="float")
        self.apart = apply_op("ExpandDims", at, -1) - places
        self.weights = apply_op("Maximum", 1.0 - apply_op("Abs", self.apart), 0.0) * self.inside

    def corners(self, dweights: Tensor) -> tuple[Tensor, Tensor]:
        """What flows to both ends of each box."""
        near = apply_op("Cast", apply_op("Less", apply_op("Abs", self.apart), 1.0), DstT="float")
        slope = -apply_op("Sign", self.apart) * near * self.inside
        dat = apply_op("Sum", dweights * slope, [-1]) * self.last
        return apply_op("Sum", dat * (1.0 - self.along), [-1]), apply_op("Sum", dat * self.along, [-1])


@gradient("CropAndResize")
def crop_and_resize_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
    """To the pixels that each one was mixed from, and to the corners of the boxes, unless the nearest was taken."""
    image, boxes, numbers, size = op.inputs
    nearest = op.attr("method") in ("nearest", b"nearest")
    batch, *pixels = apply_op("Unpack", apply_op("Slice", apply_op("Shape", image), [0], [3]), num=3)
    sides = [_Side(boxes, d, pixels[d], apply_op("GatherV2", size, d, 0), nearest) for d in (0, 1)]
    down, across = (side.weights for side in sides)
    dimage = None
    if image.dtype.text in ("half", "float", "double"):
        parts = _einsum("nqj,niqc->nijc", across, _einsum("npi,npqc->niqc", down, dy))
        dimage = cast_like(apply_op("UnsortedSegmentSum", parts, numbers, batch), image)
    if nearest:
        return dimage, None, None, None
    seen = apply_op("Cast", apply_op("GatherV2", image, numbers, 0), DstT="float")
    ddown = _einsum("npqc,niqc->npi", dy, _einsum("nqj,nijc->niqc", across, seen))
    dacross = _einsum("npqc,npjc->nqj", dy, _einsum("npi,nijc->npjc", down, seen))
    (top, bottom), (left, right) = sides[0].corners(ddown), sides[1].corners(dacross)
    return dimage, apply_op("Pack", [top, left, bottom, right], axis=1), None, None


no_gradient(
    "CombinedNonMaxSuppression", "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3",
    "NonMaxSuppressionV4", "NonMaxSuppressionV5",
)  # fmt: skip
