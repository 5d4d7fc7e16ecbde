"""Instances of the headers that transform, ``include/cyxla/kernels/fft``, around the passes that they call.

The build of the package makes those that come prebuilt (`prebuilt.fft`), `fft.emit` those of a program of its own.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.fft.passes import fixed_panels, passes
from cyxla.xla.cpu.kernel import machine

VECTOR_BYTES = machine.VECTOR_BYTES
STACK_BYTES = 4 * machine.L1_BYTES  # scratch of a task on a thread's stack


def fft_text(bits: int, radices: frozenset[int], lengths: frozenset[int], prefix: str) -> str:
    """Return C of ``{prefix}_run(plan, bufs, begin, end)``, a kernel that does tasks of a planned transform.

    Parameters
    ----------
    bits : int
        Width of a real number, 32 or 64.
    radices : frozenset of int
        Radices that there are passes for.
    lengths : frozenset of int
        Lengths, among those of `passes.FIXED`, that panels have functions of their own for.
    prefix : str
        Prefix of all names.
    """
    item = bits // 8
    return "".join([
        instantiate("fft/fft_vectors.h", FFT_PREFIX=prefix, FFT_BITS=bits),
        instantiate("fft/fft_moves.h", FFT_SQUARE=f"cyx_square_{item}", FFT_SQUARE_ROWS=f"CYX_SQUARE_{item}"),
        *(instantiate("fft/fft_real.h", FFT_C2R=c2r) for c2r in (0, 1)),
        passes(radices),
        fixed_panels(lengths),
        instantiate("fft/fft_lines.h"),
        instantiate("fft/fft.h", FFT_STACK_BYTES=STACK_BYTES),
    ])  # fmt: skip
