/* Philox-4x32 of 10 rounds (Salmon et al. 2011): four words of random bits from a key and a counter of 128 bits.
 *
 * A template: define the parameter and include it, any number of times; it undefines it.
 *   PHILOX_PREFIX  prefix of all names; the entry point is `prefix_philox(key, low, high, w)`
 */
#include "../../abi.h"
#include "../../compiler.h"

static inline void CYX_JOIN(PHILOX_PREFIX, philox)(uint64_t key, uint64_t low, uint64_t high, uint32_t *w) {
  uint32_t a = (uint32_t)low, b = (uint32_t)(low >> 32), c = (uint32_t)high, d = (uint32_t)(high >> 32);
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int r = 0; r < 10; ++r) {
    const uint64_t one = (uint64_t)a * 0xD2511F53u, two = (uint64_t)c * 0xCD9E8D57u;
    a = (uint32_t)(two >> 32) ^ b ^ k0;
    b = (uint32_t)two;
    c = (uint32_t)(one >> 32) ^ d ^ k1;
    d = (uint32_t)one;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  w[0] = a;
  w[1] = b;
  w[2] = c;
  w[3] = d;
}

#undef PHILOX_PREFIX
