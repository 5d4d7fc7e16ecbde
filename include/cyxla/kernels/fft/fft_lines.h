/* Transforms of panels, columns and lines.
 *
 * A template, to be included after fft_vectors.h, fft_moves.h and the passes. Passes are functions of FFT_PASS in two
 * tables, with 0 for missing ones:
 *   FFT(passes)[][FFT_FORMS]        by radix; row 0 for any prime
 *   FFT(fixed_panels)[][FFT_FORMS]  all passes of panels of some lengths, by number
 *
 * A plan is an array of int64_t: records that refer to each other by index. Tables are parts of one constant, referred
 * to by the index of their first element.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define FFT_LINE_BYTES(points) ((2 * (points) * (FFT_BITS / 8) + 63) / 64 * 64) /* scratch of a line */
#define FFT_LEVEL FFT(level)
#define FFT_PANEL FFT(panel)
#define FFT_LINE FFT(line)
#define FFT_RECORD(type, index) ((const FFT(type) *)(plan + (index)))

typedef struct {
  int64_t radix;    /* up to 16, or a prime */
  int64_t roots;    /* table of a prime without a pass of its own */
  int64_t count;    /* butterflies of a part: the product of the radices of later levels */
  int64_t twiddles; /* table, unless the level is the last */
} FFT_LEVEL;

typedef struct {
  int64_t points, inverse;
  double scale;   /* factor of the results; the table of the first of several levels includes it */
  int64_t number; /* index of a function for this length, or 0 */
  int64_t levels;
  FFT_LEVEL level[];
} FFT_PANEL;

/* A line whose length is a product: its points are a matrix of `rows` rows. */
typedef struct {
  int64_t product; /* 0 */
  int64_t rows, columns;
  int64_t of_columns, of_rows; /* panels of the two steps */
  int64_t coarse, fine;        /* tables */
} FFT_LINE;

/* A line that is a convolution with a chirp (Bluestein). */
typedef struct {
  int64_t length_and_1; /* length of the convolution, plus 1 */
  int64_t points;
  int64_t convolved;     /* record of a line of that length */
  int64_t chirp, filter; /* tables: the chirp, and the transform of its conjugate */
} FFT(chirp_line);

/* Run level 0 and later ones of a part of a panel, `rows`. Its results begin at index `start`, with stride `weight`.
   The level before has `before` of these parts. */
static void FFT(levels)(const FFT_LEVEL *level, int64_t levels, FFT_PASS *a, const FFT_REAL *tables, FFT_V *rows,
                        int64_t start, int64_t weight, int64_t before) {
  const int64_t radix = level->radix;
  void (*const *const forms)(const FFT_PASS *) = FFT(passes)[radix > 16 ? 0 : radix];
  a->radix = radix;
  a->roots = tables + level->roots;
  a->rows = rows;
  if (levels == 1) {
    a->count = before;
    a->start = start;
    a->across = weight / before;
    a->down = weight;
    forms[a->coarse ? FFT_ROWS_TWIDDLED : a->to_rows ? FFT_ROWS_ROWS : FFT_ROWS_COLUMNS](a);
    if (a->coarse) {
      a->coarse += 2 * before * radix;
      a->fine += 2 * FFT_TABLE_LANES * before * radix;
    }
    return;
  }
  const int64_t count = level->count;
  a->count = count;
  a->twiddles = tables + level->twiddles;
  forms[a->from ? FFT_COLUMNS_INNER : FFT_ROWS_INNER](a);
  a->from = 0;
  a->scale = 1;
  if (levels == 2) {
    FFT(levels)(level + 1, 1, a, tables, rows, start, weight * radix, radix);
    return;
  }
  for (int64_t j = 0; j < radix; ++j)
    FFT(levels)(level + 1, levels - 1, a, tables, rows + 2 * j * count, start + j * weight, weight * radix, 1);
}

/* Transform a panel. */
static inline __attribute__((always_inline)) void FFT(transform)(const FFT_PANEL *p, FFT_PASS *a,
                                                                 const FFT_REAL *tables) {
  const int64_t stride = a->stride, size = (int64_t)(a->to_rows ? sizeof(FFT_V) : sizeof(FFT_ELEMENT));
  const int64_t last = a->coarse ? FFT_COLUMNS_TWIDDLED : a->to_rows ? FFT_ROWS_ROWS : FFT_COLUMNS_COLUMNS;
  char *const first = a->first;
  a->scale = (FFT_REAL)p->scale;
  a->rest = first;
  a->start = 0;
  if (p->inverse) {
    a->rest = first + p->points * stride * size;
    a->stride = -stride;
  }
  if (p->number) {
    a->twiddles = tables + p->level->twiddles;
    FFT(fixed_panels)[p->number][last](a);
    return;
  }
  if (p->levels > 1) {
    FFT(levels)(p->level, p->levels, a, tables, a->rows, 0, 1, 1);
    return;
  }
  const int64_t radix = p->level->radix;
  a->radix = radix;
  a->roots = tables + p->level->roots;
  a->count = a->across = a->down = 1;
  FFT(passes)[radix > 16 ? 0 : radix][last](a);
  if (p->scale == 1) return;
  for (int64_t k = 0; k < p->points; ++k) {
    FFT_UNALIGNED_V *const d = (FFT_UNALIGNED_V *)(first + k * stride * size);
    d[0] *= a->scale;
    d[1] *= a->scale;
  }
}

/* Transform rows; the results follow them. */
static void FFT(transform_rows)(const FFT_PANEL *p, FFT_V *rows, const FFT_REAL *tables) {
  FFT_PASS a = {.rows = rows, .first = rows + 2 * p->points, .stride = 2, .to_rows = 1};
  FFT(transform)(p, &a, tables);
}

/* Transform columns into rows, after the rows that it uses, and multiply the results by twiddle factors. */
static void FFT(transform_twiddled)(const FFT_PANEL *p, const FFT_ELEMENT *from, int64_t from_stride, FFT_V *rows,
                                    const FFT_REAL *tables, const FFT_REAL *coarse, const FFT_REAL *fine) {
  FFT_PASS a = {.from = from, .from_stride = from_stride, .rows = rows, .first = rows + 2 * p->points, .stride = 2};
  a.to_rows = 1;
  a.coarse = coarse;
  a.fine = fine;
  FFT(transform)(p, &a, tables);
}

/* Transform the columns [begin, end) of an array whose rows are `stride` complex numbers apart. */
static void FFT(transform_columns)(const FFT_PANEL *p, int64_t stride, int64_t begin, int64_t end,
                                   const FFT_ELEMENT *from, FFT_ELEMENT *to, FFT_V *scratch, const FFT_REAL *tables) {
  const int64_t n = p->points;
  for (int64_t l = begin; l < end; l += FFT_LANES) {
    const int64_t lanes = end - l < FFT_LANES ? end - l : FFT_LANES;
    FFT_PASS a = {.from = from + 2 * l, .from_stride = 2 * stride, .rows = scratch, .first = to + 2 * l};
    a.stride = 2 * stride;
    if (lanes < FFT_LANES) {
      FFT_ELEMENT *const rest = (FFT_ELEMENT *)(scratch + 2 * n);
      FFT(copy_columns)(rest, 2 * FFT_LANES, from + 2 * l, 2 * stride, n, lanes);
      a.from = a.first = rest;
      a.from_stride = a.stride = 2 * FFT_LANES;
    }
    FFT(transform)(p, &a, tables);
    if (lanes < FFT_LANES)
      FFT(copy_columns)(to + 2 * l, 2 * stride, (FFT_ELEMENT *)(scratch + 2 * n), 2 * FFT_LANES, n, lanes);
  }
}

/* First step of a line whose length is a product: transform columns of the matrix, multiply the results by twiddle
   factors and store them transposed. */
static void FFT(first_step)(const int64_t *plan, const FFT_LINE *p, int64_t begin, int64_t end, const FFT_ELEMENT *from,
                            FFT_ELEMENT *to, FFT_V *scratch, const FFT_REAL *tables) {
  const int64_t rows = p->rows, columns = p->columns;
  for (int64_t l = begin; l < end; l += FFT_LANES) {
    const int64_t lanes = end - l < FFT_LANES ? end - l : FFT_LANES;
    const FFT_REAL *const coarse = tables + p->coarse + l / FFT_TABLE_LANES * 2 * rows;
    const FFT_REAL *const fine = tables + p->fine + l % FFT_TABLE_LANES;
    const FFT_ELEMENT *x = from + 2 * l;
    int64_t stride = 2 * columns;
    if (lanes < FFT_LANES) {
      x = (const FFT_ELEMENT *)(scratch + 4 * rows);
      stride = 2 * FFT_LANES;
      FFT(copy_columns)((FFT_ELEMENT *)(scratch + 4 * rows), stride, from + 2 * l, 2 * columns, rows, lanes);
    }
    FFT(transform_twiddled)(FFT_RECORD(panel, p->of_columns), x, stride, scratch, tables, coarse, fine);
    FFT(scatter)(to + l * 2 * rows, 2 * rows, scratch + 2 * rows, rows, lanes);
  }
}

/* Second step: transform the columns of the first step's results, possibly in place. */
static void FFT(second_step)(const int64_t *plan, const FFT_LINE *p, int64_t begin, int64_t end,
                             const FFT_ELEMENT *from, FFT_ELEMENT *to, FFT_V *scratch, const FFT_REAL *tables) {
  FFT(transform_columns)(FFT_RECORD(panel, p->of_rows), p->rows, begin, end, from, to, scratch, tables);
}

/* Transform the line of a record, a product or a convolution with a chirp. */
static void FFT(transform_line)(const int64_t *plan, int64_t record, const FFT_ELEMENT *from, FFT_ELEMENT *to,
                                FFT_V *scratch, const FFT_REAL *tables) {
  const FFT_LINE *const product = FFT_RECORD(line, record);
  if (product->product == 0) {
    FFT(first_step)(plan, product, 0, product->columns, from, to, scratch, tables);
    FFT(second_step)(plan, product, 0, product->rows, to, to, scratch, tables);
    return;
  }
  const FFT(chirp_line) *const p = FFT_RECORD(chirp_line, record);
  const int64_t m = p->length_and_1 - 1, n = p->points;
  FFT_ELEMENT *const x = (FFT_ELEMENT *)scratch, *const y = (FFT_ELEMENT *)((char *)scratch + FFT_LINE_BYTES(m));
  FFT_V *const rest = (FFT_V *)((char *)scratch + 2 * FFT_LINE_BYTES(m));
  FFT(multiply)(x, from, tables + p->chirp, n, 1);
  __builtin_memset(x + 2 * n, 0, (unsigned long)(2 * (m - n)) * sizeof *x);
  FFT(transform_line)(plan, p->convolved, x, y, rest, tables);
  FFT(multiply)(y, y, tables + p->filter, m, -1);
  FFT(transform_line)(plan, p->convolved, y, x, rest, tables);
  for (int64_t k = 0; k < n; ++k) x[2 * k + 1] = -x[2 * k + 1];
  FFT(multiply)(to, x, tables + p->chirp, n, 1);
}
