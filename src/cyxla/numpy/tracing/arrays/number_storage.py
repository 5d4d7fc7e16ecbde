"""Lists of numbers whose elements loops write: their numbers are in an array, which is written in their place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.traced_array import Doubt, LazyList, TracedArray, as_traced, cast, value_of
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current, require_current, user_line

_np: Any = np  # its functions dispatch to this package
ALL_OF_OTHER_CLASS = "all numbers of a list are of another class, such as int for float, by the values"
TRACED_WRITE = "an element of a list is written at a traced index"
_WIDTH = {kind: k for k, kind in enumerate("biufc")}  # from bools to complex numbers
_PYTHON_CLASSES = {"b": bool, "i": int, "u": int, "f": float, "c": complex}  # by the kind of a dtype
_DTYPES_OF_PYTHON = (np.dtype(bool), np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.complex128))
_MOST_EXACT = 1 << 53  # integers up to which are floats
_SEVERAL = "numbers of several classes are stored in a list"


class Leaf(NamedTuple):
    """Class of a number among the elements of a list; of arrays it says nothing.

    Attributes
    ----------
    weak : type or None
        Python's class, if it is one of Python's numbers.
    rank0 : Rank0
        Class of a number.
    """

    weak: type | None
    rank0: Rank0

    @staticmethod
    def of_python(kind: type) -> Leaf:
        """Return the class of Python's numbers of a type."""
        return Leaf(None if kind is bool else kind, Rank0.PYTHON)

    @property
    def is_python(self) -> bool:
        """True for a number of Python."""
        return self.weak is not None or self.rank0 is Rank0.PYTHON


def leaf_of(value: TracedArray) -> Leaf:
    """Return the class of a leaf."""
    return Leaf(value.weak, value.rank0 if value.weak is None else Rank0.PYTHON)


class NumberClass(NamedTuple):
    """Class and dtype of numbers, and whether they are values that are known or of another class in some runs."""

    leaf: Leaf
    dtype: Dtype
    is_known: bool = False
    is_doubtful: bool = False

    @staticmethod
    def of(value: Any) -> NumberClass | None:
        """Return the class of a number; None for other values."""
        if isinstance(value, TracedArray):
            is_number = value.ndim == 0 and value.rank0 is not Rank0.ARRAY and value.dtype.kind in "biufc"
            return (
                NumberClass(leaf_of(value), value.dtype, value.known is not None, value.doubt is not None)
                if is_number
                else None
            )
        if isinstance(value, np.generic):
            is_number = value.dtype.kind in "biufc"
            return NumberClass(Leaf(None, Rank0.SCALAR), value.dtype, is_known=True) if is_number else None
        if type(value) is int and not -(2**63) <= value < 2**63:
            return None
        return _OF_PYTHON.get(type(value))

    @property
    def kind(self) -> tuple[Leaf, Dtype]:
        """Class and dtype alone."""
        return self.leaf, self.dtype


_OF_PYTHON: dict[type, NumberClass] = {
    bool: NumberClass(Leaf.of_python(bool), np.dtype(bool), is_known=True),
    int: NumberClass(Leaf.of_python(int), np.dtype(np.int64), is_known=True),
    float: NumberClass(Leaf.of_python(float), np.dtype(np.float64), is_known=True),
    complex: NumberClass(Leaf.of_python(complex), np.dtype(np.complex128), is_known=True),
}


class NumberStorage:
    """Array with the numbers of a list.

    Parameters
    ----------
    array : TracedArray
        Numbers.
    leaf : Leaf
        Class of the numbers.
    others : TracedArray, optional
        Whether each number has another class, of which it is the exact value.
    """

    def __init__(self, array: TracedArray, leaf: Leaf, others: TracedArray | None) -> None:
        self.array, self.leaf, self.others = array, leaf, others

    @property
    def arrays(self) -> list[TracedArray]:
        """Arrays that writes change."""
        return [self.array] if self.others is None else [self.array, self.others]

    def takes(self, value: Any) -> bool:
        """Return True if a number has the class of the others, or may have another one."""
        found = NumberClass.of(value)
        is_same = found is not None and found.kind == (self.leaf, self.array.dtype) and not found.is_doubtful
        return is_same or self.others is not None

    def write(self, key: Any, value: Any) -> None:
        """Store a number.

        Raises
        ------
        TraceError
            It is of a class that the storage was not made for.
        """
        found = NumberClass.of(value)
        is_same = found is not None and found.kind == (self.leaf, self.array.dtype)
        if not is_same and (self.others is None or not _is_exact(value, found, self.array.dtype)):
            raise TraceError(_SEVERAL, where=user_line())
        number = as_traced(value)
        self.array[key] = cast(number, self.array.dtype)
        if self.others is not None:
            doubt = number.doubt
            self.others[key] = (not is_same) if doubt is None else TracedArray(require_current().capture(doubt.test))

    def read(self, key: Any) -> TracedArray:
        """Return the number at an index."""
        number = TracedArray(value_of(self.array[key]), self.leaf.weak, rank0=self.leaf.rank0)
        number.doubt = self.doubt_of(key)
        return number

    def as_result(self, key: Any = ...) -> TracedArray:
        """Return the numbers, or some of them, as part of a result, which tells whether any has another class."""
        made = TracedArray(value_of(self.array[key]))
        if self.others is not None:
            made.doubt = Doubt(value_of(_np.any(self.others[key])), is_numpy=True)
        return made

    def as_array(self, key: Any = ...) -> TracedArray:
        """Return the numbers, or some of them, as ``np.array`` does, whose dtype is another one if all classes are."""
        if self.others is not None:
            is_other = value_of(_np.all(self.others[key]))
            text = f"{ALL_OF_OTHER_CLASS}\n  at:   {user_line()}"
            require_current().leave_if(is_other, lambda _: TypeError(text))
        return TracedArray(value_of(self.array[key]))

    def reshaped(self, shape: tuple[int, ...]) -> NumberStorage:
        """Return the storage of as many numbers in another shape."""
        others = None if self.others is None else own_array(self.others.reshape(shape))
        return NumberStorage(own_array(self.array.reshape(shape)), self.leaf, others)

    def doubt_of(self, key: Any) -> Doubt | None:
        """Return in which runs the number at an index has another class."""
        return None if self.others is None else Doubt(value_of(self.others[key]), is_numpy=True)

    def doubt(self) -> Doubt | None:
        """Return in which runs any number has another class."""
        return None if self.others is None else Doubt(value_of(_np.any(self.others)), is_numpy=True)

    def doubt_of_all(self) -> Doubt | None:
        """Return in which runs all numbers have another class."""
        return None if self.others is None else Doubt(value_of(_np.all(self.others)), is_numpy=True)


def python_class(dtype: Dtype) -> type | None:
    """Return the class of the Python numbers that elements of a dtype become; None for uint64, beyond s64."""
    if dtype == np.uint64:
        return None
    return _PYTHON_CLASSES.get(dtype.kind)


class StoredList(LazyList):
    """List whose numbers are put into an array when a loop writes elements of it.

    Attributes
    ----------
    storage : NumberStorage or None
        Array whose elements are written in the place of those of the list.
    owner : Trace or None
        Trace in which the list was made.
    """

    def __init__(self) -> None:
        super().__init__()
        self.storage: NumberStorage | None = None
        self.owner = current()
        self._kept_storage: NumberStorage | None = None
        self._stored: list[NumberClass] = []  # by a loop that is being recorded

    @abstractmethod
    def store(self) -> list[TracedArray]:
        """Put the numbers into an array in the current trace, for those that are written; return the arrays."""

    @abstractmethod
    def contents(self) -> list[Any]:
        """Return objects that stay the same as long as the list does, whether its elements are made or not."""

    @abstractmethod
    def resume(self, contents: Sequence[Any]) -> None:
        """Hold what the list held before; see `contents`."""

    @property
    def is_array(self) -> bool:
        """True if arrays stand for the numbers for as long as nothing else is done with the list than arrays serve."""
        return self.storage is not None

    @property
    def is_in_loop(self) -> bool:
        """True while a loop is being recorded that the list is from outside of."""
        trace = current()
        while trace is not None and trace is not self.owner:
            if trace.is_loop:
                return True
            trace = trace.parent
        return False

    def learn(self, value: Any) -> None:
        """Note the class of a number that is stored.

        Raises
        ------
        TraceError
            It is no number, or lists are to stay as they are.
        """
        found = NumberClass.of(value)
        if found is None or require_current().program.keeps_known:
            raise TraceError(TRACED_WRITE, where=user_line(), hint="use an array")
        self._stored.append(found)

    def take_stored(self) -> list[NumberClass]:
        """Return the classes of the numbers that are stored, and forget them."""
        stored, self._stored = self._stored, []
        return stored

    def keep(self, storage: NumberStorage) -> None:
        """Use an array for the numbers."""
        self.storage = self._kept_storage = storage
        require_current().program.made_traced = True

    def resume_storage(self, contents: Sequence[Any]) -> bool:
        """Use the array that was used before, if that is what the list held; return True if so."""
        kept = self._kept_storage
        is_stored = kept is not None and len(contents) > 0 and contents[0] is kept.array
        self.storage = kept if is_stored else None
        return is_stored


def make_storage(
    numbers: Sequence[Any] | TracedArray, leaf: Leaf | None, stored: Sequence[NumberClass]
) -> NumberStorage:
    """Make the array of a list to which a loop stores numbers.

    Parameters
    ----------
    numbers : sequence or TracedArray
        Elements of the list, or the array that stands for them.
    leaf : Leaf or None
        Class of the elements, if they are an array.
    stored : sequence of NumberClass
        Classes of the numbers that are stored.

    Raises
    ------
    TraceError
        The numbers have no common array.
    """
    present = _kinds(numbers, leaf)
    traced_kinds = {c.kind for c in stored if not c.is_known}
    if len(traced_kinds) > 1:
        raise TraceError(_SEVERAL, where=user_line())
    kinds = [*traced_kinds] or sorted({*present, *[c.kind for c in stored]}, key=lambda kind: _WIDTH[kind[1].kind])
    target = kinds[-1]
    has_others = any(kind != target for kind in present) or any(c.is_doubtful or c.kind != target for c in stored)
    if has_others and target[1] not in _DTYPES_OF_PYTHON:  # NumPy finds another dtype for both
        raise TraceError(_SEVERAL, where=user_line())
    others = own_array(as_traced(np.array([kind != target for kind in present]))) if has_others else None
    return NumberStorage(_converted(numbers, target[1]), target[0], others)


def _kinds(numbers: Sequence[Any] | TracedArray, leaf: Leaf | None) -> list[tuple[Leaf, Dtype]]:
    """Return the class and the dtype of each number."""
    if isinstance(numbers, TracedArray):
        assert leaf is not None
        return [(leaf, numbers.dtype)] * len(numbers)
    classes = [NumberClass.of(v) for v in numbers]
    if not classes or None in classes:
        raise TraceError("a list of other values than numbers is written in a loop", where=user_line())
    return [c.kind for c in classes if c is not None]


def own_array(array: TracedArray) -> TracedArray:
    """Return a new array with the elements of another one."""
    return TracedArray(value_of(array), rank0=Rank0.ARRAY)


def _converted(numbers: Sequence[Any] | TracedArray, dtype: Dtype) -> TracedArray:
    """Return a new array of numbers that are exact in a dtype."""
    if isinstance(numbers, TracedArray):
        if not np.can_cast(numbers.dtype, dtype, "safe"):
            raise TraceError(_SEVERAL, where=user_line())
        if numbers.dtype.kind in "iu" and dtype.kind in "fc":
            is_large = _np.any(_np.abs(numbers) > _MOST_EXACT)
            text = f"an integer of a list is too large for a float, by the values\n  at:   {user_line()}"
            require_current().leave_if(value_of(is_large), lambda _: OverflowError(text))
        return own_array(cast(numbers, dtype))
    if not all(_is_exact(v, NumberClass.of(v), dtype) for v in numbers):
        raise TraceError(_SEVERAL, where=user_line())
    return own_array(cast(as_traced(list(numbers)), dtype))


def _is_exact(value: Any, found: NumberClass | None, dtype: Dtype) -> bool:
    """Return True if a number has the same value in a dtype."""
    if found is None:
        return False
    if found.dtype == dtype:
        return True
    if isinstance(value, TracedArray):
        if value.known is None:
            return found.dtype.kind not in "iu" and np.can_cast(found.dtype, dtype, "safe")
        value = value.known[()]
    if isinstance(value, complex) and dtype.kind != "c":
        return False
    return bool(dtype.type(value) == value) and not (dtype.kind in "biu" and isinstance(value, (float, np.floating)))
