"""Operators and methods of `TracedArray`: tables of the NumPy functions that they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import DTypeError
from cyxla.numpy.array_methods import bitcast, number_methods, python_numbers
from cyxla.numpy.array_methods.flat_array import flat, set_flat
from cyxla.numpy.tracing.arrays.deferred_array import DeferredArray, defer_ufunc, has_element_type
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.layout_reads import note_sharing
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList, arrays_of_sized_lists
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, cast, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implementation_of
from cyxla.numpy.tracing.results.result_layout import set_order
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import user_line
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.numpy.tracing.user_program.doubts import pass_on, refuse_float
from cyxla.numpy.ufuncs.apply import call, equals_no_number
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "divmod": np.divmod, "pow": np.power, "lshift": np.left_shift, "rshift": np.right_shift,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "matmul": np.matmul,
}  # fmt: skip
_COMPARISONS = {
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_CONJUGATE: Any = np.conjugate
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def _clip(self: TracedArray, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """Clip with a single bound allowed, unlike the function."""
    return np.clip(self, min, max, out=out, **kwargs)


_METHODS: dict[str, Callable[..., Any]] = {
    "all": np.all, "any": np.any, "argmax": np.argmax, "argmin": np.argmin, "argpartition": np.argpartition,
    "argsort": np.argsort, "choose": np.choose, "clip": _clip,
    "compress": lambda a, c, axis=None: np.compress(c, a, axis),
    "cumprod": np.cumprod, "cumsum": np.cumsum, "diagonal": np.diagonal, "dot": np.dot, "max": np.max,
    "mean": np.mean, "min": np.min, "nonzero": np.nonzero, "prod": np.prod, "ravel": np.ravel, "repeat": np.repeat,
    "round": np.round, "searchsorted": np.searchsorted, "squeeze": np.squeeze, "std": np.std, "sum": np.sum,
    "swapaxes": np.swapaxes, "take": np.take, "trace": np.trace, "var": np.var,
    "put": np.put,
}  # fmt: skip
_SCALAR = (TracedArray, float, int, bool, complex, np.generic, np.ndarray, list, tuple, range)


def _apply_operator(ufunc: np.ufunc, *operands: Any) -> Any:
    """Apply an operator; Python numbers alone give a weakly typed Python number."""
    if any(isinstance(o, StackedList) and o.is_sized for o in operands):
        return hooks.sized_ufunc(ufunc, "__call__", arrays_of_sized_lists(operands), {})
    deferred = defer_ufunc(ufunc, "__call__", operands, {})
    if deferred is not None:
        return deferred
    kinds = [python_numbers.kind_of(o) for o in operands]
    if None in kinds and any(kinds):
        operands = tuple(map(python_numbers.without_subclass, operands))
        kinds = [python_numbers.kind_of(o) for o in operands]
    if None in kinds:
        made = implementation_of(ufunc)(*operands) if ufunc.signature is not None else call(ufunc, operands)
        pass_on(operands, made if isinstance(made, tuple) else (made,))
        return made
    operands = tuple(python_numbers.without_bools(ufunc, operands, kinds))
    if ufunc is _BINARY["pow"]:
        function = np.float_power if kinds[0] is float and _is_half(operands[1]) else ufunc
        result = python_numbers.power(lambda *values: call(function, values), *operands)
    else:
        result = call(ufunc, operands)
    python_numbers.check(ufunc, operands, result)
    for value in result if isinstance(result, tuple) else (result,):
        value.rank0 = Rank0.PYTHON
        weak = {"i": int, "f": float, "c": complex}.get(value.dtype.kind)
        value.weak = None if ufunc in _COMPARISONS.values() else weak
    if ufunc not in _COMPARISONS.values():
        pass_on(operands, result if isinstance(result, tuple) else (result,))
    return result


def _binary(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operator(self: TracedArray, other: Any) -> Any:
        return _apply_operator(ufunc, self, other) if _applies_to(self, other) else NotImplemented

    return operator


def _applies_to(value: TracedArray, other: Any) -> bool:
    """Return True for an operand that an arithmetic operator takes beside a value."""
    return isinstance(other, _SCALAR) and not _is_number_beside_list(value, other)


def _is_number_beside_list(value: TracedArray, other: Any) -> bool:
    """Return True for a Python number and a list or tuple, which no operator of Python adds or compares."""
    return isinstance(other, (list, tuple)) and python_numbers.kind_of(value) is not None


def _reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operator(self: TracedArray, other: Any) -> Any:
        return _apply_operator(ufunc, other, self) if _applies_to(self, other) else NotImplemented

    return operator


def _repetition(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the operator of products, for which an integer times a list repeats the list, as in Python."""

    def product(self: TracedArray, other: Any) -> Any:
        if self.ndim or self.rank0 is Rank0.ARRAY or not isinstance(other, (list, tuple)):
            return operator(self, other)
        if self.dtype.kind in "biu":
            return other * self.__index__()
        refuse_float(self, "the factor of a list")
        raise TypeError(f"can't multiply sequence by non-int of type 'numpy.{self.dtype}'")

    return product


def _equality(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """Return a comparison operator that also accepts strings and objects, which equal no number."""

    def operator(self: TracedArray, other: Any) -> Any:
        if isinstance(other, (str, bytes)) or equals_no_number(other) or _is_not_numeric(other):
            sizes = np.broadcast_shapes(self.shape, np.shape(other) if isinstance(other, np.ndarray) else ())
            known = KnownArray(np.broadcast_to(np.bool_(ufunc == np.not_equal), sizes).copy())
            is_object = not isinstance(other, (str, bytes, np.ndarray, np.generic))
            if self.rank0 is Rank0.PYTHON or self.weak or (is_object and not sizes and self.rank0 is Rank0.SCALAR):
                return bool(known)
            return known if sizes else np.bool_(known)
        if _is_number_beside_list(self, other):
            return NotImplemented
        if isinstance(other, _SCALAR):
            return _apply_operator(ufunc, self, other)
        return NotImplemented if hasattr(type(other), "__array_ufunc__") else call(ufunc, (self, other))

    return operator


def _is_half(value: Any) -> bool:
    return type(value) is float and value == 0.5


def _is_not_numeric(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "SUMm"


_POWER_SHORTCUTS: dict[tuple[type, Any], np.ufunc] = {
    (int, 2): np.square, (int, -1): np.reciprocal, (float, 0.5): np.sqrt,
}  # fmt: skip
_FOR_ALL_DTYPES = (np.square,)  # the others apply to floats and complex numbers only


def _power(self: TracedArray, other: Any) -> Any:
    """Raise to a power; NumPy's operator, unlike its function, has shortcuts, which differ at infinities."""
    if _is_half(other) and self.dtype.kind == "f" and _is_scalar(self) and not self.weak:
        return _apply_operator(np.float_power, self, other).astype(self.dtype)  # that of -inf is inf, unlike an array's
    shortcut = _POWER_SHORTCUTS.get((type(other), other)) if type(other) in (int, float) else None
    if shortcut is not _FOR_ALL_DTYPES[0] and python_numbers.kind_of(self) is not None:
        shortcut = None
    if self.dtype.kind == "b" and _is_scalar(self):
        shortcut = None
    if shortcut is not None and (self.dtype.kind in "fc" or shortcut in _FOR_ALL_DTYPES):
        return _apply_operator(shortcut, self)
    return _apply_operator(_BINARY["pow"], self, other) if _applies_to(self, other) else NotImplemented


def _is_scalar(array: TracedArray) -> bool:
    """Return True if a traced value stands for a scalar, which is immutable; ``x[0, ...]`` is an array."""
    return array.ndim == 0 and array.rank0 is not Rank0.ARRAY


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operator(self: TracedArray, other: Any) -> Any:
        if self.weak or _is_scalar(self):
            return _apply_operator(ufunc, self, other)
        if isinstance(other, SizedArray):
            return ufunc(self, other, out=self)
        return (
            implementation_of(ufunc)(self, other, out=self) if ufunc.signature else call(ufunc, (self, other), out=self)
        )

    return operator


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    return lambda self: _apply_operator(ufunc, self)


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    is_numpys = getattr(np, name, None) is function  # which dispatches some calls on the first argument alone

    def method(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        if is_numpys and any(isinstance(a, SizedArray) for a in (*args, *kwargs.values())):
            return hooks.sized_function(function, (self, *args), kwargs)
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"Call ``numpy.{name}``."
    return method


def _reshape(self: TracedArray, *sizes: Any, order: str = "C", copy: bool | None = None) -> Any:
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], (int, np.integer)) else sizes
    return _np.reshape(self, shape, order=order, copy=copy)


def _transpose(self: TracedArray, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], (int, np.integer)) else axes or None
    return _np.transpose(self, order)


def _astype(
    self: TracedArray, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """Convert to another dtype as NumPy does."""
    target = np.dtype(dtype)
    if not has_element_type(target) or not target.isnative:
        return DeferredArray(_astype_of_result, (self, target, order, casting, subok, copy), {})
    if not _np.can_cast(self.dtype, target, casting):
        raise TypeError(f"Cannot cast array data from {self.dtype!r} to {target!r} according to the rule '{casting}'")
    if self.dtype == target and not self.weak:
        if not copy:
            note_sharing(self)
        flags = self.memory.flags
        is_in_order = {"C": flags.c_contiguous, "F": flags.f_contiguous}.get(order.upper()[:1], True)
        return self if is_in_order and not copy else self.copy(order)
    result = cast(self, target)
    set_order(result, order, [self])
    return _with_kind_of(self, result)


def _astype_of_result(value: Any, *options: Any) -> Any:
    return value.astype(*options)


_astype_of_result.__name__ = "astype"


def _copy(self: TracedArray, order: str = "C") -> TracedArray:
    """Copy the elements."""
    result = TracedArray(value_of(self))
    set_order(result, order, [self])
    return _with_kind_of(self, result)


def _view(self: TracedArray, dtype: Any = None, type: Any = None) -> TracedArray:
    """View as another dtype; see `bitcast.view`."""
    return _with_kind_of(self, bitcast.view(self, dtype, type))


def _byteswap(self: TracedArray, inplace: bool = False) -> TracedArray:
    """Reverse the bytes of elements; see `bitcast.byteswap`."""
    return _with_kind_of(self, bitcast.byteswap(self, inplace))


def _with_kind_of(self: TracedArray, result: TracedArray) -> TracedArray:
    """Mark a 0-d result as an array if the receiver is one, else as a scalar."""
    result.rank0 = Rank0.SCALAR if _is_scalar(self) else Rank0.ARRAY
    return result


def _fill(self: TracedArray, value: Any) -> None:
    if np.ndim(value):
        raise DTypeError("setting an array element with a sequence.", where=user_line())
    self[...] = value


def _conjugate(self: TracedArray, out: Any = None) -> Any:
    """Conjugate; a real array is returned itself, unlike by the function."""
    if self.dtype.kind != "c" and out is None:
        return python_numbers.without_bool(self)
    return _apply_operator(_CONJUGATE, self) if out is None else np.conjugate(self, out)


def _round(self: TracedArray, digits: Any = None) -> Any:
    """Round as the built-in function does: with digits, to the same dtype."""
    if self.ndim:
        raise TypeError("arrays do not define __round__: use np.round(x, digits)")
    if digits is None:
        self._raise_no_value("be converted to an int", "use round(x, 0) or np.rint(x), which stay traced")
    return np.round(self, digits)


def _sort(self: TracedArray, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    self[...] = _np.sort(self, axis=axis, kind=kind, order=order, stable=stable)


def _partition(self: TracedArray, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    self[...] = _np.partition(self, kth, axis=axis)


def _flatten(self: TracedArray, order: str = "C") -> Any:
    if order == "C":  # in one step, which does not depend on the memory as a view does
        return TracedArray(xla.reshape(value_of(self), (self.size,)))
    return _np.ravel(self, order).copy()


def _define(name: str, method: Callable[..., Any]) -> None:
    setattr(TracedArray, name, api_boundary(method))


def _attach() -> None:
    for name, ufunc in _BINARY.items():
        operators = _binary(ufunc), _reflected(ufunc)
        if name == "mul":
            operators = _repetition(operators[0]), _repetition(operators[1])
        _define(f"__{name}__", operators[0])
        _define(f"__r{name}__", operators[1])
        if name != "divmod":
            _define(f"__i{name}__", _in_place(ufunc))
    _define("__pow__", _power)
    for name, ufunc in _COMPARISONS.items():
        _define(f"__{name}__", (_equality if name in ("eq", "ne") else _binary)(ufunc))
    for name, ufunc in _UNARY.items():
        _define(f"__{name}__", _unary(ufunc))
    for name, function in _METHODS.items():
        _define(name, _method(name, function))
    for name, method in _OTHER_METHODS.items():
        _define(name, method)
    for name, (getter, setter) in _PROPERTIES.items():
        setattr(TracedArray, name, property(api_boundary(getter), setter and api_boundary(setter)))


def _component(function: Callable[[Any], Any]) -> Callable[[TracedArray], Any]:
    """Return the getter of a part of numbers; that of a Python number is one, too."""

    def part(self: TracedArray) -> Any:
        number = python_numbers.without_bool(self)
        result = function(number)
        if number.weak is None:
            return result
        return TracedArray(value_of(result), float if number.weak is complex else number.weak, rank0=Rank0.PYTHON)

    return part


def _set_component(self: TracedArray, name: str, value: Any) -> None:
    part = np.real(self) if name == "real" else np.imag(self)
    part[...] = value


def _to_device(self: TracedArray, device: Any, /, *, stream: Any = None) -> TracedArray:
    """Return the array itself, as NumPy does for its only device."""
    if stream is not None:
        raise ValueError("The stream argument in to_device() is not supported")
    if device != "cpu":
        raise ValueError(f'Unsupported device: {device}. Only "cpu" is allowed.')
    return self


_OTHER_METHODS: dict[str, Callable[..., Any]] = {
    "reshape": _reshape, "transpose": _transpose, "astype": _astype, "copy": _copy, "fill": _fill, "sort": _sort,
    "partition": _partition, "flatten": _flatten, "view": _view, "byteswap": _byteswap, "resize": bitcast.resize,
    "conj": _conjugate, "conjugate": _conjugate, "__round__": _round, "to_device": _to_device, **number_methods.METHODS,
}  # fmt: skip
_PROPERTIES: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    "T": (lambda self: np.transpose(self), None),
    "mT": (lambda self: np.swapaxes(self, -1, -2), None),
    "real": (_component(np.real), lambda self, v: _set_component(self, "real", v)),
    "imag": (_component(np.imag), lambda self, v: _set_component(self, "imag", v)),
    "flat": (flat, set_flat),
}
_attach()
