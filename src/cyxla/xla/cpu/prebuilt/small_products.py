"""Small products, whose prebuilt kernels take a fraction of the time that NumPy needs to begin."""

from __future__ import annotations

from typing import Final

from cyxla.types import ElementType
from cyxla.xla.cpu.dot.emit import dot
from cyxla.xla.cpu.dot.inner_products import runs_along_k
from cyxla.xla.cpu.dot.product import Product
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.expand.dot import has_kernel_order, has_packed_rhs

# Measured: up to here, kernels take at most 0.8 of the time of `numpy.matmul`, for the most part a third.
MAX_MULTIPLICATIONS: Final = 1 << 13
MAX_ROWS: Final = 64  # of all matrices of a batch
MAX_INNER_PRODUCTS: Final = 32
MAX_PACKED_DEPTH: Final = 64  # contracted elements, where the right operand is copied into whole vectors
MAX_TRANSPOSED: Final = 1 << 10  # elements of an operand that is transposed

_VECTOR_BYTES: Final = 64  # widest vectors of the kernels
_TYPES: Final = (ElementType.F32, ElementType.F64)


def is_small(ins: Instruction) -> bool:
    """Return whether the prebuilt kernel of a dot is certainly faster than NumPy's function."""
    shapes = (ins.shape, *(o.shape for o in ins.operands))
    if ins.shape.dtype not in _TYPES or len({s.dtype for s in shapes}) > 1 or not all(s.size for s in shapes):
        return False
    if not has_kernel_order(ins) or has_packed_rhs(ins):
        return False
    if any(o.opcode == "transpose" and o.shape.size > MAX_TRANSPOSED for o in ins.operands):
        return False
    p = Product.of(ins)
    return p.batch * p.m * p.n * p.k <= MAX_MULTIPLICATIONS and _is_quick(p.swapped if p.n == 1 else p)


def _is_quick(p: Product) -> bool:
    """Return whether the rows of a product are few for its kernel, and the copies short."""
    if runs_along_k(p):
        return p.batch * p.m * p.n <= MAX_INNER_PRODUCTS
    is_copied = p.rhs[2] != 1 or p.n * p.dtype.itemsize < _VECTOR_BYTES
    return p.batch * p.m <= MAX_ROWS and (p.k <= MAX_PACKED_DEPTH or not is_copied)


def step_of(ins: Instruction) -> Step:
    """Return the step of a dot alone, prebuilt however short it is."""
    with prebuilt_calls.any_cost():
        made = dot(Group(GroupKind.DOT, [ins], [ins]))
    assert isinstance(made, Step)
    return made
