/* Several products of one matrix with vectors, which is read once: a kernel. Each unit of work goes to the kernels of
 * inner products, then to that of sums of rows, if there is one.
 *
 * A template: define the parameter and include it, as often as wanted; it undefines it.
 *   PASS_PREFIX   prefix of all names. Before it are defined the type `prefix_pass` of the numbers, and the types and
 *                 functions of dot_few_rows.h for the prefix `prefix_inner` and of dot_row_sums.h for the prefix
 *                 `prefix_combination`, whose numbers follow those of the pass
 */
#include "../../abi.h"
#include "../../compiler.h"

#define PASS(name) CYX_JOIN(PASS_PREFIX, name)

/* Run tasks; after the first phase, the sums of all tasks are added. */
static inline cyx_status PASS(pass_run)(const PASS(pass) * p, void *const *bufs, int64_t begin, int64_t end) {
  const PASS(inner_numbers) *const inner = (const PASS(inner_numbers) *)(p + 1);
  const PASS(combination_numbers) *const sums = (const PASS(combination_numbers) *)(inner + p->inner);
  const int64_t first = begin * p->task_units;
  const int64_t last = end * p->task_units < p->units ? end * p->task_units : p->units;
  if (p->phase && *(const int64_t *)bufs[p->phase]) return PASS(combination_run)(sums, bufs, first, last, 0);
  for (int64_t u = first; u < last; ++u) {
    for (int64_t k = 0; k < p->inner; ++k) PASS(inner_run)(inner + k, bufs, u, u + 1, 0);
    if (p->sums) PASS(combination_run)(sums, bufs, u, u + 1, 0);
  }
  return CYX_OK;
}

#undef PASS
#undef PASS_PREFIX
