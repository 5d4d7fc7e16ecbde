"""Cholesky factors by ``cholesky.h``, one block row of the upper factor after the other."""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import KernelKind
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles


def cholesky(dtype: ElementType, n: int, lower: bool, with_info: bool = False) -> Algorithm:
    """Return the algorithm of the factor in its triangle.

    Parameters
    ----------
    dtype : ElementType
        F32 or F64.
    n : int
        Rows.
    lower : bool
        True if the lower triangle is read and written, else the upper.
    with_info : bool
        LAPACK's convention: the other triangle of the result is that of the operand, and a second result is the number
        of rows up to the first that could not be factored. Otherwise the other triangle is zero, and all of the result
        NaN if there is such a row.
    """
    tiles = Tiles.of(dtype, n)
    panels, padded = tiles.panels(n), tiles.padded(n)
    parameters: dict[str, int | str] = {
        "BITS": dtype.bits, "LANES": tiles.lanes, "WIDTH": tiles.width, "TILE_ROWS": tiles.rows, "N": n,
        "PADDED": padded, "PANELS": panels, "LOWER": int(lower), "INFO": int(with_info),
    }  # fmt: skip
    if lower:
        parameters["TRANSPOSE"] = tiles.transpose
    writes = [(dtype, n * n), (ElementType.S32, 1)] if with_info else [(dtype, n * n)]
    functions = ("update_tn", "solve") if lower else ("copy", "update_tn", "solve")
    return Algorithm(
        KernelKind.CHOLESKY, tiles, ("linalg/cholesky.h",), "CHOLESKY", parameters, functions, [(dtype, n * n)], writes,
        panels + 1, panels, n**3 / 6, {"FAILED": 8, "X": panels * padded * tiles.width * dtype.itemsize},
    )  # fmt: skip
