"""Colours, resizing and boxes."""

from cyxla.core.framework.op import op

op("AdjustContrastv2", "images: T, contrast_factor: float -> output: T", "T: {half, float} = DT_FLOAT", shape=None)
op("AdjustHue", "images: T, delta: float -> output: T", "T: {half, float} = DT_FLOAT", shape=None)
op("AdjustSaturation", "images: T, scale: float -> output: T", "T: {half, float} = DT_FLOAT", shape=None)
op("CombinedNonMaxSuppression",
    "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, iou_threshold: "
    "float, score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, "
    "valid_detections: int32", "pad_per_class: bool = false", "clip_boxes: bool = true", shape=None,
)  # fmt: skip
op("CropAndResize", "image: T, boxes: float, box_ind: int32, crop_size: int32 -> crops: float",
    "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
    "method: {'bilinear', 'nearest'} = 'bilinear'", "extrapolation_value: float = 0.0", shape=None,
)  # fmt: skip
op("HSVToRGB", "images: T -> output: T", "T: {half, bfloat16, float, double} = DT_FLOAT", shape=None)
op("NonMaxSuppression", "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
    "iou_threshold: float = 0.5", shape=None,
)  # fmt: skip
op("NonMaxSuppressionV2",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> selected_indices: int32",
    "T: {half, float} = DT_FLOAT", "T_threshold: {half, float} = DT_FLOAT", shape=None,
)  # fmt: skip
op("NonMaxSuppressionV3",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
    "selected_indices: int32", "T: {half, float} = DT_FLOAT", "T_threshold: {half, float} = DT_FLOAT", shape=None,
)  # fmt: skip
op("NonMaxSuppressionV4",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "
    "selected_indices: int32, valid_outputs: int32", "T: {half, float} = DT_FLOAT",
    "T_threshold: {half, float} = DT_FLOAT", "pad_to_max_output_size: bool = false", shape=None,
)  # fmt: skip
op("NonMaxSuppressionV5",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T -> "
    "selected_indices: int32, selected_scores: T, valid_outputs: int32", "T: {half, float} = DT_FLOAT",
    "pad_to_max_output_size: bool = false", shape=None,
)  # fmt: skip
op("RGBToHSV", "images: T -> output: T", "T: {half, bfloat16, float, double} = DT_FLOAT", shape=None)
op("ResizeArea", "images: T, size: int32 -> resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}", "align_corners: bool = false",
    shape=None,
)  # fmt: skip
op("ResizeBicubic", "images: T, size: int32 -> resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}", "align_corners: bool = false",
    "half_pixel_centers: bool = false", shape=None,
)  # fmt: skip
op("ResizeBicubicGrad", "grads: float, original_image: T -> output: T", "T: {float, double}",
    "align_corners: bool = false", "half_pixel_centers: bool = false", shape=None,
)  # fmt: skip
op("ResizeBilinear", "images: T, size: int32 -> resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}",
    "align_corners: bool = false", "half_pixel_centers: bool = false", shape=None,
)  # fmt: skip
op("ResizeBilinearGrad", "grads: float, original_image: T -> output: T", "T: {float, bfloat16, half, double}",
    "align_corners: bool = false", "half_pixel_centers: bool = false", shape=None,
)  # fmt: skip
op("ResizeNearestNeighbor", "images: T, size: int32 -> resized_images: T",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}", "align_corners: bool = false",
    "half_pixel_centers: bool = false", shape=None,
)  # fmt: skip
op("ResizeNearestNeighborGrad", "grads: T, size: int32 -> output: T",
    "T: {uint8, int8, int32, half, float, double, bfloat16}", "align_corners: bool = false",
    "half_pixel_centers: bool = false", shape=None,
)  # fmt: skip
