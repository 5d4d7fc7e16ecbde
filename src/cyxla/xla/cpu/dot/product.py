"""Sizes and strides of a dot, its summation order and its tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.cpu.c.isa_levels import VECTOR_BITS
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.dot.parameters import ROWS
from cyxla.xla.cpu.kernel import cost, machine, prebuilt_calls
from cyxla.xla.cpu.kernel.kernel import Kernel, Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.expand.dot import DotDims, has_packed_rhs, merged_stride

FLOPS_NS = machine.F32_FMA_PER_NS  # multiply-adds of f32 per ns on one core
CHAIN = 1024  # products added up before the sum is set aside
MAX_TASKS = 256
_MAX_SINGLE_TASK_NS = 0.6 * machine.TASK_NS  # work up to this is one task
_TASK_NS = machine.TASK_NS


@dataclass(frozen=True)
class Product:
    """``out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]``, with strides in elements; `out` is dense.

    If `panel` is not 0, the right operand is packed in panels of `panel` columns, each dense ``[k, panel]``, one after
    the other.
    """

    dtype: ElementType
    batch: int
    m: int
    n: int
    k: int
    lhs: tuple[int, int, int]  # strides of b, m, k
    rhs: tuple[int, int, int]  # strides of b, k, n
    panel: int = 0

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Numbers of products, rows, columns and terms."""
        return self.batch, self.m, self.n, self.k

    @property
    def swapped(self) -> Product:
        """Return the product with operands exchanged; the memory of the result is equal if it has one row or column."""
        (ab, am, ak), (bb, bk, bn) = self.lhs, self.rhs
        return Product(self.dtype, self.batch, self.n, self.m, self.k, (bb, bn, bk), (ab, ak, am))

    @property
    def ns(self) -> float:
        """Estimated time on one core in ns."""
        flops = self.batch * self.m * self.n * self.k
        rate = FLOPS_NS if self.dtype is ElementType.F32 else FLOPS_NS / 2
        nbytes = self.batch * self.k * (self.m + self.n) * self.dtype.itemsize
        return max(flops / rate, cost.memory_ns(nbytes))

    @property
    def c_type(self) -> str:
        """C type of an element."""
        return "float" if self.dtype is ElementType.F32 else "double"

    @staticmethod
    def of(ins: Instruction) -> Product:
        """Return the sizes and strides of a dot."""
        lhs, rhs = (o.shape for o in ins.operands)
        d = DotDims.of(ins)
        batch, m, k = (prod(lhs.dims[i] for i in part) for part in d[:3])
        n = prod(rhs.dims[i] for i in d.rhs_free)
        left = _strides(lhs, d[:3])
        if has_packed_rhs(ins):
            width = rhs.dims[2]
            return Product(ins.shape.dtype, batch, m, n, k, left, (0, width, 1), width)
        return Product(
            ins.shape.dtype, batch, m, n, k, left, _strides(rhs, (d.rhs_batch, d.rhs_contracting, d.rhs_free))
        )


def _strides(shape: Shape, parts: tuple[tuple[int, ...], ...]) -> tuple[int, int, int]:
    first, second, third = (merged_stride(shape, part) or 0 for part in parts)
    return first, second, third


def is_symmetric(ins: Instruction) -> bool:
    """Return True if the operands of a dot are a matrix and its transpose: equal sums have the same terms in order."""
    d = DotDims.of(ins)
    left = _source(ins.operands[0], (d.lhs_batch, d.lhs_free, d.lhs_contracting))
    return left == _source(ins.operands[1], (d.rhs_batch, d.rhs_free, d.rhs_contracting))


def _source(
    operand: Instruction, parts: tuple[tuple[int, ...], ...]
) -> tuple[Value, tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the array that an operand is a transpose of, its sizes, and the parts of its dimensions there."""
    source, sizes = resolve(operand), operand.shape.dims
    while source.instruction.opcode == "transpose" and source.shape.dims == sizes:  # not reshaped since
        permutation, (operand,) = source.instruction.attrs["dimensions"], source.instruction.operands
        parts = tuple(tuple(permutation[d] for d in part) for part in parts)
        source, sizes = resolve(operand), operand.shape.dims
    return source, sizes, parts


@dataclass
class Output:
    """Buffer indices of a kernel's operands, and the destination of its sums."""

    epilogue: Epilogue
    left: int
    right: int
    symmetric: bool = False  # True if the result of the contraction is

    @property
    def is_direct(self) -> bool:
        """True if sums are stored without an epilogue."""
        return self.epilogue.is_empty

    @property
    def buffers(self) -> tuple[int, int, int]:
        """Buffer indices of the operands and of the result."""
        return self.left, self.right, len(self.epilogue.reads)

    def prebuilt(self, form: str, numbers: Callable[[], list[int]], template: Kernel) -> Kernel | None:
        """Return a prebuilt kernel, or None if C must be generated.

        Parameters
        ----------
        form : str
            Name of the function without its element type.
        numbers : callable
            Function that returns the arguments.
        template : Kernel
            Kernel to copy everything but the text from.
        """
        if not self.is_direct:
            return None
        dtype = self.epilogue.root.shape.dtype.text
        buffers = len(self.epilogue.reads) + 1 + (template.scratch > 0) + (template.phases > 1)
        return prebuilt_calls.kernel(f"{form}_{dtype}", numbers(), replace(template, text=f"dot, {form}"), buffers)

    @property
    def scratch(self) -> int:
        """Index of the scratch buffer."""
        return len(self.epilogue.reads) + len(self.epilogue.writes)


def tasks(ns: float, units: int) -> int:
    """Return the number of tasks for some work: a power of two, which balances two, four and eight threads."""
    max_tasks = 1 if ns < _MAX_SINGLE_TASK_NS else min(max(2, int(ns / _TASK_NS)), MAX_TASKS)
    return 1 << (max(1, min(max_tasks, units)).bit_length() - 1)


def vector_bytes() -> int:
    """Return the size of a vector register in bytes."""
    return VECTOR_BITS.get(isa_level(), 128) // 8


def registers() -> int:
    """Return the number of vector registers."""
    return 32 if vector_bytes() == 64 else 16


def tile_rows() -> dict[int, int]:
    """Return the number of rows of a tile for each number of vectors, given the registers."""
    return ROWS[registers()]


def panel_width(dtype: ElementType, m: int, k: int, n: int) -> int | None:
    """Return the number of columns of a panel for a prepacked right operand; None if packing does not pay.

    The operand ``[k, n]`` becomes ``[n / width, k, width]``, which a dot reads by contracting its dimension 1 (see
    `cyxla.xla.passes.expand.dot`).
    """
    if dtype not in (ElementType.F32, ElementType.F64) or 0 in (m, k, n):
        return None
    lanes = vector_bytes() // dtype.itemsize
    candidates = [v for v in tile_rows() if v > 1 and n % (v * lanes) == 0]
    return max(candidates) * lanes if candidates else None
