"""LU with partial pivoting: panels factored column by column, then the trailing rows updated in blocks."""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles

_TEXT = """\
static KERNEL_f *KERNEL_panel(char *room, int64_t panel) {
  return (KERNEL_f *)(room + KERNEL_X) + panel * KERNEL_PADDED * KERNEL_W;
}

static KERNEL_f *KERNEL_lower(char *room, int64_t block) {
  return (KERNEL_f *)(room + KERNEL_L) + block % 2 * KERNEL_PADDED * KERNEL_W;
}

static int64_t KERNEL_count(int64_t block) {
  const int64_t left = KERNEL_K - block * KERNEL_W;
  return left < KERNEL_W ? left : KERNEL_W;
}

static void KERNEL_swap(KERNEL_f *x, int64_t r, int64_t s) {
  for (int64_t c = 0; c < KERNEL_W; c += KERNEL_LANES) {
    KERNEL_v *const p = (KERNEL_v *)(x + r * KERNEL_W + c), *const q = (KERNEL_v *)(x + s * KERNEL_W + c);
    const KERNEL_v kept = *p;
    *p = *q;
    *q = kept;
  }
}

static void KERNEL_swap_all(KERNEL_f *x, const int64_t *pivots, int64_t block) {
  const int64_t first = block * KERNEL_W, count = KERNEL_count(block);
  for (int64_t k = first; k < first + count; ++k)
    if (pivots[k] != k) KERNEL_swap(x, k, pivots[k]);
}

static void KERNEL_factor(char *room, int64_t panel) {
  KERNEL_f *const x = KERNEL_panel(room, panel), *const l = KERNEL_lower(room, panel);
  int64_t *const pivots = (int64_t *)(room + KERNEL_PIVOTS), *const bad = (int64_t *)(room + KERNEL_BAD);
  const int64_t first = panel * KERNEL_W, count = KERNEL_count(panel);
  for (int64_t j = 0; j < count; ++j) {
    const int64_t row = first + j;
    int64_t best = row;
    KERNEL_f most = KERNEL_FABS(x[row * KERNEL_W + j]);
    for (int64_t r = row + 1; r < KERNEL_M; ++r) {
      const KERNEL_f size = KERNEL_FABS(x[r * KERNEL_W + j]);
      if (size > most) {
        most = size;
        best = r;
      }
    }
    pivots[row] = best;
    if (most == 0) {
      if (!*bad) *bad = row + 1;
      continue;
    }
    if (best != row) KERNEL_swap(x, row, best);
    const KERNEL_f pivot = x[row * KERNEL_W + j];
    if (most >= KERNEL_SMALLEST) {
      const KERNEL_f inverse = 1 / pivot;
      for (int64_t r = row + 1; r < KERNEL_M; ++r) x[r * KERNEL_W + j] *= inverse;
    } else {
      for (int64_t r = row + 1; r < KERNEL_M; ++r) x[r * KERNEL_W + j] /= pivot;
    }
    KERNEL_f w[KERNEL_W] __attribute__((aligned(64)));
    for (int64_t c = 0; c < KERNEL_W; ++c) w[c] = c <= j ? 0 : x[row * KERNEL_W + c];
    KERNEL_outer(x, j, row + 1, KERNEL_M, w);
  }
  for (int64_t r = first; r < KERNEL_PADDED; ++r) { /* unit lower trapezoidal */
    const int64_t below = r - first < count ? r - first : count;
    KERNEL_f *const to = l + r * KERNEL_W;
    for (int64_t c = 0; c < below; ++c) to[c] = x[r * KERNEL_W + c];
    for (int64_t c = below; c < KERNEL_W; ++c) to[c] = 0;
  }
}

/* A panel after the block: its rows in their new order, those of the block settled, the products taken off the rest. */
static void KERNEL_update(char *room, int64_t block, int64_t panel) {
  const KERNEL_f *const l = KERNEL_lower(room, block);
  KERNEL_f *const x = KERNEL_panel(room, panel);
  const int64_t first = block * KERNEL_W;
  KERNEL_f *const top = x + first * KERNEL_W;
  KERNEL_swap_all(x, (const int64_t *)(room + KERNEL_PIVOTS), block);
  for (int64_t at = 0; at < KERNEL_W; at += KERNEL_R) {
    const int64_t r = first + at;
    KERNEL_along(l + r * KERNEL_W, top, x + r * KERNEL_W, at);
    KERNEL_settle_unit(l + r * KERNEL_W + at, x + r * KERNEL_W);
  }
  for (int64_t r = first + KERNEL_W; r < KERNEL_PADDED; r += KERNEL_R)
    KERNEL_along(l + r * KERNEL_W, top, x + r * KERNEL_W, KERNEL_W);
}

static void KERNEL_finish(const char *room, KERNEL_i *pivots, KERNEL_i *last) {
  const int64_t *const found = (const int64_t *)(room + KERNEL_PIVOTS);
  for (int64_t k = 0; k < KERNEL_K; ++k) pivots[k] = (int32_t)(found[k] + KERNEL_ONE);
  FINISH
}

static void KERNEL_part(
    const KERNEL_e *a, KERNEL_e *out, KERNEL_i *pivots, KERNEL_i *last, char *room, int64_t phase, int64_t u) {
  const int64_t first = u * KERNEL_W, left = KERNEL_N - first, columns = left < KERNEL_W ? left : KERNEL_W;
  KERNEL_f *const x = KERNEL_panel(room, u);
  if (phase == KERNEL_LAST) {
    for (int64_t block = u + 1; block * KERNEL_W < KERNEL_K; ++block)
      KERNEL_swap_all(x, (const int64_t *)(room + KERNEL_PIVOTS), block);
    for (int64_t r = 0; r < KERNEL_M; ++r) KERNEL_copy(out + r * KERNEL_N + first, x + r * KERNEL_W, columns);
    if (u == 0) KERNEL_finish(room, pivots, last);
  } else if (phase == 0) {
    for (int64_t k = columns < KERNEL_W ? 0 : KERNEL_M * KERNEL_W; k < KERNEL_PADDED * KERNEL_W; ++k) x[k] = 0;
    for (int64_t r = 0; r < KERNEL_M; ++r) KERNEL_copy(x + r * KERNEL_W, a + r * KERNEL_N + first, columns);
    if (u == 0) {
      *(int64_t *)(room + KERNEL_BAD) = 0;
      KERNEL_factor(room, 0);
    }
  } else if (phase + u < KERNEL_PANELS) {
    KERNEL_update(room, phase - 1, phase + u);
    if (u == 0 && phase * KERNEL_W < KERNEL_K) KERNEL_factor(room, phase);
  }
}
"""
_INFO = "*last = (int32_t) * (const int64_t *)(room + KERNEL_BAD);"
_ORDER = """for (int64_t r = 0; r < KERNEL_M; ++r) last[r] = (int32_t)r;
  for (int64_t k = 0; k < KERNEL_K; ++k) {
    const int32_t kept = last[k];
    last[k] = last[found[k]];
    last[found[k]] = kept;
  }"""


def lu(dtype: ElementType, m: int, n: int, with_info: bool) -> Algorithm:
    """L below U, the pivots, and a third result.

    Parameters
    ----------
    dtype : ElementType
        F32 or F64.
    m, n : int
        Rows and columns.
    with_info : bool
        LAPACK's convention: pivots count from 1, and the third result is the number of the first pivot that is zero.
        Otherwise pivots count from 0, and the third result is the order of the rows.
    """
    k = min(m, n)
    tiles = Tiles.of(dtype, n)
    panels, padded, width, size = tiles.panels(n), tiles.padded(m), tiles.width, dtype.itemsize
    steps = min(-(-k // width), panels - 1)
    text = _TEXT.replace("FINISH", _INFO if with_info else _ORDER)
    single = dtype is ElementType.F32
    text = text.replace("KERNEL_FABS", "__builtin_fabsf" if single else "__builtin_fabs")
    text = text.replace("KERNEL_SMALLEST", "0x1p-126f" if single else "0x1p-1022")
    third = (ElementType.S32, 1 if with_info else m)
    return Algorithm(
        "lu", tiles, text,
        {"M": m, "N": n, "K": k, "PANELS": panels, "PADDED": padded, "LAST": steps + 1, "ONE": int(with_info)},
        [(dtype, m * n)], [(dtype, m * n), (ElementType.S32, k), third], steps + 2, panels,
        (m - k / 3) * k * (n - k / 2) + m * k * width,
        {"BAD": 8, "PIVOTS": 8 * k, "X": panels * padded * width * size, "L": 2 * padded * width * size},
    )  # fmt: skip
