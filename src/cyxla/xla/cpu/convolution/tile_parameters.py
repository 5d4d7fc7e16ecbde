"""Parameters of the tiled convolution, as structs that C and Python share."""

from __future__ import annotations

from functools import cache

from cyxla.xla.cpu.c.parameter_struct import ParameterStruct

#: Positions of a tile by its vectors, where there are 32 vector registers, and where there are 16.
POSITIONS = {32: {1: 8, 2: 8, 3: 8, 4: 7}, 16: {1: 8, 2: 6}}
PREBUILT_RANKS = (1, 2, 3)
MAX_RANK = 8  # of ``convolution_window.h``
MAX_DEPTH = 1 << 14  # input features, at most, of a prebuilt kernel: so many zeros stand for what lies outside


def tile_shapes(registers: int) -> list[tuple[int, int]]:
    """Return the prebuilt tiles, as positions and vectors, where there are so many vector registers."""
    return [(rows, vectors) for vectors, most in POSITIONS[registers].items() for rows in range(1, most + 1)]


def each(name: str, count: int) -> tuple[str, ...]:
    """Return the names of the members of a struct for each dimension, or for each kind of panel."""
    return tuple(f"{name}{d}" for d in range(count))


@cache
def convolution(rank: int) -> ParameterStruct:
    """Return the parameters of ``convolution.h`` for up to `rank` dimensions; strides are in elements."""
    of_dimensions = (
        "space", "stride", "padding",  # the result's size, and its windows
        "input_stride", "extent", "base_dilation",  # the input, whose extent counts what base dilation inserts
        "size", "dilation", "reversed",  # the window
    )  # fmt: skip
    return ParameterStruct((
        "input", "weights", "result",  # indices of the buffers
        "rank", "window",  # the latter is the index of the functions for this rank
        *(name for dimension in of_dimensions for name in each(dimension, rank)),
        "positions", "image_stride", "group_stride", "taps", "depth", "features", "group_features",
        "weights_stride", "packed",  # packed: weights come in panels
        "rows", "width", "chunk", "chunks", "per_group",  # rows: positions of a tile
        *(name for panel in ("first", "count", "columns", "skip", "tile") for name in each(panel, 3)),  # of each kind
        "block_taps", "block_depth", "blocks", "leaves", "units", "tasks",  # leaves: some window leaves the input
    ))  # fmt: skip


#: Taps and input features of a block, and whether sums are added to those of the block before.
BLOCK = ParameterStruct(("taps", "first", "depth", "adds"))
