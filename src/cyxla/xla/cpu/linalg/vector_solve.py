"""Triangular systems of one or two right-hand sides by ``vector_solve.h``, which reads the triangle once, in place."""

from __future__ import annotations

from collections.abc import Mapping

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import KernelKind
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles

MAX_COLUMNS = 2
MIN_ROWS = 65  # smaller systems waste little of a tile


def vector_solve(dtype: ElementType, n: int, columns: int, flags: Mapping[str, int], *, left: bool) -> Algorithm:
    """Return the algorithm of a system whose right-hand sides are columns if `left`, else rows.

    Parameters
    ----------
    dtype : ElementType
        F32 or F64.
    n, columns : int
        Numbers of unknowns and of right-hand sides.
    flags : mapping of str to int
        Parameters COLUMNS, BACKWARD and UNIT of the header.
    left : bool
        True if right-hand sides are columns.
    """
    tiles = Tiles.of(dtype, n)
    parameters: dict[str, int | str] = {
        "LANES": tiles.lanes, "N": n, "PADDED": tiles.padded(n), "STRIDE": columns if left else 1,
        "APART": 1 if left else n, **flags,
    }  # fmt: skip
    return Algorithm(
        KernelKind.TRIANGULAR_SOLVE, tiles, ("linalg/vector_solve.h",), "SOLVE", parameters, (),
        [(dtype, n * n), (dtype, n * columns)], [(dtype, n * columns)], 1, columns, 2 * n * n * columns,
        {"X": columns * tiles.padded(n) * dtype.itemsize},
    )  # fmt: skip
