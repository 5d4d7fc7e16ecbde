"""dot and its relatives: sums of products, in an accumulator wider than the operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.numerics.products import batched_product
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, cut_to_common, numpy_dtype
from cyxla.xla.hlo.instruction import Instruction


@dataclass(frozen=True)
class DotDims:
    """The batch and contracting dimensions of a dot; the others are free."""

    lhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    @staticmethod
    def of(ins: Instruction) -> DotDims:
        """Return the dimension numbers of a dot, ragged-dot or scaled-dot."""
        names = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
        return DotDims(*(tuple(ins.attrs[s]) for s in names))

    def lhs_free(self, rank: int) -> tuple[int, ...]:
        """Return the left dimensions that are neither batch nor contracting."""
        return _other_dims(rank, self.lhs_batch + self.lhs_contracting)

    def rhs_free(self, rank: int) -> tuple[int, ...]:
        """Return the right dimensions that are neither batch nor contracting."""
        return _other_dims(rank, self.rhs_batch + self.rhs_contracting)


def _other_dims(rank: int, used: Sequence[int]) -> tuple[int, ...]:
    return tuple(d for d in range(rank) if d not in used)


def contract(lhs: Array, rhs: Array, dims: DotDims, result: ElementType) -> Array:
    """Multiply two arrays: batch dimensions come first, then the free ones of lhs, then those of rhs."""
    lhs_free, rhs_free = dims.lhs_free(lhs.ndim), dims.rhs_free(rhs.ndim)
    batch = [lhs.shape[d] for d in dims.lhs_batch]
    rows, columns = [lhs.shape[d] for d in lhs_free], [rhs.shape[d] for d in rhs_free]
    b, m, n = prod(batch), prod(rows), prod(columns)
    k = prod(lhs.shape[d] for d in dims.lhs_contracting)
    left = lhs.transpose(dims.lhs_batch + lhs_free + dims.lhs_contracting).reshape(b, m, k)
    right = rhs.transpose(dims.rhs_batch + dims.rhs_contracting + rhs_free).reshape(b, k, n)
    return batched_product(left, right, result).reshape((*batch, *rows, *columns))


@evaluates("dot")
def dot(ev: Evaluation, ins: Instruction, lhs: Value, rhs: Value) -> Value:
    """Contract pairs of dimensions. Algorithm and precision are lower bounds of accuracy, so they are ignored."""
    a, b, dims = array_of(lhs), array_of(rhs), DotDims.of(ins)
    if ins.operands[0].shape.is_dynamic or ins.operands[1].shape.is_dynamic:
        pairs = zip(dims.lhs_batch + dims.lhs_contracting, dims.rhs_batch + dims.rhs_contracting, strict=True)
        a, b = cut_to_common(a, b, tuple(pairs))
    return contract(a, b, dims, ins.shape.dtype)


@evaluates("scaled-dot")
def scaled_dot(ev: Evaluation, ins: Instruction, lhs: Value, rhs: Value, *scales: Value) -> Value:
    """Contract operands that are multiplied by their scales first, one scale for each block of elements."""
    a, b = array_of(lhs), array_of(rhs)
    a = _apply_scale(a, array_of(scales[0]))
    b = _apply_scale(b, array_of(scales[1])) if len(scales) > 1 else b
    return contract(a, b, DotDims.of(ins), ins.shape.dtype)


def _apply_scale(x: Array, scale: Array) -> Array:
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    factor = scale.astype(wide)
    if factor.size == 1:
        factor = factor.reshape(())
    else:
        for d, (size, count) in enumerate(zip(x.shape, scale.shape, strict=True)):
            factor = np.repeat(factor, size // max(count, 1), axis=d)
    return np.asarray(x.astype(wide) * factor)


@dataclass(frozen=True)
class _Group:
    """One part of a ragged dot: an index of the leading dimensions, a group, and its rows."""

    prefix: tuple[int, ...]
    number: int
    rows: slice


def _groups(sizes: Array, prefix_shape: tuple[int, ...], extent: int) -> Iterator[_Group]:
    """Yield the groups, one after the other along the ragged dimension and clipped at its end."""
    shape = prefix_shape if sizes.ndim > 1 else ()
    table = sizes.astype(np.int64).reshape(*shape, sizes.shape[-1])
    for prefix in np.ndindex(shape):
        ends = [min(max(e, 0), extent) for e in accumulate(map(int, table[prefix]))]
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            yield _Group(prefix, number, slice(start, end))


@evaluates("ragged-dot")
def ragged_dot(ev: Evaluation, ins: Instruction, lhs: Value, rhs: Value, group_sizes: Value) -> Value:
    """Contract in parts: a left dimension is split into groups, each with its own right operand or result."""
    dims, a, b = DotDims.of(ins), array_of(lhs), array_of(rhs)
    if len(ins.attrs["lhs_ragged_dims"]) != 1:
        raise UnimplementedError("ragged-dot takes one ragged dimension")
    ragged = ins.attrs["lhs_ragged_dims"][0]
    out = np.zeros(ins.shape.dims, numpy_dtype(ins.shape))
    if ragged in dims.lhs_batch:
        mode = _ragged_batch
    else:
        mode = _ragged_contracting if ragged in dims.lhs_contracting else _ragged_free
    mode(ins, dims, a, b, array_of(group_sizes), out)
    return out


def _slices(rank: int, slices: dict[int, slice]) -> tuple[slice, ...]:
    return tuple(slices.get(d, slice(None)) for d in range(rank))


def _single(i: int) -> slice:
    return slice(i, i + 1)


def _ragged_free(ins: Instruction, dims: DotDims, a: Array, b: Array, sizes: Array, out: Array) -> None:
    """Compute ``l[b, m, k] x r[g, b, k, n] -> [b, m, n]``: rows of each group are multiplied by its right operand."""
    ragged, (group_dim,) = ins.attrs["lhs_ragged_dims"][0], ins.attrs["rhs_group_dims"]
    free = dims.lhs_free(a.ndim)
    outer = dims.lhs_batch + free[: free.index(ragged)]  # these come first in the result, too
    inner = DotDims(
        dims.lhs_batch,
        dims.lhs_contracting,
        tuple(d - (d > group_dim) for d in dims.rhs_batch),
        tuple(d - (d > group_dim) for d in dims.rhs_contracting),
    )
    for group in _groups(sizes, tuple(a.shape[d] for d in outer), a.shape[ragged]):
        slices = [_single(i) for i in group.prefix]
        lhs_group = a[_slices(a.ndim, {**dict(zip(outer, slices, strict=False)), ragged: group.rows})]
        right = b.take(group.number, group_dim)
        right = right[_slices(right.ndim, dict(zip(inner.rhs_batch, slices, strict=False)))]
        target = _slices(out.ndim, {**dict(enumerate(slices)), len(outer): group.rows})
        out[target] = contract(lhs_group, right, inner, ins.shape.dtype)


def _ragged_contracting(ins: Instruction, dims: DotDims, a: Array, b: Array, sizes: Array, out: Array) -> None:
    """Compute ``l[b, m, k] x r[b, k, n] -> [g, b, m, n]``: each group sums over its own part of k."""
    ragged = ins.attrs["lhs_ragged_dims"][0]
    number = dims.lhs_contracting.index(ragged)
    outer = dims.lhs_batch + dims.lhs_contracting[:number]
    outer_rhs = dims.rhs_batch + dims.rhs_contracting[:number]
    for group in _groups(sizes, tuple(a.shape[d] for d in outer), a.shape[ragged]):
        slices = [_single(i) for i in group.prefix]
        lhs_group = a[_slices(a.ndim, {**dict(zip(outer, slices, strict=False)), ragged: group.rows})]
        right = b[
            _slices(b.ndim, {**dict(zip(outer_rhs, slices, strict=False)), dims.rhs_contracting[number]: group.rows})
        ]
        batch = dict(enumerate(slices[: len(dims.lhs_batch)], start=1))
        target = _slices(out.ndim, {0: _single(group.number), **batch})
        part = contract(lhs_group, right, dims, ins.shape.dtype)[None]
        out[target] = _add(out[target], part, ins.shape.dtype)


def _add(x: Array, y: Array, dtype: ElementType) -> Array:
    wide = x.astype(np.float64) + y.astype(np.float64) if dtype.is_float else x + y
    return convert_array(np.asarray(wide), dtype)


def _ragged_batch(ins: Instruction, dims: DotDims, a: Array, b: Array, sizes: Array, out: Array) -> None:
    """Compute ``l[b, m, k] x r[b, k, n] -> [b, m, n]``: batch entries are independent, so groups have no effect."""
    out[...] = contract(a, b, dims, ins.shape.dtype)
