"""Cholesky factors, one block row of the upper factor after the other.

A row of blocks is the matrix less the products of the rows above, settled by the block on the diagonal: the work of a
triangular solve in which the triangle grows. Each phase computes one row of blocks, a panel a part; the part that has
the next block of the diagonal goes on to factor it, while others still work on the row.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles

_TEXT = """\
static KERNEL_f *KERNEL_panel(char *room, int64_t panel) {
  return (KERNEL_f *)(room + KERNEL_X) + panel * KERNEL_PADDED * KERNEL_W;
}

/* The upper triangle's rows of a panel; the rest of its last block is never looked at. */
static void KERNEL_take(const KERNEL_e *a, KERNEL_f *x, int64_t first, int64_t columns) {
  const int64_t rows = first + columns;
  if (columns < KERNEL_W)
    for (int64_t k = 0; k < KERNEL_PADDED * KERNEL_W; ++k) x[k] = 0;
  TAKE
}

/* A tile that holds the diagonal from column `at` on; how many of its rows could be factored. */
static int64_t KERNEL_tile(KERNEL_f *x, int64_t at, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    KERNEL_f *const row = x + r * KERNEL_W;
    const KERNEL_f d = row[at + r];
    if (!(d > 0)) return r;
    const KERNEL_f root = KERNEL_SQRT(d);
    for (int64_t v = 0; v < KERNEL_W; v += KERNEL_LANES) *(KERNEL_v *)(row + v) /= root;
    row[at + r] = root;
    for (int64_t s = r + 1; s < KERNEL_R; ++s) {
      const KERNEL_f l = row[at + s];
      for (int64_t v = 0; v < KERNEL_W; v += KERNEL_LANES)
        *(KERNEL_v *)(x + s * KERNEL_W + v) -= l * *(const KERNEL_v *)(row + v);
    }
  }
  return rows;
}

static void KERNEL_diagonal(char *room, int64_t panel) {
  KERNEL_f *const x = KERNEL_panel(room, panel);
  int64_t *const bad = (int64_t *)(room + KERNEL_BAD);
  for (int64_t at = 0; at < KERNEL_W && !*bad; at += KERNEL_R) {
    const int64_t i = panel * KERNEL_W + at, left = KERNEL_N - i, rows = left < KERNEL_R ? left : KERNEL_R;
    if (rows <= 0) return;
    KERNEL_minus(x + at, KERNEL_W, x, x + i * KERNEL_W, i);
    const int64_t done = KERNEL_tile(x + i * KERNEL_W, at, rows);
    if (done < rows) *bad = i + done + 1;
  }
}

static void KERNEL_row(char *room, int64_t block, int64_t panel) {
  const KERNEL_f *const a = KERNEL_panel(room, block);
  KERNEL_f *const x = KERNEL_panel(room, panel);
  for (int64_t at = 0; at < KERNEL_W; at += KERNEL_R) {
    const int64_t i = block * KERNEL_W + at;
    KERNEL_minus(a + at, KERNEL_W, x, x + i * KERNEL_W, i);
    KERNEL_settle(a + i * KERNEL_W + at, KERNEL_W, x + i * KERNEL_W);
  }
}

GIVE
static void KERNEL_part(PARAMETERS, char *room, int64_t phase, int64_t u) {
  volatile int64_t *const bad = (volatile int64_t *)(room + KERNEL_BAD);
  const int64_t first = u * KERNEL_W, left = KERNEL_N - first, columns = left < KERNEL_W ? left : KERNEL_W;
  if (phase == KERNEL_PANELS) {
    FINISH
  } else if (phase == 0) {
    KERNEL_take(a, KERNEL_panel(room, u), first, columns);
    if (u == 0) {
      *bad = 0;
      KERNEL_diagonal(room, 0);
    }
  } else if (phase + u < KERNEL_PANELS && !(*bad && *bad <= phase * KERNEL_W)) { /* not what this phase finds out */
    KERNEL_row(room, phase - 1, phase + u);
    if (u == 0) KERNEL_diagonal(room, phase);
  }
}
"""
_TAKE = {
    True: "KERNEL_TRANSPOSE(x, KERNEL_W, a + first * KERNEL_N, KERNEL_N, rows, columns);",
    False: "for (int64_t i = 0; i < rows; ++i) KERNEL_copy(x + i * KERNEL_W, a + i * KERNEL_N + first, columns);",
}
_GIVE = {
    True: """static void KERNEL_give(const KERNEL_e *a, char *room, int64_t u, int64_t columns, KERNEL_e *out) {
  const int64_t first = u * KERNEL_W;
  const KERNEL_f *const x = KERNEL_panel(room, u);
  KERNEL_TRANSPOSE(out + first * KERNEL_N, KERNEL_N, x, KERNEL_W, columns, first + columns);
  for (int64_t i = first; i < first + columns; ++i)
    for (int64_t j = i + 1; j < KERNEL_N; ++j) out[i * KERNEL_N + j] = KERNEL_OTHER;
}
""",
    False: """static void KERNEL_give(const KERNEL_e *a, char *room, int64_t u, int64_t columns, KERNEL_e *out) {
  const int64_t first = u * KERNEL_W;
  const KERNEL_f *const x = KERNEL_panel(room, u);
  for (int64_t i = 0; i < KERNEL_N; ++i)
    for (int64_t j = first; j < first + columns; ++j)
      out[i * KERNEL_N + j] = i <= j ? x[i * KERNEL_W + j - first] : KERNEL_OTHER;
}
""",
}
_NAN = """if (!*bad) KERNEL_give(a, room, u, columns, out);
    else
      for (int64_t k = first * KERNEL_N; k < (first + columns) * KERNEL_N; ++k) out[k] = KERNEL_NAN;"""
_INFO = """KERNEL_give(a, room, u, columns, out);
    if (u == 0) *info = (int32_t)*bad;"""


def cholesky(dtype: ElementType, n: int, lower: bool, with_info: bool = False) -> Algorithm:
    """The factor in its triangle.

    Parameters
    ----------
    dtype : ElementType
        F32 or F64.
    n : int
        Rows.
    lower : bool
        Which triangle is read and written.
    with_info : bool
        LAPACK's convention: the other triangle stays as it was, and a second result counts the rows up to the first
        that could not be factored. Otherwise the other triangle is zero, and all of the result nan if there is such a
        row.
    """
    tiles = Tiles.of(dtype, n)
    panels, padded, single = tiles.panels(n), tiles.padded(n), dtype is ElementType.F32
    writes = [(dtype, n * n)]
    parameters, finish = "const KERNEL_e *a, KERNEL_e *out", _NAN
    if with_info:
        writes.append((ElementType.S32, 1))
        parameters, finish = parameters + ", KERNEL_i *info", _INFO
    text = _TEXT.replace("PARAMETERS", parameters).replace("FINISH", finish)
    text = text.replace("TAKE", _TAKE[lower]).replace("GIVE\n", _GIVE[lower])
    names = {
        "KERNEL_OTHER": "a[i * KERNEL_N + j]" if with_info else "0",
        "KERNEL_SQRT": "__builtin_sqrtf" if single else "__builtin_sqrt",
        "KERNEL_NAN": '__builtin_nanf("")' if single else '__builtin_nan("")',
    }
    for name, value in names.items():
        text = text.replace(name, value)
    return Algorithm(
        "cholesky", tiles, text, {"N": n, "PANELS": panels, "PADDED": padded}, [(dtype, n * n)], writes, panels + 1,
        panels, n**3 / 6, {"BAD": 8, "X": panels * padded * tiles.width * dtype.itemsize},
    )  # fmt: skip
