"""Statistics of a step: time, thread, device and output size of each node."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np

from cyxla.core.framework.memory.allocation_record import Allocation
from cyxla.core.graph.graph import Graph, Node
from cyxla.forking import new_lock


@dataclass(frozen=True)
class NodeStats:
    """Statistics of one run of one node.

    Attributes
    ----------
    name, op, device : str
        Name, op and device of the node.
    label : str
        Text ``name:op#shape=(2x3;scalar)#`` with the shapes of the inputs.
    start, end : float
        Times in seconds, on the clock of `time.perf_counter`.
    thread : int
        Number of the thread, in the order of first use in the step.
    scheduled : bool
        True if another thread than that of the step ran the node.
    output_bytes : int
        Size of the outputs in bytes.
    allocated : dict of int
        Bytes that the kernel allocated through its context, by use: ``"output"``, ``"temp"``, ``"persistent"``.
    persistent_alloc_ids : tuple of int
        Numbers that the kernel gave to memory that outlives the run.
    """

    name: str
    op: str
    device: str
    label: str
    start: float
    end: float
    thread: int
    scheduled: bool
    output_bytes: int
    allocated: dict[str, int] = field(default_factory=dict)
    persistent_alloc_ids: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self.end - self.start


class StepStats:
    """Statistics of all nodes of a step, in the order of their ends. Safe for any number of threads."""

    def __init__(self) -> None:
        self.nodes: list[NodeStats] = []
        self._threads: dict[int, int] = {}
        self._lock = new_lock()

    def record(
        self,
        node: Node,
        start: float,
        end: float,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        *,
        scheduled: bool = False,
        allocations: Sequence[Allocation] = (),
    ) -> None:
        """Add the run of a node."""
        allocated: dict[str, int] = {}
        for use, size, _ in allocations:
            allocated[use] = allocated.get(use, 0) + size
        output_bytes = sum(value.nbytes for value in outputs if isinstance(value, np.ndarray))
        shapes = ";".join(_shape_text(value) for value in inputs)
        label = f"{node.name}:{node.op}#shape=({shapes})#"
        with self._lock:
            thread = self._threads.setdefault(get_ident(), len(self._threads))
            self.nodes.append(
                NodeStats(
                    node.name,
                    node.op,
                    node.assigned_device,
                    label,
                    start,
                    end,
                    thread,
                    scheduled,
                    output_bytes,
                    allocated,
                    tuple([a.alloc_id for a in allocations if a.alloc_id >= 0]),
                )
            )

    def by_op(self) -> dict[str, tuple[int, float]]:
        """Return the number of runs and the total seconds of each op, the slowest first."""
        total: dict[str, tuple[int, float]] = {}
        for row in self.nodes:
            count, seconds = total.get(row.op, (0, 0.0))
            total[row.op] = (count + 1, seconds + row.seconds)
        return dict(sorted(total.items(), key=lambda item: -item[1][1]))

    def chrome_trace(self) -> dict[str, Any]:
        """Return events for Chrome's trace viewer: a process for each device, a row for each thread."""
        devices = {name: k for k, name in enumerate(dict.fromkeys(row.device for row in self.nodes))}
        zero = min((row.start for row in self.nodes), default=0.0)
        events: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": k, "args": {"name": name or "unplaced"}}
            for name, k in devices.items()
        ]
        events += [
            {
                "name": row.op, "cat": "Op", "ph": "X", "pid": devices[row.device], "tid": row.thread,
                "ts": (row.start - zero) * 1e6, "dur": row.seconds * 1e6,
                "args": {"name": row.name, "label": row.label, "bytes": row.output_bytes, "scheduled": row.scheduled},
            }
            for row in self.nodes
        ]  # fmt: skip
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write `chrome_trace` to a file."""
        Path(path).write_text(json.dumps(self.chrome_trace()), encoding="utf-8")

    def __str__(self) -> str:
        rows = [f"{seconds * 1e6:12.1f} us {count:6d} x {op}" for op, (count, seconds) in self.by_op().items()]
        return "\n".join(rows)


def _shape_text(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return ""
    return "x".join(map(str, value.shape)) or "scalar"


@dataclass(frozen=True)
class FunctionGraphs:
    """Graphs of a function that a step called.

    Attributes
    ----------
    name : str
        Name of the function.
    partition_graphs : list of Graph
        Graphs of the body, one for each device, after all passes.
    """

    name: str
    partition_graphs: list[Graph]


@dataclass
class RunMetadata:
    """Statistics of a run, filled in if passed to `Session.run`.

    Attributes
    ----------
    step_stats : StepStats
        Statistics of the nodes.
    partition_graphs : list of Graph
        Graphs that ran, one for each device, after all passes.
    function_graphs : list of FunctionGraphs
        Graphs of the functions that were called, each function once.
    """

    step_stats: StepStats = field(default_factory=StepStats)
    partition_graphs: list[Graph] = field(default_factory=list)
    function_graphs: list[FunctionGraphs] = field(default_factory=list)
