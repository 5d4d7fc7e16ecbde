"""Indexing of traced arrays: reading, parts that share memory, writing, and ``x.at[i]``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.numpy.indexing.arrays import Lookup
from cyxla.numpy.indexing.basic import Box, as_key
from cyxla.numpy.indexing.masks import MaskPlan, Picked
from cyxla.numpy.indexing.parse import Mask, Point, Selection, parse
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.ufuncs.apply import broadcast_to, narrowed
from cyxla.xla.hlo.builder import XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla

Plan = Box | Lookup | MaskPlan


def get(array: TracedArray, key: Any, mode: str | None = None) -> Any:
    """What ``array[key]`` is: for integers, slices and new axes a part that shares memory, else a copy.

    Parameters
    ----------
    array : TracedArray
        The array.
    key : object
        What stands between the brackets.
    mode : str, optional
        What traced indices out of range do: "raise", "clamp", "wrap" or "unchecked"; by default what the program says.

    Returns
    -------
    TracedArray or Picked
        The latter where a mask is traced.
    """
    selection = parse(key, array.shape, mode)
    plan = plan_of(selection, array)
    if isinstance(plan, MaskPlan):
        return Picked(plan, TracedArray(plan.box.read(value_of(array))))
    if isinstance(plan, Lookup) or selection.copies:
        return TracedArray(plan.read(value_of(array)))
    return array.part(plan.read, plan.write, array.memory[as_key(selection.entries)])


def plan_of(selection: Selection, array: TracedArray) -> Plan:
    """How what an index expression names is read and written."""
    if any(isinstance(e, Mask) for e in selection.entries):
        return MaskPlan.of(selection, array.shape)
    return Lookup.of(selection, array.shape) if selection.advanced else Box.of(selection.entries)


def assign(array: TracedArray, key: Any, value: Any) -> None:
    """``array[key] = value``: the value is brought to the array's type and to the sizes of the part."""
    array.overwrite(_assigned(array, key, value))


def _assigned(array: TracedArray, key: Any, value: Any, mode: str | None = None) -> XlaOp:
    selection = parse(key, array.shape, mode)
    plan = plan_of(selection, array)
    op = value_of(array)
    _refuse_sequence(selection, value)
    if isinstance(plan, MaskPlan):
        return plan.write(op, _spread(value, plan, array))
    made: XlaOp = plan.write(op, fitted(value, array, plan.result))
    return made


def _refuse_sequence(selection: Selection, value: Any) -> None:
    """What NumPy does not write although it would fit."""
    if isinstance(value, Picked):
        return
    dimensions = as_traced(value).ndim if isinstance(value, (list, tuple)) else np.ndim(value)
    if selection.scalar and dimensions:
        raise DTypeError("setting an array element with a sequence.", where=_trace.place())
    if selection.masked and dimensions > 1:
        raise DTypeError(
            f"what is written where a mask holds must have at most one dimension, not {dimensions}",
            where=_trace.place(),
        )


def _spread(value: Any, plan: MaskPlan, array: TracedArray) -> XlaOp:
    if isinstance(value, Picked):
        if not plan.like(value.plan):
            raise ShapeError(
                "elements that one traced mask picks are written where another one picks", where=_trace.place(),
                hint="np.where(mask, y, x)",
            )  # fmt: skip
        return as_type_of(value.whole, array)
    return plan.spread(as_type_of(value, array))


def fitted(value: Any, array: TracedArray, sizes: tuple[int, ...]) -> XlaOp:
    """A value to be written to a part of an array.

    Raises
    ------
    ShapeError
        It does not fit the sizes of the part.
    """
    op = as_type_of(value, array)
    have = op.shape.dims
    extra = max(len(have) - len(sizes), 0)
    if all(n == 1 for n in have[:extra]):
        try:
            if np.broadcast_shapes(have[extra:], sizes) == sizes:
                return broadcast_to(xla.reshape(op, have[extra:]) if extra else op, sizes)
        except ValueError:
            pass
    raise ShapeError(f"could not broadcast input array from shape {have} into shape {sizes}", where=_trace.place())


def as_type_of(value: Any, array: TracedArray) -> XlaOp:
    """A value in the type of an array, converted as NumPy does when it writes."""
    if isinstance(value, Picked):
        value.__array__()
    if type(value) in (int, float, complex) and array.dtype.kind != "V":
        number = np.empty((), array.dtype)
        number[()] = value  # raises what NumPy raises
        value = number[()]
    elif isinstance(value, (list, tuple)) and not is_traced(value):
        value = np.array(value, array.dtype)  # as well, of the numbers in it
    return narrowed(as_traced(value), array.dtype)


def scatter_at(array: TracedArray, key: Any, value: Any, opcode: str | XlaComputation) -> None:
    """Combine a value into elements of an array, one after the other, so that a place named twice counts twice.

    Parameters
    ----------
    array : TracedArray
        Is written to.
    key : object
        An index expression.
    value : array_like
        Brought to the array's type and to the sizes of the part.
    opcode : str or XlaComputation
        Of an HLO instruction, or a computation, of an element and a value.
    """
    array.overwrite(_combined(array, key, value, opcode, extra=False))


def _combined(
    array: TracedArray, key: Any, value: Any, opcode: str | XlaComputation, mode: str | None = None, *,
    extra: bool = True,
) -> XlaOp:  # fmt: skip
    """The array with a value combined into elements.

    The value may have further dimensions of size 1 if `extra`, or, as in NumPy, beside indices that are no arrays.
    """
    dtype = array.aval.dtype
    combine = scalar_computation(opcode, dtype) if isinstance(opcode, str) else opcode
    selection = parse(key, array.shape, mode)
    plan = plan_of(selection, array)
    op = value_of(array)
    exact = not extra and not any(isinstance(e, (Mask, Point)) for e in selection.entries)
    if exact and np.ndim(value) > len(plan.result):  # type: ignore[union-attr]
        raise ShapeError("array is not broadcastable to correct shape", where=_trace.place())
    if isinstance(plan, Lookup):
        return plan.write(op, fitted(value, array, plan.result), combine)
    part = plan.read(op) if isinstance(plan, Box) else plan.box.read(op)
    values = fitted(value, array, plan.result) if isinstance(plan, Box) else _spread(value, plan, array)
    made = xla.function_of(opcode)(part, values) if isinstance(opcode, str) else xla.map_([part, values], opcode)
    return plan.write(op, made)


_MODES = {
    None: None, "raise": "raise", "clamp": "clamp", "clip": "clamp", "wrap": "wrap", "unchecked": "unchecked",
    "promise_in_bounds": "unchecked",
}  # fmt: skip


def _mode(name: str | None) -> str | None:
    if name in ("fill", "drop"):
        raise UnimplementedError(f'indexing with mode="{name}"', where=_trace.place(), hint="np.where, mode='clip'")
    if name not in _MODES:
        raise InvalidArgumentError(f"mode={name!r} is none of {', '.join(map(repr, _MODES))}")
    return _MODES[name]


class At:
    """``x.at``: to be indexed with what the methods of `Spot` then work on."""

    def __init__(self, array: TracedArray) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Spot:
        return Spot(self._array, key)


@dataclass(frozen=True)
class Spot:
    """Elements of an array that new arrays differ in; a place that is named twice is changed twice.

    Attributes
    ----------
    array : TracedArray
        The array, which stays as it is.
    key : object
        What stands between the brackets.
    """

    array: TracedArray
    key: Any

    def get(self, *, mode: str | None = None) -> TracedArray:
        """The elements, copied; mode is "raise", "clip", "wrap" or "unchecked"."""
        found = get(self.array, self.key, _mode(mode))
        return found.copy() if isinstance(found, Picked) else TracedArray(value_of(found))  # type: ignore[return-value]

    def set(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """With the elements replaced."""
        return TracedArray(_assigned(self.array, self.key, value, _mode(mode)))

    def apply(self, function: Callable[[Any], Any], *, mode: str | None = None) -> TracedArray:
        """With the elements replaced by a function of them."""
        return self.set(function(get(self.array, self.key, _mode(mode))), mode=mode)

    def add(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """With a value added."""
        return self._combined("or" if self._is_bool else "add", value, mode)

    def subtract(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """With a value subtracted."""
        return self._combined("subtract", value, mode, "iufcV")

    def multiply(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Multiplied by a value."""
        return self._combined("and" if self._is_bool else "multiply", value, mode)

    def divide(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Divided by a value."""
        return self._combined("divide", value, mode, "fcV")

    def power(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """Raised to a power."""
        return self._combined("power", value, mode, "iufcV")

    def min(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """The lesser of the elements and a value."""
        return self._combined("and" if self._is_bool else "minimum", value, mode, "biufV")

    def max(self, value: Any, *, mode: str | None = None) -> TracedArray:
        """The greater of the elements and a value."""
        return self._combined("or" if self._is_bool else "maximum", value, mode, "biufV")

    @property
    def _is_bool(self) -> bool:
        return self.array.dtype.kind == "b"

    def _combined(self, opcode: str, value: Any, mode: str | None, kinds: str = "biufcV") -> TracedArray:
        if self.array.dtype.kind not in kinds:
            raise DTypeError(f"x.at[..]: {opcode} of an array of {self.array.dtype}", where=_trace.place())
        return TracedArray(_combined(self.array, self.key, value, opcode, _mode(mode)))


__all__ = ["At", "Spot", "assign", "fitted", "get", "plan_of", "scatter_at"]
