/* The first columns of a product of Householder reflections: parts of a kernel.
 *
 * The first phase computes the block reflectors, the second applies them to the columns of the identity, one panel in
 * each part.
 *
 * A template, to be included after block_reflector.h; it undefines the parameters of both. The entry point is
 * `prefix_part(a, tau, out, scratch, phase, u)`. The function copy of tiles precedes this text.
 *
 *   QR_M, QR_N  rows and columns of the result
 *   QR_K        reflections, stored as by qr.h
 */
#include "../../abi.h"
#include "../../compiler.h"

static void QR(part)(const QR_ELEMENT *a, const QR_ELEMENT *tau, QR_ELEMENT *out, char *scratch, int64_t phase,
                     int64_t u) {
  const int64_t first = u * QR_WIDTH;
  QR_REAL *const x = QR(panel)(scratch, u);
  if (phase == 0) {
    const int64_t remaining = QR_K - first, count = remaining < QR_WIDTH ? remaining : QR_WIDTH;
    if (u >= QR_BLOCKS || count <= 0) return;
    for (int64_t r = first; r < QR_M; ++r) QR(copy)(x + r * QR_WIDTH, a + r * QR_N + first, count);
    for (int64_t k = QR_M * QR_WIDTH; k < QR_PADDED * QR_WIDTH; ++k) x[k] = 0;
    QR(form)(x, QR(v)(scratch, u), QR(t)(scratch, u), tau + first, first, count);
    return;
  }
  const int64_t remaining = QR_N - first, columns = remaining < QR_WIDTH ? remaining : QR_WIDTH;
  for (int64_t k = 0; k < QR_PADDED * QR_WIDTH; ++k) x[k] = 0;
  for (int64_t c = 0; c < columns; ++c) x[(first + c) * QR_WIDTH + c] = 1;
  if (QR_K > 0) /* later blocks do not change these columns of the identity */
    for (int64_t block = u < QR_BLOCKS ? u : QR_BLOCKS - 1; block >= 0; --block)
      QR(apply)(QR(v)(scratch, block), QR(t)(scratch, block), x, block * QR_WIDTH);
  for (int64_t r = 0; r < QR_M; ++r) QR(copy)(out + r * QR_N + first, x + r * QR_WIDTH, columns);
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
