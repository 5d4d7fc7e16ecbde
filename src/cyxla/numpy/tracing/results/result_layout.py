"""Memory layouts of results as NumPy chooses them: by ``order=`` and by the layouts of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cyxla._native.dispatch import axes_of
from cyxla.numpy.tracing.arrays.memory_layout import (
    Memory,
    column_major,
    common_axes,
    dense,
    is_column_major,
    row_major,
)
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray

#: Permutation from the dimensions of a program's result to those of the function's result, None for the identity; and
#: whether the result is writeable.
Layout: TypeAlias = "tuple[tuple[int, ...] | None, bool]"
ROW_MAJOR_RESULT: Final[Layout] = (None, True)

# fmt: off
#: Functions whose results have the layout of their arguments, element by element.
ELEMENTWISE: Final = frozenset((
    "clip", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "gradient", "i0", "isclose",
    "nan_to_num", "partition", "roll", "sinc", "sort", "unwrap", "where",
    *(f"fft.{name}" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftshift", "ifftshift")),
))
#: Functions whose results have the layout of their first argument, without the dimensions that ``axis=`` names.
REDUCING: Final = frozenset((
    "average", "mean", "median", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "std", "var",
))
#: Functions whose result is column-major if their first argument is.
COLUMN_MAJOR_KEEPING: Final = frozenset(("delete", "insert", "pad"))
#: Functions that concatenate the arrays of a list, keeping their layout; and the axis along which they stack them.
JOINING: Final = {"block": None, "concatenate": None, "hstack": None, "vstack": None, "stack": 0}
# fmt: on


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse of a permutation."""
    return tuple(np.argsort(axes).tolist())


def layout_of(array: TracedArray) -> Layout:
    """Return NumPy's layout of an array that a function returns."""
    if array.ndim == 0:
        return ROW_MAJOR_RESULT
    axes = None if array.contiguous else axes_of(array.memory)
    return (None if axes is None else inverse(axes), array.writeable)


def set_order(result: TracedArray, order: Any, operands: Iterable[Any]) -> None:
    """Set the layout of a new array from ``order=`` and its operands.

    Parameters
    ----------
    result : TracedArray
        New array, not a view.
    order : str
        "C", "F", "A" or "K".
    operands : iterable of array
        Operands, broadcast to `result`.

    Raises
    ------
    ValueError
        The order is none of these.
    """
    letter = order_letter(order)
    if letter == "C" or result.ndim < 2:
        return
    if letter == "F":
        result.set_memory(column_major(result.shape, result.dtype))
        return
    memories = [memory for value in operands if (memory := memory_of_value(value)) is not None]
    if all(m.flags.c_contiguous for m in memories):
        return
    if letter == "A":
        if all(is_column_major(m) for m in memories):
            result.set_memory(column_major(result.shape, result.dtype))
        return
    axes = common_axes(memories, result.ndim)
    if axes is not None:
        result.set_memory(dense(result.shape, result.dtype, axes))


def set_reduced_layout(result: TracedArray, memory: Memory, axes: Sequence[int]) -> None:
    """Set the layout of a reduction's result: the remaining dimensions keep their order."""
    order = axes_of(memory)
    if order is None or result.ndim < 2:
        return
    remaining = range(memory.ndim) if result.ndim == memory.ndim else [d for d in range(memory.ndim) if d not in axes]
    positions = {d: k for k, d in enumerate(remaining)}
    result.set_memory(dense(result.shape, result.dtype, [positions[d] for d in order if d in positions]))


def axes_like(memory: Memory, letter: str, rank: int) -> tuple[int, ...] | None:
    """Return the order of dimensions of a new array like another one; None for row-major order.

    Parameters
    ----------
    memory : Memory
        Layout of the other array.
    letter : str
        Letter of ``order=``.
    rank : int
        Rank of the new array.
    """
    if letter == "F" or (letter == "A" and is_column_major(memory)):
        return tuple(reversed(range(rank)))
    return axes_of(memory) if letter == "K" and rank == memory.ndim else None


def order_letter(order: Any) -> str:
    """Return the letter of an ``order=`` argument.

    Raises
    ------
    ValueError
        The order is none of C, F, A and K.
    """
    letter = (order or "K").upper()[:1]
    if letter not in "CFAK":
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    return str(letter)


def memory_of_value(value: Any) -> Memory | None:
    """Return the layout of an array; None for other values and for rank 0."""
    value = _elements(value)
    if isinstance(value, TracedArray):
        return value.memory if value.ndim else None
    return value if isinstance(value, np.ndarray) and value.ndim else None


def set_result_layout(result: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Set the layout of a NumPy function's result from its arguments, for functions that keep it."""
    rule = _RULES.get(name)
    if rule is None or kwargs.get("out") is not None:
        return
    first = _elements(args[0])
    for value in map(_elements, result if isinstance(result, (list, tuple)) else (result,)):
        if isinstance(value, TracedArray) and value.contiguous and value.ndim > 1 and value is not first:
            rule(value, args, kwargs)


def _elements(value: Any) -> Any:
    """Return the padded elements of an array of run-time size, and other values as they are."""
    return value.padded if isinstance(value, SizedArray) else value


def _like_arguments(result: TracedArray, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    set_order(result, "K", [*args, *kwargs.values()])


def _like_first(result: TracedArray, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    memory = memory_of_value(args[0])
    if memory is not None and is_column_major(memory):
        result.set_memory(column_major(result.shape, result.dtype))


def _like_first_reduced(result: TracedArray, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    memory = memory_of_value(args[0])
    axis = kwargs.get("axis", args[1] if len(args) > 1 else None)
    if memory is not None and axis is not None:
        set_reduced_layout(result, memory, normalize_axis_tuple(axis, memory.ndim))


def _like_list(axis: int | None, result: TracedArray, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    memories = [m for part in _flatten(args[0]) if (m := memory_of_value(part)) is not None]
    if all(m.flags.c_contiguous for m in memories):
        return
    if axis is not None:
        axis = kwargs.get("axis", args[1] if len(args) > 1 else axis)
        memories = [np.expand_dims(m, axis) for m in memories]
    axes = common_axes(memories, result.ndim, joined=True)
    if axes is not None:
        result.set_memory(dense(result.shape, result.dtype, axes))


def _flatten(values: Any) -> Iterable[Any]:
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(value, (list, tuple)):
            yield from _flatten(value)
        else:
            yield value


def _like_triangle(result: TracedArray, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Set the layout of a selection between the argument and zeros by a row-major mask."""
    set_order(result, "K", [args[0], row_major(result.shape[-2:], np.dtype(bool))])


_RULES: Final[dict[str, Callable[[Any, Sequence[Any], Mapping[str, Any]], None]]] = {
    **dict.fromkeys(ELEMENTWISE, _like_arguments),
    **dict.fromkeys(REDUCING, _like_first_reduced),
    **dict.fromkeys(COLUMN_MAJOR_KEEPING, _like_first),
    **dict.fromkeys(("tril", "triu"), _like_triangle),
    **{name: partial(_like_list, axis) for name, axis in JOINING.items()},
}
