"""`DeferredArray`: result that NumPy computes after each run, from results of the program.

Its dtype has no element type, as text and long doubles, or depends on values, or nothing bounds its size, as that of a
histogram whose bins depend on values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NoReturn

import numpy as np

from cyxla.errors import DTypeError, TraceError, UnimplementedError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, note_text, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS, full_name
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import user_line
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.types import from_numpy

#: Functions whose shape of the result depends on no values, with the position of ``dtype=`` among their parameters.
_DTYPE_POSITIONS: dict[str, int | None] = {
    "array": 1, "asarray": 1, "asanyarray": 1, "ascontiguousarray": 1, "asfortranarray": 1, "require": 1, "astype": 1,
    "full": 2, "append": None, "concatenate": None, "stack": None, "hstack": None, "vstack": None, "dstack": None,
    "column_stack": None,
    "sum": 2, "prod": 2, "cumsum": 2, "cumprod": 2, "mean": 2, "std": 2, "var": 2, "trace": 4,
}  # fmt: skip
_JOINING = {"concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"}
_COMPUTING = {"sum", "prod", "cumsum", "cumprod", "mean", "std", "var", "trace"}  # results have native byte order
_STATIC = (
    bool, int, float, complex, str, bytes, type(None), type, np.dtype, np.generic, type(np._NoValue), np._CopyMode,
)  # fmt: skip
_METHODS = ("__call__", "reduce", "accumulate", "outer")  # of ufuncs


class DeferredArray(np.lib.mixins.NDArrayOperatorsMixin):
    """Result that the program cannot compute; NumPy does so after each run, from arrays that the program has computed.

    It can only be returned.

    Parameters
    ----------
    function : callable
        NumPy's function.
    args, kwargs : sequence and mapping
        Arguments of the call, with the values that they have now.
    unknown : collection of str
        Attributes that depend on values: ``dtype``, ``shape``.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        unknown: Collection[str] = (),
    ) -> None:
        self.function = NUMPY_ORIGINALS.get(function, function)
        if unknown and hooks.is_in_try_block():
            message = f"{function.__name__} inside of try or with may fail after the run"
            raise UnimplementedError(message, where=user_line())
        self.parts: list[TracedArray] = []
        self._args, self._kwargs = [self._template(a) for a in args], {k: self._template(v) for k, v in kwargs.items()}
        with np.errstate(all="ignore"):
            like = np.asarray(self.computed([_example(p) for p in self.parts]))
        if like.dtype.hasobject:
            for element in like.ravel():
                self._require_static(element)
        self.ndim: int = like.ndim
        self._dtype: Dtype | None = None if "dtype" in unknown else like.dtype
        self._shape: tuple[int, ...] | None = None if "shape" in unknown else like.shape

    def _template(self, value: Any) -> Any:
        """Copy an argument, with traced arrays replaced by their numbers among the parts."""
        if isinstance(value, TracedArray) and value.known is None:
            self.parts.append(TracedArray(value_of(value), value.weak, memory=value._memory, rank0=value.rank0))
            return _Part(len(self.parts) - 1)
        known: Any = value.known if isinstance(value, TracedArray) else value
        if type(known) is np.ndarray and not known.dtype.hasobject:
            return known.copy("K")
        if type(known) in (list, tuple):
            return type(known)([self._template(v) for v in known])
        self._require_static(known)
        return known

    def _require_static(self, value: Any) -> None:
        """Refuse objects, of which each call may have its own."""
        if not isinstance(value, _STATIC):
            raise UnimplementedError(
                f"numpy.{self.function.__name__} of a {type(value).__name__} cannot be traced", where=user_line()
            )

    def computed(self, parts: Sequence[Any]) -> Any:
        """Compute the array from the values of the parts."""
        return self.function(*_filled(self._args, parts), **{k: _filled(v, parts) for k, v in self._kwargs.items()})

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        return self._refuse() if self._dtype is None else self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimension sizes."""
        return self._refuse() if self._shape is None else self._shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnimplementedError(
            f"NumPy computes this {self.function.__name__} after each run, and the program cannot use it: its dtype is "
            f"{self._dtype or 'not known'}",
            where=user_line(), hint="return it, or use numbers of up to 64 bits, or complex128",
        )  # fmt: skip

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> NoReturn:
        self._refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        return self._refuse()

    def refused_text(self, where: str) -> TraceError:
        """Return the error of an operation that needs the values as a text."""
        return TraceError(f"NumPy computes this {self.function.__name__} after each run: it has no text", where=where)

    def __repr__(self) -> str:
        note_text(self)
        return f"DeferredArray({self._dtype or '?'}{'[?]' if self._shape is None else list(self._shape)})"


_REFUSED = (
    "__array__", "__array_function__", "__array_ufunc__", "__bool__", "__complex__", "__contains__", "__float__",
    "__getitem__", "__index__", "__int__", "__iter__", "__len__", "__setitem__",
)  # fmt: skip
for _name in _REFUSED:
    setattr(DeferredArray, _name, api_boundary(DeferredArray._refuse))


class _Part(int):
    """Number of an array among the parts of a result."""


def _filled(value: Any, parts: Sequence[Any]) -> Any:
    if type(value) is _Part:
        return parts[value]
    return type(value)([_filled(v, parts) for v in value]) if type(value) in (list, tuple) else value


def _example(array: TracedArray) -> Any:
    """Return a value of the type, shape and dtype of a part."""
    if array.weak or array.rank0 is Rank0.PYTHON:
        return (array.weak or bool)(1)
    return array.dtype.type(1) if not array.ndim and array.rank0 is Rank0.SCALAR else np.ones(array.shape, array.dtype)


@lru_cache(maxsize=256)
def has_element_type(dtype: Dtype) -> bool:
    """Return True if programs compute with a dtype, in native byte order."""
    try:
        from_numpy(dtype)
    except DTypeError:
        return False
    return True


def defer_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of a function that NumPy has to compute; None if the program can, or NumPy cannot either."""
    name = full_name(function)
    if name not in _DTYPE_POSITIONS or kwargs.get("out") is not None:
        return None
    position = _DTYPE_POSITIONS[name]
    dtype = args[position] if position is not None and position < len(args) else kwargs.get("dtype")
    joined: Any = args[:2] if name == "append" else args[0] if name in _JOINING and args else ()
    if not _needs_numpy(dtype, name not in _COMPUTING) and not _is_foreign(joined):
        return None
    return DeferredArray(function, args, kwargs)


def defer_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of a ufunc that NumPy has to compute; None if the program can, or NumPy cannot either."""
    given = [x for x in inputs if isinstance(x, (np.ndarray, np.generic)) or getattr(x, "known", None) is not None]
    if not kwargs and not given:
        return None
    writes = kwargs.get("out") is not None or kwargs.get("where", True) is not True
    if method not in _METHODS or ufunc.nout != 1 or writes:
        return None
    signature = kwargs.get("signature")
    requested = [kwargs.get("dtype"), *(signature if isinstance(signature, tuple) else ())]
    if not any(_needs_numpy(t, False) for t in requested) and not any(_is_number_of_numpy(x) for x in given):
        return None
    return DeferredArray(getattr(ufunc, method), inputs, kwargs)


def _needs_numpy(dtype: Any, order_counts: bool) -> bool:
    """Return True if a requested dtype has no element type, or if the byte order of results counts, another order."""
    if dtype is None:
        return False
    try:
        requested = np.dtype(dtype)
    except TypeError:
        return False
    return not has_element_type(requested) or (order_counts and not requested.isnative)


def _is_foreign(value: Any) -> bool:
    """Return True if an array to join has a dtype without an element type, but no objects."""
    if isinstance(value, (str, bytes)):
        return True
    if isinstance(value, (list, tuple)):
        return any(map(_is_foreign, value))
    return _is_number_of_numpy(value) or _dtype_of(value).kind in "SU"


def _is_number_of_numpy(value: Any) -> bool:
    """Return True for arrays of numbers and dates without an element type, such as long doubles."""
    dtype = _dtype_of(value)
    return dtype.kind in "fcmM" and not has_element_type(dtype)


def _dtype_of(value: Any) -> Dtype:
    known = value.known if isinstance(value, TracedArray) else value
    return known.dtype if isinstance(known, (np.ndarray, np.generic)) else np.dtype(bool)
