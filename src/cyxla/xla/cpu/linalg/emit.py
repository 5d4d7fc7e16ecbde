"""Emitter of triangular-solve and cholesky: real ones in tiles, complex ones by substitution along columns."""

from __future__ import annotations

from math import prod

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, Step, Value
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.linalg.cholesky import cholesky as blocked_cholesky
from cyxla.xla.cpu.linalg.triangular_solve import Form
from cyxla.xla.cpu.linalg.triangular_solve import triangular_solve as blocked_solve
from cyxla.xla.hlo import Instruction

COLUMNS = 16  # in a block of constant size
_MAC_NS = 0.8
_REAL = frozenset({ElementType.F32, ElementType.F64})
_TYPES = _REAL | {ElementType.C64, ElementType.C128}


def _check(ins: Instruction) -> str | None:
    return None if ins.shape.dtype in _TYPES else f"it takes no {ins.shape.dtype}"


def _is_blocked(ins: Instruction) -> bool:
    return ins.shape.dtype in _REAL and ins.shape.size > 0


@emits("triangular-solve", check=_check)
def triangular_solve(ins: Instruction) -> Step:
    """Solve ``op(a) x = b`` or ``x op(a) = b``."""
    if not _is_blocked(ins):
        return _plain_solve(ins)
    a, dims = ins.attrs, ins.shape.dims
    n, columns = dims[-2:] if a["left_side"] else dims[:-3:-1]
    form = Form(a["left_side"], a["lower"], a["transpose_a"] != "NO_TRANSPOSE", a["unit_diagonal"])
    kernel = blocked_solve(ins.shape.dtype, n, columns, form).kernel(prod(dims[:-2]))
    return Step(kernel, tuple(resolve(o) for o in ins.operands), (Value(ins),))


@emits("cholesky", check=_check)
def cholesky(ins: Instruction) -> Step:
    """Factor the triangle that is read; a matrix that is not positive definite gives nan throughout."""
    if not _is_blocked(ins):
        return _plain_cholesky(ins)
    dims = ins.shape.dims
    kernel = blocked_cholesky(ins.shape.dtype, dims[-1], ins.attrs["lower"]).kernel(prod(dims[:-2]))
    return Step(kernel, (resolve(ins.operands[0]),), (Value(ins),))


class _Arithmetic:
    """C expressions of one element type."""

    def __init__(self, dtype: ElementType) -> None:
        self.dtype = dtype
        self.c = scalar.storage_type(dtype)

    def of(self, opcode: str, *operands: str) -> str:
        return scalar.expression(opcode, self.dtype, [self.dtype] * len(operands), {}, operands)

    def conjugate(self, x: str, wanted: bool = True) -> str:
        return f"cyx_{self.dtype}_of({x}.re, -{x}.im)" if wanted and self.dtype.is_complex else x

    @property
    def zero(self) -> str:
        return scalar.literal(self.dtype, self.dtype.numpy_dtype.type(0))  # type: ignore[union-attr]

    def minus_product(self, c: KernelWriter, target: str, x: str, y: str) -> None:
        """``target -= x * y``; `x` is a local."""
        right = c.local(self.c, y)
        product = c.local(self.c, self.of("multiply", x, right))
        old = c.local(self.c, target)
        c.line(f"{target} = {self.of('subtract', old, product)};")


def _plain_solve(ins: Instruction) -> Step:
    """A unit is a block of columns (or rows) of one matrix."""
    a, shape = ins.attrs, ins.shape
    do, left = _Arithmetic(shape.dtype), a["left_side"]
    rows, columns = shape.dims[-2:] if left else shape.dims[:-3:-1]
    batch, blocks = prod(shape.dims[:-2]), -(-columns // COLUMNS)
    units = max(1, batch * blocks)
    ns = shape.size * rows / 2 * _MAC_NS
    tasks = cost.tasks(ns, units)
    reads = [resolve(o) for o in ins.operands]
    block_bytes = -(-rows * COLUMNS * shape.dtype.itemsize // 64) * 64
    c = KernelWriter(reads, [Value(ins)])
    # x op(a) = b is op(a)^T x^T = b^T: transposed once more, and without another conjugation.
    turned = (a["transpose_a"] != "NO_TRANSPOSE") == left
    forward = a["lower"] != turned
    with c.kernel(units, tasks, describe("triangular-solve", shape)):
        c.line(f"const int64_t m = u / {blocks}, first = u % {blocks} * {COLUMNS};")
        c.line(f"const int64_t n = {columns} - first < {COLUMNS} ? {columns} - first : {COLUMNS};")
        c.line(f"{do.c} (*const x)[{COLUMNS}] = ({do.c} (*)[{COLUMNS}])({c.scratch()} + begin * {block_bytes});")
        place = f"m * {rows * columns} + " + (f"i * {columns} + first + k" if left else f"(first + k) * {rows} + i")
        with c.loops(["i", "k"], [rows, COLUMNS]):
            c.line(f"if (k < n) x[i][k] = p1[{place}]; else x[i][k] = {do.zero};")
        with c.block(f"for (int64_t r = 0; r < {rows}; ++r)"):
            c.line("const int64_t i = r;" if forward else f"const int64_t i = {rows - 1} - r;")
            with c.block("for (int64_t q = 0; q < r; ++q)"):
                c.line("const int64_t j = q;" if forward else f"const int64_t j = {rows - 1} - q;")
                t = _entry(c, do, a["transpose_a"] == "ADJOINT", turned, rows)
                with c.block(f"for (int k = 0; k < {COLUMNS}; ++k)"):
                    do.minus_product(c, "x[i][k]", t, "x[j][k]")
            if not a["unit_diagonal"]:
                c.line("const int64_t j = i;")
                t = _entry(c, do, a["transpose_a"] == "ADJOINT", turned, rows)
                with c.block(f"for (int k = 0; k < {COLUMNS}; ++k)"):
                    old = c.local(do.c, "x[i][k]")
                    c.line(f"x[i][k] = {do.of('divide', old, t)};")
        with c.loops(["i", "k"], [rows, COLUMNS]):
            c.line(f"if (k < n) r0[{place}] = x[i][k];")
    return Step(Kernel(c.text(), tasks, ns, tasks * block_bytes, "triangular-solve"), tuple(reads), (Value(ins),))


def _entry(c: KernelWriter, do: _Arithmetic, conjugated: bool, turned: bool, rows: int) -> str:
    at = f"j * {rows} + i" if turned else f"i * {rows} + j"
    raw = c.local(do.c, f"p0[m * {rows * rows} + {at}]")
    return c.local(do.c, do.conjugate(raw, conjugated))


def _plain_cholesky(ins: Instruction) -> Step:
    """Row by row of the upper factor; a unit is a matrix."""
    shape, lower = ins.shape, ins.attrs["lower"]
    do, n = _Arithmetic(shape.dtype), shape.dims[-1]
    units = max(1, prod(shape.dims[:-2]))
    ns = units * n**3 / 3 * _MAC_NS
    tasks = cost.tasks(ns, units)
    reads = [resolve(ins.operands[0])]
    width = -(-n // COLUMNS) * COLUMNS
    matrix_bytes = -(-n * width * shape.dtype.itemsize // 64) * 64
    real = scalar.storage_type(shape.dtype.real_part)
    part = ".re" if shape.dtype.is_complex else ""
    c = KernelWriter(reads, [Value(ins)])
    with c.kernel(units, tasks, describe("cholesky", shape)):
        c.line(f"{do.c} (*const x)[{width}] = ({do.c} (*)[{width}])({c.scratch()} + begin * {matrix_bytes});")
        c.line(f"const int64_t m = u * {n * n};")
        with c.loops(["j", "i"], [n, width]):  # the upper triangle; what is left of it is never looked at
            c.line(f"if (i < j || i >= {n}) {{ x[j][i] = {do.zero}; continue; }}")
            raw = c.local(do.c, f"p0[m + {f'i * {n} + j' if lower else f'j * {n} + i'}]")
            c.line(f"x[j][i] = {do.conjugate(raw, lower)};")
        c.line("int bad = 0;")
        with c.block(f"for (int64_t j = 0; j < {n} && !bad; ++j)"):
            with c.block("for (int64_t q = 0; q < j; ++q)"):
                raw = c.local(do.c, "x[q][j]")
                t = c.local(do.c, do.conjugate(raw))
                blocks = f"for (int64_t b = j / {COLUMNS} * {COLUMNS}; b < {width}; b += {COLUMNS})"
                with c.block(blocks), c.block(f"for (int k = 0; k < {COLUMNS}; ++k)"):
                    do.minus_product(c, "x[j][b + k]", t, "x[q][b + k]")
            c.line(f"const {real} d = x[j][j]{part};")
            c.line("if (!(d > 0) || d - d != 0) { bad = 1; break; }")
            c.line(f"const {real} root = __builtin_sqrt{'f' if real == 'float' else ''}(d);")
            with c.block(f"for (int64_t i = j; i < {width}; ++i)"):
                c.line("x[j][i].re /= root; x[j][i].im /= root;" if shape.dtype.is_complex else "x[j][i] /= root;")
            if shape.dtype.is_complex:
                c.line("x[j][j].re = root; x[j][j].im = 0;")
            else:
                c.line("x[j][j] = root;")
        with c.loops(["j", "i"], [n, n]):
            c.line(f"{do.c} v = x[j][i];")
            c.line(f"if (bad) v = {_nan(shape.dtype)}; else if (i < j) v = {do.zero};")
            c.line(f"r0[m + {f'i * {n} + j' if lower else f'j * {n} + i'}] = {do.conjugate('v', lower)};")
    return Step(Kernel(c.text(), tasks, ns, tasks * matrix_bytes, "cholesky"), tuple(reads), (Value(ins),))


def _nan(dtype: ElementType) -> str:
    nan = '__builtin_nanf("")' if dtype.real_part is ElementType.F32 else '__builtin_nan("")'
    return f"cyx_{dtype}_of({nan}, {nan})" if dtype.is_complex else nan
