/* Triangular systems of many right-hand sides, tiles of the unknowns solved in registers: parts of a kernel.
 *
 * All forms are reduced to one: the triangle is copied as a lower one that is solved from the top, by rows of tiles,
 * and the right-hand sides as columns of panels, padded with zeros. Panels are independent. The first phase copies the
 * triangle, the second one solves.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   SOLVE_PREFIX      prefix of all names; the entry point is `prefix_part(a, b, out, scratch, phase, u)`.
 *                     Types and functions of tiles (xla/cpu/linalg/tiles.py) precede this text: update_tn, solve and,
 *                     with SOLVE_LEFT, copy
 *   SOLVE_WIDTH       columns of a panel
 *   SOLVE_TILE_ROWS   rows of a tile, a divisor of the width
 *   SOLVE_N, SOLVE_M  unknowns and right-hand sides
 *   SOLVE_PADDED      rows of a panel, a multiple of the width
 *   SOLVE_PANELS      panels
 *   SOLVE_TILES       rows of tiles of the triangle
 *   SOLVE_PARTS       parts of a phase
 *   SOLVE_LEFT        1 if right-hand sides are columns, 0 if they are rows
 *   SOLVE_COLUMNS     1 if the columns of the triangle, as it is solved, are contiguous, 0 if its rows are
 *   SOLVE_BACKWARD    1 if the last unknown is solved first
 *   SOLVE_UNIT        1 if the diagonal is assumed to be 1
 *   SOLVE_TRANSPOSE   transposes a tile of elements, cyx_tile_4 or cyx_tile_8; unless SOLVE_LEFT
 *   SOLVE_L_OFFSET, SOLVE_X_OFFSET  bytes in the scratch of a problem where the triangle and the panels begin
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../scalar.h"
#include "../../loops.h"

#define SOLVE(name) CYX_JOIN(SOLVE_PREFIX, name)
#define SOLVE_REAL SOLVE(real)
#define SOLVE_ELEMENT SOLVE(element)

/* Terms of the offset of row r, column q of the triangle as it is solved: start + r * by_row + q * by_column. */
#define SOLVE_START (SOLVE_BACKWARD ? SOLVE_N * SOLVE_N - 1 : 0)
#define SOLVE_BY_ROW ((SOLVE_COLUMNS ? 1 : SOLVE_N) * (SOLVE_BACKWARD ? -1 : 1))
#define SOLVE_BY_COLUMN ((SOLVE_COLUMNS ? SOLVE_N : 1) * (SOLVE_BACKWARD ? -1 : 1))

/* Copy the rows of the triangle in a row of tiles: row r, column q goes to [q][r]. Rows after the last are those of the
   identity. The inner loop runs along contiguous elements. */
static void SOLVE(copy_triangle)(const SOLVE_ELEMENT *a, SOLVE_REAL *to, int64_t first) {
  const int64_t remaining = SOLVE_N - first, rows = remaining < SOLVE_TILE_ROWS ? remaining : SOLVE_TILE_ROWS,
                columns = first + rows;
  const SOLVE_ELEMENT *const from = a + SOLVE_START + first * SOLVE_BY_ROW;
  if (SOLVE_COLUMNS) {
    for (int64_t q = 0; q < columns; ++q)
      for (int64_t r = 0; r < rows; ++r) to[q * SOLVE_TILE_ROWS + r] = from[r * SOLVE_BY_ROW + q * SOLVE_BY_COLUMN];
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t q = 0; q < columns; ++q) to[q * SOLVE_TILE_ROWS + r] = from[r * SOLVE_BY_ROW + q * SOLVE_BY_COLUMN];
  }
  for (int64_t r = 0; r < SOLVE_TILE_ROWS; ++r) {
    if (r >= rows)
      for (int64_t q = 0; q < first + SOLVE_TILE_ROWS; ++q) to[q * SOLVE_TILE_ROWS + r] = 0;
    if (r >= rows || SOLVE_UNIT) to[(first + r) * SOLVE_TILE_ROWS + r] = 1;
  }
}

static SOLVE_REAL *SOLVE(row_of_tiles)(char *scratch, int64_t row) {
  return (SOLVE_REAL *)(scratch + SOLVE_L_OFFSET) + row * (row + 1) / 2 * SOLVE_TILE_ROWS * SOLVE_TILE_ROWS;
}

/* Load the right-hand sides of a panel, and store their solutions. */
#if SOLVE_LEFT
#define SOLVE_PANEL_ROW(i) ((SOLVE_BACKWARD ? SOLVE_N - 1 - (i) : (i)) * SOLVE_WIDTH)
static void SOLVE(load)(const SOLVE_ELEMENT *b, SOLVE_REAL *x, int64_t first, int64_t columns) {
  if (columns < SOLVE_WIDTH)
    for (int64_t k = 0; k < SOLVE_N * SOLVE_WIDTH; ++k) x[k] = 0;
  for (int64_t i = 0; i < SOLVE_N; ++i) SOLVE(copy)(x + SOLVE_PANEL_ROW(i), b + i * SOLVE_M + first, columns);
  for (int64_t k = SOLVE_N * SOLVE_WIDTH; k < SOLVE_PADDED * SOLVE_WIDTH; ++k) x[k] = 0;
}

static void SOLVE(store)(const SOLVE_REAL *x, SOLVE_ELEMENT *to, int64_t first, int64_t columns) {
  for (int64_t i = 0; i < SOLVE_N; ++i) SOLVE(copy)(to + i * SOLVE_M + first, x + SOLVE_PANEL_ROW(i), columns);
}
#else
#define SOLVE_TOP (SOLVE_BACKWARD ? (SOLVE_N - 1) * SOLVE_WIDTH : 0)
#define SOLVE_DOWN (SOLVE_BACKWARD ? -SOLVE_WIDTH : SOLVE_WIDTH)
static void SOLVE(load)(const SOLVE_ELEMENT *b, SOLVE_REAL *x, int64_t first, int64_t columns) {
  if (columns < SOLVE_WIDTH)
    for (int64_t k = 0; k < SOLVE_N * SOLVE_WIDTH; ++k) x[k] = 0;
  SOLVE_TRANSPOSE(x + SOLVE_TOP, SOLVE_DOWN, b + first * SOLVE_N, SOLVE_N, SOLVE_N, columns);
  for (int64_t k = SOLVE_N * SOLVE_WIDTH; k < SOLVE_PADDED * SOLVE_WIDTH; ++k) x[k] = 0;
}

static void SOLVE(store)(const SOLVE_REAL *x, SOLVE_ELEMENT *to, int64_t first, int64_t columns) {
  SOLVE_TRANSPOSE(to + first * SOLVE_N, SOLVE_N, x + SOLVE_TOP, SOLVE_DOWN, columns, SOLVE_N);
}
#endif

static void SOLVE(part)(const SOLVE_ELEMENT *a, const SOLVE_ELEMENT *b, SOLVE_ELEMENT *out, char *scratch,
                        int64_t phase, int64_t u) {
  if (phase == 0) {
    for (int64_t t = u; t < SOLVE_TILES; t += SOLVE_PARTS)
      SOLVE(copy_triangle)(a, SOLVE(row_of_tiles)(scratch, t), t * SOLVE_TILE_ROWS);
    return;
  }
  for (int64_t panel = u; panel < SOLVE_PANELS; panel += SOLVE_PARTS) {
    SOLVE_REAL *const x = (SOLVE_REAL *)(scratch + SOLVE_X_OFFSET) + panel * SOLVE_PADDED * SOLVE_WIDTH;
    const int64_t first = panel * SOLVE_WIDTH, remaining = SOLVE_M - first;
    const int64_t columns = remaining < SOLVE_WIDTH ? remaining : SOLVE_WIDTH;
    SOLVE(load)(b, x, first, columns);
    for (int64_t t = 0; t < SOLVE_TILES; ++t) {
      const SOLVE_REAL *const l = SOLVE(row_of_tiles)(scratch, t);
      const int64_t i = t * SOLVE_TILE_ROWS;
      SOLVE(update_tn)(l, SOLVE_TILE_ROWS, x, x + i * SOLVE_WIDTH, i);
      SOLVE(solve)(l + i * SOLVE_TILE_ROWS, SOLVE_TILE_ROWS, x + i * SOLVE_WIDTH);
    }
    SOLVE(store)(x, out, first, columns);
  }
}

#undef SOLVE_PREFIX
#undef SOLVE_WIDTH
#undef SOLVE_TILE_ROWS
#undef SOLVE_N
#undef SOLVE_M
#undef SOLVE_PADDED
#undef SOLVE_PANELS
#undef SOLVE_TILES
#undef SOLVE_PARTS
#undef SOLVE_LEFT
#undef SOLVE_COLUMNS
#undef SOLVE_BACKWARD
#undef SOLVE_UNIT
#undef SOLVE_TRANSPOSE
#undef SOLVE_L_OFFSET
#undef SOLVE_X_OFFSET
