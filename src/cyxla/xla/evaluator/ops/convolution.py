"""Convolution as a matrix product: every patch of the input is a row, every output feature of the kernel a column."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.numerics.products import accumulator, batched_product
from cyxla.xla.evaluator.numerics.window_views import is_unpadded, pad_window, patches, window_count
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, cut_to_common
from cyxla.xla.hlo.attributes import ConvDims, Window, WindowDim
from cyxla.xla.hlo.instruction import Instruction

# Largest number of elements of patches that are copied at once.
MAX_COPIED_ELEMENTS = 2**24


@evaluates("convolution")
def convolution(ev: Evaluation, ins: Instruction, lhs: Value, rhs: Value) -> Value:
    """Convolve the input with the kernel; see `convolve`."""
    attrs, labels = ins.attrs, ins.attrs["dim_labels"]
    x, kernel = array_of(lhs), array_of(rhs)
    if attrs["feature_group_count"] == 1 and (ins.operands[0].shape.is_dynamic or ins.operands[1].shape.is_dynamic):
        x, kernel = cut_to_common(x, kernel, [(labels.input_feature, labels.kernel_input_feature)])
    return convolve(
        x, kernel, attrs["window"] or (), labels, ins.shape.dtype,
        feature_groups=attrs["feature_group_count"], batch_groups=attrs["batch_group_count"],
    )  # fmt: skip


def convolve(
    lhs: Array,
    rhs: Array,
    window: Window,
    labels: ConvDims,
    result: ElementType,
    *,
    feature_groups: int = 1,
    batch_groups: int = 1,
) -> Array:
    """Cross-correlate an input with a kernel. Padding and holes contribute zero, whatever the weights.

    Parameters
    ----------
    lhs, rhs : array
        Input and kernel, with dimensions in the order of `labels`.
    window : Window
        Strides, padding, dilations and reversal, one entry for each spatial dimension.
    labels : ConvDims
        Dimension numbers of input, kernel and result.
    result : ElementType
        Type of the result; sums are in a type at least as wide.
    feature_groups : int
        Number of groups of input and output features that do not mix.
    batch_groups : int
        Number of groups of the batch, each with its own output features.

    Returns
    -------
    array
        The result, with dimensions in the order of `labels`.
    """
    # x[batch, feature, spatial..], k[output feature, input feature, spatial..]
    x = lhs.transpose(labels.input_batch, labels.input_feature, *labels.input_spatial)
    k = rhs.transpose(labels.kernel_output_feature, labels.kernel_input_feature, *labels.kernel_spatial)
    k = k[(slice(None), slice(None), *(slice(None, None, -1 if w.window_reversal else 1) for w in window))]
    positions = tuple(window_count(n, w) for n, w in zip(x.shape[2:], window, strict=True))
    groups, columns = feature_groups * batch_groups, k.shape[0] // (feature_groups * batch_groups)
    x = _split_groups(x, feature_groups, batch_groups)
    wide = accumulator(lhs, rhs, result, x.shape[0] * prod(positions) * k.size)
    if wide.is_float or wide.is_complex:
        x, k = (v.astype(wide.numpy_dtype, copy=False) for v in (x, k))
    kernel = k.reshape(groups, columns, prod(k.shape[1:])).transpose(0, 2, 1)
    every = (*(WindowDim(1) for _ in range(3)), *window)
    view = _windows(x, every, positions)
    if not is_unpadded(window) and kernel.dtype.kind in "fc" and not np.isfinite(kernel).all():
        inside = _windows(np.ones((1, 1, 1, *x.shape[3:]), np.bool_), every, positions)[0, 0, 0]
        out = convert_array(_multiply_inside(view, kernel, inside, len(positions), wide), result)
    else:
        out = convert_array(_multiply_rows(view, kernel, len(positions), wide), result)
    order = {labels.output_batch: 0, labels.output_feature: out.ndim - 1}
    order.update({d: n + 1 for n, d in enumerate(labels.output_spatial)})
    return np.ascontiguousarray(out.transpose([order[d] for d in range(out.ndim)]))


def _windows(x: Array, every: Window, positions: tuple[int, ...]) -> Array:
    """Return a view ``[batch, group, feature, positions.., window..]`` of an array, with zeros outside and in holes."""
    view = patches(pad_window(x, every, 0), every, (*x.shape[:3], *positions))
    one_element: Any = (*[slice(None)] * x.ndim, 0, 0, 0)  # the windows over batch, group and feature
    windows: Array = view[one_element]
    return windows


def _multiply_inside(view: Array, kernel: Array, inside: Array, spatial: int, wide: ElementType) -> Array:
    """Multiply tap by tap, and sum only products inside the input: padding times NaN or infinity contributes zero."""
    groups, _, columns = kernel.shape
    taps = kernel.reshape(groups, view.shape[2], *view.shape[3 + spatial :], columns)
    total: Any = 0
    for tap in np.ndindex(view.shape[3 + spatial :]):
        index: Any = (..., *([slice(None)] * spatial), *tap)
        part = view[(slice(None), slice(None), slice(None), *index[1:])]
        product = _multiply_rows(part, taps[(slice(None), slice(None), *tap)], spatial, wide)
        total = total + np.where(inside[index][..., None], product, 0)
    return np.asarray(total)


def _split_groups(x: Array, feature_groups: int, batch_groups: int) -> Array:
    """Reshape ``[batch, feature, spatial..]`` to ``[batch, group, feature, spatial..]``, with groups of either."""
    batch, features = x.shape[0] // batch_groups, x.shape[1] // feature_groups
    blocks = x.reshape(batch_groups, batch, feature_groups, features, *x.shape[2:])
    return np.moveaxis(blocks, 0, 1).reshape(batch, batch_groups * feature_groups, features, *x.shape[2:])


def _multiply_rows(view: Array, kernel: Array, spatial: int, result: ElementType) -> Array:
    """Multiply patches ``[batch, group, feature, positions.., window..]``; return ``[batch, positions.., feature]``."""
    batch, positions = view.shape[0], view.shape[3 : 3 + spatial]
    splittable = (0, *range(3, 3 + spatial))
    axis = max(splittable, key=lambda d: view.shape[d])
    if view.size > MAX_COPIED_ELEMENTS and view.shape[axis] > 1:
        half = view.shape[axis] // 2
        halves = (slice(None, half), slice(half, None))
        parts = [_multiply_rows(view[(*[slice(None)] * axis, cut)], kernel, spatial, result) for cut in halves]
        return np.concatenate(parts, axis=max(axis - 2, 0))
    order = (1, 0, *range(3, 3 + spatial), 2, *range(3 + spatial, view.ndim))
    groups, _, columns = kernel.shape
    rows = view.transpose(order).reshape(groups, batch * prod(positions), kernel.shape[1])
    product = batched_product(rows, kernel, result).reshape(groups, batch, *positions, columns)
    return np.moveaxis(product, 0, -2).reshape(batch, *positions, groups * columns)
