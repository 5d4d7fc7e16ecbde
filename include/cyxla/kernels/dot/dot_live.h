/* The numbers of a product of which a leading part alone matters, for dot.h with numbers that arrive at run time.
 *
 * A template: define the parameter and include it after dot.h, as often as wanted; it undefines it.
 *   LIVE_PREFIX   prefix of all names, the same as that of dot.h
 */
#include "../../abi.h"
#include "../../compiler.h"

#define LIVE(name) CYX_JOIN(LIVE_PREFIX, name)

/* Return the numbers of the part of a product that has `part[0]` batches, `part[1]` rows, `part[2]` columns and sums of
 * `part[3]` terms. A panel or tile that reaches into the part is computed whole. */
static inline LIVE(numbers) LIVE(of_part)(const LIVE(numbers) * whole, const int64_t *part) {
  LIVE(numbers) s = *whole;
  s.live_rows = part[1];
  s.tiles = LIVE(tiles_of_rows)(whole, part[1]);
  s.panels = (part[2] + s.width - 1) / s.width;
  if (s.panels < whole->panels) s.last = s.width, s.last_vectors = s.vectors, s.packs_last = s.packs;
  s.k = part[3];
  if (s.ranges > s.tiles) s.ranges = s.tiles;
  s.units = part[0] * s.panels * s.ranges;
  return s;
}

#undef LIVE
#undef LIVE_PREFIX
