"""Kernels whose C is the same for all programs: the prebuilt function, or else the same text once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.kernel.kernel import Kernel

_KERNEL = """\
/* {note} */
static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {{
  static const int64_t numbers[] = {{{numbers}}};
  return KERNEL_run(numbers, bufs, begin, end);
}}
"""


def prebuilt_kernel(name: str, numbers: Sequence[int], made: Kernel, buffers: int) -> Kernel | None:
    """The kernel that comes with the package, however little it has to do: its own text would gain nothing from that.

    Parameters are those of `kernel.prebuilt_calls.kernel`.
    """
    found = prebuilt_calls.kernel(
        name, numbers, replace(made, cost=max(made.cost, prebuilt_calls.MIN_PREBUILT_NS)), buffers
    )
    return replace(found, cost=made.cost) if found is not None else None


def standalone_kernel(text: str, numbers: Sequence[int], made: Kernel) -> Kernel:
    """The kernel of a text that defines ``KERNEL_run(numbers, bufs, begin, end)``."""
    return replace(made, text=text + _KERNEL.format(note=made.text, numbers=", ".join(map(str, numbers))))


def kernel(name: str, numbers: Sequence[int], made: Kernel, buffers: int, write: Callable[[], str]) -> Kernel:
    """The one if it can be had, else the other."""
    return prebuilt_kernel(name, numbers, made, buffers) or standalone_kernel(write(), numbers, made)
