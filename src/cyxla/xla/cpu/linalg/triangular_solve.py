"""Triangular systems of many right sides: tiles of the unknowns, solved in registers.

All forms are one: the triangle is copied so that it is a lower one to be solved from the top, row by row of tiles, and
the right sides so that they are columns of panels, padded with zeros. Panels do not depend on each other.
"""

from __future__ import annotations

from typing import NamedTuple

from cyxla.types import ElementType
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles
from cyxla.xla.cpu.linalg.vector_solve import LEAST_ROWS, MOST_COLUMNS, vector_solve


class Form(NamedTuple):
    """Which system: ``op(a) x = b`` or, unless `left`, ``x op(a) = b``.

    Attributes
    ----------
    left, lower, transposed, unit : bool
        As the attributes of triangular-solve say.
    """

    left: bool
    lower: bool
    transposed: bool
    unit: bool


_TEXT = """\
/* Rows of the triangle, in tiles: row r, column q lies at [q][r]. Rows after the last are those of the identity. */
static void KERNEL_triangle(const KERNEL_e *a, KERNEL_f *to, int64_t first) {
  const int64_t left = KERNEL_N - first, rows = left < KERNEL_R ? left : KERNEL_R, columns = first + rows;
  const KERNEL_e *const from = a + KERNEL_A_START + first * KERNEL_A_ROW;
  TRIANGLE
  for (int64_t r = 0; r < KERNEL_R; ++r) {
    if (r >= rows)
      for (int64_t q = 0; q < first + KERNEL_R; ++q) to[q * KERNEL_R + r] = 0;
    if (r >= rows || KERNEL_UNIT) to[(first + r) * KERNEL_R + r] = 1;
  }
}

static KERNEL_f *KERNEL_tile_row(char *room, int64_t tile) {
  return (KERNEL_f *)(room + KERNEL_L) + tile * (tile + 1) / 2 * KERNEL_R * KERNEL_R;
}

/* A panel of right sides, and back to where the solution belongs. */
static void KERNEL_take(const KERNEL_e *b, KERNEL_f *x, int64_t first, int64_t columns) {
  if (columns < KERNEL_W)
    for (int64_t k = 0; k < KERNEL_N * KERNEL_W; ++k) x[k] = 0;
  TAKE
  for (int64_t k = KERNEL_N * KERNEL_W; k < KERNEL_PADDED * KERNEL_W; ++k) x[k] = 0;
}

static void KERNEL_give(const KERNEL_f *x, KERNEL_e *to, int64_t first, int64_t columns) {
  GIVE
}

static void KERNEL_part(const KERNEL_e *a, const KERNEL_e *b, KERNEL_e *out, char *room, int64_t phase, int64_t u) {
  if (phase == 0) {
    for (int64_t t = u; t < KERNEL_TILES; t += KERNEL_PARTS) KERNEL_triangle(a, KERNEL_tile_row(room, t), t * KERNEL_R);
    return;
  }
  for (int64_t panel = u; panel < KERNEL_PANELS; panel += KERNEL_PARTS) {
    KERNEL_f *const x = (KERNEL_f *)(room + KERNEL_X) + panel * KERNEL_PADDED * KERNEL_W;
    const int64_t first = panel * KERNEL_W, left = KERNEL_M - first, columns = left < KERNEL_W ? left : KERNEL_W;
    KERNEL_take(b, x, first, columns);
    for (int64_t t = 0; t < KERNEL_TILES; ++t) {
      const KERNEL_f *const l = KERNEL_tile_row(room, t);
      const int64_t i = t * KERNEL_R;
      KERNEL_minus(l, KERNEL_R, x, x + i * KERNEL_W, i);
      KERNEL_settle(l + i * KERNEL_R, KERNEL_R, x + i * KERNEL_W);
    }
    KERNEL_give(x, out, first, columns);
  }
}
"""
# Innermost is the loop along which the source is contiguous.
_ROWS_INSIDE = """for (int64_t q = 0; q < columns; ++q)
    for (int64_t r = 0; r < rows; ++r) to[q * KERNEL_R + r] = from[r * KERNEL_A_ROW + q * KERNEL_A_COLUMN];"""
_COLUMNS_INSIDE = """for (int64_t r = 0; r < rows; ++r)
    for (int64_t q = 0; q < columns; ++q) to[q * KERNEL_R + r] = from[r * KERNEL_A_ROW + q * KERNEL_A_COLUMN];"""
_TURN = "  KERNEL_TRANSPOSE(x + {start}, {step}, b + first * KERNEL_N, KERNEL_N, KERNEL_N, columns);"
_TURN_BACK = "  KERNEL_TRANSPOSE(to + first * KERNEL_N, KERNEL_N, x + {start}, {step}, columns, KERNEL_N);"
_COPY = """for (int64_t i = 0; i < KERNEL_N; ++i)
    KERNEL_copy(x + ({row}) * KERNEL_W, b + i * KERNEL_M + first, columns);"""
_COPY_BACK = """for (int64_t i = 0; i < KERNEL_N; ++i)
    KERNEL_copy(to + i * KERNEL_M + first, x + ({row}) * KERNEL_W, columns);"""


def triangular_solve(dtype: ElementType, n: int, columns: int, form: Form) -> Algorithm:
    """The solution of a system of `n` unknowns for `columns` right sides; these are rows unless `left`."""
    turned = form.transposed == form.left  # x op(a) = b is op(a)^T x^T = b^T
    backward = form.lower == turned
    if columns <= MOST_COLUMNS and n > LEAST_ROWS:
        return vector_solve(
            dtype, n, columns, left=form.left, turned=turned, backward=backward, unit=form.unit
        )  # fmt: skip
    tiles = Tiles.of(dtype, columns)
    row, column = (1, n) if turned else (n, 1)
    if backward:
        row, column = -row, -column
    panels, count = tiles.panels(columns), -(-n // tiles.rows)
    padded, size = tiles.padded(n), dtype.itemsize
    start, step = ("(KERNEL_N - 1) * KERNEL_W", "-KERNEL_W") if backward else ("0", "KERNEL_W")
    mirrored = "KERNEL_N - 1 - i" if backward else "i"
    take, give = (_COPY, _COPY_BACK) if form.left else (_TURN, _TURN_BACK)
    text = _TEXT.replace("TRIANGLE", _ROWS_INSIDE if turned else _COLUMNS_INSIDE)
    for name, piece in (("TAKE", take), ("GIVE", give)):
        text = text.replace(f"  {name}\n", f"  {piece.format(start=start, step=step, row=mirrored).strip()}\n")
    parts = max(panels, min(count, 16))
    return Algorithm(
        "triangular-solve", tiles, text,
        {"N": n, "M": columns, "PANELS": panels, "TILES": count, "PADDED": padded, "PARTS": parts,
         "A_START": n * n - 1 if backward else 0, "A_ROW": row, "A_COLUMN": column, "UNIT": int(form.unit)},
        [(dtype, n * n), (dtype, n * columns)], [(dtype, n * columns)], 2, parts, n * n / 2 * panels * tiles.width,
        {"L": count * (count + 1) // 2 * tiles.rows**2 * size, "X": panels * padded * tiles.width * size},
    )  # fmt: skip
