"""Prebuilt moves of elements: broadcasts, transposes, slices and other copies with strides."""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.prebuilt.forms import MOST_RANK
from cyxla.xla.cpu.prebuilt.library import KERNEL

SIZES = (1, 2, 4, 8, 16)  # bytes of an element
# What a kernel is told: the first elements read and written, the number of loops, then of each, outermost first, its
# length, the step of what is read and the step of what is written; all in elements.

FUNCTIONS = {f"move_{size}": KERNEL for size in SIZES}

_TEXT = """\
typedef {item} move_{size}_item __attribute__((aligned(1), may_alias));
static void move_{size}_row(move_{size}_item *to, int64_t out, const move_{size}_item *from, int64_t in, int64_t n) {{
  if (in == 1 && out == 1) {{
    __builtin_memcpy(to, from, (unsigned long)n * {size});
    return;
  }}
  for (int64_t k = 0; k < n; ++k) to[k * out] = from[k * in];
}}
cyx_status CYX_PREBUILT(move_{size})(void *const *bufs, int64_t begin, int64_t end) {{
  const int64_t *numbers = CYX_NUMBERS(bufs), loops = numbers[2], *loop = numbers + 3;
  const move_{size}_item *from = (const move_{size}_item *)bufs[0] + numbers[0];
  move_{size}_item *to = (move_{size}_item *)bufs[1] + numbers[1];
  int64_t at[{rank}] = {{0}};
  const int64_t *last = loop + 3 * (loops - 1);
  (void)begin;
  (void)end;
  for (;;) {{
    move_{size}_row(to, last[2], from, last[1], last[0]);
    int64_t d = loops - 2;
    for (; d >= 0; --d) {{
      from += loop[3 * d + 1];
      to += loop[3 * d + 2];
      if (++at[d] < loop[3 * d]) break;
      from -= loop[3 * d] * loop[3 * d + 1];
      to -= loop[3 * d] * loop[3 * d + 2];
      at[d] = 0;
    }}
    if (d < 0) return CYX_OK;
  }}
}}
"""
_ITEM = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
_PAIR = "typedef struct { uint64_t a, b; } move_16_item __attribute__((aligned(1)));\n"


def text(_: Level) -> str:
    """The functions."""
    parts = []
    for size in SIZES:
        item = _ITEM.get(size, "")
        part = _TEXT.format(item=item, size=size, rank=MOST_RANK)
        parts.append(part if item else _PAIR + part.partition("\n")[2])
    return "".join(parts)
