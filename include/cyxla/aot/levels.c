/* Choice of the code for this processor, by its features and those that the operating system saves. */
#include "runtime.h"

#if defined(__x86_64__)
#include <cpuid.h>

static int has(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

/* Return the x86-64 level of a processor by its leaves: 1 in ecx, 7 in ebx, 0x80000001 in ecx, and register xcr0. */
static int level_of(uint32_t c1, uint32_t b7, uint32_t c81, uint32_t xcr0) {
  const uint32_t sse = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
  if (!has(c1, sse) || !has(c81, bit_LAHF_LM)) return 1;
  const uint32_t lzcnt = 1u << 5, ymm = 0x6, zmm = 0xe6;
  const int is_v3 = has(c1, bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_OSXSAVE) && has(c81, lzcnt) &&
                    has(b7, bit_AVX2 | bit_BMI | bit_BMI2) && has(xcr0, ymm);
  if (!is_v3) return 2;
  const uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  return has(b7, avx512) && has(xcr0, zmm) ? 4 : 3;
}

/* Return the level of this processor. */
static int detected(void) {
  uint32_t a, b, c, d, c1, b7 = 0, c81 = 0, xcr0 = 0, high;
  if (!__get_cpuid(1, &a, &b, &c1, &d)) return 1;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) b7 = b;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) c81 = c;
  if (has(c1, bit_OSXSAVE)) __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
  return level_of(c1, b7, c81, xcr0);
}
#else
static int detected(void) { return 0; }
#endif

/* CYX_AOT_LEVELS are the levels of the library's codes, ascending; 0 outside of x86-64. */
int CYX_AOT(level)(void) {
  static const int levels[] = {CYX_AOT_LEVELS};
  static int known; /* index + 2; 0 before the first call */
  int index = __atomic_load_n(&known, __ATOMIC_RELAXED) - 2;
  if (index != -2) return index;
  const int level = detected();
  index = (int)(sizeof(levels) / sizeof(levels[0])) - 1;
  while (index >= 0 && levels[index] > level) --index;
  __atomic_store_n(&known, index + 2, __ATOMIC_RELAXED);
  return index;
}
