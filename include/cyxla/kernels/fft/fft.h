/* Planned Fourier transforms: stages of one dimension each, in blocks of lines.
 *
 * A template, to be included after fft_vectors.h, whose macros it undefines, fft_moves.h, fft_real.h for both
 * directions and fft_lines.h. The entry point is `prefix_run(plan, bufs, begin, end)`. Define the parameter before; it
 * is undefined.
 *   FFT_STACK_BYTES  scratch of a task on the stack
 *
 * A plan is a head and records of panels, lines and stages. Strides and sizes are counts of real numbers, unless noted.
 */
#include "../../abi.h"
#include "../../compiler.h"

/* Kinds of stages, the first element of their records; a stage transforms a range of its blocks. */
#define FFT_SHORT_ROWS 0 /* the last dimension, as panels */
#define FFT_LONG_ROWS 1  /* the last dimension, one line at a time */
#define FFT_SHORT_COLUMNS 2
#define FFT_LONG_COLUMNS 3
#define FFT_ONE_STEP 4
#define FFT_ONE_REAL_STEP 5

#define FFT_STAGE                                                                                            \
  const int64_t *plan, int64_t record, int64_t begin, int64_t end, const FFT_ELEMENT *from, FFT_ELEMENT *to, \
      FFT_V *scratch, const FFT_REAL *tables

/* Kinds of lines of the last dimension: complex; real to complex and back, by a complex transform of half the length
   or of the full length. */
#define FFT_COMPLEX 0
#define FFT_HALF_R2C 1
#define FFT_HALF_C2R 2
#define FFT_FULL_R2C 3
#define FFT_FULL_C2R 4

/* Lines of the last dimension. */
typedef struct {
  int64_t stage;
  int64_t lines;
  int64_t points;                    /* of the complex transform */
  int64_t operand_size, result_size; /* elements of a line */
  int64_t kind;
  int64_t transform; /* panel or line */
  int64_t real_table;
  int64_t length; /* points of the complete transform */
} FFT(rows);

/* Lines of another dimension. */
typedef struct {
  int64_t stage;
  int64_t outer; /* product of the dimensions before */
  int64_t points;
  int64_t stride;    /* complex numbers between points: the product of the later dimensions */
  int64_t transform; /* panel or line */
} FFT(columns);

/* One step of few long lines. */
typedef struct {
  int64_t stage;
  int64_t lines, points;
  int64_t columns; /* of the matrix whose columns the step transforms */
  int64_t transform;
  int64_t step; /* 0: the first; 1: the second */
} FFT(step);

/* The last or the first step of few long real lines. */
typedef struct {
  int64_t stage;
  int64_t lines;
  int64_t points; /* of the complex transform */
  int64_t block;  /* pairs */
  int64_t c2r;
  int64_t real_table;
} FFT(real_step);

static void FFT(short_rows)(FFT_STAGE) {
  const FFT(rows) *const s = FFT_RECORD(rows, record);
  const FFT_PANEL *const panel = FFT_RECORD(panel, s->transform);
  const int64_t h = s->points, operand_size = s->operand_size, result_size = s->result_size;
  const int64_t n = s->length, bins = n / 2 + 1;
  const int64_t last = end * FFT_LANES < s->lines ? end * FFT_LANES : s->lines;
  for (int64_t l = begin * FFT_LANES; l < last; l += FFT_LANES) {
    const int64_t lanes = last - l < FFT_LANES ? last - l : FFT_LANES;
    const FFT_ELEMENT *const x = from + l * operand_size;
    FFT_ELEMENT *const y = to + l * result_size;
    FFT_V *rows = scratch;
    switch (s->kind) {
      case FFT_COMPLEX:
        FFT(gather)(rows, x, operand_size, h, lanes);
        FFT(transform_rows)(panel, rows, tables);
        FFT(scatter)(y, result_size, rows + 2 * h, h, lanes);
        break;
      case FFT_HALF_R2C:
        rows += 2;
        FFT(gather)(rows, x, operand_size, h, lanes);
        FFT(transform_rows)(panel, rows, tables);
        FFT(r2c_rows)(scratch, rows + 2 * h, h, tables + s->real_table);
        FFT(scatter)(y, result_size, scratch, bins, lanes);
        break;
      case FFT_HALF_C2R:
        rows += 2 * bins;
        FFT(gather)(scratch, x, operand_size, bins, lanes);
        FFT(c2r_rows)(rows, scratch, h, tables + s->real_table);
        FFT(transform_rows)(panel, rows, tables);
        FFT(scatter)(y, result_size, rows + 2 * h, h, lanes);
        break;
      case FFT_FULL_R2C:
        FFT(gather_real)(rows, x, operand_size, n, lanes);
        FFT(transform_rows)(panel, rows, tables);
        FFT(scatter)(y, result_size, rows + 2 * n, bins, lanes);
        break;
      default:
        FFT(gather)(rows, x, operand_size, bins, lanes);
        rows[1] = (FFT_V){0};
        if (n % 2 == 0) rows[n + 1] = (FFT_V){0};
        for (int64_t k = bins; k < n; ++k) {
          rows[2 * k] = rows[2 * (n - k)];
          rows[2 * k + 1] = -rows[2 * (n - k) + 1];
        }
        FFT(transform_rows)(panel, rows, tables);
        FFT(scatter_real)(y, result_size, rows + 2 * n, n, lanes);
    }
  }
}

static void FFT(long_rows)(FFT_STAGE) {
  const FFT(rows) *const s = FFT_RECORD(rows, record);
  const int64_t h = s->points, n = s->length, bins = n / 2 + 1;
  FFT_ELEMENT *const a = (FFT_ELEMENT *)scratch, *const b = (FFT_ELEMENT *)((char *)scratch + FFT_LINE_BYTES(h));
  FFT_V *const line_scratch = (FFT_V *)((char *)scratch + 2 * FFT_LINE_BYTES(h));
  for (int64_t l = begin; l < end; ++l) {
    const FFT_ELEMENT *const x = from + l * s->operand_size;
    FFT_ELEMENT *const y = to + l * s->result_size;
    switch (s->kind) {
      case FFT_COMPLEX:
        FFT(transform_line)(plan, s->transform, x, y, scratch, tables);
        break;
      case FFT_HALF_R2C:
        FFT(transform_line)(plan, s->transform, x, y, scratch, tables);
        FFT(r2c_line)(y, y, h, tables + s->real_table, 0, h / 2 + 1);
        break;
      case FFT_HALF_C2R:
        FFT(c2r_line)(a, x, h, tables + s->real_table, 0, h / 2 + 1);
        FFT(transform_line)(plan, s->transform, a, y, line_scratch, tables);
        break;
      case FFT_FULL_R2C:
        for (int64_t k = 0; k < n; ++k) {
          a[2 * k] = x[k];
          a[2 * k + 1] = 0;
        }
        FFT(transform_line)(plan, s->transform, a, b, line_scratch, tables);
        __builtin_memcpy(y, b, (unsigned long)(2 * bins) * sizeof *y);
        break;
      default:
        __builtin_memcpy(a, x, (unsigned long)(2 * bins) * sizeof *x);
        a[1] = 0;
        if (n % 2 == 0) a[n + 1] = 0;
        for (int64_t k = bins; k < n; ++k) {
          a[2 * k] = a[2 * (n - k)];
          a[2 * k + 1] = -a[2 * (n - k) + 1];
        }
        FFT(transform_line)(plan, s->transform, a, b, line_scratch, tables);
        for (int64_t k = 0; k < n; ++k) y[k] = b[2 * k];
    }
  }
}

/* A block has as many columns as a vector has lanes. */
static void FFT(short_columns)(FFT_STAGE) {
  const FFT(columns) *const s = FFT_RECORD(columns, record);
  const int64_t n = s->points, stride = s->stride, blocks_across = (stride + FFT_LANES - 1) / FFT_LANES;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t first = b % blocks_across * FFT_LANES, last = first + FFT_LANES < stride ? first + FFT_LANES : stride;
    const int64_t offset = b / blocks_across * 2 * n * stride;
    const FFT_PANEL *const panel = FFT_RECORD(panel, s->transform);
    FFT(transform_columns)(panel, stride, first, last, from + offset, to + offset, scratch, tables);
  }
}

static void FFT(long_columns)(FFT_STAGE) {
  const FFT(columns) *const s = FFT_RECORD(columns, record);
  const int64_t n = s->points, stride = s->stride, blocks_across = (stride + FFT_LANES - 1) / FFT_LANES;
  FFT_ELEMENT *const x = (FFT_ELEMENT *)scratch, *const y = (FFT_ELEMENT *)(scratch + 2 * n);
  FFT_V *const line_scratch = (FFT_V *)((char *)y + FFT_LINE_BYTES(n));
  for (int64_t b = begin; b < end; ++b) {
    const int64_t first = b % blocks_across * FFT_LANES, last = first + FFT_LANES < stride ? first + FFT_LANES : stride;
    const int64_t offset = b / blocks_across * 2 * n * stride + 2 * first;
    FFT(transpose)(x, 2 * n, from + offset, 2 * stride, n, last - first);
    for (int64_t l = 0; l < last - first; ++l) {
      FFT(transform_line)(plan, s->transform, x + l * 2 * n, y, line_scratch, tables);
      __builtin_memcpy(x + l * 2 * n, y, (unsigned long)(2 * n) * sizeof *x);
    }
    FFT(transpose)(to + offset, 2 * stride, x, 2 * n, last - first, n);
  }
}

static void FFT(one_step)(FFT_STAGE) {
  const FFT(step) *const s = FFT_RECORD(step, record);
  const int64_t columns = s->columns, blocks_across = (columns + FFT_LANES - 1) / FFT_LANES;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t offset = b / blocks_across * 2 * s->points, first = b % blocks_across * FFT_LANES;
    const int64_t last = first + FFT_LANES < columns ? first + FFT_LANES : columns;
    const FFT_LINE *const line = FFT_RECORD(line, s->transform);
    (s->step ? FFT(second_step) : FFT(first_step))(plan, line, first, last, from + offset, to + offset, scratch,
                                                   tables);
  }
}

static void FFT(one_real_step)(FFT_STAGE) {
  const FFT(real_step) *const s = FFT_RECORD(real_step, record);
  const int64_t h = s->points, pairs = h / 2 + 1, blocks_across = (pairs + s->block - 1) / s->block, c2r = s->c2r;
  (void)scratch;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t row = b / blocks_across, first = b % blocks_across * s->block;
    const int64_t last = first + s->block < pairs ? first + s->block : pairs;
    const FFT_ELEMENT *const x = from + row * 2 * (h + c2r);
    FFT_ELEMENT *const y = to + row * 2 * (h + !c2r);
    (c2r ? FFT(c2r_line) : FFT(r2c_line))(y, x, h, tables + s->real_table, first, last);
  }
}

/* Return the number of blocks of a stage. */
static int64_t FFT(blocks)(const int64_t *plan, int64_t record) {
  switch (plan[record]) {
    case FFT_SHORT_ROWS:
      return (FFT_RECORD(rows, record)->lines + FFT_LANES - 1) / FFT_LANES;
    case FFT_LONG_ROWS:
      return FFT_RECORD(rows, record)->lines;
    case FFT_ONE_STEP:
      return FFT_RECORD(step, record)->lines * ((FFT_RECORD(step, record)->columns + FFT_LANES - 1) / FFT_LANES);
    case FFT_ONE_REAL_STEP: {
      const FFT(real_step) *const s = FFT_RECORD(real_step, record);
      return s->lines * ((s->points / 2 + s->block) / s->block);
    }
    default:
      return FFT_RECORD(columns, record)->outer * ((FFT_RECORD(columns, record)->stride + FFT_LANES - 1) / FFT_LANES);
  }
}

static void (*const FFT(stages)[])(FFT_STAGE) = {
    [FFT_SHORT_ROWS] = FFT(short_rows),     [FFT_LONG_ROWS] = FFT(long_rows), [FFT_SHORT_COLUMNS] = FFT(short_columns),
    [FFT_LONG_COLUMNS] = FFT(long_columns), [FFT_ONE_STEP] = FFT(one_step),   [FFT_ONE_REAL_STEP] = FFT(one_real_step),
};

/* Head of a plan. A task runs all stages of a unit; without units, tasks share the blocks of the only stage. */
typedef struct {
  int64_t tasks, units;
  int64_t scratch;                   /* bytes of a task; on the stack if they fit */
  int64_t intermediate;              /* offset in it of a unit's array between two stages; 0: the result */
  int64_t operand_size, result_size; /* elements of a unit */
  int64_t stages;
  int64_t stage[]; /* records */
} FFT(head);

/* Buffers: operand, tables, result, and scratch unless it is on the stack. */
static cyx_status FFT(run)(const int64_t *plan, void *const *bufs, int64_t begin, int64_t end) {
  const FFT(head) *const head = (const FFT(head) *)plan;
  const int64_t tasks = head->tasks, units = head->units, stages = head->stages;
  char stack[FFT_STACK_BYTES] __attribute__((aligned(64)));
  char *const memory = head->scratch <= (int64_t)sizeof stack ? stack : (char *)bufs[3] + begin * head->scratch;
  FFT_V *const scratch = (FFT_V *)memory;
  const FFT_ELEMENT *const from = bufs[0];
  const FFT_REAL *const tables = bufs[1];
  FFT_ELEMENT *const to = bufs[2];
  if (!units) {
    const int64_t record = head->stage[0], blocks = FFT(blocks)(plan, record);
    FFT(stages)[plan[record]](plan, record, begin * blocks / tasks, end * blocks / tasks, from, to, scratch, tables);
    return CYX_OK;
  }
  for (int64_t u = begin * units / tasks; u < end * units / tasks; ++u) {
    FFT_ELEMENT *const result = to + u * head->result_size;
    FFT_ELEMENT *const intermediate = head->intermediate ? (FFT_ELEMENT *)(memory + head->intermediate) : result;
    for (int64_t k = 0; k < stages; ++k) {
      const int64_t record = head->stage[k];
      const FFT_ELEMENT *const x = k ? intermediate : from + u * head->operand_size;
      FFT_ELEMENT *const y = k == stages - 1 ? result : intermediate;
      FFT(stages)[plan[record]](plan, record, 0, FFT(blocks)(plan, record), x, y, scratch, tables);
    }
  }
  return CYX_OK;
}

#undef FFT_STACK_BYTES
#undef FFT_PREFIX
#undef FFT_BITS
#undef FFT_REAL
#undef FFT_LANES
#undef FFT_EVEN
#undef FFT_ODD
#undef FFT_ZIP_LOW
#undef FFT_ZIP_HIGH
#undef FFT_REVERSE
