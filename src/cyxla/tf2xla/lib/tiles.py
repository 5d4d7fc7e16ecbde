"""Splitting of arrays into tiles of equal size, and concatenation of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from cyxla.errors import ShapeError
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import rank_of, scalar, sizes_of


def split_tiles(x: XlaOp, counts: Sequence[int], paddings: Sequence[int]) -> list[XlaOp]:
    """Pad an array and split it into equal tiles, in row-major order.

    Raises
    ------
    ShapeError
        The padded sizes are not divisible.
    """
    pads = list(paddings) or [0] * len(counts)
    if not len(counts) == len(pads) == rank_of(x):
        raise ShapeError(f"{len(counts)} splits and {len(pads)} paddings for {list(sizes_of(x))}")
    padded = [n + p for n, p in zip(sizes_of(x), pads, strict=True)]
    if any(c <= 0 or n % c for n, c in zip(padded, counts, strict=True)):
        raise ShapeError(f"{padded} does not split into {list(counts)} equal tiles")
    padded_x = xla.pad(x, scalar(x, 0), [(0, p) for p in pads]) if any(pads) else x
    tile = [n // c for n, c in zip(padded, counts, strict=True)]
    corners = [[i * n for i, n in zip(tile_index, tile, strict=True)] for tile_index in product(*map(range, counts))]
    return [xla.slice_(padded_x, at, [a + n for a, n in zip(at, tile, strict=True)]) for at in corners]


def concatenate_tiles(tiles: Sequence[XlaOp], counts: Sequence[int], paddings: Sequence[int]) -> XlaOp:
    """Concatenate tiles along all dimensions, and crop the padding.

    Raises
    ------
    ShapeError
        The number of tiles or their rank does not fit.
    """
    pads, rank = list(paddings) or [0] * len(counts), rank_of(tiles[0])
    if not len(counts) == len(pads) == rank or prod(counts) != len(tiles):
        raise ShapeError(f"{len(tiles)} tiles of rank {rank} are not {list(counts)} tiles padded by {pads}")
    parts = list(tiles)
    for axis in reversed(range(rank)):
        width = counts[axis]
        parts = [xla.concatenate(parts[i : i + width], axis) for i in range(0, len(parts), width)]
    sizes = [n - p for n, p in zip(sizes_of(parts[0]), pads, strict=True)]
    return xla.slice_(parts[0], [0] * rank, sizes) if any(pads) else parts[0]
