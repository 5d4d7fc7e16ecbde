"""LU with partial pivoting by ``lu.h``: panels factored column by column, then the trailing rows updated in blocks."""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import KernelKind
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles


def lu(dtype: ElementType, m: int, n: int, with_info: bool) -> Algorithm:
    """Return the algorithm of L below U, the pivots, and a third result.

    Parameters
    ----------
    dtype : ElementType
        F32 or F64.
    m, n : int
        Rows and columns.
    with_info : bool
        LAPACK's convention: pivots count from 1, and the third result is the number of the first pivot that is zero.
        Otherwise pivots count from 0, and the third result is the order of the rows.
    """
    k = min(m, n)
    tiles = Tiles.of(dtype, n)
    panels, padded, width, size = tiles.panels(n), tiles.padded(m), tiles.width, dtype.itemsize
    steps = min(-(-k // width), panels - 1)  # phases that apply a panel
    third = (ElementType.S32, 1 if with_info else m)
    parameters: dict[str, int | str] = {
        "BITS": dtype.bits, "LANES": tiles.lanes, "WIDTH": width, "TILE_ROWS": tiles.rows, "M": m, "N": n, "K": k,
        "PADDED": padded, "PANELS": panels, "LAST_PHASE": steps + 1, "INFO": int(with_info),
    }  # fmt: skip
    return Algorithm(
        KernelKind.LU, tiles, ("linalg/lu.h",), "LU", parameters, ("copy", "update_nn", "solve_unit", "rank_1_update"),
        [(dtype, m * n)], [(dtype, m * n), (ElementType.S32, k), third], steps + 2, panels,
        (m - k / 3) * k * (n - k / 2) + m * k * width,
        {"ZERO": 8, "PIVOTS": 8 * k, "X": panels * padded * width * size, "L": 2 * padded * width * size},
    )  # fmt: skip
