"""Prebuilt dots in f32 and f64 for any sizes.

They are what `dot.tiles`, `dot.inner_products` and `dot.row_combination` write for given ones. The choices of those
(panels, ranges, links, tasks ..) arrive as numbers, so that the sums are the same to the bit. Only results that are
stored as they are come from here.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import micro_kernel
from cyxla.xla.cpu.dot.parameters import ROWS, SUMS, TILES
from cyxla.xla.cpu.prebuilt.library import KERNEL

TYPES = {"f32": "float", "f64": "double"}
FUNCTIONS = {f"{form}_{t}": KERNEL for t in TYPES for form in ("dot_tiles", "dot_rows", "dot_sums")}

#: A kind of tile, in C: what it reads, and where its sums go, to be stored or to be added to what is there. Every so
#: many rows of the right operand it asks for some lines of what comes next, or in every row for what lies `due` behind.
_KIND = """typedef struct {
  int64_t count, adds, stride, step, apart, every, lines, jump, due;
  int64_t left, result, next; /* from a tile to the one below it: operand, sums, what is fetched ahead */
} cyx_dot_kind;"""
#: Opaque, or gcc would work out the places of all rows in front of the loop and keep them in memory.
_NEXT_ROW = 'to += apart; __asm__("" : "+r"(to));'

#: Left operands with neighbours in a row, or in a column; in a row, with what comes next fetched at times, or always.
_FORMS = ("rows", "columns", "fetching", "streams")

_HELPERS = """\
/* Sums of which not all are wanted go to their place. */
static __attribute__((noinline)) void {t}_move({t}_e *restrict to, int64_t apart, const {element} *from, int64_t width,
                                              int64_t rows, int64_t columns, int64_t adds) {{
  for (int64_t r = 0; r < rows; ++r, to += apart, from += width) {{
    if (adds)
      for (int64_t n = 0; n < columns; ++n) to[n] += from[n];
    else
      for (int64_t n = 0; n < columns; ++n) to[n] = from[n];
  }}
}}
/* A panel of the right operand, columns side by side, zeros after the last. */
static __attribute__((noinline)) void {t}_pack(const {t}_dot *s, const {t}_e *restrict b, {element} *restrict to,
                                              int64_t count, int64_t columns) {{
  const int64_t width = s->width;
  if (columns < width)
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = columns; n < width; ++n) to[k * width + n] = 0;
  if (s->bn == 1) {{
    const int64_t whole = columns / {lanes} * {lanes};
    for (int64_t k = 0; k < count; ++k, b += s->bk, to += width) {{
      for (int64_t n = 0; n < whole; n += {lanes}) {{
        __builtin_prefetch((const char *)(b + 16 * s->bk + n));
        *({t}_v *)(to + n) = *(const {t}_u *)(b + n);
      }}
      for (int64_t n = whole; n < columns; ++n) to[n] = b[n];
    }}
  }} else if (s->bk == 1) {{
    cyx_tile_{size}(to, width, b, s->bn, count, columns);
  }} else {{
    for (int64_t k = 0; k < count; ++k)
      for (int64_t n = 0; n < columns; ++n) to[k * width + n] = b[k * s->bk + n * s->bn];
  }}
}}
"""

#: The functions of dot products, by the number of their way; the last is for those that are left.
_WAYS = (*micro_kernel.WAYS, (1, False))
_DOTS = """\
      if (s->way == {way})
        for (; n + {columns} <= width; n += {columns})
          {t}_dots{way}(left + m * s->am, right + n * s->bn, to + m * s->n + n, s->k, s->bn);"""
_MAIN = """\
typedef void (*{t}_tile)(const cyx_dot_kind *, const {t}_e *, const {t}_e *, {t}_e *, const char *,
                         int64_t);
static const {t}_tile {t}_tiles[{forms}][{columns}][{rows}] = {{
{table}
}};
/* All tiles of a panel from one to another, the higher ones first; of the last panel some columns may not be wanted. */
static void {t}_panel(const {t}_dot *s, cyx_dot_kind *kind, int64_t last, const {t}_e *left, const {t}_e *right,
                      {t}_e *result, int64_t from, int64_t to, const char *ahead) {{
  const int64_t form = s->streams ? 3 : s->ak != 1 ? 1 : ahead ? 2 : 0, adds = kind->adds, width = s->width;
  const {t}_tile *const of = {t}_tiles[form][(last ? s->last_vectors : s->vectors) - 1];
  const {t}_tile high = of[s->height], low = of[s->height - 1 + !s->height];
  const int64_t cut = last && s->last % {lanes};
  {element} spare[{most}] __attribute__((aligned(64)));
  kind->step = (last ? s->packs_last : s->packs) ? width : s->bk;
  kind->due = s->span > 1 ? width : 16 * kind->step;
  kind->apart = cut ? width : s->n;
  kind->next = s->ahead_tile * (s->ahead == 1 ? 1 : kind->count);
  kind->adds = adds && !cut;
  for (int64_t t = from; t < to;) {{
    const int64_t higher = t < s->higher, row = t * s->height + (higher ? t : s->higher), height = s->height + higher;
    const int64_t tiles = cut ? 1 : (higher && s->higher < to ? s->higher : to) - t;
    {t}_e *const place = result + row * s->n;
    kind->left = height * s->am;
    kind->result = height * s->n;
    (higher ? high : low)(kind, left + row * s->am, right, cut ? spare : place, ahead, tiles);
    if (cut) {t}_move(place, s->n, spare, width, height, s->last, adds);
    if (ahead) ahead += tiles * kind->next;
    t += tiles;
  }}
  kind->adds = adds;
}}
/* Some panels side by side, for a range of tiles: a strip of tiles goes past all of them before the next. */
static void {t}_unit(const {t}_dot *s, cyx_dot_kind *kind, void *const *bufs, {element} *store, int64_t u) {{
  const int64_t early = s->units - s->end * s->finer, before = u < early ? 0 : early;
  const int64_t ranges = before ? s->finer : s->ranges, range = (u - before) % ranges;
  const int64_t group = before / s->ranges + (u - before) / ranges;
  const int64_t groups = (s->panels + s->together - 1) / s->together;
  const int64_t first = group % groups * s->together, batch = group / groups;
  const int64_t stop = first + s->together < s->panels ? first + s->together : s->panels;
  const int64_t from = range * s->tiles / ranges, to = (range + 1) * s->tiles / ranges;
  const {t}_e *const left = (const {t}_e *)bufs[s->left] + batch * s->ab;
  const {t}_e *const right = (const {t}_e *)bufs[s->right] + batch * s->bb + first * s->panel_step;
  {t}_e *const result = ({t}_e *)bufs[s->out] + batch * s->m * s->n + first * s->width;
  int64_t k = 0;
  do {{
    const int64_t count = s->k - k < s->link ? s->k - k : s->link;
    const {t}_e *b = right + k * s->bk;
    const char *ahead = s->ahead ? (const char *)(s->ahead == 3 ? b + count * s->width : right + s->ahead_start) : 0;
    int64_t step = s->panel_step;
    if (stop == s->panels ? s->packs_last : s->packs) {{
      const int64_t room = s->link * s->width;
      for (int64_t p = 0; p < stop - first; ++p)
        {t}_pack(s, b + p * step, store + p * room, count, first + p == s->panels - 1 ? s->last : s->width);
      b = store, step = room;
    }}
    kind->count = count;
    kind->adds = k > 0;
    for (int64_t t = from; t < to; t += s->strip)
      for (int64_t p = 0; p < stop - first; ++p)
        {t}_panel(s, kind, first + p == s->panels - 1, left + k * s->ak, b + p * step, result + p * s->width, t,
                  t + s->strip < to ? t + s->strip : to, ahead);
    k += s->link;
  }} while (k < s->k);
}}
/* A group of panels: a link of all of them before the next link. */
static void {t}_streamed(const {t}_dot *s, cyx_dot_kind *kind, void *const *bufs, {element} *store, int64_t u) {{
  const int64_t start = u % s->groups * s->span, batch = u / s->groups;
  const int64_t stop = start + s->span < s->panels ? start + s->span : s->panels;
  const {t}_e *const left = (const {t}_e *)bufs[s->left] + batch * s->ab;
  const {t}_e *const right = (const {t}_e *)bufs[s->right] + batch * s->bb;
  {t}_e *const result = ({t}_e *)bufs[s->out] + batch * s->m * s->n;
  for (int64_t k = 0; k < s->k; k += s->link) {{
    kind->count = s->k - k < s->link ? s->k - k : s->link;
    kind->adds = k > 0;
    for (int64_t panel = start; panel < stop; ++panel) {{
      const int64_t last = panel == s->panels - 1;
      const {t}_e *b = right + k * s->bk + panel * s->width;
      if (last && s->packs_last) {{
        {t}_pack(s, b, store, kind->count, s->last);
        b = store;
      }}
      {t}_panel(s, kind, last, left + k * s->ak, b, result + panel * s->width, 0, s->tiles, 0);
    }}
  }}
}}
cyx_status CYX_PREBUILT(dot_tiles_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  const {t}_dot *const s = (const {t}_dot *)CYX_NUMBERS(bufs);
  cyx_dot_kind kind = {{.stride = s->ak == 1 ? s->am : s->ak, .every = 0x7fffffffffffffff}};
  if (s->ahead) kind.every = s->ahead_every, kind.lines = s->ahead_lines, kind.jump = s->ahead_jump;
  {element} *store = 0;
  const unsigned long copied = sizeof *store * (unsigned long)((s->link ? s->link : 1) * s->width * s->together);
  if (s->packs || s->packs_last) store = __builtin_alloca_with_align(copied, 512);
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u)
    (s->streams ? {t}_streamed : {t}_unit)(s, &kind, bufs, store, u);
  return CYX_OK;
}}
cyx_status CYX_PREBUILT(dot_rows_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  const {t}_rows *const s = (const {t}_rows *)CYX_NUMBERS(bufs);
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u) {{
    const int64_t batch = u / s->blocks, from = u % s->blocks * s->width;
    const int64_t width = from + s->width <= s->n ? s->width : s->n - from;
    const {t}_e *const left = (const {t}_e *)bufs[s->left] + batch * s->ab;
    const {t}_e *const right = (const {t}_e *)bufs[s->right] + batch * s->bb + from * s->bn;
    {t}_e *const to = ({t}_e *)bufs[s->out] + batch * s->m * s->n + from;
    for (int64_t m = 0; m < s->m; ++m) {{
      int64_t n = 0;
{dots}
      for (; n < width; ++n) {t}_dots{one}(left + m * s->am, right + n * s->bn, to + m * s->n + n, s->k, s->bn);
    }}
  }}
  return CYX_OK;
}}
cyx_status CYX_PREBUILT(dot_sums_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  const {t}_summed *const s = (const {t}_summed *)CYX_NUMBERS(bufs);
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u) {{
    const int64_t batch = u / s->blocks, from = u % s->blocks * s->width;
    const {t}_e *const left = (const {t}_e *)bufs[s->left] + batch * s->ab;
    const {t}_e *const right = (const {t}_e *)bufs[s->right] + batch * s->bb + from;
    {t}_e *const to = ({t}_e *)bufs[s->out] + batch * s->n + from;
    const int64_t width = from + s->width <= s->n ? s->width : s->n - from;
    (s->near ? {t}_sums_near : {t}_sums_far)(left, s->ak, right, s->bk, to, s->k, width);
  }}
  return CYX_OK;
}}
"""


def text(level: Level) -> str:
    """All functions, for a processor level."""
    c = CWriter()
    c.lines(_KIND.splitlines())
    for name, element in TYPES.items():
        _one_type(c, name, element, level)
    return c.text()


def _one_type(c: CWriter, name: str, element: str, level: Level) -> None:
    size = 4 if element == "float" else 8
    lanes = level.vector_bytes // size
    c.lines(micro_kernel.types(name, element, level.vector_bytes))
    c.lines(micro_kernel.types(f"{name}_w", element, 64))
    c.line(f"typedef struct {{ int64_t {', '.join(TILES)}; }} {name}_dot;")
    c.line(f"typedef struct {{ int64_t {', '.join(ROWS)}; }} {name}_rows;")
    c.line(f"typedef struct {{ int64_t {', '.join(SUMS)}; }} {name}_summed;")
    c.lines(_HELPERS.format(t=name, element=element, lanes=lanes, size=size).splitlines())
    rows = micro_kernel.ROWS[level.registers]
    heights = {v: rows.get(v, 1) for v in range(1, micro_kernel.ROW_OF_VECTORS + 1)}
    for form in _FORMS:
        for vectors, most in heights.items():
            for height in range(1, most + 1):
                _tile(c, name, element, form, height, vectors, lanes, size)
    for way, (columns, fetches) in enumerate(_WAYS):
        head = f"static CYX_FUSED __attribute__((noinline)) void {name}_dots{way}(const {name}_e *restrict a, "
        head += f"const {name}_e *restrict b, {name}_e *restrict to, int64_t count, int64_t apart)"
        micro_kernel.dots(c, head, f"{name}_w", element, columns, fetches, "count", "apart")
    for place in ("near", "far"):
        head = micro_kernel.sum_head(f"{name}_sums_{place}", name)
        micro_kernel.sum_of_rows(c, head, name, element, level.vector_bytes, place == "near")
    table = ",\n".join("  {" + ", ".join(_row_of_table(name, form, heights)) + "}" for form in _FORMS)
    sizes = {"forms": len(_FORMS), "columns": len(heights), "rows": max(heights.values()) + 1, "lanes": lanes}
    sizes["one"] = len(_WAYS) - 1
    most = max(v * h for v, h in heights.items()) * lanes
    dots = "\n".join(_DOTS.format(t=name, way=w, columns=n) for w, (n, _) in enumerate(micro_kernel.WAYS))
    c.lines(_MAIN.format(t=name, element=element, table=table, most=most, dots=dots, **sizes).splitlines())


def _row_of_table(name: str, form: str, heights: dict[int, int]) -> list[str]:
    return ["{" + ", ".join(f"{name}_{form}_{h}x{v}" for h in range(1, most + 1)) + "}" for v, most in heights.items()]


def _tile(c: CWriter, name: str, element: str, form: str, height: int, vectors: int, lanes: int, size: int) -> None:
    """One tile of a link of the contracted dimension."""
    arguments = f"const cyx_dot_kind *s, const {name}_e *restrict a, const {name}_e *restrict b, {name}_e *restrict o, "
    arguments += "const char *ahead, int64_t tiles"
    in_column = form == "columns"
    bases = [0] if in_column else list(range(0, height, 3))
    with c.block(f"static CYX_FUSED __attribute__((noinline)) void {name}_{form}_{height}x{vectors}({arguments})"):
        c.line("CYX_FUSE")
        c.line("const int64_t stride = s->stride, step = s->step, apart = s->apart;")
        with c.block("for (; tiles; --tiles, a += s->left, o += s->result)"):
            c.line(micro_kernel.sums(name, height, vectors))
            c.line(f"int64_t count = s->count; const {name}_e *w = b;")
            c.line(f"const {name}_e " + ", ".join(f"*p{r} = a + {r} * stride" for r in bases) + ";")
            if form != "fetching":
                with c.block("for (; count; --count)"):
                    for line in range(-(-vectors * lanes * size // 64) if form == "streams" else 0):
                        c.line(f"__builtin_prefetch((const char *)(w + s->due) + {line * 64});")
                    _products(c, name, element, form, height, vectors, lanes, bases)
            else:
                c.line("const char *at = ahead;")
                with c.block("do"):
                    c.line("int64_t run = count < s->every ? count : s->every;")
                    c.line("count -= run;")
                    c.line("for (int64_t l = 0; l < s->lines; ++l) __builtin_prefetch(at + 64 * l, 0, 2);")
                    c.line("at += s->jump;")
                    with c.block("for (; run; --run)"):
                        _products(c, name, element, form, height, vectors, lanes, bases)
                c.line("while (count);")
                c.line("ahead += s->next;")
            c.line(f"{name}_e *to = o;")
            for adds in ("+", ""):
                with c.block("if (s->adds)" if adds else "else"):
                    for r in range(height):
                        c.line(" ".join(f"*({name}_u *)(to + {v * lanes}) {adds}= c{r}_{v};" for v in range(vectors)))
                        c.line(_NEXT_ROW)


def _products(
    c: CWriter, name: str, element: str, form: str, height: int, vectors: int, lanes: int, bases: list[int]
) -> None:
    def left(r: int) -> str:
        return f"p0[{r}]" if form == "columns" else f"p{r // 3 * 3}[{r % 3} * stride]"

    right = [f"w + {v * lanes}" for v in range(vectors)]
    with c.block(""):
        micro_kernel.multiply(c, name, element, left, right, range(height))
    moved = "p0 += stride" if form == "columns" else ", ".join(f"++p{r}" for r in bases)
    c.line(f"w += step, {moved};")
