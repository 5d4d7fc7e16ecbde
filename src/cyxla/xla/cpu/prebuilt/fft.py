"""Prebuilt Fourier transforms: a kernel for each real type, which reads its plan from its numbers."""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.fft.passes import FIXED, RADICES
from cyxla.xla.cpu.fft.text import fft_text

_KERNEL = "void *const *bufs, int64_t begin, int64_t end"
FUNCTIONS = {"fft_f32": ("cyx_status", _KERNEL), "fft_f64": ("cyx_status", _KERNEL)}


def text(_: Level) -> str:
    """The functions; how wide vectors are, their C finds out."""
    parts = []
    for name, real, item in (("fft_f32", "float", 4), ("fft_f64", "double", 8)):
        parts.append(fft_text(real, item, RADICES, frozenset(FIXED), f"fft{item}"))
        parts.append(f"cyx_status CYX_PREBUILT({name})({_KERNEL}) {{\n")
        parts.append(f"  return fft{item}_run(CYX_NUMBERS(bufs), bufs, begin, end);\n}}\n")
    return "".join(parts)
