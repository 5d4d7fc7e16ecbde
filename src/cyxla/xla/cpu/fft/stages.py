"""Stages of a transform: all lines of one dimension, or one step of them, a block at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum

from cyxla.records import dataclass
from cyxla.xla.cpu.fft.plan import SMALLEST_FACTOR, Plan, Transform, is_chirp, line_bytes, line_scratch, split
from cyxla.xla.cpu.fft.templates import VECTOR_BYTES
from cyxla.xla.cpu.kernel import cost

MAX_SHORT_ROW = 256  # points of lines of which a panel transforms several
MAX_SHORT_COLUMN = 2048  # points of columns of which a panel transforms several
MIN_TASKS = 4  # tasks per line from which several tasks share a line
PAIRS = 4096  # points k and h - k in a block of a step between real and complex lines

# Stages and kinds of lines, as in ``fft.h``.
_SHORT_ROWS, _LONG_ROWS, _SHORT_COLUMNS, _LONG_COLUMNS, _ONE_STEP, _ONE_REAL_STEP = range(6)
_COMPLEX, _HALF_R2C, _HALF_C2R, _FULL_R2C, _FULL_C2R = range(5)


class Stage(ABC):
    """One dimension of a transform, or one step of it."""

    @property
    def width(self) -> int:
        """Number of points of a line after the stage if it differs from that of the result; else 0."""
        return 0

    @property
    def in_place(self) -> bool:
        """True if the result may share the buffer of the operand."""
        return False

    @abstractmethod
    def blocks(self, lanes: int) -> int:
        """Return the number of blocks for vectors of some number of lanes."""

    @abstractmethod
    def scratch(self, plan: Plan) -> int:
        """Return the bytes of scratch of a task."""

    @abstractmethod
    def record(self, plan: Plan) -> list[int]:
        """Return the record, a struct in ``fft.h``, and add those that it refers to."""


class FftKind(StrEnum):
    """Kinds of transforms, as HLO names them."""

    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"


@dataclass(frozen=True)
class Rows(Stage):
    """The last dimension: a number of lines of `n` points, by one of the four kinds of transform."""

    kind: FftKind
    n: int
    rows: int

    @property
    def inverse(self) -> bool:
        """True if the roots are conjugate."""
        return self.kind in (FftKind.IFFT, FftKind.IRFFT)

    @property
    def is_real(self) -> bool:
        """True if the operand or the result is real."""
        return self.kind in (FftKind.RFFT, FftKind.IRFFT)

    @property
    def is_half(self) -> bool:
        """True if a complex transform of half the length is enough."""
        return self.is_real and self.n % 2 == 0 and self.n > 2

    @property
    def points(self) -> int:
        """Number of points of the complex transform."""
        return self.n // 2 if self.is_half else self.n

    @property
    def transform(self) -> Transform:
        """Complex transform of a line."""
        return Transform(self.points, self.inverse, self.n if self.inverse else 1)

    @property
    def is_panel(self) -> bool:
        """True if several lines are transformed at once, as a panel."""
        h = self.points
        if is_chirp(h):
            return False
        return (h <= MAX_SHORT_ROW and (self.rows >= 8 or h < 64)) or split(h)[1] < SMALLEST_FACTOR

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of real elements in a line of the operand and of the result."""
        full, half = 2 * self.n, 2 * (self.n // 2 + 1)
        real = {FftKind.RFFT: (self.n, half), FftKind.IRFFT: (half, self.n)}
        return real.get(self.kind, (full, full))

    def blocks(self, lanes: int) -> int:
        """Return the number of blocks for vectors of some number of lanes."""
        return -(-self.rows // lanes) if self.is_panel else self.rows

    def scratch(self, plan: Plan) -> int:
        """Return the bytes of scratch of a task."""
        h = self.points
        if self.is_panel:
            return VECTOR_BYTES * (6 * h + 4)
        return line_scratch(h, plan.item) + 2 * line_bytes(h, plan.item) * self.is_real

    def record(self, plan: Plan) -> list[int]:
        """Return the record, a struct in ``fft.h``, and add those that it refers to."""
        kind = _COMPLEX
        if self.is_real:
            kind = (_HALF_R2C if self.is_half else _FULL_R2C) + self.inverse
        transform = plan.panel(self.transform) if self.is_panel else plan.line(self.transform)
        table = plan.real_table(self.points) if self.is_half else 0
        stage = _SHORT_ROWS if self.is_panel else _LONG_ROWS
        return [stage, self.rows, self.points, *self.sizes, kind, transform, table, self.n]


@dataclass(frozen=True)
class Columns(Stage):
    """Another dimension: ``outer * stride`` lines of `n` points, whose points are `stride` complex numbers apart."""

    n: int
    stride: int
    outer: int
    inverse: bool

    @property
    def in_place(self) -> bool:
        """True: a block is read before it is written."""
        return True

    @property
    def _is_short(self) -> bool:
        return not is_chirp(self.n) and self.n <= MAX_SHORT_COLUMN

    def blocks(self, lanes: int) -> int:
        """Return the number of blocks for vectors of some number of lanes."""
        return self.outer * -(-self.stride // lanes)

    def scratch(self, plan: Plan) -> int:
        """Return the bytes of scratch of a task."""
        vectors = VECTOR_BYTES * 2 * self.n
        if self._is_short:
            return vectors * (2 if self.stride % plan.lanes else 1)
        return vectors + line_bytes(self.n, plan.item) + line_scratch(self.n, plan.item)

    def record(self, plan: Plan) -> list[int]:
        """Return the record, a struct in ``fft.h``, and add those that it refers to."""
        transform = (plan.panel if self._is_short else plan.line)(
            Transform(self.n, self.inverse, self.n if self.inverse else 1)
        )
        return [_SHORT_COLUMNS if self._is_short else _LONG_COLUMNS, self.outer, self.n, self.stride, transform]


@dataclass(frozen=True)
class OneStep(Stage):
    """The first or the second step of long lines, a block of columns at a time: many tasks share a line."""

    line: Transform
    rows: int
    number: int

    @property
    def width(self) -> int:
        """Number of points of a line after the step."""
        return self.line.n

    @property
    def in_place(self) -> bool:
        """True of the second step, which the first one transposes for."""
        return self.number == 1

    @property
    def columns(self) -> int:
        """Number of columns of the matrix whose columns the step transforms."""
        a, b = split(self.line.n)
        return a if self.number else b

    def blocks(self, lanes: int) -> int:
        """Return the number of blocks for vectors of some number of lanes."""
        return self.rows * -(-self.columns // lanes)

    def scratch(self, plan: Plan) -> int:
        """Return the bytes of scratch of a task."""
        return line_scratch(self.line.n, plan.item)

    def record(self, plan: Plan) -> list[int]:
        """Return the record, a struct in ``fft.h``, and add those that it refers to."""
        return [_ONE_STEP, self.rows, self.line.n, self.columns, plan.line(self.line), self.number]


@dataclass(frozen=True)
class OneRealStep(Stage):
    """The step of long real lines after their transform of half the length, or before the inverse one."""

    h: int
    rows: int
    inverse: bool

    @property
    def width(self) -> int:
        """Number of points of a line after the step."""
        return self.h if self.inverse else self.h + 1

    def blocks(self, lanes: int) -> int:
        """Return the number of blocks for vectors of some number of lanes."""
        return self.rows * -(-(self.h // 2 + 1) // PAIRS)

    def scratch(self, plan: Plan) -> int:
        """Return the bytes of scratch of a task."""
        return 0

    def record(self, plan: Plan) -> list[int]:
        """Return the record, a struct in ``fft.h``, and add those that it refers to."""
        return [_ONE_REAL_STEP, self.rows, self.h, PAIRS, int(self.inverse), plan.real_table(self.h)]


def last_dimension(rows: Rows, ns: float) -> list[Stage]:
    """Return the stages of a last dimension: itself or, of few long lines, each step as a stage of its own.

    Parameters
    ----------
    rows : Rows
        Last dimension.
    ns : float
        Time that it takes on one core.
    """
    h = rows.points
    if rows.is_panel or is_chirp(h) or (rows.is_real and not rows.is_half):
        return [rows]
    if cost.tasks(ns, cost.MAX_TASKS) < MIN_TASKS * rows.rows:
        return [rows]
    steps: list[Stage] = [OneStep(rows.transform, rows.rows, number) for number in (0, 1)]
    real = [OneRealStep(h, rows.rows, rows.inverse)] if rows.is_real else []
    return [*real, *steps] if rows.inverse else [*steps, *real]
