"""Calls of prebuilt reductions: their parts and tasks, and for sums of floats the order of native code.

A reduction of one array that no other instruction joins is emitted by `reduce.emit`; here stand the same choices as
numbers, for arrays in row-major order of which adjacent dimensions are reduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.sum_order import (
    COLUMN_BLOCK,
    GROUP_STEPS,
    MAX_PARTS,
    MAX_UNBLOCKED_ROW,
    MIN_ROW_LENGTH,
    PART_NS,
    ROW_STEPS,
    block_length,
)
from cyxla.xla.hlo import Instruction

FEW_COLUMNS = 4  # columns of a sum below which it runs along rows, though these are strided
_KERNEL_COLUMNS = 512  # columns of a unit of the kernels
_SEARCH_COLUMNS = 128  # columns of a unit of a search
_LEAST_PART = 1 << 14  # elements of a part of a reduction in any order


class Sizes(NamedTuple):
    """Sizes of the dimensions before those that are reduced, of these, and of those behind them."""

    outer: int
    reduced: int
    inner: int


class ReductionCall(NamedTuple):
    """Numbers of a call of a reduction, and its tasks."""

    numbers: list[int]
    tasks: int


def is_along_rows(sizes: Sizes) -> bool:
    """Return True if native code sums along rows in lanes, not one element after the other for each result."""
    if sizes.inner == 1:
        return sizes.reduced >= MIN_ROW_LENGTH or sizes.outer == 1
    return sizes.reduced >= MIN_ROW_LENGTH and sizes.inner < FEW_COLUMNS


def sum_parts(ins: Instruction, sizes: Sizes) -> int:
    """Return the parts of a sum or product of floats that is a kernel of its own; see `reduce.emit`."""
    points, results = sizes.outer * sizes.reduced * sizes.inner, sizes.outer * sizes.inner
    ns = cost.element_ns([ins]) * points + cost.memory_ns(points * 4)
    parts, rows = min(int(ns / PART_NS), MAX_PARTS), is_along_rows(sizes)
    is_row = sizes.inner == 1 and sizes.reduced >= MIN_ROW_LENGTH
    if parts < 2 or results >= parts * COLUMN_BLOCK or (results >= parts and is_row):
        return 1
    if rows:
        return max(1, min(parts, _blocks(sizes.reduced) // 8))
    return max(1, min(parts, sizes.reduced // 8)) if sizes.inner >= FEW_COLUMNS else 1


def sums(sizes: Sizes, parts: int, ns: float) -> list[ReductionCall]:
    """Return the calls of a sum or product of floats: of the parts, and of the results of these."""
    return [_sum(s, p, ns, is_last=is_last) for s, p, is_last in _phases(sizes, parts)]


def reductions(sizes: Sizes, ns: float) -> list[ReductionCall]:
    """Return the calls of a reduction in any order."""
    units = sizes.outer * -(-sizes.inner // _KERNEL_COLUMNS)
    most = sizes.reduced * min(sizes.inner, _KERNEL_COLUMNS) // _LEAST_PART
    parts = max(1, min(cost.tasks(ns) // max(units, 1), most))
    return [_any_order(s, p, ns, is_last=is_last) for s, p, is_last in _phases(sizes, parts)]


def scan(sizes: Sizes, ns: float) -> ReductionCall:
    """Return the call of a scan."""
    units = sizes.outer if sizes.inner == 1 else sizes.outer * -(-sizes.inner // _KERNEL_COLUMNS)
    tasks = cost.tasks(ns, units)
    return ReductionCall([*sizes, tasks], tasks)


def search(sizes: Sizes, ns: float) -> ReductionCall:
    """Return the call of a search for the first extreme."""
    tasks = cost.tasks(ns, sizes.outer * -(-sizes.inner // _SEARCH_COLUMNS))
    return ReductionCall([*sizes, tasks], tasks)


def _phases(sizes: Sizes, parts: int) -> list[tuple[Sizes, int, bool]]:
    """Return the sizes and parts of each call, and whether it is the last one."""
    if parts == 1:
        return [(sizes, 1, True)]
    return [(sizes, parts, False), (Sizes(sizes.outer * sizes.inner, parts, 1), 1, True)]


def _sum(sizes: Sizes, parts: int, ns: float, *, is_last: bool) -> ReductionCall:
    _, n, inner = sizes
    length = 0
    if is_along_rows(sizes):
        length = block_length(n) if n > MAX_UNBLOCKED_ROW else max(n, 1)
    step = next((s for s in ROW_STEPS if n % s == 0), 1)
    tasks = cost.tasks(ns, sizes.outer * parts * -(-inner // _KERNEL_COLUMNS))
    return ReductionCall([*sizes, parts, int(is_last), tasks, length, step, GROUP_STEPS * step], tasks)


def _any_order(sizes: Sizes, parts: int, ns: float, *, is_last: bool) -> ReductionCall:
    tasks = cost.tasks(ns, sizes.outer * parts * -(-sizes.inner // _KERNEL_COLUMNS))
    return ReductionCall([*sizes, parts, int(is_last), tasks], tasks)


def _blocks(n: int) -> int:
    return -(-n // block_length(n)) if n > MAX_UNBLOCKED_ROW else 1


def partial_results(calls: Sequence[ReductionCall], sizes: Sizes) -> int:
    """Return the number of results of the parts; 0 without parts."""
    return sizes.outer * sizes.inner * calls[0].numbers[3] if len(calls) > 1 else 0
