/* Block reflectors: the Householder reflections of a panel at once, as I - V T V^T with V unit lower trapezoidal and
 * T upper triangular (Schreiber and Van Loan 1989), so that products with them are products of tiles.
 *
 * A template, to be included before qr.h or reflector_product.h, which undefines the parameters.
 *
 *   QR_PREFIX     prefix of all names; types and functions of tiles (xla/cpu/linalg/tiles.py) precede this text:
 *                 update_tn and update_nn
 *   QR_LANES      elements of a vector
 *   QR_WIDTH      columns of a panel
 *   QR_TILE_ROWS  rows of a tile, a divisor of the width
 *   QR_PADDED     rows of a panel, a multiple of the width
 *   QR_BLOCKS     block reflectors stored at once
 *   QR_TRANSPOSE  1 to apply the transpose of a block reflector, 0 to apply it itself
 *   QR_X_OFFSET, QR_V_OFFSET, QR_T_OFFSET  bytes in the scratch of a problem where the panels, and the matrices V and T
 *                 of the block reflectors begin
 */
#include "../../abi.h"
#include "../../compiler.h"

#define QR(name) CYX_JOIN(QR_PREFIX, name)
#define QR_REAL QR(real)
#define QR_ELEMENT QR(element)
#define QR_VECTOR QR(vector)

static QR_REAL *QR(panel)(char *scratch, int64_t panel) {
  return (QR_REAL *)(scratch + QR_X_OFFSET) + panel * QR_PADDED * QR_WIDTH;
}

static QR_REAL *QR(v)(char *scratch, int64_t block) {
  return (QR_REAL *)(scratch + QR_V_OFFSET) + block % QR_BLOCKS * QR_PADDED * QR_WIDTH;
}

static QR_REAL *QR(t)(char *scratch, int64_t block) {
  return (QR_REAL *)(scratch + QR_T_OFFSET) + block % QR_BLOCKS * QR_WIDTH * QR_WIDTH;
}

/* Compute V and T of the reflectors in `count` columns of a panel, from row `first` on; T is stored by columns. */
static void QR(form)(const QR_REAL *x, QR_REAL *v, QR_REAL *t, const QR_ELEMENT *tau, int64_t first, int64_t count) {
  for (int64_t r = first; r < QR_PADDED; ++r) {
    const int64_t below = r - first < count ? r - first : count;
    QR_REAL *const row = v + r * QR_WIDTH;
    for (int64_t c = 0; c < below; ++c) row[c] = x[r * QR_WIDTH + c];
    for (int64_t c = below; c < QR_WIDTH; ++c) row[c] = 0;
    if (r - first < count) row[r - first] = 1;
  }
  QR_REAL g[QR_WIDTH * QR_WIDTH] __attribute__((aligned(64))) = {0}; /* -V^T V */
  for (int64_t s = 0; s < QR_WIDTH; s += QR_TILE_ROWS)
    QR(update_tn)(v + first * QR_WIDTH + s, QR_WIDTH, v + first * QR_WIDTH, g + s * QR_WIDTH, QR_PADDED - first);
  for (int64_t j = 0; j < QR_WIDTH; ++j) {
    const QR_REAL factor = j < count ? tau[j] : 0;
    for (int64_t offset = 0; offset < QR_WIDTH; offset += QR_LANES) {
      QR_VECTOR sum = {0};
      for (int64_t i = 0; i < j; ++i) sum += g[j * QR_WIDTH + i] * *(const QR_VECTOR *)(t + i * QR_WIDTH + offset);
      *(QR_VECTOR *)(t + j * QR_WIDTH + offset) = sum * factor;
    }
    t[j * QR_WIDTH + j] = factor;
  }
}

/* x -= V T V^T x, or with the transpose of T, from row `first` on. */
static void QR(apply)(const QR_REAL *v, const QR_REAL *t, QR_REAL *x, int64_t first) {
  QR_REAL y[QR_WIDTH * QR_WIDTH] __attribute__((aligned(64))) = {0};
  QR_REAL z[QR_WIDTH * QR_WIDTH] __attribute__((aligned(64))) = {0};
  for (int64_t s = 0; s < QR_WIDTH; s += QR_TILE_ROWS)
    QR(update_tn)(v + first * QR_WIDTH + s, QR_WIDTH, x + first * QR_WIDTH, y + s * QR_WIDTH, QR_PADDED - first);
  for (int64_t s = 0; s < QR_WIDTH; s += QR_TILE_ROWS) {
    if (QR_TRANSPOSE)
      QR(update_nn)(t + s * QR_WIDTH, y, z + s * QR_WIDTH, QR_WIDTH);
    else
      QR(update_tn)(t + s, QR_WIDTH, y, z + s * QR_WIDTH, QR_WIDTH);
  }
  for (int64_t r = first; r < QR_PADDED; r += QR_TILE_ROWS)
    QR(update_nn)(v + r * QR_WIDTH, z, x + r * QR_WIDTH, QR_WIDTH);
}
