"""Prebuilt convolutions in f32 and f64 in tiles, for any sizes; `convolution.tiles` is for known ones.

The choices made there (chunks, panels, blocks ..) arrive as numbers, so that the sums are the same to the bit. They are
stored as they are, or taken by functions of the program. Inputs with a base dilation are not for these.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.convolution.templates import Convolution
from cyxla.xla.cpu.convolution.tile_parameters import MAX_DEPTH, PREBUILT_RANKS, tile_shapes
from cyxla.xla.cpu.prebuilt.dot import TYPES
from cyxla.xla.cpu.prebuilt.library import FOLLOWED, KERNEL

FUNCTIONS = {f"convolution_tiles{form}_{t}": kind for t in TYPES for form, kind in (("", KERNEL), ("_after", FOLLOWED))}

RUN = """\
cyx_status CYX_PREBUILT({name}_after_{t})(void *const *bufs, int64_t begin, int64_t end, const void *const *after) {{
  return {prefix}_run((const {prefix}_numbers *)CYX_NUMBERS(bufs), bufs, begin, end, after);
}}
cyx_status CYX_PREBUILT({name}_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  return {prefix}_run((const {prefix}_numbers *)CYX_NUMBERS(bufs), bufs, begin, end, 0);
}}
"""


def text(level: Level) -> str:
    """Return the C of all functions for a processor level."""
    return "".join(_one_type(name, element, level) for name, element in TYPES.items())


def _one_type(name: str, element: str, level: Level) -> str:
    c = Convolution(name, element, level.vector_bytes, level.registers, PREBUILT_RANKS[-1], MAX_DEPTH)
    tiles = c.tiles(tile_shapes(level.registers))
    run = RUN.format(name="convolution_tiles", prefix=name, t=name)
    return "\n".join([*c.types, tiles + c.windows(PREBUILT_RANKS) + c.run() + run])
