"""Colour conversion, resizing and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.image_resizing import Grid, checked_size, grids
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib.buffer_rows import read_row, write_row
from cyxla.tf2xla.lib.gather_scatter import gather_slices
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.loops import while_loop
from cyxla.xla.lib.values import (
    broadcast_to,
    full_like,
    iota_along,
    is_narrow,
    max_of,
    mean_of,
    min_of,
    rank_of,
    scalar,
    select,
    sizes_of,
    widened,
    zeros_like,
)

Array = np.ndarray[Any, Any]
_GRID = ("align_corners", "half_pixel_centers")


def _like(x: XlaOp) -> Array:
    return np.broadcast_to(np.zeros((), bool), sizes_of(x))


def _as_type_of(result: XlaOp, like: XlaOp) -> XlaOp:
    return xla.convert(result, like.shape.dtype) if is_narrow(like) else result


# --------------------------------------------------------------------------------------------------------- colours


def _check_images(images: XlaOp, number: XlaOp, name: str) -> None:
    if rank_of(images) < 3:
        raise ShapeError(f"images must have rank 3 or more; the shape is {list(sizes_of(images))}")
    if rank_of(number):
        raise ShapeError(f"{name} must be a scalar; its shape is {list(sizes_of(number))}")


@lowering("AdjustContrastv2")
def _adjust_contrast(images: XlaOp, factor: XlaOp) -> XlaOp:
    """Scale the distances from the mean of each channel."""
    _check_images(images, factor, "contrast_factor")
    wide, rank = widened(images), rank_of(images)
    mean = broadcast_to(mean_of(wide, [rank - 3, rank - 2], keep=True), sizes_of(wide))
    return _as_type_of((wide - mean) * broadcast_to(factor, sizes_of(wide)) + mean, images)


def _channels(x: XlaOp) -> list[XlaOp]:
    last = rank_of(x) - 1
    sizes = sizes_of(x)[:last]
    return [xla.reshape(xla.slice_in_dim(x, k, k + 1, 1, last), sizes) for k in range(3)]


def _stack(parts: list[XlaOp]) -> XlaOp:
    sizes = (*sizes_of(parts[0]), 1)
    return xla.concatenate([xla.reshape(p, sizes) for p in parts], len(sizes) - 1)


def _to_hsv(x: XlaOp) -> list[XlaOp]:
    """Convert RGB to hue, saturation and value in [0, 1]; the hue of grey is 0."""
    red, green, blue = _channels(x)
    value = xla.maximum(xla.maximum(red, green), blue)
    chroma = value - xla.minimum(xla.minimum(red, green), blue)
    zero = zeros_like(value)
    saturation = select(xla.gt(value, zero), chroma / value, zero)
    norm = full_like(chroma, 1 / 6) / chroma
    third = full_like(chroma, 1 / 3)
    from_green, from_blue = norm * (blue - red) + third, norm * (red - green) + third + third
    hue = select(xla.eq(red, value), norm * (green - blue), select(xla.eq(green, value), from_green, from_blue))
    hue = select(xla.gt(chroma, zero), hue, zero)
    return [select(xla.lt(hue, zero), hue + full_like(hue, 1), hue), saturation, value]


def _to_rgb(hue: XlaOp, saturation: XlaOp, value: XlaOp) -> list[XlaOp]:
    """Convert HSV to RGB: mix each channel's share of the hue with white, and multiply by the value."""
    six, one, two = hue * full_like(hue, 6), full_like(hue, 1), full_like(hue, 2)
    three, four = full_like(hue, 3), full_like(hue, 4)
    hue_parts = (xla.abs_(six - three) - one, two - xla.abs_(six - two), two - xla.abs_(six - four))
    zero, top = scalar(hue, 0), scalar(hue, 1)
    return [((one - saturation) + saturation * xla.clamp(zero, hue_part, top)) * value for hue_part in hue_parts]


def _check_channels(x: XlaOp) -> None:
    if not rank_of(x):
        raise ShapeError("images must have channels as their last dimension; this is a scalar")
    if sizes_of(x)[-1] != 3:
        raise FailedPreconditionError(f"the last dimension must hold 3 channels; the shape is {list(sizes_of(x))}")


@lowering("RGBToHSV")
def _rgb_to_hsv(images: XlaOp) -> XlaOp:
    _check_channels(images)
    return _as_type_of(_stack(_to_hsv(widened(images))), images)


@lowering("HSVToRGB")
def _hsv_to_rgb(images: XlaOp) -> XlaOp:
    _check_channels(images)
    return _as_type_of(_stack(_to_rgb(*_channels(widened(images)))), images)


def _check_rgb(images: XlaOp) -> None:
    if sizes_of(images)[-1] != 3:
        raise InvalidArgumentError(f"images must have 3 channels; these have {sizes_of(images)[-1]}")


@lowering("AdjustHue")
def _adjust_hue(images: XlaOp, delta: XlaOp) -> XlaOp:
    """Rotate the hue."""
    _check_images(images, delta, "delta")
    _check_rgb(images)
    hue, saturation, value = _to_hsv(widened(images))
    shifted_hue = hue + broadcast_to(xla.convert(delta, hue.shape.dtype), sizes_of(hue))
    return _as_type_of(_stack(_to_rgb(shifted_hue - xla.floor(shifted_hue), saturation, value)), images)


@lowering("AdjustSaturation")
def _adjust_saturation(images: XlaOp, scale: XlaOp) -> XlaOp:
    _check_images(images, scale, "scale")
    _check_rgb(images)
    hue, saturation, value = _to_hsv(widened(images))
    scaled = saturation * broadcast_to(xla.convert(scale, saturation.shape.dtype), sizes_of(saturation))
    return _as_type_of(_stack(_to_rgb(hue, xla.clamp(scalar(scaled, 0), scaled, scalar(scaled, 1)), value)), images)


# -------------------------------------------------------------------------------------------------------- resizing


def _interpolate(x: XlaOp, grid: Grid, axis: int) -> XlaOp:
    """Interpolate along an axis between two gathers with constant indices."""
    below, above, part = grid.linear()
    shape = [len(part) if d == axis else 1 for d in range(rank_of(x))]
    low, high = (gather_slices(x, xla.constant(x.builder, indices), axis) for indices in (below, above))
    weight = xla.constant(x.builder, part.reshape(shape))
    return low + (high - low) * broadcast_to(weight, sizes_of(low))


@lowering("ResizeBilinear", attrs=_GRID, const=("size",))
def _resize_bilinear(images: XlaOp, size: Array, *, align_corners: bool, half_pixel_centers: bool) -> XlaOp:
    after = checked_size(_like(images), size)
    rows, columns = grids(sizes_of(images)[1:3], after, align_corners, half_pixel_centers)  # type: ignore[arg-type]
    return _interpolate(_interpolate(xla.convert(images, ElementType.F32), columns, 2), rows, 1)


@lowering("ResizeBilinearGrad", attrs=_GRID)
def _resize_bilinear_grad(grads: XlaOp, original: XlaOp, *, align_corners: bool, half_pixel_centers: bool) -> XlaOp:
    """Multiply by constant weight matrices of rows and columns."""
    if rank_of(grads) != 4 or rank_of(original) != 4:
        raise ShapeError(
            f"grads {list(sizes_of(grads))} and original_image {list(sizes_of(original))} must have rank 4"
        )
    before, after = sizes_of(original)[1:3], sizes_of(grads)[1:3]
    rows, columns = grids(before, after, align_corners, half_pixel_centers)  # type: ignore[arg-type]
    wide = ElementType.F64 if original.shape.dtype is ElementType.F64 else ElementType.F32
    result = xla.convert(grads, wide)
    for grid, axis in ((rows, 1), (columns, 2)):
        weights = xla.convert(xla.constant(grads.builder, grid.weights()), wide)
        computed = xla.dot_general(result, weights, lhs_contracting_dims=(axis,), rhs_contracting_dims=(0,))
        order = [0, 3, 1, 2] if axis == 1 else [0, 1, 3, 2]
        result = xla.transpose(computed, order)
    return xla.convert(result, original.shape.dtype)


@lowering("ResizeNearestNeighbor", attrs=_GRID, const=("size",))
def _resize_nearest(images: XlaOp, size: Array, *, align_corners: bool, half_pixel_centers: bool) -> XlaOp:
    """Gather the nearest pixels."""
    after = checked_size(_like(images), size)
    rows, columns = grids(sizes_of(images)[1:3], after, align_corners, half_pixel_centers)  # type: ignore[arg-type]
    lines = gather_slices(images, xla.constant(images.builder, rows.nearest()), 1)
    return gather_slices(lines, xla.constant(images.builder, columns.nearest()), 2)


@lowering("ResizeNearestNeighborGrad", attrs=_GRID, const=("size",))
def _resize_nearest_grad(grads: XlaOp, size: Array, *, align_corners: bool, half_pixel_centers: bool) -> XlaOp:
    """Sum the gradients of copies of a pixel, by products with 0/1 matrices."""
    height, width = checked_size(_like(grads), size)
    rows, columns = grids((height, width), sizes_of(grads)[1:3], align_corners, half_pixel_centers)  # type: ignore[arg-type]
    result = widened(grads)
    for grid, axis, count in ((rows, 1, height), (columns, 2, width)):
        hits = (grid.nearest()[:, None] == np.arange(count)).astype(np.float64)
        weights = xla.convert(xla.constant(grads.builder, hits), result.shape.dtype)
        computed = xla.dot_general(result, weights, lhs_contracting_dims=(axis,), rhs_contracting_dims=(0,))
        result = xla.transpose(computed, [0, 3, 1, 2] if axis == 1 else [0, 1, 3, 2])
    return _as_type_of(result, grads)


# ----------------------------------------------------------------------------------------- non-maximum suppression


@dataclass(frozen=True)
class _Boxes:
    """Corners and areas of boxes, each an f32 vector with an element per box."""

    low: tuple[XlaOp, XlaOp]
    high: tuple[XlaOp, XlaOp]
    areas: XlaOp

    @classmethod
    def of(cls, boxes: XlaOp) -> _Boxes:
        """Return the boxes of a matrix whose rows are two opposite corners."""
        (y0, y1), (x0, x1) = _corners(boxes)
        low, high = (xla.minimum(y0, y1), xla.minimum(x0, x1)), (xla.maximum(y0, y1), xla.maximum(x0, x1))
        return cls(low, high, (high[0] - low[0]) * (high[1] - low[1]))

    @property
    def parts(self) -> list[XlaOp]:
        """The vectors, as `of_parts` takes them."""
        return [*self.low, *self.high, self.areas]

    @classmethod
    def of_parts(cls, parts: Sequence[XlaOp]) -> _Boxes:
        """Return the boxes that have these parts."""
        return cls((parts[0], parts[1]), (parts[2], parts[3]), parts[4])

    def at(self, index: XlaOp) -> _Boxes:
        """Return one box, repeated as often as there are boxes."""
        count = sizes_of(self.areas)[0]
        return _Boxes.of_parts([broadcast_to(read_row(v, index), (count,)) for v in self.parts])

    def overlap_ratios(self, other: _Boxes) -> XlaOp:
        """Return the intersections with other boxes divided by the unions; 0 for boxes without an area."""
        zero = zeros_like(self.areas)
        sides = [
            xla.maximum(xla.minimum(other.high[k], self.high[k]) - xla.maximum(other.low[k], self.low[k]), zero)
            for k in (0, 1)
        ]
        intersections = sides[0] * sides[1]
        is_empty = xla.or_(xla.le(self.areas, zero), xla.le(other.areas, zero))
        return select(is_empty, zero, intersections / (self.areas + other.areas - intersections))


def _select_boxes(boxes: XlaOp, scores: XlaOp, limit: int, overlap: XlaOp, min_score: XlaOp) -> list[XlaOp]:
    """Return the indices of `limit` boxes, best first, and the number of valid ones.

    Each iteration of a loop selects the best remaining box and suppresses those that overlap it.
    """
    boxes, scores = xla.convert(boxes, ElementType.F32), xla.convert(scores, ElementType.F32)
    (count,), builder = sizes_of(scores), scores.builder
    choices, valid = (xla.constant(builder, np.zeros(shape, np.int32)) for shape in ((limit,), ()))
    if not count or not limit:
        return [choices, valid]
    threshold = broadcast_to(xla.convert(min_score, ElementType.F32), (count,))
    remaining = select(xla.gt(scores, threshold), scores, full_like(scores, -np.inf))
    bound = broadcast_to(xla.convert(overlap, ElementType.F32), (count,))
    start = [choices, valid, _index_of_best(remaining), remaining, bound, *_Boxes.of(boxes).parts]
    return while_loop(_finds_another_box, _select_box, start)[:2]


def _index_of_best(scores: XlaOp) -> XlaOp:
    """Return the first index of the greatest score; the number of scores if all are -inf."""
    (count,) = sizes_of(scores)
    indices = iota_along(scores.builder, ElementType.S32, (count,), 0)
    best = broadcast_to(max_of(scores, [0]), (count,))
    is_best = xla.and_(xla.eq(scores, best), xla.gt(scores, full_like(scores, -np.inf)))
    return min_of(select(is_best, indices, full_like(indices, count)), [0])


def _finds_another_box(state: list[XlaOp]) -> XlaOp:
    choices, valid, index, remaining = state[:4]
    (limit,), (count,) = sizes_of(choices), sizes_of(remaining)
    return xla.and_(xla.lt(valid, scalar(valid, limit)), xla.lt(index, scalar(index, count)))


def _select_box(state: list[XlaOp]) -> list[XlaOp]:
    """Append the best remaining box to the choices, and suppress it and those that overlap it."""
    choices, valid, index, remaining, bound, *parts = state
    boxes, (count,) = _Boxes.of_parts(parts), sizes_of(remaining)
    is_selected = xla.eq(iota_along(index.builder, ElementType.S32, (count,), 0), broadcast_to(index, (count,)))
    is_suppressed = xla.or_(is_selected, xla.gt(boxes.overlap_ratios(boxes.at(index)), bound))
    remaining = select(is_suppressed, full_like(remaining, -np.inf), remaining)
    choices = write_row(choices, valid, index)
    return [choices, valid + scalar(valid, 1), _index_of_best(remaining), remaining, bound, *parts]


def _corners(boxes: XlaOp) -> list[tuple[XlaOp, XlaOp]]:
    parts = [xla.reshape(xla.slice_in_dim(boxes, k, k + 1, 1, 1), sizes_of(boxes)[:1]) for k in range(4)]
    return [(parts[0], parts[2]), (parts[1], parts[3])]


@lowering("NonMaxSuppressionV4", attrs=("pad_to_max_output_size",), const=("max_output_size",))
def _nms_v4(
    boxes: XlaOp, scores: XlaOp, limit: Array, overlap: XlaOp, min_score: XlaOp, *, pad_to_max_output_size: bool
) -> list[XlaOp]:
    size = int(limit)
    if size < 0:
        raise InvalidArgumentError(f"max_output_size must not be negative; it is {size}")
    indices, valid = _select_boxes(boxes, scores, size, overlap, min_score)
    if not pad_to_max_output_size:
        indices = xla.set_dimension_size(indices, valid, 0)
    return [indices, valid]


@lowering("NonMaxSuppressionV3", const=("max_output_size",))
def _nms_v3(boxes: XlaOp, scores: XlaOp, limit: Array, overlap: XlaOp, min_score: XlaOp) -> XlaOp:
    return _nms_v4(boxes, scores, limit, overlap, min_score, pad_to_max_output_size=False)[0]
