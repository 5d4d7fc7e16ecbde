"""Lists that loops of a program make: their elements are slices of arrays, which are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.number_storage import (
    ALL_OF_OTHER_CLASS,
    TRACED_WRITE,
    Leaf,
    NumberClass,
    StoredList,
    leaf_of,
    make_storage,
)
from cyxla.numpy.tracing.arrays.traced_array import Doubt, TracedArray, as_traced, value_of
from cyxla.numpy.tracing.containers import LEAF, LIST, Kind, Tree, complete_lists, flatten, register_kind
from cyxla.numpy.tracing.copies import noted_copy
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current, require_current, resumed, user_line
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_PYTHON_CLASSES = (int, float, complex)


Doubts: TypeAlias = Sequence["tuple[Doubt, Doubt] | None"]
RUN_TIME: Final = -1  # length of a list that is known at run time
MOST_MADE: Final = 1000  # numbers of an argument that are values of their own


class Elements(NamedTuple):
    """Structure of the elements of a list.

    Attributes
    ----------
    length : int
        Number of elements; `RUN_TIME` if only the run knows it.
    tree : Tree
        Structure of each element.
    leaves : tuple of Leaf
        Classes of the leaves of an element.
    is_row : bool
        True for those of a row of a list of lists, which a write to the row would change.
    """

    length: int
    tree: Tree
    leaves: tuple[Leaf, ...]
    is_row: bool = False

    def build(self, stacks: Sequence[Any], number: Any) -> Any:
        """Return an element by its number, which may be traced."""
        return noted_copy(
            self.tree.build([_slice(s, number, leaf) for s, leaf in zip(stacks, self.leaves, strict=True)])
        )


def _slice(stack: Any, number: Any, leaf: Leaf) -> Any:
    piece = stack[number]
    if np.ndim(piece) or (leaf.weak is None and leaf.rank0 is Rank0.SCALAR):
        return piece
    if isinstance(piece, TracedArray):
        return TracedArray(value_of(piece), leaf.weak, rank0=leaf.rank0)
    return piece.item() if leaf.is_python else np.array(piece)


class _Stacks(list[Any]):
    """Contents of a list for which arrays stand."""

    def __init__(self, stacks: Sequence[Any], elements: Elements, doubts: Doubts) -> None:
        super().__init__(stacks)
        self.elements, self.doubts = elements, doubts


class GrowingElements(Protocol):
    """Elements of a list to which the iteration that is being recorded appends."""

    def length(self) -> TracedArray:
        """Return the number of elements so far."""

    def as_list(self) -> StackedList:
        """Return a list of the elements so far."""


class StackedList(StoredList):
    """List of which each element has the same structure, shapes and dtypes.

    It becomes a usual list with the first use that arrays do not serve.

    Parameters
    ----------
    stacks : sequence of TracedArray
        Each leaf of all elements, along a new first dimension.
    elements : Elements
        Structure of the elements.
    doubts : sequence of (Doubt, Doubt) or None
        Whether numbers of an array have other classes in Python: some of them, and all; empty if none has.

    Attributes
    ----------
    is_guarded : bool
        True while an iteration is recorded that appends to the list.
    growing : GrowingElements or None
        Elements at this point of such an iteration.
    made : list or None
        Elements that `materialize` has made.
    comes_as_array : bool
        True for a list that comes as an array (an argument, a result of ``tolist``), and what is made of such a list
        without its elements.
    most_made : int
        Greatest number of elements of an argument that may be values of their own.
    """

    def __init__(self, stacks: Sequence[TracedArray] | None, elements: Elements, doubts: Doubts = ()) -> None:
        super().__init__()
        self.doubts = doubts
        self.stacks = None if stacks is None else list(stacks)
        self.elements = elements
        self.is_guarded = False
        self.growing: GrowingElements | None = None
        self.made: list[Any] | None = None
        self.comes_as_array = False
        self.most_made = MOST_MADE
        self._source: list[Any] = []
        self._first_leaves: list[Any] = []  # of the elements that were made, if they hold more than numbers
        self._before_storage: list[Any] | None = None  # arrays that stood for the numbers before they were stored

    @staticmethod
    def of(values: list[Any]) -> StackedList:
        """Return a list with the elements of another one, to which loops may append."""
        made = StackedList(None, Elements(0, LEAF, ()))
        list.extend(made, values)
        return made

    @staticmethod
    def of_numbers(array: Any, kind: type, most_made: int = MOST_MADE) -> StackedList:
        """Return a list of Python's numbers of a class, which an array stands for; its size may be of run time."""
        like = StackedList([], Elements(0, LEAF, (Leaf.of_python(kind),)))
        like.most_made = most_made
        return like.with_stacks([array])

    def with_stacks(self, stacks: Sequence[Any]) -> StackedList:
        """Return a list of elements of the same kind, made of an argument, for which other arrays stand."""
        length = stacks[0].shape[0] if isinstance(stacks[0], TracedArray) else RUN_TIME
        made = StackedList(stacks, self.elements._replace(length=length))
        made.comes_as_array, made.most_made = True, self.most_made
        return made

    def append_all(self, stacks: Sequence[TracedArray], elements: Elements, doubts: Doubts = ()) -> None:
        """Append all elements that arrays stand for."""
        if self.is_sized:
            self.materialize()  # raises
        if self.stacks is None and not list.__len__(self):
            self.stacks, self.elements, self.doubts = list(stacks), elements, doubts
        elif self.stacks is not None and not any(self.doubts) and self._are_alike(stacks, elements):
            self.stacks = [_np.concatenate(pair) for pair in zip(self.stacks, stacks, strict=True)]
            self.elements = self.elements._replace(length=self.elements.length + elements.length)
        else:
            self.materialize()
            other = StackedList(stacks, elements, doubts)
            list.extend(self, [other.element(k) for k in range(elements.length)])

    def become_sized(self, stacks: Sequence[Any], elements: Elements, doubts: Doubts = ()) -> None:
        """Give a list other elements, whose number is known at run time."""
        list.__delitem__(self, slice(None))
        self.made = None
        self.stacks, self.elements, self.doubts = list(stacks), elements, doubts

    def element(self, number: Any, stacks: Sequence[Any] | None = None) -> Any:
        """Return an element of arrays that stand for the list; those of the list by default."""
        made = self.elements.build(self.stacks if stacks is None else stacks, number)  # type: ignore[arg-type]
        if self.storage is not None and isinstance(made, TracedArray):
            made.doubt = self.storage.doubt_of(number)
        if any(self.doubts):
            for leaf, doubts in zip(flatten(made)[0], self.doubts, strict=True):
                if doubts is not None and isinstance(leaf, TracedArray):
                    leaf.doubt = doubts[0]
        return made

    def copy_of(self, number: Any, stacks: Sequence[Any] | None = None) -> Any:
        """Return an element as `element` does, with a note that it is a copy if it is more than a number."""
        made = self.element(number, stacks)
        if self.elements.tree != LEAF:
            hooks.note_element(made, self)
        return made

    def parts(self) -> list[Any]:
        """Return the arrays, as parts of a result; those of doubtful numbers tell so."""
        assert self.stacks is not None
        if self.storage is not None:
            return [self.storage.as_result()]
        if not any(self.doubts):
            return self.stacks
        return [_doubtful(s, d) for s, d in zip(self.stacks, self.doubts, strict=True)]

    @property
    def doubt_of_sum(self) -> Doubt | None:
        """Runs in which all numbers of a vector have another class, as their sum has then."""
        if self.storage is not None:
            return self.storage.doubt_of_all()
        return self.doubts[0][1] if self.doubts and self.doubts[0] is not None else None

    @property
    def doubt_of_any(self) -> Doubt | None:
        """Runs in which any number of a vector has another class."""
        if self.storage is not None:
            return self.storage.doubt()
        return self.doubts[0][0] if self.doubts and self.doubts[0] is not None else None

    def _are_alike(self, stacks: Sequence[TracedArray], elements: Elements) -> bool:
        assert self.stacks is not None
        types = [[(s.shape[1:], s.dtype) for s in each] for each in (self.stacks, stacks)]
        return types[0] == types[1] and self.elements[1:] == elements[1:]

    def materialize(self) -> None:
        """Make the elements.

        Raises
        ------
        TraceError
            An iteration is being recorded that appends to the list.
        """
        if self.is_guarded:
            raise TraceError("a list is read in the loop that appends to it", where=user_line())
        if self.stacks is None:
            return
        if self.elements.is_row:
            raise shared_rows("a row of a list of lists is used after a loop")
        if self.is_never_made:
            kind = "whose length is known at run time only" if self.is_sized else f"of {self.elements.length} numbers"
            raise TraceError(
                f"a list {kind} is used otherwise than by np.array, len, sum, sorted, a loop, an index or a slice",
                where=user_line(), hint="use an array: np.array(values)",
            )  # fmt: skip
        if self.storage is not None:
            elements = [self.element(k) for k in range(self.elements.length)]
            self.stacks = self.storage = None
            list.extend(self, elements)
            return
        stacks, self.stacks = self.stacks, None
        self._source = stacks
        with resumed(stacks[0].owner):
            self.made = [self.element(k, stacks) for k in range(self.elements.length)]
            list.extend(self, self.made)
        self._first_leaves = [] if self.elements.tree == LEAF else flatten(self.made)[0]

    def has_changed_elements(self) -> bool:
        """Return True if an element that `materialize` has made, such as a list, holds something else now."""
        before = self._first_leaves
        return bool(before) and not _are_same(before, flatten(self.made)[0])

    def contents(self) -> list[Any]:
        """Return objects that stay the same as long as the list does, whether its elements are made or not."""
        if self.stacks is not None:
            return _Stacks(self.stacks, self.elements, self.doubts)
        elements = list(list.__iter__(self))
        return self._source if self.made is not None and _are_same(elements, self.made) else elements

    @property
    def is_sized(self) -> bool:
        """True for a list whose length is known at run time; its stacks are arrays of run-time size."""
        return self.growing is not None or (self.stacks is not None and self.elements.length == RUN_TIME)

    @property
    def holds_sized(self) -> bool:
        """True if arrays of run-time size stand for the list, without elements that an iteration appends."""
        return self.stacks is not None and self.elements.length == RUN_TIME

    @property
    def is_never_made(self) -> bool:
        """True for a list whose elements cannot be made one by one, or are too many for that."""
        is_long = self.comes_as_array or self.storage is not None
        return self.is_sized or (is_long and self.stacks is not None and self.elements.length > self.most_made)

    @property
    def is_array(self) -> bool:
        """True if arrays stand for the numbers; see `StoredList`."""
        return self.storage is not None or (self.is_never_made and not self.is_sized and not self.is_guarded)

    # -- writes of elements

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.is_guarded or not self._is_index(key):
            self.materialize()
            complete_lists([value])
            list.__setitem__(self, key, value)
        elif self.storage is not None:
            self.storage.write(key, value)
        else:
            self.learn(value)
            if self.owner is current():  # no loop is recorded
                self.store()
                self[key] = value
            else:
                require_current().program.written_lists.append(self)

    def _is_index(self, key: Any) -> bool:
        """Return True for an index at which an array is written in the place of the list."""
        return is_traced_index(key) or (type(key) is int and (self.storage is not None or self.is_in_loop))

    def learn(self, value: Any) -> None:
        """Note the class of a number that is stored; see `StoredList`."""
        if self.is_sized or self.elements.is_row:
            raise TraceError(TRACED_WRITE, where=user_line(), hint="use an array")
        super().learn(value)

    def store(self) -> list[TracedArray]:
        """Put the numbers into an array in the current trace, for those that are written; return the arrays."""
        leaf = None
        numbers: Any = list(list.__iter__(self))
        if self.stacks is not None:
            if self.as_numbers() is None and not self._is_vector():
                raise TraceError(TRACED_WRITE, where=user_line())
            numbers, leaf = self.stacks[0], self.elements.leaves[0]
        storage = make_storage(numbers, leaf, self.take_stored())
        self._before_storage = self.stacks
        self.keep(storage)
        list.__delitem__(self, slice(None))
        self.stacks = [storage.array]
        self.elements = Elements(storage.array.shape[0], LEAF, (storage.leaf,))
        self.doubts = ()
        return storage.arrays

    def resume(self, contents: Sequence[Any]) -> None:
        """Hold what the list held before; see `contents`."""
        if self.resume_storage(contents):
            elements: Sequence[Any] = ()
            self.stacks = list(contents)
        elif isinstance(contents, _Stacks) and contents.elements.length == RUN_TIME:
            self.made = None
            elements, self.stacks, self.elements, self.doubts = (), list(contents), contents.elements, contents.doubts
        elif self._before_storage is not None and _are_same(contents, self._before_storage):
            elements, self.stacks = (), self._before_storage
        elif self._source and _are_same(contents, self._source):
            elements, self.stacks = self.made or (), None if self.made is not None else self._source
        elif self._kept_storage is None and not self.is_sized and _are_same(contents, list(list.__iter__(self))):
            return  # arrays stand for it, or it is as it was
        else:
            elements, self.stacks = contents, None
        list.__setitem__(self, slice(None), elements)

    def _is_vector(self) -> bool:
        return self.stacks is not None and self.elements.tree == LEAF and self.stacks[0].ndim == 1

    @property
    def length(self) -> Any:
        """Number of elements, a traced integer if it is known at run time."""
        if self.growing is not None:
            return self.growing.length()
        return self.stacks[0].shape[0] if self.is_sized and self.stacks is not None else len(self)

    @property
    def bound(self) -> int:
        """Greatest possible number of elements."""
        return self.stacks[0].bound if self.is_sized and self.stacks is not None else len(self)

    def _leave_if_empty(self) -> None:
        """Make NumPy run in place of runs in which the list is empty: then its numbers have no type."""
        if self.is_sized:
            trace = require_current()
            failed = value_of(self.length == 0)
            text = f"a list of numbers is empty by the values, and has no dtype\n  at:   {user_line()}"
            trace.leave_if(failed, lambda _: ValueError(text))

    def _leave_if_all_are_others(self) -> None:
        """Make NumPy run in place of runs in which all numbers are of another class, and the dtype is another one."""
        found = [self.doubt_of_sum] if self.storage is not None else [d and d[1] for d in self.doubts]
        tests = [d.test for d in found if d is not None]
        if tests and len(tests) == len(found):
            trace = require_current()
            failed = reduce(xla.and_, map(trace.capture, tests))
            text = f"{ALL_OF_OTHER_CLASS}\n  at:   {user_line()}"
            trace.leave_if(failed, lambda _: TypeError(text))

    def as_array(self, *, has_dtype: bool = False) -> TracedArray:
        """Return what ``np.array`` makes of the list, whose dtype is given, or follows from its elements."""
        self._leave_if_all_are_others()
        if self.is_sized:
            return self._as_sized_array(has_dtype)  # type: ignore[no-any-return]
        if self.stacks is not None and len(self.stacks) == 1 and _is_box(self.elements.tree):
            return TracedArray(value_of(self.stacks[0]))
        if self.stacks is not None and all(c == LEAF for c in self.elements.tree.children):
            stacked: TracedArray = _np.stack([TracedArray(value_of(s)) for s in self.stacks], axis=1)
            return stacked
        self.materialize()
        return as_traced(list.copy(self))

    as_index_array = as_array

    def _as_sized_array(self, has_dtype: bool) -> Any:
        assert self.stacks is not None
        is_vector = self.elements.tree == LEAF and self.stacks[0].ndim == 1
        if not is_vector or (self.stacks[0].dtype != np.float64 and not has_dtype):
            self._leave_if_empty()
        if self.elements.tree == LEAF:
            return self.stacks[0].copy()
        if all(c == LEAF for c in self.elements.tree.children):
            return _np.stack(self.stacks, axis=1)
        return self.materialize()

    def as_vector(self) -> TracedArray | None:
        """Return an array whose elements are those of the list; None if they are more than numbers."""
        if self.stacks is None or self.elements.tree != LEAF or self.stacks[0].ndim != 1:
            return None
        self._leave_if_empty()
        return self.stacks[0]

    def as_numbers(self) -> Any:
        """Return an array of Python's numbers that are the elements, which may be none; None for other elements."""
        is_vector = self.stacks is not None and self.elements.tree == LEAF and self.stacks[0].ndim == 1
        return self.stacks[0] if is_vector and self.stacks and self.elements.leaves[0].is_python else None

    def count(self, value: Any) -> Any:
        """Return how often a number occurs."""
        numbers = self.as_numbers() if is_any_number(value) else None
        if numbers is None:
            self.materialize()
            return list.count(self, value)
        return TracedArray(value_of(_np.count_nonzero(numbers == value)), int, rank0=Rank0.PYTHON)

    def __getitem__(self, key: Any) -> Any:
        if self.growing is not None:
            return self.growing.as_list()[key]
        if isinstance(key, slice) and self.stacks is not None and (self._is_joinable() or self.is_sized_vector()):
            made = self.with_stacks([s[key].copy() for s in self.stacks])
            return [] if made.elements.length == 0 else made
        if self.is_never_made and type(key) is int and not self.is_guarded:
            return self._element(key)
        if is_traced_index(key) and not self.is_guarded:
            found = self.copy_of(key) if self.stacks is not None else self._looked_up(key)
            if found is not None:
                return found
        self.materialize()
        return list.__getitem__(self, key)

    def __iter__(self) -> Iterator[Any]:
        self.materialize()
        return self._in_turn()

    def __reversed__(self) -> Iterator[Any]:
        self.materialize()
        return (self._present(k) for k in reversed(range(len(self))))

    def _in_turn(self) -> Iterator[Any]:
        """Yield the elements, each as it is then: a loop over them may write others, which puts all into an array."""
        number = 0
        while number < len(self):
            yield self._present(number)
            number += 1

    def _present(self, number: int) -> Any:
        """Return an element, of the list or of the array that stands for it by now."""
        return list.__getitem__(self, number) if self.stacks is None else self.copy_of(number)

    def _looked_up(self, key: Any) -> Any:
        """Return the element at a traced index of numbers of one class; None for other elements."""
        elements = list(list.__iter__(self))
        kinds = {None if c is None else c.kind for c in map(NumberClass.of, elements)}
        if len(kinds) != 1 or None in kinds:
            return None
        ((leaf, _),) = kinds  # type: ignore[misc]
        return TracedArray(value_of(as_traced(elements)[key]), leaf.weak, rank0=leaf.rank0)

    def _element(self, number: int) -> Any:
        assert self.stacks is not None
        if not self.is_sized and not -self.elements.length <= number < self.elements.length:
            raise IndexError("list index out of range")
        if self.is_sized:
            require_current().program.catches = True  # Python raises its error if there is no such element
        return self.copy_of(number)

    def is_sized_vector(self) -> bool:
        """Return True for a list of numbers of run-time length, which are of one class."""
        return self.is_sized and not self.is_guarded and self._is_vector() and not any(self.doubts)

    def append(self, value: Any) -> None:
        """Append an element."""
        is_number = is_any_number(value) or isinstance(value, np.generic)
        if self.is_sized_vector() and is_number and leaf_of(as_traced(value)) == self.elements.leaves[0]:
            assert self.stacks is not None
            self.become_sized([_np.append(self.stacks[0], value)], self.elements)
        else:
            self.materialize()
            list.append(self, value)

    def copy(self) -> list[Any]:
        """Return a list with the same elements."""
        made: list[Any] = self[:]
        return made

    def __add__(self, other: Any) -> Any:
        if isinstance(other, list) and (stacks := self._stacks_of(other)) is not None:
            return self._joined([self.stacks, stacks])
        self.materialize()
        complete_lists([other])
        return list.__add__(self, other)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, list) and (stacks := self._stacks_of(other)) is not None:
            return self._joined([stacks, self.stacks])
        self.materialize()
        return other + list.copy(self)

    def __mul__(self, times: Any) -> Any:
        if type(times) is int and times > 0 and self._is_joinable():
            return self._joined([self.stacks] * times)
        self.materialize()
        return list.__mul__(self, times)

    __rmul__ = __mul__

    def _joined(self, parts: Sequence[Any]) -> StackedList:
        return self.with_stacks([_np.concatenate(stacks) for stacks in zip(*parts, strict=True)])

    def _is_joinable(self) -> bool:
        return self.comes_as_array and not self.is_guarded and self.stacks is not None

    def _stacks_of(self, other: list[Any]) -> list[Any] | None:
        """Return arrays of the numbers of another list, if they are of the same class as those of this one."""
        if not self._is_joinable():
            return None
        if isinstance(other, StackedList) and other.stacks is not None:
            return other.stacks if other.elements[1:] == self.elements[1:] else None
        if self.as_numbers() is None or not other or not all(is_any_number(v) for v in other):
            return None
        leaf = self.elements.leaves[0]
        alike = all(leaf_of(as_traced(v)) == leaf for v in other)
        return [_np.array(list.copy(other))] if alike else None

    def __len__(self) -> int:
        if self.is_guarded or self.stacks is None or self.is_sized:
            self.materialize()
            return list.__len__(self)
        return self.elements.length


def arrays_of_sized_lists(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return values with arrays in the place of lists whose length is known at run time."""
    return tuple([v.as_array() if isinstance(v, StackedList) and v.is_sized else v for v in values])


def _are_same(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))


def _doubtful(stack: Any, doubts: tuple[Doubt, Doubt] | None) -> Any:
    """Return an array as one that tells in which runs some of its numbers are of another class."""
    if doubts is None:
        return stack
    made = TracedArray(value_of(stack if isinstance(stack, TracedArray) else stack.padded))
    made.doubt = doubts[0]
    return made if isinstance(stack, TracedArray) else stack.like(made)


def shared_rows(reason: str) -> TraceError:
    """Return an error for rows with several names, to which values that are passed one by one would do no justice."""
    error = TraceError(reason, where=user_line(), hint="use an array")
    error.shares_rows = True  # type: ignore[attr-defined]
    return error


def is_traced_index(key: Any) -> bool:
    """Return True for an index that is traced."""
    return isinstance(key, TracedArray) and key.known is None and key.ndim == 0 and key.dtype.kind in "iu"


def is_any_number(value: Any) -> bool:
    """Return True for a number that may be traced."""
    return type(value) in (bool, int, float, complex) or (isinstance(value, TracedArray) and value.ndim == 0)


def _is_box(tree: Tree) -> bool:
    """Return True if the array of a list with such elements is their only stack."""
    return tree == LEAF or (tree.kind is STACKED and _is_box(tree.key.tree))


def _materializing(name: str) -> Callable[..., Any]:
    original = getattr(list, name)

    def method(self: StackedList, *args: Any, **kwargs: Any) -> Any:
        self.materialize()
        complete_lists(args)
        return original(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "__contains__", "__delitem__", "__eq__", "__ge__", "__gt__", "__iadd__", "__imul__",
    "__le__", "__lt__", "__ne__", "__repr__",
    "clear", "extend", "index", "insert", "pop", "remove", "reverse", "sort",
):  # fmt: skip
    setattr(StackedList, _name, _materializing(_name))


def _build(key: Elements, parts: Sequence[Any]) -> Any:
    if all(isinstance(p, np.ndarray) for p in parts):
        return _plain_list(key, parts)
    return StackedList(parts, key)


def _plain_list(elements: Elements, arrays: Sequence[Any]) -> list[Any]:
    """Return the list that arrays of results stand for."""
    if elements.tree == LEAF and arrays[0].ndim == 1:
        leaf = elements.leaves[0]
        return arrays[0].tolist() if leaf.is_python else list(arrays[0])
    return [elements.build(arrays, k) for k in range(len(arrays[0]))]


STACKED = Kind(
    lambda v: v.parts(), lambda v: v.elements, lambda v: [f"[{k}]" for k in range(len(v.stacks))], _build
)  # fmt: skip
register_kind(StackedList, lambda v: LIST if v.stacks is None else STACKED)


def structure_of(value: Any) -> tuple[list[TracedArray], Tree] | None:
    """Return the leaves of an element, and its structure; None if it cannot be one of a stacked list."""
    leaves, tree = flatten(value)
    is_whole = leaves and all(isinstance(v, TracedArray) and v.known is None for v in leaves)
    return (leaves, tree) if is_whole else None
