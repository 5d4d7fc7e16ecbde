"""Channels-last convolutions and their gradients on NumPy arrays: one matrix product per tap of the kernel."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import Windows
from cyxla.core.framework.numeric_limits import wide_type

Array = np.ndarray[Any, Any]


def convolve(x: Array, kernel: Array, windows: Windows, groups: int = 1) -> Array:
    """Convolve x with a kernel.

    Parameters
    ----------
    x : [batch, *sizes, channels]
    kernel : [*window, channels / groups, results]
    windows : Windows
        Window geometry: strides, dilations, padding.
    groups : int
        Number of groups of channels; a group's results depend on its own channels only.

    Returns
    -------
    [batch, *out, results], of x's type.
    """
    wide = wide_type(x.dtype)
    padded = windows.padded(x).astype(wide, copy=False)
    result = np.zeros((x.shape[0], *windows.out, groups, kernel.shape[-1] // groups), wide)
    for tap, at in windows.taps():
        result += _product(
            _split_channels(padded[at], groups), _split_kernel(kernel[tap].astype(wide, copy=False), groups)
        )
    return result.reshape(*result.shape[:-2], kernel.shape[-1]).astype(x.dtype, copy=False)


def gradient_of_input(grad: Array, kernel: Array, windows: Windows, channels: int, groups: int = 1) -> Array:
    """Return the gradient of x, [batch, *sizes, channels], from that of the result, [batch, *out, results]."""
    wide = wide_type(grad.dtype)
    parts = _split_channels(grad.astype(wide, copy=False), groups)
    result = np.zeros((grad.shape[0], *windows.padded_sizes, groups, channels // groups), wide)
    for tap, at in windows.taps():
        transposed = _split_kernel(kernel[tap].astype(wide, copy=False), groups).transpose(0, 2, 1)
        result[at] += _product(parts, transposed)
    return windows.cropped(result.reshape(*result.shape[:-2], channels)).astype(grad.dtype, copy=False)


def gradient_of_kernel(x: Array, grad: Array, windows: Windows, groups: int = 1) -> Array:
    """Return the gradient of the kernel, [*window, channels / groups, results]."""
    wide = wide_type(x.dtype)
    padded = windows.padded(x).astype(wide, copy=False)
    parts = _split_channels(grad.astype(wide, copy=False), groups)
    results, inputs = grad.shape[-1], x.shape[-1] // groups
    kernel = np.zeros((*windows.kernel, inputs, results), wide)
    for tap, at in windows.taps():
        window = _split_channels(padded[at], groups)
        products = [_as_matrix(window[..., g, :]).T @ _as_matrix(parts[..., g, :]) for g in range(groups)]
        kernel[tap] = np.concatenate(products, axis=1)
    return kernel.astype(x.dtype, copy=False)


def _split_channels(x: Array, groups: int) -> Array:
    return x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)


def _split_kernel(kernel: Array, groups: int) -> Array:
    """Transpose [channels, results] to [groups, channels, results / groups]."""
    return kernel.reshape(kernel.shape[0], groups, kernel.shape[1] // groups).transpose(1, 0, 2)


def _as_matrix(x: Array) -> Array:
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def _product(x: Array, kernels: Array) -> Array:
    """Multiply [..., groups, channels] by [groups, channels, results]."""
    if len(kernels) == 1:
        return (_as_matrix(x) @ kernels[0]).reshape(*x.shape[:-1], kernels.shape[-1])
    if kernels.shape[1] == 1:  # depthwise: an element-wise product
        return np.asarray(x * kernels[:, 0])
    return np.einsum("...gi,gio->...go", x, kernels)
