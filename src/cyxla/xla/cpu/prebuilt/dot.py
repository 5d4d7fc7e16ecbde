"""Prebuilt products in f32 and f64 for any sizes, without epilogue.

The choices of `dot.tiles`, `dot.inner_products` and `dot.row_combination` (panels, ranges, links, tasks ..) arrive as
numbers, so that the sums are the same to the bit as those of kernels that have the sizes as constants.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import parameters, templates
from cyxla.xla.cpu.prebuilt.library import FOLLOWED, KERNEL

TYPES = {"f32": "float", "f64": "double"}
FUNCTIONS = {f"dot_{form}_{t}": KERNEL for t in TYPES for form in ("tiles", "live", "rows", "sums", "pass")}
FUNCTIONS |= {f"dot_live_after_{t}": FOLLOWED for t in TYPES}

#: Forms of tiles: whether elements of a column of the left operand are neighbours, and the prefetch.
_FORMS = {
    "rows": (False, templates.NO_PREFETCH),
    "columns": (True, templates.NO_PREFETCH),
    "prefetching": (False, templates.PREFETCH_NEXT_PANEL),
}

_RUN = """\
cyx_status CYX_PREBUILT({name})(void *const *bufs, int64_t begin, int64_t end) {{
  return {prefix}_run((const {prefix}_numbers *)CYX_NUMBERS(bufs), bufs, begin, end, 0);
}}
"""


_LIVE = """\
cyx_status CYX_PREBUILT(dot_live_after_{t})(void *const *bufs, int64_t begin, int64_t end, const void *const *after) {{
  const {t}_numbers *const whole = (const {t}_numbers *)CYX_NUMBERS(bufs);
  const {t}_numbers part = {t}_of_part(whole, (const int64_t *)(whole + 1));
  return {t}_run(&part, bufs, begin, end, (const {t}_after_function *)after);
}}
cyx_status CYX_PREBUILT(dot_live_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  return CYX_PREBUILT(dot_live_after_{t})(bufs, begin, end, 0);
}}
"""

_PASS = """\
cyx_status CYX_PREBUILT(dot_pass_{t})(void *const *bufs, int64_t begin, int64_t end) {{
  return {t}_pass_run((const {t}_pass *)CYX_NUMBERS(bufs), bufs, begin, end);
}}
"""


def text(level: Level) -> str:
    """Return the C of all functions for a processor level."""
    c = CWriter()
    for name, element in TYPES.items():
        _one_type(c, name, element, level)
    return c.text()


def _one_type(c: CWriter, name: str, element: str, level: Level) -> None:
    c.lines(templates.types(name, element, level.vector_bytes))
    _tiles(c, name, element, level)
    _inner_products(c, name, element, level)
    _row_combinations(c, name, element, level)
    c.line(parameters.PASS.typedef(f"{name}_pass"))
    c.lines(instantiate("dot/one_pass.h", PASS_PREFIX=name).splitlines())
    c.lines(_PASS.format(t=name).splitlines())


def _inner_products(c: CWriter, name: str, element: str, level: Level) -> None:
    """Write ``dot_rows``: functions in the order of `INNER_FORMS`, then the one of the columns that are left."""
    few = templates.InnerText(f"{name}_inner", element, level.vector_bytes)
    forms = (*parameters.INNER_FORMS[level.registers], (1, False))
    names = [f"{few.prefix}{form}" for form in range(len(forms))]
    functions = [few.inner_products(function, *form) for function, form in zip(names, forms, strict=True)]
    _few_rows(c, few, f"dot_rows_{name}", dict(zip(names, functions, strict=True)))


def _row_combinations(c: CWriter, name: str, element: str, level: Level) -> None:
    """Write ``dot_sums``: functions of one row in the order of `parameters.LOCALITIES`, then that of several rows."""
    few = templates.RowSumsText(f"{name}_combination", element, level.vector_bytes)
    localities = parameters.LOCALITIES[level.registers]
    names = [f"{few.prefix}_{locality}" for locality in localities]
    functions = dict(zip(names, map(few.one_row, names, localities), strict=True))
    several = f"{few.prefix}_rows"
    _few_rows(c, few, f"dot_sums_{name}", functions | {several: few.several_rows(several)})


def _few_rows(c: CWriter, few: templates.FewRows, kernel: str, functions: dict[str, str]) -> None:
    c.lines(few.types)
    c.lines("".join(functions.values()).splitlines())
    c.lines(few.run([*functions]).splitlines())
    c.lines(_RUN.format(name=kernel, prefix=few.prefix).splitlines())


def _tiles(c: CWriter, name: str, element: str, level: Level) -> None:
    """Write ``dot_tiles`` with all tiles that there are registers for."""
    lanes = level.vector_bytes // templates.ITEM_BYTES[element]
    rows = parameters.ROWS[level.registers]
    heights = {v: rows.get(v, 1) for v in range(1, parameters.MAX_VECTORS + 1)}
    table = []
    for form, (columns, prefetch) in _FORMS.items():
        variants = []
        for vectors, max_height in heights.items():
            names = [f"{name}_{form}_{height}x{vectors}" for height in range(1, max_height + 1)]
            variants.append("{" + ", ".join(names) + "}")
            for height, tile in enumerate(names, 1):
                text = templates.TileText(
                    name, element, lanes, tile, height, vectors, columns=columns, prefetch=prefetch
                )
                c.lines((text.prototype + text.text).splitlines())
        table.append("  {" + ", ".join(variants) + "}")
    sizes = f"[{len(_FORMS)}][{len(heights)}][{max(heights.values())}]"
    c.line(f"static const {name}_tile_function {name}_tiles{sizes} = {{")
    c.lines([*",\n".join(table).splitlines(), "};"])
    max_elements = max(v * h for v, h in heights.items()) * lanes
    c.lines(templates.dot_text(name, element, lanes, max_elements).splitlines())
    c.lines(_RUN.format(name=f"dot_tiles_{name}", prefix=name).splitlines())
    c.lines(instantiate("dot/dot_live.h", LIVE_PREFIX=name).splitlines())
    c.lines(_LIVE.format(t=name).splitlines())
