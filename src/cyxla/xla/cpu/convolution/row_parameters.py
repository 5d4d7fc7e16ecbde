"""Parameters of the row-wise convolution, as a struct that C and Python share."""

from __future__ import annotations

from functools import cache

from cyxla.xla.cpu.c.parameter_struct import ParameterStruct
from cyxla.xla.cpu.convolution.tile_parameters import each

RANK = 3  # of prebuilt kernels; missing dimensions are leading ones of size 1
WIDTHS = 2  # limit on the widths of blocks of features
#: Positions of a tile by its vectors, with 32 vector registers and with 16.
POSITIONS = {32: {1: 14, 2: 12, 3: 8, 4: 6}, 16: {1: 10, 2: 6, 3: 4, 4: 4}}


def tile_shapes(registers: int) -> list[tuple[int, int, bool]]:
    """Return the prebuilt tiles for a number of registers: positions, vectors, and whether they are depthwise."""
    tiles = POSITIONS[registers].items()
    dense = [(positions, vectors, False) for vectors, most in tiles for positions in range(1, most + 1)]
    return dense + [(1, vectors, True) for vectors, _ in tiles]


@cache
def convolution_rows(rank: int) -> ParameterStruct:
    """Return the parameters of ``convolution_rows.h`` for `rank` dimensions; strides are in elements."""
    of_dimensions = (
        "space", "stride", "padding",  # the result's size, and its windows
        "input_stride", "extent", "base_dilation",  # the input; its extent includes base dilation
        "size", "dilation", "tap_stride", "weights_stride",  # the last two between taps, in the input and the weights
    )  # fmt: skip
    of_blocks = ("first", "count", "columns", "positions", "tile", "single")
    return ParameterStruct((
        "input", "weights", "result",  # indices of the buffers
        *(name for dimension in of_dimensions for name in each(dimension, rank)),
        "rows", "image_stride", "group_stride", "position_stride",  # the last between adjacent positions
        "first_tap", "depth", "features", "group_features", "depthwise", "per_group",
        "first_inside", "last_inside",  # positions of a row with windows inside the input
        *(name for block in of_blocks for name in each(block, WIDTHS)),
        "units", "tasks",
    ))  # fmt: skip
