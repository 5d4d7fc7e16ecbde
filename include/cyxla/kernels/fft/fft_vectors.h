/* Vectors of Fourier transforms, and the arguments of a pass: definitions for passes, which are generated, and for the
 * headers fft_moves.h, fft_real.h and fft.h.
 *
 * A template: define the parameters, include it, then the other headers, fft.h as the last, which undefines them.
 *   FFT_PREFIX  prefix of all names
 *   FFT_BITS    width of a real number: 32 or 64
 *
 * A complex number is two real ones. A line is the points of one transform. A panel is as many lines as a vector has
 * lanes: a row has one point of each, as a vector of real parts and a vector of imaginary parts.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define FFT(name) CYX_JOIN(FFT_PREFIX, name)
#if FFT_BITS == 32
#define FFT_REAL float
#else
#define FFT_REAL double
#endif
#if defined(__AVX512F__)
#define FFT_LANES (512 / FFT_BITS)
#elif defined(__AVX__) || !defined(__x86_64__)
#define FFT_LANES (256 / FFT_BITS)
#else
#define FFT_LANES (128 / FFT_BITS)
#endif
#define FFT_TABLE_LANES (512 / FFT_BITS) /* lanes of the widest vectors: tables are the same for all levels */

#define FFT_ELEMENT FFT(element)
#define FFT_V FFT(vector)
#define FFT_UNALIGNED_V FFT(unaligned_vector)
typedef FFT_REAL FFT_ELEMENT __attribute__((aligned(1), may_alias));
typedef FFT_REAL FFT_V __attribute__((vector_size(FFT_LANES * (FFT_BITS / 8)), may_alias));
typedef FFT_REAL FFT_UNALIGNED_V __attribute__((vector_size(FFT_LANES * (FFT_BITS / 8)), aligned(1), may_alias));

/* Of the concatenation of two vectors: the elements of even and of odd index; of their interleaving: the lower and the
   upper half; and a vector in reverse. */
#define FFT_SHUFFLE __builtin_shufflevector
#if FFT_LANES == 16
#define FFT_EVEN(a, b) FFT_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define FFT_ODD(a, b) FFT_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define FFT_ZIP_LOW(a, b) FFT_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define FFT_ZIP_HIGH(a, b) FFT_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define FFT_REVERSE(a) FFT_SHUFFLE(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#elif FFT_LANES == 8
#define FFT_EVEN(a, b) FFT_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define FFT_ODD(a, b) FFT_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define FFT_ZIP_LOW(a, b) FFT_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define FFT_ZIP_HIGH(a, b) FFT_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define FFT_REVERSE(a) FFT_SHUFFLE(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#elif FFT_LANES == 4
#define FFT_EVEN(a, b) FFT_SHUFFLE(a, b, 0, 2, 4, 6)
#define FFT_ODD(a, b) FFT_SHUFFLE(a, b, 1, 3, 5, 7)
#define FFT_ZIP_LOW(a, b) FFT_SHUFFLE(a, b, 0, 4, 1, 5)
#define FFT_ZIP_HIGH(a, b) FFT_SHUFFLE(a, b, 2, 6, 3, 7)
#define FFT_REVERSE(a) FFT_SHUFFLE(a, a, 3, 2, 1, 0)
#else
#define FFT_EVEN(a, b) FFT_SHUFFLE(a, b, 0, 2)
#define FFT_ODD(a, b) FFT_SHUFFLE(a, b, 1, 3)
#define FFT_ZIP_LOW(a, b) FFT_SHUFFLE(a, b, 0, 2)
#define FFT_ZIP_HIGH(a, b) FFT_SHUFFLE(a, b, 1, 3)
#define FFT_REVERSE(a) FFT_SHUFFLE(a, a, 1, 0)
#endif

/* Forms of a pass, by the memory of its operand and of its results: columns of an array of complex numbers, or rows of
   a panel. An inner pass multiplies its results by twiddle factors and stores them in place for the next pass. The last
   pass of a panel stores the results in order, and may multiply them by the twiddle factors of a line that is longer
   than the panel. */
#define FFT_COLUMNS_INNER 0
#define FFT_ROWS_INNER 1
#define FFT_COLUMNS_COLUMNS 2
#define FFT_ROWS_COLUMNS 3
#define FFT_ROWS_ROWS 4
#define FFT_COLUMNS_TWIDDLED 5 /* to rows */
#define FFT_ROWS_TWIDDLED 6
#define FFT_FORMS 7

/* Arguments of a pass: butterflies of one radix over a part of a panel. Result k of butterfly j of a last pass has the
   index start + j * across + k * down. It is stored that many strides after `rest`, but the result of index 0 to
   `first`: an inverse transform has the results of the forward one in reverse order, except for the first. */
#define FFT_PASS FFT(pass)
typedef struct {
  const FFT_ELEMENT *from;  /* columns: the first point */
  int64_t from_stride;      /* real numbers between points of a column */
  FFT_V *rows;              /* the part of the panel */
  int64_t count;            /* butterflies; of an inner pass also the distance of the points of one */
  const FFT_REAL *twiddles; /* of an inner pass: radix - 1 per butterfly */
  void *first, *rest;       /* elements or, with to_rows, vectors */
  int64_t start;
  int64_t stride; /* elements or vectors between results; negative if inverse */
  int64_t across, down;
  int64_t to_rows;               /* bool: results are rows of a panel */
  FFT_REAL scale;                /* factor of the results of an inner pass without a twiddle factor */
  const FFT_REAL *coarse, *fine; /* factors of the twiddle factors of a long line, in the order of the results */
  int64_t radix;                 /* of a pass for any prime radix */
  const FFT_REAL *roots;         /* the roots of unity of that order */
} FFT_PASS;
