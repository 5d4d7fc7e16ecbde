"""Builder functions that create arrays or move elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.attributes import PaddingDim, SliceDim
from cyxla.xla.hlo.builder.computation import XlaComputation
from cyxla.xla.hlo.builder.elementwise import Operand, lift
from cyxla.xla.hlo.builder.xla_builder import XlaBuilder, XlaOp, deferred


@deferred
def parameter(builder: XlaBuilder, number: int, shape: Shape, name: str = "") -> XlaOp:
    """Return argument `number` of the computation."""
    return builder.add("parameter", (), {"parameter_number": number}, shape=shape, name=name or f"p{number}")


@deferred
def iota(builder: XlaBuilder, shape: Shape, dimension: int = 0) -> XlaOp:
    """Return an array whose elements are their own index along a dimension."""
    return builder.add("iota", (), {"iota_dimension": dimension}, shape=shape)


@deferred
def reshape(operand: XlaOp, dims: Sequence[int]) -> XlaOp:
    """Change the sizes of an array; the elements keep their row-major order."""
    return operand.builder.add("reshape", [operand], shape=operand.shape.with_dims(dims))


@deferred
def collapse(operand: XlaOp, dimensions: Sequence[int]) -> XlaOp:
    """Merge consecutive dimensions into one."""
    dims = operand.shape.dims
    if list(dimensions) != list(range(dimensions[0], dimensions[0] + len(dimensions))) or dimensions[-1] >= len(dims):
        raise ShapeError(f"dimensions {list(dimensions)} of {operand.shape} do not follow each other")
    merged = prod(dims[d] for d in dimensions)
    return reshape(operand, (*dims[: dimensions[0]], merged, *dims[dimensions[-1] + 1 :]))


@deferred
def dynamic_reshape(operand: XlaOp, sizes: Sequence[XlaOp], bounds: Sequence[int], dynamic: Sequence[bool]) -> XlaOp:
    """Change the sizes of an array to values computed at run time."""
    result = operand.shape.with_dims(bounds, dynamic)
    return operand.builder.add("dynamic-reshape", [operand, *sizes], shape=result)


@deferred
def bitcast(operand: XlaOp, shape: Shape) -> XlaOp:
    """Reinterpret the memory of an array as another shape and layout."""
    return operand.builder.add("bitcast", [operand], shape=shape)


@deferred
def transpose(operand: XlaOp, permutation: Sequence[int]) -> XlaOp:
    """Reorder the dimensions: dimension i of the result is dimension permutation[i] of the operand."""
    return operand.builder.add("transpose", [operand], {"dimensions": tuple(permutation)})


@deferred
def reverse(operand: XlaOp, dimensions: Sequence[int]) -> XlaOp:
    """Reverse the order of the elements along dimensions."""
    return operand.builder.add("reverse", [operand], {"dimensions": tuple(dimensions)})


@deferred
def slice_(operand: XlaOp, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None) -> XlaOp:
    """Take the elements from starts to limits with strides."""
    steps = strides if strides is not None else [1] * len(starts)
    if not len(starts) == len(limits) == len(steps):
        raise ShapeError(f"slice has {len(starts)} starts, {len(limits)} limits and {len(steps)} strides")
    ranges = tuple(map(SliceDim, starts, limits, steps))
    return operand.builder.add("slice", [operand], {"slice": ranges})


@deferred
def slice_in_dim(operand: XlaOp, start: int, limit: int, stride: int = 1, dimension: int = 0) -> XlaOp:
    """Take a range of one dimension and all of the others."""
    dims = operand.shape.dims
    if not 0 <= dimension < len(dims):
        raise ShapeError(f"{operand.shape} has no dimension {dimension}")
    ranges = [SliceDim(0, n) for n in dims]
    ranges[dimension] = SliceDim(start, limit, stride)
    return operand.builder.add("slice", [operand], {"slice": tuple(ranges)})


@deferred
def static_index(operand: XlaOp, key: Any) -> XlaOp:
    """Index with integers, slices of positive step, and an ellipsis, as NumPy does."""
    shape = operand.shape
    keys = list(key) if isinstance(key, tuple) else [key]
    if keys.count(Ellipsis) > 1 or len(keys) - keys.count(Ellipsis) > shape.rank:
        raise ShapeError(f"{len(keys)} indices for {shape}")
    at = keys.index(Ellipsis) if Ellipsis in keys else len(keys)
    keys[at : at + 1] = [slice(None)] * (shape.rank - len(keys) + keys.count(Ellipsis))
    ranges, kept_dims = [], []
    for axis, (k, size) in enumerate(zip(keys, shape.dims, strict=True)):
        ranges.append(_range(k, size, axis))
        if isinstance(k, slice):
            kept_dims.append(axis)
    sliced = operand.builder.add("slice", [operand], {"slice": tuple(ranges)})
    return sliced if len(kept_dims) == shape.rank else reshape(sliced, [sliced.shape.dims[d] for d in kept_dims])


def _range(key: Any, size: int, axis: int) -> SliceDim:
    if isinstance(key, slice):
        start, stop, step = key.indices(size)
        if step < 1:
            raise ShapeError(f"step {step} along dimension {axis} is not positive", hint="reverse the dimension first")
        return SliceDim(start, max(start, stop), step)
    if not hasattr(key, "__index__"):
        raise InvalidArgumentError(
            f"{key!r} is not an index", hint="use dynamic_slice or gather for values of the program"
        )
    i = key.__index__()
    if not -size <= i < size:
        raise ShapeError(f"index {i} is outside dimension {axis} of size {size}")
    return SliceDim(i % size, i % size + 1)


@deferred
def pad(operand: XlaOp, value: Operand, padding: Sequence[Sequence[int]]) -> XlaOp:
    """Pad with `value` around and between the elements; negative numbers remove elements.

    Parameters
    ----------
    operand : XlaOp
        Array to pad.
    value : XlaOp or scalar
        Padding value.
    padding : sequence of (low, high) or (low, high, interior)
        Padding of each dimension.
    """
    config = tuple(PaddingDim(*p) for p in padding)
    return operand.builder.add("pad", [operand, lift(operand.builder, value, operand.shape)], {"padding": config})


@deferred
def pad_in_dim(operand: XlaOp, value: Operand, dimension: int, low: int, high: int) -> XlaOp:
    """Pad one dimension with `value` before and after its elements."""
    return pad(operand, value, [(low, high) if d == dimension else (0, 0) for d in range(operand.shape.rank)])


@deferred
def concatenate(operands: Sequence[XlaOp], dimension: int) -> XlaOp:
    """Concatenate arrays along a dimension."""
    return operands[0].builder.add("concatenate", operands, {"dimensions": (dimension,)})


def _starts(operand: XlaOp, starts: Sequence[Operand] | XlaOp) -> list[XlaOp]:
    if isinstance(starts, XlaOp):
        return [starts]
    like = next((s.shape for s in starts if isinstance(s, XlaOp)), Shape.array(ElementType.S32))
    return [lift(operand.builder, s, like) for s in starts]


@deferred
def dynamic_slice(operand: XlaOp, starts: Sequence[Operand] | XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Take a slice of given sizes at start indices computed at run time, clamped so that it fits."""
    return operand.builder.add(
        "dynamic-slice", [operand, *_starts(operand, starts)], {"dynamic_slice_sizes": tuple(sizes)}
    )


@deferred
def dynamic_update_slice(operand: XlaOp, update: XlaOp, starts: Sequence[Operand] | XlaOp) -> XlaOp:
    """Replace the slice that `dynamic_slice` would take."""
    return operand.builder.add("dynamic-update-slice", [operand, update, *_starts(operand, starts)])


@deferred
def gather(
    operand: XlaOp,
    indices: XlaOp,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    start_index_map: Sequence[int],
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    indices_are_sorted: bool = False,
) -> XlaOp:
    """Gather slices at the indices in an array."""
    attrs = {
        "offset_dims": tuple(offset_dims), "collapsed_slice_dims": tuple(collapsed_slice_dims),
        "start_index_map": tuple(start_index_map), "operand_batching_dims": tuple(operand_batching_dims),
        "start_indices_batching_dims": tuple(start_indices_batching_dims), "index_vector_dim": index_vector_dim,
        "slice_sizes": tuple(slice_sizes), "indices_are_sorted": indices_are_sorted,
    }  # fmt: skip
    return operand.builder.add("gather", [operand, indices], attrs)


@deferred
def scatter(
    operands: XlaOp | Sequence[XlaOp],
    indices: XlaOp,
    updates: XlaOp | Sequence[XlaOp],
    to_apply: XlaComputation,
    *,
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    scatter_dims_to_operand_dims: Sequence[int],
    index_vector_dim: int,
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> XlaOp:
    """Combine updates into arrays at the indices in an array."""
    inputs, changes = as_list(operands), as_list(updates)
    attrs = {
        "update_window_dims": tuple(update_window_dims), "inserted_window_dims": tuple(inserted_window_dims),
        "scatter_dims_to_operand_dims": tuple(scatter_dims_to_operand_dims),
        "input_batching_dims": tuple(input_batching_dims),
        "scatter_indices_batching_dims": tuple(scatter_indices_batching_dims), "index_vector_dim": index_vector_dim,
        "indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices,
    }  # fmt: skip
    return indices.builder.add("scatter", [*inputs, indices, *changes], attrs, called=[to_apply])


def as_list(values: XlaOp | Sequence[XlaOp]) -> list[XlaOp]:
    """Return one value or several as a list."""
    return [values] if isinstance(values, XlaOp) else list(values)


@deferred
def tuple_(builder: XlaBuilder, elements: Sequence[XlaOp]) -> XlaOp:
    """Create a tuple."""
    return builder.add("tuple", elements)


@deferred
def get_tuple_element(operand: XlaOp, index: int) -> XlaOp:
    """Return one element of a tuple."""
    return operand.builder.add("get-tuple-element", [operand], {"index": index})


@deferred
def get_dimension_size(operand: XlaOp, dimension: int) -> XlaOp:
    """Return the size of a dimension at run time."""
    return operand.builder.add("get-dimension-size", [operand], {"dimensions": (dimension,)})


@deferred
def set_dimension_size(operand: XlaOp, size: Operand, dimension: int) -> XlaOp:
    """Make a dimension smaller than its bound at run time."""
    size_operand = lift(operand.builder, size, Shape.array(ElementType.S32))
    return operand.builder.add("set-dimension-size", [operand, size_operand], {"dimensions": (dimension,)})


@deferred
def copy(operand: XlaOp) -> XlaOp:
    """Copy a value."""
    return operand.builder.add("copy", [operand])


@deferred
def copy_start(operand: XlaOp, *, cross_program_prefetch_index: int | None = None) -> XlaOp:
    """Start a copy."""
    return operand.builder.add("copy-start", [operand], {"cross_program_prefetch_index": cross_program_prefetch_index})


@deferred
def copy_done(operand: XlaOp) -> XlaOp:
    """Wait for the result of `copy_start`."""
    return operand.builder.add("copy-done", [operand])


@deferred
def opt_barrier(operand: XlaOp) -> XlaOp:
    """Return the same value; nothing is moved across the barrier."""
    return operand.builder.add("opt-barrier", [operand])
