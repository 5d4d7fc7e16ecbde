"""Emitter of triangular-solve and cholesky: real ones in tiles, complex ones by substitution in blocks of columns."""

from __future__ import annotations

from math import prod

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.linalg.cholesky import cholesky as blocked_cholesky
from cyxla.xla.cpu.linalg.triangular_solve import Form
from cyxla.xla.cpu.linalg.triangular_solve import triangular_solve as blocked_solve
from cyxla.xla.hlo import Instruction

COLUMNS = 16  # columns of a block, a constant so that loops over them become vectors
_MAC_NS = 0.5  # ns of a complex multiply-add by substitution; assumed: it shares out the problems of a batch
_REAL = frozenset({ElementType.F32, ElementType.F64})
_TYPES = _REAL | {ElementType.C64, ElementType.C128}


def _check(ins: Instruction) -> str | None:
    return None if ins.shape.dtype in _TYPES else f"it cannot take {ins.shape.dtype}"


def _is_blocked(ins: Instruction) -> bool:
    return ins.shape.dtype in _REAL and ins.shape.size > 0


@emits("triangular-solve", check=_check)
def triangular_solve(ins: Instruction) -> Step:
    """Emit the solution of ``op(a) x = b`` or ``x op(a) = b``."""
    if not _is_blocked(ins):
        return _solve_by_substitution(ins)
    a, dims = ins.attrs, ins.shape.dims
    n, columns = dims[-2:] if a["left_side"] else dims[:-3:-1]
    form = Form(a["left_side"], a["lower"], a["transpose_a"] != "NO_TRANSPOSE", a["unit_diagonal"])
    kernel = blocked_solve(ins.shape.dtype, n, columns, form).kernel(prod(dims[:-2]))
    return Step(kernel, tuple(resolve(o) for o in ins.operands), (Value(ins),))


@emits("cholesky", check=_check)
def cholesky(ins: Instruction) -> Step:
    """Emit a factor from one triangle; a matrix that is not positive definite gives NaN in all elements."""
    if not _is_blocked(ins):
        return _factor_by_rows(ins)
    dims = ins.shape.dims
    kernel = blocked_cholesky(ins.shape.dtype, dims[-1], ins.attrs["lower"]).kernel(prod(dims[:-2]))
    return Step(kernel, (resolve(ins.operands[0]),), (Value(ins),))


class _Arithmetic:
    """C expressions of one element type, numbers that may be complex."""

    def __init__(self, dtype: ElementType) -> None:
        self.dtype = dtype
        self.c = scalar.storage_type(dtype)

    def expression(self, opcode: str, *operands: str) -> str:
        return scalar.expression(opcode, self.dtype, [self.dtype] * len(operands), {}, operands)

    def conjugate(self, x: str, needed: bool = True) -> str:
        return f"cyx_{self.dtype}_of({x}.re, -{x}.im)" if needed and self.dtype.is_complex else x

    @property
    def zero(self) -> str:
        return scalar.literal(self.dtype, self.dtype.numpy_dtype.type(0))  # type: ignore[union-attr]

    def subtract_product(self, c: KernelWriter, target: str, x: str, y: str) -> None:
        """Write ``target -= x * y``, where `x` is a local."""
        right = c.local(self.c, y)
        product = c.local(self.c, self.expression("multiply", x, right))
        old = c.local(self.c, target)
        c.line(f"{target} = {self.expression('subtract', old, product)};")


def _solve_by_substitution(ins: Instruction) -> Step:
    """Return a kernel whose unit of work is a block of right-hand sides of one problem."""
    a, shape = ins.attrs, ins.shape
    ops, left = _Arithmetic(shape.dtype), a["left_side"]
    rows, columns = shape.dims[-2:] if left else shape.dims[:-3:-1]
    batch, blocks = prod(shape.dims[:-2]), -(-columns // COLUMNS)
    units = max(1, batch * blocks)
    ns = shape.size * rows / 2 * _MAC_NS
    tasks = cost.tasks(ns, units)
    reads = [resolve(o) for o in ins.operands]
    block_bytes = -(-rows * COLUMNS * shape.dtype.itemsize // 64) * 64
    c = KernelWriter(reads, [Value(ins)])
    # x op(a) = b is solved as op(a)^T x^T = b^T: op(a) is transposed again, but not conjugated again.
    transposed = (a["transpose_a"] != "NO_TRANSPOSE") == left
    forward = a["lower"] != transposed
    real, width = scalar.storage_type(shape.dtype.real_part), f"[{COLUMNS}]"
    adjoint = a["transpose_a"] == "ADJOINT"
    with c.kernel(units, tasks, describe("triangular-solve", shape)):
        c.line(f"const int64_t m = u / {blocks}, first = u % {blocks} * {COLUMNS};")
        c.line(f"const int64_t n = {columns} - first < {COLUMNS} ? {columns} - first : {COLUMNS};")
        c.line(f"{real} (*const xr){width} = ({real} (*){width})({c.scratch()} + begin * {block_bytes});")
        c.line(f"{real} (*const xi){width} = xr + {rows};")
        element = f"m * {rows * columns} + " + (f"i * {columns} + first + k" if left else f"(first + k) * {rows} + i")
        with c.loops(["i", "k"], [rows, COLUMNS]):
            c.line(f"if (k < n) {{ xr[i][k] = p1[{element}].re; xi[i][k] = p1[{element}].im; }}")
            c.line("else xr[i][k] = xi[i][k] = 0;")
        with c.block(f"for (int64_t r = 0; r < {rows}; ++r)"):
            c.line("const int64_t i = r;" if forward else f"const int64_t i = {rows - 1} - r;")
            c.line(f"{real} sr{width}, si{width};")
            c.line(f"for (int k = 0; k < {COLUMNS}; ++k) {{ sr[k] = xr[i][k]; si[k] = xi[i][k]; }}")
            with c.block("for (int64_t q = 0; q < r; ++q)"):
                c.line("const int64_t j = q;" if forward else f"const int64_t j = {rows - 1} - q;")
                t = _triangle_element(c, ops, adjoint, transposed, rows)
                with c.block(f"for (int k = 0; k < {COLUMNS}; ++k)"):
                    c.line(f"sr[k] = sr[k] - {t}.re * xr[j][k] + {t}.im * xi[j][k];")
                    c.line(f"si[k] = si[k] - {t}.re * xi[j][k] - {t}.im * xr[j][k];")
            if not a["unit_diagonal"]:
                c.line("const int64_t j = i;")
                _divide_parts(c, ops, _triangle_element(c, ops, adjoint, transposed, rows), real)
            c.line(f"for (int k = 0; k < {COLUMNS}; ++k) {{ xr[i][k] = sr[k]; xi[i][k] = si[k]; }}")
        with c.loops(["i", "k"], [rows, COLUMNS]):
            c.line(f"if (k < n) r0[{element}] = cyx_{shape.dtype}_of(xr[i][k], xi[i][k]);")
    kernel = Kernel(c.text(), tasks, ns, tasks * block_bytes, KernelKind.TRIANGULAR_SOLVE)
    return Step(kernel, tuple(reads), (Value(ins),))


def _divide_parts(c: KernelWriter, ops: _Arithmetic, divisor: str, real: str) -> None:
    """Write the division of complex numbers in two arrays: by a product, if the divisor has a finite reciprocal."""
    one = scalar.literal(ops.dtype, ops.dtype.numpy_dtype.type(1))  # type: ignore[union-attr]
    inverse = c.local(ops.c, ops.expression("divide", one, divisor))
    is_finite = " && ".join(f"{inverse}.{part} - {inverse}.{part} == 0" for part in ("re", "im"))
    each = f"for (int k = 0; k < {COLUMNS}; ++k)"
    with c.block(f"if ({is_finite})"), c.block(each):
        c.line(f"const {real} re = sr[k] * {inverse}.re - si[k] * {inverse}.im;")
        c.line(f"si[k] = sr[k] * {inverse}.im + si[k] * {inverse}.re;")
        c.line("sr[k] = re;")
    with c.block("else"), c.block(each):
        quotient = c.local(ops.c, ops.expression("divide", f"cyx_{ops.dtype}_of(sr[k], si[k])", divisor))
        c.line(f"sr[k] = {quotient}.re;")
        c.line(f"si[k] = {quotient}.im;")


def _triangle_element(c: KernelWriter, ops: _Arithmetic, conjugate: bool, transposed: bool, rows: int) -> str:
    """Write the load of element (i, j) of the triangle."""
    index = f"j * {rows} + i" if transposed else f"i * {rows} + j"
    raw = c.local(ops.c, f"p0[m * {rows * rows} + {index}]")
    return c.local(ops.c, ops.conjugate(raw, conjugate))


def _factor_by_rows(ins: Instruction) -> Step:
    """Return a kernel that computes the upper factor row by row, whose unit of work is a matrix."""
    shape, lower = ins.shape, ins.attrs["lower"]
    ops, n = _Arithmetic(shape.dtype), shape.dims[-1]
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
        c.line(f"{ops.c} (*const x)[{width}] = ({ops.c} (*)[{width}])({c.scratch()} + begin * {matrix_bytes});")
        c.line(f"const int64_t m = u * {n * n};")
        with c.loops(["j", "i"], [n, width]):  # the upper triangle; elements left of its blocks are never used
            c.line(f"if (i < j || i >= {n}) {{ x[j][i] = {ops.zero}; continue; }}")
            raw = c.local(ops.c, f"p0[m + {f'i * {n} + j' if lower else f'j * {n} + i'}]")
            c.line(f"x[j][i] = {ops.conjugate(raw, lower)};")
        c.line("int failed = 0;")
        with c.block(f"for (int64_t j = 0; j < {n} && !failed; ++j)"):
            with c.block("for (int64_t q = 0; q < j; ++q)"):
                raw = c.local(ops.c, "x[q][j]")
                t = c.local(ops.c, ops.conjugate(raw))
                blocks = f"for (int64_t b = j / {COLUMNS} * {COLUMNS}; b < {width}; b += {COLUMNS})"
                with c.block(blocks), c.block(f"for (int k = 0; k < {COLUMNS}; ++k)"):
                    ops.subtract_product(c, "x[j][b + k]", t, "x[q][b + k]")
            c.line(f"const {real} d = x[j][j]{part};")
            c.line("if (!(d > 0) || d - d != 0) { failed = 1; break; }")
            c.line(f"const {real} root = __builtin_sqrt{'f' if real == 'float' else ''}(d);")
            with c.block(f"for (int64_t i = j; i < {width}; ++i)"):
                c.line("x[j][i].re /= root; x[j][i].im /= root;" if shape.dtype.is_complex else "x[j][i] /= root;")
            if shape.dtype.is_complex:
                c.line("x[j][j].re = root; x[j][j].im = 0;")
            else:
                c.line("x[j][j] = root;")
        with c.loops(["j", "i"], [n, n]):
            c.line(f"{ops.c} v = x[j][i];")
            c.line(f"if (failed) v = {_nan(shape.dtype)}; else if (i < j) v = {ops.zero};")
            c.line(f"r0[m + {f'i * {n} + j' if lower else f'j * {n} + i'}] = {ops.conjugate('v', lower)};")
    return Step(Kernel(c.text(), tasks, ns, tasks * matrix_bytes, KernelKind.CHOLESKY), tuple(reads), (Value(ins),))


def _nan(dtype: ElementType) -> str:
    nan = '__builtin_nanf("")' if dtype.real_part is ElementType.F32 else '__builtin_nan("")'
    return f"cyx_{dtype}_of({nan}, {nan})" if dtype.is_complex else nan
