"""Transforms of the live lines alone, of an array whose first dimension has a size that is known at run time.

A plan states the number of its lines, or of its units: the kernel takes a copy of it with a smaller number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.kernel.kernel import Kernel, Value
from cyxla.xla.cpu.loops.live_loops import SizeReads, live_count
from cyxla.xla.cpu.loops.loop_kernel import short_work

_READS = 2  # buffers that the kernel reads without sizes: the operand and the tables

_KERNEL = """\
/* {note} */
static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {{
  static const int64_t fixed[{count}] = {{{fixed}}};
  int64_t numbers[{count}];
  __builtin_memcpy(numbers, fixed, sizeof fixed);
  numbers[{at}] = {lines};
  void *const all[] = {{(void *)numbers, {bufs}}};
  return {call};
}}
"""


@dataclass(frozen=True)
class LiveLines:
    """Part of a transform that matters.

    Attributes
    ----------
    sizes : tuple of Value
        Sizes, of which the greatest bounds the first dimension.
    bound : int
        Greatest size of that dimension.
    """

    sizes: tuple[Value, ...]
    bound: int

    def kernel(
        self, name: str, numbers: Sequence[int], at: int, template: Kernel, buffers: int, write: Callable[[], str]
    ) -> Kernel:
        """Return a kernel that reads the sizes after the operand and the tables, and transforms the lines below them.

        Parameters
        ----------
        name : str
            Name of the prebuilt function.
        numbers : sequence of int
            Plan.
        at : int
            Place in the plan of a number of lines or units, which it has for every index of the first dimension.
        template : Kernel
            Kernel without text.
        buffers : int
            Number of buffers of the kernel without sizes.
        write : callable
            Function that returns the text of the kernel if it is not prebuilt.
        """
        reads = SizeReads(_READS)
        lines = live_count(self.sizes, reads, self.bound, numbers[at] // self.bound)
        more = len(reads.values)
        places = [k if k < _READS else k + more for k in range(buffers)]
        prebuilt = prebuilt_calls.pointer(name)
        text = _KERNEL.format(
            note=template.text, count=len(numbers), fixed=", ".join(map(str, numbers)), at=at, lines=lines,
            bufs=", ".join(f"bufs[{k}]" for k in places),
            call=f"{prebuilt}(all + 1, begin, end)" if prebuilt else "KERNEL_run(numbers, all + 1, begin, end)",
        )  # fmt: skip
        short = short_work([(lines, template.cost / max(1, numbers[at]))]) if template.tasks > 1 else ""
        return replace(template, text=text if prebuilt else write() + text, short=short)

    @property
    def values(self) -> tuple[Value, ...]:
        """Sizes in the order in which the kernel reads them."""
        return tuple(dict.fromkeys(self.sizes))
