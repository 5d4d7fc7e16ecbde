"""Measured times of a program's kernels, as a table and as events for Chrome's trace viewer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from cyxla.records import dataclass


@dataclass(frozen=True)
class KernelTime:
    """Totals of one kernel over all its calls since the measurement began.

    Attributes
    ----------
    name : str
        Name in the generated code.
    kind : str
        Kind of the kernel, such as loop, reduce or dot.
    operation : str
        Opcode and shape of its results.
    calls : int
        Number of calls.
    ns : int
        Total time in ns; a call lasts from the start of its first task to the end of its last.
    estimated_ns : float
        Total time in ns on one core, as predicted by the cost model.
    nbytes : int
        Total number of bytes read and written.
    """

    name: str
    kind: str
    operation: str
    calls: int
    ns: int
    estimated_ns: float
    nbytes: int

    @property
    def bandwidth(self) -> float:
        """Bytes read and written in GB/s; memory traffic may be lower, since accesses may hit caches."""
        return self.nbytes / self.ns if self.ns else 0.0


@dataclass(frozen=True)
class Event:
    """A call of a kernel.

    Attributes
    ----------
    kernel : KernelTime
        Kernel that was called.
    call : int
        Number of the program's call among the concurrent ones; a row of the trace viewer.
    start, end : int
        Times in ns, on the clock of `time.monotonic_ns`.
    """

    kernel: KernelTime
    call: int
    start: int
    end: int


@dataclass(frozen=True)
class Profile:
    """The measurements of a program; its text is a table, with the most expensive kernel first.

    Attributes
    ----------
    kernels : tuple of KernelTime
        All kernels, the most expensive first.
    events : tuple of Event
        Calls in the order of their ends.
    lost : int
        Number of calls that exceeded the capacity for events; `kernels` includes them.
    """

    kernels: tuple[KernelTime, ...]
    events: tuple[Event, ...] = ()
    lost: int = 0

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = sum(k.ns for k in self.kernels)
        head = f"{'kernel':8} {'kind':14} {'calls':>8} {'total us':>12} {'%':>6} {'estimated us':>13} {'GB/s':>8}"
        yield f"{head}  operation"
        for k in self.kernels:
            share = 100 * k.ns / total if total else 0.0
            yield (
                f"{k.name:8} {k.kind:14} {k.calls:8} {k.ns / 1e3:12.1f} {share:6.1f} {k.estimated_ns / 1e3:13.1f} "
                f"{k.bandwidth:8.2f}  {k.operation}"
            )
        yield f"{'all':8} {'':14} {sum(k.calls for k in self.kernels):8} {total / 1e3:12.1f}"

    def trace(self) -> dict[str, Any]:
        """Return the events in the format of Chrome's trace viewer."""
        events = [
            {
                "name": f"{e.kernel.name} {e.kernel.operation}", "cat": e.kernel.kind, "ph": "X", "pid": 0,
                "tid": e.call, "ts": e.start / 1e3, "dur": (e.end - e.start) / 1e3,
            }
            for e in self.events
        ]  # fmt: skip
        return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"lost": self.lost}}

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write the events to a file for chrome://tracing or ui.perfetto.dev."""
        Path(path).write_text(json.dumps(self.trace()), encoding="utf-8")
