/* Threefry-2x32 of 20 rounds (Salmon et al. 2011): two words of random bits from a key and a counter.
 *
 * A template: define the parameter and include it, any number of times; it undefines it.
 *   THREEFRY_PREFIX  prefix of all names; the entry point is `prefix_threefry(key, counter, w0, w1)`
 */
#include "../../abi.h"
#include "../../compiler.h"

#define THREEFRY_ROUND(d) \
  x += y;                 \
  y = (y << d | y >> (32 - d)) ^ x;
#define THREEFRY_FOUR(a, b, c, d) THREEFRY_ROUND(a) THREEFRY_ROUND(b) THREEFRY_ROUND(c) THREEFRY_ROUND(d)

static inline void CYX_JOIN(THREEFRY_PREFIX, threefry)(uint64_t key, uint64_t counter, uint32_t *w0, uint32_t *w1) {
  const uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32), (uint32_t)key ^ (uint32_t)(key >> 32) ^ 0x1BD11BDAu};
  uint32_t x = (uint32_t)counter + k[0], y = (uint32_t)(counter >> 32) + k[1];
  THREEFRY_FOUR(13, 15, 26, 6)
  x += k[1];
  y += k[2] + 1;
  THREEFRY_FOUR(17, 29, 16, 24)
  x += k[2];
  y += k[0] + 2;
  THREEFRY_FOUR(13, 15, 26, 6)
  x += k[0];
  y += k[1] + 3;
  THREEFRY_FOUR(17, 29, 16, 24)
  x += k[1];
  y += k[2] + 4;
  THREEFRY_FOUR(13, 15, 26, 6)
  x += k[2];
  y += k[0] + 5;
  *w0 = x;
  *w1 = y;
}

#undef THREEFRY_PREFIX
