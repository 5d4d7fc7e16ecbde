"""C that reads the clock around every call of a kernel, in programs compiled with ``profile=True``.

The counters are in memory that the executable owns (`run.profile`): the number of events, the calls and the time of
each call site, then single calls as long as there is room (``profile.h``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.kernel.kernel import Step

EVENTS = 1 << 16  # single calls that are kept
EVENT_FIELDS = 4  # site, start, end, call of the program
SITE_FIELDS = 2  # calls, ns


class Meter:
    """Writer of the C that measures.

    Parameters
    ----------
    steps : sequence of Step
        All call sites of kernels, in the order of the plan.
    functions : int
        Number of the other functions that the program calls.
    """

    def __init__(self, steps: Sequence[Step], functions: int) -> None:
        self._sites = {id(step): n for n, step in enumerate(steps)}
        self._functions = functions

    @property
    def definitions(self) -> str:
        """C that the entry needs before it."""
        return instantiate(
            "entry/profile.h", PROFILE_CLOCK=self._functions, PROFILE_CLOCK_ID=int(time.CLOCK_MONOTONIC),
            PROFILE_MEMORY=self._functions + 1, PROFILE_SITES=len(self._sites), PROFILE_SITE_FIELDS=SITE_FIELDS,
            PROFILE_EVENTS=EVENTS, PROFILE_EVENT_FIELDS=EVENT_FIELDS,
        )  # fmt: skip

    def measure(self, step: Step, call: str) -> str:
        """Return a statement that calls a kernel and reads the clock before and after it."""
        return (
            f"{{ const int64_t start = profile_clock(ctx); {call} profile_add(ctx, {self._sites[id(step)]}, start); }}"
        )
