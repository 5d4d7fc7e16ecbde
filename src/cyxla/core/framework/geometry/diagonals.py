"""Diagonals of matrices, and their packed form with one diagonal in each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Band:
    """Band of the diagonals `lower` to `upper` of matrices; 0 is the main diagonal, positive ones are above it.

    Parameters
    ----------
    rows, columns : int
        Size of the matrices.
    lower, upper : int
        Indices of the first and last diagonal, inclusive.
    align : str
        Alignment of shorter diagonals in their row: ``"RIGHT_LEFT"`` aligns superdiagonals to the right and
        subdiagonals to the left.
    """

    rows: int
    columns: int
    lower: int
    upper: int
    align: str = "LEFT_LEFT"

    @property
    def longest(self) -> int:
        """Length of the longest diagonal, and of the rows of the packed form."""
        return min(self.rows + min(self.upper, 0), self.columns - max(self.lower, 0))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the packed form of one matrix, uppermost diagonal first; a vector for a single diagonal."""
        return (self.longest,) if self.lower == self.upper else (self.upper - self.lower + 1, self.longest)

    def element_indices(self) -> tuple[Array, Array, Array, Array]:
        """Return s64[n] arrays: row and column of each element in the matrix, and row and column in the packed form."""
        i, j = np.indices((self.rows, self.columns)).reshape(2, self.rows * self.columns)
        d = j - i
        inside = (d >= self.lower) & (d <= self.upper)
        i, j, d = i[inside], j[inside], d[inside]
        lengths = np.minimum(self.rows + np.minimum(d, 0), self.columns - np.maximum(d, 0))
        above, below = self.align.split("_")
        right = np.where(d >= 0, above == "RIGHT", below == "RIGHT")
        return i, j, self.upper - d, j - np.maximum(d, 0) + np.where(right, self.longest - lengths, 0)

    def extract(self, matrices: Array, padding: Any = 0) -> Array:
        """Return the diagonals of matrices [.., rows, columns]."""
        i, j, row, column = self.element_indices()
        batch = matrices.shape[:-2]
        result = np.full((*batch, self.upper - self.lower + 1, self.longest), padding, matrices.dtype)
        result[..., row, column] = matrices[..., i, j]
        return result.reshape(*batch, *self.shape)

    def insert(self, diagonals: Array, matrices: Array) -> Array:
        """Return matrices [.., rows, columns] with diagonals replaced."""
        i, j, row, column = self.element_indices()
        result = matrices.copy()
        packed = diagonals.reshape(*matrices.shape[:-2], self.upper - self.lower + 1, self.longest)
        result[..., i, j] = packed[..., row, column]
        return result


def limits_of(k: Array) -> tuple[int, int]:
    """Return the lowest and highest diagonal given by k.

    Raises
    ------
    ShapeError
        `k` is neither a scalar nor a vector of one or two numbers.
    InvalidArgumentError
        The first index is greater than the second.
    """
    numbers = k.reshape(-1).tolist()
    if k.ndim > 1 or len(numbers) not in (1, 2):
        raise ShapeError(f"k must be a scalar or one or two numbers; its shape is {list(k.shape)}")
    if numbers[0] > numbers[-1]:
        raise InvalidArgumentError(f"the lowest diagonal must not be above the highest; k is {numbers}")
    return numbers[0], numbers[-1]


def band_of(matrices: Array, k: Array, align: str = "LEFT_LEFT") -> Band:
    """Return the band of the diagonals k of matrices.

    Raises
    ------
    ShapeError
        The rank of the array is below 2.
    InvalidArgumentError
        A diagonal is outside of the matrices.
    """
    if matrices.ndim < 2:
        raise ShapeError(f"the input must hold matrices; its shape is {list(matrices.shape)}")
    lower, upper = limits_of(k)
    rows, columns = matrices.shape[-2:]
    for d in (lower, upper):
        if d and not -rows < d < columns:
            raise InvalidArgumentError(f"there is no diagonal {d} in matrices of {rows} x {columns}")
    return Band(rows, columns, lower, upper, align)


def band_to_fill(diagonals: Array, k: Array, num_rows: Array, num_columns: Array, align: str) -> Band:
    """Return the band of matrices of given sizes, or, for sizes of -1, of the smallest that fit the diagonals.

    Raises
    ------
    ShapeError
        The diagonals are a scalar, or their number does not match k.
    InvalidArgumentError
        A size is too small.
    """
    lower, upper = limits_of(k)
    if diagonals.ndim < (1 if lower == upper else 2):
        raise ShapeError(f"the diagonals {lower} to {upper} in an array of shape {list(diagonals.shape)}")
    if lower != upper and diagonals.shape[-2] != upper - lower + 1:
        raise ShapeError(f"{diagonals.shape[-2]} diagonals for the numbers {lower} to {upper}")
    length = diagonals.shape[-1]
    least_rows, least_columns = length - min(upper, 0), length + max(lower, 0)
    rows, columns = (int(n.reshape(())) for n in (num_rows, num_columns))
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows, columns = (least_rows if rows == -1 else rows), (least_columns if columns == -1 else columns)
    if rows < least_rows or columns < least_columns:
        raise InvalidArgumentError(f"diagonals of {length} do not fit in {rows} x {columns}")
    if rows != least_rows and columns != least_columns:
        raise InvalidArgumentError(f"diagonals of {length} are too short for {rows} x {columns}")
    return Band(rows, columns, lower, upper, align)
