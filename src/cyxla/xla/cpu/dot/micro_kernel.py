"""Micro-kernels of products in f32 and f64, for static sizes (`dot.tiles`) and run-time sizes (`prebuilt.dot`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import machine

#: Rows of a tile by its vectors, where there are 32 vector registers, and where there are 16.
ROWS = {32: {1: 14, 2: 12, 3: 8, 4: 6}, 16: {1: 10, 2: 6}}
#: Dot products at once, and whether their operand is fetched ahead: from the caches, from beyond, from far beyond.
WAYS = ((4, False), (2, True), (4, True))
FETCHED = 32 * machine.LINE_BYTES  # bytes ahead
LOCALITIES = 2, 3  # cache that rows of a combination are prefetched to: L2 from beyond it, else L1
SUMS_BYTES = machine.L1_BYTES // 8  # of its columns, at most
ROW_OF_VECTORS = 8  # vectors of a tile of one row, at most


def types(name: str, element: str, vector_bytes: int) -> list[str]:
    """Return the types of vectors, unaligned vectors and unaligned elements: ``<name>_v``, ``_u``, ``_e``."""
    return [
        f"typedef {element} {name}_v __attribute__((vector_size({vector_bytes})));",
        f"typedef {element} {name}_u __attribute__((vector_size({vector_bytes}), aligned(1), may_alias));",
        f"typedef {element} {name}_e __attribute__((aligned(1), may_alias));",
    ]


def sums(name: str, rows: int, vectors: int) -> str:
    """Return the definition of a tile's accumulators, ``c<row>_<vector>``."""
    return f"{name}_v " + ", ".join(f"c{r}_{v} = {{0}}" for r in range(rows) for v in range(vectors)) + ";"


def multiply(
    c: CWriter, name: str, element: str, left: Callable[[int], str], right: Iterable[str], rows: Iterable[int]
) -> None:
    """Write the products of one row of the right operand, given as vectors, and one element for each row of a tile."""
    loads = [f"b{v} = *(const {name}_u *)({place})" for v, place in enumerate(right)]
    c.line(f"const {name}_v {', '.join(loads)};")
    for r in rows:
        c.line(f"const {element} a{r} = {left(r)};")
        c.line(" ".join(f"c{r}_{v} += a{r} * b{v};" for v in range(len(loads))))
