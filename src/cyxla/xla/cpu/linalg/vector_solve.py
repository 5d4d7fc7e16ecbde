"""Triangular systems with one or two right sides: the triangle is read once, in place, some rows at a time.

Where its rows are contiguous, a few unknowns are less the products of theirs and what is known, as sums along the rows;
where its columns are, a few that are known are taken off all that follow.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.linalg.blocked_algorithm import Algorithm
from cyxla.xla.cpu.linalg.tiles import Tiles

MOST_COLUMNS = 2
LEAST_ROWS = 64  # below, tiles do not waste enough to matter
ROWS = 8

_TEXT = """\
typedef KERNEL_f KERNEL_u __attribute__((vector_size(KERNEL_LANES * sizeof(KERNEL_f)), aligned(1), may_alias));

static KERNEL_f KERNEL_total(KERNEL_v v) {
  KERNEL_f lanes[KERNEL_LANES];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int64_t half = KERNEL_LANES / 2; half; half /= 2)
    for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  return lanes[0];
}

/* Unknowns among themselves: `count` of them, from `at` on in the order of solving. */
static CYX_FUSED void KERNEL_among(const KERNEL_e *a, KERNEL_f *x, int64_t at, int64_t count) {
  CYX_FUSE
  for (int64_t r = at; r < at + count; ++r) {
    const int64_t i = KERNEL_PLACE(r);
    for (int64_t s = at; s < r; ++s) x[i] -= KERNEL_ENTRY(i, KERNEL_PLACE(s)) * x[KERNEL_PLACE(s)];
    if (!KERNEL_UNIT) x[i] /= KERNEL_ENTRY(i, i);
  }
}

FEW
static void KERNEL_part(const KERNEL_e *a, const KERNEL_e *b, KERNEL_e *out, char *room, int64_t phase, int64_t u) {
  (void)phase;
  KERNEL_f *const x = (KERNEL_f *)(room + KERNEL_X) + u * KERNEL_PADDED;
  for (int64_t i = 0; i < KERNEL_N; ++i) x[i] = b[i * KERNEL_STEP + u * KERNEL_APART];
  for (int64_t at = 0; at < KERNEL_N; at += KERNEL_FEW_ROWS) {
    const int64_t left = KERNEL_N - at, count = left < KERNEL_FEW_ROWS ? left : KERNEL_FEW_ROWS;
    SOLVE
  }
  for (int64_t i = 0; i < KERNEL_N; ++i) out[i * KERNEL_STEP + u * KERNEL_APART] = x[i];
}
"""
_BY_ROWS = "KERNEL_few(a, x, at, count);\n    KERNEL_among(a, x, at, count);"
_BY_COLUMNS = "KERNEL_among(a, x, at, count);\n    if (at + count < KERNEL_N) KERNEL_few(a, x, at);"


def vector_solve(
    dtype: ElementType, n: int, columns: int, *, left: bool, turned: bool, backward: bool, unit: bool
) -> Algorithm:
    """The solution of a system whose right sides are columns if `left`, else rows.

    Parameters
    ----------
    dtype : ElementType
        F32 or F64.
    n, columns : int
        Unknowns and right sides.
    left, unit : bool
        As the attributes of triangular-solve say.
    turned : bool
        Whether columns of the triangle that is solved are contiguous.
    backward : bool
        Whether the last unknown comes first.
    """
    tiles = Tiles.of(dtype, n)
    text = _TEXT.replace("SOLVE", _BY_COLUMNS if turned else _BY_ROWS)
    text = text.replace("FEW\n", _columns(backward) if turned else _rows(backward))
    macros = f"#define KERNEL_PLACE(r) ({'KERNEL_N - 1 - ' if backward else ''}(r))\n"
    entry = "(j) * KERNEL_N + (i)" if turned else "(i) * KERNEL_N + (j)"
    macros += f"#define KERNEL_ENTRY(i, j) a[{entry}]\n"
    return Algorithm(
        "triangular-solve", tiles, macros + text,
        {"N": n, "PADDED": tiles.padded(n), "FEW_ROWS": ROWS, "UNIT": int(unit), "STEP": columns if left else 1,
         "APART": 1 if left else n},
        [(dtype, n * n), (dtype, n * columns)], [(dtype, n * columns)], 1, columns, 2 * n * n * columns,
        {"X": columns * tiles.padded(n) * dtype.itemsize},
    )  # fmt: skip


_HEAD = "static CYX_FUSED __attribute__((noinline)) void KERNEL_few"


def _rows(backward: bool) -> str:
    """``x[i] -= sum over what is known of a[i][q] * x[q]`` for a few i."""
    c = CWriter()
    with c.block(f"{_HEAD}(const KERNEL_e *a, KERNEL_f *x, int64_t at, int64_t count)"):
        c.line("CYX_FUSE")
        known = ("KERNEL_N - at", "KERNEL_N") if backward else ("0", "at")
        c.line(f"int64_t q = {known[0]};")
        c.line(f"const int64_t end = {known[1]};")
        for r in range(ROWS):
            place = f"KERNEL_PLACE(at + ({r} < count ? {r} : 0))"  # a row too many is summed in vain
            c.line(f"const KERNEL_e *const a{r} = a + {place} * KERNEL_N;")
        c.line("KERNEL_v " + ", ".join(f"s{r} = {{0}}" for r in range(ROWS)) + ";")
        with c.block("for (; q + KERNEL_LANES <= end; q += KERNEL_LANES)"):
            c.line("const KERNEL_v y = *(const KERNEL_u *)(x + q);")
            for r in range(ROWS):
                c.line(f"s{r} += *(const KERNEL_u *)(a{r} + q) * y;")
        c.line(f"KERNEL_f t[{ROWS}] = {{{', '.join(f'KERNEL_total(s{r})' for r in range(ROWS))}}};")
        with c.block("for (; q < end; ++q)"):
            c.line(" ".join(f"t[{r}] += a{r}[q] * x[q];" for r in range(ROWS)))
        c.line("for (int64_t r = 0; r < count; ++r) x[KERNEL_PLACE(at + r)] -= t[r];")
    return c.text()


def _columns(backward: bool) -> str:
    """``x[i] -= sum over a few j of a[j][i] * x[j]`` for all that follow; only the last few can be fewer."""
    c = CWriter()
    with c.block(f"{_HEAD}(const KERNEL_e *a, KERNEL_f *x, int64_t at)"):
        c.line("CYX_FUSE")
        rest = ("0", "KERNEL_N - at - KERNEL_FEW_ROWS") if backward else ("at + KERNEL_FEW_ROWS", "KERNEL_N")
        c.line(f"int64_t i = {rest[0]};")
        c.line(f"const int64_t end = {rest[1]};")
        for s in range(ROWS):
            c.line(f"const KERNEL_e *const a{s} = a + KERNEL_PLACE(at + {s}) * KERNEL_N;")
            c.line(f"const KERNEL_f y{s} = x[KERNEL_PLACE(at + {s})];")
        with c.block("for (; i + KERNEL_LANES <= end; i += KERNEL_LANES)"):
            halves = [range(ROWS // 2), range(ROWS // 2, ROWS)]
            sums = [" + ".join(f"*(const KERNEL_u *)(a{s} + i) * y{s}" for s in half) for half in halves]
            c.line(f"*(KERNEL_u *)(x + i) -= ({sums[0]}) + ({sums[1]});")
        with c.block("for (; i < end; ++i)"):
            c.line("x[i] -= " + " + ".join(f"a{s}[i] * y{s}" for s in range(ROWS)) + ";")
    return c.text()
