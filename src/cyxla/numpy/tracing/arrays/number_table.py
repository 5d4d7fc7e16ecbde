"""Lists of lists of numbers of which loops write elements, such as the tables of dynamic programming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.number_storage import (
    Leaf,
    NumberClass,
    NumberStorage,
    StoredList,
    make_storage,
    own_array,
)
from cyxla.numpy.tracing.arrays.stacked_list import STACKED, Elements, StackedList, is_traced_index, shared_rows
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray, as_traced, value_of
from cyxla.numpy.tracing.containers import LEAF, LIST, Tree, register_kind
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.xla.hlo.builder import XlaOp

_USES = "np.array, len, a loop or an index"


class NumberTable(StoredList):
    """List of lists of numbers, all of one length, whose rows are given out as views.

    Its numbers are those of usual lists until a loop of the program writes one at a traced index; then they are in an
    array.

    Parameters
    ----------
    rows : list of list
        Rows, which nothing else holds.

    Attributes
    ----------
    last_write : object
        Object that each write replaces.
    """

    def __init__(self, rows: list[list[Any]]) -> None:
        super().__init__()
        list.extend(self, rows)
        self.shape = len(rows), len(rows[0])
        self._stack: TracedArray | None = None  # the numbers, if a loop of the program has made them
        self._leaf: Leaf | None = None
        self.is_frozen = False  # if something else may hold rows
        self.is_argument = False
        self._first_storage: NumberStorage | None = None  # of an argument
        self._first_op: XlaOp | None = None
        self.last_write = object()
        self._has_copied_rows = False  # whose numbers stand for them, so that writes are not seen
        self._results: dict[int, Any] = {}

    @staticmethod
    def of(value: Any) -> Any:
        """Return a table with the rows of a new list; other values as they are."""
        if current() is None or require_current().program.keeps_known:
            return value
        if isinstance(value, StackedList) and value.stacks is not None and not any(value.doubts):
            return _table_of_array(value)
        if type(value) is not list or not value or any(type(row) is not list for row in value):
            return value
        is_table = value[0] and len({len(row) for row in value}) == 1 and len(set(map(id, value))) == len(value)
        if not is_table or any(NumberClass.of(v) is None for row in value for v in row):
            return value
        require_current().program.made_traced = True
        return NumberTable(value)

    @staticmethod
    def of_array(array: TracedArray, leaf: Leaf) -> NumberTable:
        """Return the table of numbers in an array."""
        table = NumberTable([[0]])
        list.__delitem__(table, slice(None))
        table.shape = array.shape[0], array.shape[1]
        table._stack, table._leaf = array, leaf
        return table

    @staticmethod
    def of_argument(array: TracedArray, kind: type) -> NumberTable:
        """Return the list of lists among the arguments for which an array stands."""
        leaf = Leaf.of_python(kind)
        table = NumberTable.of_array(array, leaf)
        table.is_argument = True
        table._first_storage = table.storage = NumberStorage(own_array(array), leaf, None)
        table._stack, table._first_op = None, array.op
        return table

    @property
    def stacks(self) -> list[TracedArray] | None:  # type: ignore[override]
        """Array of the numbers; None if they are in lists."""
        array = self._stack if self.storage is None else self.storage.array
        return None if array is None else [array]

    @property
    def is_array(self) -> bool:
        """True: its contents are the array, or the rows."""
        return True

    @property
    def leaf(self) -> Leaf:
        """Class of the numbers, if an array stands for them."""
        leaf = self.storage.leaf if self.storage is not None else self._leaf
        assert leaf is not None
        return leaf

    @property
    def elements(self) -> Elements:
        """Structure of the rows, if an array stands for them."""
        row = Elements(self.shape[1], LEAF, (self.leaf,))
        return Elements(self.shape[0], Tree(STACKED, row, (LEAF,)), (self.leaf,))

    def parts(self) -> list[Any]:
        """Return the array as a part of a result."""
        return [self._stack if self.storage is None else self.storage.as_result()]

    def written_numbers(self) -> StackedList | None:
        """Return the rows of an argument that the function has written, as a new list; None if it has written none."""
        assert self.storage is not None
        if self.storage is self._first_storage and self.storage.array.op is self._first_op:
            return None
        if self._has_copied_rows:
            raise shared_rows("a list of lists is written, of which a loop or a list holds rows")
        return StackedList([self.storage.as_result()], self.elements)

    def note_copied_row(self) -> None:
        """Note that numbers stand for a row, for which writes to the table are not seen."""
        self._has_copied_rows = True

    def rows(self) -> list[Any]:
        """Return the rows as parts of a result, if they are usual lists."""
        return list(list.__iter__(self))

    def note_result(self, part: Any) -> None:
        """Note that the table, or a row of it, is part of a result.

        Raises
        ------
        TraceError
            Both are, or several rows, which may be the same one.
        """
        self._results[id(part)] = part
        if len(self._results) > 1:
            raise TraceError("a list of lists is returned, and a row of it", where=user_line(), hint="return an array")

    def materialize(self) -> None:
        """Do nothing, if the rows are usual lists.

        Raises
        ------
        TraceError
            They are in an array.
        """
        if self.stacks is not None:
            raise TraceError(
                f"a list of lists is used otherwise than by {_USES}", where=user_line(), hint="use an array"
            )

    def as_array(self) -> TracedArray:
        """Return what ``np.array`` makes of the table."""
        if self.storage is not None:
            return self.storage.as_array()
        return self._numbers()

    def _numbers(self) -> TracedArray:
        """Return the numbers, which nothing has written to an array."""
        return as_traced(list(list.__iter__(self))) if self._stack is None else TracedArray(value_of(self._stack))

    # -- elements

    def read(self, row: Any, column: Any) -> Any:
        """Return a number."""
        if self.storage is not None:
            return self.storage.read((row, column))
        if self._is_plain(row, column):
            return list.__getitem__(self, row)[column]
        leaf = self._leaf if self._stack is not None else self._leaf_of_lists()
        return TracedArray(value_of(self._numbers()[row, column]), leaf and leaf.weak, rank0=leaf.rank0)  # type: ignore[union-attr]

    def _is_plain(self, row: Any, column: Any) -> bool:
        return self.stacks is None and not is_traced_index(row) and not is_traced_index(column)

    def _leaf_of_lists(self) -> Leaf:
        kinds = {c.kind for values in list.__iter__(self) for c in map(NumberClass.of, values) if c is not None}
        if len(kinds) != 1:
            raise TraceError("numbers of several classes are in a list", where=user_line())
        ((leaf, _),) = kinds
        return leaf

    def write(self, row: Any, column: Any, value: Any) -> None:
        """Store a number."""
        self.last_write = object()
        if self.storage is not None and (self.storage is not self._first_storage or self.storage.takes(value)):
            self.storage.write((row, column), value)
        elif self._is_plain(row, column) and not self.is_in_loop:
            list.__getitem__(self, row)[column] = value
        else:
            if self.is_frozen:
                raise TraceError("a row of a list of lists has another name", where=user_line(), hint="use an array")
            self.learn(value)
            if self.owner is current():
                self.store()
                self.write(row, column, value)
            else:
                require_current().program.written_lists.append(self)

    def store(self) -> list[TracedArray]:
        """Put the numbers into an array in the current trace, for those that are written; return the arrays."""
        numbers: Any = [v for row in list.__iter__(self) for v in row]
        if self.stacks is not None:
            numbers = self.stacks[0].reshape(-1)
        self.keep(make_storage(numbers, self._leaf, self.take_stored()).reshaped(self.shape))
        list.__delitem__(self, slice(None))
        assert self.storage is not None
        return self.storage.arrays

    def contents(self) -> list[Any]:
        """Return objects that stay the same as long as the list does."""
        return self.stacks or list(list.__iter__(self))

    def resume(self, contents: Sequence[Any]) -> None:
        """Hold what the list held before; see `contents`."""
        is_array = self.resume_storage(contents) or self._stack is not None
        if self._first_storage is not None and contents[0] is self._first_storage.array:
            self.storage, is_array = self._first_storage, True
        list.__setitem__(self, slice(None), () if is_array else contents)

    def vector(self, row: Any) -> TracedArray | None:
        """Return the numbers of a row as an array; None if they are in a list."""
        if self.storage is not None:
            return self.storage.array[row]
        return self._numbers()[row] if self._stack is not None or is_traced_index(row) else None

    # -- the list

    def __len__(self) -> int:
        return self.shape[0] if self.stacks is not None else list.__len__(self)

    def __getitem__(self, key: Any) -> Any:
        if is_traced_index(key):
            return TableRow(self, key)
        if type(key) is int:
            size = len(self)
            if not -size <= key < size:
                raise IndexError("list index out of range")
            return TableRow(self, key % size)
        self.materialize()
        self.is_frozen = True
        return list.__getitem__(self, key)

    def __iter__(self) -> Iterator[Any]:
        return (TableRow(self, k) for k in range(len(self)))


class TableRow(LazyList):
    """Row of a table, which reads and writes the numbers of the table.

    Parameters
    ----------
    table : NumberTable
        Table.
    number : int or TracedArray
        Number of the row.
    """

    def __init__(self, table: NumberTable, number: Any) -> None:
        super().__init__()
        self.table, self.number = table, number

    @property
    def stacks(self) -> list[TracedArray] | None:  # type: ignore[override]
        """Array of the numbers; None if they are in a list."""
        vector = self.table.vector(self.number)
        return None if vector is None else [vector]

    @property
    def elements(self) -> Elements:
        """Structure of the row, if an array stands for it."""
        found = NumberClass.of(self.table.read(self.number, 0))
        assert found is not None
        return Elements(self.table.shape[1], LEAF, (found.leaf,), is_row=True)

    def parts(self) -> list[Any]:
        """Return the array as a part of a result."""
        if self.table.storage is not None:
            return [self.table.storage.as_result(self.number)]
        assert self.stacks is not None
        return self.stacks

    def materialize(self) -> None:
        """Do nothing: elements are read from the table."""

    def as_array(self) -> TracedArray:
        """Return what ``np.array`` makes of the row."""
        if self.table.storage is not None:
            return self.table.storage.as_array(self.number)
        return as_traced(self.values())

    def values(self) -> list[Any]:
        """Return the numbers."""
        return [self.table.read(self.number, k) for k in range(self.table.shape[1])]

    def __len__(self) -> int:
        return self.table.shape[1]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self.values()[key]
        return self.table.read(self.number, self._index(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):
            raise TraceError("a slice of a row of a list of lists is written", where=user_line(), hint="use an array")
        self.table.write(self.number, self._index(key), value)

    def _index(self, key: Any) -> Any:
        if type(key) is not int:
            return key
        size = self.table.shape[1]
        if not -size <= key < size:
            raise IndexError("list index out of range")
        return key % size

    def __radd__(self, other: Any) -> list[Any]:
        return [*other, *self.values()] if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise TraceError(
            f"list.{name} of a list of lists, or of a row of one, of which loops write elements", where=user_line(),
            hint="use an array",
        )  # fmt: skip

    return method


def _reading(name: str) -> Callable[..., Any]:
    original = getattr(list, name)

    def method(self: TableRow, *args: Any, **kwargs: Any) -> Any:
        others = [v.values() if isinstance(v, TableRow) else v for v in args]
        return original(self.values(), *others, **kwargs)

    return method


for _name in (
    "__add__", "__contains__", "__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__mul__", "__ne__", "__repr__",
    "__reversed__", "__rmul__", "copy", "count", "index",
):  # fmt: skip
    setattr(TableRow, _name, _reading(_name))
for _name in (
    "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
):  # fmt: skip
    setattr(TableRow, _name, _refusing(_name))
    setattr(NumberTable, _name, _refusing(_name))
for _name in (
    "__add__", "__contains__", "__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__mul__", "__ne__", "__radd__",
    "__repr__", "__reversed__", "__rmul__", "__setitem__", "copy", "count", "index",
):  # fmt: skip
    setattr(NumberTable, _name, _refusing(_name))


def _table_of_array(value: StackedList) -> Any:
    """Return the table of a list of lists for which one array stands; other lists as they are."""
    inner = value.elements.tree
    is_nested = inner.kind is STACKED and inner.key.tree == LEAF
    leaves = set(inner.key.leaves if is_nested else value.elements.leaves)
    is_list = inner.kind is LIST and all(c == LEAF for c in inner.children)
    stack = value.as_array() if (is_nested or is_list) and len(leaves) == 1 and not value.is_sized else None
    if stack is None or stack.ndim != 2 or 0 in stack.shape:
        return value
    return NumberTable.of_array(stack, leaves.pop())


def note_result(value: Any) -> None:
    """Note a part of a result, if it is a table or a row of one; see `NumberTable.note_result`."""
    if isinstance(value, NumberTable):
        value.note_result(value)
    elif isinstance(value, TableRow) and not value.table.is_argument:
        value.table.note_result(value)


_ROWS = LIST._replace(parts=lambda v: v.rows())
_NUMBERS_OF_ROW = LIST._replace(parts=lambda v: v.values())


def _kind_of_table(value: NumberTable) -> Any:
    return _ROWS if value.stacks is None else STACKED


def _kind_of_row(value: TableRow) -> Any:
    value.table.note_copied_row()
    return _NUMBERS_OF_ROW if value.stacks is None else STACKED


register_kind(NumberTable, _kind_of_table)
register_kind(TableRow, _kind_of_row)
