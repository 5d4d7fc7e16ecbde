"""C of sorting rows by unsigned keys, for any program and any keys.

A long row is cut into chunks; each is spread into buckets by the same borders, keys of a sample of the row; then each
bucket is collected from the chunks and sorted. How keys are made of elements, and results of keys, is up to three
functions beside. Here are those for elements whose key follows from their bits (`PATTERN`).
"""

from __future__ import annotations

from cyxla.xla.cpu.sort.keys_text import ROOM, SELDOM

SAMPLES = 16  # keys of the sample for each bucket
MAX_BUCKETS, MAX_CHUNKS = 64, 16

_ROWS = """\
/* Where a row begins. */
static inline int64_t SORT_start(const int64_t *q, int64_t row) {
  return row / q[3] * q[3] * q[2] + row % q[3];
}
/* The first phase of rows cut into chunks: the keys of a chunk, spread into buckets. */
static void SORT_chunk(const int64_t *q, void *const *bufs, int64_t u, SORT_k *keys, uint32_t *counts, SORT_k *y,
                       uint32_t *special) {
  const int64_t length = q[2], buckets = q[4], chunks = q[5], samples = SAMPLES * buckets;
  const int64_t row = u / chunks, chunk = u % chunks, at = SORT_start(q, row);
  const int64_t low = chunk * length / chunks, high = (chunk + 1) * length / chunks;
  SORT_k *const x = keys + row * length + low;
  SORT_k sample[SAMPLES * MOST], borders[MOST], spare[SAMPLES * MOST + ROOM];
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t k = s * length / samples;
    SORT_keys(q, bufs, at, k, k + 1, sample + s);
  }
  KEYS_sort(sample, samples, spare);
  for (int64_t k = 1; k < buckets; ++k) { borders[k - 1] = sample[k * SAMPLES]; CYX_SELDOM }
  special[u] = SORT_keys(q, bufs, at, low, high, x);
  KEYS_spread(x, high - low, y, borders, (int)buckets, counts + u * buckets);
}
/* The second phase: a bucket, collected from the chunks and sorted, and its results. */
static void SORT_bucket(const int64_t *q, void *const *bufs, int64_t u, const SORT_k *keys, const uint32_t *counts,
                        char *room) {
  const int64_t length = q[2], buckets = q[4], chunks = q[5], row = u / buckets, bucket = u % buckets;
  const SORT_k *const from = keys + row * length;
  const uint32_t *const count = counts + row * chunks * buckets;
  int64_t start = 0, n = 0;
  for (int64_t k = 0; k < chunks * buckets; ++k) { start += k % buckets < bucket ? count[k] : 0; CYX_SELDOM }
  room += row * (2 * (int64_t)sizeof(SORT_k) * length + ROOM * buckets);
  SORT_k *const x = (SORT_k *)room + start, *const y = (SORT_k *)(room + bucket * ROOM) + length + start;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    int64_t first = chunk * length / chunks;
    for (int64_t k = 0; k < bucket; ++k) { first += count[chunk * buckets + k]; CYX_SELDOM }
    const int64_t m = count[chunk * buckets + bucket];
    __builtin_memcpy(x + n, from + first, (unsigned long)m * sizeof *x);
    n += m;
  }
  KEYS_sort(x, n, y);
  SORT_write(q, bufs, SORT_start(q, row), start, start + n, x);
}
/* Tasks of a sort. The numbers: tasks, rows, their length, the distance of their elements, buckets or 1, chunks,
   buffers before the scratch. Without buckets a row is done at once; else the scratch holds, of all rows, keys, their
   number in each bucket of each chunk, what is special, and room. The third phase puts in order what keys do not. */
static cyx_status SORT_run(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = q[0], count = q[1], length = q[2], buckets = q[4], chunks = q[5], item = sizeof(SORT_k);
  char *const scratch = bufs[q[6]];
  if (buckets == 1) {
    SORT_k *const x = (SORT_k *)(scratch + begin * (2 * item * length + ROOM));
    for (int64_t u = begin * count / tasks; u < end * count / tasks; ++u) {
      const int64_t at = SORT_start(q, u);
      const uint32_t special = SORT_keys(q, bufs, at, 0, length, x);
      KEYS_sort(x, length, x + length);
      SORT_write(q, bufs, at, 0, length, x);
      if (special) SORT_restore(q, bufs, at);
    }
    return CYX_OK;
  }
  const int64_t phase = *(const int64_t *)bufs[q[6] + 1];
  const int64_t units = phase == 0 ? count * chunks : phase == 1 ? count * buckets : count;
  SORT_k *const keys = (SORT_k *)scratch;
  uint32_t *const counts = (uint32_t *)(keys + count * length), *const special = counts + count * chunks * buckets;
  char *const room = (char *)(special + (count * chunks + 15) / 16 * 16);
  for (int64_t u = begin * units / tasks; u < end * units / tasks; ++u) {
    if (phase == 0) {
      SORT_chunk(q, bufs, u, keys, counts, (SORT_k *)(room + u * ((length / chunks + 1) * item + ROOM)), special);
    } else if (phase == 1) {
      SORT_bucket(q, bufs, u, keys, counts, room);
    } else {
      uint32_t any = 0;
      for (int64_t k = 0; k < chunks; ++k) any |= special[u * chunks + k];
      if (any) SORT_restore(q, bufs, SORT_start(q, u));
    }
  }
  return CYX_OK;
}
"""


# The numbers after those of `_ROWS`: of an element's bits, which change sides if it is negative; without the sign, the
# greatest that are no NaN; what stands for NaNs; which are kept of zeros; which to flip. Then: whether zeros and NaNs
# are to be put in order; which operand decides; the bytes of each operand's elements.
PATTERN = """\
typedef uintWIDTH_t SORT_e __attribute__((aligned(1), may_alias));
typedef struct { uintWIDTH_t fold, most, nan, keep, flip; } SORT_pattern;
static inline SORT_pattern SORT_pattern_of(const int64_t *q) {
  const SORT_pattern found = {
      (uintWIDTH_t)q[7], (uintWIDTH_t)q[8], (uintWIDTH_t)q[9], (uintWIDTH_t)q[10], (uintWIDTH_t)q[11],
  };
  return found;
}
static inline uintWIDTH_t SORT_signs(uintWIDTH_t u) { return (uintWIDTH_t)((intWIDTH_t)u >> (WIDTH - 1)); }
static inline uintWIDTH_t SORT_size(uintWIDTH_t u) { return u & (uintWIDTH_t)((uintWIDTH_t)-1 >> 1); }
static inline uintWIDTH_t SORT_key(uintWIDTH_t u, SORT_pattern p) {
  u = SORT_size(u) > p.most ? p.nan : u;
  u = SORT_size(u) == 0 ? u & p.keep : u;
  return (uintWIDTH_t)(u ^ (SORT_signs(u) & p.fold) ^ p.flip);
}
static inline uintWIDTH_t SORT_bits(uintWIDTH_t key, SORT_pattern p) {
  const uintWIDTH_t u = key ^ p.flip;
  return (uintWIDTH_t)(u ^ (SORT_signs(u) & p.fold));
}
"""

# Keys that are all of their elements.
WHOLE = """\
static inline __attribute__((always_inline)) uint32_t SORT_fill(const SORT_e *from, const int64_t step, int64_t n,
                                                                SORT_k *x, SORT_pattern p) {
  uint32_t special = 0;
  for (int64_t k = 0; k < n; ++k) {
    const uintWIDTH_t u = from[k * step];
    x[k] = SORT_key(u, p);
    special |= (uint32_t)(SORT_size(u) > p.most) | (uint32_t)(u == (uintWIDTH_t)((uintWIDTH_t)1 << (WIDTH - 1)));
  }
  return special;
}
static uint32_t SORT_keys(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high, SORT_k *x) {
  const SORT_pattern p = SORT_pattern_of(q);
  const SORT_e *const from = (const SORT_e *)bufs[0] + at + low * q[3];
  const uint32_t special = q[3] == 1 ? SORT_fill(from, 1, high - low, x, p) : SORT_fill(from, q[3], high - low, x, p);
  return q[12] ? special : 0;
}
static void SORT_write(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high, const SORT_k *x) {
  const SORT_pattern p = SORT_pattern_of(q);
  const int64_t step = q[3];
  SORT_e *const to = (SORT_e *)bufs[1] + at + low * step;
  if (step == 1) {
    for (int64_t k = 0; k < high - low; ++k) to[k] = SORT_bits((uintWIDTH_t)x[k], p);
  } else {
    for (int64_t k = 0; k < high - low; ++k) to[k * step] = SORT_bits((uintWIDTH_t)x[k], p);
  }
}
static int64_t SORT_first(const SORT_e *row, int64_t step, int64_t n, uintWIDTH_t u, SORT_pattern p) {
  const uintWIDTH_t key = SORT_key(u, p);
  int64_t first = 0;
  for (int64_t past = n; first < past;) {
    const int64_t middle = first + (past - first) / 2;
    if (SORT_key(row[middle * step], p) < key) first = middle + 1; else past = middle;
  }
  return first;
}
/* Write the zeros and NaNs of a sorted row in the order in which the operand has them. */
static void SORT_restore(const int64_t *q, void *const *bufs, int64_t at) {
  const SORT_pattern p = SORT_pattern_of(q);
  const int64_t step = q[3];
  const SORT_e *const from = (const SORT_e *)bufs[0] + at;
  SORT_e *const to = (SORT_e *)bufs[1] + at;
  int64_t zeros = SORT_first(to, step, q[2], 0, p), nans = SORT_first(to, step, q[2], p.nan, p);
  for (int64_t k = 0; k < q[2]; ++k) {
    const uintWIDTH_t u = from[k * step];
    if (SORT_size(u) == 0) to[zeros++ * step] = u;
    if (SORT_size(u) > p.most) to[nans++ * step] = u;
  }
}
"""

# Keys and the places of their elements.
PLACES = """\
static uint32_t SORT_keys(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high, SORT_k *x) {
  const SORT_pattern p = SORT_pattern_of(q);
  const int64_t step = q[3];
  const SORT_e *const from = (const SORT_e *)bufs[q[13]] + at;
  for (int64_t k = low; k < high; ++k) x[k - low] = (uint64_t)SORT_key(from[k * step], p) << 32 | (uint64_t)k;
  return 0;
}
#define SORT_MOVE(bits) { \\
    typedef uint##bits##_t item __attribute__((aligned(1), may_alias)); \\
    const item *const from = (const item *)bufs[n] + at; \\
    item *const to = (item *)bufs[operands + n] + at; \\
    for (int64_t k = low; k < high; ++k) to[k * step] = from[(int64_t)(uint32_t)x[k - low] * step]; \\
  }
static void SORT_write(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high, const SORT_k *x) {
  const int64_t step = q[3], operands = q[6] / 2;
  for (int64_t n = 0; n < operands; ++n) {
    const int64_t item = q[14 + n];
    switch (item) {
      case 1: SORT_MOVE(8) break;
      case 2: SORT_MOVE(16) break;
      case 4: SORT_MOVE(32) break;
      case 8: SORT_MOVE(64) break;
      default:
        for (int64_t k = low; k < high; ++k)
          __builtin_memcpy((char *)bufs[operands + n] + (at + k * step) * item,
                           (const char *)bufs[n] + (at + (int64_t)(uint32_t)x[k - low] * step) * item,
                           (unsigned long)item);
    }
  }
}
static void SORT_restore(const int64_t *q, void *const *bufs, int64_t at) { (void)q; (void)bufs; (void)at; }
"""


def rows_text(hooks: str, bits: int, keys: str, prefix: str, width: int = 0) -> str:
    """``{prefix}_run(numbers, bufs, begin, end)``, a kernel that sorts rows by keys of that width.

    Parameters
    ----------
    hooks : str
        Three functions that read the same numbers and buffers, and stand before if this is empty, as then does the
        type ``SORT_k`` of keys: ``SORT_keys(numbers, bufs, at, low, high, x)`` makes
        the keys of a range of the row at a place, and says if some there are not all that their elements are;
        ``SORT_write(numbers, bufs, at, low, high, x)`` writes the results of keys; ``SORT_restore(numbers, bufs, at)``
        is called where a row has such keys.
    bits : int
        Of a key.
    keys : str
        Prefix of the functions of `keys_text`.
    prefix : str
        Of all names.
    width : int
        Bits of an element, where its key follows from them.
    """
    text = SELDOM + (f"typedef uint{bits}_t SORT_k;\n" + hooks if hooks else "") + _ROWS
    for word, value in {"SAMPLES": SAMPLES, "MOST": MAX_BUCKETS, "ROOM": ROOM, "WIDTH": width}.items():
        text = text.replace(word, str(value))
    return text.replace("KEYS_", f"{keys}_").replace("SORT_", f"{prefix}_")


def row_bytes(key: int, length: int) -> int:
    """Scratch of a task that sorts rows at once, by keys of so many bytes."""
    return 2 * key * length + ROOM


def cut_bytes(key: int, count: int, length: int, buckets: int, chunks: int) -> int:
    """Scratch of all rows that are cut."""
    special = (count * chunks + 15) // 16 * 16
    return count * (key * length + 4 * chunks * buckets + ROOM * buckets + 2 * key * length) + 4 * special
