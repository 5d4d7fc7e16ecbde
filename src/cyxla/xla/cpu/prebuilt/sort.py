"""Prebuilt sorts: of keys, of rows whose keys follow from the elements' bits, of indices by such elements, and topk.

The best elements of rows too, for the same elements.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.prebuilt.library import KERNEL
from cyxla.xla.cpu.sort.keys_text import keys_text
from cyxla.xla.cpu.sort.rows_text import PATTERN, PLACES, WHOLE, rows_text
from cyxla.xla.cpu.sort.topk_text import PATTERN as TOP_PATTERN
from cyxla.xla.cpu.sort.topk_text import topk_text

_SORT = "uint{0}_t *x, int64_t n, uint{0}_t *y"
_SPREAD = _SORT + ", const uint{0}_t *borders, int buckets, uint32_t *counts"

#: Kernels: whether keys go with places, the bits of elements and of keys.
_ROWS = {
    "sort_8": (WHOLE, 8, 32), "sort_16": (WHOLE, 16, 32), "sort_32": (WHOLE, 32, 32), "sort_64": (WHOLE, 64, 64),
    "order_8": (PLACES, 8, 64), "order_16": (PLACES, 16, 64), "order_32": (PLACES, 32, 64),
}  # fmt: skip

FUNCTIONS = {
    **{f"keys{bits}_sort": ("void", _SORT.format(bits)) for bits in (32, 64)},
    **{f"keys{bits}_spread": ("void", _SPREAD.format(bits)) for bits in (32, 64)},
    **dict.fromkeys(_ROWS, KERNEL),
    **{f"topk_{width}": KERNEL for width in (8, 16, 32, 64)},
}


def text(level: Level) -> str:
    """The functions."""
    parts = [keys_text(bits, f"keys{bits}", compress=level.vector_bytes == 64) for bits in (32, 64)]
    for name, (hooks, width, bits) in _ROWS.items():
        parts.append(rows_text(PATTERN + hooks, bits, f"keys{bits}", name, width))
        parts.append(f"{KERNEL[0]} CYX_PREBUILT({name})({KERNEL[1]}) {{\n")
        parts.append(f"  return {name}_run(CYX_NUMBERS(bufs), bufs, begin, end);\n}}\n")
    for width in (8, 16, 32, 64):
        parts.append(topk_text(TOP_PATTERN, width, f"topk_{width}"))
        parts.append(f"{KERNEL[0]} CYX_PREBUILT(topk_{width})({KERNEL[1]}) {{\n")
        parts.append(f"  return topk_{width}_run(CYX_NUMBERS(bufs), bufs, begin, end);\n}}\n")
    for bits in (32, 64):
        parts.append(f"void CYX_PREBUILT(keys{bits}_sort)({_SORT.format(bits)}) {{ keys{bits}_sort(x, n, y); }}\n")
        call = f"keys{bits}_spread(x, n, y, borders, buckets, counts);"
        parts.append(f"void CYX_PREBUILT(keys{bits}_spread)({_SPREAD.format(bits)}) {{ {call} }}\n")
    return "".join(parts)
