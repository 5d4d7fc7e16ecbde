"""`TracedArray`: what stands for an array while a function is being traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from cyxla._native import arguments
from cyxla.errors import DTypeError, TraceError, UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.api_boundary import api_boundary
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.frames import doing
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.memory_layout import Memory, memory_of, reshaped, row_major
from cyxla.numpy.tracing.promotion import Dtype, Kind
from cyxla.numpy.tracing.trace import Trace
from cyxla.numpy.tracing.zero_dim import Rank0
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


@dataclass(slots=True)
class View:
    """How an array is a part of another, so that writing to one is writing to both.

    Attributes
    ----------
    base : TracedArray
        The other.
    read : callable
        From the value of the base to that of the part.
    write : callable or None
        From the value of the base and a new value of the part to the new value of the base; None for a part that NumPy
        makes read-only.
    seen : XlaOp
        The value of the base that the part was last read from.
    """

    base: TracedArray
    read: Callable[[XlaOp], XlaOp]
    write: Callable[[XlaOp, XlaOp], XlaOp] | None
    seen: XlaOp


class TracedArray:
    """Stands for any array of a shape and dtype; NumPy's functions and operators on it become HLO.

    Like an `numpy.ndarray` it has a dtype, a shape and methods, it can be indexed and written to, and parts of it share
    their memory with it. It has no values: what needs one, such as ``if x > 0``, raises `TraceError`.

    Parameters
    ----------
    op : XlaOp
        The value, of the current trace or one around it.
    weak : type, optional
        Python's `int`, `float` or `complex` for a number that takes on the type of what it meets.
    rank0 : Rank0
        What NumPy would give in its place if it has no dimensions.
    """

    __slots__ = ("__weakref__", "_memory", "_op", "_view", "origin", "owner", "rank0", "weak")
    __array_priority__ = 1000.0

    def __init__(
        self, op: XlaOp, weak: type | None = None, *, memory: Memory | None = None, origin: str = "",
        rank0: Rank0 = Rank0.SCALAR,
    ) -> None:  # fmt: skip
        op.shape  # noqa: B018 - raises if the operation could not be made
        self._op = op
        self._view: View | None = None
        self.weak = weak
        self.rank0 = rank0
        self._memory = memory
        self.origin = origin
        self.owner: Trace | None = _trace.current()

    # -- what it is

    @property
    def op(self) -> XlaOp:
        """The present value."""
        view = self._view
        if view is not None:
            base = view.base.op
            if base is not view.seen:
                self._op, view.seen = view.read(_here(base)), base
        return self._op

    @property
    def known(self) -> np.ndarray[Any, Any] | None:
        """Its values where it has some already, as `KnownArray` does."""
        return None

    @property
    def kind(self) -> Kind:
        """Its dtype, or the Python class of a weak number."""
        return self.weak or self.dtype

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        found = self._op.shape.dtype.numpy_dtype
        assert found is not None
        return found

    @property
    def aval(self) -> Shape:
        """Shape and element type in HLO's terms."""
        return self._op.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self._op.shape.dims

    @shape.setter
    def shape(self, sizes: Any) -> None:
        new, old, view = self.reshape(sizes).shape, self.shape, self._view
        if self._memory is not None:
            memory = reshaped(self._memory, new)
            if memory is None:
                raise AttributeError("Incompatible shape for in-place modification: use x.reshape(sizes)")
            self._memory = memory
        self._op = xla.reshape(_here(self.op), new)
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
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each dimension, as NumPy would have them."""
        return self.memory.strides

    @property
    def base(self) -> TracedArray | None:
        """The array that this is a part of."""
        return self._view.base if self._view is not None else None

    @property
    def writeable(self) -> bool:
        """Whether NumPy would let one write to it: not to diagonals, and not to what is broadcast."""
        view = self._view
        while view is not None:
            if view.write is None:
                return False
            view = view.base._view
        return True

    # -- parts that share memory, and writing

    def lie(self, memory: Memory) -> None:
        """Say how the elements of a new array lie in memory."""
        self._memory = memory

    @property
    def memory(self) -> Memory:
        """How the elements lie in memory; never to be read."""
        return self._memory if self._memory is not None else row_major(self.shape, self.dtype)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one after the other in row-major order."""
        return self._memory is None or bool(self._memory.flags.c_contiguous)

    def part(
        self,
        read: Callable[[XlaOp], XlaOp],
        write: Callable[[XlaOp, XlaOp], XlaOp] | None,
        memory: Memory | None,
        kind: type[TracedArray] | None = None,
    ) -> TracedArray:
        """An array that shares memory with this one, and lies in row-major order unless it is said how; see `View`."""
        op = self.op
        sizes = op.shape.dims
        made = (kind or TracedArray)(read(_here(op)), memory=memory, rank0=Rank0.ARRAY)
        if self.ndim == 0 and self.rank0 is not Rank0.ARRAY:  # a scalar, which nothing shares memory with
            return made
        # `x.shape = ...` gives the base other sizes, but the part is what it was.
        made._view = View(
            self, lambda base: read(_sized(base, sizes)),
            write and (lambda base, new: _sized(write(_sized(base, sizes), new), base.shape.dims)), op,
        )  # fmt: skip
        return made

    def overwrite(self, op: XlaOp) -> None:
        """Give all elements new values, here and wherever the memory is shared.

        Parameters
        ----------
        op : XlaOp
            Of the same shape and dtype.

        Raises
        ------
        TraceError
            The array belongs to a function around the one being traced, whose values a loop or branch cannot change.
        ValueError
            NumPy makes this part read-only.
        """
        if self.owner is not _trace.current():
            raise TraceError(
                f"a loop or branch writes to {self!r}, which it has from outside", where=_trace.place(),
                hint="hand the array in as part of the state, and return it",
            )  # fmt: skip
        view = self._view
        if view is None:
            self._op = op
            return
        if view.write is None:
            raise ValueError("assignment destination is read-only")
        view.base.overwrite(view.write(_here(view.base.op), op))
        self._op, view.seen = op, view.base.op

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(map(_has_own_ufuncs, kwargs.get("out", ()))):
            return NotImplemented
        return hooks.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if not all(issubclass(t, (TracedArray, np.ndarray)) for t in types):
            return NotImplemented  # the other class may know what to do; else NumPy raises TypeError
        return hooks.call_function(func, *args, **kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self._refuse("become a NumPy array", _NO_ARRAY)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return np

    # -- values that it does not have

    def _refuse(self, what: str, hint: str) -> NoReturn:
        if _trace.current() is None:
            _trace.escaped()
        what, hint = _OUTSIDE.get(doing(), (what, hint))
        where = _trace.place()
        raise TraceError(f"{self._describe()} cannot {what}: it has no value while tracing", where=where, hint=hint)

    def _describe(self) -> str:
        origin = self.origin or _made_at(self._op)
        return f"traced {self.dtype}[{','.join(map(str, self.shape))}]" + (f" ({origin})" if origin else "")

    def __bool__(self) -> NoReturn:
        self._refuse("decide a branch", "np.where, or cyxla.cond, while_loop or fori_loop; all sizes are plain numbers")

    def __int__(self) -> NoReturn:
        self._refuse("become an int", "mark the argument static, or keep it an array: x.astype(int)")

    def __float__(self) -> NoReturn:
        self._refuse("become a float", "keep it an array: x.astype(float), and np.sin(x) in place of math.sin(x)")

    def __complex__(self) -> NoReturn:
        self._refuse("become a complex", "keep it an array: x.astype(complex)")

    def __index__(self) -> NoReturn:
        self._refuse("be an index or a size", "mark the argument static; cyxla.fori_loop counts to a traced number")

    def __hash__(self) -> NoReturn:
        self._refuse("be a key or in a set", "mark the argument static")

    def item(self, *args: Any) -> NoReturn:
        """Not while tracing."""
        self._refuse("become a Python number", "index it instead: x[0]")

    def tolist(self) -> NoReturn:
        """Not while tracing."""
        self._refuse("become a list", "return it from the function first")

    def tobytes(self, order: str = "C") -> NoReturn:
        """Not while tracing."""
        self._refuse("become bytes", "return it from the function first")

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[TracedArray]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))

    def __contains__(self, value: Any) -> NoReturn:
        self._refuse("tell what is in it", "np.any(x == value) is the traced answer")

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        self._refuse("be pickled", "return it from the function first")

    def __repr__(self) -> str:
        return f"TracedArray({self.dtype}{list(self.shape)}{', weak' if self.weak else ''})"

    def __format__(self, spec: str) -> str:
        return repr(self)

    @property
    def at(self) -> Any:
        """Written ``x.at[i].set(v)``: a new array, some elements changed; add, multiply, divide, power, min, max."""
        return hooks.at(self)

    def __getitem__(self, key: Any) -> TracedArray:
        made: TracedArray = hooks.get_item(self, key)
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        hooks.set_item(self, key, value)

    def __getattr__(self, name: str) -> Any:
        if name == "__array_interface__":
            raise AttributeError(
                "traced arrays have no strides; np.lib.stride_tricks.sliding_window_view takes windows"
            )
        if name.startswith("__"):
            raise AttributeError(name)
        if hasattr(np.ndarray, name):
            raise UnimplementedError(f"ndarray.{name} cannot be traced", where=_trace.place())
        raise AttributeError(f"'TracedArray' object has no attribute {name!r}")


def _has_own_ufuncs(value: Any) -> bool:
    """Whether an object that is not an array says itself what ufuncs do with it."""
    return not isinstance(value, (np.ndarray, TracedArray)) and hasattr(type(value), "__array_ufunc__")


_NO_ARRAY = "NumPy's functions take it, x.astype(t) converts it, np.array([x, y]) makes an array of several"
#: What a line may do with a traced value and something that is not, which NumPy or Python then wants its value for.
_OUTSIDE = {
    "look up": (
        "be an index of a NumPy array or container from outside",
        "np.take(table, i), or np.asarray(table)[i]; cyxla.switch(i, functions) calls one of several",
    ),
    "store": (
        "be written to a NumPy array from outside, or be an index of it",
        "write to a copy, np.array(table), and return that",
    ),
}
_ENTRIES = (
    "__array__", "__array_function__", "__array_ufunc__", "__bool__", "__complex__", "__contains__", "__copy__",
    "__deepcopy__", "__float__", "__format__", "__getattr__", "__getitem__", "__hash__", "__index__", "__int__",
    "__iter__", "__len__", "__reduce__", "__setitem__", "item", "tobytes", "tolist",
)  # fmt: skip
for _name in _ENTRIES:
    setattr(TracedArray, _name, api_boundary(vars(TracedArray)[_name]))


def _made_at(op: XlaOp) -> str:
    """The line of the program that an operation is of."""
    known = dict(op.instruction.metadata) if op.instruction is not None else {}
    return f"made at {known['source_file']}:{known['source_line']}" if "source_line" in known else ""


def _sized(op: XlaOp, sizes: tuple[int, ...]) -> XlaOp:
    return op if op.shape.dims == sizes else xla.reshape(op, sizes)


def _here(op: XlaOp) -> XlaOp:
    """A value as one of the current trace."""
    return _trace.require_current().inner(op)


def traced(op: XlaOp, weak: type | None = None) -> TracedArray:
    """A value as an array."""
    return TracedArray(op, weak)


def as_traced(value: Any, dtype: Any = None) -> TracedArray:
    """Anything that NumPy takes for an array, as a traced one; lists may hold traced arrays.

    Raises
    ------
    DTypeError
        Its dtype cannot be compiled.
    """
    if isinstance(value, TracedArray):
        made = value
    elif isinstance(value, (list, tuple)) and _holds_traced(value):
        made = _stacked(value)
    else:
        made = _constant(value)
    if dtype is None or made.dtype == np.dtype(dtype):
        return made
    return cast(made, dtype)


_PYTHON = (bool, int, float, complex)


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
        raise DTypeError(f"cannot be traced: {error}", where=_trace.place()) from None
    rank0 = Rank0.ARRAY if isinstance(value, np.ndarray) else Rank0.PYTHON if kind in _PYTHON else Rank0.SCALAR
    memory = None if array.flags.c_contiguous else memory_of(array.shape, array.dtype, array.strides)
    return TracedArray(_trace.require_current().constant(array), weak, memory=memory, rank0=rank0)


def require_plain(value: Any, what: str) -> None:
    """Refuse arrays of classes that compute in other ways than arrays do, or have labels.

    Raises
    ------
    DTypeError
        It is one.
    """
    if isinstance(value, (np.matrix, np.ma.MaskedArray)):
        raise arguments.with_own_operators(value, what)
    arguments.require_values_alone(value, what)


def is_traced(value: Any) -> bool:
    """Whether there are no values of an argument yet."""
    if isinstance(value, (list, tuple)):
        return any(map(is_traced, value))
    return isinstance(value, TracedArray) and value.known is None


def require_sizes(*sizes: Any) -> None:
    """Refuse sizes that are traced; NumPy's own error does not say what is wrong with them.

    Raises
    ------
    TraceError
        One is.
    """
    for size in sizes:
        for n in size if isinstance(size, (list, tuple)) else (size,):
            if isinstance(n, TracedArray) and n.known is None:
                n.__index__()


def _holds_traced(values: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return any(map(_holds_traced, values))
    return isinstance(values, TracedArray)


def _stacked(values: Sequence[Any]) -> TracedArray:
    stack: Any = np.stack  # which dispatches to us
    made: TracedArray = stack([as_traced(v) for v in values])
    return made


def value_of(array: TracedArray) -> XlaOp:
    """The value of an array as one of the current trace."""
    return _here(array.op)


def cast(array: TracedArray, dtype: Any) -> TracedArray:
    """The array in another dtype, as ``astype`` converts."""
    return TracedArray(convert(value_of(array), np.dtype(dtype)))
