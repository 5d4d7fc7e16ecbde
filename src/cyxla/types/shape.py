"""Shapes: interned, so that equality is identity and derived facts are computed once."""

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
# TensorFlow's limit. Programs may have fewer (see `cyxla.xla.hlo.limits`), but passes split dimensions in two.
MAX_RANK: Final = 254
_Sizes = tuple[int, ...]  # `tuple` names a method inside the class
_Shapes = tuple["Shape", ...]


class Shape:
    """The type of a value: an array, a tuple, a token, or something opaque.

    Make one with `Shape.array`, `Shape.tuple`, `TOKEN` or `OPAQUE`. There is one object for each distinct shape.

    Attributes
    ----------
    dtype : ElementType
        Element type, or TUPLE, TOKEN, OPAQUE, BUFFER.
    dims : tuple of int
        Sizes (bounds, where dynamic); () for a scalar and for what is not an array.
    dynamic : tuple of bool
        Which dimensions are dynamic (``<=n`` or ``?``).
    layout : Layout or None
        None when the program named none.
    elements : tuple of Shape
        The parts of a tuple.
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
        """The shape of an array.

        Parameters
        ----------
        dtype : ElementType or str
            Element type or its HLO spelling.
        dims : sequence of int
            Sizes, each >= 0 (or `UNBOUNDED`).
        layout : Layout, optional
            None leaves the layout open.
        dynamic : sequence of bool, optional
            Which dimensions are dynamic; none by default.

        Raises
        ------
        ShapeError
            A size that is no whole number or negative, more than 254 dimensions or 2^63 - 1 bytes, or a layout that is
            not an order of the dimensions.
        """
        kind = element_type(dtype) if isinstance(dtype, str) else dtype
        sizes, moving = tuple(dims), tuple(dynamic)
        key = (kind, sizes, moving if any(moving) else (), layout)
        found = _ARRAYS.get(key)
        return found if found is not None else _new_array(kind, sizes, key[2], layout)

    @staticmethod
    def tuple(elements: Sequence[Shape]) -> Shape:
        """The shape of a tuple of values."""
        parts = tuple(elements)
        found = _TUPLES.get(parts)
        return found if found is not None else _new_tuple(parts)

    @staticmethod
    def of(array: Any) -> Shape:
        """The shape of a NumPy array (or scalar)."""
        value = np.asarray(array)
        return Shape.array(from_numpy(value.dtype), value.shape)

    @property
    def is_scalar(self) -> bool:
        """Whether this is an array of rank 0."""
        return self.is_array and self.rank == 0

    @property
    def logical(self) -> Shape:
        """The shape without layouts; two shapes hold the same values when these are the same object."""
        if self._logical is None:
            self._logical = _without_layout(self)
        return self._logical

    @property
    def static(self) -> Shape:
        """The shape without layouts and with bounds taken as sizes."""
        if self._static is None:
            self._static = _without_dynamic(self)
        return self._static

    def compatible(self, other: Shape) -> bool:
        """Whether the shapes are equal but for layouts."""
        return self is other or self.logical is other.logical

    def with_layout(self, layout: Layout | None) -> Shape:
        """The same array shape in another layout."""
        return Shape.array(self.dtype, self.dims, layout=layout, dynamic=self.dynamic)

    def with_dtype(self, dtype: ElementType) -> Shape:
        """An array shape of the same sizes and another element type; no layout."""
        return Shape.array(dtype, self.dims, dynamic=self.dynamic)

    def with_dims(self, dims: Sequence[int], dynamic: Sequence[bool] = ()) -> Shape:
        """An array shape of the same element type and other sizes; no layout."""
        return Shape.array(self.dtype, dims, dynamic=dynamic)

    @property
    def minor_to_major(self) -> _Sizes:
        """The order of dimensions in memory, row-major where none was named."""
        return self.layout.minor_to_major if self.layout is not None else row_major(self.rank).minor_to_major

    def leaves(self) -> _Shapes:
        """The parts that are not tuples, in order."""
        if self._leaves is None:
            self._leaves = tuple(_walk(self))
        return self._leaves

    def subshape(self, index: Sequence[int]) -> Shape:
        """The part of a tuple that `index` leads to."""
        shape = self
        for i in index:
            if not 0 <= i < len(shape.elements):
                raise ShapeError(f"shape index {tuple(index)} leaves {self}")
            shape = shape.elements[i]
        return shape

    def to_text(self, *, layout: bool = True) -> str:
        """HLO spelling; with `layout`, arrays of rank 1 and up show one."""
        return _text(self, layout)

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text(self, False)
        return self._text

    __repr__ = __str__

    def __reduce__(self) -> Any:
        if self.is_tuple:
            return Shape.tuple, (self.elements,)
        return _rebuild, (self.dtype, self.dims, self.dynamic, self.layout)


_ARRAYS: WeakValueDictionary[Any, Shape] = WeakValueDictionary()
_TUPLES: WeakValueDictionary[Any, Shape] = WeakValueDictionary()
_LOCK = new_lock()  # of two threads that make one shape, both get the first


def _rebuild(dtype: ElementType, dims: tuple[int, ...], dynamic: tuple[bool, ...], layout: Layout | None) -> Shape:
    return Shape.array(dtype, dims, dynamic=dynamic, layout=layout)


def _blank(dtype: ElementType) -> Shape:
    shape = object.__new__(Shape)
    shape.dtype, shape.layout, shape.elements = dtype, None, ()
    shape._logical = shape._static = shape._leaves = shape._text = None
    shape.is_tuple = shape.is_array = shape.is_dynamic = False
    shape.dims, shape.dynamic, shape.rank, shape.size, shape.nbytes = (), (), 0, 1, 0
    return shape


def _whole(sizes: Sequence[Any]) -> _Sizes:
    """Sizes as Python's integers, which do not overflow."""
    try:
        return tuple([int(index(d)) for d in sizes])
    except TypeError:
        raise ShapeError(f"sizes {list(sizes)} are not all whole numbers") from None


def _new_array(dtype: ElementType, sizes: _Sizes, dynamic: tuple[bool, ...], layout: Layout | None) -> Shape:
    if len(sizes) > MAX_RANK:  # first, since the product of very many sizes takes quadratic time
        raise ShapeError(f"an array of {len(sizes)} dimensions; {MAX_RANK} is the limit")
    dims = _whole(sizes)
    if any(d < 0 and d != UNBOUNDED for d in dims):
        raise ShapeError(f"{dtype}{list(dims)}: a size is negative")
    if layout is not None and sorted(layout.minor_to_major) != list(range(len(dims))):
        raise ShapeError(f"layout {layout} is not an order of the {len(dims)} dimensions of {dtype}{list(dims)}")
    if dynamic and len(dynamic) != len(dims):
        raise ShapeError(f"{len(dynamic)} dynamic flags for {len(dims)} dimensions")
    size = 0 if 0 in dims else prod(max(d, 1) for d in dims)
    if not size and max(dims) > MAX_ELEMENTS:  # nor do sizes beside zero go beyond what 64 bits hold
        raise ShapeError(f"{dtype}{list(dims)} has a size of more than 2^63 - 1")
    if size * max(dtype.itemsize, 1) > MAX_ELEMENTS:
        raise ShapeError(f"{dtype}{list(dims)} has more than 2^63 - 1 bytes")
    shape = _blank(dtype)
    shape.dims, shape.rank, shape.size, shape.nbytes = dims, len(dims), size, size * dtype.itemsize
    shape.dynamic, shape.is_dynamic, shape.layout = dynamic or (False,) * len(dims), bool(dynamic), layout
    shape.is_array = dtype.is_array
    with _LOCK:
        return _ARRAYS.setdefault((dtype, dims, dynamic, layout), shape)


def _new_tuple(elements: tuple[Shape, ...]) -> Shape:
    shape = _blank(ElementType.TUPLE)
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
    return Shape.array(shape.dtype, shape.dims) if shape.is_array else shape


def _walk(shape: Shape) -> Iterator[Shape]:
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
        spelled = str(shape.layout or row_major(shape.rank))
        return text if spelled == "{}" else text + spelled
    return text


TOKEN: Final = _blank(ElementType.TOKEN)
OPAQUE: Final = _blank(ElementType.OPAQUE)
_ARRAYS[(ElementType.TOKEN, (), (), None)] = TOKEN
_ARRAYS[(ElementType.OPAQUE, (), (), None)] = OPAQUE
