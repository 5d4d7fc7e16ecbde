/* Windows of a convolution over the input: where they begin, and which of their taps lie inside. For `convolution.h`.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   WINDOW_PREFIX   prefix of all names; `prefix_origins_rank`, `prefix_addresses_rank` and `prefix_has_nans_rank` are
 *                   for others. Before it are defined `prefix_e`, an element at any address, `prefix_numbers`, the
 *                   struct of the sizes, and the array `prefix_zeros`, which stands for the input features of padding
 *   WINDOW_RANK     number of spatial dimensions, from 1 to 8
 *   WINDOW_DILATED  1 if the input has a base dilation along some dimension, which needs constants
 *   WINDOW_SCALAR   1 if addresses are so few that vectors of them are not worth compiling
 *   WINDOW_LEAVES   0 if no window leaves the input: `prefix_has_nans_rank` is not defined; 1 if the sizes tell
 *   WINDOW_CONSTANT 1 if the sizes are the constants `prefix_sizes`, defined before; 0 if they arrive at run time
 */
#include "../../abi.h"
#include "../../compiler.h"

#define WINDOW(name) CYX_JOIN(WINDOW_PREFIX, name)
#define WINDOW_FUNCTION(name) CYX_JOIN(WINDOW(name), WINDOW_RANK)
#define WINDOW_E WINDOW(e)
#define WINDOW_N WINDOW(numbers)
#if WINDOW_CONSTANT
#define WINDOW_KNOW(s) s = &WINDOW(sizes);
#else
#define WINDOW_KNOW(s)
#endif

#define WINDOW_UNRAVEL(d)                 \
  int64_t index##d = image % s->space##d; \
  image /= s->space##d;
#define WINDOW_NEXT(d)             \
  index##d += carry;               \
  carry = index##d == s->space##d; \
  index##d = carry ? 0 : index##d;
#define WINDOW_ORIGINS(d) int32_t *const origins##d = origins + d * s->chunk;
#define WINDOW_ORIGIN(d)                                             \
  const int64_t origin##d = index##d * s->stride##d - s->padding##d; \
  origins##d[k] = (int32_t)origin##d;
#if WINDOW_DILATED
#define WINDOW_OFFSET(d)
#else
#define WINDOW_OFFSET(d) offset += origin##d * s->input_stride##d;
#endif

/* Find the origins of the windows of a chunk of positions, from the first one on, in group `g`. `images` are the
   addresses of the origins, or with a base dilation of their images; 0 for positions after the last one. */
static __attribute__((noinline)) void WINDOW_FUNCTION(origins)(const WINDOW_N *s, const WINDOW_E *input, int64_t first,
                                                               int64_t g, const WINDOW_E **images, int32_t *origins) {
  WINDOW_KNOW(s)
  int64_t image = first;
  CYX_ROWS(WINDOW_RANK, WINDOW_ORIGINS)
  CYX_ROWS_BACKWARDS(WINDOW_RANK, WINDOW_UNRAVEL)
  for (int64_t k = 0; k < s->chunk; ++k) {
    int64_t offset = image * s->image_stride + g * s->group_stride, carry = 1;
    CYX_ROWS(WINDOW_RANK, WINDOW_ORIGIN)
    CYX_ROWS(WINDOW_RANK, WINDOW_OFFSET)
    images[k] = first + k < s->positions ? input + offset : 0;
    CYX_ROWS_BACKWARDS(WINDOW_RANK, WINDOW_NEXT)
    image += carry;
  }
}

#define WINDOW_COLUMN(d)                                    \
  const int32_t *const origins##d = origins + d * s->chunk; \
  const uint32_t extent##d = (uint32_t)s->extent##d;
#define WINDOW_TAP(d)                                                          \
  const int64_t tap##d = rest % s->size##d;                                    \
  const int64_t turned##d = s->reversed##d ? s->size##d - 1 - tap##d : tap##d; \
  const int32_t shift##d = (int32_t)(turned##d * s->dilation##d);              \
  rest /= s->size##d;
#if WINDOW_DILATED
#define WINDOW_SHIFT(d)
#define WINDOW_DILATED_INDEX(d)                                                              \
  const int32_t index##d = origins##d[k] + shift##d, base##d = (int32_t)s->base_dilation##d; \
  offset += (int64_t)(index##d / base##d) * s->input_stride##d;
#define WINDOW_IS_INSIDE(d) &((uint32_t)index##d < extent##d) & (index##d % base##d == 0)
#else
#define WINDOW_SHIFT(d) offset += shift##d * s->input_stride##d;
#define WINDOW_DILATED_INDEX(d)
#define WINDOW_IS_INSIDE(d) &((uint32_t)(origins##d[k] + shift##d) < extent##d)
#endif

/* Find the addresses of the input features of a chunk of positions for some taps, one tap after the other. */
static __attribute__((noinline)) void WINDOW_FUNCTION(addresses)(const WINDOW_N *s, const WINDOW_E *const *images,
                                                                 const int32_t *origins, int64_t first_tap,
                                                                 int64_t taps, const WINDOW_E **inputs) {
  WINDOW_KNOW(s)
  CYX_ROWS(WINDOW_RANK, WINDOW_COLUMN)
  const int64_t chunk = s->chunk;
  for (int64_t tap = first_tap; tap < first_tap + taps; ++tap, inputs += chunk) {
    int64_t rest = tap;
    CYX_ROWS_BACKWARDS(WINDOW_RANK, WINDOW_TAP)
#if !WINDOW_DILATED
    int64_t offset = 0;
    CYX_ROWS(WINDOW_RANK, WINDOW_SHIFT)
#endif
    for (int64_t k = 0; k < chunk; ++k) {
#if WINDOW_SCALAR
      CYX_SCALAR_LOOP
#endif
#if WINDOW_DILATED
      int64_t offset = 0;
      CYX_ROWS(WINDOW_RANK, WINDOW_DILATED_INDEX)
#endif
      inputs[k] = ((images[k] != 0) CYX_ROWS(WINDOW_RANK, WINDOW_IS_INSIDE)) ? images[k] + offset
                                                                             : (const WINDOW_E *)WINDOW(zeros);
    }
  }
}

#if WINDOW_LEAVES
#define WINDOW_STAYS_INSIDE(d)                \
  &(origins[d * s->chunk + first + r] >= 0) & \
      (origins[d * s->chunk + first + r] < s->extent##d - (s->size##d - 1) * s->dilation##d)

/* Return whether there are NaNs among the sums of positions, from `first` on in a chunk, whose windows leave the
   input. */
static __attribute__((noinline)) int WINDOW_FUNCTION(has_nans)(const WINDOW_N *s, const int32_t *origins, int64_t first,
                                                               int64_t rows, int64_t columns, const WINDOW_E *sums) {
  WINDOW_KNOW(s)
  int nans = 0;
  for (int64_t r = 0; r < rows; ++r, sums += s->width) {
#if WINDOW_DILATED
    (void)origins, (void)first;
#else
    if (1 CYX_ROWS(WINDOW_RANK, WINDOW_STAYS_INSIDE)) continue;
#endif
    for (int64_t f = 0; f < columns; ++f) nans |= sums[f] != sums[f];
  }
  return nans;
}
#endif

#undef WINDOW_KNOW
#undef WINDOW_OFFSET
#undef WINDOW_SHIFT
#undef WINDOW_DILATED_INDEX
#undef WINDOW_IS_INSIDE
#undef WINDOW_PREFIX
#undef WINDOW_RANK
#undef WINDOW_DILATED
#undef WINDOW_SCALAR
#undef WINDOW_LEAVES
#undef WINDOW_CONSTANT
