"""Rewrite dots into the form that has kernels: one type throughout, and dimension groups that can be merged.

Before::

    ROOT d = bf16[8,5] dot(bf16[3,8,4] a, bf16[4,3,5] b), lhs_contracting_dims={0,2}, rhs_contracting_dims={1,0}

After::

    x = f32[8,3,4] transpose(convert(a)), dimensions={1,0,2}
    y = f32[3,4,5] transpose(convert(b)), dimensions={1,0,2}
    d = f32[8,5] dot(x, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}
    ROOT r = bf16[8,5] convert(d)

A transpose that only renumbers dimensions is removed, and the dot reads its operand. Floats narrower than 32 bits are
multiplied and added in f32 and rounded once. An operand is transposed only if its batch, free or contracting dimensions
are not adjacent in memory, or if it is a large left operand whose contracted dimension is not contiguous.

A long product of two vectors, which has no rows to distribute over tasks, becomes a sum, which is split into parts::

    ROOT d = f64[] dot(f64[1000000] a, f64[1000000] b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    ROOT d = f64[] reduce(multiply(a, b), 0), dimensions={0}, to_apply=add

So does the product of a vector with a part of an array whose place is known at run time: the sum reads the array
itself, where a dot would read a copy of the part::

    part = f64[600,400] dynamic-slice(f64[600,500] a, 0, i), dynamic_slice_sizes={600,400}
    ROOT d = f64[400] dot(f64[600] x, part), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    ROOT d = f64[400] reduce(multiply(broadcast(x), part), 0), dimensions={0}, to_apply=add
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Rewrite dots that are not in that form."""
    folded = rewrite_each(module, {"dot": _fold_transposes})
    return rewrite_each(module, {"dot": _dot}) or folded


_PANEL_BYTES = (64, 128, 192, 256)
_VECTOR_BYTES = 1 << 22  # of both vectors; a longer product is worth several tasks
_PART_ELEMENTS = 1 << 15  # of a part of an array that is not worth a copy; smaller ones stay in cache
# Least sizes of a left operand that is transposed to make its contracted dimension contiguous.
_MIN_CONTRACTED, _MIN_FREE = 256, 64

DimGroups: TypeAlias = tuple[
    tuple[int, ...], tuple[int, ...], tuple[int, ...]
]  # batch, free, contracting in memory order


class DotDims(NamedTuple):
    """Dimensions of a dot's operands by role; contracting dimensions in the left operand's order."""

    lhs_batch: tuple[int, ...]
    lhs_free: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    rhs_free: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    @staticmethod
    def of(ins: Instruction) -> DotDims:
        """Return the dimensions of a dot."""
        a = ins.attrs
        pairs = sorted(zip(a["lhs_contracting_dims"], a["rhs_contracting_dims"], strict=True))
        left, right = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
        lhs_batch, rhs_batch = tuple(a["lhs_batch_dims"]), tuple(a["rhs_batch_dims"])
        lhs_free = tuple(d for d in range(ins.operands[0].shape.rank) if d not in lhs_batch + left)
        rhs_free = tuple(d for d in range(ins.operands[1].shape.rank) if d not in rhs_batch + right)
        return DotDims(lhs_batch, lhs_free, left, rhs_batch, rhs_free, right)


def merged_stride(shape: Shape, dims: Sequence[int]) -> int | None:
    """Return the stride in elements of some dimensions of a row-major array that are merged into one.

    Returns
    -------
    int or None
        None if they are not adjacent in memory; 0 if there is at most one element.
    """
    strides = [1] * shape.rank
    for d in range(shape.rank - 2, -1, -1):
        strides[d] = strides[d + 1] * shape.dims[d + 1]
    wide = [d for d in dims if shape.dims[d] != 1]
    if not wide:
        return 0
    for d, inner in pairwise(wide):
        if strides[d] != strides[inner] * shape.dims[inner]:
            return None
    return strides[wide[-1]]


def are_mergeable(shape: Shape, groups: Sequence[Sequence[int]]) -> bool:
    """Return True if the dimensions of each group can be merged into one."""
    return shape.size == 0 or all(merged_stride(shape, g) is not None for g in groups)


def _needs_transposed_lhs(ins: Instruction, dims: DotDims) -> bool:
    """Return True if the left operand has to be transposed: kernels read along its contracted dimension repeatedly."""
    lhs = ins.operands[0].shape
    free, contracted = (prod(lhs.dims[d] for d in part) for part in (dims.lhs_free, dims.lhs_contracting))
    columns = prod(ins.operands[1].shape.dims[d] for d in dims.rhs_free)
    is_large = contracted >= _MIN_CONTRACTED and free >= _MIN_FREE and columns >= 2 * _MIN_FREE and not dims.lhs_batch
    return is_large and lhs.dtype.is_float and merged_stride(lhs, dims.lhs_contracting) != 1


def has_packed_rhs(ins: Instruction) -> bool:
    """Return True if the right operand is packed in panels ``[n / width, k, width]``, which kernels read directly.

    Its dimension 1 is contracted, and a row of a panel is one to four vectors of 64 bytes::

        d = f32[128,12,64] dot(f32[128,768] x, f32[12,768,64] w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    """
    lhs, rhs = (o.shape for o in ins.operands)
    dims = DotDims.of(ins)
    if dims.rhs_batch or dims.rhs_contracting != (1,) or rhs.rank != 3 or rhs.size == 0 or lhs.size == 0:
        return False
    types = {ins.shape.dtype, lhs.dtype, rhs.dtype}
    floats = len(types) == 1 and types <= {ElementType.F32, ElementType.F64}
    return floats and rhs.dims[2] * rhs.dtype.itemsize in _PANEL_BYTES and are_mergeable(lhs, dims[:3])


def has_kernel_order(ins: Instruction) -> bool:
    """Return True if the operands' dimensions have the order that kernels require."""
    d = DotDims.of(ins)
    groups = (d[:3], (d.rhs_batch, d.rhs_contracting, d.rhs_free))
    return has_packed_rhs(ins) or all(are_mergeable(o.shape, g) for o, g in zip(ins.operands, groups, strict=True))


def work_type(ins: Instruction) -> ElementType:
    """Return the type to compute in: the widest of all; integers and predicates have kernels that widen."""
    types = [ins.shape.dtype, *(o.shape.dtype for o in ins.operands)]
    if not all(t.is_float for t in types):
        return max(types, key=lambda t: t.bits) if all(t.is_complex for t in types) else ins.shape.dtype
    return max((*types, ElementType.F32), key=lambda t: t.bits)


def _is_long_product(ins: Instruction, dims: DotDims) -> bool:
    """Return True if a dot is one long sum of products of floats in the memory order of both operands."""
    lhs, rhs = (o.shape for o in ins.operands)
    floats = ins.shape.dtype is lhs.dtype is rhs.dtype and lhs.dtype in (ElementType.F32, ElementType.F64)
    flat = not ins.shape.rank and dims.lhs_contracting == dims.rhs_contracting
    return floats and flat and (lhs.size + rhs.size) * lhs.dtype.itemsize >= _VECTOR_BYTES


_Side: TypeAlias = tuple[Instruction, tuple[int, ...]]  # operand, and its contracted dimensions


def _parts_of_arrays(ins: Instruction, dims: DotDims) -> Iterator[tuple[_Side, _Side]]:
    """Yield the vector and the large part of an array that a dot multiplies, unless others use the part too."""
    left: _Side = (ins.operands[0], dims.lhs_contracting)
    right: _Side = (ins.operands[1], dims.rhs_contracting)
    if dims.lhs_batch or len({ins.shape.dtype, *(o.shape.dtype for o in ins.operands)}) > 1:
        return
    for vector, part in ((left, right), (right, left)):
        is_vector = vector[0].shape.size == prod(vector[0].shape.dims[d] for d in vector[1])
        is_part = part[0].opcode == "dynamic-slice" and len(part[0].users) == 1 and part[0].shape.size >= _PART_ELEMENTS
        in_order = all(list(d) == sorted(d) for _, d in (vector, part))
        if is_vector and is_part and in_order and ins.shape.dtype in (ElementType.F32, ElementType.F64):
            yield vector, part


def _sum_over_part(ins: Instruction, vector: _Side, part: _Side, write: Writer) -> Instruction:
    shape, contracted = part[0].shape, part[1]
    factor = write.reshape(vector[0], [shape.dims[d] for d in contracted])
    product = write.op("multiply", write.broadcast(factor, shape.logical, contracted), part[0])
    return write.reshape(write.sum(product, contracted), ins.shape.dims)


def _dot(ins: Instruction) -> Instruction | None:
    dims, write, work = DotDims.of(ins), Writer(ins.computation), work_type(ins)
    if _is_long_product(ins, dims):
        return write.sum(write.op("multiply", *ins.operands), dims.lhs_contracting)
    for vector, matrix in _parts_of_arrays(ins, dims):
        return _sum_over_part(ins, vector, matrix, write)
    inexact = work.is_float or work.is_complex
    groups: tuple[DimGroups, DimGroups] = (dims[:3], (dims.rhs_batch, dims.rhs_contracting, dims.rhs_free))
    sides = [(o, g) for o, g in zip(ins.operands, groups, strict=True)]
    right_types = not inexact or all(t is work for t in (ins.shape.dtype, *(o.shape.dtype for o in ins.operands)))
    transpose_lhs = _needs_transposed_lhs(ins, dims)
    if right_types and has_kernel_order(ins) and not transpose_lhs:
        return None
    attrs = dict(ins.attrs)
    names = (("lhs_batch_dims", None, "lhs_contracting_dims"), ("rhs_batch_dims", "rhs_contracting_dims", None))
    operands = []
    transposed = (
        transpose_lhs or not are_mergeable(sides[0][0].shape, sides[0][1]),
        not are_mergeable(sides[1][0].shape, sides[1][1]),
    )
    if has_packed_rhs(ins):
        transposed = (transpose_lhs, False)
    for (operand, group), keys, transpose in zip(sides, names, transposed, strict=True):
        x = write.convert(operand, work) if inexact else operand
        if transpose:
            x = write.transpose(x, [d for part in group for d in part])
            group = _renumber(group)
        attrs.update({key: part for key, part in zip(keys, group, strict=True) if key})
        operands.append(x)
    shape = ins.shape.with_dtype(work) if inexact else ins.shape.logical
    return write.convert(ins.computation.add("dot", operands, attrs, shape=shape), ins.shape.dtype)


def _fold_transposes(ins: Instruction) -> Instruction | None:
    """Fold a transpose of an operand into the dimension numbers, if that has a kernel and gives the same result."""
    attrs, operands = dict(ins.attrs), list(ins.operands)
    for n, side in enumerate(("lhs", "rhs")):
        names = (f"{side}_batch_dims", f"{side}_contracting_dims")
        while operands[n].opcode == "transpose":
            order, source = operands[n].attrs["dimensions"], operands[n].operands[0]
            batch, contracting = (tuple(order[d] for d in attrs[name]) for name in names)
            used_dims = [d for name in names for d in attrs[name]]
            free = [order[d] for d in range(len(order)) if d not in used_dims]
            # The free dimensions of the result have the order of the operand.
            if free != sorted(free) or not are_mergeable(source.shape, (batch, free, contracting)):
                break
            attrs.update(zip(names, (batch, contracting), strict=True))
            operands[n] = source
    if operands == list(ins.operands):
        return None
    return ins.computation.add("dot", operands, attrs, shape=ins.shape)


def _renumber(group: DimGroups) -> DimGroups:
    """Return the same groups, numbered consecutively."""
    a, b, c = (len(part) for part in group)
    return tuple(range(a)), tuple(range(a, a + b)), tuple(range(a + b, a + b + c))
