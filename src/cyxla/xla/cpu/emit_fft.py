"""fft: self-sorting passes, one for each factor of the length, between two lines of scratch.

A pass of factor r takes the line as r interleaved parts, combines the k-th elements of all parts by a transform of
length r, and turns the results by powers of the root of unity. Roots come from one table a length, made at the
start of a task from about two square roots of the length many sines. Transforms over several dimensions go through
them one after the other, the last one first; real transforms use the complex passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, log2, pi, prod

from cyxla.xla.cpu import cost, scalar
from cyxla.xla.cpu.emit_loop import memory_type
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step, Value
from cyxla.xla.cpu.own_kernel import KernelWriter, describe, strides
from cyxla.xla.cpu.values import resolve
from cyxla.xla.hlo import Instruction

_POINT_NS = 1.5  # a point of a pass
UNROLLED = 16  # factors up to this have their inner sums written out by the compiler


def factors(n: int) -> list[int]:
    """The factors of a length, one for each pass: fours first, then primes."""
    found = []
    for r in (4, 2, 3, 5, 7):
        while n % r == 0:
            found.append(r)
            n //= r
    r = 11
    while n > 1:
        if r * r > n:
            r = n
        while n % r == 0:
            found.append(r)
            n //= r
        r += 2
    return found


@dataclass(frozen=True)
class _Axis:
    """One dimension to transform: `count` lines of `length` points in the array that it is done in, `step` apart."""

    length: int
    step: int
    outer: int

    @property
    def count(self) -> int:
        return self.outer * self.step


@emits("fft")
def fft(ins: Instruction) -> Step:
    """The kernel of one transform; a unit is everything that one element of the leading dimensions holds."""
    return _Transform(ins).step()


class _Transform:
    def __init__(self, ins: Instruction) -> None:
        self.ins, self.kind = ins, ins.attrs["fft_type"]
        self.lengths = [int(n) for n in ins.attrs["fft_length"]]
        rank = len(self.lengths)
        self.dims_in = list(ins.operands[0].shape.dims[ins.shape.rank - rank :])
        self.dims_out = list(ins.shape.dims[ins.shape.rank - rank :])
        self.batch = prod(ins.shape.dims[: ins.shape.rank - rank])
        dtype = ins.shape.dtype
        self.complex = dtype if dtype.is_complex else ins.operands[0].shape.dtype
        self.c, self.real = scalar.storage_type(self.complex), scalar.storage_type(self.complex.real_part)
        self.inverse = self.kind in ("IFFT", "IRFFT")
        # The array that dimension after dimension is done in: the result itself, unless that is real.
        self.work_dims = self.dims_in if self.kind == "IRFFT" else self.dims_out
        self.distinct = list(dict.fromkeys(self.lengths))
        self.longest = max(self.lengths, default=1)

    # --- the kernel -------------------------------------------------------------------------------------------------

    def step(self) -> Step:
        reads = [resolve(self.ins.operands[0])]
        points = prod(self.lengths)
        ns = self.batch * points * max(1.0, log2(max(points, 2)) / 2) * _POINT_NS
        units = max(1, self.batch)
        tasks = cost.tasks(ns, units)
        c = KernelWriter(reads, [Value(self.ins)])
        c.line(f"typedef {self.c} KERNEL_c;")
        for n in self.distinct:
            for r in dict.fromkeys(factors(n)):
                self._pass(c, n, r)
            self._line(c, n)
        self._roots(c)
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            c.line(f"/* {describe(self.kind.lower(), self.ins.shape)} */")
            c.line(
                f"{self.c} *const x = ({self.c} *)({c.scratch()} + begin * {self.scratch}), "
                f"*const y = x + {self.longest};"
            )
            at = 2 * self.longest
            for n in self.distinct:
                c.line(f"{self.c} *const roots{n} = x + {at};")
                c.line(f"KERNEL_roots(roots{n}, {n});")
                at += n
            c.line(f"{self.c} *const work = x + {at}; (void)work; (void)y;")
            with c.block(f"for (int64_t u = begin * {units} / {tasks}; u < end * {units} / {tasks}; ++u)"):
                self._unit(c)
            c.line("return CYX_OK;")
        return Step(Kernel(c.text(), tasks, ns, tasks * self.scratch, "fft"), tuple(reads), (Value(self.ins),))

    @property
    def scratch(self) -> int:
        """Bytes of a task: two lines, the tables, and perhaps a copy of the operand to work in."""
        points = 2 * self.longest + sum(self.distinct)
        points += prod(self.work_dims) if self.kind == "IRFFT" and len(self.lengths) > 1 else 0
        return -(-points * self.complex.itemsize // 64) * 64

    def _unit(self, c: KernelWriter) -> None:
        """All dimensions of one unit: the last one first, except that an inverse real transform ends with it."""
        size_in, size_out = prod(self.dims_in), prod(self.dims_out)
        steps = strides(self.work_dims)
        rank = len(self.lengths)
        others = [_Axis(self.lengths[d], steps[d], prod(self.work_dims[:d])) for d in range(rank - 2, -1, -1)]
        rows = prod(self.dims_out[:-1])
        memory = memory_type(self.complex)
        if self.kind == "IRFFT":
            source = f"bufs[0] + u * {size_in}"
            if others:
                c.line(
                    f"for (int64_t k = 0; k < {size_in}; ++k) work[k] = ((const {memory} *)bufs[0])[u * {size_in} + k];"
                )
                for axis in others:
                    self._lines(c, axis, "work")
                source = "work"
            self._real_lines(c, source, rows)
            return
        c.line(f"{memory} *const out = ({memory} *)bufs[1] + u * {size_out};")
        self._first(c, rows)
        for axis in others:
            self._lines(c, axis, "out")

    def _first(self, c: KernelWriter, rows: int) -> None:
        """The last dimension, from the operand into the result."""
        n, width_in, width_out = self.lengths[-1], self.dims_in[-1], self.dims_out[-1]
        mem = memory_type(self.ins.operands[0].shape.dtype)
        with c.block(f"for (int64_t row = 0; row < {rows}; ++row)"):
            c.line(f"const {mem} *const in = (const {mem} *)bufs[0] + (u * {rows} + row) * {width_in};")
            if self.kind == "RFFT":
                c.line(f"for (int64_t k = 0; k < {n}; ++k) {{ x[k].re = in[k]; x[k].im = 0; }}")
            else:
                c.line(f"for (int64_t k = 0; k < {n}; ++k) x[k] = in[k];")
            c.line(f"const KERNEL_c *const z = KERNEL_line{n}(x, y, roots{n});")
            c.line(f"for (int64_t k = 0; k < {width_out}; ++k) out[row * {width_out} + k] = z[k];")

    def _lines(self, c: KernelWriter, axis: _Axis, array: str) -> None:
        """One of the other dimensions, in place."""
        with c.block(f"for (int64_t l = 0; l < {axis.count}; ++l)"):
            c.line(f"const int64_t at = l / {axis.step} * {axis.step * axis.length} + l % {axis.step};")
            c.line(f"for (int64_t k = 0; k < {axis.length}; ++k) x[k] = {array}[at + k * {axis.step}];")
            c.line(f"const KERNEL_c *const z = KERNEL_line{axis.length}(x, y, roots{axis.length});")
            c.line(f"for (int64_t k = 0; k < {axis.length}; ++k) {array}[at + k * {axis.step}] = z[k];")

    def _real_lines(self, c: KernelWriter, source: str, rows: int) -> None:
        """The last dimension of an inverse real transform: the upper half of a line mirrors the lower."""
        n, width = self.lengths[-1], self.dims_in[-1]
        mem_in, mem_out = memory_type(self.complex), memory_type(self.ins.shape.dtype)
        with c.block(f"for (int64_t row = 0; row < {rows}; ++row)"):
            c.line(f"const {mem_in} *const in = (const {mem_in} *){source} + row * {width};")
            c.line(f"for (int64_t k = 0; k <= {n // 2}; ++k) x[k] = in[k];")
            c.line("x[0].im = 0;" + (f" x[{n // 2}].im = 0;" if n % 2 == 0 else ""))
            c.line(
                f"for (int64_t k = {n // 2 + 1}; k < {n}; ++k) "
                f"{{ x[k].re = in[{n} - k].re; x[k].im = -in[{n} - k].im; }}"
            )
            c.line(f"const KERNEL_c *const z = KERNEL_line{n}(x, y, roots{n});")
            c.line(f"{mem_out} *const to = ({mem_out} *)bufs[1] + (u * {rows} + row) * {n};")
            c.line(f"for (int64_t k = 0; k < {n}; ++k) to[k] = z[k].re;")

    # --- one line ---------------------------------------------------------------------------------------------------

    def _roots(self, c: KernelWriter) -> None:
        """exp(-2 pi i k / n), conjugated for inverse transforms, as products of a coarse and a fine one."""
        sign = "" if self.inverse else "-"
        step = max(1, isqrt(self.longest))
        c.lines(
            f"""\
static void KERNEL_roots(KERNEL_c *to, int64_t n) {{
  double cr[{step + 3}], ci[{step + 3}], fr[{step}], fi[{step}];
  const double unit = {(2 * pi).hex()} / (double)n;
  for (int64_t k = 0; k < {step}; ++k) {{
    fr[k] = cyx_cosine_f64(unit * (double)k); fi[k] = {sign}cyx_sine_f64(unit * (double)k);
  }}
  for (int64_t k = 0; k * {step} < n; ++k) {{
    cr[k] = cyx_cosine_f64(unit * (double)(k * {step})); ci[k] = {sign}cyx_sine_f64(unit * (double)(k * {step}));
  }}
  for (int64_t k = 0; k < n; ++k) {{
    const int64_t a = k / {step}, b = k % {step};
    to[k].re = ({self.real})(cr[a] * fr[b] - ci[a] * fi[b]);
    to[k].im = ({self.real})(cr[a] * fi[b] + ci[a] * fr[b]);
  }}
}}""".splitlines()
        )

    def _line(self, c: KernelWriter, n: int) -> None:
        """All passes over one line; the result is in one of the two."""
        with c.block(f"static KERNEL_c *KERNEL_line{n}(KERNEL_c *x, KERNEL_c *y, const KERNEL_c *roots)"):
            c.line("KERNEL_c *t;")
            left, done = n, 1
            for r in factors(n):
                c.line(f"KERNEL_pass{n}_{r}({left}, {done}, x, y, roots); t = x; x = y; y = t;")
                left, done = left // r, done * r
            c.line("(void)t;")
            if self.inverse and n > 1:
                c.line(f"for (int64_t k = 0; k < {n}; ++k) {{ x[k].re /= {n}; x[k].im /= {n}; }}")
            c.line("return x;")

    def _pass(self, c: KernelWriter, n: int, r: int) -> None:
        """One factor: `left` points of each of `s` interleaved transforms remain."""
        arrays = "const KERNEL_c *restrict x, KERNEL_c *restrict y, const KERNEL_c *roots"
        head = f"static void KERNEL_pass{n}_{r}(int64_t left, int64_t s, {arrays})"
        with c.block(head):
            c.line(f"const int64_t m = left / {r};")
            for k in range(1, r) if r <= UNROLLED and r not in _BUTTERFLIES else ():
                c.line(f"const {self.real} g{k}r = roots[{k * (n // r)}].re, g{k}i = roots[{k * (n // r)}].im;")
            with c.block("for (int64_t p = 0; p < m; ++p)"):
                for j in range(1, r) if r <= UNROLLED else ():
                    c.line(f"const KERNEL_c w{j} = roots[p * {j} * s];")
                with c.block("for (int64_t q = 0; q < s; ++q)"):
                    if r <= UNROLLED:
                        self._small(c, n, r)
                    else:
                        self._large(c, n, r)

    def _small(self, c: KernelWriter, n: int, r: int) -> None:
        real = self.real
        for k in range(r):
            c.line(f"const KERNEL_c a{k} = x[q + s * (p + m * {k})];")
        if r in (2, 4):
            _BUTTERFLIES[r](c, real, self.inverse)
        else:
            for j in range(r):
                c.line(f"{real} b{j}r = a0.re, b{j}i = a0.im;")
                for k in range(1, r):
                    at = j * k % r
                    if at == 0:
                        c.line(f"b{j}r += a{k}.re; b{j}i += a{k}.im;")
                    else:
                        c.line(
                            f"b{j}r += a{k}.re * g{at}r - a{k}.im * g{at}i; "
                            f"b{j}i += a{k}.re * g{at}i + a{k}.im * g{at}r;"
                        )
        for j in range(r):
            turned = (
                f"(KERNEL_c){{b{j}r * w{j}.re - b{j}i * w{j}.im, b{j}r * w{j}.im + b{j}i * w{j}.re}}"
                if j
                else "(KERNEL_c){b0r, b0i}"
            )
            c.line(f"y[q + s * ({r} * p + {j})] = {turned};")

    def _large(self, c: KernelWriter, n: int, r: int) -> None:
        with c.block(f"for (int64_t j = 0; j < {r}; ++j)"):
            c.line(f"{self.real} br = 0, bi = 0;")
            with c.block(f"for (int64_t k = 0; k < {r}; ++k)"):
                c.line(f"const KERNEL_c a = x[q + s * (p + m * k)], g = roots[j * k % {r} * {n // r}];")
                c.line("br += a.re * g.re - a.im * g.im; bi += a.re * g.im + a.im * g.re;")
            c.line("const KERNEL_c w = roots[p * j * s];")
            c.line(f"y[q + s * ({r} * p + j)] = (KERNEL_c){{br * w.re - bi * w.im, br * w.im + bi * w.re}};")


def _by_two(c: KernelWriter, real: str, inverse: bool) -> None:
    c.line(f"const {real} b0r = a0.re + a1.re, b0i = a0.im + a1.im, b1r = a0.re - a1.re, b1i = a0.im - a1.im;")


def _by_four(c: KernelWriter, real: str, inverse: bool) -> None:
    plus, minus = ("-", "+") if inverse else ("+", "-")
    c.line(f"const {real} sr = a0.re + a2.re, si = a0.im + a2.im, dr = a0.re - a2.re, di = a0.im - a2.im;")
    c.line(f"const {real} tr = a1.re + a3.re, ti = a1.im + a3.im, er = a1.re - a3.re, ei = a1.im - a3.im;")
    c.line(f"const {real} b0r = sr + tr, b0i = si + ti, b2r = sr - tr, b2i = si - ti;")
    c.line(f"const {real} b1r = dr {plus} ei, b1i = di {minus} er, b3r = dr {minus} ei, b3i = di {plus} er;")


_BUTTERFLIES = {2: _by_two, 4: _by_four}
