"""`KnownArray`: array made by a traced function, with values until traced ones are written to it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.memory_layout import memory_of
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, View, value_of
from cyxla.numpy.tracing.results.conversion import require_native
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.results.uninitialised import initialised
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.numpy.tracing.user_program.untraced_targets import refuse_shared_target
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo.builder import XlaOp

Values = np.ndarray[Any, Any]
_OP: Any = TracedArray.__dict__["_op"]
_VIEW: Any = TracedArray.__dict__["_view"]


class KnownArray(TracedArray):
    """Traced array whose values are known while tracing.

    ``np.zeros(3)`` inside a traced function returns one. It can do everything that an array can: it decides branches,
    serves as an index, and functions of it are computed at once. Combined with a traced array it becomes a constant of
    the program. A write of a traced value to it, to one of its views or to its base turns it into an ordinary traced
    array; it remains the same object.

    Parameters
    ----------
    values : numpy.ndarray
        Values, owned by this array from now on.
    parent : KnownArray, optional
        Base, if this is a view.
    recreate : callable, optional
        Function that recreates the view from the parent as a traced array.
    """

    __slots__ = ("_children", "_recreate", "_values")

    def __init__(
        self, values: Values, parent: KnownArray | None = None, recreate: Callable[[], TracedArray] | None = None
    ) -> None:
        self._values: Values | None = values
        self._recreate = recreate
        self._children: list[weakref.ref[KnownArray]] = []
        self.weak = None
        self.rank0 = Rank0.ARRAY
        self.doubt = self.sharing = None
        self.is_mixed = False
        contiguous = values.flags.c_contiguous
        self._memory = None if contiguous else memory_of(values.shape, values.dtype, values.strides)
        self.origin = ""
        self.owner = _trace.current() if parent is None else parent.owner
        _VIEW.__set__(self, View(parent, _identity, None, None) if parent is not None else None)  # type: ignore[arg-type]
        if parent is not None:
            parent._children.append(weakref.ref(self))

    # -- values

    @property
    def root_op(self) -> XlaOp:
        """Value of an array that is traced, or becomes so."""
        self._become_traced()
        return self._op

    @root_op.setter
    def root_op(self, op: XlaOp) -> None:
        self._op = op

    @property
    def known(self) -> Values | None:
        """Values until a traced value is written; then None."""
        return self._values

    @property
    def _op(self) -> XlaOp:
        values = self._values
        if values is None:
            return _OP.__get__(self)  # type: ignore[no-any-return]
        return _trace.require_current().constant(values.copy())

    @_op.setter
    def _op(self, op: XlaOp) -> None:
        _OP.__set__(self, op)

    @property
    def _view(self) -> View | None:
        return None if self._values is not None else _VIEW.__get__(self)

    @_view.setter
    def _view(self, view: View | None) -> None:
        _VIEW.__set__(self, view)

    @property
    def base(self) -> TracedArray | None:
        """Base of a view; None if this is not a view."""
        view = _VIEW.__get__(self)
        return view.base if view is not None else None

    def _become_traced(self) -> None:
        """Become a traced array, with all arrays that share the memory."""
        values, parent = self._values, self.base
        if values is None:
            return
        require_native(values.dtype, "a write of a traced value")
        if isinstance(parent, KnownArray) and parent.known is not None:
            parent._become_traced()
            return
        with _trace.resumed(self.owner):
            self._leave_values(parent)
        for child in self._children:
            if (array := child()) is not None:
                array._become_traced()

    def _leave_values(self, parent: TracedArray | None) -> None:
        if parent is None:
            op = self._op
            self._values, self._op = None, op
        else:
            assert self._recreate is not None
            self._values = None
            view = self._recreate()
            self._op, self._view, self._memory = view._op, view._view, view._memory

    @property
    def known_views(self) -> list[KnownArray]:
        """Views of this array whose values are known."""
        views = [v for child in self._children if (v := child()) is not None and v.known is not None]
        return [*views, *[w for v in views for w in v.known_views]]

    @property
    def known_relatives(self) -> list[KnownArray]:
        """The array and the others that share its memory and whose values are known."""
        root = self
        while isinstance(root.base, KnownArray) and root.base.known is not None:
            root = root.base
        return [root, *root.known_views]

    def resume_values(self, values: Values) -> None:
        """Become known again with the values from before, when what was traced since is given up."""
        self._values = values
        if self._recreate is None:
            self._view = None  # of the array that it shared its memory with since

    def become_traced(self) -> None:
        """Become a traced array, with all arrays that share the memory, as a write of a traced value makes it."""
        self._become_traced()

    def overwrite(self, op: XlaOp) -> None:
        """Replace all elements, here and in all arrays that share the memory; see `TracedArray.overwrite`."""
        self._become_traced()
        super().overwrite(op)

    # -- attributes, read without making a constant

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        return self._values.dtype if self._values is not None else super().dtype

    @property
    def aval(self) -> Shape:
        """Shape and element type as an HLO shape."""
        return Shape.array(from_numpy(self.dtype), self.shape) if self._values is not None else super().aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimension sizes."""
        return self._values.shape if self._values is not None else super().shape

    @shape.setter
    def shape(self, sizes: Any) -> None:
        self._become_traced()
        TracedArray.shape.fset(self, sizes)  # type: ignore[attr-defined]

    @property
    def flags(self) -> Any:
        """Flags of the memory layout."""
        return self._values.flags if self._values is not None else super().flags

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._values.size if self._values is not None else super().size

    # -- NumPy's protocols: NumPy computes if all arguments are known

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        known = _known_arguments((inputs, kwargs))
        if known is None:
            refuse_shared_target(kwargs)
            return self._apply_ufunc(ufunc, method, inputs, kwargs)
        args, kwargs_ = known
        if method == "at" and isinstance(inputs[0], KnownArray) and _notes_writes(inputs[0]):
            inputs[0].become_traced()  # NumPy's ``at`` writes to read-only arrays
            return self._apply_ufunc(ufunc, method, inputs, kwargs)
        if "where" in kwargs_:
            kwargs_.setdefault("out", None)  # without it NumPy warns of uninitialised elements, and passes no None on
        function: Any = ufunc if method == "__call__" else getattr(ufunc, method)
        return _compute(function, args, kwargs_, (inputs, kwargs), lambda: function(*inputs, **kwargs))

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        known = _known_arguments((args, kwargs))
        if known is None:
            return super().__array_function__(func, types, args, kwargs)
        known_args, known_kwargs = known
        return _compute(func, known_args, known_kwargs, (args, kwargs), lambda: func(*args, **kwargs))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self._values is None:
            return super().__array__(dtype, copy)
        return _values_in_trace(self) if dtype is None and not copy else self._values.astype(dtype or self.dtype)

    def __getattr__(self, name: str) -> Any:
        if self._values is not None and not name.startswith("__") and hasattr(np.ndarray, name):
            return getattr(_values_in_trace(self), name)
        return super().__getattr__(name)

    def __repr__(self) -> str:
        return repr(self._values) if self._values is not None else super().__repr__()

    def __str__(self) -> str:
        return str(self._values) if self._values is not None else super().__str__()


def _identity(op: XlaOp) -> XlaOp:
    return op


def values_of(value: Any) -> Values | None:
    """Return the values of a NumPy array or a known one; None for others."""
    return value.known if isinstance(value, TracedArray) else value if isinstance(value, np.ndarray) else None


class _TracedError(Exception):
    """Raised if a traced array is among the arguments."""


def _known_arguments(arguments: Any) -> Any:
    """Replace known arrays by their values in a container; None if an array in it is traced."""
    try:
        return _with_values(arguments)
    except _TracedError:
        return None


def _with_values(value: Any) -> Any:
    if isinstance(value, TracedArray):
        if value.known is None:
            raise _TracedError
        return _values_in_trace(value)
    if isinstance(value, SizedArray):
        raise _TracedError
    if type(value) in (list, tuple):
        return type(value)([_with_values(v) for v in value])
    if type(value) is dict:
        return {k: _with_values(v) for k, v in value.items()}
    if type(value) is slice:
        return slice(_with_values(value.start), _with_values(value.stop), _with_values(value.step))
    if hasattr(value, "as_index_array"):  # a range of traced bounds
        raise _TracedError
    return value


def _values_in_trace(array: TracedArray) -> Values:
    """Return the values, read-only if a write to them must be noted."""
    values = array.known
    assert values is not None
    if not _notes_writes(array):
        return values
    values = values.view()
    values.flags.writeable = False
    return values


def _notes_writes(array: TracedArray) -> bool:
    """Return True for an array that a loop or branch does not own, or that may be another one."""
    if array.owner is not _trace.current():
        return True
    root: TracedArray | None = array
    while root is not None and root.sharing is None:
        root = root.base
    return root is not None


def _known_arrays(value: Any) -> Iterator[KnownArray]:
    if isinstance(value, KnownArray):
        yield value
    elif type(value) in (list, tuple):
        for part in value:
            yield from _known_arrays(part)
    elif type(value) is dict:
        yield from _known_arrays(list(value.values()))


def _compute(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Any, operands: Any, recreate: Callable[[], Any]
) -> Any:
    """Compute with NumPy and wrap arrays among the results as known ones."""
    arrays = list(_known_arrays(operands))
    try:
        with np.errstate(all="ignore"):
            result = initialised(function, args, kwargs)
    except ValueError as error:
        noted = [a for a in arrays if a.known is not None and _notes_writes(a)]
        if "read-only" not in str(error) or not noted:
            raise
        for a in noted:
            a.overwrite(value_of(a))  # refused, or noted and traced
        return recreate()
    return _wrap_results(result, arrays, recreate)


def _wrap_results(result: Any, arrays: Sequence[KnownArray], recreate: Callable[[], Any]) -> Any:
    if isinstance(result, (tuple, list)):
        parts = [_wrap_results(r, arrays, lambda k=k: recreate()[k]) for k, r in enumerate(result)]  # type: ignore[misc]
        named = isinstance(result, tuple) and hasattr(result, "_fields")
        return type(result)(*parts) if named else type(result)(parts)
    if not isinstance(result, np.ndarray):
        return result
    for a in arrays:
        if result is a.known:
            return a
    for a in arrays:
        if a.known is not None and result.size and np.may_share_memory(result, a.known):
            return KnownArray(result, a, recreate)
    is_part_of_outer = not result.size and any(a.owner is not _trace.current() for a in arrays)
    return KnownArray(result.copy() if is_part_of_outer else result)  # a view without elements may be written to


def _method(name: str) -> Callable[..., Any]:
    numpy_method = getattr(np.ndarray, name)

    def method(self: KnownArray, *args: Any, **kwargs: Any) -> Any:
        known = _known_arguments(((self, *args), kwargs))
        if known is not None:
            known_args, known_kwargs = known
            return _compute(
                numpy_method,
                known_args,
                known_kwargs,
                ((self, *args), kwargs),
                lambda: getattr(self, name)(*args, **kwargs),
            )
        if self._values is not None and self.dtype.kind in "OSUTMmV":
            raise UnimplementedError(
                f"an array of dtype {self.dtype} is used with traced values", where=_trace.user_line(),
                hint="keep each field in an array of numbers",
            )  # fmt: skip
        traced = getattr(TracedArray, name, None)
        return traced(self, *args, **kwargs) if traced else TracedArray.__getattr__(self, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Call ``ndarray.{name}`` on known values, else the method of traced arrays."
    return method


_NOT_FORWARDED = {
    "__array__", "__array_finalize__", "__array_function__", "__array_ufunc__", "__array_wrap__", "__array_namespace__",
    "__class__", "__class_getitem__", "__delattr__", "__dir__", "__dlpack__", "__dlpack_device__", "__doc__",
    "__getattribute__", "__getattr__", "__hash__", "__init__", "__init_subclass__", "__iter__", "__new__", "__repr__",
    "__setattr__", "__setstate__", "__sizeof__", "__str__", "__subclasshook__", "__buffer__", "__len__",
    "__reduce__", "__reduce_ex__", "__copy__", "__deepcopy__", "__getstate__",
}  # fmt: skip


def _attach() -> None:
    """Define the methods of NumPy's arrays for known arrays."""
    for name in dir(np.ndarray):
        if name not in _NOT_FORWARDED and callable(getattr(np.ndarray, name)):
            setattr(KnownArray, name, api_boundary(_method(name)))
    for name in ("__array_ufunc__", "__array_function__"):
        setattr(KnownArray, name, api_boundary(vars(KnownArray)[name]))


_attach()
