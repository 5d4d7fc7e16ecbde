/* Clock and counters of a profile, which the entry reads and updates around every call of a kernel.
 *
 * A template: define the parameters and include it, once in a program; it undefines them. `profile_clock(ctx)` and
 * `profile_add(ctx, site, start)` are for others.
 *   PROFILE_CLOCK         number of the host function clock_gettime
 *   PROFILE_CLOCK_ID      clock to read
 *   PROFILE_MEMORY        number of the host function that is the memory: the number of events; of each call site the
 *                         number of calls and their ns; then the events: site, start, end and call of the program
 *   PROFILE_SITES         call sites
 *   PROFILE_SITE_FIELDS   elements of the memory for each site
 *   PROFILE_EVENTS        events that there is room for
 *   PROFILE_EVENT_FIELDS  elements of the memory for each event
 */
#include "../../abi.h"
#include "../../compiler.h"

static int64_t profile_clock(const cyx_ctx *ctx) {
  int64_t time[2];
  ((int (*)(int, int64_t *))ctx->functions[PROFILE_CLOCK])(PROFILE_CLOCK_ID, time);
  return time[0] * 1000000000 + time[1];
}

static void profile_add(const cyx_ctx *ctx, int64_t site, int64_t start) {
  const int64_t end = profile_clock(ctx);
  int64_t *const memory = ctx->functions[PROFILE_MEMORY], *const own = memory + 1 + PROFILE_SITE_FIELDS * site;
  __atomic_fetch_add(own, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(own + 1, end - start, __ATOMIC_RELAXED);
  const int64_t number = __atomic_fetch_add(memory, 1, __ATOMIC_RELAXED);
  if (number >= PROFILE_EVENTS) return;
  int64_t *const event = memory + 1 + PROFILE_SITE_FIELDS * PROFILE_SITES + PROFILE_EVENT_FIELDS * number;
  event[0] = site;
  event[1] = start;
  event[2] = end;
  event[3] = (int64_t)ctx;
}

#undef PROFILE_CLOCK
#undef PROFILE_CLOCK_ID
#undef PROFILE_MEMORY
#undef PROFILE_SITES
#undef PROFILE_SITE_FIELDS
#undef PROFILE_EVENTS
#undef PROFILE_EVENT_FIELDS
