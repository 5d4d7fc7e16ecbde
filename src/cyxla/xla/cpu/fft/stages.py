"""Stages of a transform: all lines of one dimension, or a part of that, a block of them at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from cyxla.xla.cpu.fft.plan import Plan, Transform, is_chirp, line_scratch, room, split
from cyxla.xla.cpu.fft.text import VECTOR_BYTES
from cyxla.xla.cpu.kernel import cost

SHORT_ROW = 256  # lines up to this are done side by side
SHORT_COLUMN = 2048
TASKS = 4  # that a long line must be worth
PAIRS = 4096  # of points in a block of what comes before or after

# What `fft.text` calls stages and kinds of rows.
_SHORT_ROWS, _LONG_ROWS, _SHORT_COLUMNS, _LONG_COLUMNS, _PART, _HALVES = range(6)
_COMPLEX, _REAL_OUT, _REAL_IN, _ODD_OUT, _ODD_IN = range(5)


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

    @abstractmethod
    def blocks(self, lanes: int) -> int:
        """The number of blocks, for vectors of so many lanes."""

    @abstractmethod
    def scratch(self, plan: Plan) -> int:
        """Bytes that it needs."""

    @abstractmethod
    def record(self, plan: Plan) -> list[int]:
        """Its record, as `fft.text` reads it."""


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
    def is_real(self) -> bool:
        """Whether one side is real."""
        return self.kind in ("RFFT", "IRFFT")

    @property
    def is_half(self) -> bool:
        """Whether a complex transform of half the length is enough."""
        return self.is_real and self.n % 2 == 0 and self.n > 2

    @property
    def points(self) -> int:
        """Points of the complex transform."""
        return self.n // 2 if self.is_half else self.n

    @property
    def transform(self) -> Transform:
        """The complex transform."""
        return Transform(self.points, self.inverse, self.n if self.inverse else 1)

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
        whole, half = 2 * self.n, 2 * (self.n // 2 + 1)
        return {"FFT": (whole, whole), "IFFT": (whole, whole), "RFFT": (self.n, half), "IRFFT": (half, self.n)}[
            self.kind
        ]

    def blocks(self, lanes: int) -> int:
        """The number of blocks, for vectors of so many lanes."""
        return -(-self.rows // lanes) if self.together else self.rows

    def scratch(self, plan: Plan) -> int:
        """Bytes that it needs."""
        h = self.points
        if self.together:
            return VECTOR_BYTES * (6 * h + 4)
        return line_scratch(h, plan.item) + 2 * room(h, plan.item) * self.is_real

    def record(self, plan: Plan) -> list[int]:
        """Its record, as `fft.text` reads it."""
        kind = _COMPLEX
        if self.is_real:
            kind = (_REAL_OUT if self.is_half else _ODD_OUT) + self.inverse
        made = plan.panel(self.transform) if self.together else plan.line(self.transform)
        table = plan.halves(self.points) if self.is_half else 0
        stage = _SHORT_ROWS if self.together else _LONG_ROWS
        return [stage, self.rows, self.points, *self.sizes, kind, made, table, self.n]


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
    def _is_short(self) -> bool:
        return not is_chirp(self.n) and self.n <= SHORT_COLUMN

    def blocks(self, lanes: int) -> int:
        """The number of blocks, for vectors of so many lanes."""
        return self.outer * -(-self.step // lanes)

    def scratch(self, plan: Plan) -> int:
        """Bytes that it needs."""
        vectors = VECTOR_BYTES * 2 * self.n
        if self._is_short:
            return vectors * (2 if self.step % plan.lanes else 1)
        return vectors + room(self.n, plan.item) + line_scratch(self.n, plan.item)

    def record(self, plan: Plan) -> list[int]:
        """Its record, as `fft.text` reads it."""
        made = (plan.panel if self._is_short else plan.line)(
            Transform(self.n, self.inverse, self.n if self.inverse else 1)
        )
        return [_SHORT_COLUMNS if self._is_short else _LONG_COLUMNS, self.outer, self.n, self.step, made]


@dataclass(frozen=True)
class Part(Stage):
    """The first or the second step of long lines, a block of columns at a time: many tasks share a line."""

    line: Transform
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

    def blocks(self, lanes: int) -> int:
        """The number of blocks, for vectors of so many lanes."""
        return self.rows * -(-self.columns // lanes)

    def scratch(self, plan: Plan) -> int:
        """Bytes that it needs."""
        return line_scratch(self.line.n, plan.item)

    def record(self, plan: Plan) -> list[int]:
        """Its record, as `fft.text` reads it."""
        return [_PART, self.rows, self.line.n, self.columns, plan.line(self.line), self.number]


@dataclass(frozen=True)
class Halves(Stage):
    """What comes after the half-length transform of long real lines, or before the inverse one."""

    h: int
    rows: int
    inverse: bool

    @property
    def width(self) -> int:
        """Points of a line afterwards."""
        return self.h if self.inverse else self.h + 1

    def blocks(self, lanes: int) -> int:
        """The number of blocks, for vectors of so many lanes."""
        return self.rows * -(-(self.h // 2 + 1) // PAIRS)

    def scratch(self, plan: Plan) -> int:
        """Bytes that it needs."""
        return 0

    def record(self, plan: Plan) -> list[int]:
        """Its record, as `fft.text` reads it."""
        return [_HALVES, self.rows, self.h, PAIRS, int(self.inverse), plan.halves(self.h)]


def last_dimension(rows: Rows, ns: float) -> list[Stage]:
    """What does the lines of a last dimension: itself; or, for few long lines, the two steps as stages of their own.

    Parameters
    ----------
    rows : Rows
        The dimension.
    ns : float
        Its time on one core.
    """
    h = rows.points
    if rows.together or is_chirp(h) or (rows.is_real and not rows.is_half):
        return [rows]
    if cost.tasks(ns, cost.MAX_TASKS) < TASKS * rows.rows:
        return [rows]
    parts: list[Stage] = [Part(rows.transform, rows.rows, number) for number in (0, 1)]
    halves = [Halves(h, rows.rows, rows.inverse)] if rows.is_real else []
    return [*halves, *parts] if rows.inverse else [*parts, *halves]
