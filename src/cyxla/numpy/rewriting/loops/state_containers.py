"""Lists, dicts and dataclasses in the state of a loop: those that may have other names, such as another variable.

The loop carries their values, which is right for a container with one name. One with several must not change, neither
in the loop nor after it, unless it is known which object it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.numpy.rewriting.loops.plans import Plan, Unsuitable, Variables, is_shared_array, peel_or_fail
from cyxla.numpy.rewriting.parts.aliases import (
    Pair,
    Path,
    containers_in,
    contents_now,
    first_changed,
    groups,
    is_container,
    is_element_alone,
    lists_by_element,
    note_alias,
    pairs_with_key,
    parts_of,
)
from cyxla.numpy.rewriting.parts.parts import Leaves
from cyxla.numpy.rewriting.parts.python_state import Contents, PythonState, has_same_contents, name_of_container
from cyxla.numpy.tracing.arrays.number_table import TableRow
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.containers import kind_of
from cyxla.numpy.tracing.trace import require_current
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_COPY_HINT = "append a copy of it"


class StateContainers:
    """Containers in the state of a loop, in one pass.

    Parameters
    ----------
    variables : Variables
        Variables of the loop.
    plan : Plan
        Plan of the pass, to which it adds.
    entry : sequence
        Values of the variables before the loop.
    given : sequence
        Values before an iteration. What is the same as in `entry` is no copy.
    objects : PythonState
        Objects before the loop.

    Attributes
    ----------
    lists_of_elements : list of StackedList
        Lists with elements that the body appends to others.
    """

    def __init__(
        self, variables: Variables, plan: Plan, entry: Sequence[Any], given: Sequence[Any], objects: PythonState
    ) -> None:
        self._variables, self._plan, self._objects = variables, plan, objects
        self._entry, self._given = entry, given
        self._since = len(require_current().program.aliases)
        copies = dict(containers_in(given))
        first = {p: c for p, c in containers_in(entry) if _are_alike(c, copies.get(p, c))}
        self._first = {p: c for p, c in first.items() if copies.get(p) is not c}
        self._copies = {p: c for p, c in copies.items() if first.get(p) is not c}
        self._paths = {id(c): p for p, c in self._copies.items()}
        self._contents = {p: contents_now(c) for p, c in self._copies.items()}
        self._appended: list[tuple[StackedList | None, Any, Contents]] = []
        self.lists_of_elements: list[StackedList] = []
        self._shared_first: dict[Path, Any] = {}
        noted = groups()
        for path, value in self._first.items():
            is_shared = objects.is_shared(value) or id(value) in noted or isinstance(value, TableRow)
            if is_shared or path[:-1] in self._shared_first:
                self._shared_first[path] = value
        for path, copy in self._copies.items():
            if path in self._shared_first or path in plan.shared:
                note_alias([copy], self._name(path))

    def _name(self, path: Path) -> str:
        return self._variables.names[path[0]]

    def note_appended(self, values: StackedList | None, value: Any) -> None:
        """Note that the body appends a value to a list, or makes an element of a new list."""
        self._appended += [(values, c, contents_now(c)) for _, c in containers_in([value])]

    # -- after the body

    def check(self, state: Sequence[Any], *, can_peel: bool) -> None:
        """Check what the iteration has done to the copies.

        Raises
        ------
        Peel, Unsuitable
            It has changed one that has another name, or a dict or dataclass.
        """
        alias = first_changed(self._since)
        if alias is not None:
            peel_or_fail(can_peel, f"its body changes a {alias.kind} that has several names, or may be another one")
        self._check_appended()
        for path, copy in self._copies.items():
            if not isinstance(copy, list) and self._is_changed(path):
                raise Unsuitable(f"its body changes a {type(copy).__name__} that a variable of it names", "use arrays")
        for k, (before, after) in enumerate(zip(self._given, state, strict=True)):
            if before is self._entry[k] and before is not after and _is_known_container(before):
                peel_or_fail(can_peel, f"its body chooses which {type(before).__name__} {self._variables.names[k]} is")

    def _is_changed(self, path: Path) -> bool:
        return not has_same_contents(contents_now(self._copies[path]), self._contents[path])

    def _check_appended(self) -> None:
        seen, lists = set[int](), lists_by_element()
        self.lists_of_elements.clear()
        for _, value, contents in self._appended:
            kind = name_of_container(value)
            if isinstance(value, TableRow):
                raise Unsuitable("its body appends a row of a list of lists to another list", _COPY_HINT)
            if not has_same_contents(contents_now(value), contents):
                raise Unsuitable(f"its body changes a {kind} that it appends to a list", _COPY_HINT)
            if id(value) in seen or self._objects.has(value) or not is_element_alone(value):
                raise Unsuitable(f"its body appends a {kind} to a list that has several names", _COPY_HINT)
            seen.add(id(value))
            self.lists_of_elements += lists.get(id(value), ())

    def learn(self, state: Sequence[Any]) -> None:
        """Take the values after the iteration, and add to the plan which containers may have other names."""
        is_carried = [not (a is b is c) for a, b, c in zip(self._entry, self._given, state, strict=True)]
        self._after = {p: c for p, c in containers_in(state) if is_carried[p[0]]}
        related = groups()
        keys = {p: related.get(id(c), [c]) for p, c in self._after.items()}
        self._sources = {p: [self._paths[id(v)] for v in found if id(v) in self._paths] for p, found in keys.items()}
        self._others = {
            p: [v for v in found if id(v) not in self._paths and self._is_outer(v)] for p, found in keys.items()
        }
        self._same = list(pairs_with_key({p: map(id, found) for p, found in keys.items()}))
        self._users: dict[Path, list[Path]] = {}
        for path, sources in self._sources.items():
            for source in sources:
                self._users.setdefault(source, []).append(path)
        self._pairs_of_entry = list(pairs_with_key({p: [id(c)] for p, c in self._first.items()}))
        self._pairs = _closure_of_pairs([*self._pairs_of_entry, *self._same], self._users)
        self._outer = _closure({p: [c] for p, c in self._shared_first.items()}, self._others, self._users)
        lists = lists_by_element()
        elements = {p: [w for v in found for w in lists.get(id(v), ())] for p, found in keys.items()}
        self._lists = _closure({}, elements, self._users)
        appended = {id(v) for _, v, _ in self._appended}
        in_lists = {p for p, found in keys.items() if any(id(v) in appended for v in found)}
        self._plan.shared |= {p for pair in self._pairs for p in pair} | {*self._outer, *self._lists, *in_lists}

    def _is_outer(self, value: Any) -> bool:
        return isinstance(value, TableRow) or self._objects.has(value)

    # -- after the loop

    def forget(self) -> None:
        """Drop the notes on the copies of this pass."""
        del require_current().program.aliases[self._since :]

    def kept(self, value: Any, k: int, written: Iterable[int]) -> Any:
        """Return the value of a variable after the loop with those containers that iterations leave as they are.

        Parameters
        ----------
        value : object
            Value with copies of all containers.
        k : int
            Index of the variable.
        written : iterable of int
            Identities of the arrays of the state that iterations write.
        """
        return self._kept(value, (k,), set(written))

    def _kept(self, value: Any, path: Path, written: set[int]) -> Any:
        found = self._after.get(path)
        source = self._paths.get(id(found))
        is_same = path == source or not self._plan.may_skip
        if source is not None and source in self._first and is_same and self._is_unchanged(source, written):
            return self._first[source]
        if found is not None and self._is_always(path, found):
            return found
        parts = parts_of(value)
        made = [self._kept(part, (*path, n), written) for n, part in enumerate(parts)]
        if all(m is p for m, p in zip(made, parts, strict=True)):
            return value
        kind = kind_of(value)
        assert kind is not None
        return kind.build(kind.key(value), made)

    def _is_always(self, path: Path, value: Any) -> bool:
        """Return True if a container after the loop is always the same one, which was there before it."""
        return self._objects.has(value) and (not self._plan.may_skip or self._first.get(path) is value)

    def _is_unchanged(self, path: Path, written: set[int]) -> bool:
        """Return True if all iterations leave a container, and all that it holds, as it is."""
        copy = self._copies[path]
        if self._after.get(path) is not copy:
            return False
        inner = [(*path, *p[1:]) for p, _ in containers_in([copy])]
        is_same = all(self._after.get(p) is self._copies[p] and not self._is_changed(p) for p in inner)
        return is_same and not any(id(a) in written for a in Leaves(copy).arrays if is_shared_array(a))

    def note_after(self, values: Sequence[Any], count: XlaOp | None) -> None:
        """Note which containers after the loop may be one object.

        Parameters
        ----------
        values : sequence
            Values of the variables after the loop.
        count : XlaOp, optional
            s64[], the number of iterations; None if there is always one.
        """
        after = dict(containers_in(values))
        for p, q in {*self._same, *self._passed_on()}:
            self._note(p, after, [after.get(q)])
        for path in self._after:
            found = [v for source in self._sources[path] for v in self._outer.get(source, ())]
            self._note(path, after, [*self._others[path], *found])
            if path in self._lists and path in after:
                note_alias([after[path]], self._name(path), lists=self._lists[path])
        if count is not None and self._first:
            is_skipped = xla.eq(count, require_current().constant(0, np.dtype(np.int64)))
            for p, q in self._pairs_of_entry:
                self._note(p, after, [after.get(q)], is_skipped)
            for path, value in self._shared_first.items():
                self._note(path, after, [value], is_skipped)

    def note_lists(self, values: Sequence[Any]) -> None:
        """Note which containers after the loop may be elements of lists to which it has appended them."""
        after = dict(containers_in(values))
        longer = [v for v, _, _ in self._appended if v is not None]
        if longer and self.lists_of_elements:
            note_alias([], "an element", lists=[*longer, *self.lists_of_elements])
        for path, value in self._after.items():
            lists = [v for v, c, _ in self._appended if c is value and v is not None]
            if lists and path in after:
                note_alias([after[path]], self._name(path), lists=lists)

    def _passed_on(self) -> Iterator[Pair]:
        """Yield the containers that are one after an iteration since others are one before it."""
        for p, q in self._pairs:
            yield from ((r, s) for r in self._users.get(p, ()) for s in self._users.get(q, ()) if r != s)

    def _note(self, path: Path, after: Mapping[Path, Any], others: Iterable[Any], test: XlaOp | None = None) -> None:
        value = after.get(path)
        found = [v for v in others if v is not None and v is not value]
        if value is not None and found:
            note_alias([value, *found], self._name(path), test)


def _is_known_container(value: Any) -> bool:
    """Return True for a container of static values, which the loop does not carry."""
    return is_container(value) and not Leaves(value).arrays


def _are_alike(one: Any, other: Any) -> bool:
    return (isinstance(one, list) and isinstance(other, list)) or type(one) is type(other)


def _closure_of_pairs(pairs: Iterable[Pair], users: Mapping[Path, Sequence[Path]]) -> set[Pair]:
    """Return pairs of paths, and those that take their containers from both paths of a pair."""
    found, pending = set[Pair](), list(pairs)
    while pending:
        p, q = pending.pop()
        if (p, q) not in found and (q, p) not in found:
            found.add((p, q))
            pending += [(r, s) for r in users.get(p, ()) for s in users.get(q, ()) if r != s]
    return found


def _closure(
    first: Mapping[Path, Sequence[Any]], others: Mapping[Path, Sequence[Any]], users: Mapping[Path, Sequence[Path]]
) -> dict[Path, list[Any]]:
    """Return the objects from before the loop that containers may be: at first, or by iterations that pass them on."""
    found: dict[Path, dict[int, Any]] = {}
    pending = [(p, v) for known in (first, others) for p, values in known.items() for v in values]
    while pending:
        path, value = pending.pop()
        if id(value) not in found.setdefault(path, {}):
            found[path][id(value)] = value
            pending += [(user, value) for user in users.get(path, ())]
    return {p: list(values.values()) for p, values in found.items() if values}
