"""Prebuilt products in f32 and f64 for any sizes, without epilogue.

The choices of `dot.tiles`, `dot.inner_products` and `dot.row_combination` (panels, ranges, links, tasks ..) arrive as
numbers, so that the sums are the same to the bit as those of kernels that have the sizes as constants.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import micro_kernel, templates
from cyxla.xla.cpu.dot.parameters import ROWS, SUMS
from cyxla.xla.cpu.prebuilt.library import KERNEL

TYPES = {"f32": "float", "f64": "double"}
FUNCTIONS = {f"{form}_{t}": KERNEL for t in TYPES for form in ("dot_tiles", "dot_rows", "dot_sums")}

#: Forms of tiles: whether elements of a column of the left operand are neighbours, and the prefetch.
_FORMS = {
    "rows": (False, templates.NO_PREFETCH),
    "columns": (True, templates.NO_PREFETCH),
    "prefetching": (False, templates.PREFETCH_AT_TIMES),
    "streaming": (False, templates.PREFETCH_ROWS),
}

_TILES = """\
cyx_status CYX_PREBUILT(dot_tiles_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  return {t}_run((const {t}_numbers *)CYX_NUMBERS(bufs), bufs, begin, end, 0);
}}
"""
#: Functions of inner products by the index of their form; the last one is for the columns that are left.
_WAYS = (*micro_kernel.WAYS, (1, False))
_DOTS = """\
      if (s->way == {way})
        for (; n + {columns} <= width; n += {columns})
          {t}_dots{way}(left + m * s->am, right + n * s->bn, to + m * s->n + n, s->k, s->bn);"""
_MAIN = """\
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
    """Return the C of all functions for a processor level."""
    c = CWriter()
    for name, element in TYPES.items():
        _one_type(c, name, element, level)
    return c.text()


def _one_type(c: CWriter, name: str, element: str, level: Level) -> None:
    lanes = level.vector_bytes // templates.ITEM_BYTES[element]
    c.lines(templates.types(name, element, level.vector_bytes))
    _tiles(c, name, element, level)
    c.lines(templates.vector_types(f"{name}_w", element, 64))
    c.line(f"typedef struct {{ int64_t {', '.join(ROWS)}; }} {name}_rows;")
    c.line(f"typedef struct {{ int64_t {', '.join(SUMS)}; }} {name}_summed;")
    for way, (columns, fetches) in enumerate(_WAYS):
        head = f"static CYX_FUSED __attribute__((noinline)) void {name}_dots{way}(const {name}_e *restrict a, "
        head += f"const {name}_e *restrict b, {name}_e *restrict to, int64_t count, int64_t apart)"
        micro_kernel.dots(c, head, f"{name}_w", element, columns, fetches, "count", "apart")
    for place in ("near", "far"):
        head = micro_kernel.sum_head(f"{name}_sums_{place}", name)
        micro_kernel.sum_of_rows(c, head, name, element, level.vector_bytes, place == "near")
    dots = "\n".join(_DOTS.format(t=name, way=w, columns=n) for w, (n, _) in enumerate(micro_kernel.WAYS))
    c.lines(_MAIN.format(t=name, element=element, dots=dots, one=len(_WAYS) - 1, lanes=lanes).splitlines())


def _tiles(c: CWriter, name: str, element: str, level: Level) -> None:
    """Write ``dot_tiles`` with all tiles that there are registers for."""
    lanes = level.vector_bytes // templates.ITEM_BYTES[element]
    rows = micro_kernel.ROWS[level.registers]
    heights = {v: rows.get(v, 1) for v in range(1, micro_kernel.ROW_OF_VECTORS + 1)}
    table = []
    for form, (columns, prefetch) in _FORMS.items():
        of_form = []
        for vectors, most in heights.items():
            names = [f"{name}_{form}_{height}x{vectors}" for height in range(1, most + 1)]
            of_form.append("{" + ", ".join(names) + "}")
            for height, tile in enumerate(names, 1):
                made = templates.TileText(
                    name, element, lanes, tile, height, vectors, columns=columns, prefetch=prefetch
                )
                c.lines((made.prototype + made.text).splitlines())
        table.append("  {" + ", ".join(of_form) + "}")
    sizes = f"[{len(_FORMS)}][{len(heights)}][{max(heights.values())}]"
    c.line(f"static const {name}_tile_function {name}_tiles{sizes} = {{")
    c.lines([*",\n".join(table).splitlines(), "};"])
    room = max(v * h for v, h in heights.items()) * lanes
    c.lines(templates.dot_text(name, element, lanes, room).splitlines())
    c.lines(_TILES.format(t=name).splitlines())
