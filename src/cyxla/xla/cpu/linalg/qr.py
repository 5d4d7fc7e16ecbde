"""QR by ``qr.h``, and products of Householder reflections by ``reflector_product.h``, both as block reflectors."""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import KernelKind
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles


def _parameters(tiles: Tiles, m: int, n: int, k: int, blocks: int, *, transpose: bool) -> dict[str, int | str]:
    return {
        "LANES": tiles.lanes, "WIDTH": tiles.width, "TILE_ROWS": tiles.rows, "M": m, "N": n, "K": k,
        "PADDED": tiles.padded(m), "BLOCKS": blocks, "TRANSPOSE": int(transpose),
    }  # fmt: skip


def _scratch(tiles: Tiles, m: int, n: int, blocks: int) -> dict[str, int]:
    width, size = tiles.width, tiles.dtype.itemsize
    panel = tiles.padded(m) * width * size
    return {"X": tiles.panels(n) * panel, "V": blocks * panel, "T": blocks * width * width * size}


def qr(dtype: ElementType, m: int, n: int) -> Algorithm:
    """Return the algorithm of R above the Householder vectors, and their factors, of a matrix of `m` rows."""
    k = min(m, n)
    tiles = Tiles.of(dtype, n)
    panels, blocks = tiles.panels(n), 2  # a panel is applied while the next one is factored
    steps = min(-(-k // tiles.width), panels - 1)  # phases that apply a panel
    products = (m - k / 3) * k * (2 * n - k) + m * k * tiles.width
    parameters = _parameters(tiles, m, n, k, blocks, transpose=True)
    return Algorithm(
        KernelKind.QR, tiles, ("linalg/block_reflector.h", "linalg/qr.h"), "QR",
        {**parameters, "PANELS": panels, "LAST_PHASE": steps + 1},
        ("copy", "update_tn", "update_nn", "gemv_t", "rank_1_update"),
        [(dtype, m * n)], [(dtype, m * n), (dtype, k)], steps + 2, panels, products, _scratch(tiles, m, n, blocks),
    )  # fmt: skip


def reflector_product(dtype: ElementType, m: int, n: int, k: int) -> Algorithm:
    """Return the algorithm of the first `n` columns of a product of `k` reflections of `m` rows, stored as by `qr`."""
    tiles = Tiles.of(dtype, n)
    blocks = max(-(-k // tiles.width), 1)
    return Algorithm(
        KernelKind.REFLECTORS, tiles, ("linalg/block_reflector.h", "linalg/reflector_product.h"), "QR",
        _parameters(tiles, m, n, k, blocks, transpose=False), ("copy", "update_tn", "update_nn"),
        [(dtype, m * n), (dtype, k)], [(dtype, m * n)], 2, tiles.panels(n), m * n * k * 3 / 2,
        _scratch(tiles, m, n, blocks),
    )  # fmt: skip
