"""Loops over iterables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from cyxla.errors import TraceError
from cyxla.numpy.indexing.ranges import declare_range
from cyxla.numpy.rewriting.known_conditions import is_static, needs_value
from cyxla.numpy.rewriting.loops.drivers import Loop
from cyxla.numpy.rewriting.loops.iterables import Source, elements_of, held, is_iterator, lists_in, source_of, use_up
from cyxla.numpy.rewriting.loops.plans import Variables
from cyxla.numpy.rewriting.loops.unrolling import MOST_UNROLLED, MOST_UNROLLED_SIZE, Unrolling
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import is_traced, traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line

if TYPE_CHECKING:
    from cyxla.numpy.rewriting.loops.recordings import Recording

PEEL_LIMIT = 2


class ForLoop(Loop):
    """Driver of a loop over an iterable.

    Parameters
    ----------
    iterable : iterable
        Values.
    variables : Variables
        Variables of the loop.
    is_held : bool
        Whether something else may hold the iterable.
    """

    def __init__(self, iterable: Any, variables: Variables, *, is_held: bool = False) -> None:
        super().__init__(variables)
        use_up(iterable)
        self._iterable, self._is_held = iterable, is_held or isinstance(iterable, GeneratorType)
        self._source = _usable(source_of(iterable))
        self._lists = [(values, values.contents()) for values in lists_in(iterable)]
        self._first = 0  # number of iterations that were run before the loop of the program
        self._to_peel = 0
        self._sub = 0
        self._is_known = False
        self._is_unrolled = self._source is None or not self._length_of_interest()
        self._is_done = False
        self.lists_of_elements: list[StackedList] = []  # which the loop has appended to others

    def _length_of_interest(self) -> bool:
        """Return True if there are enough iterations for a loop of the program."""
        assert self._source is not None
        return is_traced(self._source.length) or self._source.length > 1

    @property
    def _is_counted(self) -> bool:
        return self._source is not None and not is_traced(self._source.length)

    def __iter__(self) -> Iterator[Any]:
        if self._source is not None and self._is_counted and not self._source.length:
            return
        self._state = None
        while not self._is_done:
            if self._to_peel:
                self._to_peel -= 1
                self._first += 1
                self._is_known = True
                yield self._known_element(self._first - 1)
                self._is_known = False
            elif self._is_unrolled:
                self._is_known = True
                yield from self._remaining()
                return
            elif self._is_counted and self._first >= self._source.length:  # type: ignore[union-attr]
                return
            else:
                yield from self._pass()

    def _known_element(self, number: int) -> Any:
        assert self._source is not None
        return self._source.element(number)

    def _pass(self) -> Iterator[None]:
        """Yield for each iteration that a pass records; `item` computes its element in the trace of the pass."""
        self._sub = 0
        yield None
        while self.recording is not None and self._sub < self.plan.period:
            yield None

    def _remaining(self) -> Iterator[Any]:
        if self._source is None:
            iterator = elements_of(self._iterable)
        else:
            if not self._is_counted:
                elements_of(self._iterable)  # raises the reason
            iterator = (self._source.element(k) for k in range(self._first, self._source.length))
            if not self.variables.exits:
                self.unrolling = Unrolling(self._source.length - self._first)
        for item in iterator:
            self.unrolling.begin()
            yield item
            if self._has_ended():
                break
            self._require_same_lists()
        self.unrolling.end(self.failure)

    def _require_same_lists(self) -> None:
        """Require that iterations have not changed the lists that are iterated over."""
        for values, before in self._lists:
            after = values.contents()
            if len(after) != len(before) or any(a is not b for a, b in zip(after, before, strict=True)):
                raise TraceError(
                    "a list is changed while a loop iterates over it", where=user_line(), hint="iterate over a copy"
                )

    def _has_ended(self) -> bool:
        """Return True if the iteration that Python ran has left the loop."""
        flags = [self._state[k] for k in self.variables.exits] if self._state is not None else []
        if any(map(is_traced, flags)) and self._is_held and is_iterator(self._iterable):
            held(self._iterable, may_end_early=True)
        return any(not is_traced(flag) and flag for flag in flags)

    def item(self, known: Any) -> Any:
        """Return the element of the iteration: the given one, or that of an iteration that is being recorded."""
        if self.recording is None:
            return known
        assert self._source is not None
        number = self._recorded_number()
        return self._source.element(number + self._first if self._first else number)

    def _recorded_number(self) -> Any:
        """Return the number of the iteration that is being recorded, without those before the loop of the program."""
        number: Any = traced(self._number, int)
        return number if self.plan.period == 1 else number * self.plan.period + self._sub

    def _append(self, values: StackedList, value: Any) -> None:
        if not self._is_counted or self.variables.exits:
            self.append_some(values, value, self.bound)
            return
        self._note_appended(values, value)
        self._appends.add(values, value, self._recorded_number(), self._source.length - self._first)  # type: ignore[union-attr]

    @property
    def bound(self) -> int:
        """Greatest possible number of iterations of the loop of the program."""
        return self._source.bound - self._first  # type: ignore[union-attr]

    def enter(self, state: tuple[Any, ...], stored: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Begin an iteration or a pass; those behind the first of a pass go on with its state."""
        if self.recording is not None:
            return state
        return super().enter(state, stored)

    def _wants_pass(self) -> bool:
        return not self._is_known

    @property
    def _can_peel(self) -> bool:
        return self._is_counted and self._first < PEEL_LIMIT and self._source.length > self._first + 1  # type: ignore[union-attr]

    def _begin_pass(self, recording: Recording) -> None:
        assert self._source is not None
        self._number = recording.index
        self.plan.may_skip = not self._is_counted
        count = self._source.bound - self._first
        declare_range(recording.index, 0, max(count // self.plan.period - 1, 0))
        self._length = None if self._is_counted else require_current().capture(value_of(self._source.length))

    def _continues_pass(self, state: tuple[Any, ...]) -> bool:
        self._sub += 1
        return self._sub < self.plan.period

    def _repeat(self) -> None:
        remainder = (self._source.length - self._first) % self.plan.period  # type: ignore[union-attr]
        if remainder:
            self._start_peeling(remainder)

    def _peel(self) -> None:
        self._start_peeling(self.plan.period)  # a whole number of passes remains

    def _start_peeling(self, count: int) -> None:
        self._to_peel = count
        self._state, self.entry = self.entry, None

    def _unroll(self, reason: str) -> None:
        self.failure, self._is_unrolled = reason, True
        self.entry = None

    # -- the loop of the program

    def _emit(self, recording: Recording) -> None:
        self._appends.guard(False)
        if self._is_short(recording):
            self.recording = None
            recording.containers.forget()
            del require_current().program.written_lists[self._lists_before :]
            self._restore()
            self._unroll("")
            return
        from cyxla.numpy.rewriting.loops.for_emission import emit_counted, emit_open  # Python runs most short loops

        self.recording, self._is_done = None, True
        count = (self._source.length - self._first) // self.plan.period if self._is_counted else None  # type: ignore[union-attr]
        if count is not None and not recording.flags:
            self._state = emit_counted(recording, count)
        else:
            if require_current().program.gradients:
                recording.containers.forget()
                self._restore()
                self._is_done = False
                self._unroll("a loop that may end early has no gradient")
                return
            limit = self._length if count is None else count
            assert limit is not None
            self._state = emit_open(recording, limit, self._first)
        assert self.entry is not None
        self._appends.finish(self.entry, self._state)
        recording.containers.note_lists(self._state)
        self.lists_of_elements = recording.containers.lists_of_elements
        self._require_same_lists()

    def _is_short(self, recording: Recording) -> bool:
        if not self._is_counted or self._appends.grows:
            return False
        count = self._source.length - self._first  # type: ignore[union-attr]
        return bool(count <= MOST_UNROLLED and count * recording.part.size <= MOST_UNROLLED_SIZE)


def _usable(source: Source | None) -> Source | None:
    """Return a source, unless its length depends on numbers of the call that are better known while tracing."""
    if source is not None and is_traced(source.length) and is_static(source.length):
        needs_value(source.length)
    return source
