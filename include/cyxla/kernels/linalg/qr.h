/* QR by Householder reflections, panels factored column by column and applied to later ones as block reflectors: parts
 * of a kernel.
 *
 * Each phase applies one factored panel, one panel in each part; the part with the next panel also factors it.
 * The last phase stores the result, R above the Householder vectors.
 *
 * A template, to be included after block_reflector.h; it undefines the parameters of both. The entry point is
 * `prefix_part(a, out, tau, scratch, phase, u)`. Functions gemv_t, rank_1_update and copy of tiles precede this text.
 *
 *   QR_M, QR_N     rows and columns of the matrix
 *   QR_K           the smaller of them
 *   QR_PANELS      panels
 *   QR_LAST_PHASE  index of the last phase
 */
#include "../../abi.h"
#include "../../compiler.h"

/* Return the norm of column j of a panel from a row on; scaled if squares would leave the range of a double. */
static double QR(norm)(const QR_REAL *x, int64_t j, int64_t from) {
  double sums[4] = {0}, largest = 0;
  int64_t r = from;
  for (; r + 4 <= QR_M; r += 4)
    for (int k = 0; k < 4; ++k) sums[k] += (double)x[(r + k) * QR_WIDTH + j] * x[(r + k) * QR_WIDTH + j];
  for (; r < QR_M; ++r) sums[0] += (double)x[r * QR_WIDTH + j] * x[r * QR_WIDTH + j];
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if (sum > 1e-280 && sum < 1e280) return __builtin_sqrt(sum);
  for (r = from; r < QR_M; ++r) {
    const double size = __builtin_fabs(x[r * QR_WIDTH + j]);
    if (!(size <= largest)) largest = size;
  }
  if (largest == 0) return 0;
  sums[0] = 0;
  for (r = from; r < QR_M; ++r) sums[0] += x[r * QR_WIDTH + j] / largest * (x[r * QR_WIDTH + j] / largest);
  return largest * __builtin_sqrt(sums[0]);
}

static double QR(hypotenuse)(double a, double b) {
  a = __builtin_fabs(a);
  const double more = a > b ? a : b, less = a > b ? b : a;
  return more > 0 && less == less ? more * __builtin_sqrt(1 + less / more * (less / more)) : a + b;
}

/* Compute the Householder vectors of `count` columns of a panel from row `first` on; apply each to later columns.
 */
static void QR(factor_columns)(QR_REAL *x, QR_ELEMENT *tau, int64_t first, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const int64_t row = first + j;
    QR_REAL *const top = x + row * QR_WIDTH;
    const double norm = QR(norm)(x, j, row + 1), alpha = top[j];
    if (norm == 0) {
      tau[j] = 0;
      continue;
    }
    const double beta = -__builtin_copysign(QR(hypotenuse)(alpha, norm), alpha), pivot = alpha - beta;
    if (pivot < 1e-300 && pivot > -1e-300) {
      for (int64_t r = row + 1; r < QR_M; ++r) x[r * QR_WIDTH + j] = (QR_REAL)(x[r * QR_WIDTH + j] / pivot);
    } else {
      const double inverse = 1 / pivot;
      for (int64_t r = row + 1; r < QR_M; ++r) x[r * QR_WIDTH + j] = (QR_REAL)(x[r * QR_WIDTH + j] * inverse);
    }
    const QR_REAL factor = (QR_REAL)((beta - alpha) / beta);
    QR_REAL w[QR_WIDTH] __attribute__((aligned(64)));
    top[j] = 1; /* for the sums; columns up to this one do not change */
    QR(gemv_t)(x, j, row, QR_M, w);
    for (int64_t c = 0; c < QR_WIDTH; ++c) w[c] = c <= j ? 0 : w[c] * factor;
    QR(rank_1_update)(x, j, row, QR_M, w);
    top[j] = (QR_REAL)beta;
    tau[j] = factor;
  }
}

static void QR(factor)(char *scratch, QR_ELEMENT *tau, int64_t panel) {
  const int64_t first = panel * QR_WIDTH, left = QR_K - first, count = left < QR_WIDTH ? left : QR_WIDTH;
  QR_REAL *const x = QR(panel)(scratch, panel);
  QR(factor_columns)(x, tau + first, first, count);
  QR(form)(x, QR(v)(scratch, panel), QR(t)(scratch, panel), tau + first, first, count);
}

static void QR(part)(const QR_ELEMENT *a, QR_ELEMENT *out, QR_ELEMENT *tau, char *scratch, int64_t phase, int64_t u) {
  const int64_t first = u * QR_WIDTH, left = QR_N - first, columns = left < QR_WIDTH ? left : QR_WIDTH;
  if (phase == QR_LAST_PHASE) {
    const QR_REAL *const x = QR(panel)(scratch, u);
    for (int64_t r = 0; r < QR_M; ++r) QR(copy)(out + r * QR_N + first, x + r * QR_WIDTH, columns);
  } else if (phase == 0) {
    QR_REAL *const x = QR(panel)(scratch, u);
    for (int64_t k = columns < QR_WIDTH ? 0 : QR_M * QR_WIDTH; k < QR_PADDED * QR_WIDTH; ++k) x[k] = 0;
    for (int64_t r = 0; r < QR_M; ++r) QR(copy)(x + r * QR_WIDTH, a + r * QR_N + first, columns);
    if (u == 0) QR(factor)(scratch, tau, 0);
  } else if (phase + u < QR_PANELS) {
    const int64_t block = phase - 1;
    QR(apply)(QR(v)(scratch, block), QR(t)(scratch, block), QR(panel)(scratch, phase + u), block * QR_WIDTH);
    if (u == 0 && phase * QR_WIDTH < QR_K) QR(factor)(scratch, tau, phase);
  }
}

#undef QR_PREFIX
#undef QR_LANES
#undef QR_WIDTH
#undef QR_TILE_ROWS
#undef QR_PADDED
#undef QR_BLOCKS
#undef QR_TRANSPOSE
#undef QR_X_OFFSET
#undef QR_V_OFFSET
#undef QR_T_OFFSET
#undef QR_M
#undef QR_N
#undef QR_K
#undef QR_PANELS
#undef QR_LAST_PHASE
