"""`TracedArray`: stand-in for an array while a function is being traced."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import numpy as np

from cyxla._native import arguments
from cyxla._native.dispatch import axes_of
from cyxla.errors import DTypeError, TraceError, UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.array_flags import TracedFlags
from cyxla.numpy.tracing.arrays.layout_reads import note_layout
from cyxla.numpy.tracing.arrays.memory_layout import Memory, dense, memory_of, reshape_view, row_major
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, Kind
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import Trace
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.numpy.tracing.user_program.handlers import is_in_try_block
from cyxla.numpy.tracing.user_program.needed_values import NeededValue, inputs_of
from cyxla.numpy.tracing.user_program.texts import Field, TracedText
from cyxla.numpy.tracing.user_program.untraced_targets import refuse_shared_target
from cyxla.numpy.tracing.user_program.user_frames import HOOKS, library_call, mend_of_library, user_operation
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_USED_AS_INDEX = "be used as an index or a size"
_USED_AS_CONDITION = "be used as a condition"
_TO_INT = "be converted to an int"
_HASHED = "be hashed, as for a key or a set"
_TO_ARRAY = "be converted to a NumPy array"
#: Operations for whose values a program may be specialised; a conversion to a float may be a write to another array.
_SPECIALISING_OPERATIONS = frozenset({_USED_AS_INDEX, _USED_AS_CONDITION, _TO_INT, _TO_ARRAY})


@dataclass(slots=True)
class View:
    """Relation of a view to its base: a write to one of them is a write to both.

    Attributes
    ----------
    base : TracedArray
        Array that the view is of.
    read : callable
        Function from the value of the base to that of the view.
    write : callable or None
        Function from the value of the base and a new value of the view to the new value of the base; None for a view
        that is read-only in NumPy.
    base_value : XlaOp
        Value of the base from which the view was last read.
    """

    base: TracedArray
    read: Callable[[XlaOp], XlaOp]
    write: Callable[[XlaOp, XlaOp], XlaOp] | None
    base_value: XlaOp


class Doubt(NamedTuple):
    """Runs in which a number has another class than its array tells.

    Attributes
    ----------
    test : XlaOp
        pred[], True in those runs.
    is_numpy : bool
        True if the other class may be one of NumPy's; else it is one of Python's.
    """

    test: XlaOp
    is_numpy: bool


class Watcher(Protocol):
    """Object that is told of uses of an array."""

    def before_read(self) -> None:
        """Refuse a use of the value, if need be."""

    def before_write(self) -> None:
        """Take note of a write, or refuse it."""


class TracedArray:
    """Stand-in for any array of a shape and dtype; NumPy's functions and operators on it become HLO.

    Like a `numpy.ndarray` it has a dtype, a shape and methods, supports indexing and assignment, and shares memory with
    its views. It has no values: an operation that needs one, such as ``if x > 0``, raises `TraceError`.

    Parameters
    ----------
    op : XlaOp
        Value, of the current trace or of an enclosing one.
    weak : type, optional
        Python's `int`, `float` or `complex` for a weakly typed number.
    rank0 : Rank0
        Kind of a 0-d result that NumPy would return.

    Attributes
    ----------
    doubt : Doubt, optional
        Runs that give a number another class in Python, such as an int that stands beside a float.
    is_mixed : bool
        Whether it is a number of Python or of NumPy by the values.
    sharing : Watcher, optional
        Told of uses of an array that may be another one, by a branch or loop.
    """

    __slots__ = (
        "__weakref__", "_memory", "_op", "_view", "doubt", "is_mixed", "origin", "owner", "rank0", "sharing", "weak",
    )  # fmt: skip
    __array_priority__ = 1000.0
    numpy_class: type = np.ndarray  # of an array; numbers have others
    may_be_unbound = False  # whether some paths leave the variable that holds it unbound

    def __init__(
        self, op: XlaOp, weak: type | None = None, *, memory: Memory | None = None, origin: str = "",
        rank0: Rank0 = Rank0.SCALAR,
    ) -> None:  # fmt: skip
        op.shape  # noqa: B018 - raises if the operation could not be made
        if op.builder.instruction_count > _trace.MOST_INSTRUCTIONS:
            _trace.require_few_instructions(op.builder.instruction_count)
        self._op = op
        self._view: View | None = None
        self.weak = weak
        self.rank0 = rank0
        self.doubt: Doubt | None = None
        self.is_mixed = False
        self.sharing: Watcher | None = None
        self._memory = memory
        self.origin = origin
        self.owner: Trace | None = _trace.current()

    # -- attributes

    @property
    def op(self) -> XlaOp:
        """Current value."""
        view = self._view
        if self.sharing is not None:
            self.sharing.before_read()
        if view is not None:
            base = view.base.op
            if base is not view.base_value or not _trace.can_capture(self._op):  # a branch that has ended read it
                self._op, view.base_value = view.read(_capture(base)), base
        return self._op

    @property
    def unchecked_op(self) -> XlaOp:
        """Current value, to be handed over: it is not checked that a variable is bound, as `op` may do."""
        return self.op

    @property
    def root_op(self) -> XlaOp:
        """Value of an array that is not a view; setting it is no write, as that of a loop's state."""
        return self._op

    @root_op.setter
    def root_op(self, op: XlaOp) -> None:
        if self.origin:
            _trace.require_current().program.writes.append(-1)
        self._op = op

    @property
    def root(self) -> TracedArray:
        """Array that a view is of in the end; the array itself if it is not a view."""
        array = self
        while array._view is not None:
            array = array._view.base
        return array

    @property
    def known(self) -> np.ndarray[Any, Any] | None:
        """Values if they are known while tracing, as those of `KnownArray` are; else None."""
        return None

    @property
    def kind(self) -> Kind:
        """Dtype, or the Python class of a weakly typed number."""
        return self.weak or self.dtype

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        dtype = self._op.shape.dtype.numpy_dtype
        assert dtype is not None
        return dtype

    @property
    def aval(self) -> Shape:
        """Shape and element type as an HLO shape."""
        return self._op.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimension sizes."""
        return self._op.shape.dims

    @shape.setter
    def shape(self, sizes: Any) -> None:
        new, old, view = self.reshape(sizes).shape, self.shape, self._view
        note_layout(self)
        if self._memory is not None:
            memory = reshape_view(self._memory, new)
            if memory is None:
                raise AttributeError("Incompatible shape for in-place modification: use x.reshape(sizes)")
            self._memory = memory
        self._op = xla.reshape(_capture(self.op), new)
        if view is not None:
            read, write = view.read, view.write
            view.read = lambda op: xla.reshape(read(op), new)
            view.write = write and (lambda base, part: write(base, xla.reshape(part, old)))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._op.shape.rank

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._op.shape.size

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Total bytes of the elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes to the next element along each dimension in NumPy's memory layout."""
        note_layout(self)
        return self.memory.strides

    @property
    def base(self) -> TracedArray | None:
        """Base of a view; None if this is not a view."""
        return self._view.base if self._view is not None else None

    @property
    def writeable(self) -> bool:
        """True unless the array would be read-only in NumPy, such as diagonals and broadcast arrays."""
        view = self._view
        while view is not None:
            if view.write is None:
                return False
            view = view.base._view
        return True

    @property
    def flags(self) -> Any:
        """Flags of the memory layout that the array has in NumPy."""
        return TracedFlags(self)

    @property
    def device(self) -> str:
        """Device in the terms of the array API: ``"cpu"``."""
        return "cpu"

    # -- views and writes

    def set_memory(self, memory: Memory) -> None:
        """Set the memory layout of a new array."""
        self._memory = memory

    @property
    def memory(self) -> Memory:
        """Array of the same memory layout, whose elements must not be read."""
        return self._memory if self._memory is not None else row_major(self.shape, self.dtype)

    @property
    def contiguous(self) -> bool:
        """True if the elements are contiguous in row-major order."""
        return self._memory is None or bool(self._memory.flags.c_contiguous)

    def make_view(
        self,
        read: Callable[[XlaOp], XlaOp],
        write: Callable[[XlaOp, XlaOp], XlaOp] | None,
        memory: Memory | None,
        kind: type[TracedArray] | None = None,
    ) -> TracedArray:
        """Return a view of this array, in row-major order unless `memory` gives another layout; see `View`."""
        op = self.op
        sizes = op.shape.dims
        view = (kind or TracedArray)(read(_capture(op)), memory=memory, rank0=Rank0.ARRAY)
        if self.ndim == 0 and self.rank0 is not Rank0.ARRAY:  # a scalar shares no memory
            return view
        # An assignment to the shape of the base changes its sizes, but not those of the view.
        view._view = View(
            self, lambda base: read(_reshape_op(base, sizes)),
            write and (lambda base, new: _reshape_op(write(_reshape_op(base, sizes), new), base.shape.dims)), op,
        )  # fmt: skip
        return view

    def overwrite(self, op: XlaOp) -> None:
        """Replace all elements, here and in all arrays that share the memory.

        Parameters
        ----------
        op : XlaOp
            New value, of the same shape and dtype.

        Raises
        ------
        TraceError
            The array belongs to an enclosing function, whose values a loop or branch cannot change.
        ValueError
            The view is read-only in NumPy.
        """
        view = self._view
        if view is None:
            if self.owner is not _trace.current() and not _trace.admit_write(self):
                text, hint = _trace.require_current().refused_write
                raise TraceError(text.format(repr(self)), where=_trace.user_line(), hint=hint)
            if self.origin:
                _trace.require_current().note_write()
            if self.sharing is not None:
                self.sharing.before_write()
            self._op = op
            return
        if view.write is None:
            raise ValueError("assignment destination is read-only")
        view.base.overwrite(view.write(_capture(view.base.op), op))
        self._op, view.base_value = op, view.base.op

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        refuse_shared_target(kwargs)
        return self._apply_ufunc(ufunc, method, inputs, kwargs)

    def _apply_ufunc(self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(map(_has_own_ufuncs, kwargs.get("out", ()))):
            return NotImplemented
        return hooks.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if not all(issubclass(t, (TracedArray, np.ndarray)) for t in types):
            return NotImplemented  # the other class may implement it; else NumPy raises TypeError
        return hooks.call_function(func, *args, **kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self._raise_no_value(_TO_ARRAY, _NO_ARRAY_HINT)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return np

    # -- operations that need values, which all raise

    def _raise_no_value(self, operation: str, hint: str) -> NoReturn:
        if _trace.current() is None:
            _trace.raise_escaped()
        needed, library = None, library_call()
        explained = _USER_OPERATION_ERRORS.get(user_operation())
        if explained is not None:
            operation, hint = explained
            needed = self._needed_number()
        elif operation == _HASHED:
            needed = self._needed_number()
        elif operation in _SPECIALISING_OPERATIONS:
            needed = NeededValue(inputs_of(self._op), is_index=operation == _USED_AS_INDEX)
        if library:
            hint = f"{library} needs values: {mend_of_library(library)}"
        where = _trace.user_line()
        error = TraceError(
            f"{self._describe()} cannot {operation}: it has no value while tracing", where=where, hint=hint,
            needed=needed,
        )  # fmt: skip
        if _trace.is_raised_for_user() or is_in_try_block():
            _trace.require_current().program.raised.append(error)
        raise error

    def _needed_number(self) -> NeededValue | None:
        """Return the need of a value that integers of the call decide; None if others take part."""
        inputs = inputs_of(self._op) if self.ndim == 0 else None
        candidates = _trace.require_current().program.python_integers
        return NeededValue(inputs, is_index=True) if inputs and inputs <= candidates else None

    def _describe(self) -> str:
        origin = self.origin or _source_line_of(self._op)
        return f"traced {self.dtype}[{','.join(map(str, self.shape))}]" + (f" ({origin})" if origin else "")

    def _static_hint(self) -> str:
        """Return how to make the value known while tracing."""
        name = self.origin.removeprefix("argument ")
        if name == self.origin or not name.isidentifier():
            return "compute it from static arguments, or from sizes"
        return f'make the argument static: @cyxla.jit(static=("{name}",))'

    def __bool__(self) -> NoReturn:
        self._raise_no_value(
            _USED_AS_CONDITION, "use np.where, cyxla.cond, while_loop or fori_loop; sizes are Python numbers"
        )

    def __int__(self) -> NoReturn:
        self._raise_no_value(_TO_INT, f"{self._static_hint()}, or keep it an array: x.astype(int)")

    def __float__(self) -> NoReturn:
        self._raise_no_value(
            "be converted to a float", "keep it an array: x.astype(float), and np.sin(x) instead of math.sin(x)"
        )

    def __complex__(self) -> NoReturn:
        self._raise_no_value("be converted to a complex", "keep it an array: x.astype(complex)")

    def __index__(self) -> NoReturn:
        self._raise_no_value(_USED_AS_INDEX, f"{self._static_hint()}; cyxla.fori_loop takes traced bounds")

    def __hash__(self) -> NoReturn:
        self._raise_no_value(_HASHED, self._static_hint())

    def item(self, *args: Any) -> NoReturn:
        """Raise `TraceError`."""
        self._raise_no_value("be converted to a Python number", "index it instead: x[0]")

    def tolist(self) -> NoReturn:
        """Raise `TraceError`."""
        self._raise_no_value("be converted to a list", "return it from the function first")

    def tobytes(self, order: str = "C") -> NoReturn:
        """Raise `TraceError`."""
        self._raise_no_value("be converted to bytes", "return it from the function first")

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[TracedArray]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def __contains__(self, value: Any) -> NoReturn:
        self._raise_no_value("be searched by `in`", "use np.any(x == value)")

    def __copy__(self) -> Any:
        is_number = self.ndim == 0 and (self.weak is not None or self.rank0 is not Rank0.ARRAY)
        return self if is_number else self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        self._raise_no_value("be pickled", "return it from the function first")

    def __repr__(self) -> str:
        note_text(self)
        return f"TracedArray({self.dtype}{list(self.shape)}{', weak' if self.weak else ''})"

    def __str__(self) -> str:
        note_text(self, unless_rewritten=True)
        return TracedText([Field(self, "!s", "", self.refuse_text)])

    def __format__(self, spec: str) -> str:
        note_text(self)
        return TracedText([Field(self, "", spec, self.refuse_text)])

    def refuse_text(self) -> NoReturn:
        """Raise the error of an operation that needs the value as a text."""
        if _trace.current() is None:
            _trace.raise_escaped()
        error = self.refused_text(_trace.user_line())
        _trace.require_current().program.raised.append(error)
        raise error

    def refused_text(self, where: str) -> TraceError:
        """Return the error of an operation that needs the value as a text."""
        return TraceError(
            f"{self._describe()} cannot be converted to a text: it has no value while tracing", where=where,
            hint="return it from the function first; print(x) prints it in each run",
            needed=NeededValue(inputs_of(self._op), is_index=False),
        )  # fmt: skip

    @property
    def at(self) -> Any:
        """Functional updates: ``x.at[i].set(v)`` is an array with elements changed; also add, multiply, min, max."""
        return hooks.at(self)

    def __getitem__(self, key: Any) -> TracedArray:
        result: TracedArray = hooks.get_item(self, key)
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        hooks.set_item(self, key, value)

    def __getattr__(self, name: str) -> Any:
        if name == "__array_interface__":
            raise AttributeError(
                "traced arrays have no memory; use np.lib.stride_tricks.sliding_window_view for windows"
            )
        if name.startswith("__"):
            raise AttributeError(name)
        if hasattr(np.ndarray, name):
            raise UnimplementedError(f"ndarray.{name} cannot be traced", where=_trace.user_line())
        raise AttributeError(f"'TracedArray' object has no attribute {name!r}")


_TOOLS: Final = frozenset((
    "IPython", "_pydevd_bundle", "_pytest", "bdb", "cyxla", "debugpy", "logging", "pdb", "pydevd", "traceback",
))  # fmt: skip
_REWRITING: Final = "cyxla.numpy.rewriting."


def note_text(value: Any, *, unless_rewritten: bool = False) -> None:
    """Make the plain function run if a text in which a value has no digits may get into its results.

    Parameters
    ----------
    value : object
        Traced value.
    unless_rewritten : bool
        Whether functions that are rewritten use the text as one of a traced value.
    """
    trace = _trace.current()
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__repr__" and _trace.is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if trace is None or frame is None:
        return
    module = frame.f_globals.get("__name__", "")
    is_called = module.startswith(_REWRITING)  # a function of C, by one that is rewritten
    if unless_rewritten and (is_called or HOOKS in frame.f_code.co_freevars):
        return
    if is_called or module.partition(".")[0] not in _TOOLS:
        error = value.refused_text(_trace.user_line())
        error.is_raised = False
        trace.program.raised.append(error)


def _has_own_ufuncs(value: Any) -> bool:
    """Return True if an object that is not an array overrides ufuncs."""
    return not isinstance(value, (np.ndarray, TracedArray)) and hasattr(type(value), "__array_ufunc__")


_NO_ARRAY_HINT = "pass it to NumPy's functions, convert it by x.astype(t), or join several by np.array([x, y])"
#: Errors of lines that combine a traced value with an object that is not traced and needs its value.
_USER_OPERATION_ERRORS = {
    "look up": (
        "index a NumPy array or container that is not traced",
        "use np.take(table, i) or np.asarray(table)[i]; cyxla.switch(i, functions) calls one of several functions",
    ),
    "store": (
        "be written to a NumPy array that is not traced, or index it",
        "write to a copy, np.array(table), and return that",
    ),
}
_BOUNDARY_METHODS = (
    "__array__", "__array_function__", "__array_ufunc__", "__bool__", "__complex__", "__contains__", "__copy__",
    "__deepcopy__", "__float__", "__format__", "__getattr__", "__getitem__", "__hash__", "__index__", "__int__",
    "__iter__", "__len__", "__reduce__", "__setitem__", "item", "tobytes", "tolist",
)  # fmt: skip
for _name in _BOUNDARY_METHODS:
    setattr(TracedArray, _name, api_boundary(vars(TracedArray)[_name]))


def _source_line_of(op: XlaOp) -> str:
    """Return the source line of an operation for messages."""
    metadata = dict(op.instruction.metadata) if op.instruction is not None else {}
    return f"made at {metadata['source_file']}:{metadata['source_line']}" if "source_line" in metadata else ""


def _reshape_op(op: XlaOp, sizes: tuple[int, ...]) -> XlaOp:
    return op if op.shape.dims == sizes else xla.reshape(op, sizes)


def _capture(op: XlaOp) -> XlaOp:
    """Return a value as one of the current trace."""
    return _trace.require_current().capture(op)


def traced(op: XlaOp, weak: type | None = None) -> TracedArray:
    """Wrap a value as an array."""
    return TracedArray(op, weak)


class LazyList(list[Any], ABC):
    """List whose elements may not be made yet.

    Attributes
    ----------
    stacks : list of TracedArray or None
        Arrays that stand for the elements; None if these are made.
    is_guarded : bool
        True while an iteration is recorded that appends to the list.
    """

    stacks: list[TracedArray] | None = None
    is_guarded = False

    @abstractmethod
    def materialize(self) -> None:
        """Make the elements."""

    @abstractmethod
    def as_array(self) -> TracedArray:
        """Return what ``np.array`` makes of the list."""


def as_traced(value: Any, dtype: Any = None) -> TracedArray:
    """Convert anything that NumPy accepts as an array to a traced array; lists may hold traced arrays.

    Raises
    ------
    DTypeError
        The dtype of the value cannot be compiled.
    """
    if isinstance(value, TracedArray):
        array = value
    elif isinstance(value, LazyList) and value.stacks is not None:
        array = value.as_array()
    elif isinstance(value, (list, tuple)) and _contains_traced(value):
        array = _stack_members(value)
    else:
        array = _constant(value)
    if dtype is None or array.dtype == np.dtype(dtype):
        return array
    return cast(array, dtype)


def as_strong(value: Any, dtype: Any = None) -> Any:
    """Convert to a traced array that is not weakly typed, as ``np.asarray`` does."""
    result = as_traced(value, dtype)
    is_weak = isinstance(result, TracedArray) and result.weak  # a list of arrays of sizes known at run time is none
    return TracedArray(value_of(result)) if is_weak else result


def in_order_of(array: TracedArray, op: XlaOp) -> TracedArray:
    """Return a value as a new array in the memory order of an array of its rank."""
    result = TracedArray(op, rank0=Rank0.ARRAY)
    axes = None if array.contiguous else axes_of(array.memory)
    if axes is not None:
        result.set_memory(dense(result.shape, result.dtype, axes))
    return result


_PYTHON_TYPES = (bool, int, float, complex)


def _constant(value: Any) -> TracedArray:
    kind = type(value)
    weak = kind if kind in (int, float, complex) else None
    if weak is int and not -(2**63) <= value < 2**63:
        if not 0 <= value < 2**64:
            raise OverflowError(f"Python integer {value} is out of bounds for int64")
        return TracedArray(_trace.require_current().constant(value, np.dtype(np.uint64)))
    if isinstance(value, np.ndarray) and kind is not np.ndarray:
        require_plain(value, "an array")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DTypeError(f"a {kind.__name__} cannot be traced: {error}", where=_trace.user_line()) from None
    rank0 = Rank0.ARRAY if isinstance(value, np.ndarray) else Rank0.PYTHON if kind in _PYTHON_TYPES else Rank0.SCALAR
    memory = None if array.flags.c_contiguous else memory_of(array.shape, array.dtype, array.strides)
    return TracedArray(_trace.require_current().constant(array), weak, memory=memory, rank0=rank0)


def require_plain(value: Any, name: str) -> None:
    """Refuse subclasses of arrays, whose operators and results are of their class, and arrays with labels.

    NumPy's results for an `np.memmap` are arrays, except for views and copies of it, whose values are the same.

    Raises
    ------
    DTypeError
        The value is an instance of such a class.
    """
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        raise arguments.with_own_operators(value, name)
    arguments.require_values_alone(value, name)


def is_traced(value: Any) -> bool:
    """Return True if a value, or a member of a list, is traced and not known."""
    if isinstance(value, LazyList) and value.stacks is not None:
        return True
    if isinstance(value, (list, tuple)):
        return any(map(is_traced, value))
    return isinstance(value, TracedArray) and value.known is None


def require_known(value: Any, use: str, hint: str = "give a number that is known while tracing") -> None:
    """Require a value that is known while tracing; arguments that it depends on become static.

    Raises
    ------
    TraceError
        The value is traced.
    """
    if isinstance(value, TracedArray) and value.known is None:
        raise TraceError(
            f"{value._describe()} cannot {use}: it has no value while tracing", where=_trace.user_line(), hint=hint,
            needed=NeededValue(inputs_of(value._op), is_index=True),
        )  # fmt: skip


def require_sizes(*sizes: Any) -> None:
    """Refuse traced dimension sizes, with a better message than NumPy's.

    Raises
    ------
    TraceError
        One of the sizes is traced.
    """
    for size in sizes:
        for n in size if isinstance(size, (list, tuple)) else (size,):
            if isinstance(n, TracedArray) and n.known is None:
                n.__index__()


def _contains_traced(values: Any) -> bool:
    if isinstance(values, LazyList) and values.stacks is not None:
        return True
    if isinstance(values, (list, tuple)):
        return any(map(_contains_traced, values))
    return isinstance(values, TracedArray)


def _stack_members(values: Sequence[Any]) -> TracedArray:
    stack: Any = np.stack  # dispatches to this package
    result: TracedArray = stack([as_traced(v) for v in values])
    return result


def value_of(array: TracedArray) -> XlaOp:
    """Return the value of an array as one of the current trace."""
    return _capture(array.op)


def cast(array: TracedArray, dtype: Any) -> TracedArray:
    """Convert an array to another dtype as ``astype`` does."""
    return TracedArray(convert(value_of(array), np.dtype(dtype)))
