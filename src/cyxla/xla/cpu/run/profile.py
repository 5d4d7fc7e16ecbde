"""Times of the kernels of a program compiled with ``profile=True``.

The entry reads the clock around every call of a kernel and counts in a block of memory that the executable owns: the
total time of each call site, and the single calls as long as there is room. The clock and the block reach the native
code as the last two functions of its table. Programs compiled without ``profile=True`` have no such code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cyxla.errors import UnimplementedError
from cyxla.xla.cpu.entry.kernel_timers import EVENT_FIELDS, EVENTS, SITE_FIELDS
from cyxla.xla.service.profile import Event, KernelTime, Profile

if TYPE_CHECKING:
    from cyxla.xla.cpu.entry.module import Source
    from cyxla.xla.cpu.kernel.kernel import Step
    from cyxla.xla.cpu.plan.nodes import Plan


class Recorder:
    """Memory in which an executable counts its calls.

    Parameters
    ----------
    sites : int
        Number of call sites of the program.
    """

    def __init__(self, sites: int) -> None:
        self._sites = sites
        self._memory: npt.NDArray[np.int64] = np.zeros(1 + SITE_FIELDS * sites + EVENT_FIELDS * EVENTS, np.int64)

    @property
    def addresses(self) -> list[int]:
        """Addresses of the clock and of the memory, for the native code."""
        return [_clock(), self._memory.ctypes.data]

    def reset(self) -> None:
        """Reset all counts. Calls that run meanwhile may be counted in part."""
        self._memory[:] = 0

    def profile(self, plan: Plan, source: Source) -> Profile:
        """Return the times measured so far."""
        counters = self._memory.copy()
        names = {kernel.code: name for name, kernel in source.kernels}
        steps = list(plan.steps())
        sites = counters[1 : 1 + SITE_FIELDS * self._sites].reshape(-1, SITE_FIELDS).tolist()
        by_name: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            by_name.setdefault(names[step.kernel.code], []).append(number)
        kernels = {
            name: _kernel_time(name, [(steps[n], sites[n][0], sites[n][1]) for n in numbers])
            for name, numbers in by_name.items()
        }
        events: list[Event] = []
        calls: dict[int, int] = {}
        for site, start, end, call in (
            counters[1 + SITE_FIELDS * self._sites :].reshape(-1, EVENT_FIELDS)[: counters[0]].tolist()
        ):
            if end:  # begun, but not yet written
                kernel = kernels[names[steps[site].kernel.code]]
                events.append(Event(kernel, calls.setdefault(call, len(calls)), start, end))
        ordered = sorted(kernels.values(), key=lambda k: -k.ns)
        return Profile(tuple(ordered), tuple(events), max(0, int(counters[0]) - EVENTS))


def _kernel_time(name: str, sites: Sequence[tuple[Step, int, int]]) -> KernelTime:
    """Return the total of the call sites of one kernel."""
    step = sites[0][0]
    calls = sum(n for _, n, _ in sites)
    nbytes = sum(n * sum(v.shape.nbytes for v in (*s.reads, *s.writes)) for s, n, _ in sites)
    ns, operation = sum(t for _, _, t in sites), ", ".join(f"{v.instruction.opcode} {v.shape}" for v in step.writes)
    return KernelTime(name, step.kernel.kind.value, operation, calls, ns, calls * step.kernel.cost, nbytes)


@cache
def _clock() -> int:
    """Return the address of the C library's ``clock_gettime``."""
    library: Any = ctypes.CDLL(None)
    try:
        function = library.clock_gettime
    except AttributeError:
        raise UnimplementedError("the C library has no clock_gettime to measure with") from None
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
