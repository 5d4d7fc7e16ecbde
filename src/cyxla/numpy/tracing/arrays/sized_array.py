"""`SizedArray`: traced array of which some dimensions have a bound while tracing, and a size at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cyxla.errors import TraceError
from cyxla.numpy.tracing import containers
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.number_storage import python_class
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray, in_order_of, note_text, value_of
from cyxla.numpy.tracing.containers import Kind, Tree
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS, full_name
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

HINT = "np.where(mask, x, other) keeps the size of x; a function of arrays can be called on the result"
_S64 = np.dtype(np.int64)
_np: Any = np  # its functions dispatch to this package


def size_array(op: XlaOp, bound: int) -> TracedArray:
    """Wrap a run-time size, s64[] between 0 and a bound, as a Python integer."""
    trace = _trace.current()
    if trace is not None and op.instruction is not None:
        trace.ranges.setdefault(op.instruction, (0, bound))
    return TracedArray(op, int, rank0=Rank0.PYTHON)


def _size(value: TracedArray, bound: int) -> TracedArray:
    """Return a traced integer as a size between 0 and a bound."""
    if not value.may_be_unbound:
        return size_array(value_of(value), bound)
    size_array(value.unchecked_op, bound)  # declares the range
    return value  # which must not be read before the array is used


LARGE_PADDING: Final = 1 << 28  # bytes of a padded array, for which there may be no memory


class TooLargeError(TraceError):
    """Refusal of an array with several run-time dimensions, since it is too large if padded."""


def _check_bytes(data: TracedArray, run_time_dims: int) -> None:
    program = _trace.require_current().program
    if data.nbytes > max(program.largest_padding[0], LARGE_PADDING):
        program.largest_padding = data.nbytes, _trace.user_line()
    limit = program.most_padded_bytes
    if run_time_dims > 1 and limit is not None and data.nbytes > limit:
        raise TooLargeError(
            f"an array of run-time size takes {data.nbytes} bytes if it is padded to {data.shape}",
            where=_trace.user_line(),
        )


class SizedArray(NDArrayOperatorsMixin):
    """Stand-in for an array whose sizes along some dimensions are known at run time.

    Parameters
    ----------
    data : TracedArray
        Elements, padded along these dimensions to their bounds; the padding has any values.
    counts : mapping of int to TracedArray
        Size of each of these dimensions, s64[].
    """

    __array_priority__ = 2000.0
    part_of: tuple[Any, list[Any]] | None = None  # array and index of a view; see `numpy.sized.access`

    def __init__(self, data: TracedArray, counts: Mapping[int, TracedArray]) -> None:
        self._data, self._counts = data, dict(sorted(counts.items()))
        if isinstance(data, TracedArray):
            _check_bytes(data, len(counts))

    # -- attributes

    @property
    def padded(self) -> Any:
        """Elements, padded to the bounds."""
        return self._data

    @property
    def counts(self) -> dict[int, Any]:
        """Size of each run-time dimension as a Python integer."""
        dims = self.padded.shape
        return {d: _size(n, dims[d]) for d, n in self._counts.items()}

    @property
    def run_time_dims(self) -> tuple[int, ...]:
        """Dimensions of run-time size."""
        return tuple(self._counts)

    @property
    def count(self) -> Any:
        """Size of the only run-time dimension."""
        return self.counts[self.axis]

    @property
    def bound(self) -> int:
        """Greatest possible size of the only run-time dimension."""
        return int(self.padded.shape[self.axis])

    @property
    def axis(self) -> int:
        """The only run-time dimension."""
        counts = list(self.counts)
        if len(counts) > 1:
            raise_unsupported(
                "be passed to this function, since it has several such dimensions", "np.ravel flattens it"
            )
        return counts[0]

    def like(self, data: Any) -> SizedArray:
        """Return other padded elements of the same sizes."""
        return SizedArray(data, self._counts)

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        dtype: Dtype = self.padded.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return int(self.padded.ndim)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Dimension sizes, some of which are traced integers."""
        counts = self.counts
        return tuple([counts.get(d, n) for d, n in enumerate(self.padded.shape)])

    @property
    def size(self) -> Any:
        """Number of elements, a traced integer."""
        return product(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """Total bytes of the elements, a traced integer."""
        return self.size * self.itemsize

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """Transpose."""
        return _np.transpose(self)

    @property
    def mT(self) -> Any:  # noqa: N802 - NumPy's name
        """Transpose of each matrix."""
        return _np.matrix_transpose(self)

    @property
    def real(self) -> Any:
        """Real parts."""
        return _np.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """Imaginary parts."""
        return _np.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    # -- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return hooks.sized_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return hooks.sized_function(func, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise_unsupported("be converted to a NumPy array")

    def __getitem__(self, key: Any) -> Any:
        return hooks.sized_get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        hooks.sized_set(self, key, value)

    def astype(self, dtype: Any, **options: Any) -> SizedArray:
        """Convert to another dtype."""
        if not options.get("copy", True) and self.dtype == np.dtype(dtype):
            return hooks.sized_function(np.asarray, (self,), {"order": options.get("order", "K")})  # type: ignore[no-any-return]
        return self.like(self.padded.astype(dtype, **options))

    def copy(self, order: str = "C") -> SizedArray:
        """Return a copy."""
        return self.like(self.padded.copy(order))

    def tolist(self) -> Any:
        """Return the elements of a vector as a list of Python numbers."""
        kind = python_class(self.dtype)
        if self.ndim > 1 or kind is None:
            raise_unsupported("be converted to a list", "return it from the function first")
        return StackedList.of_numbers(self.astype(kind), kind)

    def item(self, *index: Any) -> Any:
        """Return the element at an index as a Python number; without an index, the only element."""
        if not index:
            return hooks.sized_item(self)
        return (self.flatten()[index[0]] if len(index) == 1 else self[index]).item()

    def flatten(self, order: str = "C") -> Any:
        """Return a flat copy."""
        return _np.ravel(self, order).copy()

    def reshape(self, *sizes: Any, order: str = "C", copy: bool | None = None) -> Any:
        """Change the shape."""
        shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        return _np.reshape(self, shape, order=order, copy=copy)

    def transpose(self, *axes: Any) -> Any:
        """Permute dimensions."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return _np.transpose(self, order)

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Sort in place."""
        self[...] = _np.sort(self, axis, kind, order, stable=stable)

    def fill(self, value: Any) -> None:
        """Set all elements."""
        self[...] = value

    def __copy__(self) -> SizedArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> SizedArray:
        return self.copy()

    # -- operations that need values or sizes while tracing

    def __len__(self) -> int:
        if 0 in self.run_time_dims and self.padded.shape[0]:
            raise_unsupported("have a length while tracing", "x.shape[0] and x.size are traced integers")
        return int(self.padded.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if 0 in self.run_time_dims and self.padded.shape[0]:
            raise_unsupported("be iterated over", "use cyxla.fori_loop(0, x.shape[0], ..), or operations on the array")
        return map(self.__getitem__, range(len(self)))

    def __contains__(self, value: Any) -> NoReturn:
        raise_unsupported("be searched by `in`", "use np.any(x == value)")

    def __bool__(self) -> NoReturn:
        raise_unsupported("be used as a condition", "use np.any(x), np.all(x) or x.size, and np.where or cyxla.cond")

    def __getattr__(self, name: str) -> Any:
        function = _METHODS.get(name)
        if function is None:
            if not name.startswith("__") and hasattr(np.ndarray, name):
                raise_unsupported(f"have .{name}")
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}")
        return lambda *args, **kwargs: function(self, *args, **kwargs)

    def refused_text(self, where: str) -> TraceError:
        """Return the error of an operation that needs the values as a text."""
        error: TraceError = self.padded.refused_text(where)
        return error

    def __repr__(self) -> str:
        if not isinstance(self._data, TracedArray):
            return f"SizedArray({self._data}, {self._counts})"
        note_text(self)
        sizes = ", ".join(f"<={n}" if d in self._counts else str(n) for d, n in enumerate(self.padded.shape))
        return f"SizedArray({self.dtype}[{sizes}])"


_METHOD_NAMES = (
    "all any argmax argmin argpartition argsort choose cumprod cumsum diagonal dot max mean min nonzero prod "
    "ravel repeat round searchsorted squeeze std sum swapaxes take trace var put"
)


def _original(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(np, name)
    return NUMPY_ORIGINALS.get(function, function)


def _compress(array: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    return np.compress(condition, array, axis, out)


def _clip(array: Any, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    return _np.clip(array, min, max, out=out, **options)


def _conjugate(array: Any, out: Any = None) -> Any:
    """Conjugate; a real array is returned itself, unlike by the function."""
    return array if array.dtype.kind != "c" and out is None else _np.conjugate(array, out=out)


def _view(array: Any, dtype: Any = None, type: Any = None) -> SizedArray:
    """Return a view of the same bits as another dtype."""
    if not (dtype is None or dtype is np.ndarray) and np.dtype(dtype).itemsize != array.itemsize:
        raise_unsupported("be viewed as elements of another size", "view the array that it is computed from")
    return array.like(array.padded.view(dtype, type))  # type: ignore[no-any-return]


_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _original(name) for name in _METHOD_NAMES.split()}, "conj": _conjugate, "conjugate": _conjugate,
    "compress": _compress, "clip": _clip, "view": _view,
}  # fmt: skip


def raise_unsupported(operation: str, hint: str = HINT) -> NoReturn:
    """Raise the error of an operation that is not supported on arrays of run-time size.

    Raises
    ------
    TraceError
        Always.
    """
    raise TraceError(
        f"an array whose size is known at run time only cannot {operation}", where=_trace.user_line(), hint=hint
    )


def raise_unsupported_function(function: Callable[..., Any]) -> NoReturn:
    """Raise the error of a NumPy function that is not supported on arrays of run-time size."""
    raise_unsupported(f"be passed to np.{full_name(function)}")


# -- padding


def is_within(op: XlaOp, counts: Mapping[int, XlaOp]) -> XlaOp:
    """Return the mask of the elements of an array that lie inside the sizes of some dimensions."""
    return reduce(xla.and_, [_is_below(op, axis, count) for axis, count in counts.items()])


def _is_below(op: XlaOp, axis: int, count: XlaOp) -> XlaOp:
    """Return the mask of the elements of an array whose index is below a size; the same for all arrays of its sizes."""
    masks, key = _trace.require_current().masks, (op.shape.dims, axis, count.instruction)
    mask = masks.get(key)
    if mask is None:
        indices = values.iota_along(op.builder, ElementType.S64, op.shape.dims, axis)
        mask = masks[key] = xla.lt(indices, xla.broadcast(count, op.shape.dims))
    return mask


def valid(array: SizedArray, axes: Iterable[int] | None = None) -> TracedArray:
    """Return the mask of the elements of an array that are not padding along some dimensions, by default all."""
    return TracedArray(is_within(value_of(array.padded), _ops(array, axes)))


def _ops(array: SizedArray, axes: Iterable[int] | None) -> dict[int, XlaOp]:
    chosen = array.counts if axes is None else {d: n for d, n in array.counts.items() if d in axes}
    return {d: value_of(n) for d, n in chosen.items()}


def filled(array: SizedArray, filler: Any, axes: Iterable[int] | None = None) -> TracedArray:
    """Return the padded elements with another value in the padding.

    Parameters
    ----------
    array : SizedArray
        Array.
    filler : object
        Number, or function from a value to a scalar of its type.
    axes : iterable of int, optional
        Dimensions whose padding is filled; by default all.
    """
    op, counts = value_of(array.padded), _ops(array, axes)
    if not counts:
        return TracedArray(op, rank0=Rank0.ARRAY)
    scalar = filler(op) if callable(filler) else values.scalar(op, filler)
    mask = is_within(op, counts)
    return in_order_of(array.padded, xla.select(mask, op, xla.broadcast(scalar, op.shape.dims)))


def product(sizes: Iterable[Any]) -> Any:
    """Return the product of sizes, some of which may be traced integers."""
    known, traced = 1, []
    for n in sizes:
        if isinstance(n, TracedArray):
            traced.append(n)
        else:
            known *= n
    total: Any = known
    for k, n in enumerate(traced):
        total = n if k == 0 and known == 1 else total * n
    return total


def as_size(value: TracedArray, bound: int) -> TracedArray:
    """Convert a traced integer to the size of a dimension."""
    return size_array(convert(value_of(value), _S64), bound)


# -- containers: elements and sizes are leaves


class Prototype:
    """Result of a program without its elements."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


def _build(key: Any, parts: Sequence[Any]) -> Any:
    data, *counts = parts
    if isinstance(data, Prototype):
        dynamic = [d in key for d in range(data.shape.rank)]
        return Prototype(Shape.array(data.shape.dtype, data.shape.dims, dynamic=dynamic))
    if isinstance(data, np.ndarray):
        return _trim(data, {d: int(n) for d, n in zip(key, counts, strict=True)})
    return SizedArray(data, dict(zip(key, counts, strict=True)))


def _trim(data: np.ndarray[Any, Any], counts: Mapping[int, int]) -> np.ndarray[Any, Any]:
    """Return an array of the true sizes, contiguous and with memory for at most twice as many elements."""
    trimmed = data[tuple([slice(counts.get(d, n)) for d, n in enumerate(data.shape)])]
    if trimmed.shape == data.shape:
        return data
    order = np.argsort([-n for n in data.strides], kind="stable")
    if trimmed.transpose(order).flags.c_contiguous and 2 * trimmed.size >= data.size:
        return trimmed
    copied = trimmed.copy("K")
    copied.flags.writeable = data.flags.writeable
    return copied


def _parts(array: SizedArray) -> Sequence[Any]:
    if isinstance(array._data, (TracedArray, type(None))):
        return (array.padded, *array.counts.values())
    return (array._data, *array._counts.values())


SIZED = Kind(_parts, lambda v: tuple(v.counts if isinstance(v._data, (TracedArray, type(None))) else v._counts),
             lambda v: ("", *[".size"] * (len(_parts(v)) - 1)), _build)  # fmt: skip


def is_sized(value: Any) -> bool:
    """Return True if a value, or a member of a list, has a run-time size."""
    if isinstance(value, LazyList):  # its elements are of one shape, and are not made for this
        return False
    if isinstance(value, (list, tuple)):
        return any(map(is_sized, value))
    return isinstance(value, SizedArray)


def contains_sized(tree: Tree) -> bool:
    """Return True if a container has an array of run-time size."""
    return tree.kind is SIZED or any(map(contains_sized, tree.children))


def size_leaves(tree: Tree) -> list[bool]:
    """Return for each leaf of a container whether it is the size of an array."""
    if tree.kind is SIZED:
        return [False, *[True] * (tree.count - 1)]
    return [False] if tree.kind is None else [is_size for child in tree.children for is_size in size_leaves(child)]


def build_arrays(tree: Tree, leaves: Iterator[Any]) -> list[Any]:
    """Return the arrays of a container, those of run-time size built from its elements and sizes."""
    if tree.kind is None or tree.kind is SIZED:
        return [tree.take(leaves)]
    return [array for child in tree.children for array in build_arrays(child, leaves)]


def register_container(cls: type[SizedArray]) -> None:
    """Make a class of arrays a container of its elements and its size."""
    containers.register_kind(cls, SIZED)


register_container(SizedArray)
__all__ = ["SizedArray"]
