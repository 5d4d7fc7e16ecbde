"""C that reads the clock around every call of a kernel, in programs compiled with ``profile=True``.

It counts in a block of memory that the executable owns (`run.profile`): how many events there are, then what each call
site took in all, then the single calls as long as there is room.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cyxla.xla.cpu.kernel.kernel import Step

EVENTS = 1 << 16  # single calls that are kept
EVENT_FIELDS = 4  # site, start, end, which call of the program
SITE_FIELDS = 2  # calls, ns

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
            clock=self._functions, memory=self._functions + 1, monotonic=int(time.CLOCK_MONOTONIC), site=SITE_FIELDS,
            events=EVENTS, first=1 + SITE_FIELDS * len(self._sites), event=EVENT_FIELDS,
        )  # fmt: skip

    def around(self, step: Step, call: str) -> str:
        """A statement that calls a kernel, with the clock read before and after it."""
        return (
            f"{{ const int64_t start = profile_clock(ctx); {call} profile_add(ctx, {self._sites[id(step)]}, start); }}"
        )
