"""Few long lines of the last dimension: their two steps as stages of their own, so that many tasks share a line."""

from __future__ import annotations

from dataclasses import dataclass

from cyxla.xla.cpu import cost
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_fft_lines import Line, Lines, is_chirp, split
from cyxla.xla.cpu.emit_fft_panels import Functions
from cyxla.xla.cpu.emit_fft_real import Real
from cyxla.xla.cpu.emit_fft_stages import Rows, Stage

TASKS = 4  # that a line must be worth
PAIRS = 4096  # of points in a block of what comes before or after


def stages(rows: Rows, ns: float) -> list[Stage]:
    """What does the lines of a last dimension that takes so long: itself, or its parts.

    Parameters
    ----------
    rows : Rows
        The dimension.
    ns : float
        Its time on one core.
    """
    h = rows.points
    is_real = rows.kind in ("RFFT", "IRFFT")
    if rows.together or is_chirp(h) or (is_real and not rows.is_half):
        return [rows]
    if cost.tasks(ns, cost.MAX_TASKS) < TASKS * rows.rows:
        return [rows]
    line = Line(h, rows.inverse, rows.n if rows.inverse else 1)
    parts: list[Stage] = [Part(line, rows.rows, 0), Part(line, rows.rows, 1)]
    halves = [Halves(h, rows.rows, rows.inverse)] if is_real else []
    return [*halves, *parts] if rows.inverse else [*parts, *halves]


@dataclass(frozen=True)
class Part(Stage):
    """The first or the second step of lines, a block of columns at a time."""

    line: Line
    rows: int
    number: int

    @property
    def width(self) -> int:
        """Points of a line afterwards."""
        return self.line.n

    @property
    def in_place(self) -> bool:
        """The second step writes where it has read, the first one elsewhere."""
        return self.number == 1

    @property
    def columns(self) -> int:
        """Of the matrix that the line is for this step."""
        a, b = split(self.line.n)
        return a if self.number else b

    @property
    def count(self) -> str:
        """The C of the number of blocks."""
        return f"{self.rows} * (({self.columns} + KERNEL_W - 1) / KERNEL_W)"

    def blocks(self, lanes: int) -> int:
        """That number, for vectors of so many lanes."""
        return self.rows * -(-self.columns // lanes)

    def scratch(self, f: Functions) -> int:
        """Bytes that the function needs."""
        return Lines(f).scratch(self.line.n)

    def write(self, c: CWriter, f: Functions) -> None:
        """The body of the function."""
        step = (Lines(f).second if self.number else Lines(f).first)(self.line)
        n, columns = self.line.n, self.columns
        c.line(f"const int64_t across = ({columns} + KERNEL_W - 1) / KERNEL_W;")
        with c.block("for (int64_t b = begin; b < end; ++b)"):
            c.line(f"const int64_t at = b / across * {2 * n}, first = b % across * KERNEL_W;")
            c.line(f"const int64_t last = first + KERNEL_W < {columns} ? first + KERNEL_W : {columns};")
            c.line(f"{step}(from + at, to + at, first, last, scratch, tables);")


@dataclass(frozen=True)
class Halves(Stage):
    """What comes after the half-length transform of real lines, or before the inverse one."""

    h: int
    rows: int
    inverse: bool

    @property
    def width(self) -> int:
        """Points of a line afterwards."""
        return self.h if self.inverse else self.h + 1

    @property
    def count(self) -> str:
        """The C of the number of blocks."""
        return str(self.blocks(1))

    def blocks(self, lanes: int) -> int:
        """That number, for vectors of so many lanes."""
        return self.rows * -(-(self.h // 2 + 1) // PAIRS)

    def scratch(self, f: Functions) -> int:
        """Bytes that the function needs."""
        return 0

    def write(self, c: CWriter, f: Functions) -> None:
        """The body of the function."""
        name = Real(f, self.h).line(inverse=self.inverse)
        before, after = 2 * self.h, 2 * (self.h + 1)
        if self.inverse:
            before, after = after, before
        pairs = self.h // 2 + 1
        across = -(-pairs // PAIRS)
        with c.block("for (int64_t b = begin; b < end; ++b)"):
            c.line(f"const int64_t row = b / {across}, first = b % {across} * {PAIRS};")
            c.line(f"const int64_t last = first + {PAIRS} < {pairs} ? first + {PAIRS} : {pairs};")
            c.line(f"{name}(to + row * {after}, from + row * {before}, tables, first, last);")
