"""Lists, dicts and dataclasses that may be one object in the plain run, as loops and branches decide that.

A program has the values of containers, not the objects: after a loop, a variable has a new list of the values in place
of the list itself. The results are the same as long as nothing changes a list that has another name. So the containers
of which that is not known are noted with what they hold, and a change of one of them ends the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.parts.python_state import Contents, contents_of, has_same_contents, name_of_container
from cyxla.numpy.tracing.arrays.number_table import TableRow
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import LazyList
from cyxla.numpy.tracing.containers import kind_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import Trace, require_current, user_line
from cyxla.xla.hlo.builder import XlaOp

Path = tuple[int, ...]  # indices of parts, from a sequence of values to a container in one of them
Pair = tuple[Path, Path]


class Alias:
    """Containers that may be one object.

    Parameters
    ----------
    objects : sequence
        Containers, first a new one, then those that it may be.
    name : str
        Variable that names one of them, for messages.
    test : XlaOp, optional
        pred[], whether they are one; without it, that is not known.
    lists : sequence of StackedList
        Lists of which elements may be one of the containers.

    Attributes
    ----------
    objects, name, test, lists
        The parameters.
    """

    def __init__(
        self, objects: Sequence[Any], name: str, test: XlaOp | None = None, lists: Sequence[StackedList] = ()
    ) -> None:  # fmt: skip
        self.objects, self.name, self.test, self.lists = list(objects), name, test, list(lists)
        self._where = user_line()
        self._identities = set(map(id, objects))
        self._contents = [contents_now(v) for v in objects]

    def is_changed(self) -> bool:
        """Return True if one of the containers has changed."""
        pairs = zip(self.objects, self._contents, strict=True)
        is_same = all(has_same_contents(contents_now(v), before) for v, before in pairs)
        return not is_same or any(v.has_changed_elements() for v in self.lists)

    def has(self, value: Any) -> bool:
        """Return True for one of the containers."""
        return id(value) in self._identities

    def refuse(self, trace: Trace) -> None:
        """Make the plain function run in place of runs in which the containers are one.

        Raises
        ------
        TraceError
            The trace does not know which runs these are.
        """
        if self.test is None or self.test.builder is not trace.builder:
            raise self.error()
        trace.leave_if(self.test, lambda _: self.error())

    @property
    def kind(self) -> str:
        """Name of the class of the containers, for messages."""
        return name_of_container(next(iter((*self.objects, *self.lists))))

    def error(self) -> TraceError:
        """Return the error for containers that may be one, of which one is changed or returned."""
        if self.lists:
            return TraceError(
                "an element of a list that a loop or a traced index has found is changed", where=self._where,
                hint="write values[i][j] in a loop over the indices, or use an array",
            )  # fmt: skip
        kind = self.kind
        return TraceError(
            f"{self.name} is another {kind} or a new one, by the run of a loop or branch, and one of them is changed "
            "or returned",
            where=self._where,
            hint=f"make a copy of it before the loop or branch, or use an array in place of the {kind}",
        )


def contents_now(value: Any) -> Contents:
    """Return what a container holds; a list for which arrays stand does not make its elements."""
    if isinstance(value, TableRow):
        return [value.table.last_write]
    if not isinstance(value, StackedList):
        return contents_of(value)
    return [_CHANGED] if value.has_changed_elements() else value.contents()


_CHANGED = object()


def note_alias(
    objects: Sequence[Any], name: str, test: XlaOp | None = None, lists: Sequence[StackedList] = ()
) -> None:  # fmt: skip
    """Note that containers may be one object; see `Alias`."""
    require_current().program.aliases.append(Alias(objects, name, test, lists))


def note_element(value: Any, values: StackedList) -> None:
    """Note that a value is a copy of an element of a list for which arrays stand."""
    for _, container in containers_in([value]):
        note_alias([container], "an element", lists=[values])


hooks.note_element = note_element


def lists_by_element() -> dict[int, list[StackedList]]:
    """Return for each container the lists of which it may be an element, by identity."""
    found: dict[int, list[StackedList]] = {}
    for alias in require_current().program.aliases:
        for value in alias.objects if alias.lists else ():
            found.setdefault(id(value), []).extend(alias.lists)
    return found


def is_element_alone(value: Any) -> bool:
    """Return True for a container that may be an element of lists, but none of other containers."""
    found = [alias for alias in require_current().program.aliases if alias.has(value)]
    return all(alias.lists and len(alias.objects) == 1 for alias in found)


def has_aliases(value: Any) -> bool:
    """Return True for a container that may be one of others."""
    return any(alias.has(value) for alias in require_current().program.aliases)


def groups() -> dict[int, list[Any]]:
    """Return for each container with notes those that may be one with it, directly or through others, by identity."""
    found: dict[int, list[Any]] = {}
    for alias in require_current().program.aliases:
        known = {id(group): group for v in alias.objects if (group := found.get(id(v))) is not None}
        largest = max(known.values(), key=len, default=[])
        others = [group for group in known.values() if group is not largest]
        for value in (*(v for group in others for v in group), *alias.objects):
            if found.get(id(value)) is not largest:
                largest.append(value)
                found[id(value)] = largest
    return found


def first_changed(since: int) -> Alias | None:
    """Return the first of the notes from a number on of which a container has changed."""
    return next((alias for alias in require_current().program.aliases[since:] if alias.is_changed()), None)


def containers_in(values: Sequence[Any]) -> Iterator[tuple[Path, Any]]:
    """Yield the containers that can be changed in some values, with their paths."""
    for k, value in enumerate(values):
        yield from _containers(value, (k,))


def _containers(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if is_container(value):
        yield path, value
    for k, part in enumerate(parts_of(value)):
        yield from _containers(part, (*path, k))


def parts_of(value: Any) -> Sequence[Any]:
    """Return the parts of a container; none of a value without any, or for whose parts arrays stand."""
    has_arrays = isinstance(value, LazyList) and not (isinstance(value, StackedList) and value.stacks is None)
    kind = None if has_arrays or isinstance(value, SizedArray) else kind_of(value)
    return () if kind is None else kind.parts(value)


def pairs_with_key(keys: Mapping[Path, Iterable[int]]) -> Iterator[Pair]:
    """Yield the pairs of paths that have a key in common."""
    paths: dict[int, list[Path]] = {}
    for path, found in keys.items():
        for key in found:
            paths.setdefault(key, []).append(path)
    for several in paths.values():
        yield from ((p, q) for n, p in enumerate(several) for q in several[:n] if p != q)


def is_container(value: Any) -> bool:
    """Return True for a list, dict or dataclass."""
    return isinstance(value, (list, dict)) or (is_dataclass(value) and not isinstance(value, type))


def require_no_aliases(trace: Trace, returned: Any, held: set[int]) -> None:
    """Require that no container has changed, or is a result, that may be another one which something else holds.

    Parameters
    ----------
    trace : Trace
        Trace of the program.
    returned : object
        Results, and new values of changed places.
    held : set of int
        Identities of the containers among the arguments and from outside.

    Raises
    ------
    TraceError
        There is one, in runs that are not known.
    """
    if not trace.program.aliases:
        return
    known = held | {id(v) for _, v in containers_in([returned])}
    related = groups()

    def escapes(value: Any) -> bool:
        return id(value.table if isinstance(value, TableRow) else value) in known

    for alias in trace.program.aliases:
        is_result = bool(alias.objects) and escapes(alias.objects[0])
        if alias.is_changed() or (is_result and any(map(escapes, alias.objects[1:]))):
            alias.refuse(trace)
        elif is_result and sum(map(escapes, related[id(alias.objects[0])])) > 1:
            raise alias.error()  # it may be one of those through others
