"""Triangular systems by ``triangular_solve.h``: tiles of the unknowns, solved in registers."""

from __future__ import annotations

from typing import NamedTuple

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import KernelKind
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles
from cyxla.xla.cpu.linalg.vector_solve import MAX_COLUMNS, MIN_ROWS, vector_solve


class Form(NamedTuple):
    """Form of a system: ``op(a) x = b`` or, unless `left`, ``x op(a) = b``.

    Attributes
    ----------
    left, lower, transposed, unit : bool
        Attributes of triangular-solve.
    """

    left: bool
    lower: bool
    transposed: bool
    unit: bool

    @property
    def by_columns(self) -> bool:
        """True if the columns of the triangle are contiguous that is solved for columns of unknowns.

        The system ``x op(a) = b`` is solved as ``op(a)^T x^T = b^T``.
        """
        return self.transposed == self.left

    @property
    def backward(self) -> bool:
        """True if the last unknown is solved first."""
        return self.lower == self.by_columns


def triangular_solve(dtype: ElementType, n: int, columns: int, form: Form) -> Algorithm:
    """Return the algorithm of a system of `n` unknowns with `columns` right-hand sides, rows unless ``form.left``."""
    flags = {"COLUMNS": int(form.by_columns), "BACKWARD": int(form.backward), "UNIT": int(form.unit)}
    if columns <= MAX_COLUMNS and n >= MIN_ROWS:
        return vector_solve(dtype, n, columns, flags, left=form.left)
    tiles = Tiles.of(dtype, columns)
    panels, count = tiles.panels(columns), -(-n // tiles.rows)
    padded, size = tiles.padded(n), dtype.itemsize
    parts = max(panels, min(count, 16))
    parameters: dict[str, int | str] = {
        "WIDTH": tiles.width, "TILE_ROWS": tiles.rows, "N": n, "M": columns, "PADDED": padded, "PANELS": panels,
        "TILES": count, "PARTS": parts, "LEFT": int(form.left), **flags,
    }  # fmt: skip
    if not form.left:
        parameters["TRANSPOSE"] = tiles.transpose
    functions = ("copy", "update_tn", "solve") if form.left else ("update_tn", "solve")
    return Algorithm(
        KernelKind.TRIANGULAR_SOLVE, tiles, ("linalg/triangular_solve.h",), "SOLVE", parameters, functions,
        [(dtype, n * n), (dtype, n * columns)], [(dtype, n * columns)], 2, parts, n * n / 2 * panels * tiles.width,
        {"L": count * (count + 1) // 2 * tiles.rows**2 * size, "X": panels * padded * tiles.width * size},
    )  # fmt: skip
