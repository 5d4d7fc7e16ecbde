"""fft: self-sorting passes, one for each factor of the length, between two lines of scratch.

A pass of factor r takes the line as r interleaved parts, combines the k-th elements of all parts by a transform of
length r, and turns the results by powers of the root of unity. Roots come from one table a length, made at the
start of a task from about two square roots of the length many sines. Transforms over several dimensions go through
them one after the other, the last one first; real transforms use the complex passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt, log2, pi, prod

from cyxla.xla.cpu import cost, scalar
from cyxla.xla.cpu.emit_loop import memory_type
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step, Value
from cyxla.xla.cpu.own_kernel import KernelWriter, describe, strides
from cyxla.xla.cpu.values import resolve
from cyxla.xla.hlo import Instruction

_POINT_NS = 1.5  # a point of a pass
TOGETHER = 8
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

    @property
    def together(self) -> int:
        """How many neighbouring lines are done at once where lines are units."""
        return next(w for w in (TOGETHER, 4, 2, 1) if self.step % w == 0)


@emits("fft")
def fft(ins: Instruction) -> list[Step]:
    """The kernels of one transform; a unit is all that one element of the leading dimensions holds, or one line."""
    return _Transform(ins).steps()


def _between(ins: Instruction) -> Value:
    """The array between two dimensions: the result of an instruction that stands in no computation."""
    twin = object.__new__(Instruction)
    twin.opcode, twin.shape, twin.operands, twin.attrs = ins.opcode, ins.shape, (), ins.attrs
    twin.called, twin.computation, twin.name, twin.metadata = (), ins.computation, "", ()
    twin.extras, twin.users, twin.control_predecessors = {}, {}, ()
    return Value(twin)


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

    def steps(self) -> list[Step]:
        """One kernel, or one for each dimension where few transforms have many lines."""
        points = prod(self.lengths)
        ns = self.batch * points * max(1.0, log2(max(points, 2)) / 2) * _POINT_NS
        read, result = resolve(self.ins.operands[0]), Value(self.ins)
        rank = len(self.lengths)
        if rank == 1 or self.kind == "IRFFT" or cost.tasks(ns, 1 << 20) < 4 * self.batch:
            return [self._step(read, result, max(1, self.batch), ns, self._unit)]
        between = [_between(self.ins) for _ in range(rank - 1)]
        values, rows = [read, *between, result], prod(self.dims_out[:-1])
        memory, width = memory_type(self.complex), self.dims_out[-1]

        def first(c: KernelWriter) -> None:
            c.line(f"{memory} *const out = ({memory} *)bufs[1] + u * {width};")
            self._first(c, 1)

        found = [self._step(values[0], values[1], self.batch * rows, ns / rank, first)]
        for n, axis in enumerate(self._others(), 1):

            def other(c: KernelWriter, axis: _Axis = axis) -> None:
                c.line(f"{memory} *const out = bufs[1];")
                self._together(c, axis)

            units = self.batch * axis.count // axis.together
            step = self._step(values[n], values[n + 1], units, ns / rank, other)
            found.append(replace(step, must_alias=((0, 0),)))
        return found

    def _others(self) -> list[_Axis]:
        """All dimensions but the last, backwards."""
        steps = strides(self.work_dims)
        return [
            _Axis(self.lengths[d], steps[d], prod(self.work_dims[:d])) for d in range(len(self.lengths) - 2, -1, -1)
        ]

    def _step(self, read: Value, write: Value, units: int, ns: float, unit: Callable[[KernelWriter], None]) -> Step:
        tasks = cost.tasks(ns, units)
        c = KernelWriter([read], [write])
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
                unit(c)
            c.line("return CYX_OK;")
        return Step(Kernel(c.text(), tasks, ns, tasks * self.scratch, "fft"), (read,), (write,))

    @property
    def scratch(self) -> int:
        """Bytes of a task: two lines, the tables, and perhaps a copy of the operand to work in."""
        points = 2 * self.longest + sum(self.distinct)
        points += TOGETHER * self.longest if len(self.lengths) > 1 and self.kind != "IRFFT" else 0
        points += prod(self.work_dims) if self.kind == "IRFFT" and len(self.lengths) > 1 else 0
        return -(-points * self.complex.itemsize // 64) * 64

    def _unit(self, c: KernelWriter) -> None:
        """All dimensions of one unit: the last one first, except that an inverse real transform ends with it."""
        size_in, size_out = prod(self.dims_in), prod(self.dims_out)
        others = self._others()
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
            self._turn(c, axis, array, "l")

    def _together(self, c: KernelWriter, axis: _Axis) -> None:
        """Unit `u` of neighbouring lines, so that what is fetched along with an element is not fetched again."""
        n, w = axis.length, axis.together
        c.line(f"const int64_t line = u * {w}, at = line / {axis.step} * {axis.step * n} + line % {axis.step};")
        with c.block(f"for (int64_t k = 0; k < {n}; ++k)"):
            c.line(f"for (int64_t l = 0; l < {w}; ++l) work[l * {n} + k] = out[at + k * {axis.step} + l];")
        with c.block(f"for (int64_t l = 0; l < {w}; ++l)"):
            c.line(f"KERNEL_c *const own = work + l * {n}, *const z = KERNEL_line{n}(own, y, roots{n});")
            c.line(f"if (z != own) __builtin_memcpy(own, z, {n} * sizeof *own);")
        with c.block(f"for (int64_t k = 0; k < {n}; ++k)"):
            c.line(f"for (int64_t l = 0; l < {w}; ++l) out[at + k * {axis.step} + l] = work[l * {n} + k];")

    def _turn(self, c: KernelWriter, axis: _Axis, array: str, line: str) -> None:
        """One line of them."""
        c.line(f"const int64_t at = {line} / {axis.step} * {axis.step * axis.length} + {line} % {axis.step};")
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
