"""C of passes: all butterflies of one radix over a part of a panel, for any length of the panel.

A pass reads points from neighbouring columns of an array of complex numbers or from the rows of scratch. What it makes
it turns and leaves in place, in the rows, for the next pass; or, the last one, writes where the results belong: into
columns, into other rows, or into rows turned once more by the place of the panel in a longer line.

Results of an inverse transform are those of the forward one in backward order, but for the first: where a pass writes,
`rest` is where that order begins, and `out` is negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.fft.butterflies import STRAIGHT, Point, transform

LARGEST_PRIME = 100  # of a length that passes are made for

#: How passes read and write, as far as panels need it; the numbers that stand for these in C.
FORMS = (
    ("columns", "inner"), ("rows", "inner"), ("columns", "columns"), ("rows", "columns"), ("rows", "rows"),
    ("columns", "turned"), ("rows", "turned"),
)  # fmt: skip

#: What every pass is given.
ARGUMENTS = """\
typedef struct {
  const FFT_e *from; int64_t in; /* columns: the first point, and the numbers from one to the next */
  FFT_v *rows;                   /* points in scratch */
  int64_t m;                     /* butterflies; before an inner pass also the parts of each of its results */
  const FFT_r *w;                /* what turns the results of an inner pass */
  /* Result k of butterfly j goes to place start + j * across + k * down behind the rest; that of place 0 to the first.
     Places are `out` apart. */
  void *first, *rest;
  int64_t start;
  int64_t out, across, down;
  int64_t to_rows;               /* whether these places are rows */
  FFT_r scale;                   /* of the first results of an inner pass, which are not turned */
  const FFT_r *coarse, *fine;    /* factors of the roots that turn results, in their order */
  int64_t radix;                 /* if it is a prime with no pass of its own */
  const FFT_r *roots;            /* of that order */
} FFT_pass;"""

_Load = Callable[[CWriter, str], Point]
_Store = Callable[[CWriter, str, int, Point], None]

_LOCALS = {
    "columns": "const FFT_e *const from = a->from; const int64_t in = a->in;",
    "rows": "FFT_v *restrict rows = a->rows;",
    "inner": "const FFT_r *restrict w = a->w; const FFT_r scale = a->scale;",
    "to columns": "FFT_e *at = (FFT_e *)a->rest + a->start * a->out, *first = a->start ? at : a->first;",
    "to rows": "FFT_v *at = (FFT_v *)a->rest + a->start * a->out, *first = a->start ? at : a->first;",
    "turned": "const FFT_r *restrict coarse = a->coarse, *restrict fine = a->fine;",
    "prime": "const int64_t radix = a->radix; const FFT_r *restrict const roots = a->roots;",
}


@dataclass(frozen=True)
class Pass:
    """Butterflies of a radix; 0 stands for any prime up to `LARGEST_PRIME`.

    Attributes
    ----------
    radix : int
        Points of a butterfly.
    load : str
        Where points come from: ``columns`` or ``rows``.
    store : str
        Where they go: ``inner``, in place to the rows; ``rows``; ``turned``, rows as well; or ``columns``.
    m, down : int
        What these arguments are in panels of a fixed length, where `across` is 1; else 0.
    """

    radix: int
    load: str
    store: str
    m: int = 0
    down: int = 0

    @property
    def name(self) -> str:
        """Of the function."""
        return f"FFT_pass{self.radix or ''}_{self.load}_{self.store}"

    def write(self, c: CWriter) -> None:
        """The function."""
        with c.block(f"static CYX_FUSED void {self.name}(const FFT_pass *a)"):
            c.line("CYX_FUSE")
            self.body(c)

    def body(self, c: CWriter) -> None:
        """What it does."""
        for local in self._locals():
            c.line(_LOCALS[local])
        c.line(f"const int64_t m = {self.m or 'a->m'}; (void)m;")
        radix = str(self.radix) if self.radix else "radix"
        steps = "for (int64_t j = 0; j < m; ++j{})"
        if self.store == "inner":
            with c.block(steps.format(f", w += 2 * ({radix} - 1)")):
                self._butterfly(c, self._load("j + {} * m"), self._store_inner)
            return
        c.line(f"const int64_t step = {self.down or 'a->down'} * a->out; (void)at; (void)step;")
        if self.load == "columns":
            self._butterfly(c, self._load("{}"), self._store_last)
            return
        c.line(f"const int64_t over = {'a->out' if self.down else 'a->across * a->out'};")
        with c.block(steps.format(f", rows += 2 * {radix}")):
            self._butterfly(c, self._load("{}"), self._store_last)
            c.line("first = at += over;")
            if self.store == "turned":
                by = "1" if self.down else radix
                c.line(f"coarse += 2 * {by}; fine += 2 * FFT_LANES * {by};")

    def _locals(self) -> list[str]:
        found = [] if self.radix else ["prime"]
        found += ["columns"] if self.load == "columns" else []
        if self.store == "inner":
            return [*found, "rows", "inner"]
        found += ["rows"] if self.load == "rows" else []
        found.append("to columns" if self.store == "columns" else "to rows")
        return [*found, *(["turned"] if self.store == "turned" else [])]

    def _load(self, place: str) -> _Load:
        def from_columns(c: CWriter, k: str) -> Point:
            s = c.local("FFT_u *", f"(const FFT_u *)(from + ({place.format(k)}) * in)")
            a, b = c.local("FFT_v", f"{s}[0]"), c.local("FFT_v", f"{s}[1]")
            return c.local("FFT_v", f"FFT_EVEN({a}, {b})"), c.local("FFT_v", f"FFT_ODD({a}, {b})")

        def from_rows(c: CWriter, k: str) -> Point:
            row = f"2 * ({place.format(k)})"
            return c.local("FFT_v", f"rows[{row}]"), c.local("FFT_v", f"rows[{row} + 1]")

        return from_columns if self.load == "columns" else from_rows

    def _store_inner(self, c: CWriter, k: str, index: int, point: Point) -> None:
        row, (re, im) = f"2 * (j + {k} * m)", point
        if not index:  # not turned
            re, im = f"{re} * scale", f"{im} * scale"
        else:
            x, y = c.local("FFT_r", f"w[2 * ({k} - 1)]"), c.local("FFT_r", f"w[2 * ({k} - 1) + 1]")
            re, im = f"{re} * {x} - {im} * {y}", f"{re} * {y} + {im} * {x}"
        c.line(f"rows[{row}] = {re}; rows[{row} + 1] = {im};")

    def _store_last(self, c: CWriter, k: str, index: int, point: Point) -> None:
        place = f"at + {k} * step" if index else "first"
        with c.block(""):
            if self.store == "turned":
                re, im = self._turned(c, k, point)
            else:
                re, im = (c.local("FFT_v", part) for part in point)
            if self.store == "columns":
                c.line(f"FFT_u *const d = (FFT_u *)({place});")
                c.line(f"d[0] = FFT_LOW({re}, {im}); d[1] = FFT_HIGH({re}, {im});")
            else:
                c.line(f"FFT_v *const d = {place};")
                c.line(f"d[0] = {re}; d[1] = {im};")

    def _turned(self, c: CWriter, k: str, point: Point) -> Point:
        re, im = point
        k = f"{k} * {self.down}" if self.down else k
        c.line(f"const FFT_r xr = coarse[2 * {k}], xi = coarse[2 * {k} + 1];")
        c.line(f"const FFT_u *const y = (const FFT_u *)(fine + 2 * FFT_LANES * {k});")
        c.line("const FFT_v yr = y[0], yi = y[FFT_LANES / FFT_W];")
        c.line("const FFT_v tr = yr * xr - yi * xi, ti = yr * xi + yi * xr;")
        return c.local("FFT_v", f"{re} * tr - {im} * ti"), c.local("FFT_v", f"{re} * ti + {im} * tr")

    # --- butterflies ------------------------------------------------------------------------------------------------

    def _butterfly(self, c: CWriter, load: _Load, store: _Store) -> None:
        if not self.radix:
            _prime(c, load, store)
            return
        for k, point in enumerate(transform(c, [load(c, str(k)) for k in range(self.radix)])):
            store(c, str(k), k, point)


def _prime(c: CWriter, load: _Load, store: _Store) -> None:
    """Sums over pairs of points at equal distance from the first, in loops."""
    zero = load(c, "0")
    c.line(f"FFT_v sr = {zero[0]}, si = {zero[1]}, pair[{2 * LARGEST_PRIME}];")
    with c.block("for (int64_t k = 1; k <= radix / 2; ++k)"):
        (ar, ai), (br, bi) = load(c, "k"), load(c, "(radix - k)")
        for part, value in enumerate((f"{ar} + {br}", f"{ai} + {bi}", f"{ar} - {br}", f"{ai} - {bi}")):
            c.line(f"pair[4 * (k - 1) + {part}] = {value};")
        c.line("sr += pair[4 * (k - 1)]; si += pair[4 * (k - 1) + 1];")
    store(c, "0", 0, ("sr", "si"))
    with c.block("for (int64_t l = 1; l <= radix / 2; ++l)"):
        c.line(f"FFT_v er = {zero[0]}, ei = {zero[1]}, dr = {{0}}, di = {{0}};")
        c.line("int64_t e = 0;")
        with c.block("for (int64_t k = 0; k < radix / 2; ++k)"):
            c.line("e += l; e -= e >= radix ? radix : 0;")
            c.line("const FFT_r x = roots[2 * e], y = roots[2 * e + 1];")
            c.line("er += pair[4 * k] * x; ei += pair[4 * k + 1] * x;")
            c.line("dr -= pair[4 * k + 2] * y; di -= pair[4 * k + 3] * y;")
        for index, (k, signs) in enumerate((("l", "+-"), ("(radix - l)", "-+")), 1):
            re = c.local("FFT_v", f"er {signs[0]} di")
            im = c.local("FFT_v", f"ei {signs[1]} dr")
            store(c, k, index, (re, im))


def passes(radices: frozenset[int]) -> str:
    """The functions of some radices, and a table of them by radix and form."""
    c = CWriter()
    c.lines(ARGUMENTS.splitlines())
    rows = []
    for radix in sorted(radices):
        found = [Pass(radix, *form) for form in FORMS]
        for each in found:
            each.write(c)
        rows.append(f"  [{radix}] = {{{', '.join(p.name for p in found)}}},")
    c.line(f"static void (*const FFT_passes[{max(STRAIGHT) + 1}][{len(FORMS)}])(const FFT_pass *) = {{")
    c.lines([*rows, "};"])
    return c.text()


def panels(lengths: frozenset[int]) -> str:
    """The functions of panels of fixed length, and a table of them by number and form."""
    c = CWriter()
    rows = []
    for n in sorted(lengths):
        names = [_panel(c, n, *form) if form in FIXED_FORMS else "0" for form in FORMS]
        rows.append(f"  [{FIXED[n][0]}] = {{{', '.join(names)}}},")
    c.line(f"static void (*const FFT_fixed[{len(FIXED) + 1}][{len(FORMS)}])(const FFT_pass *) = {{")
    c.lines([*rows, "};"])
    return c.text()


def _panel(c: CWriter, n: int, load: str, store: str) -> str:
    """Both passes of a panel, as a function."""
    _, r, q = FIXED[n]
    name = f"FFT_panel{n}_{load}_{store}"
    with c.block(f"static CYX_FUSED void {name}(const FFT_pass *a)"):
        c.line("CYX_FUSE")
        for each in (Pass(r, load, "inner", q), Pass(q, "rows", store, r, r)):
            with c.block(""):
                each.body(c)
    return name


#: Lengths of panels with functions of their own, which need not look up how far apart points are: a number, and the
#: radices of two passes.
FIXED = {32: (1, 8, 4), 64: (2, 8, 8), 128: (3, 16, 8), 256: (4, 16, 16)}
FIXED_FORMS = (("columns", "columns"), ("columns", "turned"), ("rows", "rows"))

#: Radices with passes of their own, and 0 for others.
RADICES = frozenset({0, 1}) | STRAIGHT
