"""Indexing of traced arrays: reads, views, assignments, and ``x.at[i]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, OutOfRangeError, ShapeError, UnimplementedError
from cyxla.numpy.indexing.advanced import GatherPlan
from cyxla.numpy.indexing.basic import SlicePlan, numpy_key
from cyxla.numpy.indexing.masks import MaskedElements, MaskPlan
from cyxla.numpy.indexing.parse import IntegerEntry, MaskEntry, Selection, parse
from cyxla.numpy.indexing.stored_numbers import require_storable
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.user_program.classes import class_of, is_number
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.records import dataclass
from cyxla.xla.hlo.builder import XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla

Plan = SlicePlan | GatherPlan | MaskPlan


def get(array: TracedArray, key: Any, mode: str | None = None) -> Any:
    """Return ``array[key]``: for integers, slices and new axes a view, else a copy.

    Parameters
    ----------
    array : TracedArray
        Array to index.
    key : object
        Index expression.
    mode : str, optional
        Mode of traced indices out of range: "raise", "clamp", "wrap" or "unchecked"; by default that of the program.

    Returns
    -------
    TracedArray or MaskedElements
        The latter for a traced mask.
    """
    if is_number(array) and not issubclass(class_of(array), np.generic):
        raise _error_of_number(class_of(array))
    try:
        selection = parse(key, array.shape, mode)
    except OutOfRangeError as error:
        raise (_error_of_number(class_of(array)) if is_number(array) else error) from None
    plan = make_plan(selection, array)
    if isinstance(plan, MaskPlan):
        return MaskedElements(plan, TracedArray(plan.basic.read(value_of(array))))
    if isinstance(plan, GatherPlan) or selection.copies:
        return TracedArray(plan.read(value_of(array)))
    return array.make_view(plan.read, plan.write, array.memory[numpy_key(selection.entries)])


def _error_of_number(kind: type) -> Exception:
    """Return the error of an index to a number of a class."""
    if issubclass(kind, np.generic):
        return IndexError("invalid index to scalar variable.")
    return TypeError(f"'{kind.__name__}' object is not subscriptable")


def make_plan(selection: Selection, array: TracedArray) -> Plan:
    """Return the plan that reads and writes the elements of a parsed index."""
    if any(isinstance(e, MaskEntry) for e in selection.entries):
        return MaskPlan.of(selection, array.shape)
    return GatherPlan.of(selection, array.shape) if selection.advanced else SlicePlan.of(selection.entries)


def assign(array: TracedArray, key: Any, value: Any) -> None:
    """Assign ``array[key] = value``; the value is converted and broadcast."""
    if is_number(array):
        kind = class_of(array)
        name = f"numpy.{kind.__name__}" if issubclass(kind, np.generic) else kind.__name__
        raise TypeError(f"'{name}' object does not support item assignment")
    array.overwrite(_emit_assign(array, key, value, is_item=True))


def _emit_assign(array: TracedArray, key: Any, value: Any, mode: str | None = None, *, is_item: bool = False) -> XlaOp:
    selection = parse(key, array.shape, mode)
    plan = make_plan(selection, array)
    op = value_of(array)
    _check_value_rank(selection, value)
    if isinstance(plan, MaskPlan):
        return plan.write(op, _masked_values(value, plan, array))
    result: XlaOp = plan.write(op, broadcast_value(value, array, plan.result, is_item=is_item and selection.basic))
    return result


def _check_value_rank(selection: Selection, value: Any) -> None:
    """Refuse values that NumPy refuses although they would fit."""
    if isinstance(value, SizedArray):
        return
    dimensions = as_traced(value).ndim if isinstance(value, (list, tuple)) else np.ndim(value)
    if selection.scalar and dimensions:
        raise DTypeError("setting an array element with a sequence.", where=_trace.user_line())
    if selection.masked and dimensions > 1:
        raise DTypeError(
            f"a value assigned to the elements of a mask must have at most one dimension, not {dimensions}",
            where=_trace.user_line(),
        )


def _masked_values(value: Any, plan: MaskPlan, array: TracedArray) -> XlaOp:
    if isinstance(value, MaskedElements) and value.plan is not None and plan.selects_same(value.plan):
        return convert_for_assignment(value.basic_part, array)
    if isinstance(value, SizedArray):
        return plan.expand(value.astype(array.dtype))
    return plan.broadcast_values(convert_for_assignment(value, array))


def broadcast_value(value: Any, array: TracedArray, sizes: tuple[int, ...], *, is_item: bool = False) -> XlaOp:
    """Convert and broadcast a value for assignment to a part of an array; `require_storable` takes `is_item`.

    Raises
    ------
    ShapeError
        The value cannot be broadcast to the part.
    """
    op = convert_for_assignment(value, array, is_item=is_item)
    shape = op.shape.dims
    leading = max(len(shape) - len(sizes), 0)
    if all(n == 1 for n in shape[:leading]):
        try:
            if np.broadcast_shapes(shape[leading:], sizes) == sizes:
                return broadcast_to(xla.reshape(op, shape[leading:]) if leading else op, sizes)
        except ValueError:
            pass
    raise ShapeError(f"could not broadcast input array from shape {shape} into shape {sizes}", where=_trace.user_line())


def convert_for_assignment(value: Any, array: TracedArray, *, is_item: bool = False) -> XlaOp:
    """Convert a value to the dtype of an array as NumPy does in assignments; `require_storable` takes `is_item`."""
    if isinstance(value, SizedArray):
        value.__array__()
    if type(value) in (int, float, complex) and array.dtype.kind != "V":
        scalar = np.empty((), array.dtype)
        scalar[()] = value  # raises NumPy's errors
        value = scalar[()]
    elif isinstance(value, (list, tuple)) and not is_traced(value):
        value = np.array(value, array.dtype)  # raises NumPy's errors
    require_storable(value, array.dtype, is_item=is_item)
    return convert(value_of(as_traced(value)), array.dtype)


def scatter_at(array: TracedArray, key: Any, value: Any, opcode: str | XlaComputation) -> None:
    """Combine values into elements of an array in order; repeated indices are applied repeatedly.

    Parameters
    ----------
    array : TracedArray
        Array to update.
    key : object
        Index expression.
    value : array_like
        Values, converted to the dtype of the array and broadcast.
    opcode : str or XlaComputation
        Opcode, or a computation of an element and a value.
    """
    array.overwrite(_emit_update(array, key, value, opcode, allow_leading=False))


def _emit_update(
    array: TracedArray, key: Any, value: Any, opcode: str | XlaComputation, mode: str | None = None, *,
    allow_leading: bool = True,
) -> XlaOp:  # fmt: skip
    """Return the array with a value combined into elements.

    The value may have extra leading dimensions of size 1 if `allow_leading` is set, or, as in NumPy, if no index is an
    array.
    """
    dtype = array.aval.dtype
    combine = scalar_computation(opcode, dtype) if isinstance(opcode, str) else opcode
    selection = parse(key, array.shape, mode)
    plan = make_plan(selection, array)
    op = value_of(array)
    strict_rank = not allow_leading and not any(isinstance(e, (MaskEntry, IntegerEntry)) for e in selection.entries)
    if strict_rank and np.ndim(value) > len(plan.result):  # type: ignore[union-attr]
        raise ShapeError("array is not broadcastable to correct shape", where=_trace.user_line())
    if isinstance(plan, GatherPlan):
        return plan.write(op, broadcast_value(value, array, plan.result), combine)
    part = plan.read(op) if isinstance(plan, SlicePlan) else plan.basic.read(op)
    values = (
        broadcast_value(value, array, plan.result)
        if isinstance(plan, SlicePlan)
        else _masked_values(value, plan, array)
    )
    result = xla.function_of(opcode)(part, values) if isinstance(opcode, str) else xla.map_([part, values], opcode)
    return plan.write(op, result)


_MODES = {
    None: None, "raise": "raise", "clamp": "clamp", "clip": "clamp", "wrap": "wrap", "unchecked": "unchecked",
    "promise_in_bounds": "unchecked",
}  # fmt: skip


def _mode(name: str | None) -> str | None:
    if name in ("fill", "drop"):
        raise UnimplementedError(
            f'x.at[..]: mode="{name}" is not supported', where=_trace.user_line(), hint="use mode='clip' and np.where"
        )
    if name not in _MODES:
        raise InvalidArgumentError(f"mode={name!r} is not one of {', '.join(map(repr, _MODES))}")
    return _MODES[name]


class IndexedUpdates:
    """Object ``x.at``, whose indexing returns an `IndexedUpdate`."""

    def __init__(self, array: TracedArray) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> IndexedUpdate:
        return IndexedUpdate(self._array, key)


@dataclass(frozen=True)
class IndexedUpdate:
    """Indexed elements of an array for functional updates; repeated indices are applied repeatedly.

    Attributes
    ----------
    array : TracedArray
        Array to copy.
    key : object
        Index expression.
    """

    array: TracedArray
    key: Any

    def get(self, *, mode: str | None = None) -> TracedArray:
        """Return a copy of the elements; mode is "raise", "clip", "wrap" or "unchecked"."""
        elements = get(self.array, self.key, _mode(mode))
        return elements.copy() if isinstance(elements, SizedArray) else TracedArray(value_of(elements))  # type: ignore[return-value]

    def set(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with the elements replaced."""
        return TracedArray(_emit_assign(self.array, self.key, value, _mode(mode)))

    def apply(self, function: Callable[[Any], Any], *, mode: str | None = None) -> TracedArray:
        """Return the array with a function applied to the elements."""
        return self.set(function(get(self.array, self.key, _mode(mode))), mode=mode)

    def add(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with a value added to the elements."""
        return self._update("or" if self._is_bool else "add", value, mode)

    def subtract(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with a value subtracted from the elements."""
        return self._update("subtract", value, mode, "iufcV")

    def multiply(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with the elements multiplied by a value."""
        return self._update("and" if self._is_bool else "multiply", value, mode)

    def divide(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with the elements divided by a value."""
        return self._update("divide", value, mode, "fcV")

    def power(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with the elements raised to a power."""
        return self._update("power", value, mode, "iufcV")

    def min(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with the minimum of the elements and a value."""
        return self._update("and" if self._is_bool else "minimum", value, mode, "biufV")

    def max(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Return the array with the maximum of the elements and a value."""
        return self._update("or" if self._is_bool else "maximum", value, mode, "biufV")

    @property
    def _is_bool(self) -> bool:
        return self.array.dtype.kind == "b"

    def _update(self, opcode: str, value: Any, mode: str | None, kinds: str = "biufcV") -> TracedArray:
        if self.array.dtype.kind not in kinds:
            raise DTypeError(
                f"x.at[..]: {opcode} is not defined for an array of dtype {self.array.dtype}", where=_trace.user_line()
            )
        return TracedArray(_emit_update(self.array, self.key, value, opcode, _mode(mode)))


__all__ = ["IndexedUpdate", "IndexedUpdates", "assign", "broadcast_value", "get", "make_plan", "scatter_at"]
