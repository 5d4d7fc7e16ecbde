"""Diagonals, triangles, grids, blocks and padding of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.sized.creation import arange
from cyxla.numpy.sized.frames import rank_of, require_equal, shape_of
from cyxla.numpy.sized.movement import broadcast_to_sizes
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, product, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package


# -- diagonals


def _diagonal(array: SizedArray, offset: Any, axis1: int, axis2: int) -> Any:
    """Return diagonals of matrices as the last dimension."""
    if array.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = (normalize_axis_index(d, array.ndim) for d in (axis1, axis2))
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    offset = index(offset)

    def read(op: XlaOp) -> XlaOp:
        # A zero beyond the sizes says that a product need not be computed there; diagonals are read out of order.
        return value_of(_np.diagonal(filled(array.like(TracedArray(op)), 0), offset, first, second))

    data = array.padded.make_view(read, None, np.diagonal(array.padded.memory, offset, first, second))
    counts = {d - sum(a < d for a in (first, second)): n for d, n in array.counts.items() if d not in (first, second)}
    if first in array.counts or second in array.counts:
        rows, columns = array.shape[first], array.shape[second]
        length = _least(rows, columns - offset) if offset >= 0 else _least(rows + offset, columns)
        length = length if offset == 0 else _np.maximum(length, 0)
        counts[array.ndim - 2] = as_size(as_traced(length, np.int64), data.shape[-1])
    return SizedArray(data, counts)


def _least(first: Any, second: Any) -> Any:
    if isinstance(first, TracedArray) and isinstance(second, TracedArray) and same_size(first, second):
        return first
    return _np.minimum(first, second)


@sized(np.diagonal, np.linalg.diagonal)
def diagonal(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return diagonals of matrices."""
    if "x" in arguments:
        return _diagonal(arguments["x"], arguments.get("offset", 0), -2, -1)
    offset, axis1, axis2 = (arguments.get(n, k) for n, k in (("offset", 0), ("axis1", 0), ("axis2", 1)))
    return _diagonal(arguments["a"], offset, axis1, axis2)


@sized(np.trace, np.linalg.trace)
def trace(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Sum along a diagonal."""
    if arguments.get("out") is not None:
        raise_unsupported("be computed with out=", "use the result")
    return _np.sum(diagonal(func, arguments), axis=-1, dtype=arguments.get("dtype"))


@sized(np.diag, np.diagflat)
def diag(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the diagonal of a matrix, or the matrix with a diagonal."""
    array, k = arguments["v"], index(arguments.get("k", 0))
    if func.__name__ == "diagflat":
        array = _np.ravel(array)
    if array.ndim == 2:
        return _diagonal(array, k, 0, 1)
    if array.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    data = func(filled(array, 0), k)
    side = array.count if k == 0 else as_size(as_traced(array.count + abs(k)), data.shape[0])
    return SizedArray(data, {0: side, 1: side})


# -- triangles


@sized(np.tril, np.triu)
def triangle(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Zero the elements on one side of a diagonal."""
    array = arguments["m"]
    if array.ndim == 1:
        array = broadcast_to_sizes(array, [array.count, array.count])
    return array.like(call(func, {**arguments, "m": array.padded}))


@sized(np.tril_indices_from, np.triu_indices_from)
def triangle_indices(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the indices of a triangle."""
    array, k = arguments["arr"], arguments.get("k", 0)
    ones = array.like(_np.ones_like(array.padded, dtype=bool))
    return _np.nonzero((_np.tril if func.__name__.startswith("tril") else _np.triu)(ones, k))


@sized(np.diag_indices_from)
def diag_indices_from(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the indices of the diagonal of an array of equal sizes."""
    array = arguments["arr"]
    if array.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    message = "All dimensions of input must be of equal length"
    known = [n for n in array.shape if not isinstance(n, TracedArray)]
    if len(set(known)) > 1:
        raise ValueError(message)
    first, *others = array.counts.values()
    for n in [*others, *known[:1]]:
        require_equal(first, n, message, ValueError)
    return (np.arange(known[0]) if known else arange(first),) * array.ndim


# -- grids


@sized(np.meshgrid)
def meshgrid(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return coordinate arrays of a grid."""
    vectors, indexing = list(arguments["xi"]), arguments.get("indexing", "xy")
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(vectors)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    vectors = [v if isinstance(v, SizedArray) else as_traced(v) for v in vectors]
    lines = [(v if v.ndim == 1 else _np.ravel(v))[_along(order[k], rank)] for k, v in enumerate(vectors)]
    if not arguments.get("sparse"):
        sizes = [shape_of(lines[order.index(d)])[d] for d in range(rank)]
        lines = [broadcast_to_sizes(x, sizes) for x in lines]
    return tuple([x.copy() for x in lines] if arguments.get("copy", True) else lines)


def _along(axis: int, rank: int) -> tuple[Any, ...]:
    """Return the index that makes a vector an array along one of several dimensions."""
    return tuple([slice(None) if d == axis else None for d in range(rank)])


@sized(np.ix_)
def ix_(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return index vectors, each along its own dimension."""
    vectors = [v if isinstance(v, SizedArray) else as_traced(v) for v in arguments["args"]]
    if any(v.ndim != 1 for v in vectors):
        raise ValueError("Cross index must be 1 dimensional")
    vectors = [_np.nonzero(v)[0] if v.dtype.kind == "b" else v for v in vectors]
    return tuple([v[_along(k, len(vectors))] for k, v in enumerate(vectors)])


@sized(np.kron)
def kron(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute the Kronecker product."""
    a, b = (v if isinstance(v, SizedArray) else as_strong(v) for v in (arguments["a"], arguments["b"]))
    rank = max(a.ndim, b.ndim)
    a, b = (x[(*[None] * (rank - x.ndim), ...)] for x in (a, b))
    spread: Any = a[tuple([k for _ in range(rank) for k in (slice(None), None)])]
    spread_b: Any = b[tuple([k for _ in range(rank) for k in (None, slice(None))])]
    sizes = [product(pair) for pair in zip(shape_of(a), shape_of(b), strict=True)]
    return _np.reshape(spread * spread_b, sizes)


# -- blocks


@sized(np.block)
def block(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Concatenate nested lists of arrays, from the innermost lists outwards."""
    arrays = arguments["arrays"]
    depth = _depth(arrays)
    rank = max([depth, *[rank_of(a) for a in _leaves(arrays)]])
    return _block(arrays, depth, rank)


def _leaves(arrays: Any) -> list[Any]:
    return [a for part in arrays for a in _leaves(part)] if isinstance(arrays, list) else [arrays]


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise TypeError("arrays is a tuple. Only lists can be used to arrange blocks")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("List at arrays cannot be empty")
    depths = {_depth(part) for part in arrays}
    if len(depths) > 1:
        raise ValueError(f"List depths are mismatched: there are lists of depths {sorted(depths)}")
    return 1 + depths.pop()


def _block(arrays: Any, depth: int, rank: int) -> Any:
    if isinstance(arrays, list):
        return _np.concatenate([_block(part, depth - 1, rank) for part in arrays], -depth)
    array = arrays if isinstance(arrays, SizedArray) else as_strong(arrays)
    return array[(*[None] * (rank - array.ndim), ...)].copy()


# -- padding


@sized(np.pad)
def pad(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Pad an array."""
    array, mode = arguments["array"], arguments.get("mode", "constant")
    options = arguments.get("kwargs", {})
    if is_traced(arguments["pad_width"]) or not isinstance(array, SizedArray):
        raise_unsupported("be padded by a number that is known at run time", "np.concatenate joins arrays of any size")
    widths = _widths(arguments["pad_width"], array.ndim)
    if mode == "constant":
        value = options.get("constant_values", 0)
        if np.ndim(value) or set(options) - {"constant_values"}:
            raise_unsupported("be padded by several numbers", "np.concatenate joins arrays of any size")
        return _pad_constant(array, widths, value)
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        if axis in array.counts:
            array = _pad_by_indices(array, axis, width, mode, options)
        else:
            own = [width if d == axis else (0, 0) for d in range(array.ndim)]
            array = array.like(_np.pad(array.padded, own, mode, **options))
    return array


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * rank
        for axis, width in pad_width.items():
            pairs[axis] = (width, width) if isinstance(width, int) else width
        pad_width = pairs
    numbers = np.asarray(pad_width)
    if numbers.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    if (numbers < 0).any():
        raise ValueError("index can't contain negative values")
    return [(int(a), int(b)) for a, b in np.broadcast_to(numbers, (rank, 2))]


def _pad_constant(array: SizedArray, widths: Sequence[tuple[int, int]], value: Any) -> SizedArray:
    cell = np.zeros(1, array.dtype)
    number = value.astype(array.dtype) if isinstance(value, TracedArray) else None
    if number is None:
        cell[0] = np.asarray(value)[()]
        number = cell[0]
    data = filled(array, (lambda op: value_of(number)) if isinstance(number, TracedArray) else _scalar(number))
    padded = _np.pad(data, widths, constant_values=number)
    counts = {
        d: as_size(as_traced(n + sum(widths[d])), padded.shape[d]) if any(widths[d]) else n
        for d, n in array.counts.items()
    }
    return SizedArray(padded, counts)


def _scalar(number: Any) -> Callable[[Any], Any]:
    return lambda op: values.scalar(op, number)


def _edge(i: Any, n: Any) -> Any:
    return _np.clip(i, 0, n - 1)


def _wrap(i: Any, n: Any) -> Any:
    return _np.remainder(i, n)


def _symmetric(i: Any, n: Any) -> Any:
    k: Any = _np.remainder(i, 2 * n)
    return _np.minimum(k, 2 * n - 1 - k)


def _reflect(i: Any, n: Any) -> Any:
    period: Any = _np.maximum(2 * (n - 1), 1)
    k: Any = _np.remainder(i, period)
    return _np.minimum(k, 2 * (n - 1) - k)


_SOURCES = {"edge": _edge, "wrap": _wrap, "symmetric": _symmetric, "reflect": _reflect}


def _pad_by_indices(array: SizedArray, axis: int, width: tuple[int, int], mode: str, options: Any) -> SizedArray:
    """Pad by elements at other indices."""
    if mode not in _SOURCES or options.get("reflect_type", "even") != "even":
        raise_unsupported(f"be padded with mode={mode!r} and these options", "use mode='constant' or 'edge'")
    fail_if_empty(array, f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'", [axis])
    count, bound = array.counts[axis], array.padded.shape[axis] + sum(width)
    source = _SOURCES[mode](np.arange(bound) - width[0], _np.maximum(count, 1))
    data = _np.take(array.padded, source, axis=axis, mode="clip") if array.padded.shape[axis] else array.padded
    return SizedArray(data, {**array.counts, axis: as_size(as_traced(count + sum(width)), data.shape[axis])})


@sized(np.linalg.multi_dot)
def multi_dot(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Multiply several matrices."""
    arrays = list(arguments["arrays"])
    result = arrays[0]
    for array in arrays[1:]:
        result = _np.dot(result, array)
    return result
