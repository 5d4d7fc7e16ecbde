"""Sampling positions and weights of image resizing, with TensorFlow's three alignments of pixel grids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Grid:
    """Grid of one image dimension, resized from `size` pixels to `out`; positions are f32, as in TensorFlow.

    Parameters
    ----------
    size, out : int
        Number of pixels before and after.
    align_corners : bool
        True if the centres of the first and last pixels coincide.
    half_pixel_centers : bool
        True if the position of a pixel is its centre instead of its corner.
    """

    size: int
    out: int
    align_corners: bool
    half_pixel_centers: bool

    @property
    def scale(self) -> np.float32:
        """Number of input pixels for each output pixel."""
        if self.align_corners and self.out > 1:
            return np.float32(self.size - 1) / np.float32(self.out - 1)
        return np.float32(self.size) / np.float32(self.out)

    def positions(self) -> Array:
        """Return f32[out]: position of each output pixel in the input."""
        pixel = np.arange(self.out, dtype=np.float32)
        if self.half_pixel_centers:
            return (pixel + np.float32(0.5)) * self.scale - np.float32(0.5)
        return pixel * self.scale

    def nearest(self) -> Array:
        """Return s64[out]: index of the nearest input pixel."""
        pixel = np.arange(self.out, dtype=np.float32)
        position = (pixel + np.float32(0.5) if self.half_pixel_centers else pixel) * self.scale
        # rounds half up: positions are not negative here
        index = np.floor(position + np.float32(0.5)) if self.align_corners else np.floor(position)
        clipped: Array = np.clip(index.astype(np.int64), 0, self.size - 1)
        return clipped

    def linear(self) -> tuple[Array, Array, Array]:
        """Return the indices s64[out] of the input pixels below and above each position, and the fraction f32[out]."""
        position = self.positions()
        floor = np.floor(position)
        below = np.maximum(floor.astype(np.int64), 0)
        above = np.minimum(np.ceil(position).astype(np.int64), self.size - 1)
        return below, above, (position - floor).astype(np.float32)

    def weights(self) -> Array:
        """Return f32[out, size]: weights of linear interpolation."""
        below, above, fraction = self.linear()
        matrix, rows = np.zeros((self.out, self.size), np.float32), np.arange(self.out)
        np.add.at(matrix, (rows, below), 1 - fraction)
        np.add.at(matrix, (rows, above), fraction)
        return matrix

    def cubic(self) -> Array:
        """Return f32[out, size]: weights of cubic interpolation from four neighbours.

        With half-pixel centres, weights beyond the edges are dropped; otherwise they are added to the edge pixels.
        """
        position = self.positions()
        first = np.floor(position).astype(np.int64)
        offset = np.rint((position - first.astype(np.float32)) * np.float32(_STEPS)).astype(np.int64)
        near_weights, far_weights = _spline(-0.5 if self.half_pixel_centers else -0.75)
        weights = np.stack(
            [far_weights[offset], near_weights[offset], near_weights[_STEPS - offset], far_weights[_STEPS - offset]],
            axis=1,
        )
        neighbours = first[:, None] + np.arange(-1, 3)
        pixels = np.clip(neighbours, 0, self.size - 1)
        if self.half_pixel_centers:
            weights = np.where(pixels == neighbours, weights, np.float32(0))
            total = weights.sum(axis=1, keepdims=True)
            weights = np.where(np.abs(total) >= 1000 * np.finfo(np.float32).tiny, weights / total, weights)
        matrix = np.zeros((self.out, self.size), np.float32)
        np.add.at(matrix, (np.arange(self.out)[:, None], pixels), weights)
        return matrix

    def area(self) -> Array:
        """Return f32[out, size]: fraction of each output pixel covered by each input pixel; rows sum to 1."""
        scale = self.scale
        start = np.arange(self.out, dtype=np.float32) * scale
        end = np.arange(1, self.out + 1, dtype=np.float32) * scale
        matrix = np.zeros((self.out, self.size), np.float32)
        for row, (low, high) in enumerate(zip(start, end, strict=True)):
            for i in range(int(np.floor(low)), int(np.ceil(high))):
                overlap = min(np.float32(i + 1), high) - max(np.float32(i), low)
                matrix[row, min(max(i, 0), self.size - 1)] += overlap
        return matrix / scale


_STEPS = 1024  # between two pixels; the spline is tabulated at these positions


def _spline(a: float) -> tuple[Array, Array]:
    """Return two f32[steps + 1] arrays: Keys' cubic kernel at distances of 0 .. 1 and 1 .. 2 pixels."""
    x = np.arange(_STEPS + 1, dtype=np.float32) / np.float32(_STEPS)
    near_weights = ((a + 2) * x.astype(np.float64) - (a + 3)) * x * x + 1
    y = x.astype(np.float64) + 1
    far_weights = ((a * y - 5 * a) * y + 8 * a) * y - 4 * a
    return near_weights.astype(np.float32), far_weights.astype(np.float32)


def grids(before: tuple[int, int], after: tuple[int, int], align: bool, half: bool) -> tuple[Grid, Grid]:
    """Return the grids of the height and the width.

    Raises
    ------
    InvalidArgumentError
        Both alignments are requested.
    """
    if align and half:
        raise InvalidArgumentError("align_corners and half_pixel_centers exclude each other", hint="set one of them")
    return Grid(before[0], after[0], align, half), Grid(before[1], after[1], align, half)


def checked_size(images: Array, size: Array) -> tuple[int, int]:
    """Return the new height and width.

    Raises
    ------
    ShapeError
        The images are not of rank 4, have no pixels, or the size is not two numbers.
    InvalidArgumentError
        A size is not positive.
    """
    if images.ndim != 4:
        raise ShapeError(f"images must have rank 4: batch, height, width, channels; the shape is {list(images.shape)}")
    if size.shape != (2,):
        raise ShapeError(f"size must hold a height and a width; its shape is {list(size.shape)}")
    height, width = (int(n) for n in size)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"the new size must be positive; it is {height} x {width}")
    if not images.shape[1] or not images.shape[2]:
        raise ShapeError(f"an image without pixels cannot be resized: {list(images.shape)}")
    return height, width
