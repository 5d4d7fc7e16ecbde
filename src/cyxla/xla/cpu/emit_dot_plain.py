"""dot of integers, predicates and complex numbers: a row of accumulators runs along the result's columns."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.xla.cpu import cost, scalar, sums
from cyxla.xla.cpu.kernel import Kernel, Value
from cyxla.xla.cpu.own_kernel import KernelWriter, describe
from cyxla.xla.hlo import Instruction

CHAIN = 512  # more products than this are added up in parts
_MAC_NS = 0.1
_COMPLEX_NS = 0.6


def check_plain(ins: Instruction) -> str | None:
    """Why there is no kernel for a dot's types; None if there is."""
    types = [ins.shape.dtype, *(o.shape.dtype for o in ins.operands)]
    return None if sums.supports(types) else f"no product of {' and '.join(t.text for t in types[1:])} to {types[0]}"


def plain_dot(
    ins: Instruction, reads: Sequence[Value], sizes: Sequence[int], lhs: Sequence[int], rhs: Sequence[int]
) -> Kernel:
    """The kernel for given sizes of batch, rows, columns, sum, and strides (see `cyxla.xla.cpu.emit_dot.Product`)."""
    batch, m, n, k = sizes
    types = [o.shape.dtype for o in ins.operands]
    result = ins.shape.dtype
    ns = batch * m * n * k * (_COMPLEX_NS if result.is_complex else _MAC_NS)
    units = max(1, batch * m)
    tasks = cost.tasks(ns, units)
    c = KernelWriter(reads, [Value(ins)])
    rows = max(m, 1)
    with c.kernel(units, tasks, describe("dot", ins.shape)):
        c.line(f"const int64_t at = u / {rows} * {lhs[0]} + u % {rows} * {lhs[1]}, bt = u / {rows} * {rhs[0]};")
        for first, pieces, row in sums.cut(n, result, types, 0):
            with c.block(f"for (int64_t n = {first}; n < {first + pieces * row.columns}; n += {row.columns})"):
                row.define(c)
                with c.block(f"for (int64_t k = 0; k < {k}; ++k)"):
                    c.line(
                        f"const {scalar.register_type(types[0])} x = {scalar.load(types[0], f'p0[at + k * {lhs[2]}]')};"
                    )
                    row.add(c, "x", f"p1 + bt + k * {rhs[1]} + n * {rhs[2]}", rhs[2])
                    if k > CHAIN and result.is_complex:
                        with c.block(f"if (k % {CHAIN} == {CHAIN - 1})"):
                            row.settle(c)
                row.store(c, f"r0 + u * {n} + n")
    return Kernel(c.text(), tasks, ns, 0, "dot")
