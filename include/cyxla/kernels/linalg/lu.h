/* LU with partial pivoting, panels factored column by column, then the trailing rows updated in blocks: parts of a
 * kernel.
 *
 * Each phase applies one factored panel to those behind it, one panel in each part; the part that has the next panel
 * goes on to factor it. The last phase applies the pivots of later panels and stores the result.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   LU_PREFIX      prefix of all names; the entry point is `prefix_part(a, out, pivots, last, scratch, phase, u)`.
 * Defined before are types and functions of tiles (xla/cpu/linalg/tiles.py): update_nn, solve_unit, rank_1_update and
 * copy LU_BITS        width of an element: 32 or 64 LU_LANES       elements of a vector LU_WIDTH       columns of a
 * panel LU_TILE_ROWS   rows of a tile, a divisor of the width LU_M, LU_N     rows and columns of the matrix LU_K the
 * lesser of them LU_PADDED      rows of a panel, a multiple of the width LU_PANELS      panels LU_LAST_PHASE  index of
 * the last phase LU_INFO        1 for LAPACK's convention: pivots count from 1, and the third result is the number of
 * the first pivot that is zero, or 0; 0: pivots count from 0, and the third result is the order of the rows
 *   LU_X_OFFSET, LU_L_OFFSET, LU_PIVOTS_OFFSET, LU_ZERO_OFFSET  bytes in the scratch of a problem where the panels,
 *                  two panels of L, the pivots and the number of the first that is zero begin
 */
#include "../../abi.h"
#include "../../compiler.h"

#define LU(name) CYX_JOIN(LU_PREFIX, name)
#define LU_REAL LU(real)
#define LU_ELEMENT LU(element)
#define LU_VECTOR LU(vector)
#define LU_INDEX LU(index)
#if LU_BITS == 32
#define LU_ABS __builtin_fabsf
#define LU_SMALLEST 0x1p-126f /* with a reciprocal in range */
#else
#define LU_ABS __builtin_fabs
#define LU_SMALLEST 0x1p-1022
#endif

static LU_REAL *LU(panel)(char *scratch, int64_t panel) {
  return (LU_REAL *)(scratch + LU_X_OFFSET) + panel * LU_PADDED * LU_WIDTH;
}

/* The part below the diagonal of a factored panel, with ones and zeros above; of the last two panels. */
static LU_REAL *LU(lower)(char *scratch, int64_t panel) {
  return (LU_REAL *)(scratch + LU_L_OFFSET) + panel % 2 * LU_PADDED * LU_WIDTH;
}

/* Columns of a panel that have a pivot. */
static int64_t LU(count)(int64_t panel) {
  const int64_t left = LU_K - panel * LU_WIDTH;
  return left < LU_WIDTH ? left : LU_WIDTH;
}

static void LU(swap_rows)(LU_REAL *x, int64_t r, int64_t s) {
  for (int64_t c = 0; c < LU_WIDTH; c += LU_LANES) {
    LU_VECTOR *const p = (LU_VECTOR *)(x + r * LU_WIDTH + c), *const q = (LU_VECTOR *)(x + s * LU_WIDTH + c);
    const LU_VECTOR kept = *p;
    *p = *q;
    *q = kept;
  }
}

/* Swap rows of a panel as the pivots of another panel say. */
static void LU(apply_pivots)(LU_REAL *x, const int64_t *pivots, int64_t panel) {
  const int64_t first = panel * LU_WIDTH, count = LU(count)(panel);
  for (int64_t k = first; k < first + count; ++k)
    if (pivots[k] != k) LU(swap_rows)(x, k, pivots[k]);
}

static void LU(factor)(char *scratch, int64_t panel) {
  LU_REAL *const x = LU(panel)(scratch, panel), *const l = LU(lower)(scratch, panel);
  int64_t *const pivots = (int64_t *)(scratch + LU_PIVOTS_OFFSET), *const zero = (int64_t *)(scratch + LU_ZERO_OFFSET);
  const int64_t first = panel * LU_WIDTH, count = LU(count)(panel);
  for (int64_t j = 0; j < count; ++j) {
    const int64_t row = first + j;
    int64_t best = row;
    LU_REAL most = LU_ABS(x[row * LU_WIDTH + j]);
    for (int64_t r = row + 1; r < LU_M; ++r) {
      const LU_REAL size = LU_ABS(x[r * LU_WIDTH + j]);
      if (size > most) {
        most = size;
        best = r;
      }
    }
    pivots[row] = best;
    if (most == 0) {
      if (!*zero) *zero = row + 1;
      continue;
    }
    if (best != row) LU(swap_rows)(x, row, best);
    const LU_REAL pivot = x[row * LU_WIDTH + j];
    if (most >= LU_SMALLEST) {
      const LU_REAL inverse = 1 / pivot;
      for (int64_t r = row + 1; r < LU_M; ++r) x[r * LU_WIDTH + j] *= inverse;
    } else {
      for (int64_t r = row + 1; r < LU_M; ++r) x[r * LU_WIDTH + j] /= pivot;
    }
    LU_REAL w[LU_WIDTH] __attribute__((aligned(64)));
    for (int64_t c = 0; c < LU_WIDTH; ++c) w[c] = c <= j ? 0 : x[row * LU_WIDTH + c];
    LU(rank_1_update)(x, j, row + 1, LU_M, w);
  }
  for (int64_t r = first; r < LU_PADDED; ++r) {
    const int64_t below = r - first < count ? r - first : count;
    LU_REAL *const to = l + r * LU_WIDTH;
    for (int64_t c = 0; c < below; ++c) to[c] = x[r * LU_WIDTH + c];
    for (int64_t c = below; c < LU_WIDTH; ++c) to[c] = 0;
  }
}

/* Apply a factored panel, `block`, to one behind it: swap rows, solve those of the block, update those below. */
static void LU(update)(char *scratch, int64_t block, int64_t panel) {
  const LU_REAL *const l = LU(lower)(scratch, block);
  LU_REAL *const x = LU(panel)(scratch, panel);
  const int64_t first = block * LU_WIDTH;
  LU_REAL *const top = x + first * LU_WIDTH;
  LU(apply_pivots)(x, (const int64_t *)(scratch + LU_PIVOTS_OFFSET), block);
  for (int64_t at = 0; at < LU_WIDTH; at += LU_TILE_ROWS) {
    const int64_t r = first + at;
    LU(update_nn)(l + r * LU_WIDTH, top, x + r * LU_WIDTH, at);
    LU(solve_unit)(l + r * LU_WIDTH + at, x + r * LU_WIDTH);
  }
  for (int64_t r = first + LU_WIDTH; r < LU_PADDED; r += LU_TILE_ROWS)
    LU(update_nn)(l + r * LU_WIDTH, top, x + r * LU_WIDTH, LU_WIDTH);
}

#if LU_INFO
static void LU(store_pivots)(const char *scratch, LU_INDEX *pivots, LU_INDEX *last) {
  const int64_t *const found = (const int64_t *)(scratch + LU_PIVOTS_OFFSET);
  for (int64_t k = 0; k < LU_K; ++k) pivots[k] = (int32_t)(found[k] + 1);
  *last = (int32_t) * (const int64_t *)(scratch + LU_ZERO_OFFSET);
}
#else
static void LU(store_pivots)(const char *scratch, LU_INDEX *pivots, LU_INDEX *last) {
  const int64_t *const found = (const int64_t *)(scratch + LU_PIVOTS_OFFSET);
  for (int64_t k = 0; k < LU_K; ++k) pivots[k] = (int32_t)found[k];
  for (int64_t r = 0; r < LU_M; ++r) last[r] = (int32_t)r;
  for (int64_t k = 0; k < LU_K; ++k) {
    const int32_t kept = last[k];
    last[k] = last[found[k]];
    last[found[k]] = kept;
  }
}
#endif

static void LU(part)(const LU_ELEMENT *a, LU_ELEMENT *out, LU_INDEX *pivots, LU_INDEX *last, char *scratch,
                     int64_t phase, int64_t u) {
  const int64_t first = u * LU_WIDTH, left = LU_N - first, columns = left < LU_WIDTH ? left : LU_WIDTH;
  LU_REAL *const x = LU(panel)(scratch, u);
  if (phase == LU_LAST_PHASE) {
    for (int64_t block = u + 1; block * LU_WIDTH < LU_K; ++block)
      LU(apply_pivots)(x, (const int64_t *)(scratch + LU_PIVOTS_OFFSET), block);
    for (int64_t r = 0; r < LU_M; ++r) LU(copy)(out + r * LU_N + first, x + r * LU_WIDTH, columns);
    if (u == 0) LU(store_pivots)(scratch, pivots, last);
  } else if (phase == 0) {
    for (int64_t k = columns < LU_WIDTH ? 0 : LU_M * LU_WIDTH; k < LU_PADDED * LU_WIDTH; ++k) x[k] = 0;
    for (int64_t r = 0; r < LU_M; ++r) LU(copy)(x + r * LU_WIDTH, a + r * LU_N + first, columns);
    if (u == 0) {
      *(int64_t *)(scratch + LU_ZERO_OFFSET) = 0;
      LU(factor)(scratch, 0);
    }
  } else if (phase + u < LU_PANELS) {
    LU(update)(scratch, phase - 1, phase + u);
    if (u == 0 && phase * LU_WIDTH < LU_K) LU(factor)(scratch, phase);
  }
}

#undef LU_PREFIX
#undef LU_BITS
#undef LU_LANES
#undef LU_WIDTH
#undef LU_TILE_ROWS
#undef LU_M
#undef LU_N
#undef LU_K
#undef LU_PADDED
#undef LU_PANELS
#undef LU_LAST_PHASE
#undef LU_INFO
#undef LU_X_OFFSET
#undef LU_L_OFFSET
#undef LU_PIVOTS_OFFSET
#undef LU_ZERO_OFFSET
#undef LU_ABS
#undef LU_SMALLEST
