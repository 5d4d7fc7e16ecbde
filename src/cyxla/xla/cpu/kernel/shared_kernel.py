"""Kernels whose C is the same for all programs: a call of the prebuilt function, or else the same text in place."""

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


def prebuilt_kernel(name: str, numbers: Sequence[int], template: Kernel, buffers: int) -> Kernel | None:
    """Return a kernel that calls a prebuilt function whatever its cost: a text of its own would not be faster.

    Parameters are those of `kernel.prebuilt_calls.kernel`.
    """
    prebuilt = prebuilt_calls.kernel(
        name, numbers, replace(template, cost=max(template.cost, prebuilt_calls.MIN_PREBUILT_NS)), buffers
    )
    return replace(prebuilt, cost=template.cost) if prebuilt is not None else None


def standalone_kernel(text: str, numbers: Sequence[int], template: Kernel) -> Kernel:
    """Return the kernel of a text that defines ``KERNEL_run(numbers, bufs, begin, end)``."""
    return replace(template, text=text + _KERNEL.format(note=template.text, numbers=", ".join(map(str, numbers))))


def kernel(name: str, numbers: Sequence[int], template: Kernel, buffers: int, write: Callable[[], str]) -> Kernel:
    """Return the prebuilt kernel if there is one, else the standalone kernel of the text that `write` returns."""
    return prebuilt_kernel(name, numbers, template, buffers) or standalone_kernel(write(), numbers, template)
