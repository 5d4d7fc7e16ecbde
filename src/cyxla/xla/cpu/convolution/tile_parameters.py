"""Parameters of the tiled convolution, generated and prebuilt."""

from __future__ import annotations

#: Places of a tile by its vectors, where there are 32 vector registers, and where there are 16.
PLACES = {32: {1: 8, 2: 8, 3: 8, 4: 7}, 16: {1: 8, 2: 6}}
RANKS = (1, 2, 3)
PANELS = 3  # kinds of them, at most
DEPTH = 1 << 14  # input features, at most: so many zeros stand for what lies outside


def each(name: str, count: int = RANKS[-1]) -> tuple[str, ...]:
    """Return the names of an array parameter's elements."""
    return tuple(f"{name}{d}" for d in range(count))


#: What ``convolution_tiles`` is told, in order; strides are in elements, and of the input. Of several kinds of panels,
#: and of several dimensions, those that are not there are told anything.
TILES = (
    "x", "w", "out",  # the numbers of the buffers
    "places", "rank", *each("space"), *each("stride"), *each("low"),
    "image_step", "group_step", *each("step"), *each("reach"),
    *each("size"), *each("dilation"), *each("turned"), "taps", "depth",
    "features", "group_features", "width", "rows", "chunk", "chunks", "per_group",
    *each("first", PANELS), *each("count", PANELS), *each("vectors", PANELS), *each("skip", PANELS),
    "block_taps", "block_depth", "blocks", "units", "tasks",
)  # fmt: skip
