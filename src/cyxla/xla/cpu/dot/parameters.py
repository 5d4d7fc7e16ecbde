"""Parameters of prebuilt dots, in the order in which their C reads them."""

from __future__ import annotations

#: What ``dot_tiles`` is told, in order. Strides are in elements, but for those of what is fetched ahead, in bytes.
TILES = (
    "left", "right", "out",  # the numbers of the buffers
    "m", "n", "k", "ab", "am", "ak", "bb", "bk",
    "vectors", "width", "panels", "panel_step", "packs",  # panels before the last
    "last_vectors", "last", "packs_last",  # the last one, with so many columns
    "bn",  # between columns, for copies
    "together", "strip",  # panels of a unit, and tiles of each of them before the next
    "tiles", "height", "higher", "link", "units", "tasks",
    "ranges", "finer", "end",  # units of a group of panels; the last so many groups have more of them
    "streams", "span", "groups",  # a link of so many panels before the next link
    "ahead", "ahead_every", "ahead_lines", "ahead_jump", "ahead_start", "ahead_tile",  # see `prebuilt.dot`
)  # fmt: skip
#: What ``dot_rows`` is told.
ROWS = ("left", "right", "out", "m", "n", "k", "ab", "am", "bb", "bn", "width", "blocks", "way", "units", "tasks")
#: What ``dot_sums`` is told.
SUMS = ("left", "right", "out", "n", "k", "ab", "ak", "bb", "bk", "width", "blocks", "near", "units", "tasks")
