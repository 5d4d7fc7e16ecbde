"""Branches: statements of which one side runs, in Python for a known condition, else in the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from cyxla.errors import InternalError, TraceError, UnimplementedError, UnknownError
from cyxla.numpy.control.carry import agreed_kind, array_text
from cyxla.numpy.control.lower_cond import emit_conditional
from cyxla.numpy.rewriting.loops.plans import LoopDecision
from cyxla.numpy.rewriting.loops.unrolling import ITERATIONS_OF_A_BRANCH, count_iterations
from cyxla.numpy.rewriting.parts.aliases import (
    Path,
    containers_in,
    has_aliases,
    is_container,
    note_alias,
    pairs_with_key,
)
from cyxla.numpy.rewriting.parts.branch_sizes import Sizes
from cyxla.numpy.rewriting.parts.new_objects import SideOfBranch, first_kept
from cyxla.numpy.rewriting.parts.parts import Leaves, Part
from cyxla.numpy.rewriting.parts.python_state import (
    ABSENT,
    Contents,
    PythonState,
    changed_items,
    fill,
    items_of,
    name_of_container,
    structure_of,
    with_items,
)
from cyxla.numpy.rewriting.parts.unbound import PossiblyUnbound, Unbound, unbound_flag
from cyxla.numpy.rewriting.python_functions.choices import truth
from cyxla.numpy.rewriting.syntax.jumps import VALUE
from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.tracing.arrays.number_table import TableRow
from cyxla.numpy.tracing.arrays.sharing import may_be_untraced, possible_roots, share, stand_for_untraced
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.bodies import Body, inline, record_body
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Kind, dtype_of
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current, require_current, resumed, user_line
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.doubts import doubt_of, note_doubt
from cyxla.numpy.tracing.user_program.handlers import is_in_try_block
from cyxla.numpy.tracing.user_program.user_frames import HOOKS
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

#: Errors that are raised while tracing, rather than by the program
_MOST_SHOWN = 6  # elements of a tuple that messages show
NOT_OF_THE_PROGRAM = (
    TraceError, UnimplementedError, InternalError, UnknownError, MemoryError, RecursionError, LoopDecision,
)  # fmt: skip


class TracedBranch:
    """Branch on a traced condition: both sides are recorded, one after the other.

    Parameters
    ----------
    test : TracedArray
        Condition, a traced bool.
    names : sequence of str
        Names of the variables that the sides bind and that are read later, the first ones of the state.
    """

    def __init__(self, test: TracedArray, names: Sequence[str]) -> None:
        self._test, self._names = test, names
        self.entry: tuple[Any, ...] = ()
        self._part: Part | None = None
        self._created = 0  # objects that the function had made before a side
        self._sides: list[_Side] = []
        self._objects = PythonState()

    def first(self, state: tuple[Any, ...]) -> bool:
        """Begin the first side."""
        self.entry = state
        self._begin("true_side")
        return True

    def second(self) -> bool:
        """Begin the second side."""
        self._begin("false_side")
        return True

    def _begin(self, name: str) -> None:
        self._part = Part(name)
        self._created = len(require_current().program.created)

    def end(self, state: tuple[Any, ...]) -> None:
        """End a side."""
        assert self._part is not None
        self._sides.append(_Side(self._part, self._names, state[: len(self._names)], self._objects, self._created))
        self._objects.restore()

    def failed(self, error: Exception) -> bool:
        """Make runs fail in which a side is taken that raises; return False for errors of tracing."""
        part = self._part
        if isinstance(error, NOT_OF_THE_PROGRAM) or part is None or current() is not part.trace:
            return False
        if is_in_try_block(with_statements=False):
            return False
        trace = part.trace
        trace.fail_if(trace.constant(True, np.dtype(bool)), trace.constant(0, np.dtype(np.int64)), _Again(error))
        trace.program.catches = True  # NumPy raises the error itself, with the values of the run
        self._objects.restore()
        unbound = [Unbound(n) for n in self._names]
        self._sides.append(_Side(part, self._names, unbound, self._objects, self._created, has_failed=True))
        return True

    def merged(self) -> tuple[Any, ...]:
        """Emit the branch, and return the values of the variables after it; those that nothing reads as before it."""
        count_iterations(require_current(), ITERATIONS_OF_A_BRANCH)
        one, other = self._sides
        if one.has_failed and other.has_failed:
            raise TraceError("both sides of a branch on a traced condition raise an error", where=user_line())
        failed = 0 if one.has_failed else 1 if other.has_failed else None
        arrays = list({id(a): a for s in self._sides for a in s.part.log.arrays}.values())
        parts = [s.part for s in self._sides]
        pairs = [_with_agreed_sizes(a, b, parts) for a, b in zip(one.values, other.values, strict=True)]
        test = value_of(self._test)
        joined = [_Joined(name, pair, failed, test) for name, pair in zip(self._names, pairs, strict=True)]
        objects = self._changed_objects(failed, test)
        joined += [j for o in objects for j in o.values.values()]
        if failed is None:
            for j in joined:
                j.refuse_choice(self._objects)
        kinds: list[Kind] = [k for j in joined for k in j.kinds] + [a.dtype for a in arrays]
        bodies = [
            s.part.body([*[op for j in joined for op in j.ops(k, s.part)], *[s.value_of(a) for a in arrays]])
            for k, s in enumerate(self._sides)
        ]
        results = _emit(bodies, kinds, test)
        count = len(results) - len(arrays)
        for array, result in zip(arrays, results[count:], strict=True):
            array.overwrite(result)
        values = iter(results[:count])
        after = [j.take(values) for j in joined]
        _share_containers(joined, after, failed)
        self._note_choices(joined, after, failed)
        _relate(joined, after, failed)
        taken = iter(after[len(self._names) :])
        for o in objects:
            o.apply({key: next(taken) for key in o.values})
        return (*after[: len(self._names)], *self.entry[len(self._names) :])

    def _note_choices(self, joined: Sequence[_Joined], after: Sequence[Any], failed: int | None) -> None:
        """Note which lists and dicts that have other names new ones may be."""
        for n, j in enumerate(joined):
            if j.is_same:
                continue
            entry = dict(containers_in([self.entry[n] if n < len(self._names) else None]))
            sides = [dict(containers_in([v])) for v in j.values_of(failed)]
            noted: set[Path] = set()
            for path, made in containers_in([after[n]]):
                found = [v for s in sides if (v := s.get(path)) is not None and v is not made]
                old = [v for v in found if self._was_there(v) and (path[:-1] in noted or entry.get(path) is not v)]
                others = [*old, *(v for v in found if self._has_names(v))]
                if others:
                    noted.add(path)
                    note_alias([made, *others], j.name)

    def _was_there(self, value: Any) -> bool:
        """Return True for a container from before the branch, or from outside, which a side may reach first."""
        return self._objects.has(value) or isinstance(value, (MirrorList, MirrorDict))

    def _has_names(self, value: Any) -> bool:
        return isinstance(value, TableRow) or self._objects.is_shared(value) or has_aliases(value)

    def _changed_objects(self, failed: int | None, test: XlaOp) -> list[_ChangedObject | _ChangedPlaces]:
        """Return the objects that a side changes, and the values from outside."""
        changed = {key: value for s in self._sides for key, (value, _) in s.objects.items()}
        found: list[_ChangedObject | _ChangedPlaces] = [
            _ChangedObject(value, self._sides, self._objects.before(value), failed, test) for value in changed.values()
        ]
        if any(s.places for s in self._sides):
            found.append(_ChangedPlaces(self._objects, self._sides, failed, test))
        return found


class _Value:
    """Value of a variable after a side of a branch, as values of that side's trace.

    Attributes
    ----------
    value : object
        Value.
    container : object
        Value with containers in place of the objects that the side has made.
    leaves : Leaves, optional
        Parts of the value; None for a variable that is not bound.
    ops : list of XlaOp
        Values of its arrays.
    is_outer : bool
        True for a container or object from before the branch, and for a value all of whose arrays are.
    outer : list of list of TracedArray
        Arrays of enclosing functions of which each of its arrays is a view, or which it is; several if it may be any.
    is_unbound : XlaOp, optional
        pred[] of a variable that may not be bound, whether it is not.
    """

    def __init__(
        self, value: Any, part: Part, side: SideOfBranch | None = None, *, is_variable: bool = False
    ) -> None:  # fmt: skip
        self.value, self._trace = value, part.trace
        self.container = value if side is None or isinstance(value, Unbound) else side.as_container(value)
        self.leaves = None if isinstance(value, Unbound) else Leaves(self.container)
        arrays = [] if self.leaves is None else self.leaves.arrays
        self.is_unbound = unbound_flag(arrays, part.trace) if is_variable else None
        self.ops = [part.trace.capture(a.unchecked_op if is_variable else a.op) for a in arrays]
        is_kept = side is not None and side.was_there(value)
        self.is_outer = is_kept or all(r.owner is not part.trace for a in arrays for r in (a, a.root))
        self.outer = [[r for r in possible_roots(a) if r.owner is not part.trace and _is_shared(r)] for a in arrays]

    def may_be_untraced(self, k: int) -> bool:
        """Return True if an array is, or may be, one that is not traced."""
        return self.leaves is not None and may_be_untraced(self.leaves.given(k))

    def inner_roots(self, k: int) -> list[TracedArray]:
        """Return the arrays, made by the side, to one of which a write to an array goes."""
        arrays = [] if self.leaves is None else possible_roots(self.leaves.arrays[k])
        return [r for r in arrays if r.owner is self._trace]


class _ResizedValue(_Value):
    """Value of a variable that is, or is a tuple of, arrays of other sizes after the other side.

    Parameters
    ----------
    value : _Value
        Value after the side.
    sizes : sequence of Sizes or None
        Sizes after the branch of the array, or of the members of the tuple; None for a member that stays as it is.
    part : Part
        Side.
    """

    def __init__(self, value: _Value, sizes: Sequence[Sizes | None], part: Part) -> None:
        self._original, self._trace = value, part.trace
        self.value, self.is_outer, self.is_unbound = value.value, False, None
        members = value.container if isinstance(value.container, tuple) else (value.container,)
        made: list[Any] = []
        self.ops: list[XlaOp] = []
        self._origins: list[int | None] = []  # numbers of the arrays of the original value; None for sizes
        ops = enumerate(value.ops)
        with resumed(part.trace):
            for member, new in zip(members, sizes, strict=True):
                found = [next(ops) for _ in Leaves(member).arrays]
                if new is None:
                    made.append(member)
                    self.ops += [op for _, op in found]
                    self._origins += [k for k, _ in found]
                    continue
                resized = new.resize(member, [op for _, op in found])
                made.append(resized)
                self.ops += [value_of(resized.padded), *map(value_of, resized.counts.values())]
                self._origins += [found[0][0], *[None] * len(new.dims)]
            self.container = tuple(made) if isinstance(value.container, tuple) else made[0]
            self.leaves = Leaves(self.container)
        self.outer = [[] if k is None else value.outer[k] for k in self._origins]

    def may_be_untraced(self, k: int) -> bool:
        """Return True if an array is, or may be, one that is not traced."""
        origin = self._origins[k]
        return origin is not None and self._original.may_be_untraced(origin)

    def inner_roots(self, k: int) -> list[TracedArray]:
        """Return the arrays, made by the side, to one of which a write to an array goes."""
        origin = self._origins[k]
        return [] if origin is None else self._original.inner_roots(origin)


def _with_agreed_sizes(one: _Value, other: _Value, parts: Sequence[Part]) -> tuple[_Value, _Value]:
    """Return the values of a variable after both sides; arrays of different sizes as arrays of run-time size."""
    if one.leaves is None or other.leaves is None or one.value is other.value:
        return one, other
    if one.is_unbound is not None or other.is_unbound is not None:
        return one, other
    sides = [v.container if type(v.container) is tuple else (v.container,) for v in (one, other)]
    if type(one.container) is not type(other.container) and tuple in map(type, (one.container, other.container)):
        return one, other
    if len(sides[0]) != len(sides[1]):
        return one, other
    sizes = [Sizes.of(a, b) for a, b in zip(*sides, strict=True)]
    if not any(sizes):
        return one, other
    return _ResizedValue(one, sizes, parts[0]), _ResizedValue(other, sizes, parts[1])


_BRANCH = "a branch on a traced condition"


def _is_shared(array: TracedArray) -> bool:
    return array.ndim > 0 or (array.rank0 is Rank0.ARRAY and array.weak is None)


class _Side:
    """Side of a branch after it was recorded."""

    def __init__(
        self, part: Part, names: Sequence[str], state: Sequence[Any], objects: PythonState, created: int, *,
        has_failed: bool = False,
    ) -> None:  # fmt: skip
        self.part, self.has_failed = part, has_failed
        side = SideOfBranch(objects, created)
        self.values = [
            _Value(v, part, side, is_variable=not name.startswith(HOOKS)) for name, v in zip(names, state, strict=True)
        ]
        objects.require_same_hidden()
        objects.fill_lists()
        self.objects = objects.changed()
        self.items = {
            (key, k): _Value(v, part, side)
            for key, (value, contents) in self.objects.items()
            for k, v in changed_items(contents, objects.before(value))
        }
        self.places = {k: (effect, _Value(v, part, side)) for k, (effect, v) in objects.changed_places().items()}
        self._written = {id(a): a.root_op for a in part.log.arrays}
        part.close()

    def value_of(self, array: TracedArray) -> XlaOp:
        """Return the value of an array of an enclosing function after this side."""
        op = self._written.get(id(array))
        return self.part.trace.capture(array.root_op if op is None else op)

    def kept(self, value: Any) -> _Value:
        """Return a value that the side did not replace, though it may have written to arrays of it."""
        log = self.part.log
        before = [(a, a.root_op) for a in log.arrays]
        with resumed(self.part.trace):
            for array in log.arrays:
                array.root_op = self._written[id(array)]
            try:
                return _Value(value, self.part)
            finally:
                for array, op in before:
                    array.root_op = op


class _Joined:
    """Variable with its values after both sides."""

    def __init__(self, name: str, values: tuple[_Value, _Value], failed: int | None, test: XlaOp) -> None:
        self._test, self._failed = test, failed is not None
        is_variable = not self._failed and not name.startswith(HOOKS)
        self._unbound = [k for k, v in enumerate(values) if v.leaves is None] if is_variable else []  # sides
        self.name, self._values = "the result" if name == VALUE else name, values
        self.kinds: list[Kind] = []
        self.arrays: list[TracedArray] = []  # after the branch
        self._same = values[0].value if failed is None else values[1 - failed].value
        self._is_same = values[0].value is values[1].value if failed is None else values[1 - failed].is_outer
        if not self._is_same:
            self._pattern = self._common_structure()
            self.kinds = [self._kind(k) for k in range(len(self._pattern.arrays))]
            self._has_flag = any(v.is_unbound is not None for v in values)
            if self._has_flag:
                self.kinds.append(np.dtype(bool))

    def _common_structure(self) -> Leaves:
        found = [v.leaves for v in self._values if v.leaves is not None]
        if not found:
            return Leaves(None)
        if not found[0].same_structure(found[-1]):
            for kept in [first_kept(leaves.tree) for leaves in found]:
                if kept is not None:
                    raise _choice(name_of_container(kept), self.name)
            one, other = (_text(v.value) for v in self._values)
            raise TraceError(
                f"a branch on a traced condition leaves {self.name} as {one} or as {other}", where=user_line(),
                hint="give it values of one kind on both sides",
            )  # fmt: skip
        return found[0]

    def _arrays(self, k: int) -> list[TracedArray]:
        return [v.leaves.arrays[k] for v in self._values if v.leaves is not None]

    def _kind(self, k: int) -> Kind:
        sides = self._arrays(k)
        kind = agreed_kind([s.kind for s in sides])
        if kind is None and all(s.shape == () and s.dtype.kind in "biufc" for s in sides):
            kind = np.result_type(*[s.dtype for s in sides])
        if kind is None or len({s.shape for s in sides}) > 1:
            shown = " or as ".join(dict.fromkeys(map(array_text, sides)))
            raise TraceError(
                f"a branch on a traced condition leaves {self.name} as {shown}", where=user_line(),
                hint="convert it to one dtype and shape on both sides",
            )  # fmt: skip
        return kind

    def ops(self, number: int, part: Part) -> list[XlaOp]:
        """Return the values of the arrays after a side; zeros for a variable that it leaves unbound."""
        if self._is_same:
            return []
        value = self._values[number]
        with resumed(part.trace):
            made = value.ops
            if value.leaves is None:
                made = [as_traced(np.zeros(a.shape, a.dtype)).op for a in self._pattern.arrays]
            if not self._has_flag:
                return made
            is_unbound = value.is_unbound
            if is_unbound is None:
                is_unbound = part.trace.constant(value.leaves is None and not self._failed, np.dtype(bool))
            return [*made, is_unbound]

    def refuse_choice(self, objects: PythonState) -> None:
        """Refuse to choose one of two dataclasses or objects that are there before the branch.

        The chosen one would be a new object: what is written to it would be lost.
        """
        found = objects.choice_of(*[v.container for v in self._values])
        if found is not None:
            raise _choice(found, self.name)

    def values_of(self, failed: int | None) -> list[Any]:
        """Return the values after the sides, but for one that has failed."""
        return [v.value for k, v in enumerate(self._values) if k != failed]

    @property
    def is_same(self) -> bool:
        """True if both sides leave the variable as it was."""
        return self._is_same

    def inner_roots(self, k: int) -> list[list[TracedArray]]:
        """Return the arrays, made by each side, to one of which a write to an array goes."""
        return [v.inner_roots(k) for v in self._values]

    def is_always(self, other: _Joined) -> bool:
        """Return True if another variable has the same value after both sides."""
        return all(v.value is w.value for v, w in zip(self._values, other._values, strict=True))

    def take(self, results: Iterator[XlaOp]) -> Any:
        """Build the value after the branch from the next results."""
        if self._is_same:
            return self._same
        count = len(self._pattern.arrays)
        ops = [next(results) for _ in range(count)]
        is_unbound = next(results) if self._has_flag else self._is_unbound_on_a_side()
        self.arrays = [self._array(k, op, is_unbound) for k, op in enumerate(ops)]
        return self._pattern.build(self.arrays)

    def _is_unbound_on_a_side(self) -> XlaOp | None:
        if len(self._unbound) != 1:
            return None
        return xla.not_(self._test) if self._unbound[0] else self._test

    def _array(self, k: int, op: XlaOp, is_unbound: XlaOp | None) -> TracedArray:
        kind, sides = self.kinds[k], self._arrays(k)
        weak = kind if isinstance(kind, type) and kind is not bool else None
        rank0 = sides[0].rank0 if len({s.rank0 for s in sides}) == 1 else Rank0.SCALAR
        if is_unbound is None:
            array = TracedArray(op, weak, rank0=rank0)
        else:
            array = PossiblyUnbound(op, weak, rank0, self.name, is_unbound)
        if not self._failed and len(sides) == 2:
            note_doubt(array, self._test, *sides)
        elif self._failed and array.ndim == 0:  # the class is that of the other side, which may be doubtful itself
            array.doubt = next((d for v in sides if v.doubt and (d := doubt_of(v, class_of(array)))), None)
        shared = [a for v in self._values if v.leaves is not None for a in v.outer[k]]
        if shared:
            share(array, shared, self.name, _BRANCH)
        return stand_for_untraced(array) if any(v.may_be_untraced(k) for v in self._values) else array


def _choice(kind: str, name: str) -> TraceError:
    return TraceError(
        f"a branch on a traced condition chooses which {kind} {name} is", where=user_line(),
        hint="make a copy of it on both sides, or use an array",
    )  # fmt: skip


def _share_containers(joined: Sequence[_Joined], after: list[Any], failed: int | None) -> None:
    """Let values be one list, dict or dataclass if they are on all sides, and note which containers may be one."""
    sides = list(zip(*[j.values_of(failed) for j in joined], strict=True))
    known: dict[tuple[int, ...], int] = {}
    for n, j in enumerate(joined):
        if is_container(after[n]) and not j.is_same:
            after[n] = after[known.setdefault(tuple(map(id, j.values_of(failed))), n)]
    old = {id(v) for j in joined for v in j.values_of(failed)}
    made = {p: c for p, c in containers_in(after) if id(c) not in old}
    for side in sides:
        found = {p: c for p, c in containers_in(side) if p in made}
        for p, q in pairs_with_key({p: [id(c)] for p, c in found.items()}):
            if made[p] is not made[q]:
                note_alias([made[p], made[q]], joined[p[0]].name)


def _relate(joined: Sequence[_Joined], after: list[Any], failed: int | None) -> None:
    """Let values after a branch be the same array if they are on both sides, and note if they may share memory."""
    first: dict[tuple[int, int], tuple[int, int]] = {}  # by the side and the root, the value and its leaf
    leaves = [j.arrays for j in joined]
    for n, arrays in enumerate(leaves):
        for k, array in enumerate(arrays):
            roots = joined[n].inner_roots(k) if _is_shared(array) else []
            keys = [(side, id(root)) for side, found in enumerate(roots) if side != failed for root in found]
            places = dict.fromkeys(first.setdefault(key, (n, k)) for key in keys)
            related = [place for place in places if place != (n, k)]
            if not related:
                continue
            if len(related) == len(arrays) == 1 and joined[n].is_always(joined[related[0][0]]):
                after[n] = after[related[0][0]]
            else:
                share(array, [leaves[m][i] for m, i in related], joined[n].name, _BRANCH)


class _ChangedObject:
    """Container, object or cell that a side changes."""

    def __init__(self, value: Any, sides: Sequence[_Side], before: Contents, failed: int | None, test: XlaOp) -> None:
        self._object = value
        contents = [s.objects[id(value)][1] if id(value) in s.objects else before for s in sides]
        if failed is not None:
            contents[failed] = contents[1 - failed]
        self._contents = contents[0]
        if structure_of(contents[0]) != structure_of(contents[1]):
            raise TraceError(
                f"a branch on a traced condition adds items to a {_text(value)} or removes some",
                where=user_line(), hint="add as many on both sides, or use an array",
            )  # fmt: skip
        held = dict(items_of(before))
        keys = dict.fromkeys(k for s in sides for key, k in s.items if key == id(value))
        parts = [s.part for s in sides]
        pairs = {
            k: _with_agreed_sizes(self._value(0, k, sides, held), self._value(1, k, sides, held), parts) for k in keys
        }
        self.values = {k: _Joined(f"an item of a {_text(value)}", pair, failed, test) for k, pair in pairs.items()}

    def _value(self, number: int, k: Any, sides: Sequence[_Side], held: dict[Any, Any]) -> _Value:
        side = sides[number]
        found = side.items.get((id(self._object), k))
        if found is not None:
            return found
        return _Value(Unbound("an item"), side.part) if side.has_failed else side.kept(held[k])

    def apply(self, values: dict[Any, Any]) -> None:
        """Make the object hold the values after the branch."""
        fill(self._object, with_items(self._contents, values))


class _ChangedPlaces:
    """Places outside of the function to which a side assigns."""

    def __init__(self, objects: PythonState, sides: Sequence[_Side], failed: int | None, test: XlaOp) -> None:
        self._objects = objects
        self._effects = {k: effect for s in sides for k, (effect, _) in s.places.items()}
        parts = [s.part for s in sides]
        pairs = {
            k: _with_agreed_sizes(self._value(k, sides[0]), self._value(k, sides[1]), parts) for k in self._effects
        }
        self.values = {k: _Joined(self._effects[k].text, pair, failed, test) for k, pair in pairs.items()}

    def _value(self, k: Any, side: _Side) -> _Value:
        if k in side.places:
            return side.places[k][1]
        before = ABSENT if side.has_failed else self._objects.place_before(k)
        if before is ABSENT and not side.has_failed:
            raise TraceError(
                f"a branch on a traced condition binds {self._effects[k].text}, which has no value before",
                where=user_line(), hint="bind it before the branch",
            )  # fmt: skip
        return _Value(Unbound(self._effects[k].text), side.part) if before is ABSENT else side.kept(before)

    def apply(self, values: dict[Any, Any]) -> None:
        """Record the values after the branch."""
        for k, value in values.items():
            self._objects.change_place(k, self._effects[k], value)


class _Again:
    """Maker of an exception that was raised while a side was recorded."""

    def __init__(self, error: Exception) -> None:
        self._error = error.with_traceback(None)

    def __call__(self, number: int) -> Exception:
        try:
            return copy(self._error)
        except Exception:  # its class has a constructor of its own
            return self._error


def _text(value: Any) -> str:
    """Return the type of a value for messages."""
    if isinstance(value, TracedArray):
        return array_text(value)
    if isinstance(value, SizedArray):
        sizes = ",".join(f"<={n}" if d in value.run_time_dims else str(n) for d, n in enumerate(value.padded.shape))
        return f"{value.dtype}[{sizes}]"
    if isinstance(value, tuple) and len(value) <= _MOST_SHOWN:
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    return name_of_container(value)


def _emit(bodies: Sequence[Body], kinds: Sequence[Kind], selector: XlaOp) -> list[XlaOp]:
    """Emit a conditional whose sides take the values that they capture."""
    captures: list[XlaOp] = []
    positions: dict[Any, int] = {}
    for body in bodies:
        for c in body.captures:
            if c.instruction not in positions:
                positions[c.instruction] = len(captures)
                captures.append(c)
    shapes = [c.shape for c in captures]

    def side(body: Body) -> Body:
        order = [positions[c.instruction] for c in body.captures]

        def step(*values: XlaOp) -> list[XlaOp]:
            results = inline(body, [values[k] for k in order])
            return [convert(r, dtype_of(k)) for r, k in zip(results, kinds, strict=True)]

        return record_body(body.trace.builder.name, shapes, step)

    return emit_conditional([side(bodies[0]), side(bodies[1])], require_current().capture(selector), captures)


def choose(test: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Return the value of ``first() if test else second()`` for a traced condition."""
    made = TracedBranch(truth(test), ("the result",))
    value: Any = Unbound("the result")
    made.first((value,))
    for number, side in enumerate((first, second)):
        if number:
            made.second()
        try:
            made.end((side(),))
        except Exception as error:
            if not made.failed(error):
                raise
    return made.merged()[0]
