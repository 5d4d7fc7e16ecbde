"""Prebuilt data movement: broadcasts, transposes, slices and other strided copies."""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.prebuilt.forms import MAX_RANK
from cyxla.xla.cpu.prebuilt.library import KERNEL

SIZES = (1, 2, 4, 8, 16)  # bytes of an element

FUNCTIONS = {f"move_{size}": KERNEL for size in SIZES}


def text(_: Level) -> str:
    """Return the C of the functions, whose tiles are as wide as the vectors of the level."""
    return "".join(_function(size) for size in SIZES)


def _function(size: int) -> str:
    name = f"move_{size}"
    parameters: dict[str, str | int] = {
        "COPY_PREFIX": name, "COPY_BYTES": size, "COPY_MAX_RANK": MAX_RANK, "COPY_TRANSPOSE": f"cyx_tile_{size}",
    }  # fmt: skip
    call = f"return {name}_run(CYX_NUMBERS(bufs), bufs, begin, end);"
    kernel = f"{KERNEL[0]} CYX_PREBUILT({name})({KERNEL[1]}) {{ {call} }}\n"
    return instantiate("loops/strided_copy.h", **parameters) + kernel
