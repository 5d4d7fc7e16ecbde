/* Triangular systems with one or two right-hand sides: the triangle is read once, in place, eight unknowns at a time.
 *
 * If its rows are contiguous, the products with all known unknowns are subtracted as sums along the rows; if its
 * columns are, the products with the eight unknowns are subtracted from all later ones.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   SOLVE_PREFIX    prefix of all names; the entry point `prefix_part(a, b, out, scratch, 0, u)` solves for
 *                   right-hand side u. Types of tiles (xla/cpu/linalg/tiles.py) precede this text
 *   SOLVE_LANES     elements of a vector
 *   SOLVE_N         unknowns
 *   SOLVE_PADDED    elements of a right-hand side in the scratch
 *   SOLVE_STRIDE    elements between unknowns in an operand or result
 *   SOLVE_APART     elements from one right-hand side to the next
 *   SOLVE_COLUMNS   1 if the columns of the triangle, as it is solved, are contiguous, 0 if its rows are
 *   SOLVE_BACKWARD  1 if the last unknown is solved first
 *   SOLVE_UNIT      1 if the diagonal is assumed to be 1
 *   SOLVE_X_OFFSET  bytes in the scratch of a problem where the right-hand sides begin
 */
#include "../../abi.h"
#include "../../compiler.h"

#define SOLVE(name) CYX_JOIN(SOLVE_PREFIX, name)
#define SOLVE_REAL SOLVE(real)
#define SOLVE_ELEMENT SOLVE(element)
#define SOLVE_VECTOR SOLVE(vector)
#define SOLVE_UNALIGNED_VECTOR SOLVE(unaligned_vector)
typedef SOLVE_REAL SOLVE_UNALIGNED_VECTOR
    __attribute__((vector_size(SOLVE_LANES * sizeof(SOLVE_REAL)), aligned(1), may_alias));

#define SOLVE_ROWS 8 /* unknowns of a block, one for each item of the list below */
#define SOLVE_EACH(of) of(0) of(1) of(2) of(3) of(4) of(5) of(6) of(7)

/* Unknown that is solved at step r, and an element of the triangle. */
#define SOLVE_UNKNOWN(r) (SOLVE_BACKWARD ? SOLVE_N - 1 - (r) : (r))
#define SOLVE_A(i, j) a[SOLVE_COLUMNS ? SOLVE_N * (j) + (i) : SOLVE_N * (i) + (j)]

/* Solve for `count` unknowns from step `first` on, from which the products with earlier ones have been subtracted. */
static CYX_FUSED void SOLVE(solve_block)(const SOLVE_ELEMENT *a, SOLVE_REAL *x, int64_t first, int64_t count) {
  CYX_FUSE
  for (int64_t r = first; r < first + count; ++r) {
    const int64_t i = SOLVE_UNKNOWN(r);
    for (int64_t s = first; s < r; ++s) x[i] -= SOLVE_A(i, SOLVE_UNKNOWN(s)) * x[SOLVE_UNKNOWN(s)];
    if (!SOLVE_UNIT) x[i] /= SOLVE_A(i, i);
  }
}

#if SOLVE_COLUMNS
#define SOLVE_COLUMN(s)                                                     \
  const SOLVE_ELEMENT *const a##s = a + SOLVE_UNKNOWN(first + s) * SOLVE_N; \
  const SOLVE_REAL y##s = x[SOLVE_UNKNOWN(first + s)];
#define SOLVE_PRODUCT(s) *(const SOLVE_UNALIGNED_VECTOR *)(a##s + i) * y##s
/* Subtract the products with the unknowns of a block from all later ones. */
static CYX_FUSED __attribute__((noinline)) void SOLVE(subtract)(const SOLVE_ELEMENT *a, SOLVE_REAL *x, int64_t first) {
  CYX_FUSE
  int64_t i = SOLVE_BACKWARD ? 0 : first + SOLVE_ROWS;
  const int64_t end = SOLVE_BACKWARD ? SOLVE_N - first - SOLVE_ROWS : SOLVE_N;
  SOLVE_EACH(SOLVE_COLUMN)
  for (; i + SOLVE_LANES <= end; i += SOLVE_LANES)
    *(SOLVE_UNALIGNED_VECTOR *)(x + i) -= (SOLVE_PRODUCT(0) + SOLVE_PRODUCT(1) + SOLVE_PRODUCT(2) + SOLVE_PRODUCT(3)) +
                                          (SOLVE_PRODUCT(4) + SOLVE_PRODUCT(5) + SOLVE_PRODUCT(6) + SOLVE_PRODUCT(7));
  for (; i < end; ++i)
    x[i] -= a0[i] * y0 + a1[i] * y1 + a2[i] * y2 + a3[i] * y3 + a4[i] * y4 + a5[i] * y5 + a6[i] * y6 + a7[i] * y7;
}

static inline void SOLVE(step)(const SOLVE_ELEMENT *a, SOLVE_REAL *x, int64_t first, int64_t count) {
  SOLVE(solve_block)(a, x, first, count);
  if (first + count < SOLVE_N) SOLVE(subtract)(a, x, first);
}
#else
static SOLVE_REAL SOLVE(sum)(SOLVE_VECTOR v) {
  SOLVE_REAL lanes[SOLVE_LANES];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int64_t half = SOLVE_LANES / 2; half; half /= 2)
    for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}

#define SOLVE_ROW(r) const SOLVE_ELEMENT *const a##r = a + SOLVE_UNKNOWN(first + (r < count ? r : 0)) * SOLVE_N;
#define SOLVE_ZERO(r) SOLVE_VECTOR s##r = {0};
#define SOLVE_ADD(r) s##r += *(const SOLVE_UNALIGNED_VECTOR *)(a##r + q) * y;
#define SOLVE_SUM(r) SOLVE(sum)(s##r),
#define SOLVE_ADD_LAST(r) sums[r] += a##r[q] * x[q];
/* Subtract the products with all earlier unknowns from those of a block; sums of rows after the last are not used. */
static CYX_FUSED __attribute__((noinline)) void SOLVE(subtract)(const SOLVE_ELEMENT *a, SOLVE_REAL *x, int64_t first,
                                                                int64_t count) {
  CYX_FUSE
  int64_t q = SOLVE_BACKWARD ? SOLVE_N - first : 0;
  const int64_t end = SOLVE_BACKWARD ? SOLVE_N : first;
  SOLVE_EACH(SOLVE_ROW)
  SOLVE_EACH(SOLVE_ZERO)
  for (; q + SOLVE_LANES <= end; q += SOLVE_LANES) {
    const SOLVE_VECTOR y = *(const SOLVE_UNALIGNED_VECTOR *)(x + q);
    SOLVE_EACH(SOLVE_ADD)
  }
  SOLVE_REAL sums[] = {SOLVE_EACH(SOLVE_SUM)};
  for (; q < end; ++q) {
    SOLVE_EACH(SOLVE_ADD_LAST)
  }
  for (int64_t r = 0; r < count; ++r) x[SOLVE_UNKNOWN(first + r)] -= sums[r];
}

static inline void SOLVE(step)(const SOLVE_ELEMENT *a, SOLVE_REAL *x, int64_t first, int64_t count) {
  SOLVE(subtract)(a, x, first, count);
  SOLVE(solve_block)(a, x, first, count);
}
#endif

static void SOLVE(part)(const SOLVE_ELEMENT *a, const SOLVE_ELEMENT *b, SOLVE_ELEMENT *out, char *scratch,
                        int64_t phase, int64_t u) {
  (void)phase;
  SOLVE_REAL *const x = (SOLVE_REAL *)(scratch + SOLVE_X_OFFSET) + u * SOLVE_PADDED;
  for (int64_t i = 0; i < SOLVE_N; ++i) x[i] = b[i * SOLVE_STRIDE + u * SOLVE_APART];
  for (int64_t first = 0; first < SOLVE_N; first += SOLVE_ROWS) {
    const int64_t remaining = SOLVE_N - first, count = remaining < SOLVE_ROWS ? remaining : SOLVE_ROWS;
    SOLVE(step)(a, x, first, count);
  }
  for (int64_t i = 0; i < SOLVE_N; ++i) out[i * SOLVE_STRIDE + u * SOLVE_APART] = x[i];
}

#undef SOLVE_PREFIX
#undef SOLVE_LANES
#undef SOLVE_N
#undef SOLVE_PADDED
#undef SOLVE_STRIDE
#undef SOLVE_APART
#undef SOLVE_COLUMNS
#undef SOLVE_BACKWARD
#undef SOLVE_UNIT
#undef SOLVE_X_OFFSET
