"""C of passes: all butterflies of one radix over a part of a panel, for any length of the panel.

A pass loads points from neighbouring columns of an array of complex numbers or from the rows of a panel. An inner pass
multiplies its results by twiddle factors and stores them in place for the next pass; the last pass of a panel stores
them in order, in columns, in other rows, or in rows multiplied by the twiddle factors of a longer line.

The passes stand between instances of ``fft_vectors.h``, which defines their vectors, arguments and forms, and of
``fft_lines.h``, which calls them by the tables written here.
"""

from __future__ import annotations

from collections.abc import Callable

from cyxla.records import dataclass
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.fft.butterflies import STRAIGHT, Point, transform

LARGEST_PRIME = 100  # prime factors of a length that passes are made for

#: Loads and stores of the passes that panels need; in C, the macros ``FFT_<LOAD>_<STORE>`` are their indices.
FORMS = (
    ("columns", "inner"), ("rows", "inner"), ("columns", "columns"), ("rows", "columns"), ("rows", "rows"),
    ("columns", "twiddled"), ("rows", "twiddled"),
)  # fmt: skip

#: Panels of fixed length, whose strides are constants: length -> number of its functions, radices of its two passes.
FIXED = {32: (1, 8, 4), 64: (2, 8, 8), 128: (3, 16, 8), 256: (4, 16, 16)}
_FIXED_FORMS = (("columns", "columns"), ("columns", "twiddled"), ("rows", "rows"))

#: Radices with passes of their own, and 0 for others.
RADICES = frozenset({0, 1}) | STRAIGHT

_Load = Callable[[CWriter, str], Point]
_Store = Callable[[CWriter, str, int, Point], None]

_LOCALS = {
    "columns": "const FFT_ELEMENT *const from = a->from; const int64_t from_stride = a->from_stride;",
    "rows": "FFT_V *restrict rows = a->rows;",
    "inner": "const FFT_REAL *restrict w = a->twiddles; const FFT_REAL scale = a->scale;",
    "to columns": "FFT_ELEMENT *to = (FFT_ELEMENT *)a->rest + a->start * a->stride, *first = a->start ? to : a->first;",
    "to rows": "FFT_V *to = (FFT_V *)a->rest + a->start * a->stride, *first = a->start ? to : a->first;",
    "twiddled": "const FFT_REAL *restrict coarse = a->coarse, *restrict fine = a->fine;",
    "prime": "const int64_t radix = a->radix; const FFT_REAL *restrict const roots = a->roots;",
}


@dataclass(frozen=True)
class Pass:
    """Butterflies of a radix, or of any prime up to `LARGEST_PRIME`.

    Attributes
    ----------
    radix : int
        Points of a butterfly; 0 stands for any prime.
    load : str
        Memory of the operand: ``columns`` or ``rows``.
    store : str
        Memory of the results: ``inner``, the same rows; ``rows``; ``twiddled``, rows as well; or ``columns``.
    count, down : int
        Constant values of these arguments in panels of a fixed length, where `across` is 1; else 0.
    """

    radix: int
    load: str
    store: str
    count: int = 0
    down: int = 0

    @property
    def name(self) -> str:
        """Name of the function."""
        return f"FFT(pass{self.radix or ''}_{self.load}_{self.store})"

    def write(self, c: CWriter) -> None:
        """Write the function."""
        with c.block(f"static CYX_FUSED void {self.name}(const FFT_PASS *a)"):
            c.line("CYX_FUSE")
            self.body(c)

    def body(self, c: CWriter) -> None:
        """Write the statements of the function."""
        for local in self._locals():
            c.line(_LOCALS[local])
        c.line(f"const int64_t count = {self.count or 'a->count'}; (void)count;")
        radix = str(self.radix) if self.radix else "radix"
        steps = "for (int64_t j = 0; j < count; ++j{})"
        if self.store == "inner":
            with c.block(steps.format(f", w += 2 * ({radix} - 1)")):
                self._butterfly(c, self._load("j + {} * count"), self._store_inner)
            return
        c.line(f"const int64_t down = {self.down or 'a->down'} * a->stride; (void)to; (void)down;")
        if self.load == "columns":
            self._butterfly(c, self._load("{}"), self._store_last)
            return
        c.line(f"const int64_t across = {'a->stride' if self.down else 'a->across * a->stride'};")
        with c.block(steps.format(f", rows += 2 * {radix}")):
            self._butterfly(c, self._load("{}"), self._store_last)
            c.line("first = to += across;")
            if self.store == "twiddled":
                by = "1" if self.down else radix
                c.line(f"coarse += 2 * {by}; fine += 2 * FFT_TABLE_LANES * {by};")

    def _locals(self) -> list[str]:
        names = [] if self.radix else ["prime"]
        names += ["columns"] if self.load == "columns" else []
        if self.store == "inner":
            return [*names, "rows", "inner"]
        names += ["rows"] if self.load == "rows" else []
        names.append("to columns" if self.store == "columns" else "to rows")
        return [*names, *(["twiddled"] if self.store == "twiddled" else [])]

    def _load(self, index: str) -> _Load:
        def from_columns(c: CWriter, k: str) -> Point:
            s = c.local("FFT_UNALIGNED_V *", f"(const FFT_UNALIGNED_V *)(from + ({index.format(k)}) * from_stride)")
            a, b = c.local("FFT_V", f"{s}[0]"), c.local("FFT_V", f"{s}[1]")
            return c.local("FFT_V", f"FFT_EVEN({a}, {b})"), c.local("FFT_V", f"FFT_ODD({a}, {b})")

        def from_rows(c: CWriter, k: str) -> Point:
            row = f"2 * ({index.format(k)})"
            return c.local("FFT_V", f"rows[{row}]"), c.local("FFT_V", f"rows[{row} + 1]")

        return from_columns if self.load == "columns" else from_rows

    def _store_inner(self, c: CWriter, k: str, index: int, point: Point) -> None:
        row, (re, im) = f"2 * (j + {k} * count)", point
        if not index:  # its twiddle factor is 1
            re, im = f"{re} * scale", f"{im} * scale"
        else:
            x, y = c.local("FFT_REAL", f"w[2 * ({k} - 1)]"), c.local("FFT_REAL", f"w[2 * ({k} - 1) + 1]")
            re, im = f"{re} * {x} - {im} * {y}", f"{re} * {y} + {im} * {x}"
        c.line(f"rows[{row}] = {re}; rows[{row} + 1] = {im};")

    def _store_last(self, c: CWriter, k: str, index: int, point: Point) -> None:
        target = f"to + {k} * down" if index else "first"
        with c.block(""):
            if self.store == "twiddled":
                re, im = self._twiddled(c, k, point)
            else:
                re, im = (c.local("FFT_V", part) for part in point)
            if self.store == "columns":
                c.line(f"FFT_UNALIGNED_V *const d = (FFT_UNALIGNED_V *)({target});")
                c.line(f"d[0] = FFT_ZIP_LOW({re}, {im}); d[1] = FFT_ZIP_HIGH({re}, {im});")
            else:
                c.line(f"FFT_V *const d = {target};")
                c.line(f"d[0] = {re}; d[1] = {im};")

    def _twiddled(self, c: CWriter, k: str, point: Point) -> Point:
        re, im = point
        k = f"{k} * {self.down}" if self.down else k
        c.line(f"const FFT_REAL xr = coarse[2 * {k}], xi = coarse[2 * {k} + 1];")
        c.line(f"const FFT_UNALIGNED_V *const y = (const FFT_UNALIGNED_V *)(fine + 2 * FFT_TABLE_LANES * {k});")
        c.line("const FFT_V yr = y[0], yi = y[FFT_TABLE_LANES / FFT_LANES];")
        c.line("const FFT_V tr = yr * xr - yi * xi, ti = yr * xi + yi * xr;")
        return c.local("FFT_V", f"{re} * tr - {im} * ti"), c.local("FFT_V", f"{re} * ti + {im} * tr")

    # --- butterflies ------------------------------------------------------------------------------------------------

    def _butterfly(self, c: CWriter, load: _Load, store: _Store) -> None:
        if not self.radix:
            _any_prime(c, load, store)
            return
        for k, point in enumerate(transform(c, [load(c, str(k)) for k in range(self.radix)])):
            store(c, str(k), k, point)


def _any_prime(c: CWriter, load: _Load, store: _Store) -> None:
    """Write a butterfly as loops of sums over pairs of points at equal distance from the first."""
    zero = load(c, "0")
    c.line(f"FFT_V sr = {zero[0]}, si = {zero[1]}, pair[{2 * LARGEST_PRIME}];")
    with c.block("for (int64_t k = 1; k <= radix / 2; ++k)"):
        (ar, ai), (br, bi) = load(c, "k"), load(c, "(radix - k)")
        for part, value in enumerate((f"{ar} + {br}", f"{ai} + {bi}", f"{ar} - {br}", f"{ai} - {bi}")):
            c.line(f"pair[4 * (k - 1) + {part}] = {value};")
        c.line("sr += pair[4 * (k - 1)]; si += pair[4 * (k - 1) + 1];")
    store(c, "0", 0, ("sr", "si"))
    with c.block("for (int64_t l = 1; l <= radix / 2; ++l)"):
        c.line(f"FFT_V er = {zero[0]}, ei = {zero[1]}, dr = {{0}}, di = {{0}};")
        c.line("int64_t e = 0;")
        with c.block("for (int64_t k = 0; k < radix / 2; ++k)"):
            c.line("e += l; e -= e >= radix ? radix : 0;")
            c.line("const FFT_REAL x = roots[2 * e], y = roots[2 * e + 1];")
            c.line("er += pair[4 * k] * x; ei += pair[4 * k + 1] * x;")
            c.line("dr -= pair[4 * k + 2] * y; di -= pair[4 * k + 3] * y;")
        for index, (k, signs) in enumerate((("l", "+-"), ("(radix - l)", "-+")), 1):
            re = c.local("FFT_V", f"er {signs[0]} di")
            im = c.local("FFT_V", f"ei {signs[1]} dr")
            store(c, k, index, (re, im))


def passes(radices: frozenset[int]) -> str:
    """Return the functions of some radices, and a table of them by radix and form."""
    c = CWriter()
    rows = {}
    for radix in sorted(radices):
        row = [Pass(radix, *form) for form in FORMS]
        for pass_ in row:
            pass_.write(c)
        rows[radix] = [pass_.name for pass_ in row]
    _table(c, "passes", max(STRAIGHT) + 1, rows)
    return c.text()


def fixed_panels(lengths: frozenset[int]) -> str:
    """Return the functions of panels of fixed length, and a table of them by number and form."""
    c = CWriter()
    rows = {
        FIXED[n][0]: [_fixed_panel(c, n, *form) if form in _FIXED_FORMS else "0" for form in FORMS]
        for n in sorted(lengths)
    }
    _table(c, "fixed_panels", len(FIXED) + 1, rows)
    return c.text()


def _table(c: CWriter, name: str, size: int, rows: dict[int, list[str]]) -> None:
    c.line(f"static void (*const FFT({name})[{size}][FFT_FORMS])(const FFT_PASS *) = {{")
    for number, functions in rows.items():
        pairs = zip(FORMS, functions, strict=True)
        entries = (f"[FFT_{load.upper()}_{store.upper()}] = {function}" for (load, store), function in pairs)
        c.line(f"  [{number}] = {{{', '.join(entries)}}},")
    c.line("};")


def _fixed_panel(c: CWriter, n: int, load: str, store: str) -> str:
    """Write both passes of a panel as a function; return its name."""
    _, r, q = FIXED[n]
    name = f"FFT(panel{n}_{load}_{store})"
    with c.block(f"static CYX_FUSED void {name}(const FFT_PASS *a)"):
        c.line("CYX_FUSE")
        for pass_ in (Pass(r, load, "inner", q), Pass(q, "rows", store, r, r)):
            with c.block(""):
                pass_.body(c)
    return name
