"""gather and scatter: slices at the indices in an array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.records import dataclass
from cyxla.types import UNBOUNDED
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.combiners import combine_at
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, zero_extended
from cyxla.xla.hlo.instruction import Instruction

_FAR = np.int64(2**62)  # beyond any dimension, and safe to add to


@dataclass(frozen=True)
class Indexing:
    """Common parts of gather and scatter: the slice of an array for each index vector.

    Attributes
    ----------
    vector_dims : tuple of int
        Dimension of the array for each component of an index vector.
    vector_dim : int
        Dimension of the indices that holds the vector; their rank if the indices are scalars.
    batching : tuple of (int, int)
        Pairs of batching dimensions of the array and of the indices.
    dropped : tuple of int
        Dimensions of the array that slices do not have.
    """

    vector_dims: tuple[int, ...]
    vector_dim: int
    batching: tuple[tuple[int, int], ...]
    collapsed: tuple[int, ...]

    @staticmethod
    def of(ins: Instruction, vector: str, batching: str, index_batching: str, collapsed: str) -> Indexing:
        """Return the indexing of an instruction; gather and scatter have different attribute names."""
        attrs = ins.attrs
        pairs = tuple(zip(attrs[batching], attrs[index_batching], strict=True))
        return Indexing(attrs[vector], attrs["index_vector_dim"], pairs, attrs[collapsed])

    def batch(self, indices: Array) -> tuple[int, ...]:
        """Return the sizes of the indices without the vector."""
        return tuple(n for d, n in enumerate(indices.shape) if d != self.vector_dim)

    def starts(self, indices: Array, rank: int) -> list[Array | None]:
        """Return start indices in each dimension of the array, with the batch's shape; None is always 0."""
        vectors = indices[..., None] if self.vector_dim == indices.ndim else np.moveaxis(indices, self.vector_dim, -1)
        batch = vectors.shape[:-1]
        starts: list[Array | None] = [None] * rank
        for k, d in enumerate(self.vector_dims):
            starts[d] = _as_int64(vectors[..., k])
        for d, index_dim in self.batching:
            axis = index_dim - (index_dim > self.vector_dim)
            shape = [1] * len(batch)
            shape[axis] = batch[axis]
            starts[d] = np.broadcast_to(np.arange(batch[axis]).reshape(shape), batch)
        return starts

    def window_dims(self, rank: int) -> list[int]:
        """Return the dimensions of the array that slices keep, in order."""
        excluded = {*self.collapsed, *(d for d, _ in self.batching)}
        return [d for d in range(rank) if d not in excluded]


def _as_int64(x: Array) -> Array:
    if x.dtype == np.uint64:
        x = np.minimum(x, np.uint64(_FAR))
    return np.asarray(np.clip(x.astype(np.int64), -_FAR, _FAR))


def _permutation(batch: Sequence[int], window: Sequence[int]) -> list[int]:
    """Return the permutation of (batch.., window..) to dimensions `batch` and `window` of the result."""
    order = [0] * (len(batch) + len(window))
    for n, d in enumerate((*batch, *window)):
        order[d] = n
    return order


@evaluates("gather")
def gather(ev: Evaluation, ins: Instruction, operand: Value, indices: Value) -> Value:
    """Gather slices of the operand, clamped so that they fit, in the shape of the indices."""
    x, index = array_of(operand), array_of(indices)
    sizes, offset_dims = ins.attrs["slice_sizes"], ins.attrs["offset_dims"]
    if ins.operands[0].shape.is_dynamic:
        x, sizes = _extended(ins, x)
    indexing = Indexing.of(
        ins, "start_index_map", "operand_batching_dims", "start_indices_batching_dims", "collapsed_slice_dims"
    )
    window_dims = indexing.window_dims(x.ndim)
    whole_dims = [d for d in window_dims if sizes[d] == x.shape[d]]  # a slice of a whole dimension starts at 0
    windowed = [d for d in window_dims if d not in whole_dims]
    parts = [d for d in range(x.ndim) if d not in whole_dims]
    starts = [
        s if s is None else np.clip(s, 0, x.shape[d] - sizes[d]) for d, s in enumerate(indexing.starts(index, x.ndim))
    ]
    stacked = (*indexing.batch(index), *(sizes[d] for d in windowed))
    at = _coordinates(parts, windowed, starts, sizes, len(indexing.batch(index)))
    slices = x.transpose(*parts, *whole_dims)[tuple(np.broadcast_to(c, stacked) for c in at)] if parts else x
    slices = np.broadcast_to(slices, stacked + tuple(x.shape[d] for d in whole_dims))
    batch = [d for d in range(ins.shape.rank) if d not in offset_dims]
    offsets = [offset_dims[window_dims.index(d)] for d in (*windowed, *whole_dims)]
    return np.ascontiguousarray(slices.transpose(_permutation(batch, offsets))) if slices.ndim else slices


def _extended(ins: Instruction, x: Array) -> tuple[Array, list[int]]:
    """Return the operand with zeros up to its bounds, but in dimensions that slices take whole, and the slice sizes."""
    a, shape = ins.attrs, ins.operands[0].shape
    offset_of = dict(
        zip(
            [d for d in range(x.ndim) if d not in (*a["collapsed_slice_dims"], *a["operand_batching_dims"])],
            a["offset_dims"],
            strict=True,
        )
    )
    whole = {d for d, o in offset_of.items() if a["slice_sizes"][d] == shape.dims[d] and ins.shape.dynamic[o]}
    parts = [d for d in range(x.ndim) if d not in whole and shape.dims[d] != UNBOUNDED]
    return zero_extended(x, parts, shape), [x.shape[d] if d in whole else n for d, n in enumerate(a["slice_sizes"])]


def _coordinates(
    dims: Sequence[int], windowed: Sequence[int], starts: Sequence[Array | None], sizes: Sequence[int], batch_rank: int
) -> tuple[Array, ...]:
    """Return one index array for each of `dims` that broadcasts to [batch.., window..]; `windowed` vary in a window."""
    coordinates = []
    for d in dims:
        start = starts[d]
        base = (
            np.zeros((1,) * (batch_rank + len(windowed)), np.int64) if start is None else _widen(start, len(windowed))
        )
        if d in windowed:
            shape = [1] * (batch_rank + len(windowed))
            shape[batch_rank + windowed.index(d)] = sizes[d]
            base = base + np.arange(sizes[d]).reshape(shape)
        coordinates.append(base)
    return tuple(coordinates)


def _widen(x: Array, extra: int) -> Array:
    return x.reshape(x.shape + (1,) * extra)


@evaluates("scatter")
def scatter(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Combine updates into the operands, in the order of the indices; a slice that is not fully inside is skipped."""
    number = len(operands) // 2
    arrays = [array_of(o) for o in operands[:number]]
    updates = [array_of(o) for o in operands[number + 1 :]]
    if any(o.shape.is_dynamic for o in ins.operands):
        return _scatter_bounded(ev, ins, arrays, array_of(operands[number]), updates)
    results = _scatter(ev, ins, arrays, array_of(operands[number]), updates)
    return tuple(results) if ins.shape.is_tuple else results[0]


def _scatter_bounded(
    ev: Evaluation, ins: Instruction, arrays: list[Array], indices: Array, updates: list[Array]
) -> Value:
    """Scatter within the bounds, as many updates as there are indices, and cut the results to the present sizes."""
    number, rank = len(arrays), updates[0].ndim
    present = tuple(slice(min(n)) for n in zip(*(a.shape for a in arrays), strict=True))
    wide = [zero_extended(a, range(a.ndim), o.shape) for a, o in zip(arrays, ins.operands[:number], strict=True)]
    batch = [d for d in range(rank) if d not in ins.attrs["update_window_dims"]]
    of_indices = [d for d in range(indices.ndim) if d != ins.attrs["index_vector_dim"]]
    least = [min(n) for n in zip(*(u.shape for u in updates), strict=True)]
    cut = [slice(None)] * indices.ndim
    for b, d in zip(batch, of_indices, strict=True):
        least[b] = min(least[b], indices.shape[d])
        cut[d] = slice(least[b])
    results = _scatter(ev, ins, wide, indices[tuple(cut)], [u[tuple(map(slice, least))] for u in updates])
    shaped = [r[present] for r in results]
    return tuple(shaped) if ins.shape.is_tuple else shaped[0]


def _scatter(
    ev: Evaluation, ins: Instruction, arrays: list[Array], indices: Array, updates: list[Array]
) -> list[Array]:
    positions, fits, order = _targets(ins, arrays[0].shape, indices, updates[0].shape)
    is_inside = fits.ravel()
    values = [u.transpose(order).reshape(-1)[is_inside] for u in updates]
    flat = [a.reshape(-1).copy() for a in arrays]
    results = combine_at(ev, ins.called[0], flat, positions.ravel()[is_inside], values)
    return [r.reshape(a.shape) for r, a in zip(results, arrays, strict=True)]


def _targets(
    ins: Instruction, shape: tuple[int, ...], index: Array, update_shape: tuple[int, ...]
) -> tuple[Array, Array, list[int]]:
    """Return the row-major index of each update element, a mask of slices inside, and the order (batch.., window..)."""
    attrs, rank = ins.attrs, len(shape)
    indexing = Indexing.of(
        ins,
        "scatter_dims_to_operand_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "inserted_window_dims",
    )
    window = list(attrs["update_window_dims"])
    batch = [d for d in range(len(update_shape)) if d not in window]
    window_dims = indexing.window_dims(rank)
    sizes, bounds, update = [1] * rank, [1] * rank, ins.operands[-1].shape
    for d, u in zip(window_dims, window, strict=True):
        sizes[d] = update_shape[u]
        bounds[d] = max(update.dims[u], sizes[d])  # of an unbounded dimension, the size
    starts = indexing.starts(index, rank)
    full_sizes = tuple(update_shape[d] for d in (*batch, *window))
    fits = np.ones((1,) * len(full_sizes), np.bool_)
    for d, start in enumerate(starts):
        if start is not None:
            fits = fits & _widen((start >= 0) & (start <= shape[d] - bounds[d]), len(window))
    positions = np.zeros((1,) * len(full_sizes), np.int64)
    for d, at in enumerate(_coordinates(range(rank), window_dims, starts, sizes, len(batch))):
        positions = positions * shape[d] + at
    return np.broadcast_to(positions, full_sizes), np.broadcast_to(fits, full_sizes), [*batch, *window]
