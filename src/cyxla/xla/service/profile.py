"""What the kernels of a program took, as a table for people and as events for the trace viewer of Chrome."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class KernelTime:
    """One kernel, over all its calls since the measurement began.

    Attributes
    ----------
    name : str
        As in the generated code.
    kind : str
        What sort of kernel: loop, reduce, dot ..
    what : str
        What it computes: opcode and shape of its results.
    calls : int
        How often it ran.
    ns : int
        Time of all calls, from the start of the first task to the end of the last one.
    estimated_ns : float
        What the cost model expects of all calls, on one core.
    nbytes : int
        What all calls read and wrote.
    """

    name: str
    kind: str
    what: str
    calls: int
    ns: int
    estimated_ns: float
    nbytes: int

    @property
    def bandwidth(self) -> float:
        """Bytes read and written, in GB/s; not what went to memory, since much of it stays in caches."""
        return self.nbytes / self.ns if self.ns else 0.0


@dataclass(frozen=True)
class Event:
    """One call of a kernel.

    Attributes
    ----------
    kernel : KernelTime
        Which kernel.
    call : int
        Which call of the program, among those that were running at the time; a row of the trace viewer.
    start, end : int
        In ns, on the clock of `time.monotonic_ns`.
    """

    kernel: KernelTime
    call: int
    start: int
    end: int


@dataclass(frozen=True)
class Profile:
    """What was measured; as text, a table with the most expensive kernel first.

    Attributes
    ----------
    kernels : tuple of KernelTime
        Every kernel, the most expensive first.
    events : tuple of Event
        The calls in the order of their ends.
    lost : int
        Calls for which there was no room among the events; the kernels count them all.
    """

    kernels: tuple[KernelTime, ...]
    events: tuple[Event, ...] = ()
    lost: int = 0

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = sum(k.ns for k in self.kernels)
        yield f"{'kernel':8} {'kind':14} {'calls':>8} {'total us':>12} {'%':>6} {'estimated us':>13} {'GB/s':>8}  what"
        for k in self.kernels:
            share = 100 * k.ns / total if total else 0.0
            yield (
                f"{k.name:8} {k.kind:14} {k.calls:8} {k.ns / 1e3:12.1f} {share:6.1f} {k.estimated_ns / 1e3:13.1f} "
                f"{k.bandwidth:8.2f}  {k.what}"
            )
        yield f"{'all':8} {'':14} {sum(k.calls for k in self.kernels):8} {total / 1e3:12.1f}"

    def trace(self) -> dict[str, Any]:
        """The events in the format of the trace viewer."""
        events = [
            {
                "name": f"{e.kernel.name} {e.kernel.what}", "cat": e.kernel.kind, "ph": "X", "pid": 0, "tid": e.call,
                "ts": e.start / 1e3, "dur": (e.end - e.start) / 1e3,
            }
            for e in self.events
        ]  # fmt: skip
        return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"lost": self.lost}}

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write a file for chrome://tracing or ui.perfetto.dev."""
        Path(path).write_text(json.dumps(self.trace()), encoding="utf-8")
