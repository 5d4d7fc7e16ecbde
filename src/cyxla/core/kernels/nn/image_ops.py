"""Colour conversion, resizing, cropping and non-maximum suppression."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.geometry.image_resizing import checked_size, grids
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import FLOATING, REAL, as_data_type
from cyxla.core.kernels.lib.non_max_suppression import NmsOptions, select_boxes
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]

_NARROW = (as_data_type("half"), as_data_type("float"))
_RESIZED = tuple(t for t in REAL if t.text not in ("uint32", "uint64"))


def _wide(images: Array) -> Array:
    """Convert to f32, keeping f64."""
    return images if images.dtype == np.float64 else images.astype(np.float32)


# --------------------------------------------------------------------------------------------------------- colours


def _check_colours(images: Array, scalar: Array, name: str) -> None:
    if images.ndim < 3:
        raise ShapeError(f"images must have rank 3 or more: height, width, channels; the shape is {list(images.shape)}")
    if scalar.ndim:
        raise ShapeError(f"{name} must be a scalar; its shape is {list(scalar.shape)}")


def _check_rgb(images: Array) -> None:
    if images.shape[-1] != 3:
        raise InvalidArgumentError(f"images must have 3 channels, red, green and blue; these have {images.shape[-1]}")


@array_kernel("AdjustContrastv2", types={"T": _NARROW})
def _adjust_contrast(images: Array, contrast_factor: Array) -> Array:
    _check_colours(images, contrast_factor, "contrast_factor")
    wide = images.astype(np.float32)
    if not wide.size:
        return images
    mean = wide.mean(axis=(-3, -2), keepdims=True, dtype=np.float64).astype(np.float32)
    return ((wide - mean) * contrast_factor + mean).astype(images.dtype)


def _hsv(images: Array) -> tuple[Array, Array, Array]:
    """Convert RGB to hue, saturation and value in [0, 1]; the hue of grey is 0."""
    red, green, blue = (images[..., k] for k in range(3))
    value = images.max(axis=-1)
    chroma = value - images.min(axis=-1)
    sixth = images.dtype.type(1 / 6)
    with np.errstate(all="ignore"):
        saturation = np.where(value > 0, chroma / value, 0)
        norm = sixth / chroma
        hue = np.where(
            red == value,
            norm * (green - blue),
            np.where(green == value, norm * (blue - red) + 2 * sixth, norm * (red - green) + 4 * sixth),
        )
    hue = np.where(chroma > 0, hue, 0)
    return np.where(hue < 0, hue + 1, hue), saturation, value


def _rgb(hue: Array, saturation: Array, value: Array) -> Array:
    """Convert HSV to RGB; a hue outside [0, 1] is not wrapped."""
    six = hue * 6
    parts = (np.abs(six - 3) - 1, 2 - np.abs(six - 2), 2 - np.abs(six - 4))
    return np.stack([(1 - saturation + saturation * np.clip(part, 0, 1)) * value for part in parts], axis=-1)


def _check_channels(images: Array) -> None:
    if not images.ndim:
        raise ShapeError("images must have channels as their last dimension; this is a scalar")
    if images.shape[-1] != 3:
        raise FailedPreconditionError(f"the last dimension must hold 3 channels; the shape is {list(images.shape)}")


@array_kernel("RGBToHSV", types={"T": FLOATING})
def _rgb_to_hsv(images: Array) -> Array:
    _check_channels(images)
    return np.stack(_hsv(_wide(images)), axis=-1).astype(images.dtype)


@array_kernel("HSVToRGB", types={"T": FLOATING})
def _hsv_to_rgb(images: Array) -> Array:
    _check_channels(images)
    wide = _wide(images)
    return _rgb(wide[..., 0], wide[..., 1], wide[..., 2]).astype(images.dtype)


@array_kernel("AdjustHue", types={"T": _NARROW})
def _adjust_hue(images: Array, delta: Array) -> Array:
    _check_colours(images, delta, "delta")
    _check_rgb(images)
    hue, saturation, value = _hsv(images.astype(np.float32))
    return _rgb(np.mod(hue + delta, 1), saturation, value).astype(images.dtype)


@array_kernel("AdjustSaturation", types={"T": _NARROW})
def _adjust_saturation(images: Array, scale: Array) -> Array:
    _check_colours(images, scale, "scale")
    _check_rgb(images)
    hue, saturation, value = _hsv(images.astype(np.float32))
    return _rgb(hue, np.clip(saturation * scale, 0, 1), value).astype(images.dtype)


# ----------------------------------------------------------------------------------------------------------- sizes


@array_kernel("ResizeBilinear", attrs=("align_corners", "half_pixel_centers"), types={"T": _RESIZED})
def _resize_bilinear(images: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool) -> Array:
    rows, columns = grids(images.shape[1:3], checked_size(images, size), align_corners, half_pixel_centers)
    wide = images.astype(np.float32)
    below, above, part = columns.linear()
    part = part[:, None]
    left, right = wide[:, :, below], wide[:, :, above]
    lines = left + (right - left) * part
    below, above, part = rows.linear()
    top, bottom = lines[:, below], lines[:, above]
    return np.asarray(top + (bottom - top) * part[:, None, None], np.float32)


def _check_gradients(grads: Array, original: Array) -> None:
    for name, operand in (("grads", grads), ("original_image", original)):
        if operand.ndim != 4:
            raise ShapeError(f"{name} must have rank 4; its shape is {list(operand.shape)}")
    if grads.shape[0] != original.shape[0] or grads.shape[3] != original.shape[3]:
        raise ShapeError(
            f"grads {list(grads.shape)} and original_image {list(original.shape)} differ in more than size"
        )


@array_kernel("ResizeBilinearGrad", attrs=("align_corners", "half_pixel_centers"), types={"T": FLOATING})
def _resize_bilinear_grad(grads: Array, original: Array, *, align_corners: bool, half_pixel_centers: bool) -> Array:
    _check_gradients(grads, original)
    rows, columns = grids(original.shape[1:3], grads.shape[1:3], align_corners, half_pixel_centers)
    wide = np.float64 if original.dtype == np.float64 else np.float32
    result = np.einsum("bhwc,hy,wx->byxc", grads.astype(wide), rows.weights(), columns.weights(), optimize=True)
    return np.asarray(result).astype(original.dtype)


def _interpolate(images: Array, down: Array, across: Array) -> Array:
    """Interpolate with weight matrices [out, size] of rows and columns."""
    lines = np.einsum("bhwc,xw->bhxc", images, across, optimize=True)
    return np.asarray(np.einsum("bhxc,yh->byxc", lines, down, optimize=True))


@array_kernel("ResizeBicubic", attrs=("align_corners", "half_pixel_centers"), types={"T": _RESIZED})
def _resize_bicubic(images: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool) -> Array:
    rows, columns = grids(images.shape[1:3], checked_size(images, size), align_corners, half_pixel_centers)
    return _interpolate(images.astype(np.float32), rows.cubic(), columns.cubic())


@array_kernel("ResizeBicubicGrad", attrs=("align_corners", "half_pixel_centers"), types={"T": FLOATING[2:]})
def _resize_bicubic_grad(grads: Array, original: Array, *, align_corners: bool, half_pixel_centers: bool) -> Array:
    _check_gradients(grads, original)
    rows, columns = grids(original.shape[1:3], grads.shape[1:3], align_corners, half_pixel_centers)
    return _interpolate(grads.astype(original.dtype), rows.cubic().T, columns.cubic().T).astype(
        original.dtype, copy=False
    )


@array_kernel("ResizeArea", attrs=("align_corners",), types={"T": _RESIZED})
def _resize_area(images: Array, size: Array, *, align_corners: bool) -> Array:
    rows, columns = grids(images.shape[1:3], checked_size(images, size), align_corners, False)
    if not rows.scale or not columns.scale:
        raise InvalidArgumentError(
            f"an image {list(images.shape)} has a side of one pixel, so its corners cannot be aligned"
        )
    return _interpolate(images.astype(np.float32), rows.area(), columns.area())


@array_kernel("ResizeNearestNeighbor", attrs=("align_corners", "half_pixel_centers"), types={"T": _RESIZED})
def _resize_nearest(images: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool) -> Array:
    rows, columns = grids(images.shape[1:3], checked_size(images, size), align_corners, half_pixel_centers)
    return images[:, rows.nearest()[:, None], columns.nearest()]


@array_kernel("ResizeNearestNeighborGrad", attrs=("align_corners", "half_pixel_centers"))
def _resize_nearest_grad(grads: Array, size: Array, *, align_corners: bool, half_pixel_centers: bool) -> Array:
    height, width = checked_size(grads, size)
    rows, columns = grids((height, width), grads.shape[1:3], align_corners, half_pixel_centers)
    result = np.zeros((grads.shape[0], height, width, grads.shape[3]), grads.dtype)
    index: Any = (slice(None), rows.nearest()[:, None], columns.nearest())
    np.add.at(result, index, grads)
    return result


# ----------------------------------------------------------------------------------------------------------- boxes


def _check_boxes(boxes: Array, scores: Array, **scalars: Array) -> list[float]:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"boxes must be a matrix of four columns; their shape is {list(boxes.shape)}")
    if scores.shape != boxes.shape[:1]:
        raise ShapeError(f"scores {list(scores.shape)} must hold one number for each of {boxes.shape[0]} boxes")
    for name, operand in scalars.items():
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    if "iou_threshold" in scalars and not 0 <= scalars["iou_threshold"] <= 1:
        raise InvalidArgumentError(f"iou_threshold must lie in [0, 1]; it is {scalars['iou_threshold']}")
    if scalars["max_output_size"] < 0:
        raise InvalidArgumentError(f"max_output_size must not be negative; it is {scalars['max_output_size']}")
    return [float(operand) for operand in scalars.values()]


@array_kernel("CombinedNonMaxSuppression", attrs=("pad_per_class", "clip_boxes"))
def _combined_nms(
    boxes: Array,
    scores: Array,
    max_per_class: Array,
    limit: Array,
    overlap: Array,
    min_score: Array,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> tuple[Array, Array, Array, Array]:
    """Suppress boxes per class, then keep the best of all classes of an image; unused entries are zeros."""
    classes = _check_combined(boxes, scores, max_per_class, limit, overlap, min_score)
    count, options = int(limit), NmsOptions(int(max_per_class), float(overlap), float(min_score))
    if pad_per_class:
        count = min(count, options.max_boxes * classes)
    batch = len(boxes)
    outputs = np.zeros((batch, count, 4), np.float32), np.zeros((batch, count), np.float32)
    numbers, valid = np.zeros((batch, count), np.float32), np.zeros(batch, np.int32)
    for b in range(batch):
        candidates = [
            (-score, c, k)
            for c in range(classes)
            for k, score in zip(*select_boxes(_class_boxes(boxes[b], c), scores[b, :, c], options), strict=True)
        ]
        best = sorted(candidates, key=lambda entry: entry[0])[:count]
        valid[b] = len(best)
        for i, (negated, c, k) in enumerate(best):
            outputs[0][b, i], outputs[1][b, i], numbers[b, i] = _class_boxes(boxes[b], c)[k], -negated, c
    return np.clip(outputs[0], 0, 1) if clip_boxes else outputs[0], outputs[1], numbers, valid


def _class_boxes(boxes: Array, c: int) -> Array:
    return np.asarray(boxes[:, c if boxes.shape[1] > 1 else 0])


def _check_combined(boxes: Array, scores: Array, *scalars: Array) -> int:
    if boxes.ndim != 4 or boxes.shape[3] != 4:
        raise ShapeError(f"boxes must have the shape [batch, boxes, classes or 1, 4]; it is {list(boxes.shape)}")
    if scores.ndim != 3 or scores.shape[:2] != boxes.shape[:2] or boxes.shape[2] not in (1, scores.shape[2]):
        raise ShapeError(f"scores {list(scores.shape)} must be [batch, boxes, classes] for boxes {list(boxes.shape)}")
    names = ("max_output_size_per_class", "max_total_size", "iou_threshold", "score_threshold")
    for name, x in zip(names, scalars, strict=True):
        if x.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(x.shape)}")
    for name, x in zip(names[:2], scalars, strict=False):
        if x <= 0:
            raise InvalidArgumentError(f"{name} must be positive; it is {x}")
    if not 0 <= scalars[2] <= 1:
        raise InvalidArgumentError(f"iou_threshold must lie in [0, 1]; it is {scalars[2]}")
    return int(scores.shape[2])


def _indices(selected: list[int]) -> Array:
    return np.array(selected, np.int32)


@array_kernel("NonMaxSuppression", attrs=("iou_threshold",))
def _nms(boxes: Array, scores: Array, max_output_size: Array, *, iou_threshold: float) -> Array:
    (limit,) = _check_boxes(boxes, scores, max_output_size=max_output_size)
    if not 0 <= iou_threshold <= 1:
        raise InvalidArgumentError(f"iou_threshold must lie in [0, 1]; it is {iou_threshold}")
    return _indices(select_boxes(boxes, scores, NmsOptions(int(limit), iou_threshold))[0])


@array_kernel("NonMaxSuppressionV2", types={"T": _NARROW})
def _nms_v2(boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array) -> Array:
    limit, overlap = _check_boxes(boxes, scores, max_output_size=max_output_size, iou_threshold=iou_threshold)
    return _indices(select_boxes(boxes, scores, NmsOptions(int(limit), overlap))[0])


@array_kernel("NonMaxSuppressionV3", types={"T": _NARROW})
def _nms_v3(boxes: Array, scores: Array, max_output_size: Array, iou_threshold: Array, score_threshold: Array) -> Array:
    limit, overlap, threshold = _check_boxes(
        boxes, scores, max_output_size=max_output_size, iou_threshold=iou_threshold, score_threshold=score_threshold
    )
    return _indices(select_boxes(boxes, scores, NmsOptions(int(limit), overlap, threshold))[0])


@array_kernel("NonMaxSuppressionV4", attrs=("pad_to_max_output_size",), types={"T": _NARROW})
def _nms_v4(
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Array, Array]:
    selected = _nms_v3(boxes, scores, max_output_size, iou_threshold, score_threshold)
    valid = np.array(len(selected), np.int32)
    return (_pad(selected, int(max_output_size)) if pad_to_max_output_size else selected), valid


@array_kernel("NonMaxSuppressionV5", attrs=("pad_to_max_output_size",), types={"T": _NARROW})
def _nms_v5(
    boxes: Array,
    scores: Array,
    max_output_size: Array,
    iou_threshold: Array,
    score_threshold: Array,
    soft_nms_sigma: Array,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Array, Array, Array]:
    limit, *rest = _check_boxes(
        boxes,
        scores,
        max_output_size=max_output_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        soft_nms_sigma=soft_nms_sigma,
    )
    if rest[-1] < 0:
        raise InvalidArgumentError(f"soft_nms_sigma must not be negative; it is {rest[-1]}")
    selected, scores_of_selected = select_boxes(boxes, scores, NmsOptions(int(limit), *rest))
    indices, best = _indices(selected), np.array(scores_of_selected, scores.dtype)
    if pad_to_max_output_size:
        indices, best = _pad(indices, int(limit)), _pad(best, int(limit))
    return indices, best, np.array(len(selected), np.int32)


def _pad(values: Array, size: int) -> Array:
    return np.pad(values, (0, max(size - len(values), 0)))


@array_kernel(
    "CropAndResize",
    attrs=("method", "extrapolation_value"),
    types={"T": tuple(t for t in REAL if t.text not in ("bfloat16", "uint32", "uint64"))},
)
def _crop_and_resize(
    image: Array, boxes: Array, box_ind: Array, crop_size: Array, *, method: str, extrapolation_value: float
) -> Array:
    """Crop boxes, given in relative coordinates, and resize them; outside pixels get the extrapolation value."""
    height, width = _checked_crop(image, boxes, box_ind, crop_size)
    result = np.full((len(boxes), height, width, image.shape[3]), extrapolation_value, np.float32)
    for out, box, k in zip(result, boxes.astype(np.float32), box_ind, strict=True):
        rows = _crop_coordinates(box[0], box[2], image.shape[1], height)
        columns = _crop_coordinates(box[1], box[3], image.shape[2], width)
        inside = [(at >= 0) & (at <= size - 1) for at, size in ((rows, image.shape[1]), (columns, image.shape[2]))]
        sample = _nearest if method == "nearest" else _bilinear
        crop = sample(image[k].astype(np.float32), rows[inside[0]], columns[inside[1]])
        out[np.ix_(*inside)] = crop
    return result


def _checked_crop(image: Array, boxes: Array, box_ind: Array, crop_size: Array) -> tuple[int, int]:
    if image.ndim != 4 or not image.shape[1] or not image.shape[2]:
        raise ShapeError(f"image must have rank 4 and pixels; its shape is {list(image.shape)}")
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"boxes must be a matrix of four columns; their shape is {list(boxes.shape)}")
    if box_ind.shape != boxes.shape[:1]:
        raise ShapeError(f"box_ind {list(box_ind.shape)} must hold one index for each of {len(boxes)} boxes")
    if crop_size.shape != (2,) or not (crop_size > 0).all():
        raise InvalidArgumentError(f"crop_size must be a positive height and width; it is {crop_size.tolist()}")
    bad = (box_ind < 0) | (box_ind >= image.shape[0])
    if bad.any():
        raise InvalidArgumentError(f"box_ind {box_ind[bad][0]} is out of range for {image.shape[0]} images")
    return int(crop_size[0]), int(crop_size[1])


def _crop_coordinates(start: Any, end: Any, size: int, out: int) -> Array:
    last = np.float32(size - 1)
    if out == 1:
        return np.array([np.float32(0.5) * (start + end) * last], np.float32)
    step = (end - start) * last / np.float32(out - 1)
    return np.asarray(start * last + np.arange(out, dtype=np.float32) * step, np.float32)


def _nearest(image: Array, rows: Array, columns: Array) -> Array:
    nearest = [np.floor(at + np.float32(0.5)).astype(np.intp) for at in (rows, columns)]
    return image[np.ix_(*nearest)]


def _bilinear(image: Array, rows: Array, columns: Array) -> Array:
    top, left = np.floor(rows).astype(np.intp), np.floor(columns).astype(np.intp)
    bottom, right = np.ceil(rows).astype(np.intp), np.ceil(columns).astype(np.intp)
    down, across = (rows - top)[:, None, None], (columns - left)[:, None]
    upper = image[np.ix_(top, left)] + (image[np.ix_(top, right)] - image[np.ix_(top, left)]) * across
    lower = image[np.ix_(bottom, left)] + (image[np.ix_(bottom, right)] - image[np.ix_(bottom, left)]) * across
    return np.asarray(upper + (lower - upper) * down, np.float32)
