"""Axes of arguments and results of a mapped function, given for whole containers or for each of their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError
from cyxla.numpy.control.lengths import Length, NamedSize, agreed_length, escaped
from cyxla.numpy.tracing.arrays.run_time_sizes import container_kind, flatten_arrays
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.containers import kind_of
from cyxla.numpy.tracing.trace import user_line

Axis = int | None


def check_axes(name: str, axes: Any) -> Any:
    """Return axes, with Python's integers for others, after a check that they are integers and None in containers.

    Raises
    ------
    DTypeError
        Something else is among them.
    """
    if axes is None:
        return None
    kind = kind_of(axes)
    if kind is not None:
        return kind.build(kind.key(axes), [check_axes(name, part) for part in kind.parts(axes)])
    if not isinstance(axes, (bool, np.bool_)):
        try:
            return index(axes)
        except TypeError:
            pass
    raise DTypeError(
        f"vmap: {name} must hold integers and None, in tuples, lists and dicts, but holds {axes!r}", where=user_line()
    )


def axes_of_leaves(name: str, axes: Any, value: Any, path: str) -> list[Axis]:
    """Return the axis of each leaf of a container.

    Parameters
    ----------
    name : str
        Name of the axes in errors.
    axes : int, None or container
        Axes: an entry in the place of a container holds for all of its leaves.
    value : object
        Container.
    path : str
        Access path of the container in errors.

    Raises
    ------
    InvalidArgumentError
        The structures differ.
    """
    if axes is None or isinstance(axes, int):
        return [axes] * len(flatten_arrays(value)[0])
    kind = container_kind(value)
    if kind is None or kind is not kind_of(axes):
        found = "an array" if kind is None else f"a {type(value).__name__}"
        raise InvalidArgumentError(
            f"vmap: {name} has a {type(axes).__name__} for {path}, which is {found}", where=user_line(),
            hint="give an integer or None for it, or a container of the same structure",
        )  # fmt: skip
    parts, entries = kind.parts(value), _entries(name, axes, value, path)
    steps = kind.paths(value)
    return [
        leaf
        for entry, part, step in zip(entries, parts, steps, strict=True)
        for leaf in axes_of_leaves(name, entry, part, path + step)
    ]


def _entries(name: str, axes: Any, value: Any, path: str) -> Sequence[Any]:
    """Return the entries of a container of axes in the order of another container's parts."""
    kind = kind_of(value)
    assert kind is not None
    if isinstance(value, dict) and set(axes) == set(value):
        return [axes[key] for key in value]
    if not isinstance(value, dict) and kind.key(axes) == kind.key(value):
        return kind.parts(axes)
    count, present = len(kind.parts(axes)), len(kind.parts(value))
    detail = f"keys {list(axes)}, but {path} has {list(value)}" if isinstance(value, dict) else (
        f"{count} entries, but {path} has {present}"
    )  # fmt: skip
    raise InvalidArgumentError(f"vmap: {name} has {detail}", where=user_line())


def normalised(axis: int, rank: int, path: str) -> int:
    """Return an axis as one that counts from the front.

    Raises
    ------
    ShapeError
        The array has no such axis.
    """
    if -rank <= axis < rank:
        return axis % rank
    of_rank = "of rank 0, which has no axes" if rank == 0 else f"of rank {rank}, which has no axis {axis}"
    raise ShapeError(f"vmap: {path} is an array {of_rank}", where=user_line(), hint="use None for what all calls share")


def check_leaf(leaf: Any, path: str) -> None:
    """Raise unless a leaf can be mapped over."""
    if isinstance(leaf, (TracedArray, SizedArray, np.ndarray, np.generic, bool, int, float, complex)):
        return
    raise DTypeError(
        f"vmap: {path} is a {type(leaf).__name__}, which has no axis to map over", where=user_line(),
        hint="use None in in_axes for it, or bind it by functools.partial",
    )  # fmt: skip


def common_size(sizes: Sequence[tuple[str, int, Any, int]], axis_size: int | None) -> Length:
    """Return the number of elements; runs in which sizes that are known at run time differ fail.

    Parameters
    ----------
    sizes : sequence of (str, int, int or TracedArray, int)
        Path, axis and size of each array that is mapped over, and the size of the padded array.
    axis_size : int, optional
        Number that the caller states.

    Raises
    ------
    ShapeError
        The sizes differ.
    InvalidArgumentError
        No array is mapped over, and no number is stated.
    """
    if not sizes and axis_size is None:
        raise InvalidArgumentError(
            "vmap: no argument is mapped over", where=user_line(), hint="give one an axis by in_axes, or give axis_size"
        )
    named = [
        NamedSize(f"{escaped(path)} has size {{}} along axis {axis}", size, bound) for path, axis, size, bound in sizes
    ]
    named += [] if axis_size is None else [NamedSize("axis_size is {}", axis_size, axis_size)]
    return agreed_length("vmap", named)
