"""Prebuilt sorts: keys, rows with keys computed from the bits of elements, argsort of these, and topk."""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.prebuilt.library import KERNEL
from cyxla.xla.cpu.sort.templates import by_bits_text, keys_text, rows_text, topk_text

_SORT = "uint{0}_t *x, int64_t n, uint{0}_t *y"
_SPREAD = _SORT + ", const uint{0}_t *borders, int buckets, uint32_t *counts"

#: Kernels: bits of elements and of keys, and whether keys go with indices.
_ROWS = {
    "sort_8": (8, 32, False), "sort_16": (16, 32, False), "sort_32": (32, 32, False), "sort_64": (64, 64, False),
    "order_8": (8, 64, True), "order_16": (16, 64, True), "order_32": (32, 64, True),
}  # fmt: skip

FUNCTIONS = {
    **{f"keys{bits}_sort": ("void", _SORT.format(bits)) for bits in (32, 64)},
    **{f"keys{bits}_spread": ("int", _SPREAD.format(bits)) for bits in (32, 64)},
    **dict.fromkeys(_ROWS, KERNEL),
    **{f"topk_{width}": KERNEL for width in (8, 16, 32, 64)},
}


def text(_: Level) -> str:
    """Return the C of the functions, which is the same for every level."""
    parts = [keys_text(bits, f"keys{bits}") for bits in (32, 64)]
    for name, (bits, key_bits, indices) in _ROWS.items():
        parts.append(by_bits_text(bits, key_bits, name, indices=indices))
        parts.append(rows_text(key_bits, f"keys{key_bits}", name))
        parts.append(_kernel(name))
    for bits in (8, 16, 32, 64):
        parts += [topk_text(bits, max(bits, 32), f"topk_{bits}"), _kernel(f"topk_{bits}")]
    for bits in (32, 64):
        parts.append(f"void CYX_PREBUILT(keys{bits}_sort)({_SORT.format(bits)}) {{ keys{bits}_sort(x, n, y); }}\n")
        call = f"return keys{bits}_spread(x, n, y, borders, buckets, counts);"
        parts.append(f"int CYX_PREBUILT(keys{bits}_spread)({_SPREAD.format(bits)}) {{ {call} }}\n")
    return "".join(parts)


def _kernel(name: str) -> str:
    call = f"return {name}_run(CYX_NUMBERS(bufs), bufs, begin, end);"
    return f"{KERNEL[0]} CYX_PREBUILT({name})({KERNEL[1]}) {{ {call} }}\n"
