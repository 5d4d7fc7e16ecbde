"""Dot of integers, predicates and complex numbers by rows of accumulators.

A row of accumulators covers columns of the result; with few columns and operands that are contiguous along the
contracted dimension, it covers part of that dimension and is folded at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import accumulators
from cyxla.xla.cpu.dot.integer import integer_dot, runs_in_tiles
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction

CHAIN = 512  # products of a partial sum
K_LANES = 64  # accumulators of a sum along the contracted dimension
# ns of a multiply-add of integers and of complex numbers; assumed.
_MAC_NS, _COMPLEX_NS = 0.1, 0.6


def check_plain(ins: Instruction) -> str | None:
    """Return the reason for which the types of a dot are unsupported, or None."""
    types = [ins.shape.dtype, *(o.shape.dtype for o in ins.operands)]
    if accumulators.supports(types):
        return None
    return f"no product of {' and '.join(t.text for t in types[1:])} to {types[0]}"


def plain_dot(group: Group, sizes: Sequence[int], lhs: Sequence[int], rhs: Sequence[int]) -> Step:
    """Return the step for sizes (batch, rows, columns, contracted) and strides (see `dot.product.Product`)."""
    ins = group.root
    if runs_in_tiles(ins.shape.dtype, sizes):
        return integer_dot(group, sizes, lhs, rhs)
    batch, m, n, k = sizes
    epilogue = Epilogue(group, n)
    live = LiveProduct.of(group, epilogue.arrays)
    types = [o.shape.dtype for o in ins.operands]
    result = ins.shape.dtype
    ns = batch * m * n * k * (_COMPLEX_NS if result.is_complex else _MAC_NS) + epilogue.ns
    units = max(1, batch * m)
    tasks = cost.tasks(ns, units)
    c = KernelWriter(epilogue.reads, epilogue.writes)
    rows = str(max(m, 1))
    left, right = epilogue.operands
    runs = accumulators.split_columns(n, result, types)
    if not epilogue.is_empty:
        for _, _, row in runs:
            epilogue.function(c, row.columns)
    is_along_k = _runs_along_k(result, sizes, lhs, rhs)
    depth, row_number = str(k), "u"
    with c.kernel(live.units(batch, m) or units, tasks, describe("dot", ins.shape)):
        if live.rows:
            rows, row_number = c.local("int64_t", live.rows), "row"
            c.line(f"const int64_t row = u / {rows} * {m} + u % {rows};")
        if live.depth:
            depth = c.local("int64_t", live.depth)
        c.line(f"const int64_t at = u / {rows} * {lhs[0]} + u % {rows} * {lhs[1]}, bt = u / {rows} * {rhs[0]};")
        for first, pieces, row in runs:
            end = str(first + pieces * row.columns)
            if live.columns:
                end = c.local("int64_t", f"cyx_smaller_size({end}, {live.columns})")
            with c.block(f"for (int64_t n = {first}; n < {end}; n += {row.columns})"):
                if is_along_k:
                    _write_inner_product(
                        c, accumulators.PlainSums(K_LANES, result, *types), (left, right), k, rhs[2], depth
                    )
                else:
                    row.define(c)
                    with c.block(f"for (int64_t k = 0; k < {depth}; ++k)"):
                        x = scalar.load(types[0], f"p{left}[at + k * {lhs[2]}]")
                        c.line(f"const {scalar.register_type(types[0])} x = {x};")
                        row.add(c, "x", f"p{right} + bt + k * {rhs[1]} + n * {rhs[2]}", rhs[2])
                        _add_to_totals(c, row, is_long=k > CHAIN and result.is_complex)
                if epilogue.is_empty:
                    row.store(c, f"r0 + {row_number} * {n} + n")
                    continue
                c.line(f"{scalar.storage_type(result)} sums[{row.columns}];")
                row.store(c, "sums")
                c.line(f"{epilogue.function(c, row.columns)}(bufs, {row_number}, n, 1, sums, 0);")
    return epilogue.step(live.with_short_work(Kernel(c.text(), tasks, ns, 0, KernelKind.DOT), sizes))


def _add_to_totals(c: CWriter, row: accumulators.PlainSums, *, is_long: bool) -> None:
    """Write the end of a partial sum, if sums are long."""
    if is_long:
        with c.block(f"if (k % {CHAIN} == {CHAIN - 1})"):
            row.add_to_totals(c)


def _runs_along_k(result: ElementType, sizes: Sequence[int], lhs: Sequence[int], rhs: Sequence[int]) -> bool:
    """Return True if results are best computed along the contracted dimension."""
    _, _, n, k = sizes
    return n == 1 and k >= K_LANES and lhs[2] == rhs[1] == 1 and result is not ElementType.PRED


def _write_inner_product(
    c: CWriter, lanes: accumulators.PlainSums, operands: tuple[int, int], k: int, step: int, depth: str
) -> None:
    """Write one result: accumulators along the contracted dimension, folded in a fixed tree.

    The terms from the C of `depth` on are zeros, which the operands need not have.
    """
    left, right = operands
    lanes.define(c)
    full = k // K_LANES * K_LANES
    is_cut = depth != str(k)
    end = c.local("int64_t", f"{depth} / {K_LANES} * {K_LANES}") if is_cut else str(full)
    with c.block(f"for (int64_t k = 0; k < {end}; k += {K_LANES})"):
        lanes.add_pairs(c, f"p{left} + at + k", f"p{right} + bt + k + n * {step}")
    if is_cut:
        with c.block(f"for (int64_t k = {end}; k < {depth}; ++k)"):
            lanes.truncate(1).add_pairs(c, f"p{left} + at + k", f"p{right} + bt + k + n * {step}")
    elif k > full:
        lanes.truncate(k - full).add_pairs(c, f"p{left} + at + {full}", f"p{right} + bt + {full} + n * {step}")
    lanes.fold(c)
