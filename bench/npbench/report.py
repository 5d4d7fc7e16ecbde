"""The table of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

TEXT = 90  # characters shown of an error
HEADINGS = ("kernel", "status", "NumPy ms", "Numba ms", "ours ms", "x NumPy", "x Numba", "first s", "ready s", "")

WORDS = ("kernel", "status", "")  # columns aligned to the left


@dataclass
class Row:
    """What was found of one kernel; times are in milliseconds, and None where a version does not run."""

    kernel: str
    status: str = "error"
    text: str = ""
    numpy: float | None = None
    numba: float | None = None
    numba_version: str = ""
    ours: float | None = None
    first: float | None = None
    ready: float | None = None
    others: dict[str, Any] = field(default_factory=dict)

    @property
    def over_numpy(self) -> float | None:
        return self.numpy / self.ours if self.numpy and self.ours else None

    @property
    def over_numba(self) -> float | None:
        return self.numba / self.ours if self.numba and self.ours else None

    @classmethod
    def of_events(cls, kernel: str, events: Iterable[dict[str, Any]], failure: str) -> Row:
        """Make the row from a worker's events; `failure` says why it ended early, if it did."""
        row = cls(kernel, text=failure)
        begun = ""
        for event in events:
            begun = event.get("begin", "" if "end" in event else begun)
            version = event.get("end")
            if version == "cyxla":
                row.status, row.text = event["status"], event.get("text", "")
                row.first, row.ready = event.get("first"), event.get("ready")
            elif version and version != "timing":
                row.others[version] = event
            if "times" in event:
                row._set_times(event["times"])
        if failure:
            row.status, row.text = failure.partition(":")[0], failure + (f" in {begun}" if begun else "")
        return row

    def _set_times(self, times: dict[str, float]) -> None:
        self.numpy, self.ours = times.get("numpy"), times.get("cyxla")
        numba = {version: ms for version, ms in times.items() if version.startswith("numba")}
        if numba:
            self.numba_version = min(numba, key=numba.__getitem__)
            self.numba = numba[self.numba_version]

    def cells(self) -> tuple[str, ...]:
        ratios = (self.over_numpy, self.over_numba)
        return (
            self.kernel, self.status, *(_number(ms, 3) for ms in (self.numpy, self.numba, self.ours)),
            *(_number(ratio, 2) for ratio in ratios), *(_number(s, 1) for s in (self.first, self.ready)),
            self.text[:TEXT],
        )  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text, with counts of each status and geometric means."""
    cells = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(_padded(*cell) for cell in zip(line, widths, HEADINGS, strict=True)) for line in cells]
    return "\n".join(line.rstrip() for line in [*lines, "", *summary(rows)])


def summary(rows: Sequence[Row]) -> list[str]:
    """Return lines of counts and geometric means, which are over kernels that are right without a warning."""
    counts = Counter(row.status for row in rows)
    right = [row for row in rows if row.status == "right"]
    lines = [", ".join(f"{status} {count}" for status, count in counts.most_common()) + f"; of {len(rows)}"]
    for name, ratios in (
        ("ours over NumPy", [row.over_numpy for row in right]),
        ("ours over Numba", [row.over_numba for row in right]),
        ("Numba over NumPy", [row.numpy / row.numba for row in rows if row.numpy and row.numba]),
    ):
        known = [ratio for ratio in ratios if ratio]
        if known:
            lines.append(f"{name}: geometric mean {geometric_mean(known):.2f} of {len(known)} kernels")
    return lines


def geometric_mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


def _padded(text: str, width: int, heading: str) -> str:
    return text.ljust(width) if heading in WORDS else text.rjust(width)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
