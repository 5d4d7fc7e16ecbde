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
        return np.clip(index.astype(np.int64), 0, self.size - 1)

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
