"""Prebuilt convolutions in f32 and f64 in rows, for any sizes; `convolution.rows` is for known ones.

The choices made there arrive as numbers, so that the sums are the same to the bit. They are stored as they are, or
taken by functions of the program. Only rows of whole vectors come from here, from inputs without base dilation, where
the sums are not long.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.convolution.row_parameters import tile_shapes
from cyxla.xla.cpu.convolution.templates import RowConvolution
from cyxla.xla.cpu.prebuilt.convolution import RUN
from cyxla.xla.cpu.prebuilt.dot import TYPES
from cyxla.xla.cpu.prebuilt.library import FOLLOWED, KERNEL

FUNCTIONS = {f"convolution_rows{form}_{t}": kind for t in TYPES for form, kind in (("", KERNEL), ("_after", FOLLOWED))}


def text(level: Level) -> str:
    """Return the C of all functions for a processor level."""
    return "".join(_one_type(name, element, level) for name, element in TYPES.items())


def _one_type(name: str, element: str, level: Level) -> str:
    c, shapes = RowConvolution(name, element, level.vector_bytes), tile_shapes(level.registers)
    most = max(positions * vectors for positions, vectors, _ in shapes)
    run = RUN.format(name="convolution_rows", prefix=name, t=name)
    return "\n".join([*c.types, c.tiles(shapes) + c.run(most) + run])
