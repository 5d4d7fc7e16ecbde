"""C of every transform, as `fft.emit` plans it: stages in blocks of lines, made of panels, made of passes.

It reads its plan, an array of int64_t: a head and records that name each other by where they begin. Strides and sizes
are in real numbers, of which a complex one is two. Tables lie in one constant and are named by where they begin there.

A text is for one real type; in names, ``FFT`` stands for what the home of the text calls it.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.fft.moves import moves
from cyxla.xla.cpu.fft.passes import panels, passes

VECTOR_BYTES = 64  # of the widest vectors
STACK_BYTES = 128 << 10  # scratch of a task on a thread's stack

_TYPES = """\
#if defined(__AVX512F__)
#define FFT_W (64 / ITEM)
#elif defined(__AVX__) || !defined(__x86_64__)
#define FFT_W (32 / ITEM)
#else
#define FFT_W (16 / ITEM)
#endif
#define FFT_LANES (64 / ITEM) /* of the widest vectors, by which tables are laid out */
#define FFT_ROOM(points) ((2 * (points) * ITEM + 63) / 64 * 64) /* bytes of a line of complex numbers */
#define FFT_SELDOM __asm__ volatile(""); /* vectors of such a loop are not worth making */
typedef REAL FFT_r;
typedef REAL FFT_e __attribute__((aligned(1), may_alias));
typedef REAL FFT_v __attribute__((vector_size(ITEM * FFT_W), may_alias));
typedef REAL FFT_u __attribute__((vector_size(ITEM * FFT_W), aligned(1), may_alias));
"""

_PANELS = """\
/* Passes from a level of a panel on: radix, its roots, parts of each result, table. `rows` holds the part of the panel,
   whose results begin at place `start` and lie `weight` apart; the level before has `before` of these parts. */
static void FFT_level(const int64_t *level, int64_t levels, FFT_pass *a, const FFT_r *tables, FFT_v *rows,
                      int64_t start, int64_t weight, int64_t before) {
  const int64_t radix = level[0];
  void (*const *const forms)(const FFT_pass *) = FFT_passes[radix > 16 ? 0 : radix];
  a->radix = radix;
  a->roots = tables + level[1];
  a->rows = rows;
  if (levels == 1) {
    a->m = before;
    a->start = start;
    a->across = weight / before;
    a->down = weight;
    forms[a->coarse ? 6 : a->to_rows ? 4 : 3](a);
    if (a->coarse) { a->coarse += 2 * before * radix; a->fine += 2 * FFT_LANES * before * radix; }
    return;
  }
  const int64_t m = level[2];
  a->m = m;
  a->w = tables + level[3];
  forms[a->from ? 0 : 1](a);
  a->from = 0;
  a->scale = 1;
  if (levels == 2) {
    FFT_level(level + 4, 1, a, tables, rows, start, weight * radix, radix);
    return;
  }
  for (int64_t j = 0; j < radix; ++j)
    FFT_level(level + 4, levels - 1, a, tables, rows + 2 * j * m, start + j * weight, weight * radix, 1);
}
/* Transform as many lines at once as a vector has lanes. A panel: points, inverse, scale, the number of a function of
   its own or 0, levels, the levels. The table of the first of several levels is scaled. */
static inline __attribute__((always_inline)) void FFT_panel(const int64_t *p, FFT_pass *a, const FFT_r *tables) {
  const int64_t out = a->out, size = (int64_t)(a->to_rows ? sizeof(FFT_v) : sizeof(FFT_e));
  char *const first = a->first;
  double scale;
  __builtin_memcpy(&scale, p + 2, sizeof scale);
  a->scale = (FFT_r)scale;
  a->rest = first;
  a->start = 0;
  if (p[1]) {
    a->rest = first + p[0] * out * size;
    a->out = -out;
  }
  if (p[3]) {
    a->w = tables + p[5 + 3];
    FFT_fixed[p[3]][a->coarse ? 5 : a->to_rows ? 4 : 2](a);
    return;
  }
  if (p[4] > 1) {
    FFT_level(p + 5, p[4], a, tables, a->rows, 0, 1, 1);
    return;
  }
  a->radix = p[5];
  a->roots = tables + p[5 + 1];
  a->m = a->across = a->down = 1;
  FFT_passes[p[5] > 16 ? 0 : p[5]][a->coarse ? 5 : a->to_rows ? 4 : 2](a);
  if (scale == 1) return;
  for (int64_t k = 0; k < p[0]; ++k) {
    FFT_u *const d = (FFT_u *)(first + k * out * size);
    d[0] *= a->scale;
    d[1] *= a->scale;
  }
}
/* From rows into those behind them. */
static void FFT_panel_of_rows(const int64_t *p, FFT_v *rows, const FFT_r *tables) {
  FFT_pass a = {.rows = rows, .first = rows + 2 * p[0], .out = 2, .to_rows = 1};
  FFT_panel(p, &a, tables);
}
/* From columns into rows, behind those that it needs, turned. */
static void FFT_panel_turned(const int64_t *p, const FFT_e *from, int64_t in, FFT_v *rows, const FFT_r *tables,
                             const FFT_r *coarse, const FFT_r *fine) {
  FFT_pass a = {.from = from, .in = in, .rows = rows, .first = rows + 2 * p[0], .out = 2, .to_rows = 1};
  a.coarse = coarse;
  a.fine = fine;
  FFT_panel(p, &a, tables);
}
/* A range of neighbouring columns, `step` points below each other. */
static void FFT_panels(const int64_t *p, int64_t step, int64_t begin, int64_t end, const FFT_e *from, FFT_e *to,
                       FFT_v *scratch, const FFT_r *tables) {
  const int64_t n = p[0];
  for (int64_t l = begin; l < end; l += FFT_W) {
    const int64_t lanes = end - l < FFT_W ? end - l : FFT_W;
    FFT_pass a = {.from = from + 2 * l, .in = 2 * step, .rows = scratch, .first = to + 2 * l, .out = 2 * step};
    if (lanes < FFT_W) {
      FFT_e *const rest = (FFT_e *)(scratch + 2 * n);
      FFT_columns(rest, 2 * FFT_W, from + 2 * l, 2 * step, n, lanes);
      a.from = a.first = rest;
      a.in = a.out = 2 * FFT_W;
    }
    FFT_panel(p, &a, tables);
    if (lanes < FFT_W) FFT_columns(to + 2 * l, 2 * step, (FFT_e *)(scratch + 2 * n), 2 * FFT_W, n, lanes);
  }
}
"""

_LINES = """\
/* A line that is a product of two lengths: 0, the lengths, a panel for each, two tables. The points are a matrix of `a`
   rows. The first step transforms its columns, turns the results and leaves them transposed. */
static void FFT_first(const int64_t *plan, const int64_t *p, int64_t begin, int64_t end, const FFT_e *from, FFT_e *to,
                      FFT_v *scratch, const FFT_r *tables) {
  const int64_t a = p[1], b = p[2];
  for (int64_t l = begin; l < end; l += FFT_W) {
    const int64_t lanes = end - l < FFT_W ? end - l : FFT_W;
    const FFT_r *const coarse = tables + p[5] + l / FFT_LANES * 2 * a, *const fine = tables + p[6] + l % FFT_LANES;
    const FFT_e *x = from + 2 * l;
    int64_t step = 2 * b;
    if (lanes < FFT_W) {
      x = (const FFT_e *)(scratch + 4 * a);
      step = 2 * FFT_W;
      FFT_columns((FFT_e *)(scratch + 4 * a), step, from + 2 * l, 2 * b, a, lanes);
    }
    FFT_panel_turned(plan + p[3], x, step, scratch, tables, coarse, fine);
    FFT_scatter(to + l * 2 * a, 2 * a, scratch + 2 * a, a, lanes);
  }
}
/* The second step transforms the columns of what the first has left, perhaps in place. */
static void FFT_second(const int64_t *plan, const int64_t *p, int64_t begin, int64_t end, const FFT_e *from, FFT_e *to,
                       FFT_v *scratch, const FFT_r *tables) {
  FFT_panels(plan + p[4], p[1], begin, end, from, to, scratch, tables);
}
/* Transform a line from one place into another. A convolution with a chirp: its length plus 1, the points, the line
   that is as long as it, the tables of the chirp and of its transform. */
static void FFT_line(const int64_t *plan, const int64_t *p, const FFT_e *from, FFT_e *to, FFT_v *scratch,
                     const FFT_r *tables) {
  if (p[0] == 0) {
    FFT_first(plan, p, 0, p[2], from, to, scratch, tables);
    FFT_second(plan, p, 0, p[1], to, to, scratch, tables);
    return;
  }
  const int64_t m = p[0] - 1, n = p[1], *const other = plan + p[2];
  FFT_e *const x = (FFT_e *)scratch, *const y = (FFT_e *)((char *)scratch + FFT_ROOM(m));
  FFT_v *const rest = (FFT_v *)((char *)scratch + 2 * FFT_ROOM(m));
  FFT_times(x, from, tables + p[3], n, 1);
  __builtin_memset(x + 2 * n, 0, (unsigned long)(2 * (m - n)) * sizeof *x);
  FFT_line(plan, other, x, y, rest, tables);
  FFT_times(y, y, tables + p[4], m, -1);
  FFT_line(plan, other, y, x, rest, tables);
  for (int64_t k = 0; k < n; ++k) x[2 * k + 1] = -x[2 * k + 1];
  FFT_times(to, x, tables + p[3], n, 1);
}
"""

_STAGES = """\
#define FFT_RANGE int64_t begin, int64_t end, const FFT_e *from, FFT_e *to, FFT_v *scratch, const FFT_r *tables
enum { FFT_COMPLEX, FFT_REAL_OUT, FFT_REAL_IN, FFT_ODD_OUT, FFT_ODD_IN };
/* Rows: stage, lines, points of a line's transform, numbers before, numbers after, kind, panel or line, table of
   halves, points of the wanted transform. Short ones, as many at once as a vector has lanes: */
static void FFT_short_rows(const int64_t *plan, const int64_t *s, FFT_RANGE) {
  const int64_t h = s[2], size_in = s[3], size_out = s[4], n = s[8], bins = n / 2 + 1, *const panel = plan + s[6];
  const int64_t last = end * FFT_W < s[1] ? end * FFT_W : s[1];
  for (int64_t l = begin * FFT_W; l < last; l += FFT_W) {
    const int64_t lanes = last - l < FFT_W ? last - l : FFT_W;
    const FFT_e *const x = from + l * size_in;
    FFT_e *const y = to + l * size_out;
    FFT_v *rows = scratch;
    switch (s[5]) {
      case FFT_COMPLEX:
        FFT_gather(rows, x, size_in, h, lanes);
        FFT_panel_of_rows(panel, rows, tables);
        FFT_scatter(y, size_out, rows + 2 * h, h, lanes);
        break;
      case FFT_REAL_OUT:
        rows += 2;
        FFT_gather(rows, x, size_in, h, lanes);
        FFT_panel_of_rows(panel, rows, tables);
        FFT_half_rows_out(scratch, rows + 2 * h, h, tables + s[7]);
        FFT_scatter(y, size_out, scratch, bins, lanes);
        break;
      case FFT_REAL_IN:
        rows += 2 * bins;
        FFT_gather(scratch, x, size_in, bins, lanes);
        FFT_half_rows_in(rows, scratch, h, tables + s[7]);
        FFT_panel_of_rows(panel, rows, tables);
        FFT_scatter(y, size_out, rows + 2 * h, h, lanes);
        break;
      case FFT_ODD_OUT:
        FFT_gather_real(rows, x, size_in, n, lanes);
        FFT_panel_of_rows(panel, rows, tables);
        FFT_scatter(y, size_out, rows + 2 * n, bins, lanes);
        break;
      default:
        FFT_gather(rows, x, size_in, bins, lanes);
        rows[1] = (FFT_v){0};
        if (n % 2 == 0) rows[n + 1] = (FFT_v){0};
        for (int64_t k = bins; k < n; ++k) {
          rows[2 * k] = rows[2 * (n - k)];
          rows[2 * k + 1] = -rows[2 * (n - k) + 1];
        }
        FFT_panel_of_rows(panel, rows, tables);
        FFT_scatter_real(y, size_out, rows + 2 * n, n, lanes);
    }
  }
}
/* Long ones, one at a time. */
static void FFT_long_rows(const int64_t *plan, const int64_t *s, FFT_RANGE) {
  const int64_t h = s[2], n = s[8], bins = n / 2 + 1, *const line = plan + s[6];
  FFT_e *const a = (FFT_e *)scratch, *const b = (FFT_e *)((char *)scratch + FFT_ROOM(h));
  FFT_v *const rest = (FFT_v *)((char *)scratch + 2 * FFT_ROOM(h));
  for (int64_t l = begin; l < end; ++l) {
    const FFT_e *const x = from + l * s[3];
    FFT_e *const y = to + l * s[4];
    switch (s[5]) {
      case FFT_COMPLEX:
        FFT_line(plan, line, x, y, scratch, tables);
        break;
      case FFT_REAL_OUT:
        FFT_line(plan, line, x, y, scratch, tables);
        FFT_half_line_out(y, y, h, tables + s[7], 0, h / 2 + 1);
        break;
      case FFT_REAL_IN:
        FFT_half_line_in(a, x, h, tables + s[7], 0, h / 2 + 1);
        FFT_line(plan, line, a, y, rest, tables);
        break;
      case FFT_ODD_OUT:
        for (int64_t k = 0; k < n; ++k) { a[2 * k] = x[k]; a[2 * k + 1] = 0; }
        FFT_line(plan, line, a, b, rest, tables);
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
        FFT_line(plan, line, a, b, rest, tables);
        for (int64_t k = 0; k < n; ++k) y[k] = b[2 * k];
    }
  }
}
/* Another dimension: stage, how many times, points of a line, points from one to the next, panel or line. */
static void FFT_short_columns(const int64_t *plan, const int64_t *s, FFT_RANGE) {
  const int64_t n = s[2], step = s[3], across = (step + FFT_W - 1) / FFT_W;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t first = b % across * FFT_W, last = first + FFT_W < step ? first + FFT_W : step;
    const int64_t at = b / across * 2 * n * step;
    FFT_panels(plan + s[4], step, first, last, from + at, to + at, scratch, tables);
  }
}
static void FFT_long_columns(const int64_t *plan, const int64_t *s, FFT_RANGE) {
  const int64_t n = s[2], step = s[3], across = (step + FFT_W - 1) / FFT_W;
  FFT_e *const x = (FFT_e *)scratch, *const y = (FFT_e *)(scratch + 2 * n);
  FFT_v *const rest = (FFT_v *)((char *)y + FFT_ROOM(n));
  for (int64_t b = begin; b < end; ++b) {
    const int64_t first = b % across * FFT_W, last = first + FFT_W < step ? first + FFT_W : step;
    const int64_t at = b / across * 2 * n * step + 2 * first;
    FFT_turn(x, 2 * n, from + at, 2 * step, n, last - first);
    for (int64_t l = 0; l < last - first; ++l) {
      FFT_line(plan, plan + s[4], x + l * 2 * n, y, rest, tables);
      __builtin_memcpy(x + l * 2 * n, y, (unsigned long)(2 * n) * sizeof *x);
    }
    FFT_turn(to + at, 2 * step, x, 2 * n, last - first, n);
  }
}
/* One of the two steps of few long lines: stage, lines, points, columns, line, which step. */
static void FFT_part(const int64_t *plan, const int64_t *s, FFT_RANGE) {
  const int64_t columns = s[3], across = (columns + FFT_W - 1) / FFT_W;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t at = b / across * 2 * s[2], first = b % across * FFT_W;
    const int64_t last = first + FFT_W < columns ? first + FFT_W : columns;
    (s[5] ? FFT_second : FFT_first)(plan, plan + s[4], first, last, from + at, to + at, scratch, tables);
  }
}
/* What comes after half transforms of real lines, or before inverse ones: stage, lines, h, pairs of a block, inverse,
   table. */
static void FFT_halves(const int64_t *plan, const int64_t *s, FFT_RANGE) {
  const int64_t h = s[2], pairs = h / 2 + 1, across = (pairs + s[3] - 1) / s[3], inverse = s[4];
  (void)plan; (void)scratch;
  for (int64_t b = begin; b < end; ++b) {
    const int64_t row = b / across, first = b % across * s[3], last = first + s[3] < pairs ? first + s[3] : pairs;
    const FFT_e *const x = from + row * 2 * (h + inverse);
    FFT_e *const y = to + row * 2 * (h + !inverse);
    (inverse ? FFT_half_line_in : FFT_half_line_out)(y, x, h, tables + s[5], first, last);
  }
}
/* In how many blocks a stage is done. */
static int64_t FFT_blocks(const int64_t *s) {
  switch (s[0]) {
    case 0: return (s[1] + FFT_W - 1) / FFT_W;
    case 1: return s[1];
    case 5: return s[1] * ((s[2] / 2 + s[3]) / s[3]);
    default: return s[1] * ((s[3] + FFT_W - 1) / FFT_W);
  }
}
static void (*const FFT_stages[])(const int64_t *, const int64_t *, FFT_RANGE) = {
  FFT_short_rows, FFT_long_rows, FFT_short_columns, FFT_long_columns, FFT_part, FFT_halves,
};
"""

_KERNEL = """\
/* The plan: tasks, units or 0, bytes of scratch of a task, where in it a unit has an array of its own, numbers of a
   unit before and after, stages, where each begins. A unit goes through all stages; without units, tasks share the
   blocks of the only stage. Buffers: what is read, the tables, what is written, scratch that is not on the stack. */
static cyx_status FFT_run(const int64_t *plan, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = plan[0], units = plan[1], room = plan[2], middle = plan[3], stages = plan[6];
  const int64_t *const at = plan + 7;
  char own[STACK] __attribute__((aligned(64)));
  char *const place = room <= (int64_t)sizeof own ? own : (char *)bufs[3] + begin * room;
  FFT_v *const scratch = (FFT_v *)place;
  const FFT_e *const from = bufs[0];
  const FFT_r *const tables = bufs[1];
  FFT_e *const to = bufs[2];
  if (!units) {
    const int64_t *const s = plan + at[0], blocks = FFT_blocks(s);
    FFT_stages[s[0]](plan, s, begin * blocks / tasks, end * blocks / tasks, from, to, scratch, tables);
    return CYX_OK;
  }
  for (int64_t u = begin * units / tasks; u < end * units / tasks; ++u) {
    FFT_e *const result = to + u * plan[5], *const between = middle ? (FFT_e *)(place + middle) : result;
    for (int64_t k = 0; k < stages; ++k) {
      const int64_t *const s = plan + at[k];
      FFT_stages[s[0]](plan, s, 0, FFT_blocks(s), k ? between : from + u * plan[4], k == stages - 1 ? result : between,
                       scratch, tables);
    }
  }
  return CYX_OK;
}
"""


def fft_text(real: str, item: int, radices: frozenset[int], lengths: frozenset[int], prefix: str) -> str:
    """A C text that defines ``{prefix}_run(plan, bufs, begin, end)``, which does tasks of a planned transform.

    Parameters
    ----------
    real : str
        The C type of a real number.
    item : int
        Its bytes.
    radices : frozenset of int
        Those of the passes that there shall be.
    lengths : frozenset of int
        Those of the panels with functions of their own.
    prefix : str
        Of all names.
    """
    text = "".join(
        [_TYPES, _shuffles(item), moves(), passes(radices), panels(lengths), _PANELS, _LINES, _STAGES, _KERNEL]
    )
    words = {"REAL": real, "ITEM": str(item), "BITS": str(8 * item), "STACK": str(STACK_BYTES)}
    for word, value in words.items():
        text = text.replace(word, value)
    return text.replace("FFT_", f"{prefix}_")


def _shuffles(item: int) -> str:
    c = CWriter()
    for nbytes in (64, 32, 16):
        width = nbytes // item
        half = width // 2
        zipped = [n for k in range(half) for n in (k, width + k)]
        orders = {
            "EVEN": [2 * k for k in range(width)],
            "ODD": [2 * k + 1 for k in range(width)],
            "LOW": zipped,
            "HIGH": [n + half for n in zipped],
            "BACK": list(range(width - 1, -1, -1)),
        }
        c.line(f"#if FFT_W == {width}")
        for name, order in orders.items():
            c.line(f"#define FFT_{name}(a, b) __builtin_shufflevector(a, b, {', '.join(map(str, order))})")
        c.line("#endif")
    return c.text()
