"""Shapes, which are interned: equal shapes are the same object, and derived properties are computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from operator import index
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from cyxla.errors import ShapeError
from cyxla.forking import new_lock
from cyxla.types.dtype import ElementType, element_type, from_numpy
from cyxla.types.layout import Layout, row_major

UNBOUNDED: Final = -(2**63)  # size of a `?` dimension, as in ShapeProto
MAX_ELEMENTS: Final = 2**63 - 1
# TensorFlow's limit. That of programs is lower (see `cyxla.xla.hlo.limits`), but passes split dimensions in two.
MAX_RANK: Final = 254
_Sizes = tuple[int, ...]  # `tuple` names a method inside the class
_Shapes = tuple["Shape", ...]


class Shape:
    """The type of a value: an array, a tuple, a token, or an opaque value.

    `Shape.array` and `Shape.tuple` construct shapes; `TOKEN` and `OPAQUE` are constants. There is one object for each
    distinct shape.

    Attributes
    ----------
    dtype : ElementType
        Element type, or TUPLE, TOKEN, OPAQUE, BUFFER.
    dims : tuple of int
        Sizes, or upper bounds of dynamic dimensions; () for scalars and for all types but arrays.
    dynamic : tuple of bool
        True for each dynamic dimension (``<=n`` or ``?``).
    layout : Layout or None
        Layout; None if the program specifies none.
    elements : tuple of Shape
        Elements of a tuple.
    """

    __slots__ = (
        "__weakref__", "_leaves", "_logical", "_static", "_text", "dims", "dtype", "dynamic", "elements", "is_array",
        "is_dynamic", "is_tuple", "layout", "nbytes", "rank", "size",
    )  # fmt: skip

    dtype: ElementType
    dims: tuple[int, ...]
    dynamic: tuple[bool, ...]
    layout: Layout | None
    elements: tuple[Shape, ...]
    rank: int
    size: int  # elements of an array, 1 for a scalar; bounds count as sizes
    nbytes: int  # bytes of an array in host memory
    is_array: bool
    is_tuple: bool
    is_dynamic: bool  # any dynamic dimension, in any leaf
    _logical: Shape | None
    _static: Shape | None
    _leaves: tuple[Shape, ...] | None
    _text: str | None

    def __init__(self) -> None:
        raise TypeError("use Shape.array(dtype, dims) or Shape.tuple(shapes)")

    @staticmethod
    def array(
        dtype: ElementType | str,
        dims: Sequence[int] = (),
        *,
        layout: Layout | None = None,
        dynamic: Sequence[bool] = (),
    ) -> Shape:
        """Return the shape of an array.

        Parameters
        ----------
        dtype : ElementType or str
            Element type or its HLO name.
        dims : sequence of int
            Sizes, each >= 0, or `UNBOUNDED` for a dynamic dimension.
        layout : Layout, optional
            Layout; None leaves it unspecified.
        dynamic : sequence of bool, optional
            True for each dynamic dimension; all are static by default.

        Raises
        ------
        ShapeError
            A size is negative or not an integer, the array has more than 254 dimensions or 2^63 - 1 bytes, or the
            layout is not a permutation of the dimensions.
        """
        kind = element_type(dtype) if isinstance(dtype, str) else dtype
        sizes, flags = tuple(dims), tuple(dynamic)
        key = (kind, sizes, flags if any(flags) else (), layout)
        shape = _ARRAYS.get(key)
        return shape if shape is not None else _new_array(kind, sizes, key[2], layout)

    @staticmethod
    def tuple(elements: Sequence[Shape]) -> Shape:
        """Return the shape of a tuple of values."""
        parts = tuple(elements)
        shape = _TUPLES.get(parts)
        return shape if shape is not None else _new_tuple(parts)

    @staticmethod
    def of(array: Any) -> Shape:
        """Return the shape of a NumPy array or scalar."""
        value = np.asarray(array)
        return Shape.array(from_numpy(value.dtype), value.shape)

    @property
    def is_scalar(self) -> bool:
        """True for an array of rank 0."""
        return self.is_array and self.rank == 0

    @property
    def logical(self) -> Shape:
        """The shape without layouts; the same object for all shapes that hold the same values."""
        if self._logical is None:
            self._logical = _without_layout(self)
        return self._logical

    @property
    def static(self) -> Shape:
        """The shape without layouts and with the bounds as static sizes; those without a bound stay as they are."""
        if self._static is None:
            self._static = _without_dynamic(self)
        return self._static

    def compatible(self, other: Shape) -> bool:
        """Return True if the shapes are equal apart from layouts."""
        return self is other or self.logical is other.logical

    def with_layout(self, layout: Layout | None) -> Shape:
        """Return the array shape with another layout."""
        return Shape.array(self.dtype, self.dims, layout=layout, dynamic=self.dynamic)

    def with_dtype(self, dtype: ElementType) -> Shape:
        """Return the array shape with another element type and no layout."""
        return Shape.array(dtype, self.dims, dynamic=self.dynamic)

    def with_dims(self, dims: Sequence[int], dynamic: Sequence[bool] = ()) -> Shape:
        """Return an array shape of the same element type with other sizes and no layout."""
        return Shape.array(self.dtype, dims, dynamic=dynamic)

    @property
    def minor_to_major(self) -> _Sizes:
        """The order of dimensions in memory; row-major without a layout."""
        return self.layout.minor_to_major if self.layout is not None else row_major(self.rank).minor_to_major

    def leaves(self) -> _Shapes:
        """Return the leaves of a tuple shape in order; the shape itself if it is not a tuple."""
        if self._leaves is None:
            self._leaves = tuple(_iter_leaves(self))
        return self._leaves

    def subshape(self, index: Sequence[int]) -> Shape:
        """Return the part of a nested tuple shape at a shape index."""
        shape = self
        for i in index:
            if not 0 <= i < len(shape.elements):
                raise ShapeError(f"shape index {tuple(index)} leaves {self}")
            shape = shape.elements[i]
        return shape

    def to_text(self, *, layout: bool = True) -> str:
        """Return the shape as HLO text; with `layout`, arrays of rank 1 or more include their layout."""
        return _text(self, layout)

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(self, False)
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> Any:
        if self.is_tuple:
            return Shape.tuple, (self.elements,)
        return _unpickle, (self.dtype, self.dims, self.dynamic, self.layout)


_ARRAYS: WeakValueDictionary[Any, Shape] = WeakValueDictionary()
_TUPLES: WeakValueDictionary[Any, Shape] = WeakValueDictionary()
_LOCK = new_lock()  # two threads that create equal shapes get the same object


def _unpickle(dtype: ElementType, dims: tuple[int, ...], dynamic: tuple[bool, ...], layout: Layout | None) -> Shape:
    return Shape.array(dtype, dims, dynamic=dynamic, layout=layout)


def _new_shape(dtype: ElementType) -> Shape:
    shape = object.__new__(Shape)
    shape.dtype, shape.layout, shape.elements = dtype, None, ()
    shape._logical = shape._static = shape._leaves = shape._text = None
    shape.is_tuple = shape.is_array = shape.is_dynamic = False
    shape.dims, shape.dynamic, shape.rank, shape.size, shape.nbytes = (), (), 0, 1, 0
    return shape


def _python_ints(sizes: Sequence[Any]) -> _Sizes:
    """Return sizes as Python integers, which do not overflow."""
    try:
        return tuple([int(index(d)) for d in sizes])
    except TypeError:
        raise ShapeError(f"sizes {list(sizes)} are not all integers") from None


def _new_array(dtype: ElementType, sizes: _Sizes, dynamic: tuple[bool, ...], layout: Layout | None) -> Shape:
    if len(sizes) > MAX_RANK:  # checked first: the product of very many sizes takes quadratic time
        raise ShapeError(f"an array of {len(sizes)} dimensions; {MAX_RANK} is the limit")
    dims = _python_ints(sizes)
    if any(d < 0 and not (d == UNBOUNDED and dynamic[k : k + 1] == (True,)) for k, d in enumerate(dims)):
        raise ShapeError(f"{dtype}{list(dims)}: a size is negative")
    if layout is not None and sorted(layout.minor_to_major) != list(range(len(dims))):
        raise ShapeError(f"layout {layout} is not an order of the {len(dims)} dimensions of {dtype}{list(dims)}")
    if dynamic and len(dynamic) != len(dims):
        raise ShapeError(f"{len(dynamic)} dynamic flags for {len(dims)} dimensions")
    size = 0 if 0 in dims else prod(max(d, 1) for d in dims)
    if not size and max(dims) > MAX_ELEMENTS:  # sizes of empty arrays must fit in 64 bits too
        raise ShapeError(f"{dtype}{list(dims)} has a size of more than 2^63 - 1")
    if size * max(dtype.itemsize, 1) > MAX_ELEMENTS:
        raise ShapeError(f"{dtype}{list(dims)} has more than 2^63 - 1 bytes")
    shape = _new_shape(dtype)
    shape.dims, shape.rank, shape.size, shape.nbytes = dims, len(dims), size, size * dtype.itemsize
    shape.dynamic, shape.is_dynamic, shape.layout = dynamic or (False,) * len(dims), bool(dynamic), layout
    shape.is_array = dtype.is_array
    with _LOCK:
        return _ARRAYS.setdefault((dtype, dims, dynamic, layout), shape)


def _new_tuple(elements: tuple[Shape, ...]) -> Shape:
    shape = _new_shape(ElementType.TUPLE)
    shape.elements, shape.is_tuple = elements, True
    shape.is_dynamic = any(e.is_dynamic for e in elements)
    with _LOCK:
        return _TUPLES.setdefault(elements, shape)


def _without_layout(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([e.logical for e in shape.elements])
    if shape.layout is None:
        return shape
    return Shape.array(shape.dtype, shape.dims, dynamic=shape.dynamic)


def _without_dynamic(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([e.static for e in shape.elements])
    if not shape.is_array:
        return shape
    return Shape.array(shape.dtype, shape.dims, dynamic=[d == UNBOUNDED for d in shape.dims])


def _iter_leaves(shape: Shape) -> Iterator[Shape]:
    if not shape.is_tuple:
        yield shape
        return
    for element in shape.elements:
        yield from element.leaves()


def _dim(size: int, dynamic: bool) -> str:
    if size == UNBOUNDED:
        return "?"
    return f"<={size}" if dynamic else str(size)


def _text(shape: Shape, layout: bool) -> str:
    if shape.is_tuple:
        parts = [
            (f"/*index={i}*/" if i and i % 5 == 0 else "") + _text(e, layout) for i, e in enumerate(shape.elements)
        ]
        return "(" + ", ".join(parts) + ")"
    sizes = ",".join(_dim(d, m) for d, m in zip(shape.dims, shape.dynamic, strict=True))
    text = f"{shape.dtype}[{sizes}]"
    if layout and shape.is_array and (shape.rank or shape.layout is not None):
        layout_text = str(shape.layout or row_major(shape.rank))
        return text if layout_text == "{}" else text + layout_text
    return text


TOKEN: Final = _new_shape(ElementType.TOKEN)
OPAQUE: Final = _new_shape(ElementType.OPAQUE)
_ARRAYS[(ElementType.TOKEN, (), (), None)] = TOKEN
_ARRAYS[(ElementType.OPAQUE, (), (), None)] = OPAQUE
