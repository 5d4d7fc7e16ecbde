"""Arrays of run-time size as leaves of containers, checks of their sizes, and other bounds of their padded elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, in_order_of, value_of
from cyxla.numpy.tracing.containers import LEAF, Kind, Tree, kind_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package

_SIZE_BITS = 31  # sizes below 2^31 are packed in pairs into the number of a failure


# -- containers


def container_kind(value: Any) -> Kind | None:
    """Return the kind of a container; None for a leaf, such as an array of run-time size."""
    return None if isinstance(value, SizedArray) else kind_of(value)


def flatten_arrays(value: Any) -> tuple[list[Any], Tree]:
    """Flatten a container as `containers.flatten` does, but keep arrays of run-time size as leaves."""
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves)


def _flatten(value: Any, leaves: list[Any]) -> Tree:
    kind = container_kind(value)
    if kind is None:
        leaves.append(value)
        return LEAF
    return Tree(kind, kind.key(value), tuple([_flatten(part, leaves) for part in kind.parts(value)]))


def array_paths(value: Any, prefix: str = "") -> list[str]:
    """Return the access path of each leaf of a container of which arrays of run-time size are leaves."""
    kind = container_kind(value)
    if kind is None:
        return [prefix]
    steps = zip(kind.paths(value), kind.parts(value), strict=True)
    return [path for step, part in steps for path in array_paths(part, prefix + step)]


def map_arrays(function: Callable[[Any], Any], value: Any) -> Any:
    """Map a function over the leaves of a container of which arrays of run-time size are leaves."""
    leaves, tree = flatten_arrays(value)
    return tree.build(list(map(function, leaves)))


# -- parts of arrays


def elements_of(leaf: Any) -> Any:
    """Return the padded elements of an array of run-time size; other values as they are."""
    return leaf.padded if isinstance(leaf, SizedArray) else leaf


def sizes_of(leaf: Any) -> dict[int, Any]:
    """Return the run-time sizes of a value by dimension."""
    return leaf.counts if isinstance(leaf, SizedArray) else {}


def of_sizes(data: Any, counts: dict[int, Any]) -> Any:
    """Return padded elements as an array of run-time size, if it has any such dimension."""
    return SizedArray(data, counts) if counts else data


def inserted(counts: dict[int, Any], axis: int, count: Any = None) -> dict[int, Any]:
    """Return run-time sizes by dimension after a new dimension, of a run-time size or not."""
    moved = {d + (d >= axis): n for d, n in counts.items()}
    return moved if count is None else {**moved, axis: count}


def removed(counts: dict[int, Any], axis: int) -> dict[int, Any]:
    """Return run-time sizes by dimension without a dimension."""
    return {d - (d > axis): n for d, n in counts.items() if d != axis}


def resized(data: TracedArray, axis: int, bound: int) -> TracedArray:
    """Return padded elements with another bound; more padding is zeros."""
    axis %= data.ndim
    old = data.shape[axis]
    if old == bound:
        return data
    op = value_of(data)
    if old > bound:
        return in_order_of(data, xla.slice_in_dim(op, 0, bound, 1, axis))
    return in_order_of(data, xla.pad_in_dim(op, values.scalar(op, 0), axis, 0, bound - old))


# -- checks


def fail_unless(
    holds: Any, first: Any, second: Any, message: str, error: Callable[..., Exception] = ShapeError
) -> None:
    """Make runs in which a condition does not hold fail with a message that shows two sizes."""
    pair: Any = first * (1 << _SIZE_BITS) + second

    def make_error(number: int) -> Exception:
        return error(message.format(number >> _SIZE_BITS, number & (1 << _SIZE_BITS) - 1))

    failed = value_of(as_traced(_np.logical_not(holds)))
    require_current().fail_if(failed, value_of(as_traced(pair, np.int64)), make_error)


def fitted(value: Any, like: SizedArray, name: str) -> TracedArray:
    """Return the padded elements of a value in the bounds of an array, with zeros in the padding.

    Runs in which their sizes differ fail.

    Raises
    ------
    ShapeError
        They differ in rank, or in a size that is known.
    """
    array = value if isinstance(value, SizedArray) else as_traced(value)
    known = [d for d in range(like.ndim) if d not in like.counts and d not in sizes_of(array)]
    if array.ndim != like.ndim or any(array.shape[d] != like.shape[d] for d in known):
        raise ShapeError(
            f"{name} has shape {_shape_text(array)}, but the array has shape {_shape_text(like)}", where=user_line()
        )
    data = elements_of(array)
    for d, bound in enumerate(like.padded.shape):
        if d not in known:
            message = f"{name} has size {{}} along axis {d}, but the array has size {{}}"
            _require_equal(array.shape[d], like.shape[d], message)
        data = resized(data, d, bound)
    return filled(SizedArray(data, like.counts), 0)


def _shape_text(array: Any) -> str:
    """Return a shape for messages, with n for run-time sizes."""
    sizes = ["n" if isinstance(n, TracedArray) else str(n) for n in array.shape]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def _require_equal(size: Any, other: Any, message: str) -> None:
    operations = [value_of(n).instruction for n in (size, other) if isinstance(n, TracedArray)]
    if len(operations) < 2 or operations[0] is not operations[1]:
        fail_unless(_np.equal(size, other), size, other, message)
