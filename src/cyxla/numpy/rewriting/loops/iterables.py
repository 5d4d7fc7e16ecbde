"""Iterables whose elements a loop of the program can compute from the number of an iteration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count, product, repeat
from math import prod
from operator import index
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.indexing.ranges import declare_range, range_of
from cyxla.numpy.rewriting.loops.unrolling import MOST_UNROLLED
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.number_table import NumberTable, TableRow
from cyxla.numpy.tracing.arrays.sharing import stand_for_untraced
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.trace import current, user_line
from cyxla.numpy.tracing.user_program.doubts import refuse_float
from cyxla.xla.hlo.builder import XlaOp

_np: Any = np  # its functions dispatch to this package


class Source(NamedTuple):
    """Elements of an iterable.

    Attributes
    ----------
    length : int or TracedArray
        Number of elements.
    element : callable
        Function from the number of an element, known or traced, to the element.
    bound : int
        Greatest possible number of elements.
    """

    length: Any
    element: Callable[[Any], Any]
    bound: int


class TracedRange:
    """Range of which a bound is traced.

    Parameters
    ----------
    start, stop : int or TracedArray
        Bounds.
    step : int
        Difference of consecutive elements.
    """

    shown = "range"  # in messages

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step

    @staticmethod
    def of(*bounds: Any) -> TracedRange:
        """Make the range of the arguments of `range`."""
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        step = index(step)  # refuses a traced step, whose sign decides the direction
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")
        return TracedRange(_integer(start), _integer(stop), step)

    def as_index_array(self) -> Any:
        """Return the elements as an array, as which the range is an index."""
        return hooks.sized_creation(np.arange, (self.start, self.stop, self.step), {})

    @property
    def length(self) -> Any:
        """Number of elements, a traced Python integer."""
        distance = self.stop - self.start if self.step > 0 else self.start - self.stop
        size = abs(self.step)
        steps = distance if size == 1 else (distance + (size - 1)) // size
        return python_integer(_np.maximum(steps, 0))

    @property
    def bound(self) -> int:
        """Greatest possible number of elements."""
        (low, _), (_, high) = _limits(self.start), _limits(self.stop)
        if self.step < 0:
            (_, high), (low, _) = _limits(self.start), _limits(self.stop)
        return max(0, -(-(high - low) // abs(self.step)))

    def element(self, number: Any) -> Any:
        """Return an element by its number, which is one of those that the range has."""
        scaled = number if self.step == 1 else number * self.step
        element = self.start + scaled
        if isinstance(element, TracedArray) and element.known is None:
            self._declare(value_of(element))
        return element

    def _declare(self, element: XlaOp) -> None:
        """Declare that an element lies between the bounds, which its computation alone does not tell."""
        first, last = (self.start, self.stop) if self.step > 0 else (self.stop, self.start)
        (low, _), (_, high) = _limits(first), _limits(last)
        (computed_low, computed_high), inside = range_of(element), int(self.step < 0)
        low, high = max(low + inside, computed_low), min(high - 1 + inside, computed_high)
        if low <= high:
            declare_range(element, low, high)

    def __iter__(self) -> Iterator[int]:
        return iter(range(index(self.start), index(self.stop), self.step))  # raises for the bound that is traced

    def __len__(self) -> int:
        return len(range(index(self.start), index(self.stop), self.step))


def _integer(value: Any) -> Any:
    if not is_traced(value):
        return index(value)
    if value.ndim or value.dtype.kind not in "iu":
        refuse_float(value, "a bound of a range")
        raise TypeError(f"'{value.dtype}' object cannot be interpreted as an integer")
    return python_integer(value)


def python_integer(value: Any) -> TracedArray:
    """Return a traced integer as one of Python's."""
    return traced(convert(value_of(as_traced(value)), np.dtype(np.int64)), int)


def _limits(value: Any) -> tuple[int, int]:
    if not is_traced(value):
        return value, value
    low, high = range_of(value_of(value))
    return low, high


class OneShot:
    """Stands for an iterator of Python's: it can be iterated over once, since a trace does not know where it ended."""

    shown = ""  # in messages
    _is_used = False

    def use(self) -> None:
        """Begin to iterate.

        Raises
        ------
        TraceError
            It was iterated over before.
        """
        if self._is_used:
            raise TraceError(
                f"an iterator, made by {self.shown}, is iterated over again", where=user_line(),
                hint="make it anew, or make a list of it",
            )  # fmt: skip
        self._is_used = True
        for part in self.parts_of():
            use_up(part)

    def parts_of(self) -> Sequence[Any]:
        """Return the values that are iterated over with it."""
        return ()

    def __iter__(self) -> Iterator[Any]:
        self.use()
        return self.elements()

    @abstractmethod
    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""


def use_up(iterable: Any) -> None:
    """Note that a loop begins to iterate over a value; see `OneShot.use`."""
    if isinstance(iterable, OneShot):
        iterable.use()


def elements_of(iterable: Any) -> Iterator[Any]:
    """Iterate in Python over a value that a loop has begun to iterate over."""
    return iterable.elements() if isinstance(iterable, OneShot) else iter(iterable)


def lists_in(iterable: Any) -> Iterator[StackedList]:
    """Yield the lists, for which arrays stand, that a loop over a value iterates over."""
    if isinstance(iterable, StackedList) and iterable.stacks is not None:
        yield iterable
    elif isinstance(iterable, OneShot):
        for part in iterable.parts_of():
            yield from lists_in(part)


def is_iterator(value: Any) -> bool:
    """Return True for an iterator, which knows by itself how far it was iterated over."""
    return hasattr(type(value), "__next__")


def held(value: Any, may_end_early: bool = False) -> Any:
    """Return a value of which a variable may hold an iterator.

    Parameters
    ----------
    value : object
        Value that is about to be iterated over.
    may_end_early : bool
        Whether a traced condition may decide how many elements are taken.

    Raises
    ------
    TraceError
        It is an iterator, and where it stands after the statement depends on the run.
    """
    if is_iterator(value) and (trace := current()) is not None and (may_end_early or trace.parent is not None):
        raise TraceError(
            "an iterator is advanced under a traced condition, or in a loop",
            where=user_line(), hint="make a list of it before",
        )  # fmt: skip
    return value


class Zipped(OneShot):
    """Iterables that are iterated over together."""

    shown = "zip"  # in messages

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts

    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""
        return zip(*map(elements_of, self.parts), strict=False)

    def parts_of(self) -> Sequence[Any]:
        """Return the values that are iterated over with it."""
        return self.parts


class Enumerated(OneShot):
    """An iterable with the numbers of its elements."""

    shown = "enumerate"  # in messages

    def __init__(self, values: Any, start: int) -> None:
        self.values, self.start = values, start

    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""
        return zip(count(self.start), elements_of(self.values), strict=False)

    def parts_of(self) -> Sequence[Any]:
        """Return the values that are iterated over with it."""
        return (self.values,)


class Indices(OneShot):
    """Indices of all elements of an array, in row-major order.

    Parameters
    ----------
    shape : tuple of int
        Sizes of the array.
    """

    shown = "numpy.ndindex"  # in messages

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""
        return product(*map(range, self.shape))

    def element(self, number: Any) -> tuple[Any, ...]:
        """Return an index by its number."""
        found: list[Any] = []
        for k, size in reversed(list(enumerate(self.shape))):
            found.append(number % size if k else number)
            number = number // size
        return tuple(found[::-1])


class IndexedElements(Indices):
    """Indices of all elements of a traced array, each with its element."""

    shown = "numpy.ndenumerate"  # in messages

    def __init__(self, values: Any) -> None:
        super().__init__(values.shape)
        self.values = values

    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""
        return ((index, self.values[index]) for index in super().elements())

    def element(self, number: Any) -> Any:
        """Return an index and its element by their number."""
        index = super().element(number)
        return index, self.values[index]


class Combinations(OneShot):
    """Combinations of the elements of several iterables, as `itertools.product` makes them."""

    shown = "itertools.product"  # in messages

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts

    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""
        return product(*map(elements_of, self.parts))

    def parts_of(self) -> Sequence[Any]:
        """Return the values that are iterated over with it."""
        return self.parts

    def source(self) -> Source | None:
        """Return the combinations by number; None if an iterable has no known length."""
        sources = [s for s in map(source_of, self.parts) if s is not None and not is_traced(s.length)]
        if len(sources) < len(self.parts):
            return None
        places = Indices(tuple([s.length for s in sources]))

        def element(number: Any) -> tuple[Any, ...]:
            return tuple([s.element(k) for s, k in zip(sources, places.element(number), strict=True)])

        count = prod(places.shape)
        return Source(count, element, count)


class Repeated(OneShot):
    """A value that is repeated.

    Parameters
    ----------
    value : object
        Value.
    times : int or TracedArray
        Number of repetitions.
    """

    shown = "itertools.repeat"  # in messages

    def __init__(self, value: Any, times: Any) -> None:
        self.value, self.times = value, times

    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""
        return iter(repeat(self.value, index(self.times)))

    def source(self) -> Source:
        """Return the elements by number."""
        inner = source_of(range(self.times) if not is_traced(self.times) else TracedRange.of(self.times))
        assert inner is not None
        return Source(inner.length, lambda n: self.value, inner.bound)


class Backwards(OneShot):
    """An iterable from its end to its beginning."""

    shown = "reversed"  # in messages

    def __init__(self, values: Any) -> None:
        self.values = values

    def elements(self) -> Iterator[Any]:
        """Iterate in Python."""
        source = source_of(self.values)
        assert source is not None
        return (source.element(k) for k in range(index(source.length) - 1, -1, -1))

    def parts_of(self) -> Sequence[Any]:
        """Return the values that are iterated over with it."""
        return (self.values,)

    def source(self) -> Source | None:
        """Return the elements by number."""
        inner = source_of(self.values)
        return inner and Source(inner.length, lambda n: inner.element(inner.length - 1 - n), inner.bound)


def indices(*shape: Any) -> Any:
    """Iterate over the indices of an array, as `numpy.ndindex` does."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if not all(type(n) is int and n >= 0 for n in sizes):
        return np.ndindex(*shape)
    return Indices(tuple(sizes))


def indexed_elements(values: Any) -> Any:
    """Iterate over indices and elements, as `numpy.ndenumerate` does."""
    return IndexedElements(values) if is_traced(values) and isinstance(values, TracedArray) else np.ndenumerate(values)


def combinations(*parts: Any, repeat: int = 1) -> Any:
    """Iterate over combinations of elements, as `itertools.product` does."""
    if not parts or repeat != 1 or not all(map(_is_source, parts)):
        return product(*parts, repeat=repeat)
    return Combinations(parts)


def repeated(value: Any, *times: Any) -> Any:
    """Repeat a value, as `itertools.repeat` does."""
    is_number = len(times) == 1 and (type(times[0]) is int or is_traced(times[0]))
    return Repeated(value, times[0]) if is_number else repeat(value, *times)


def backwards(values: Any) -> Any:
    """Iterate from the end to the beginning, as `reversed` does."""
    is_numbered = isinstance(values, (range, np.ndarray, TracedRange, TracedArray, SizedArray, StackedList))
    return Backwards(values) if is_numbered and source_of(values) is not None else reversed(values)


def zipped(*parts: Any, strict: bool = False) -> Any:
    """Iterate over several iterables together, as `zip` does."""
    if not any(map(_is_source, parts)) or (strict and not _are_equally_long(parts)):
        return zip(*parts, strict=strict)
    return Zipped(parts)


def _are_equally_long(parts: Sequence[Any]) -> bool:
    """Return True if iterables have the same number of elements: a known number, or one value of the program."""
    sources = [source_of(part) for part in parts]
    lengths = [s.length for s in sources if s is not None]
    if len(lengths) < len(parts):
        return False
    if all(map(is_traced, lengths)):
        return len({value_of(n) for n in lengths}) == 1
    return all(type(n) is int and n == lengths[0] for n in lengths)


def enumerated(values: Any, start: Any = 0) -> Any:
    """Iterate over numbers and elements, as `enumerate` does."""
    return Enumerated(values, start) if _is_source(values) else enumerate(values, start)


def _is_source(value: Any) -> bool:
    return isinstance(value, _SOURCES)


_SOURCES = (
    range, TracedRange, Zipped, Enumerated, Indices, Combinations, Backwards, Repeated, TracedArray, SizedArray,
    StackedList, NumberTable, TableRow, np.ndarray,
)  # fmt: skip


def source_of(value: Any) -> Source | None:
    """Return the elements of an iterable by number; None if only Python can iterate over it."""
    source = _source_of(value)
    if source is None or source.bound or not is_traced(source.length):
        return source
    return source._replace(length=0)


def is_short(source: Source) -> bool:
    """Return True if the elements are so few that Python makes a list of them."""
    return not is_traced(source.length) and source.length <= MOST_UNROLLED


def _source_of(value: Any) -> Source | None:
    if isinstance(value, range):
        return Source(len(value), lambda n: _affine(value.start, value.step, n), len(value))
    if isinstance(value, TracedRange):
        return Source(value.length, value.element, value.bound)
    if isinstance(value, (NumberTable, TableRow)):
        return Source(len(value), value.__getitem__, len(value))
    if isinstance(value, (TracedArray, np.ndarray)) and np.ndim(value):
        return _source_of_array(value)
    if isinstance(value, SizedArray):
        return Source(value.shape[0], _Elements(value).__getitem__, int(value.padded.shape[0]))
    if isinstance(value, StackedList) and value.stacks is not None:
        stacks = [_Elements(s) if isinstance(s, SizedArray) else s for s in value.stacks]
        return Source(value.length, lambda n: value.copy_of(n, stacks), value.bound)
    if isinstance(value, Enumerated):
        inner = source_of(value.values)
        return inner and Source(inner.length, lambda n: (n + value.start, inner.element(n)), inner.bound)
    if isinstance(value, Zipped):
        return _source_of_zipped(value)
    if isinstance(value, Indices):
        count = prod(value.shape)
        return Source(count, value.element, count)
    return value.source() if isinstance(value, (Combinations, Backwards, Repeated)) else None


class _Elements:
    """Elements of an array whose size is known at run time, by numbers of a loop, which are below it.

    Parameters
    ----------
    array : SizedArray
        Array.
    """

    def __init__(self, array: SizedArray) -> None:
        self._array = array
        self._is_vector = array.ndim == 1

    def __getitem__(self, number: Any) -> Any:
        if not self._is_vector or not is_traced(number):
            return self._array[number]
        return self._array.padded.at[number].get(mode="unchecked")


def _affine(start: int, step: int, number: Any) -> Any:
    scaled = number if step == 1 else number * step
    return scaled + start if start else scaled


def _source_of_array(value: Any) -> Source:
    def element(number: Any) -> Any:
        if not is_traced(number):
            return value[number]
        array = value if isinstance(value, TracedArray) else stand_for_untraced(as_traced(value))
        if isinstance(array, KnownArray) and array.known is not None and array.ndim == 1:
            array = as_traced(array.known)  # rows are views, which may be written, of the array itself
        return array[number]

    return Source(len(value), element, len(value))


def _source_of_zipped(value: Zipped) -> Source | None:
    parts = [source_of(p) for p in value.parts]
    sources = [p for p in parts if p is not None]
    if len(sources) < len(parts):
        return None
    lengths = [p.length for p in sources]
    if any(map(is_traced, lengths)):
        shortest: Any = lengths[0]
        for n in lengths[1:]:
            shortest = _np.minimum(shortest, n)
        length = python_integer(shortest)
    else:
        length = min(lengths)
    return Source(length, lambda n: tuple([p.element(n) for p in sources]), min(p.bound for p in sources))
