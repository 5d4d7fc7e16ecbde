"""C of topk for any program: keeps the k best elements of a row in order and passes over the others.

Elements become signed integers that stand in the order. A block of them is compared with the worst of the kept ones at
once, and looked at one by one only if some are better, which soon they rarely are.
"""

from __future__ import annotations

MOST = 128  # the largest k; above, sorting is faster
BLOCK = 128

#: The key of an element of so many bits. Numbers after those of `_ROWS`: which bits change sides if the element is
#: negative, and which to flip.
PATTERN = """\
typedef uintWIDTH_t TOP_e __attribute__((aligned(1), may_alias));
static inline TOP_k TOP_key(uintWIDTH_t u, const int64_t *q) {
  const uintWIDTH_t sign = (uintWIDTH_t)((intWIDTH_t)u >> (WIDTH - 1));
  return (intWIDTH_t)(u ^ (sign & (uintWIDTH_t)q[4]) ^ (uintWIDTH_t)q[5]);
}
"""

_ROWS = """\
/* Put a key where it belongs among those kept, the greatest first and after its equals; the last one may go. */
static inline void TOP_keep(TOP_k *best, int32_t *places, int64_t last, TOP_k key, int32_t place) {
  int64_t i = last;
  for (; i > 0 && best[i - 1] < key; --i) { best[i] = best[i - 1]; places[i] = places[i - 1]; }
  best[i] = key; places[i] = place;
}
/* Tasks of a topk. The numbers: tasks, rows, their length, k. */
static cyx_status TOP_run(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = q[0], rows = q[1], length = q[2], k = q[3];
  if (k == 0) return CYX_OK;
  for (int64_t u = begin * rows / tasks; u < end * rows / tasks; ++u) {
    const TOP_e *const row = (const TOP_e *)bufs[0] + u * length;
    TOP_e *const values = (TOP_e *)bufs[1] + u * k;
    TOP_place *const indices = (TOP_place *)bufs[2] + u * k;
    TOP_k best[MOST], keys[BLOCK];
    int32_t places[MOST], at = (int32_t)k;
    for (int32_t j = 0; j < k; ++j) TOP_keep(best, places, j, TOP_key(row[j], q), j);
    for (; at <= length - BLOCK; at += BLOCK) {
      const TOP_k worst = best[k - 1];
      int better = 0;
      for (int j = 0; j < BLOCK; ++j) {
        keys[j] = TOP_key(row[at + j], q);
        better |= keys[j] > worst;
      }
      if (!better) continue;
      for (int j = 0; j < BLOCK; ++j)
        if (keys[j] > best[k - 1]) TOP_keep(best, places, k - 1, keys[j], at + j);
    }
    for (; at < length; ++at) {
      const TOP_k key = TOP_key(row[at], q);
      if (key > best[k - 1]) TOP_keep(best, places, k - 1, key, at);
    }
    for (int64_t j = 0; j < k; ++j) {
      values[j] = row[places[j]];
      indices[j] = places[j];
    }
  }
  return CYX_OK;
}
"""


def topk_text(key: str, width: int, prefix: str) -> str:
    """``{prefix}_run(numbers, bufs, begin, end)``, a kernel.

    Parameters
    ----------
    key : str
        The type ``TOP_e`` of elements in memory, and ``TOP_key(element, numbers)``.
    width : int
        Bits of an element.
    prefix : str
        Of all names.
    """
    types = f"typedef int{max(width, 32)}_t TOP_k;\ntypedef int32_t TOP_place __attribute__((aligned(1), may_alias));\n"
    text = types + key + _ROWS
    for word, value in {"MOST": MOST, "BLOCK": BLOCK, "WIDTH": width}.items():
        text = text.replace(word, str(value))
    return text.replace("TOP_", f"{prefix}_")
