"""Where the pixels of a resized image come from: TensorFlow's three ways to lay one grid over another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Grid:
    """One dimension of an image resized from `size` pixels to `out`; all places are f32, as in TensorFlow.

    Parameters
    ----------
    size, out : int
        Pixels before and after.
    align_corners : bool
        The centres of the first and last pixels coincide.
    half_pixel_centers : bool
        A pixel's place is its centre, not its corner.
    """

    size: int
    out: int
    align_corners: bool
    half_pixel_centers: bool

    @property
    def scale(self) -> np.float32:
        """Pixels before for one after."""
        if self.align_corners and self.out > 1:
            return np.float32(self.size - 1) / np.float32(self.out - 1)
        return np.float32(self.size) / np.float32(self.out)

    def places(self) -> Array:
        """f32[out]: where each pixel lies among those before."""
        at = np.arange(self.out, dtype=np.float32)
        if self.half_pixel_centers:
            return (at + np.float32(0.5)) * self.scale - np.float32(0.5)
        return at * self.scale

    def nearest(self) -> Array:
        """s64[out]: the pixel before that each pixel repeats."""
        at = np.arange(self.out, dtype=np.float32)
        place = (at + np.float32(0.5) if self.half_pixel_centers else at) * self.scale
        # Halves go up: places are never negative here.
        index = np.floor(place + np.float32(0.5)) if self.align_corners else np.floor(place)
        clipped: Array = np.clip(index.astype(np.int64), 0, self.size - 1)
        return clipped

    def linear(self) -> tuple[Array, Array, Array]:
        """s64[out] of the pixels below and above each place, and f32[out] of the way from one to the other."""
        place = self.places()
        floor = np.floor(place)
        below = np.maximum(floor.astype(np.int64), 0)
        above = np.minimum(np.ceil(place).astype(np.int64), self.size - 1)
        return below, above, (place - floor).astype(np.float32)

    def weights(self) -> Array:
        """f32[out, size]: what each pixel takes of each before."""
        below, above, part = self.linear()
        matrix, rows = np.zeros((self.out, self.size), np.float32), np.arange(self.out)
        np.add.at(matrix, (rows, below), 1 - part)
        np.add.at(matrix, (rows, above), part)
        return matrix

    def cubic(self) -> Array:
        """f32[out, size]: what each pixel takes of the four around its place, by a cubic spline.

        Half pixel centres leave out what lies beyond the edges; otherwise the pixels at the edges stand for it.
        """
        place = self.places()
        first = np.floor(place).astype(np.int64)
        offset = np.rint((place - first.astype(np.float32)) * np.float32(_STEPS)).astype(np.int64)
        near, far = _spline(-0.5 if self.half_pixel_centers else -0.75)
        taken = np.stack([far[offset], near[offset], near[_STEPS - offset], far[_STEPS - offset]], axis=1)
        wanted = first[:, None] + np.arange(-1, 3)
        pixels = np.clip(wanted, 0, self.size - 1)
        if self.half_pixel_centers:
            taken = np.where(pixels == wanted, taken, np.float32(0))
            total = taken.sum(axis=1, keepdims=True)
            taken = np.where(np.abs(total) >= 1000 * np.finfo(np.float32).tiny, taken / total, taken)
        matrix = np.zeros((self.out, self.size), np.float32)
        np.add.at(matrix, (np.arange(self.out)[:, None], pixels), taken)
        return matrix

    def area(self) -> Array:
        """f32[out, size]: which part of each pixel covers which before, all parts of one adding up to 1."""
        scale = self.scale
        start = np.arange(self.out, dtype=np.float32) * scale
        end = np.arange(1, self.out + 1, dtype=np.float32) * scale
        matrix = np.zeros((self.out, self.size), np.float32)
        for row, (low, high) in enumerate(zip(start, end, strict=True)):
            for i in range(int(np.floor(low)), int(np.ceil(high))):
                covered = min(np.float32(i + 1), high) - max(np.float32(i), low)
                matrix[row, min(max(i, 0), self.size - 1)] += covered
        return matrix / scale


_STEPS = 1024  # between two pixels; the spline is known at these places only


def _spline(a: float) -> tuple[Array, Array]:
    """f32[steps + 1] each: Keys' spline at 0 .. 1 and at 1 .. 2 pixels."""
    x = np.arange(_STEPS + 1, dtype=np.float32) / np.float32(_STEPS)
    near = ((a + 2) * x.astype(np.float64) - (a + 3)) * x * x + 1
    y = x.astype(np.float64) + 1
    far = ((a * y - 5 * a) * y + 8 * a) * y - 4 * a
    return near.astype(np.float32), far.astype(np.float32)


def grids(before: tuple[int, int], after: tuple[int, int], align: bool, half: bool) -> tuple[Grid, Grid]:
    """The grids of the height and the width.

    Raises
    ------
    InvalidArgumentError
        Both ways of laying the grids are asked for.
    """
    if align and half:
        raise InvalidArgumentError("align_corners and half_pixel_centers exclude each other", hint="set one of them")
    return Grid(before[0], after[0], align, half), Grid(before[1], after[1], align, half)


def checked_size(images: Array, size: Array) -> tuple[int, int]:
    """The new height and width.

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
