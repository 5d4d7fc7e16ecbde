"""Parameters of the row-wise convolution, generated and prebuilt."""

from __future__ import annotations

from cyxla.xla.cpu.convolution.tile_parameters import each

RANK = 3  # of all; before dimensions that are there come those of one place
BLOCKS = 2  # kinds of blocks of features, at most
#: Places of a tile by its vectors, where there are 32 vector registers, and where there are 16.
PLACES = {32: {1: 14, 2: 12, 3: 8, 4: 6}, 16: {1: 10, 2: 6, 3: 4, 4: 4}}

#: What ``convolution_rows`` is told, in order; strides are in elements.
ROWS = (
    "x", "w", "out",  # the numbers of the buffers
    "rows", *each("space", RANK), "image_step", "group_step", *each("input", RANK), *each("reach", RANK),
    *each("stride", RANK), *each("low", RANK), *each("size", RANK), *each("dilation", RANK), *each("step", RANK),
    *each("weights", RANK),  # the last two of one place of the window
    "apart", "weights_start",  # input of neighbouring places; the first place of the window
    "depth", "features", "group_features", "pairs", "from", "to", "per_group",
    *each("first", BLOCKS), *each("pieces", BLOCKS), *each("vectors", BLOCKS), *each("together", BLOCKS),
    "units", "tasks",
)  # fmt: skip
