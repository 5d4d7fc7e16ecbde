"""dot of integers, predicates and complex numbers: a row of accumulators runs along the result's columns."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType
from cyxla.xla.cpu import cost, scalar
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.kernel import Kernel
from cyxla.xla.hlo import Instruction

COLUMNS = 64  # of the result, done together
_MAC_NS = 0.1
_COMPLEX_NS = 0.6


def check_plain(ins: Instruction) -> str | None:
    """Why there is no kernel for a dot's types; None if there is."""
    types = {ins.shape.dtype, *(o.shape.dtype for o in ins.operands)}
    if all(t.is_integer for t in types) or types == {ElementType.PRED}:
        return None
    if len(types) == 1 and types <= {ElementType.C64, ElementType.C128}:
        return None
    return f"no product of {' and '.join(sorted(t.text for t in types))}"


def plain_dot(ins: Instruction, batch: int, m: int, n: int, k: int, lhs: Sequence[int], rhs: Sequence[int]) -> Kernel:
    """The kernel for given sizes and strides (see `cyxla.xla.cpu.emit_dot.Product`)."""
    types = [o.shape.dtype for o in ins.operands]
    result = ins.shape.dtype
    columns = max(1, min(COLUMNS, n))
    ns = batch * m * n * k * (_COMPLEX_NS if result.is_complex else _MAC_NS)
    tasks = cost.tasks(ns, max(1, batch * m))
    c = CWriter()
    with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
        for name, number, dtype in (("a", 0, types[0]), ("b", 1, types[1])):
            c.line(f"const {scalar.storage_type(dtype)} *const {name} = bufs[{number}];")
        c.line(f"{scalar.storage_type(result)} *const out = bufs[2];")
        with c.block(f"for (int64_t u = begin * {batch * m} / {tasks}; u < end * {batch * m} / {tasks}; ++u)"):
            c.line(f"const int64_t at = u / {max(m, 1)} * {lhs[0]} + u % {max(m, 1)} * {lhs[1]}, bt = u / {max(m, 1)} * {rhs[0]};")
            whole = n // columns * columns
            _block(c, f"for (int64_t n = 0; n < {whole}; n += {columns})", columns, types, result, n, k, lhs, rhs)
            if n > whole:
                _block(c, f"for (int64_t n = {whole}; n < {n}; n += {n - whole})", n - whole, types, result, n, k, lhs, rhs)
        c.line("return CYX_OK;")
    return Kernel(c.text(), tasks, ns, 0, "dot")


def _block(
    c: CWriter, head: str, columns: int, types: Sequence[ElementType], result: ElementType, n: int, k: int,
    lhs: Sequence[int], rhs: Sequence[int],
) -> None:  # fmt: skip
    """Some columns of one row."""
    with c.block(head):
        sums = _Sums(types, result)
        c.line(sums.define(columns))
        with c.block(f"for (int64_t k = 0; k < {k}; ++k)"):
            c.line(f"const {scalar.register_type(types[0])} x = {scalar.load(types[0], f'a[at + k * {lhs[2]}]')};")
            with c.block(f"for (int j = 0; j < {columns}; ++j)"):
                c.line(f"const {scalar.register_type(types[1])} y = {scalar.load(types[1], f'b[bt + k * {rhs[1]} + (n + j) * {rhs[2]}]')};")
                c.line(sums.add())
        c.line(f"for (int j = 0; j < {columns}; ++j) out[u * {n} + n + j] = {sums.result()};")


class _Sums:
    """How sums of a type are held, added to, and stored."""

    def __init__(self, types: Sequence[ElementType], result: ElementType) -> None:
        self.types, self.dtype = types, result

    def define(self, columns: int) -> str:
        if self.dtype.is_complex:
            part = scalar.storage_type(self.dtype.real_part)
            return f"{part} re[{columns}] = {{0}}, im[{columns}] = {{0}};"
        return f"{self._integer()} s[{columns}] = {{0}};"

    def _integer(self) -> str:
        """Unsigned, so that sums wrap; as wide as the result or an operand, since an operand's upper bits may not be lost."""
        if self.dtype is ElementType.PRED:
            return "uint8_t"
        return "uint64_t" if max(self.dtype.bits, *(t.bits for t in self.types)) > 32 else "uint32_t"

    def add(self) -> str:
        if self.dtype.is_complex:
            return "re[j] += x.re * y.re - x.im * y.im; im[j] += x.re * y.im + x.im * y.re;"
        if self.dtype is ElementType.PRED:
            return "s[j] |= x & y;"
        return f"s[j] += ({self._integer()})x * ({self._integer()})y;"

    def result(self) -> str:
        if self.dtype.is_complex:
            return scalar.store(self.dtype, f"cyx_{self.dtype}_of(re[j], im[j])")
        if self.dtype is ElementType.PRED:
            return "s[j]"
        return scalar.store(self.dtype, scalar.wrap(self.dtype, "s[j]"))
