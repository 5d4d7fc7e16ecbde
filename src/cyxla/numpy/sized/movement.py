"""Shapes, permutations and repetition of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.functions.resizing import repeat_by_counts
from cyxla.numpy.sized.frames import align, fail_unless, require_equal
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.slices import slice_along
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.sized_array import SizedArray, as_size, raise_unsupported
from cyxla.numpy.tracing.trace import user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, is_traced

_PROBES = (2, 3)  # two sizes with which NumPy is asked where a dimension goes
_np: Any = np  # its functions dispatch to this package


def _moved_axis(func: Callable[..., Any], array: SizedArray, rest: dict[str, Any], name: str) -> int:
    """Return the dimension of NumPy's result that is the run-time dimension of an argument."""
    shapes = []
    for n in _PROBES:
        dummy = _np.broadcast_to(np.int8(0), [n if d == array.axis else k for d, k in enumerate(array.data.shape)])
        shapes.append(call(func, {**rest, name: dummy}).shape)
    return next(d for d, (n, m) in enumerate(zip(*shapes, strict=True)) if n != m)


@sized(
    np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims, np.matrix_transpose,
    np.linalg.matrix_transpose,
)  # fmt: skip
def permute(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Permute dimensions, or insert some of size 1."""
    name = next(iter(arguments))
    array = arguments[name]
    result = call(func, {**arguments, name: array.data})
    return SizedArray(result, _moved_axis(func, array, arguments, name), array.count)


@sized(np.atleast_1d, np.atleast_2d, np.atleast_3d)
def at_least(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Add dimensions."""
    results = [_at_least(func, a) for a in arguments["arys"]]
    return results[0] if len(results) == 1 else tuple(results)


def _at_least(func: Callable[..., Any], array: Any) -> Any:
    if not isinstance(array, SizedArray):
        return func(array)
    shapes = [func(_np.broadcast_to(np.int8(0), [n if d == array.axis else k for d, k in enumerate(array.data.shape)]))
              .shape for n in _PROBES]  # fmt: skip
    axis = next(d for d, (n, m) in enumerate(zip(*shapes, strict=True)) if n != m)
    return SizedArray(func(array.data), axis, array.count)


@sized(np.squeeze)
def squeeze(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Remove dimensions of size 1; a run-time dimension only if it is named, and then its size must be 1."""
    array, axis = arguments["a"], arguments.get("axis")
    if axis is None:
        axes = tuple(d for d, n in enumerate(array.data.shape) if n == 1 and d != array.axis)
        message = "np.squeeze: a dimension of run-time size has size {}: name the dimensions by axis="
        fail_unless(_np.not_equal(array.count, 1), 1, array.count, message)
    else:
        axes = np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
    if array.axis in axes:
        require_equal(array.count, 1, "cannot select an axis to squeeze out which has size not equal to one ({})")
        return func(array.data[(*[slice(None)] * array.axis, slice(0, 1))], axes)
    return SizedArray(func(array.data, axes), array.axis - sum(d < array.axis for d in axes), array.count)


@sized(np.shape)
def shape(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the shape, with a traced integer."""
    return arguments["a"].shape


@sized(np.ndim)
def ndim(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the rank."""
    return arguments["a"].ndim


@sized(np.size)
def size(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the number of elements, or a dimension size."""
    axis = arguments.get("axis")
    return arguments["a"].size if axis is None else arguments["a"].shape[axis]


# -- shapes


def _leading(array: SizedArray) -> int:
    return prod(array.data.shape[: array.axis])


@sized(np.ravel)
def ravel(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Flatten."""
    array = arguments["a"]
    if arguments.get("order", "C") not in ("C", "K", None):
        raise_unsupported(f"be flattened with order={arguments['order']!r}", "transpose it first")
    inner = prod(array.data.shape[array.axis + 1 :])
    total = array.data.size
    if _leading(array) == 1:
        return SizedArray(array.data.reshape(total), 0, as_size(as_traced(array.count * inner), total))
    row: Any = _np.maximum(array.count * inner, 1)
    position = np.arange(total)
    source = position // row * (array.bound * inner) + position % row
    flat: Any = _np.take(array.data.reshape(total), source, mode="clip")
    return SizedArray(flat, 0, as_size(as_traced(array.size), total))


@sized(np.reshape)
def reshape(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Change the shape; at most one dimension of the result has a run-time size."""
    array = arguments["a"]
    if arguments.get("order", "C") != "C":
        raise_unsupported(f"be reshaped with order={arguments['order']!r}", "transpose it first")
    sizes = arguments["shape"]
    sizes = list(sizes) if isinstance(sizes, (tuple, list)) else [sizes]
    unknown = [d for d, n in enumerate(sizes) if is_traced(n)] or [d for d, n in enumerate(sizes) if n == -1]
    if len(unknown) > 1 or (any(is_traced(n) for n in sizes) and -1 in [n for n in sizes if not is_traced(n)]):
        return _reshape_two(array, sizes, unknown)
    flat: Any = _np.ravel(array)
    if not unknown:
        return _to_static(flat, tuple(index(n) for n in sizes))
    return _to_sized(flat, sizes, unknown[0])


def _reshape_two(array: SizedArray, sizes: list[Any], unknown: list[int]) -> Any:
    """Reshape to one traced size and -1, which follows from the other sizes if the traced size is the array's."""
    if len(unknown) > 1 or array.axis != 0:
        raise_unsupported("be reshaped to a shape with two sizes that are known at run time only")
    (axis,) = unknown
    known = prod(n for d, n in enumerate(sizes) if d != axis and n != -1)
    fail_if_empty(array, "cannot reshape array of size 0 into a shape with a size that is unknown")
    rest = prod(array.data.shape[1:])
    if known == 0 or rest % known:
        raise ShapeError(f"cannot reshape {array!r} into shape {sizes}", where=user_line())
    return _np.reshape(array, [rest // known if not is_traced(n) and n == -1 else n for n in sizes])


def _to_static(flat: SizedArray, sizes: tuple[int, ...]) -> Any:
    """Reshape to a shape that is known; runs with another number of elements fail."""
    total = prod(sizes)
    require_equal(flat.count, total, _RESHAPE_MESSAGE.format(sizes))
    if total > flat.bound:
        raise ShapeError(f"cannot reshape {flat!r} into shape {sizes}", where=user_line())
    return TracedArray(flat.data[:total].op).reshape(sizes) if total < flat.bound else flat.data.reshape(sizes)


_RESHAPE_MESSAGE = "cannot reshape array of size {{}} into shape {}"


def _to_sized(flat: SizedArray, sizes: list[Any], axis: int) -> SizedArray:
    others = [index(n) for d, n in enumerate(sizes) if d != axis]
    known = prod(others)
    if known <= 0:
        raise ShapeError(f"cannot reshape {flat!r} into shape {sizes}", where=user_line())
    rows: Any = flat.count // known
    text = ",".join("-1" if d == axis else str(n) for d, n in enumerate(sizes))
    if known > 1:
        require_equal(rows * known, flat.count, _RESHAPE_MESSAGE.replace("{{}}", "{{1}}").format(f"({text})"))
    bound = flat.bound // known
    count = as_size(as_traced(rows), bound)
    if is_traced(sizes[axis]):
        require_equal(sizes[axis], count, f"cannot reshape into shape ({text}): a size is {{}}, and must be {{}}")
        count = as_size(as_traced(sizes[axis]), bound)
    target = (*others[:axis], bound, *others[axis:])
    if prod(others[:axis]) == 1:
        data = flat.data if bound * known == flat.bound else flat.data[: bound * known]
        return SizedArray(data.reshape(target), axis, count)
    inner = prod(others[axis:])
    row: Any = rows * inner
    position = np.arange(prod(target))
    source = position // max(bound * inner, 1) * row + position % max(bound * inner, 1)
    taken: Any = _np.take(flat.data, source, mode="clip")
    return SizedArray(taken.reshape(target), axis, count)


# -- reversal, rotation, repetition


@sized(np.flip, np.flipud, np.fliplr)
def flip(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Reverse dimensions."""
    array = arguments["m"]
    fixed = {"flipud": 0, "fliplr": 1}
    axis = fixed.get(func.__name__, arguments.get("axis"))
    axes = range(array.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
    if array.axis in axes:
        array = slice_along(array, slice(None, None, -1))
    others = tuple(d for d in axes if d != array.axis)
    return SizedArray(_np.flip(array.data, others), array.axis, array.count) if others else array


@sized(np.roll)
def roll(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Rotate elements along a dimension."""
    array, shift, axis = arguments["a"], arguments["shift"], arguments.get("axis")
    if isinstance(shift, (tuple, list)) or isinstance(axis, (tuple, list)):
        shifts, axes = _np.broadcast_arrays(shift, axis)
        for s, d in zip(shifts.tolist(), axes.tolist(), strict=True):
            array = _np.roll(array, s, d)
        return array
    if axis is None:
        flat = _roll_along(_np.ravel(array), shift)
        return flat if array.ndim == 1 else _np.reshape(flat, array.shape)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    if axis == array.axis:
        return _roll_along(array, shift)
    return SizedArray(_np.roll(array.data, shift, axis), array.axis, array.count)


def _roll_along(array: SizedArray, shift: Any) -> SizedArray:
    if not array.bound:
        return array
    source: Any = _np.remainder(np.arange(array.bound) - shift, _np.maximum(array.count, 1))
    return SizedArray(_np.take(array.data, source, axis=array.axis, mode="clip"), array.axis, array.count)


@sized(np.tile)
def tile(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Repeat an array as a whole."""
    array = arguments["A"]
    counts = [index(n) for n in np.atleast_1d(arguments["reps"]).tolist()]
    rank = max(array.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    axis = array.axis + rank - array.ndim
    data = array.data.reshape((*[1] * (rank - array.ndim), *array.data.shape))
    data = _np.tile(data, [1 if d == axis else n for d, n in enumerate(counts)])
    if counts[axis] == 1:
        return SizedArray(data, axis, array.count)
    bound = array.bound * counts[axis]
    source: Any = _np.remainder(np.arange(bound), _np.maximum(array.count, 1))
    repeated = _np.take(data, source, axis=axis, mode="clip") if array.bound else data
    return SizedArray(repeated, axis, as_size(as_traced(array.count * counts[axis]), bound))


@sized(np.repeat)
def repeat(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Repeat each element a number of times."""
    array, repeats, axis = arguments["a"], arguments["repeats"], arguments.get("axis")
    if isinstance(array, SizedArray) and axis is None:
        array = _np.ravel(array)
    axis = 0 if axis is None else int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    if isinstance(repeats, SizedArray) or is_traced(repeats) or np.size(repeats) != 1:
        if not isinstance(array, SizedArray) or array.axis != axis:
            raise_unsupported("be repeated with counts of run-time size")
        return repeat_by_counts(array.data, array.count, repeats, axis)
    count = index(np.asarray(repeats).reshape(()).item())
    data = _np.repeat(array.data, count, axis)
    more = array.count * count if axis == array.axis else array.count
    return SizedArray(data, array.axis, as_size(as_traced(more), data.shape[array.axis]))


@sized(np.broadcast_arrays)
def broadcast_arrays(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Broadcast arrays together."""
    aligned, frame = align(arguments["args"])
    return tuple(frame.wrap(list(func(*aligned))))


__all__ = ["ravel", "reshape"]
