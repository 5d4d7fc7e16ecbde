"""Measuring the kernels of a program compiled with ``profile=True``.

The entry reads the clock around every call of a kernel and counts in a block of memory that the executable owns: what
each call site took in all, and the single calls as long as there is room. Both reach the native code as the last two
of the functions that the host lends to it. Programs compiled without it hold nothing of this.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cyxla.errors import UnimplementedError
from cyxla.xla.service.profile import Event, KernelTime, Profile

if TYPE_CHECKING:
    from cyxla.xla.cpu.emit_module import Source
    from cyxla.xla.cpu.kernel import Step
    from cyxla.xla.cpu.nodes import Plan

EVENTS = 1 << 16  # single calls that are kept
_EVENT = 4  # numbers: site, start, end, which call of the program
_SITE = 2  # numbers: calls, ns

_DEFINITIONS = """\
static int64_t profile_clock(const cyx_ctx *ctx) {{
  int64_t time[2];
  ((int (*)(int, int64_t *))ctx->functions[{clock}])({monotonic}, time);
  return time[0] * 1000000000 + time[1];
}}

static void profile_add(const cyx_ctx *ctx, int64_t site, int64_t start) {{
  const int64_t end = profile_clock(ctx);
  int64_t *const memory = ctx->functions[{memory}], *const own = memory + 1 + {site} * site;
  __atomic_fetch_add(own, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(own + 1, end - start, __ATOMIC_RELAXED);
  const int64_t number = __atomic_fetch_add(memory, 1, __ATOMIC_RELAXED);
  if (number >= {events}) return;
  int64_t *const event = memory + {first} + {event} * number;
  event[0] = site; event[1] = start; event[2] = end; event[3] = (int64_t)ctx;
}}
"""


class Meter:
    """Writes the C that measures.

    Parameters
    ----------
    steps : sequence of Step
        Every call site of a kernel, in the order of the plan.
    functions : int
        How many functions the program calls otherwise.
    """

    def __init__(self, steps: Sequence[Step], functions: int) -> None:
        self._sites = {id(step): n for n, step in enumerate(steps)}
        self._functions = functions

    @property
    def definitions(self) -> str:
        """What stands before the entry."""
        return _DEFINITIONS.format(
            clock=self._functions, memory=self._functions + 1, monotonic=int(time.CLOCK_MONOTONIC), site=_SITE,
            events=EVENTS, first=1 + _SITE * len(self._sites), event=_EVENT,
        )  # fmt: skip

    def around(self, step: Step, call: str) -> str:
        """A statement that calls a kernel, with the clock read before and after it."""
        return (
            f"{{ const int64_t start = profile_clock(ctx); {call} profile_add(ctx, {self._sites[id(step)]}, start); }}"
        )


class Recorder:
    """The memory in which an executable's calls are counted.

    Parameters
    ----------
    sites : int
        Call sites of the program.
    """

    def __init__(self, sites: int) -> None:
        self._sites = sites
        self._memory: npt.NDArray[np.int64] = np.zeros(1 + _SITE * sites + _EVENT * EVENTS, np.int64)

    @property
    def addresses(self) -> list[int]:
        """What the native code asks for, in its order."""
        return [_clock(), self._memory.ctypes.data]

    def reset(self) -> None:
        """Begin anew. Calls that are running meanwhile may be counted in part."""
        self._memory[:] = 0

    def profile(self, plan: Plan, source: Source) -> Profile:
        """What was measured so far."""
        seen = self._memory.copy()
        names = {kernel.text: name for name, kernel in source.kernels}
        steps = list(plan.steps())
        sites = seen[1 : 1 + _SITE * self._sites].reshape(-1, _SITE).tolist()
        by_name: dict[str, list[int]] = {}
        for number, step in enumerate(steps):
            by_name.setdefault(names[step.kernel.text], []).append(number)
        kernels = {
            name: _kernel_time(name, [(steps[n], sites[n][0], sites[n][1]) for n in some])
            for name, some in by_name.items()
        }
        events: list[Event] = []
        calls: dict[int, int] = {}
        for site, start, end, call in seen[1 + _SITE * self._sites :].reshape(-1, _EVENT)[: seen[0]].tolist():
            if end:  # begun, but not yet written
                kernel = kernels[names[steps[site].kernel.text]]
                events.append(Event(kernel, calls.setdefault(call, len(calls)), start, end))
        ordered = sorted(kernels.values(), key=lambda k: -k.ns)
        return Profile(tuple(ordered), tuple(events), max(0, int(seen[0]) - EVENTS))


def _kernel_time(name: str, sites: Sequence[tuple[Step, int, int]]) -> KernelTime:
    """The call sites of one kernel together."""
    step = sites[0][0]
    calls = sum(n for _, n, _ in sites)
    nbytes = sum(n * sum(v.shape.nbytes for v in (*s.reads, *s.writes)) for s, n, _ in sites)
    ns, what = sum(t for _, _, t in sites), ", ".join(f"{v.instruction.opcode} {v.shape}" for v in step.writes)
    return KernelTime(name, step.kernel.kind, what, calls, ns, calls * step.kernel.cost, nbytes)


@cache
def _clock() -> int:
    """Address of the C library's ``clock_gettime``."""
    library: Any = ctypes.CDLL(None)
    try:
        function = library.clock_gettime
    except AttributeError:
        raise UnimplementedError("the C library has no clock_gettime to measure with") from None
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
