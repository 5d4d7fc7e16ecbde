/* Cholesky factors, one block row of the upper factor after the other: parts of a kernel.
 *
 * A row of blocks is the matrix less the products of the rows above, solved by the block on the diagonal. Each phase
 * computes one row of blocks, a panel in each part; the part with the next block of the diagonal also factors
 * it. The last phase stores the factor.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   CHOLESKY_PREFIX     prefix of all names; the entry point is `prefix_part(a, out, scratch, phase, u)`, or with
 *                       CHOLESKY_INFO `prefix_part(a, out, info, scratch, phase, u)`. Types and functions of
 *                       tiles (xla/cpu/linalg/tiles.py) precede this text: update_tn, solve and copy
 *   CHOLESKY_BITS       width of an element: 32 or 64
 *   CHOLESKY_LANES      elements of a vector
 *   CHOLESKY_WIDTH      columns of a panel
 *   CHOLESKY_TILE_ROWS  rows of a tile, a divisor of the width
 *   CHOLESKY_N          rows of the matrix
 *   CHOLESKY_PADDED     rows of a panel, a multiple of the width
 *   CHOLESKY_PANELS     panels; number of phases before the last
 *   CHOLESKY_LOWER      1 if the lower triangle is read and written, 0 if the upper
 *   CHOLESKY_INFO       1 for LAPACK's convention: the other triangle of the result is that of the operand, and the
 *                       second result is the number of rows up to the first that could not be factored, or 0;
 *                       0: the other triangle is zero, and all of the result NaN if there is such a row
 *   CHOLESKY_TRANSPOSE  transposes a tile of elements, cyx_tile_4 or cyx_tile_8; for the lower triangle
 *   CHOLESKY_X_OFFSET, CHOLESKY_FAILED_OFFSET  bytes in the scratch of a problem where the panels and the number of
 *                       rows up to the first that failed begin
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../scalar.h"
#include "../../loops.h"

#define CHOLESKY(name) CYX_JOIN(CHOLESKY_PREFIX, name)
#define CHOLESKY_REAL CHOLESKY(real)
#define CHOLESKY_ELEMENT CHOLESKY(element)
#define CHOLESKY_VECTOR CHOLESKY(vector)
#define CHOLESKY_INDEX CHOLESKY(index)
#if CHOLESKY_BITS == 32
#define CHOLESKY_SQRT __builtin_sqrtf
#define CHOLESKY_NAN __builtin_nanf("")
#else
#define CHOLESKY_SQRT __builtin_sqrt
#define CHOLESKY_NAN __builtin_nan("")
#endif

static CHOLESKY_REAL *CHOLESKY(panel)(char *scratch, int64_t panel) {
  return (CHOLESKY_REAL *)(scratch + CHOLESKY_X_OFFSET) + panel * CHOLESKY_PADDED * CHOLESKY_WIDTH;
}

/* Load the upper triangle of a panel, with its last block complete, and store a panel of the result. */
#if CHOLESKY_LOWER
static void CHOLESKY(load)(const CHOLESKY_ELEMENT *a, CHOLESKY_REAL *x, int64_t first, int64_t columns) {
  const int64_t rows = first + columns;
  if (columns < CHOLESKY_WIDTH)
    for (int64_t k = 0; k < CHOLESKY_PADDED * CHOLESKY_WIDTH; ++k) x[k] = 0;
  CHOLESKY_TRANSPOSE(x, CHOLESKY_WIDTH, a + first * CHOLESKY_N, CHOLESKY_N, rows, columns);
}

static void CHOLESKY(store)(const CHOLESKY_ELEMENT *a, const CHOLESKY_REAL *x, int64_t first, int64_t columns,
                            CHOLESKY_ELEMENT *out) {
  CHOLESKY_TRANSPOSE(out + first * CHOLESKY_N, CHOLESKY_N, x, CHOLESKY_WIDTH, columns, first + columns);
  for (int64_t i = first; i < first + columns; ++i)
    for (int64_t j = i + 1; j < CHOLESKY_N; ++j) out[i * CHOLESKY_N + j] = CHOLESKY_INFO ? a[i * CHOLESKY_N + j] : 0;
}
#else
static void CHOLESKY(load)(const CHOLESKY_ELEMENT *a, CHOLESKY_REAL *x, int64_t first, int64_t columns) {
  const int64_t rows = first + columns;
  if (columns < CHOLESKY_WIDTH)
    for (int64_t k = 0; k < CHOLESKY_PADDED * CHOLESKY_WIDTH; ++k) x[k] = 0;
  for (int64_t i = 0; i < rows; ++i) CHOLESKY(copy)(x + i * CHOLESKY_WIDTH, a + i * CHOLESKY_N + first, columns);
}

static void CHOLESKY(store)(const CHOLESKY_ELEMENT *a, const CHOLESKY_REAL *x, int64_t first, int64_t columns,
                            CHOLESKY_ELEMENT *out) {
  for (int64_t i = 0; i < CHOLESKY_N; ++i)
    for (int64_t j = first; j < first + columns; ++j)
      out[i * CHOLESKY_N + j] = i <= j ? x[i * CHOLESKY_WIDTH + j - first] : CHOLESKY_INFO ? a[i * CHOLESKY_N + j] : 0;
}
#endif

/* Factor a tile with the diagonal from column `column` on; return the number of rows before the first that fails. */
static int64_t CHOLESKY(factor_tile)(CHOLESKY_REAL *x, int64_t column, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    CHOLESKY_REAL *const row = x + r * CHOLESKY_WIDTH;
    const CHOLESKY_REAL d = row[column + r];
    if (!(d > 0)) return r;
    const CHOLESKY_REAL root = CHOLESKY_SQRT(d);
    for (int64_t v = 0; v < CHOLESKY_WIDTH; v += CHOLESKY_LANES) *(CHOLESKY_VECTOR *)(row + v) /= root;
    row[column + r] = root;
    for (int64_t s = r + 1; s < CHOLESKY_TILE_ROWS; ++s) {
      const CHOLESKY_REAL l = row[column + s];
      for (int64_t v = 0; v < CHOLESKY_WIDTH; v += CHOLESKY_LANES)
        *(CHOLESKY_VECTOR *)(x + s * CHOLESKY_WIDTH + v) -= l * *(const CHOLESKY_VECTOR *)(row + v);
    }
  }
  return rows;
}

static void CHOLESKY(factor_diagonal)(char *scratch, int64_t panel) {
  CHOLESKY_REAL *const x = CHOLESKY(panel)(scratch, panel);
  int64_t *const failed = (int64_t *)(scratch + CHOLESKY_FAILED_OFFSET);
  for (int64_t column = 0; column < CHOLESKY_WIDTH && !*failed; column += CHOLESKY_TILE_ROWS) {
    const int64_t i = panel * CHOLESKY_WIDTH + column, remaining = CHOLESKY_N - i;
    const int64_t rows = remaining < CHOLESKY_TILE_ROWS ? remaining : CHOLESKY_TILE_ROWS;
    if (rows <= 0) return;
    CHOLESKY(update_tn)(x + column, CHOLESKY_WIDTH, x, x + i * CHOLESKY_WIDTH, i);
    const int64_t done = CHOLESKY(factor_tile)(x + i * CHOLESKY_WIDTH, column, rows);
    if (done < rows) *failed = i + done + 1;
  }
}

/* Compute a block of a panel in a row of blocks whose diagonal block is factored. */
static void CHOLESKY(solve_block)(char *scratch, int64_t block, int64_t panel) {
  const CHOLESKY_REAL *const a = CHOLESKY(panel)(scratch, block);
  CHOLESKY_REAL *const x = CHOLESKY(panel)(scratch, panel);
  for (int64_t column = 0; column < CHOLESKY_WIDTH; column += CHOLESKY_TILE_ROWS) {
    const int64_t i = block * CHOLESKY_WIDTH + column;
    CHOLESKY(update_tn)(a + column, CHOLESKY_WIDTH, x, x + i * CHOLESKY_WIDTH, i);
    CHOLESKY(solve)(a + i * CHOLESKY_WIDTH + column, CHOLESKY_WIDTH, x + i * CHOLESKY_WIDTH);
  }
}

/* Run a part of a phase before the last. */
static void CHOLESKY(factor)(const CHOLESKY_ELEMENT *a, char *scratch, int64_t phase, int64_t u) {
  volatile int64_t *const failed = (volatile int64_t *)(scratch + CHOLESKY_FAILED_OFFSET);
  if (phase == 0) {
    const int64_t first = u * CHOLESKY_WIDTH, remaining = CHOLESKY_N - first;
    CHOLESKY(load)(a, CHOLESKY(panel)(scratch, u), first, remaining < CHOLESKY_WIDTH ? remaining : CHOLESKY_WIDTH);
    if (u == 0) {
      *failed = 0;
      CHOLESKY(factor_diagonal)(scratch, 0);
    }
  } else if (phase + u < CHOLESKY_PANELS && !(*failed && *failed <= phase * CHOLESKY_WIDTH)) {
    /* a failure in the rows of this phase, found by another part at any time, does not stop this part */
    CHOLESKY(solve_block)(scratch, phase - 1, phase + u);
    if (u == 0) CHOLESKY(factor_diagonal)(scratch, phase);
  }
}

#if CHOLESKY_INFO
static void CHOLESKY(part)(const CHOLESKY_ELEMENT *a, CHOLESKY_ELEMENT *out, CHOLESKY_INDEX *info, char *scratch,
                           int64_t phase, int64_t u) {
  if (phase < CHOLESKY_PANELS) {
    CHOLESKY(factor)(a, scratch, phase, u);
    return;
  }
  const int64_t first = u * CHOLESKY_WIDTH, remaining = CHOLESKY_N - first;
  const int64_t columns = remaining < CHOLESKY_WIDTH ? remaining : CHOLESKY_WIDTH;
  CHOLESKY(store)(a, CHOLESKY(panel)(scratch, u), first, columns, out);
  if (u == 0) *info = (int32_t) * (const int64_t *)(scratch + CHOLESKY_FAILED_OFFSET);
}
#else
static void CHOLESKY(part)(const CHOLESKY_ELEMENT *a, CHOLESKY_ELEMENT *out, char *scratch, int64_t phase, int64_t u) {
  if (phase < CHOLESKY_PANELS) {
    CHOLESKY(factor)(a, scratch, phase, u);
    return;
  }
  const int64_t first = u * CHOLESKY_WIDTH, remaining = CHOLESKY_N - first;
  const int64_t columns = remaining < CHOLESKY_WIDTH ? remaining : CHOLESKY_WIDTH;
  if (!*(const int64_t *)(scratch + CHOLESKY_FAILED_OFFSET))
    CHOLESKY(store)(a, CHOLESKY(panel)(scratch, u), first, columns, out);
  else
    for (int64_t k = first * CHOLESKY_N; k < (first + columns) * CHOLESKY_N; ++k) out[k] = CHOLESKY_NAN;
}
#endif

#undef CHOLESKY_PREFIX
#undef CHOLESKY_BITS
#undef CHOLESKY_LANES
#undef CHOLESKY_WIDTH
#undef CHOLESKY_TILE_ROWS
#undef CHOLESKY_N
#undef CHOLESKY_PADDED
#undef CHOLESKY_PANELS
#undef CHOLESKY_LOWER
#undef CHOLESKY_INFO
#undef CHOLESKY_TRANSPOSE
#undef CHOLESKY_X_OFFSET
#undef CHOLESKY_FAILED_OFFSET
#undef CHOLESKY_SQRT
#undef CHOLESKY_NAN
