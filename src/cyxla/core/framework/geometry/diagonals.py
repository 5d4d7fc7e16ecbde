"""Where diagonals of matrices lie in arrays that hold one diagonal a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Band:
    """Diagonals `lower` to `upper` of matrices; 0 is the main one, positive ones lie above it.

    Parameters
    ----------
    rows, columns : int
        Size of the matrices.
    lower, upper : int
        Numbers of the diagonals, both included.
    align : str
        On which side shorter diagonals stand in their row: ``"RIGHT_LEFT"`` puts those above the main one to the
        right, and those below it to the left.
    """

    rows: int
    columns: int
    lower: int
    upper: int
    align: str = "LEFT_LEFT"

    @property
    def longest(self) -> int:
        """Length of the longest diagonal, which is that of the rows that hold them."""
        return min(self.rows + min(self.upper, 0), self.columns - max(self.lower, 0))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what holds the diagonals of one matrix, from the uppermost down; a vector where there is but one."""
        return (self.longest,) if self.lower == self.upper else (self.upper - self.lower + 1, self.longest)

    def places(self) -> tuple[Array, Array, Array, Array]:
        """s64[n] each: row and column of an element in the matrix, and its row and column in what holds diagonals."""
        i, j = np.indices((self.rows, self.columns)).reshape(2, self.rows * self.columns)
        d = j - i
        inside = (d >= self.lower) & (d <= self.upper)
        i, j, d = i[inside], j[inside], d[inside]
        lengths = np.minimum(self.rows + np.minimum(d, 0), self.columns - np.maximum(d, 0))
        above, below = self.align.split("_")
        right = np.where(d >= 0, above == "RIGHT", below == "RIGHT")
        return i, j, self.upper - d, j - np.maximum(d, 0) + np.where(right, self.longest - lengths, 0)

    def taken(self, matrices: Array, padding: Any = 0) -> Array:
        """The diagonals of matrices [.., rows, columns]."""
        i, j, row, column = self.places()
        batch = matrices.shape[:-2]
        result = np.full((*batch, self.upper - self.lower + 1, self.longest), padding, matrices.dtype)
        result[..., row, column] = matrices[..., i, j]
        return result.reshape(*batch, *self.shape)

    def put(self, diagonals: Array, matrices: Array) -> Array:
        """Matrices [.., rows, columns] with other diagonals."""
        i, j, row, column = self.places()
        result = matrices.copy()
        held = diagonals.reshape(*matrices.shape[:-2], self.upper - self.lower + 1, self.longest)
        result[..., i, j] = held[..., row, column]
        return result


def limits_of(k: Array) -> tuple[int, int]:
    """The lowest and highest diagonal that k names.

    Raises
    ------
    ShapeError
        It is neither a scalar nor a vector of one or two numbers.
    InvalidArgumentError
        The first is above the second.
    """
    numbers = k.reshape(-1).tolist()
    if k.ndim > 1 or len(numbers) not in (1, 2):
        raise ShapeError(f"k must be a scalar or one or two numbers; its shape is {list(k.shape)}")
    if numbers[0] > numbers[-1]:
        raise InvalidArgumentError(f"the lowest diagonal must not be above the highest; k is {numbers}")
    return numbers[0], numbers[-1]


def band_of(matrices: Array, k: Array, align: str = "LEFT_LEFT") -> Band:
    """The diagonals k of matrices.

    Raises
    ------
    ShapeError
        The array does not hold matrices.
    InvalidArgumentError
        A diagonal lies outside of them.
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
    """The smallest matrices that diagonals fit in, or of the sizes given; -1 stands for what is not given.

    Raises
    ------
    ShapeError
        The diagonals are a scalar, or not as many as k says.
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
