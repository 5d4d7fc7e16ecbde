"""Stages of a transform: all lines of one dimension, a block of them at a time.

A stage is a function ``(from, to, begin, end, scratch, tables)`` that does a range of its blocks. Strides and sizes are
in real numbers, of which a complex one is two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_fft_lines import RANGE, Line, Lines, is_chirp, split
from cyxla.xla.cpu.emit_fft_panels import VECTOR_BYTES, Functions, Panel
from cyxla.xla.cpu.emit_fft_real import Real

SHORT_ROW = 256  # lines up to this are done side by side
SHORT_COLUMN = 2048


class Stage(ABC):
    """One dimension of a transform, or a part of that."""

    @property
    def width(self) -> int:
        """Points of a line afterwards, if those are not as many as in the end; else 0."""
        return 0

    @property
    def in_place(self) -> bool:
        """Whether it may write where it reads."""
        return False

    @property
    @abstractmethod
    def count(self) -> str:
        """The C of the number of blocks."""

    @abstractmethod
    def blocks(self, lanes: int) -> int:
        """That number, for vectors of so many lanes."""

    @abstractmethod
    def scratch(self, f: Functions) -> int:
        """Bytes that the function needs."""

    @abstractmethod
    def write(self, c: CWriter, f: Functions) -> None:
        """The body of the function."""

    def define(self, f: Functions) -> str:
        """The name of the function."""

        def write(c: CWriter, name: str) -> None:
            with c.block(f"static void {name}({RANGE})"):
                self.write(c, f)

        return f.define(self, "stage", write)


@dataclass(frozen=True)
class Rows(Stage):
    """The last dimension: `rows` lines of `n` points, by one of the four kinds of transform."""

    kind: str
    n: int
    rows: int

    @property
    def inverse(self) -> bool:
        """Whether the roots are conjugate."""
        return self.kind in ("IFFT", "IRFFT")

    @property
    def is_half(self) -> bool:
        """Whether a complex transform of half the length is enough."""
        return self.kind in ("RFFT", "IRFFT") and self.n % 2 == 0 and self.n > 2

    @property
    def points(self) -> int:
        """Points of the complex transform."""
        return self.n // 2 if self.is_half else self.n

    @property
    def bins(self) -> int:
        """Points that stand for a real line."""
        return self.n // 2 + 1

    @property
    def together(self) -> bool:
        """Whether lines are done side by side."""
        h = self.points
        if is_chirp(h):
            return False
        return (h <= SHORT_ROW and (self.rows >= 8 or h < 64)) or split(h)[1] < 8

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers in a line, before and after."""
        whole = 2 * self.n
        return {
            "FFT": (whole, whole), "IFFT": (whole, whole), "RFFT": (self.n, 2 * self.bins),
            "IRFFT": (2 * self.bins, self.n),
        }[self.kind]  # fmt: skip

    @property
    def count(self) -> str:
        """The C of the number of blocks."""
        return f"({self.rows} + KERNEL_W - 1) / KERNEL_W" if self.together else str(self.rows)

    def blocks(self, lanes: int) -> int:
        """That number, for vectors of so many lanes."""
        return -(-self.rows // lanes) if self.together else self.rows

    def scratch(self, f: Functions) -> int:
        """Bytes that the function needs."""
        h = self.points
        if self.together:
            return VECTOR_BYTES * (6 * h + 4)
        extra = -(-2 * h * f.item // VECTOR_BYTES) * VECTOR_BYTES
        return Lines(f).scratch(h) + 2 * extra * (self.kind in ("RFFT", "IRFFT"))

    def write(self, c: CWriter, f: Functions) -> None:
        """The body of the function."""
        if self.together:
            c.line("begin *= KERNEL_W; end *= KERNEL_W;")
            c.line(f"if (end > {self.rows}) end = {self.rows};")
            with c.block("for (int64_t l = begin; l < end; l += KERNEL_W)"):
                c.line("const int64_t lanes = end - l < KERNEL_W ? end - l : KERNEL_W;")
                self._panel(c, f)
            return
        with c.block("for (int64_t l = begin; l < end; ++l)"):
            c.line(
                f"const KERNEL_e *const x = from + l * {self.sizes[0]}; KERNEL_e *const y = to + l * {self.sizes[1]};"
            )
            self._line(c, f)

    # --- side by side -----------------------------------------------------------------------------------------------

    def _panel(self, c: CWriter, f: Functions) -> None:
        """From lines into rows of scratch, through a panel, and out again."""
        h, (size_in, size_out) = self.points, self.sizes
        scale = self.n if self.inverse else 1
        swap = self.inverse
        panel = f.panel(Panel(h, rows_in=True, rows_out=True, swap_in=swap, swap_out=swap, scale=scale))
        gather, scatter = f.gather(), f.scatter()
        source, target = f"from + l * {size_in}, {size_in}", f"to + l * {size_out}, {size_out}"
        run = f"{panel}(0, 0, 0, 0, rows, tables, 0, 0);"
        if self.kind in ("FFT", "IFFT"):
            c.line("KERNEL_v *const rows = scratch;")
            c.line(f"{gather}(rows, {source}, {h}, lanes); {run}")
            c.line(f"{scatter}({target}, rows + {2 * h}, {h}, lanes);")
        elif self.is_half and self.kind == "RFFT":
            c.line("KERNEL_v *const rows = scratch + 2;")
            c.line(f"{gather}(rows, {source}, {h}, lanes); {run}")
            c.line(f"{Real(f, h).rows(inverse=False)}(scratch, rows + {2 * h}, tables);")
            c.line(f"{scatter}({target}, scratch, {h + 1}, lanes);")
        elif self.is_half:
            c.line(f"KERNEL_v *const rows = scratch + {2 * h + 2};")
            c.line(f"{gather}(scratch, {source}, {h + 1}, lanes);")
            c.line(f"{Real(f, h).rows(inverse=True)}(rows, scratch, tables); {run}")
            c.line(f"{scatter}({target}, rows + {2 * h}, {h}, lanes);")
        elif self.kind == "RFFT":
            c.line("KERNEL_v *const rows = scratch;")
            c.line(f"{f.gather_real()}(rows, {source}, {h}, lanes); {run}")
            c.line(f"{scatter}({target}, rows + {2 * h}, {self.bins}, lanes);")
        else:
            c.line("KERNEL_v *const rows = scratch;")
            c.line(f"{gather}(rows, {source}, {self.bins}, lanes);")
            self._mirror(c, "rows", "(KERNEL_v){0}")
            c.line(run)
            c.line(f"{f.scatter_real()}({target}, rows + {2 * h}, {h}, lanes);")

    def _mirror(self, c: CWriter, x: str, zero: str) -> None:
        """The upper half of a line from its lower half."""
        n = self.n
        c.line(f"{x}[1] = {zero};" + (f" {x}[{n + 1}] = {zero};" if n % 2 == 0 else ""))
        move = f"{x}[2 * k] = {x}[2 * ({n} - k)]; {x}[2 * k + 1] = -{x}[2 * ({n} - k) + 1];"
        c.line(f"for (int64_t k = {n // 2 + 1}; k < {n}; ++k) {{ {move} }}")

    # --- one at a time ----------------------------------------------------------------------------------------------

    def _line(self, c: CWriter, f: Functions) -> None:
        h, n = self.points, self.n
        line = Lines(f).line(Line(h, self.inverse, n if self.inverse else 1))
        if self.kind in ("FFT", "IFFT"):
            c.line(f"{line}(x, y, scratch, tables);")
            return
        if self.is_half and self.kind == "RFFT":
            c.line(f"{line}(x, y, scratch, tables);")
            c.line(f"{Real(f, h).line(inverse=False)}(y, y, tables, 0, {h // 2 + 1});")
            return
        extra = -(-2 * h * f.item // VECTOR_BYTES) * VECTOR_BYTES
        c.line("KERNEL_e *const a = (KERNEL_e *)scratch;")
        c.line(f"KERNEL_e *const b = (KERNEL_e *)((char *)scratch + {extra}); (void)b;")
        c.line(f"KERNEL_v *const rest = (KERNEL_v *)((char *)scratch + {2 * extra});")
        if self.is_half:
            c.line(f"{Real(f, h).line(inverse=True)}(a, x, tables, 0, {h // 2 + 1});")
            c.line(f"{line}(a, y, rest, tables);")
        elif self.kind == "RFFT":
            c.line(f"for (int64_t k = 0; k < {n}; ++k) {{ a[2 * k] = x[k]; a[2 * k + 1] = 0; }}")
            c.line(f"{line}(a, b, rest, tables);")
            c.line(f"__builtin_memcpy(y, b, {2 * self.bins * f.item});")
        else:
            c.line(f"__builtin_memcpy(a, x, {2 * self.bins * f.item});")
            self._mirror(c, "a", "0")
            c.line(f"{line}(a, b, rest, tables);")
            c.line(f"for (int64_t k = 0; k < {n}; ++k) y[k] = b[2 * k];")


@dataclass(frozen=True)
class Columns(Stage):
    """Another dimension: lines of `n` points `step` complex numbers apart, `outer` times as many of them."""

    n: int
    step: int
    outer: int
    inverse: bool

    @property
    def in_place(self) -> bool:
        """A block is read before it is written."""
        return True

    @property
    def _is_panel(self) -> bool:
        return not is_chirp(self.n) and self.n <= SHORT_COLUMN

    @property
    def count(self) -> str:
        """The C of the number of blocks."""
        return f"{self.outer} * (({self.step} + KERNEL_W - 1) / KERNEL_W)"

    def blocks(self, lanes: int) -> int:
        """That number, for vectors of so many lanes."""
        return self.outer * -(-self.step // lanes)

    def scratch(self, f: Functions) -> int:
        """Bytes that the function needs."""
        if self._is_panel:
            return VECTOR_BYTES * 2 * self.n * (2 if self.step % f.lanes else 1)
        return (
            VECTOR_BYTES * 2 * self.n
            + -(-2 * self.n * f.item // VECTOR_BYTES) * VECTOR_BYTES
            + Lines(f).scratch(self.n)
        )

    def write(self, c: CWriter, f: Functions) -> None:
        """The body of the function."""
        n, step, scale = self.n, self.step, self.n if self.inverse else 1
        c.line(f"const int64_t across = ({step} + KERNEL_W - 1) / KERNEL_W;")
        with c.block("for (int64_t b = begin; b < end; ++b)"):
            c.line(f"const int64_t first = b % across * KERNEL_W, at = b / across * {2 * n * step};")
            c.line(f"const int64_t last = first + KERNEL_W < {step} ? first + KERNEL_W : {step};")
            if self._is_panel:
                panel = f.panel(Panel(n, swap_in=self.inverse, swap_out=self.inverse, scale=scale))
                Lines(f).columns(c, panel, n, step, "first", "last", "from + at", "to + at")
                return
            line, turn = Lines(f).line(Line(n, self.inverse, scale)), f.turn()
            lines = VECTOR_BYTES * 2 * n
            rest = lines + -(-2 * n * f.item // VECTOR_BYTES) * VECTOR_BYTES
            c.line(f"KERNEL_e *const x = (KERNEL_e *)scratch, *const y = (KERNEL_e *)((char *)scratch + {lines});")
            c.line(f"KERNEL_v *const rest = (KERNEL_v *)((char *)scratch + {rest});")
            c.line(f"{turn}(x, {2 * n}, from + at + 2 * first, {2 * step}, {n}, last - first);")
            with c.block("for (int64_t l = 0; l < last - first; ++l)"):
                c.line(f"{line}(x + l * {2 * n}, y, rest, tables);")
                c.line(f"__builtin_memcpy(x + l * {2 * n}, y, {2 * n * f.item});")
            c.line(f"{turn}(to + at + 2 * first, {2 * step}, x, {2 * n}, last - first, {n});")
