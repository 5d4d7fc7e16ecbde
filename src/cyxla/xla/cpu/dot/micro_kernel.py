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
ADDED = 8  # rows at once of a sum of rows
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


def multiply_in_parts(
    c: CWriter, name: str, rows: int, vectors: int, right: Callable[[int], str], registers: int
) -> None:
    """Write the products of one row of the right operand and the elements ``a<row>[k]``.

    If all registers are in use, gcc would spill an accumulator; the row is then processed in halves.
    """
    parts = 2 if rows * vectors + vectors + 1 > registers else 1
    each = -(-vectors // parts)
    for first in range(0, vectors, each):
        part = range(first, min(first + each, vectors))
        if first:
            c.line('__asm__ volatile("" ::: "memory");')
        with c.block(""):
            c.line(f"const {name}_v {', '.join(f'b{v} = *(const {name}_u *)({right(v)})' for v in part)};")
            for r in range(rows):
                c.line(" ".join(f"c{r}_{v} += a{r}[k] * b{v};" for v in part))


def dots(c: CWriter, head: str, name: str, element: str, columns: int, fetches: bool, k: str, apart: str) -> None:
    """Write a function of inner products with one row ``a``: four accumulators each, added in a fixed tree.

    Parameters
    ----------
    c : CWriter
        Writer of the C.
    head : str
        Head of the function; ``a``, ``b`` and ``to`` are among its parameters.
    name : str
        Prefix of the vector types.
    element : str
        C type of an element.
    columns : int
        Number of columns at a time.
    fetches : bool
        True to prefetch columns.
    k : str
        C expression of the length of columns.
    apart : str
        C expression of the stride between columns.
    """
    lanes = 64 // {"float": 4, "double": 8}[element]
    with c.block(head):
        c.line("CYX_FUSE")
        c.line(f"{name}_v " + ", ".join(f"s{n}_{v} = {{0}}" for n in range(columns) for v in range(4)) + ";")
        c.line("int64_t k = 0;")
        for vectors in (4, 1):
            with c.block(f"for (; k + {vectors * lanes} <= {k}; k += {vectors * lanes})"):
                for v in range(vectors):
                    c.line(f"const {name}_v a{v} = *(const {name}_u *)(a + k + {v * lanes});")
                    for n in range(columns):
                        place = f"b + k + {n} * {apart} + {v * lanes}"
                        if vectors > 1 and fetches:
                            c.line(f"__builtin_prefetch((const char *)({place}) + {FETCHED});")
                        c.line(f"s{n}_{v} += a{v} * *(const {name}_u *)({place});")
        c.line(f"{element} t[{columns}][{lanes}];")
        for n in range(columns):
            c.line(f"s{n}_0 = (s{n}_0 + s{n}_1) + (s{n}_2 + s{n}_3);")
            c.line(f"__builtin_memcpy(t[{n}], &s{n}_0, 64);")
        with c.block(f"for (int n = 0; n < {columns}; ++n)"):
            width = lanes // 2
            while width:
                c.line(f"for (int l = 0; l < {width}; ++l) t[n][l] += t[n][l + {width}];")
                width //= 2
            # Opaque, or gcc would multiply in vectors and add one by one: no longer fused.
            step = f"t[n][0] += a[i] * b[i + n * {apart}];"
            c.line(f'for (int64_t i = k; i < {k}; ++i) {{ __asm__("" : "+r"(i)); {step} }}')
            c.line("to[n] = t[n][0];")


def sum_head(function: str, name: str) -> str:
    """Return the head of a function that sums rows."""
    arguments = f"const {name}_e *restrict a, int64_t step, const {name}_e *restrict b, int64_t apart, "
    arguments += f"{name}_e *restrict to, int64_t count, int64_t width"
    return f"static CYX_FUSED __attribute__((noinline)) void {function}({arguments})"


def sum_of_rows(c: CWriter, head: str, name: str, element: str, vector_bytes: int, near: bool) -> None:
    """Write a function that sums rows, each times a factor; ``width`` is at least one vector.

    The last vector overlaps its predecessor, such that it ends with the row; the common elements are computed twice.

    Parameters
    ----------
    c : CWriter
        Writer of the C.
    head : str
        Head of the function; see `sum_head`.
    name : str
        Prefix of the vector types.
    element : str
        C type of an element.
    vector_bytes : int
        Size of a vector in bytes.
    near : bool
        True to prefetch the next rows into L1, False to prefetch rows beyond L2 into L2.
    """
    lanes = vector_bytes // {"float": 4, "double": 8}[element]
    with c.block(head):
        c.line("CYX_FUSE")
        c.line(f"{name}_v sums[{SUMS_BYTES // vector_bytes + 1}];")
        c.line(f"const int64_t vectors = (width + {lanes - 1}) / {lanes}, last = width - {lanes};")
        c.line(f"for (int64_t v = 0; v < vectors; ++v) sums[v] = ({name}_v){{0}};")
        for rows in (ADDED, 1):
            with c.block(f"for (; count >= {rows}; count -= {rows}, a += {rows} * step, b += {rows} * apart)"):
                c.line(f"const {element} " + ", ".join(f"a{r} = a[{r} * step]" for r in range(rows)) + ";")
                with c.block("for (int64_t v = 0; v < vectors; ++v)"):
                    c.line(f"const {name}_e *const at = b + (v * {lanes} < last ? v * {lanes} : last);")
                    for r in range(rows, 2 * rows) if rows > 1 else ():
                        c.line(f"__builtin_prefetch((const char *)(at + {r} * apart), 0, {3 if near else 2});")
                    c.line(f"{name}_v s = a0 * *(const {name}_u *)at;")
                    for r in range(1, rows):
                        c.line(f"s += a{r} * *(const {name}_u *)(at + {r} * apart);")
                    c.line("sums[v] += s;")
        with c.block("for (int64_t v = 0; v < vectors; ++v)"):
            c.line(f"*({name}_u *)(to + (v * {lanes} < last ? v * {lanes} : last)) = sums[v];")
