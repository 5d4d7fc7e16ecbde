"""Colour conversion, resizing and boxes."""

from __future__ import annotations

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import unchanged_shape_with_rank_at_least
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import Dim
from cyxla.errors import ShapeError


def _color_shape(c: InferenceContext) -> None:
    """Check that the last dimension has three channels."""
    x = c.with_rank_at_least(c.input(0), 1)
    if x.rank is not None:
        x = c.replace_dim(x, -1, c.with_value(x[-1], 3))
    c.set_output(0, x)


def _size(c: InferenceContext, i: int) -> tuple[Dim, Dim]:
    """Return the height and width held by an input."""
    c.merge_dim(c.with_rank(c.input(i), 1)[0], 2)
    value = c.input_tensor(i)
    if value is None:
        return None, None
    if (value < 0).any():
        raise ShapeError(f"{c.op_def.name}: a size is negative: {value.tolist()}")
    return int(value[0]), int(value[1])


def _resize_shape(c: InferenceContext) -> None:
    """Replace height and width, keeping batch and channels."""
    x = c.with_rank(c.input(0), 4)
    c.set_output(0, (x[0], *_size(c, 1), x[3]))


def _resize_grad_shape(c: InferenceContext) -> None:
    """Set the shape of the original image."""
    c.set_output(0, c.with_rank(c.input(1), 4))


def _crop_shape(c: InferenceContext) -> None:
    """Set one crop per box."""
    x, boxes = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 2)
    c.merge_dim(boxes[1], 4)
    count = c.merge_dim(boxes[0], c.with_rank(c.input(2), 1)[0])
    c.set_output(0, (count, *_size(c, 3), x[3]))


def _check_boxes(c: InferenceContext) -> None:
    boxes, scores = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    c.merge_dim(boxes[0], scores[0])
    c.merge_dim(boxes[1], 4)
    for i in range(2, c.num_inputs):
        c.with_rank(c.input(i), 0)


def _suppression_shape(c: InferenceContext) -> None:
    """Set the selected boxes and their scores; their number is known only with padding."""
    _check_boxes(c)
    pad = c.op_def.find_attr("pad_to_max_output_size") and c.attr("pad_to_max_output_size")
    count = c.make_dim_for_scalar_input(2) if pad else None
    for i, arg in enumerate(c.op_def.output_arg):
        c.set_output(i, () if arg.name == "valid_outputs" else (count,))


def _combined_suppression_shape(c: InferenceContext) -> None:
    """Set boxes, scores, classes and number of valid boxes, per image."""
    boxes, scores = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
    batch = c.merge_dim(boxes[0], scores[0])
    c.with_value(boxes[3], 4)
    count = c.make_dim_for_scalar_input(3)
    if c.attr("pad_per_class"):
        count = c.min(count, c.multiply(c.make_dim_for_scalar_input(2), scores[2]))
    c.set_output(0, (batch, count, 4))
    c.set_output(1, (batch, count))
    c.set_output(2, (batch, count))
    c.set_output(3, (batch,))


op("AdjustContrastv2", "images: T, contrast_factor: float -> output: T", "T: {half, float} = DT_FLOAT",
    shape=unchanged_shape_with_rank_at_least(3), doc="Scale the distance of each channel from its mean.",
)  # fmt: skip
op("AdjustHue", "images: T, delta: float -> output: T", "T: {half, float} = DT_FLOAT",
    shape=unchanged_shape_with_rank_at_least(3), doc="Rotate the hue.",
)  # fmt: skip
op("AdjustSaturation", "images: T, scale: float -> output: T", "T: {half, float} = DT_FLOAT",
    shape=unchanged_shape_with_rank_at_least(3), doc="Scale the saturation.",
)  # fmt: skip
op("CombinedNonMaxSuppression",
    "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, iou_threshold: "
    "float, score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, "
    "valid_detections: int32", "pad_per_class: bool = false", "clip_boxes: bool = true",
    shape=_combined_suppression_shape,
    doc="Select the best boxes of each class by non-maximum suppression, for each image of a batch.",
)  # fmt: skip
op("CropAndResize", "image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float",
    "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
    "method: {'bilinear', 'nearest'} = 'bilinear'", "extrapolation_value: float = 0.0", shape=_crop_shape,
    doc="Crop boxes from images and resize them.",
)  # fmt: skip
op("HSVToRGB", "images: T -> output: T", "T: {half, bfloat16, float, double} = DT_FLOAT", shape=_color_shape,
    doc="Convert hue, saturation and value to red, green and blue.",
)  # fmt: skip
op("NonMaxSuppression", "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
    "iou_threshold: float = 0.5", shape=_suppression_shape, doc="Select boxes by non-maximum suppression.",
)  # fmt: skip
op("NonMaxSuppressionV2",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> selected_indices: int32",
    "T: {half, float} = DT_FLOAT", "T_threshold: {half, float} = DT_FLOAT", shape=_suppression_shape,
    doc="Select boxes by non-maximum suppression with a threshold operand.",
)  # fmt: skip
op("NonMaxSuppressionV3",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
    "selected_indices: int32", "T: {half, float} = DT_FLOAT", "T_threshold: {half, float} = DT_FLOAT",
    shape=_suppression_shape, doc="Select boxes above a score by non-maximum suppression.",
)  # fmt: skip
op("NonMaxSuppressionV4",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
    "selected_indices: int32, valid_outputs: int32", "T: {half, float} = DT_FLOAT",
    "T_threshold: {half, float} = DT_FLOAT", "pad_to_max_output_size: bool = false", shape=_suppression_shape,
    doc="Select boxes above a score by non-maximum suppression, padded on request.",
)  # fmt: skip
op("NonMaxSuppressionV5",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T -> "
    "selected_indices: int32, selected_scores: T, valid_outputs: int32", "T: {half, float} = DT_FLOAT",
    "pad_to_max_output_size: bool = false", shape=_suppression_shape,
    doc="Select boxes by soft non-maximum suppression, in which overlaps lower the scores.",
)  # fmt: skip
op("RGBToHSV", "images: T -> output: T", "T: {half, bfloat16, float, double} = DT_FLOAT", shape=_color_shape,
    doc="Convert red, green and blue to hue, saturation and value.",
)  # fmt: skip
op("ResizeArea", "images: T, size: int32 -> resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}", "align_corners: bool = false",
    shape=_resize_shape, doc="Resize images; each pixel is the mean over its area.",
)  # fmt: skip
op("ResizeBicubic", "images: T, size: int32 -> resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}", "align_corners: bool = false",
    "half_pixel_centers: bool = false", shape=_resize_shape, doc="Resize images by bicubic interpolation.",
)  # fmt: skip
op("ResizeBicubicGrad", "grads: float, original_image: T -> output: T", "T: {float, double}",
    "align_corners: bool = false", "half_pixel_centers: bool = false", shape=_resize_grad_shape,
    doc="Compute the gradient of ResizeBicubic.",
)  # fmt: skip
op("ResizeBilinear", "images: T, size: int32 -> resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}",
    "align_corners: bool = false", "half_pixel_centers: bool = false", shape=_resize_shape,
    doc="Resize images by bilinear interpolation.",
)  # fmt: skip
op("ResizeBilinearGrad", "grads: float, original_image: T -> output: T", "T: {float, bfloat16, half, double}",
    "align_corners: bool = false", "half_pixel_centers: bool = false", shape=_resize_grad_shape,
    doc="Compute the gradient of ResizeBilinear.",
)  # fmt: skip
op("ResizeNearestNeighbor", "images: T, size: int32 -> resized_images: T",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}", "align_corners: bool = false",
    "half_pixel_centers: bool = false", shape=_resize_shape, doc="Resize images; each pixel is its nearest neighbour.",
)  # fmt: skip
op("ResizeNearestNeighborGrad", "grads: T, size: int32 -> output: T",
    "T: {uint8, int8, int32, half, float, double, bfloat16}", "align_corners: bool = false",
    "half_pixel_centers: bool = false", shape=_resize_shape, doc="Compute the gradient of ResizeNearestNeighbor.",
)  # fmt: skip
