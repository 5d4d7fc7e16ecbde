/* Comparison of words of 64 bits to bools. For AVX2, compilers make bytes of the masks in twice as many instructions.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   WORDS_NAME      name of the function `name(out, x, y)`
 *   WORDS_COUNT     number of elements that it compares, a multiple of 32
 *   WORDS_TYPE      type of an element
 *   WORDS_OPERATOR  operator of the comparison
 */
#include "../../abi.h"
#include "../../compiler.h"

#if defined(__AVX2__) && !defined(__AVX512F__)
#define WORDS(part) CYX_JOIN(WORDS_NAME, part)
typedef WORDS_TYPE WORDS(vector) __attribute__((vector_size(32), aligned(1), may_alias));
typedef long long WORDS(mask) __attribute__((vector_size(32)));
typedef int WORDS(ints) __attribute__((vector_size(32)));
typedef short WORDS(shorts) __attribute__((vector_size(32)));
typedef char WORDS(bytes) __attribute__((vector_size(32)));
typedef char WORDS(bytes_at) __attribute__((vector_size(32), aligned(1), may_alias));

/* Return the masks of 16 comparisons, each in 2 bytes: of each vector first the lower half, then the upper one. */
static inline WORDS(shorts) WORDS(narrow)(const WORDS_TYPE *x, const WORDS_TYPE *y) {
#define WORDS_MASK(j) (WORDS(ints))((((const WORDS(vector) *)x)[j] WORDS_OPERATOR((const WORDS(vector) *)y)[j]))
  const WORDS(shorts) low = __builtin_ia32_packssdw256(WORDS_MASK(0), WORDS_MASK(1));
  const WORDS(shorts) high = __builtin_ia32_packssdw256(WORDS_MASK(2), WORDS_MASK(3));
#undef WORDS_MASK
  return (WORDS(shorts))__builtin_ia32_packsswb256(low, high);
}

static inline void WORDS_NAME(unsigned char *out, const WORDS_TYPE *x, const WORDS_TYPE *y) {
  const WORDS(bytes) order = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,
                              0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  for (int k = 0; k < WORDS_COUNT; k += 32) {
    const WORDS(shorts) first = WORDS(narrow)(x + k, y + k) & 1, second = WORDS(narrow)(x + k + 16, y + k + 16) & 1;
    const WORDS(mask) halves = (WORDS(mask))__builtin_ia32_packuswb256(first, second);
    const WORDS(mask) both = __builtin_ia32_permdi256(halves, 0xd8);
    *(WORDS(bytes_at) *)(out + k) = __builtin_ia32_pshufb256((WORDS(bytes))both, order);
  }
}

#undef WORDS
#else
static inline void WORDS_NAME(unsigned char *out, const WORDS_TYPE *x, const WORDS_TYPE *y) {
  CYX_INDEPENDENT
  for (int k = 0; k < WORDS_COUNT; ++k) out[k] = 1 & -(int32_t)(x[k] WORDS_OPERATOR y[k]);
}
#endif

#undef WORDS_NAME
#undef WORDS_COUNT
#undef WORDS_TYPE
#undef WORDS_OPERATOR
