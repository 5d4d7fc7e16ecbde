"""Prebuilt convolutions in f32 and f64 in rows, for any sizes; `convolution.rows` is for known ones.

The choices made there arrive as numbers, so that the sums are the same to the bit. They are stored as they are, or
taken by functions of the program. Only rows of whole vectors come from here, from inputs that are not spread out, where
the sums are not long.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.convolution.row_parameters import BLOCKS, PLACES, RANK, ROWS
from cyxla.xla.cpu.dot import micro_kernel
from cyxla.xla.cpu.prebuilt.convolution import FOLLOWED
from cyxla.xla.cpu.prebuilt.dot import TYPES
from cyxla.xla.cpu.prebuilt.library import KERNEL

FUNCTIONS = {f"convolution_rows{form}_{t}": kind for t in TYPES for form, kind in (("", KERNEL), ("_after", FOLLOWED))}

_MAIN = """\
typedef void (*{t}_place)(const {t}_rows *, const {t}_e *, const {t}_e *, {t}_e *, int64_t, const int64_t *);
typedef void (*{t}_after)(void *const *, int64_t, int64_t, int64_t, const {element} *, int64_t);
static const {t}_place {t}_tiles[{vectors}][{places}] = {{
{table}
}};
static const {t}_place {t}_pairs[] = {{{pairs}}};
static void {t}_unit(const {t}_rows *s, void *const *bufs, int64_t u, const void *const *after) {{
  int64_t row = u % s->rows, j = u / s->rows, kind = 0;
  const int64_t g = j / s->per_group, first_row = row * s->space2;
  j %= s->per_group;
  while (kind < {blocks} - 1 && j >= (&s->pieces0)[kind]) j -= (&s->pieces0)[kind++];
  const int64_t vectors = (&s->vectors0)[kind], together = (&s->together0)[kind];
  const int64_t f = (&s->first0)[kind] + j * vectors * {lanes}, s1 = row % s->space1;
  row /= s->space1;
  const int64_t s0 = row % s->space0, n = row / s->space0;
  const {t}_place one = s->pairs ? {t}_pairs[vectors - 1] : {t}_tiles[vectors - 1][0];
  const {t}_place some = {t}_tiles[vectors - 1][together - 1];
  const int64_t feature = g * s->group_features + f;
  const int64_t from0 = s0 * s->stride0 - s->low0, from1 = s1 * s->stride1 - s->low1;
  const int64_t in_image = from0 * s->input0 + from1 * s->input1 - s->low2 * s->input2;
  const int64_t image = n * s->image_step + g * s->group_step + f * s->pairs;
  const {t}_e *x = (const {t}_e *)bufs[s->x] + image + in_image;
  const {t}_e *const w = (const {t}_e *)bufs[s->w] + s->weights_start + feature;
  {t}_e *const out = ({t}_e *)bufs[s->out] + first_row * s->features + feature;
  int64_t at[3] = {{from0, from1, -s->low2}}, p = 0;
  const {t}_after behind = after ? ({t}_after)after[kind] : 0;
  const int64_t columns = vectors * {lanes}, apart = behind ? columns : s->features;
  {element} sums[{most}] __attribute__((aligned(64)));
  while (p < s->space2) {{
    const int64_t inside = together > 1 && p >= s->from && p + together <= s->to, count = inside ? together : 1;
    (inside ? some : one)(s, x, w, behind ? ({t}_e *)sums : out + p * s->features, apart, at);
    if (behind) behind(bufs, first_row + p, feature, count, sums, columns);
    p += count;
    at[2] += count * s->stride2;
    x += count * s->apart;
  }}
}}
cyx_status CYX_PREBUILT(convolution_rows_after_{t})(void *const *bufs, int64_t begin, int64_t end,
                                                    const void *const *after) {{
  const {t}_rows *const s = (const {t}_rows *)CYX_NUMBERS(bufs);
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u) {t}_unit(s, bufs, u, after);
  return CYX_OK;
}}
cyx_status CYX_PREBUILT(convolution_rows_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  return CYX_PREBUILT(convolution_rows_after_{t})(bufs, begin, end, 0);
}}
"""


def text(level: Level) -> str:
    """All functions, for a processor level."""
    c = CWriter()
    for name, element in TYPES.items():
        _one_type(c, name, element, level)
    return c.text()


def _one_type(c: CWriter, name: str, element: str, level: Level) -> None:
    lanes = level.vector_bytes // {"float": 4, "double": 8}[element]
    c.lines(micro_kernel.types(name, element, level.vector_bytes))
    c.line(f"typedef struct {{ int64_t {', '.join(ROWS)}; }} {name}_rows;")
    places = PLACES[level.registers]
    for vectors, most in places.items():
        for together in range(1, most + 1):
            _place(c, name, f"{name}_{together}x{vectors}", together, vectors, lanes)
        _place(c, name, f"{name}_pairs{vectors}", 1, vectors, lanes, pairs=True)
    table = ",\n".join(
        "  {" + ", ".join(f"{name}_{r}x{v}" for r in range(1, most + 1)) + "}" for v, most in places.items()
    )
    pairs = ", ".join(f"{name}_pairs{v}" for v in places)
    sizes = {"vectors": len(places), "places": max(places.values()), "lanes": lanes, "blocks": BLOCKS}
    most = max(v * n for v, n in places.items()) * lanes
    c.lines(_MAIN.format(t=name, element=element, table=table, pairs=pairs, most=most, **sizes).splitlines())


def _place(
    c: CWriter, name: str, function: str, together: int, vectors: int, lanes: int, *, pairs: bool = False
) -> None:
    """Some places side by side, for one block of features; ``start`` is where the window of the first one begins."""
    arguments = f"const {name}_rows *s, const {name}_e *a, const {name}_e *b, {name}_e *restrict to, "
    arguments += "int64_t to_next, const int64_t *start"
    with c.block(f"static CYX_FUSED __attribute__((noinline)) void {function}({arguments})"):
        c.line("CYX_FUSE")
        c.line(micro_kernel.sums(name, together, vectors))
        c.line("const int64_t depth = s->depth, features = s->features, apart = s->apart;")
        c.line(f"const {name}_e *x0 = a, *w0 = b;")
        for d in range(RANK):
            if d:
                c.line(f"const {name}_e *x{d} = x{d - 1}, *w{d} = w{d - 1};")
            step = f"--n{d}, i{d} += s->dilation{d}, x{d} += s->step{d}, w{d} += s->weights{d}"
            c.line(f"for (int64_t n{d} = s->size{d}, i{d} = start[{d}]; n{d}; {step}) {{")
            c.open()
            if together == 1 or d < RANK - 1:  # a tile is inside along the last dimension
                c.line(f"if ((uint64_t)i{d} >= (uint64_t)s->reach{d}) continue;")
        c.line(f"const {name}_e *x = x{RANK - 1}, *w = w{RANK - 1};")
        if pairs:
            for v in range(vectors):
                c.line(f"c0_{v} += *(const {name}_u *)(x + {v * lanes}) * *(const {name}_u *)(w + {v * lanes});")
        else:
            _products(c, name, together, vectors, lanes)
        for _ in range(RANK):
            c.close()
            c.line("}")
        for r in range(together):
            for v in range(vectors):
                c.line(f"*({name}_u *)(to + {r} * to_next + {v * lanes}) = c{r}_{v} + ({name}_v){{0}};")


def _products(c: CWriter, name: str, together: int, vectors: int, lanes: int) -> None:
    bases = range(0, together, 3)
    c.line(f"const {name}_e " + ", ".join(f"*p{r} = x + {r} * apart" for r in bases) + ";")
    with c.block("for (int64_t k = 0; k < depth; ++k, w += features)"):
        right = [f"w + {v * lanes}" for v in range(vectors)]
        with c.block(""):
            rows = range(together)
            micro_kernel.multiply(c, name, TYPES[name], lambda r: f"p{r // 3 * 3}[k + {r % 3} * apart]", right, rows)
