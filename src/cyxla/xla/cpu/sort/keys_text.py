"""C of sorting unsigned keys: a quicksort that partitions by compressing vectors if the target can, else by digits.

One text for both widths of keys; in names, ``KEYS`` stands for what the home of the text calls it.
"""

from __future__ import annotations

ROOM = 64  # bytes beyond the keys that vectors may write

_DIGITS = """\
/* Sort by digits, the lowest first; a digit that is the same everywhere takes no pass. `y` has room for as many. */
static __attribute__((noinline, unused)) void KEYS_digits(UINT *x, int64_t n, UINT *y) {
  const int width = n < 4096 ? 8 : 11, passes = (BITS + width - 1) / width;
  const UINT mask = ((UINT)1 << width) - 1;
  uint32_t counts[2048];
  UINT *from = x, *to = y;
  for (int p = 0; p < passes; ++p) {
    __builtin_memset(counts, 0, sizeof *counts << width);
    for (int64_t i = 0; i < n; ++i) ++counts[from[i] >> (p * width) & mask];
    if (counts[from[0] >> (p * width) & mask] == n) continue;
    uint32_t sum = 0;
    for (int d = 0; d < 1 << width; ++d) {
      const uint32_t c = counts[d];
      counts[d] = sum;
      sum += c;
      CYX_SELDOM
    }
    for (int64_t i = 0; i < n; ++i) to[counts[from[i] >> (p * width) & mask]++] = from[i];
    UINT *const t = from;
    from = to;
    to = t;
  }
  if (from != x) __builtin_memcpy(x, from, (unsigned long)n * sizeof *x);
}
"""

_VECTORS = """\
typedef UINT KEYS_v __attribute__((vector_size(64), aligned(ITEM), may_alias));
typedef SIGNED KEYS_s __attribute__((vector_size(64)));
#if defined(__clang__)
#define KEYS_LEAST(a, b) __builtin_elementwise_min(a, b)
#define KEYS_MOST(a, b) __builtin_elementwise_max(a, b)
#else
#define KEYS_LEAST(a, b) ((KEYS_v)__builtin_ia32_pminuLETTER512_mask((KEYS_s)(a), (KEYS_s)(b), (KEYS_s)(a), FULL))
#define KEYS_MOST(a, b) ((KEYS_v)__builtin_ia32_pmaxuLETTER512_mask((KEYS_s)(a), (KEYS_s)(b), (KEYS_s)(a), FULL))
#endif
#define KEYS_READ(p, m) ((KEYS_v)__builtin_ia32_loaddquWIDE512_mask((const SIGNED *)(p), ~(KEYS_s){0}, m))
#define KEYS_WRITE(p, v, m) __builtin_ia32_storedquWIDE512_mask((SIGNED *)(p), (KEYS_s)(v), m)
#define KEYS_BELOW(a, b) ((MASK)__builtin_ia32_ucmpLETTER512_mask((KEYS_s)(a), (KEYS_s)(b), 1, FULL))
#define KEYS_PACK(v, m) ((KEYS_v)__builtin_ia32_compressWIDE512_mask((KEYS_s)(v), (KEYS_s)(v), m))
"""

_DIVIDE = """\
/* Bring what is less than a pivot to the front, the rest behind it; how many. `y` has room for n keys and a vector. */
static __attribute__((noinline)) int64_t KEYS_divide(UINT *x, int64_t n, UINT *y, UINT pivot) {
  int64_t low = 0, high = 0, i = 0;
BLOCKS  for (; i < n; ++i) {
    const UINT key = x[i];
    const int less = key < pivot;
    x[low] = key;
    y[high] = key;
    low += less;
    high += !less;
    CYX_SELDOM
  }
  __builtin_memcpy(x + low, y, (unsigned long)high * sizeof *x);
  return low;
}
"""

_BLOCKS = """\
  const KEYS_v p = (KEYS_v){0} + pivot;
  for (; i + LANES <= n; i += LANES) {
    const KEYS_v v = *(const KEYS_v *)(x + i);
    const MASK m = KEYS_BELOW(v, p);
    *(KEYS_v *)(x + low) = KEYS_PACK(v, m);
    *(KEYS_v *)(y + high) = KEYS_PACK(v, (MASK)~m);
    const int count = __builtin_popcount(m);
    low += count;
    high += LANES - count;
  }
"""

# A network: lane i is compared with lane i ^ x; the lesser goes where i lacks the highest bit of x.
_STEP = """\
static inline __attribute__((always_inline)) KEYS_v KEYS_step_X(KEYS_v v) {
  const KEYS_v p = __builtin_shufflevector(v, v, OTHERS);
  return __builtin_shufflevector(KEYS_LEAST(v, p), KEYS_MOST(v, p), CHOSEN);
}
"""

_QUICK = """\
/* Sort m vectors, each of which is first down and then up or the other way round, as one is of all of them. */
static inline __attribute__((always_inline)) void KEYS_clean(KEYS_v *v, const int m) {
  #pragma GCC unroll 8
  for (int d = 4; d; d /= 2) {
    if (2 * d > m) continue;
  #pragma GCC unroll 8
    for (int j = 0; j < m / 2; ++j) {
      const int i = j / d * 2 * d + j % d;
      const KEYS_v a = v[i], b = v[i + d];
      v[i] = KEYS_LEAST(a, b);
      v[i + d] = KEYS_MOST(a, b);
    }
  }
  #pragma GCC unroll 8
  for (int i = 0; i < m; ++i) v[i] = CLEAN(v[i]);
}
/* Merge two sorted runs of m / 2 vectors that lie side by side. */
static inline __attribute__((always_inline)) void KEYS_join(KEYS_v *v, const int m) {
  KEYS_v t[4];
  #pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i) t[i] = __builtin_shufflevector(v[m - 1 - i], v[0], BACKWARD);
  #pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i) {
    const KEYS_v a = v[i];
    v[i] = KEYS_LEAST(a, t[i]);
    v[m / 2 + i] = KEYS_MOST(a, t[i]);
  }
  KEYS_clean(v, m / 2);
  KEYS_clean(v + m / 2, m / 2);
}
/* Sort up to m vectors, 1 or 4; or 8 whose halves are sorted. */
static inline __attribute__((always_inline)) void KEYS_network(UINT *x, int64_t n, const int m) {
  KEYS_v v[8];
  unsigned mask[8];
  #pragma GCC unroll 8
  for (int i = 0; i < m; ++i) {
    const int64_t rest = n - i * LANES;
    mask[i] = rest >= LANES ? FULL : rest <= 0 ? 0u : (1u << rest) - 1u;
    v[i] = KEYS_READ(x + i * LANES, (MASK)mask[i]);
  }
  if (m == 8) {
    KEYS_join(v, 8);
  } else {
  #pragma GCC unroll 8
    for (int i = 0; i < m; ++i) v[i] = WHOLE(v[i]);
  }
  if (m == 4) {
    KEYS_join(v, 2);
    KEYS_join(v + 2, 2);
    KEYS_join(v, 4);
  }
  #pragma GCC unroll 8
  for (int i = 0; i < m; ++i) KEYS_WRITE(x + i * LANES, v[i], (MASK)mask[i]);
}
static __attribute__((noinline)) void KEYS_four(UINT *x, int64_t n) {
  KEYS_network(x, n, 4);
}
static __attribute__((noinline)) void KEYS_small(UINT *x, int64_t n) {
  if (n <= LANES) { KEYS_network(x, n, 1); return; }
  KEYS_four(x, n < 4 * LANES ? n : 4 * LANES);
  if (n <= 4 * LANES) return;
  KEYS_four(x + 4 * LANES, n - 4 * LANES);
  KEYS_network(x, n, 8);
}
static __attribute__((noinline)) void KEYS_quick(UINT *x, int64_t n, UINT *y, int depth) {
  while (n > 8 * LANES) {
    if (depth-- == 0) { KEYS_digits(x, n, y); return; }
    UINT sample[4 * LANES];
    const int taken = n > 4096 ? 4 * LANES : LANES;
    for (int i = 0; i < taken; ++i) sample[i] = x[(2 * i + 1) * (n / (2 * taken))];
    KEYS_small(sample, taken);
    const UINT pivot = sample[taken / 2];
    int64_t low = KEYS_divide(x, n, y, pivot);
    if (low == 0) {  /* the pivot is the least key: take out those that are equal */
      if (pivot == (UINT)-1) return;
      low = KEYS_divide(x, n, y, pivot + 1);
    } else {
      KEYS_quick(x, low, y, depth);
    }
    x += low;
    n -= low;
  }
  KEYS_small(x, n);
}
/* Sort keys in place; `y` has room for as many and a vector more. */
static __attribute__((unused)) void KEYS_sort(UINT *x, int64_t n, UINT *y) {
  KEYS_quick(x, n, y, 2 * (64 - __builtin_clzll((uint64_t)n | 1)));
}
"""

_PLAIN = """\
static __attribute__((unused)) void KEYS_sort(UINT *x, int64_t n, UINT *y) {
  if (n > 64) { KEYS_digits(x, n, y); return; }
  for (int64_t i = 1; i < n; ++i) {
    const UINT v = x[i];
    int64_t j = i;
    for (; j > 0 && v < x[j - 1]; --j) x[j] = x[j - 1];
    x[j] = v;
  }
}
"""

_SPREAD = """\
/* Sort keys into buckets that lie one after the other: below the first border, below the next ..; count them. */
static __attribute__((noinline, unused)) void KEYS_spread(UINT *x, int64_t n, UINT *y, const UINT *borders, int buckets,
                                                          uint32_t *counts) {
  if (buckets == 1) { counts[0] = (uint32_t)n; return; }
  const int half = buckets / 2;
  const int64_t low = KEYS_divide(x, n, y, borders[half - 1]);
  KEYS_spread(x, low, y, borders, half, counts);
  KEYS_spread(x + low, n - low, y, borders + half, half, counts + half);
}
"""

SELDOM = """\
#ifndef CYX_SELDOM
#define CYX_SELDOM __asm__ volatile(""); /* vectors of such a loop are not worth making */
#endif
"""

# What one word of the templates is for keys of 32 and of 64 bits.
_WORDS = {
    32: {"UINT": "uint32_t", "SIGNED": "int", "MASK": "uint16_t", "LETTER": "d", "WIDE": "si", "FULL": "0xFFFFu"},
    64: {"UINT": "uint64_t", "SIGNED": "long long", "MASK": "uint8_t", "LETTER": "q", "WIDE": "di", "FULL": "0xFFu"},
}


def keys_text(bits: int, prefix: str, *, compress: bool) -> str:
    """``{prefix}_sort(x, n, y)`` and ``{prefix}_spread(x, n, y, borders, buckets, counts)``.

    Parameters
    ----------
    bits : int
        Of a key.
    prefix : str
        Of all names.
    compress : bool
        Whether the target has vectors of 64 bytes and can compress them.
    """
    lanes = 512 // bits
    if compress:
        text = "".join([_DIGITS, _VECTORS, _DIVIDE.replace("BLOCKS", _BLOCKS), _networks(lanes), _SPREAD])
    else:
        text = "".join([_DIGITS, _DIVIDE.replace("BLOCKS", ""), _PLAIN, _SPREAD])
    for word, value in {**_WORDS[bits], "BITS": str(bits), "ITEM": str(bits // 8), "LANES": str(lanes)}.items():
        text = text.replace(word, value)
    return SELDOM + text.replace("KEYS_", f"{prefix}_")


def _networks(lanes: int) -> str:
    """Quicksort down to what a network sorts in registers."""
    halves = [lanes >> k for k in range(1, lanes.bit_length())]  # of a vector, of its halves ..
    merges = [x for h in reversed(halves) for x in (2 * h - 1, *(q for q in halves if q < h))]
    steps = "".join(_step(lanes, x) for x in sorted({*halves, *merges}))
    quick = _QUICK.replace("CLEAN(v[i])", _nested(halves)).replace("WHOLE(v[i])", _nested(merges))
    return steps + quick.replace("BACKWARD", _others(lanes, lanes - 1))


def _nested(steps: list[int]) -> str:
    text = "v[i]"
    for x in steps:
        text = f"KEYS_step_{x}({text})"
    return text


def _others(lanes: int, x: int) -> str:
    return ", ".join(str(i ^ x) for i in range(lanes))


def _step(lanes: int, x: int) -> str:
    top = 1 << (x.bit_length() - 1)
    chosen = ", ".join(str(i + lanes if i & top else i) for i in range(lanes))
    return _STEP.replace("_X", f"_{x}").replace("OTHERS", _others(lanes, x)).replace("CHOSEN", chosen)
