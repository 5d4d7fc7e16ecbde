"""Prebuilt Fourier transforms: a kernel for each real type, whose numbers are the plan."""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.fft.passes import FIXED, RADICES
from cyxla.xla.cpu.fft.templates import fft_text
from cyxla.xla.cpu.prebuilt.library import KERNEL

FUNCTIONS = {"fft_f32": KERNEL, "fft_f64": KERNEL}


def text(_: Level) -> str:
    """Return the C of the functions, which is the same for every level: it finds out the width of vectors itself."""
    parts = []
    for bits in (32, 64):
        parts.append(fft_text(bits, RADICES, frozenset(FIXED), f"fft_f{bits}"))
        call = f"return fft_f{bits}_run(CYX_NUMBERS(bufs), bufs, begin, end);"
        parts.append(f"{KERNEL[0]} CYX_PREBUILT(fft_f{bits})({KERNEL[1]}) {{ {call} }}\n")
    return "".join(parts)
