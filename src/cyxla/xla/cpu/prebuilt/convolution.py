"""Prebuilt convolutions in f32 and f64 in tiles, for any sizes; `convolution.tiles` is for known ones.

The choices made there (chunks, panels, blocks ..) arrive as numbers, so that the sums are the same to the bit. They are
stored as they are, or taken by functions of the program. Inputs that are spread out are not for these.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.convolution.tile_parameters import DEPTH, PANELS, PLACES, RANKS, TILES
from cyxla.xla.cpu.dot import micro_kernel
from cyxla.xla.cpu.prebuilt.dot import TYPES
from cyxla.xla.cpu.prebuilt.library import KERNEL

#: A kernel whose results are taken by functions: see `loops.epilogue.Epilogue.function`.
FOLLOWED = (KERNEL[0], KERNEL[1] + ", const void *const *after")
FUNCTIONS = {f"convolution_tiles{form}_{t}": kind for t in TYPES for form, kind in (("", KERNEL), ("_after", FOLLOWED))}
#: One tile: how much of the sum, where the weights' rows and the table's lie, how far the rows of sums are apart.
_KIND = """typedef struct {
  int64_t taps, from, depth, add, step, chunk, width;
} cyx_convolution_kind;"""

_START = """\
/* Where the window of each place of a chunk starts; places after the last one are at no image. */
static __attribute__((noinline)) void {t}_start{rank}(const {t}_convolution *s, const {t}_e *x, int64_t first,
                                                     int64_t g, const {t}_e **image, int32_t *const *e) {{
  int64_t n = first;
{unravel}
  for (int64_t k = 0; k < s->chunk; ++k) {{
    int64_t at = n * s->image_step + g * s->group_step;
{places}
    image[k] = first + k < s->places ? x + at : 0;
{advance}
  }}
}}
/* The table for some taps of the window. */
static __attribute__((noinline)) void {t}_table{rank}(const {t}_convolution *s, const {t}_e *const *image,
                                                     int32_t *const *e, int64_t from, int64_t taps, const {t}_e **at) {{
{sizes}
  const int64_t chunk = s->chunk;
  for (int64_t t = from; t < from + taps; ++t, at += chunk) {{
    int64_t w = t, to = 0;
{offsets}
    for (int64_t k = 0; k < chunk; ++k)
      at[k] = ((image[k] != 0){tests}) ? image[k] + to : (const {t}_e *){t}_zeros;
  }}
}}
"""

_MAIN = """\
typedef void (*{t}_tile)(const cyx_convolution_kind *, const {t}_e *const *, const {t}_e *, {element} *);
static const {t}_tile {t}_tiles[{columns}][{rows}] = {{
{table}
}};
/* NaNs of some places anew, from what lies inside the input. */
static CYX_FUSED __attribute__((noinline, cold)) void {t}_again(
    const {t}_convolution *s, const {t}_e *const *image, int32_t *const *e, int64_t first, int64_t rows,
    int64_t columns, const {t}_e *w, {t}_e *sums) {{
  CYX_FUSE
  const int64_t step = s->features, depth = s->depth, width = s->width;
  const {t}_e **const at = __builtin_alloca(sizeof *at * (unsigned long)s->chunk);
  {element} *const total = __builtin_alloca(sizeof *total * (unsigned long)(rows * width));
  for (int64_t n = 0; n < rows * width; ++n) total[n] = 0;
  for (int64_t t = 0; t < s->taps; ++t, w += depth * step) {{
    (s->rank == 1 ? {t}_table1 : s->rank == 2 ? {t}_table2 : {t}_table3)(s, image, e, t, 1, at);
    for (int64_t r = 0; r < rows; ++r) {{
      const {t}_e *const a = at[first + r];
      if (a == (const {t}_e *){t}_zeros) continue;
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t f = 0; f < columns; ++f) total[r * width + f] += a[k] * w[k * step + f];
    }}
  }}
  for (int64_t r = 0; r < rows; ++r, sums += width)
    for (int64_t f = 0; f < columns; ++f) if (sums[f] != sums[f]) sums[f] = total[r * width + f];
}}
/* Look for NaNs at the places, among some, where the window leaves the input: zeros times a weight may be NaN, but
   what lies outside adds nothing. */
static __attribute__((noinline)) void {t}_mend(
    const {t}_convolution *s, const {t}_e *const *image, int32_t *const *e, int64_t first, int64_t rows,
    int64_t columns, const {t}_e *w, {t}_e *sums) {{
  int nans = 0;
  for (int64_t r = 0; r < rows; ++r) {{
    int inside = 1;
    for (int64_t d = 0; d < s->rank; ++d) {{
      const int64_t from = e[d][first + r], to = from + ((&s->size0)[d] - 1) * (&s->dilation0)[d];
      inside &= (from >= 0) & (to < (&s->reach0)[d]);
    }}
    if (inside) continue;
    const {t}_e *const row = sums + r * s->width;
    for (int64_t f = 0; f < columns; ++f) nans |= row[f] != row[f];
  }}
  if (nans) {t}_again(s, image, e, first, rows, columns, w, sums);
}}
typedef void (*{t}_after)(void *const *, int64_t, int64_t, int64_t, const {element} *, int64_t);
/* Sums go to their places. */
static void {t}_finish({t}_e *restrict to, int64_t apart, const {element} *from, int64_t width, int64_t rows,
                       int64_t columns) {{
  for (int64_t r = 0; r < rows; ++r, to += apart, from += width) {{
    int64_t n = 0;
    for (; n + {lanes} <= columns; n += {lanes}) *({t}_u *)(to + n) = *(const {t}_u *)(from + n);
    for (; n < columns; ++n) to[n] = from[n];
  }}
}}
static void {t}_unit(const {t}_convolution *s, void *const *bufs, const {t}_e **image, const {t}_e **at,
                     int32_t *const *e, {element} *sums, int64_t u, const void *const *after) {{
  const int64_t first = u % s->chunks * s->chunk, g = u / (s->chunks * s->per_group), left = s->places - first;
  const int64_t places = left < s->chunk ? left : s->chunk;
  int64_t j = u / s->chunks % s->per_group, panel = 0;
  while (panel < {panels} - 1 && j >= (&s->count0)[panel]) j -= (&s->count0)[panel++];
  const int64_t f = g * s->group_features + (&s->first0)[panel] + j * s->width;
  const int64_t vectors = (&s->vectors0)[panel], skip = (&s->skip0)[panel], columns = vectors * {lanes} - skip;
  const {t}_e *const w = (const {t}_e *)bufs[s->w] + f;
  {t}_e *const out = ({t}_e *)bufs[s->out] + first * s->features + f + skip;
  const {t}_tile tile = {t}_tiles[vectors - 1][s->rows - 1];
  const {t}_after behind = after ? ({t}_after)after[panel] : 0;
  (s->rank == 1 ? {t}_start1 : s->rank == 2 ? {t}_start2 : {t}_start3)(s, bufs[s->x], first, g, image, e);
  cyx_convolution_kind kind = {{.step = s->features, .chunk = s->chunk, .width = s->width}};
  for (int64_t t = 0; t < s->taps; t += s->block_taps) {{
    kind.taps = s->taps - t < s->block_taps ? s->taps - t : s->block_taps;
    (s->rank == 1 ? {t}_table1 : s->rank == 2 ? {t}_table2 : {t}_table3)(s, image, e, t, kind.taps, at);
    for (kind.from = 0; kind.from < s->depth; kind.from += s->block_depth) {{
      const {t}_e *const block = w + (t * s->depth + kind.from) * s->features;
      kind.depth = s->depth - kind.from < s->block_depth ? s->depth - kind.from : s->block_depth;
      kind.add = t + kind.from > 0;
      if (s->blocks > 1) {{
        for (int64_t r = 0; r < places; r += s->rows) tile(&kind, at + r, block, sums + r * s->width);
        continue;
      }}
      for (int64_t r = 0; r < places; r += s->rows) {{
        tile(&kind, at + r, block, sums);
        const int64_t rows = places - r < s->rows ? places - r : s->rows;
        {t}_mend(s, image, e, r, rows, vectors * {lanes}, w, sums);
        if (behind) behind(bufs, first + r, f + skip, rows, sums + skip, s->width);
        else {t}_finish(out + r * s->features, s->features, sums + skip, s->width, rows, columns);
      }}
    }}
  }}
  if (s->blocks > 1) {{
    {t}_mend(s, image, e, 0, places, vectors * {lanes}, w, sums);
    if (behind) behind(bufs, first, f + skip, places, sums + skip, s->width);
    else {t}_finish(out, s->features, sums + skip, s->width, places, columns);
  }}
}}
cyx_status CYX_PREBUILT(convolution_tiles_after_{t})(void *const *bufs, int64_t begin, int64_t end,
                                                     const void *const *after) {{
  const {t}_convolution *const s = (const {t}_convolution *)CYX_NUMBERS(bufs);
  const unsigned long chunk = (unsigned long)s->chunk;
  const {t}_e **const image = __builtin_alloca(sizeof *image * chunk);
  const {t}_e **const at = __builtin_alloca(sizeof *at * chunk * (unsigned long)s->block_taps);
  int32_t *const e0 = __builtin_alloca(3 * sizeof *e0 * chunk), *const e[] = {{e0, e0 + chunk, e0 + 2 * chunk}};
  const unsigned long kept = (unsigned long)((s->blocks > 1 ? s->chunk : s->rows) * s->width);
  {element} *const sums = __builtin_alloca_with_align(sizeof *sums * kept, 512);
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u)
    {t}_unit(s, bufs, image, at, e, sums, u, after);
  return CYX_OK;
}}
cyx_status CYX_PREBUILT(convolution_tiles_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  return CYX_PREBUILT(convolution_tiles_after_{t})(bufs, begin, end, 0);
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
    lanes = level.vector_bytes // {"float": 4, "double": 8}[element]
    c.lines(micro_kernel.types(name, element, level.vector_bytes))
    c.line(f"typedef struct {{ int64_t {', '.join(TILES)}; }} {name}_convolution;")
    c.line(f"static {element} {name}_zeros[{DEPTH}];")
    for rank in RANKS:
        c.lines(_places(name, rank).splitlines())
    places = PLACES[level.registers]
    for vectors, most in places.items():
        for rows in range(1, most + 1):
            _tile(c, name, rows, vectors, lanes, level.registers)
    table = ",\n".join(
        "  {" + ", ".join(f"{name}_tile{r}x{v}" for r in range(1, most + 1)) + "}" for v, most in places.items()
    )
    sizes = {"columns": len(places), "rows": max(places.values()), "lanes": lanes, "panels": PANELS}
    c.lines(_MAIN.format(t=name, element=element, table=table, **sizes).splitlines())


def _places(name: str, rank: int) -> str:
    """The functions that find the places of the input, for so many dimensions: counters with carry, no divisions."""
    dims = range(rank)
    inner = list(reversed(dims))
    return _START.format(
        t=name,
        rank=rank,
        unravel="\n".join(f"  int64_t s{d} = n % s->space{d}; n /= s->space{d};" for d in inner),
        places="\n".join(
            f"    e[{d}][k] = (int32_t)(s{d} * s->stride{d} - s->low{d}); at += e[{d}][k] * s->step{d};" for d in dims
        ),
        advance="    " + " ".join(f"if (++s{d} == s->space{d}) {{ s{d} = 0;" for d in inner) + " ++n; " + "} " * rank,
        sizes="\n".join(
            f"  const int32_t *const e{d} = e[{d}]; const uint32_t reach{d} = (uint32_t)s->reach{d};" for d in dims
        ),
        offsets="\n".join(
            f"    const int64_t w{d} = w % s->size{d}, v{d} = s->turned{d} ? s->size{d} - 1 - w{d} : w{d}; "
            f"w /= s->size{d};\n"
            f"    const int32_t o{d} = (int32_t)(v{d} * s->dilation{d}); to += o{d} * s->step{d};"
            for d in inner
        ),
        tests="".join(f" & ((uint32_t)(e{d}[k] + o{d}) < reach{d})" for d in dims),
    )


def _tile(c: CWriter, name: str, rows: int, vectors: int, lanes: int, registers: int) -> None:
    """Some taps of a tile; ``at`` are the places' inputs, ``w`` the weights, ``to`` the sums."""
    element = TYPES[name]
    arguments = f"const cyx_convolution_kind *s, const {name}_e *const *at, const {name}_e *w, {element} *restrict to"
    with c.block(f"static CYX_FUSED __attribute__((noinline)) void {name}_tile{rows}x{vectors}({arguments})"):
        c.line("CYX_FUSE")
        c.line("const int64_t step = s->step, depth = s->depth, width = s->width;")
        c.line(micro_kernel.sums(name, rows, vectors))
        with c.block("for (int64_t taps = s->taps; taps; --taps, at += s->chunk)"):
            c.line(f"const {name}_e " + ", ".join(f"*a{r} = at[{r}] + s->from" for r in range(rows)) + ";")
            with c.block("for (int64_t k = 0; k < depth; ++k, w += step)"):
                micro_kernel.multiply_in_parts(c, name, rows, vectors, lambda v: f"w + {v * lanes}", registers)
        for adds in ("+", ""):
            with c.block("if (s->add)" if adds else "else"):
                for r in range(rows):
                    for v in range(vectors):
                        c.line(f"*({name}_u *)(to + {r} * width + {v * lanes}) {adds}= c{r}_{v};")
