"""QR: panels of Householder vectors, and products of reflectors applied to the other panels as blocks.

The reflectors of a panel are ``I - V T V^T`` with V unit lower trapezoidal and T upper triangular, so applying them is
three products of tiles. In the factorisation each phase applies one block to the panels after it, and the part that has
the next panel goes on to factor that. In the product of reflectors panels of the result do not depend on each other.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles

_PANEL = """\
static KERNEL_f *KERNEL_panel(char *room, int64_t panel) {
  return (KERNEL_f *)(room + KERNEL_X) + panel * KERNEL_PADDED * KERNEL_W;
}

static KERNEL_f *KERNEL_vectors(char *room, int64_t block) {
  return (KERNEL_f *)(room + KERNEL_V) + block % KERNEL_BLOCKS * KERNEL_PADDED * KERNEL_W;
}

static KERNEL_f *KERNEL_triangle(char *room, int64_t block) {
  return (KERNEL_f *)(room + KERNEL_T) + block % KERNEL_BLOCKS * KERNEL_W * KERNEL_W;
}
"""
_BLOCK = """
/* V and T of the reflectors in `count` columns of a panel, from row `first` on. T lies by columns. */
static void KERNEL_block(
    const KERNEL_f *x, KERNEL_f *v, KERNEL_f *t, const KERNEL_e *tau, int64_t first, int64_t count) {
  for (int64_t r = first; r < KERNEL_PADDED; ++r) {
    const int64_t below = r - first < count ? r - first : count;
    KERNEL_f *const row = v + r * KERNEL_W;
    for (int64_t c = 0; c < below; ++c) row[c] = x[r * KERNEL_W + c];
    for (int64_t c = below; c < KERNEL_W; ++c) row[c] = 0;
    if (r - first < count) row[r - first] = 1;
  }
  KERNEL_f g[KERNEL_W * KERNEL_W] __attribute__((aligned(64))) = {0}; /* -V^T V */
  for (int64_t s = 0; s < KERNEL_W; s += KERNEL_R)
    KERNEL_minus(v + first * KERNEL_W + s, KERNEL_W, v + first * KERNEL_W, g + s * KERNEL_W, KERNEL_PADDED - first);
  for (int64_t j = 0; j < KERNEL_W; ++j) {
    const KERNEL_f factor = j < count ? tau[j] : 0;
    for (int64_t at = 0; at < KERNEL_W; at += KERNEL_LANES) {
      KERNEL_v sum = {0};
      for (int64_t i = 0; i < j; ++i) sum += g[j * KERNEL_W + i] * *(const KERNEL_v *)(t + i * KERNEL_W + at);
      *(KERNEL_v *)(t + j * KERNEL_W + at) = sum * factor;
    }
    t[j * KERNEL_W + j] = factor;
  }
}

/* x -= V T V^T x, or with the transpose of T, from row `first` on */
static void KERNEL_apply(const KERNEL_f *v, const KERNEL_f *t, KERNEL_f *x, int64_t first) {
  KERNEL_f y[KERNEL_W * KERNEL_W] __attribute__((aligned(64))) = {0};
  KERNEL_f z[KERNEL_W * KERNEL_W] __attribute__((aligned(64))) = {0};
  for (int64_t s = 0; s < KERNEL_W; s += KERNEL_R)
    KERNEL_minus(v + first * KERNEL_W + s, KERNEL_W, x + first * KERNEL_W, y + s * KERNEL_W, KERNEL_PADDED - first);
  for (int64_t s = 0; s < KERNEL_W; s += KERNEL_R) MULTIPLY
  for (int64_t r = first; r < KERNEL_PADDED; r += KERNEL_R)
    KERNEL_along(v + r * KERNEL_W, z, x + r * KERNEL_W, KERNEL_W);
}
"""
_BY_T = "KERNEL_minus(t + s, KERNEL_W, y, z + s * KERNEL_W, KERNEL_W);"
_BY_TRANSPOSE = "KERNEL_along(t + s * KERNEL_W, y, z + s * KERNEL_W, KERNEL_W);"
_FACTOR = """
/* The length of column j of a panel from a row on; scaled where squares would leave the range of a double. */
static double KERNEL_length(const KERNEL_f *x, int64_t j, int64_t from) {
  double sums[4] = {0}, largest = 0;
  int64_t r = from;
  for (; r + 4 <= KERNEL_M; r += 4)
    for (int k = 0; k < 4; ++k) sums[k] += (double)x[(r + k) * KERNEL_W + j] * x[(r + k) * KERNEL_W + j];
  for (; r < KERNEL_M; ++r) sums[0] += (double)x[r * KERNEL_W + j] * x[r * KERNEL_W + j];
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if (sum > 1e-280 && sum < 1e280) return __builtin_sqrt(sum);
  for (r = from; r < KERNEL_M; ++r) {
    const double size = __builtin_fabs(x[r * KERNEL_W + j]);
    if (!(size <= largest)) largest = size;
  }
  if (largest == 0) return 0;
  sums[0] = 0;
  for (r = from; r < KERNEL_M; ++r) sums[0] += x[r * KERNEL_W + j] / largest * (x[r * KERNEL_W + j] / largest);
  return largest * __builtin_sqrt(sums[0]);
}

static double KERNEL_hypotenuse(double a, double b) {
  a = __builtin_fabs(a);
  const double more = a > b ? a : b, less = a > b ? b : a;
  return more > 0 && less == less ? more * __builtin_sqrt(1 + less / more * (less / more)) : a + b;
}

/* Householder vectors of `count` columns of a panel from row `first` on, each applied to the columns after it. */
static void KERNEL_factor(KERNEL_f *x, KERNEL_e *tau, int64_t first, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const int64_t row = first + j;
    KERNEL_f *const top = x + row * KERNEL_W;
    const double length = KERNEL_length(x, j, row + 1), alpha = top[j];
    if (length == 0) {
      tau[j] = 0;
      continue;
    }
    const double beta = -__builtin_copysign(KERNEL_hypotenuse(alpha, length), alpha), pivot = alpha - beta;
    if (pivot < 1e-300 && pivot > -1e-300) {
      for (int64_t r = row + 1; r < KERNEL_M; ++r) x[r * KERNEL_W + j] = (KERNEL_f)(x[r * KERNEL_W + j] / pivot);
    } else {
      const double inverse = 1 / pivot;
      for (int64_t r = row + 1; r < KERNEL_M; ++r) x[r * KERNEL_W + j] = (KERNEL_f)(x[r * KERNEL_W + j] * inverse);
    }
    const KERNEL_f factor = (KERNEL_f)((beta - alpha) / beta);
    KERNEL_f w[KERNEL_W] __attribute__((aligned(64)));
    top[j] = 1; /* for the sums; columns up to this one are left alone */
    KERNEL_beside(x, j, row, KERNEL_M, w);
    for (int64_t c = 0; c < KERNEL_W; ++c) w[c] = c <= j ? 0 : w[c] * factor;
    KERNEL_outer(x, j, row, KERNEL_M, w);
    top[j] = (KERNEL_f)beta;
    tau[j] = factor;
  }
}

static void KERNEL_factor_panel(char *room, KERNEL_e *tau, int64_t panel) {
  const int64_t first = panel * KERNEL_W, left = KERNEL_K - first, count = left < KERNEL_W ? left : KERNEL_W;
  KERNEL_f *const x = KERNEL_panel(room, panel);
  KERNEL_factor(x, tau + first, first, count);
  KERNEL_block(x, KERNEL_vectors(room, panel), KERNEL_triangle(room, panel), tau + first, first, count);
}

static void KERNEL_part(const KERNEL_e *a, KERNEL_e *out, KERNEL_e *tau, char *room, int64_t phase, int64_t u) {
  const int64_t first = u * KERNEL_W, left = KERNEL_N - first, columns = left < KERNEL_W ? left : KERNEL_W;
  if (phase == KERNEL_LAST) {
    const KERNEL_f *const x = KERNEL_panel(room, u);
    for (int64_t r = 0; r < KERNEL_M; ++r) KERNEL_copy(out + r * KERNEL_N + first, x + r * KERNEL_W, columns);
  } else if (phase == 0) {
    KERNEL_f *const x = KERNEL_panel(room, u);
    for (int64_t k = columns < KERNEL_W ? 0 : KERNEL_M * KERNEL_W; k < KERNEL_PADDED * KERNEL_W; ++k) x[k] = 0;
    for (int64_t r = 0; r < KERNEL_M; ++r) KERNEL_copy(x + r * KERNEL_W, a + r * KERNEL_N + first, columns);
    if (u == 0) KERNEL_factor_panel(room, tau, 0);
  } else if (phase + u < KERNEL_PANELS) {
    KERNEL_apply(
        KERNEL_vectors(room, phase - 1), KERNEL_triangle(room, phase - 1), KERNEL_panel(room, phase + u),
        (phase - 1) * KERNEL_W);
    if (u == 0 && phase * KERNEL_W < KERNEL_K) KERNEL_factor_panel(room, tau, phase);
  }
}
"""
_PRODUCT = """
static void KERNEL_part(const KERNEL_e *a, const KERNEL_e *tau, KERNEL_e *out, char *room, int64_t phase, int64_t u) {
  const int64_t first = u * KERNEL_W;
  KERNEL_f *const x = KERNEL_panel(room, u);
  if (phase == 0) {
    const int64_t left = KERNEL_K - first, count = left < KERNEL_W ? left : KERNEL_W;
    if (u >= KERNEL_BLOCKS || count <= 0) return;
    for (int64_t r = first; r < KERNEL_M; ++r) KERNEL_copy(x + r * KERNEL_W, a + r * KERNEL_N + first, count);
    for (int64_t k = KERNEL_M * KERNEL_W; k < KERNEL_PADDED * KERNEL_W; ++k) x[k] = 0;
    KERNEL_block(x, KERNEL_vectors(room, u), KERNEL_triangle(room, u), tau + first, first, count);
    return;
  }
  const int64_t left = KERNEL_N - first, columns = left < KERNEL_W ? left : KERNEL_W;
  for (int64_t k = 0; k < KERNEL_PADDED * KERNEL_W; ++k) x[k] = 0;
  for (int64_t c = 0; c < columns; ++c) x[(first + c) * KERNEL_W + c] = 1;
  if (KERNEL_K > 0) /* later blocks leave these columns of the identity alone */
    for (int64_t block = u < KERNEL_BLOCKS ? u : KERNEL_BLOCKS - 1; block >= 0; --block)
      KERNEL_apply(KERNEL_vectors(room, block), KERNEL_triangle(room, block), x, block * KERNEL_W);
  for (int64_t r = 0; r < KERNEL_M; ++r) KERNEL_copy(out + r * KERNEL_N + first, x + r * KERNEL_W, columns);
}
"""


def qr(dtype: ElementType, m: int, n: int) -> Algorithm:
    """R above the Householder vectors, and their factors, of a matrix of `m` rows."""
    k = min(m, n)
    tiles = Tiles.of(dtype, n)
    panels, padded, width, size = tiles.panels(n), tiles.padded(m), tiles.width, dtype.itemsize
    steps = min(-(-k // width), panels - 1)  # phases that apply a block
    products = (m - k / 3) * k * (2 * n - k) + m * k * width
    return Algorithm(
        "qr", tiles, _PANEL + _BLOCK.replace("MULTIPLY", _BY_TRANSPOSE) + _FACTOR,
        {"M": m, "N": n, "K": k, "PANELS": panels, "PADDED": padded, "BLOCKS": 2, "LAST": steps + 1},
        [(dtype, m * n)], [(dtype, m * n), (dtype, k)], steps + 2, panels, products,
        {"X": panels * padded * width * size, "V": 2 * padded * width * size, "T": 2 * width * width * size},
    )  # fmt: skip


def reflector_product(dtype: ElementType, m: int, n: int, k: int) -> Algorithm:
    """The first `n` columns of the product of `k` reflectors of `m` rows, stored as `qr` gives them."""
    tiles = Tiles.of(dtype, n)
    panels, padded, width, size = tiles.panels(n), tiles.padded(m), tiles.width, dtype.itemsize
    blocks = max(-(-k // width), 1)
    return Algorithm(
        "reflectors", tiles, _PANEL + _BLOCK.replace("MULTIPLY", _BY_T) + _PRODUCT,
        {"M": m, "N": n, "K": k, "PADDED": padded, "BLOCKS": blocks}, [(dtype, m * n), (dtype, k)], [(dtype, m * n)],
        2, panels, 1.5 * m * n * k,
        {"X": panels * padded * width * size, "V": blocks * padded * width * size, "T": blocks * width * width * size},
    )  # fmt: skip
