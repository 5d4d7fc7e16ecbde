/* Sort records by any comparator, stably: insertion sort of short runs, then merges.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   MERGE_PREFIX  prefix of all names; the entry point is `prefix_sort`. Defined before are the type `prefix_record`
 * and the function `int prefix_less(const prefix_record *x, const prefix_record *y)` MERGE_RUN     records that are
 * sorted by insertion
 */
#include "../../abi.h"
#include "../../compiler.h"

#define MERGE(name) CYX_JOIN(MERGE_PREFIX, name)
#define MERGE_RECORD MERGE(record)

static void MERGE(insert)(MERGE_RECORD *x, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const MERGE_RECORD v = x[i];
    int64_t j = i;
    for (; j > 0 && MERGE(less)(&v, &x[j - 1]); --j) x[j] = x[j - 1];
    x[j] = v;
  }
}

static void MERGE(merge)(const MERGE_RECORD *a, const MERGE_RECORD *a_end, const MERGE_RECORD *b,
                         const MERGE_RECORD *b_end, MERGE_RECORD *to) {
  while (a < a_end && b < b_end) *to++ = MERGE(less)(b, a) ? *b++ : *a++;
  while (a < a_end) *to++ = *a++;
  while (b < b_end) *to++ = *b++;
}

/* Sort n records in x, with y as long for scratch; the result is one of the two. Equal records keep their order. */
static MERGE_RECORD *MERGE(sort)(MERGE_RECORD *x, MERGE_RECORD *y, int64_t n) {
  for (int64_t i = 0; i < n; i += MERGE_RUN) MERGE(insert)(x + i, n - i < MERGE_RUN ? n - i : MERGE_RUN);
  for (int64_t width = MERGE_RUN; width < n; width *= 2) {
    for (int64_t i = 0; i < n; i += 2 * width) {
      const int64_t middle = n - i < width ? n : i + width, end = n - i < 2 * width ? n : i + 2 * width;
      MERGE(merge)(x + i, x + middle, x + middle, x + end, y + i);
    }
    MERGE_RECORD *const t = x;
    x = y;
    y = t;
  }
  return x;
}

#undef MERGE_PREFIX
#undef MERGE_RUN
