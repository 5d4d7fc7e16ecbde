"""Loops: they run in Python while they are traced, or become loops of the program whose body is recorded in place.

A rewritten loop iterates over a driver. Each iteration of Python's loop is one of the program's loop that is unrolled,
or a pass that records the body with the state as parameters; passes are repeated until nothing new is learned of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import GeneratorType
from typing import Any

import numpy as np

from cyxla.errors import InternalError, TraceError
from cyxla.numpy.control.lower_scan import Scan, emit_scan
from cyxla.numpy.control.lower_while import emit_while
from cyxla.numpy.indexing.ranges import declare_range
from cyxla.numpy.rewriting.known_conditions import is_static, needs_value
from cyxla.numpy.rewriting.loops.iterables import Source, elements_of, held, is_iterator, lists_in, source_of, use_up
from cyxla.numpy.rewriting.loops.plans import Peel, Plan, Repeat, Unsuitable, Variables
from cyxla.numpy.rewriting.loops.recordings import Recording
from cyxla.numpy.rewriting.loops.stacks import Appends, roots_of
from cyxla.numpy.rewriting.loops.unrolling import ITERATIONS_OF_A_PASS, Unrolling, count_iterations
from cyxla.numpy.rewriting.parts.python_state import PythonState
from cyxla.numpy.rewriting.parts.sharing import SharedArrayError
from cyxla.numpy.rewriting.python_functions.choices import condition, truth
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, traced, value_of
from cyxla.numpy.tracing.bodies import Body, inline, record_body
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import dtype_of
from cyxla.numpy.tracing.trace import PlainRunError, current, require_current, resumed, user_line
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

MOST_PASSES = 12
MOST_UNROLLED = 16  # iterations of a loop whose body is small
MOST_UNROLLED_SIZE = 160  # instructions of a loop that is unrolled rather than kept a loop
PEEL_LIMIT = 2
FIRST_KNOWN = 8  # iterations of a `while` on known conditions, before it is tried as a loop of the program


class Loop(ABC):
    """Driver of a loop.

    Parameters
    ----------
    variables : Variables
        Variables of the loop.
    """

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.plan = Plan()
        self.recording: Recording | None = None
        self.entry: tuple[Any, ...] | None = None
        self._restored: tuple[Any, ...] | None = None
        self._state: tuple[Any, ...] | None = None
        self._passes = 0
        self._raised_before = 0
        self._peeled_before = 0
        self.failure: str = ""
        self.unrolling = Unrolling()
        self._snapshot: PythonState | None = None
        self._appends = Appends()
        self._arrays_before: list[tuple[TracedArray, XlaOp]] = []
        self._stored: Callable[[], tuple[Any, ...]] = tuple
        self._lists_before = 0

    # -- calls of rewritten functions

    def enter(self, state: tuple[Any, ...], stored: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Begin an iteration, or a pass over the body, and return the values of the variables in it."""
        if self._restored is not None:
            state, self._restored = self._restored, None
        self._state = state
        if not self._wants_pass():
            return state
        self._lists_before = len(require_current().program.written_lists)
        if self.entry is None:
            self.entry, self._stored = state, stored
            self._snapshot = PythonState(_values(stored))
            self.plan.add_written(_outer_arrays(_values(stored)))
        self._passes += 1
        count_iterations(require_current(), ITERATIONS_OF_A_PASS)
        self._raised_before = len(require_current().program.raised)
        self.recording = Recording(self.variables, self.plan, self.entry, self._can_peel)
        self._appends.guard(True)
        self._arrays_before = [(r, r.op) for r in roots_of(self.recording.state)] if self._appends else []
        self._begin_pass(self.recording)
        return self.recording.state

    def leave(self, state: tuple[Any, ...]) -> None:
        """End an iteration, or a pass over the body."""
        if self.recording is None:
            self._state = state
            return
        if self._continues_pass(state):
            return
        try:
            self._finish_pass(self.recording, state)
        except (Peel, Repeat, Unsuitable) as decision:
            self._decide(decision)

    def failed(self, error: BaseException) -> bool:
        """Give up the pass in which an exception was raised; return False for one of the program itself."""
        if self.recording is None or isinstance(error, _ENDS_OF_TRACES):
            return False
        if isinstance(error, Unsuitable):
            self._decide(error)
        elif isinstance(error, SharedArrayError) and self._can_peel:  # the first iteration may tell arrays apart
            del require_current().program.raised[self._raised_before :]
            self._decide(Peel())
        else:
            self._give_up(error)
        return True

    def append(self, values: StackedList, value: Any) -> None:
        """Append a value to a list that the body does not use otherwise."""
        if self.recording is None:
            values.append(value)
        else:
            self._append(values, value)

    def _append(self, values: StackedList, value: Any) -> None:
        raise Unsuitable("it appends to a list, and its number of iterations is unknown")

    def append_some(self, values: StackedList, value: Any, times: int) -> None:
        """Append a value in some iterations, or several in each, at most a number of times."""
        self._appends.add_some(values, value, self.bound * times)

    @property
    def bound(self) -> int:
        """Greatest possible number of iterations of the loop of the program."""
        raise Unsuitable("it appends to a list, and its number of iterations is unknown")

    def result(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values of the variables after the loop, given those of Python's variables."""
        return state if self._state is None else self._state

    # -- passes

    @abstractmethod
    def _wants_pass(self) -> bool:
        """Return True if the next iteration of Python's loop is a pass over the body."""

    @property
    @abstractmethod
    def _can_peel(self) -> bool:
        """True if an iteration can be run before the loop."""

    @abstractmethod
    def _begin_pass(self, recording: Recording) -> None:
        """Prepare a pass."""

    def _continues_pass(self, state: tuple[Any, ...]) -> bool:
        return False

    @abstractmethod
    def _emit(self, recording: Recording) -> None:
        """Emit the loop of the program after the last pass."""

    @abstractmethod
    def _peel(self) -> None:
        """Run an iteration before the loop."""

    @abstractmethod
    def _unroll(self, reason: str) -> None:
        """Go on in Python, for a reason."""

    def _finish_pass(self, recording: Recording, state: tuple[Any, ...]) -> None:
        if self._snapshot is not None and self._snapshot.is_changed():
            raise Unsuitable("its body changes a list, a dict, an object or a value from outside")
        self._appends.check(self._arrays_before, state)
        new = self._appends.take_new()
        lists = self._written_lists(recording)
        if new or lists:
            self._retry(recording)
            self.plan.add_written([array for stacks in new for array in stacks.make()])
            self._store(lists)
        elif recording.finish(state):
            self._emit(recording)
        elif self._passes >= MOST_PASSES:
            raise Unsuitable("the types of its state do not settle")
        else:
            self._retry(recording)

    def _written_lists(self, recording: Recording) -> list[StackedList]:
        """Return the lists from outside of which the pass has written elements, if they are of the enclosing trace."""
        written = require_current().program.written_lists[self._lists_before :]
        own = {id(v): v for v in written if v.owner is recording.part.trace.parent}
        return [] if self._is_short(recording) else [*own.values()]

    def _is_short(self, recording: Recording) -> bool:
        """Return True if Python runs the iterations rather than a loop of the program."""
        return False

    def _store(self, lists: Sequence[StackedList]) -> None:
        """Put the numbers of lists into arrays, which iterations write."""
        if lists:
            self.plan.add_written([array for values in lists for array in values.store()])
            self._snapshot = PythonState(_values(self._stored))

    def _retry(self, recording: Recording) -> None:
        self._appends.guard(False)
        del require_current().program.written_lists[self._lists_before :]
        recording.part.close()
        self.recording = None
        self._restore()

    def _restore(self) -> None:
        """Make the next iteration begin with the values from before the loop."""
        self._restored = self.entry
        if self._snapshot is not None:
            self._snapshot.restore()

    def _decide(self, decision: Exception) -> None:
        recording = self.recording
        assert recording is not None
        self._retry(recording)
        self._appends = Appends()  # their number changes
        if isinstance(decision, Repeat):
            self.plan.period = decision.period
            self._repeat()
        elif isinstance(decision, Peel):
            self._peel()
        else:
            self._unroll(str(decision))

    @abstractmethod
    def _repeat(self) -> None:
        """Prepare passes over several iterations."""

    def _give_up(self, error: BaseException) -> None:
        recording = self.recording
        assert recording is not None
        del require_current().program.raised[self._raised_before :]  # which the user does not see
        self._retry(recording)
        self._unroll(_reason(error))


_ENDS_OF_TRACES = (KeyboardInterrupt, SystemExit, MemoryError, RecursionError, PlainRunError)


def _reason(error: BaseException) -> str:
    message = getattr(error, "message", "") or str(error)
    return f"{type(error).__name__}: {message}" if not isinstance(error, TraceError) else message


def _values(stored: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    try:
        return stored()
    except NameError:  # one of them is not bound yet
        return ()


def _outer_arrays(found: tuple[Any, ...]) -> list[TracedArray]:
    """Return the arrays that a loop may write, by the variables of which it writes items."""
    for v in found:
        if isinstance(v, KnownArray) and v.base is not None:
            v.become_traced()
    stored = [a for v in found if isinstance(v, StackedList) and v.storage is not None for a in v.storage.arrays]
    roots = [v.root for v in (*found, *stored) if isinstance(v, TracedArray) and (v.ndim or v.rank0.name == "ARRAY")]
    return [r for r in {id(r): r for r in roots}.values() if r.writeable and _is_visible(r)]


def _is_visible(array: TracedArray) -> bool:
    """Return True if an array belongs to a trace that is under way."""
    trace = current()
    while trace is not None:
        if array.owner is trace:
            return True
        trace = trace.parent if trace.writes is not None else None
    return False


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
            self.append_some(values, value, 1)
            return
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
            del require_current().program.written_lists[self._lists_before :]
            self._restore()
            self._unroll("")
            return
        self.recording, self._is_done = None, True
        if self._is_counted and not recording.flags:
            self._state = self._emit_counted(recording)
        else:
            if require_current().program.gradients:
                self._restore()
                self._is_done = False
                self._unroll("a loop that may end early has no gradient")
                return
            self._state = self._emit_while(recording)
        self._appends.finish()
        self._require_same_lists()

    def _is_short(self, recording: Recording) -> bool:
        if not self._is_counted or self._appends.grows:
            return False
        count = self._source.length - self._first  # type: ignore[union-attr]
        return bool(count <= MOST_UNROLLED and count * recording.part.size <= MOST_UNROLLED_SIZE)

    def _emit_counted(self, recording: Recording) -> tuple[Any, ...]:
        count = (self._source.length - self._first) // self.plan.period  # type: ignore[union-attr]
        body = _converted_body(recording, recording.results(), [], recording.part.trace.failures)
        constants, slots = body.captures, recording.slots
        split = len(constants)
        shapes = [recording.index.shape, *[c.shape for c in constants], *[s.parameter.aval.static for s in slots]]
        iteration = record_body(
            "iteration", shapes, lambda number, *v: inline(body, [number, *v[split:], *v[:split]])
        )  # fmt: skip
        inits = [value_of(s.init) for s in slots]
        results = emit_scan(Scan(iteration, count, split, len(slots)), [*constants, *inits])
        return recording.after(results, [])

    def _emit_while(self, recording: Recording) -> tuple[Any, ...]:
        assert self._source is not None
        trace = recording.part.trace
        index = recording.index
        limit = self._limit(recording)
        with _within(recording):
            one = require_current().constant(1, np.dtype(np.int64))
            going = xla.lt(index, limit)
            following = index + one
        return _emit_loop(recording, going, [], [following], list(trace.failures), self._first_index())

    def _limit(self, recording: Recording) -> XlaOp:
        if self._length is not None:
            with _within(recording):
                if not self._first:
                    return self._length
                return self._length - require_current().constant(self._first, np.dtype(np.int64))
        count = (self._source.length - self._first) // self.plan.period  # type: ignore[union-attr]
        return recording.part.trace.constant(count, np.dtype(np.int64))

    @staticmethod
    def _first_index() -> list[XlaOp]:
        return [require_current().constant(0, np.dtype(np.int64))]


class WhileLoop(Loop):
    """Driver of a loop with a condition."""

    def __init__(self, variables: Variables) -> None:
        super().__init__(variables)
        self._is_done = False
        self._is_traced = False
        self._was_tried = False
        self._count = 0
        self._tested: TracedArray | None = None
        self._failures_of_test = 0

    def __iter__(self) -> Iterator[None]:
        while not self._is_done:
            yield None
        self.unrolling.end(self.failure)

    def test(self, value: Any) -> bool:
        """Return True if the body runs, or is recorded."""
        if self.recording is not None:
            if self.recording.has_written():
                raise Unsuitable("its condition writes to an array")
            self._tested = truth(value)
            self._failures_of_test = len(require_current().failures)
            return True
        value = condition(value)
        if is_traced(value):
            if is_static(value):
                needs_value(value)
            if self._was_tried:
                raise TraceError(f"a loop on a traced condition cannot be compiled: {self.failure}")
            self._is_traced = True
            return False
        if not value:
            self._is_done = True
            return False
        self._count += 1
        self.unrolling.begin()
        return True

    def _wants_pass(self) -> bool:
        if self._is_traced:
            return True
        return not self._was_tried and self._count >= FIRST_KNOWN and self.unrolling.size > MOST_UNROLLED_SIZE // 2

    @property
    def _can_peel(self) -> bool:
        return False

    def _begin_pass(self, recording: Recording) -> None:
        self._tested = None
        self.plan.may_skip = True

    def leave(self, state: tuple[Any, ...]) -> None:
        """End an iteration or a pass; an iteration whose condition turned out to be traced is recorded instead."""
        if self.recording is None and self._is_traced and not self._is_done:
            self._restored = self._state
            return
        super().leave(state)

    def _unroll(self, reason: str) -> None:
        self.failure, self._was_tried = reason, True
        if self._is_traced:
            raise TraceError(f"a loop on a traced condition cannot be compiled: {reason}", hint=_WHILE_HINT)
        self._state, self.entry = self.entry, None

    def _repeat(self) -> None:
        raise InternalError("several iterations of a loop on a traced condition cannot be recorded as one")

    def _peel(self) -> None:
        raise InternalError("an iteration of a loop on a traced condition cannot be run before it")

    def _emit(self, recording: Recording) -> None:
        if require_current().program.gradients and not self._is_traced:
            self.recording = None
            self._restore()
            self._unroll("a loop of unknown trip count has no gradient")
            return
        self.recording, self._is_done = None, True
        assert self._tested is not None
        failures = recording.part.trace.failures
        first, later = failures[: self._failures_of_test], failures[self._failures_of_test :]
        going = recording.part.trace.capture(self._tested.op)
        with _within(recording):
            following = recording.index + require_current().constant(1, np.dtype(np.int64))
        zero = [require_current().constant(0, np.dtype(np.int64))]
        self._state = _emit_loop(recording, going, first, [following], later, zero)


_WHILE_HINT = "give each variable one dtype and shape in all iterations"


def _within(recording: Recording) -> AbstractContextManager[None]:
    return resumed(recording.part.trace)


def _converted_body(recording: Recording, results: Sequence[XlaOp], others: Sequence[XlaOp], failures: Any) -> Body:
    """Return the body with its results in the types of the state."""
    with _within(recording):
        converted = [
            convert(op, dtype_of(slot.kind)) for op, slot in zip(results, recording.slots, strict=True)
        ]  # fmt: skip
    return recording.part.body_with_failures([*others, *converted], failures)


def _emit_loop(
    recording: Recording, going: XlaOp, failures_of_test: Any, following: list[XlaOp], failures: Any,
    first: list[XlaOp],
) -> tuple[Any, ...]:  # fmt: skip
    """Emit a loop that runs while a value holds and no flag is set."""
    part, slots = recording.part, recording.slots
    body = _converted_body(recording, recording.results(), following, failures)
    going_on = part.body_with_failures([going], failures_of_test)
    state_count, flag_count = 1 + len(slots), len(recording.flags)
    flags = recording.part.body_with_failures(recording.flags, [])
    constants = body.captures
    shapes_of_flags = [f.shape for f in recording.flags]
    shapes = [*[p.shape for p in part.parameters], *shapes_of_flags, *[c.shape for c in constants]]

    def split(values: Sequence[XlaOp]) -> tuple[list[XlaOp], list[XlaOp]]:
        inner = state_count + flag_count
        return [*values[:state_count], *values[inner:]], list(values[state_count:inner])

    def test(*values: XlaOp) -> list[XlaOp]:
        state, set_flags = split(values)
        goes = inline(going_on, state)[0]
        for flag in set_flags:
            goes = xla.and_(goes, xla.not_(flag))
        return [goes]

    def step(*values: XlaOp) -> list[XlaOp]:
        state, _ = split(values)
        return inline(part.body_with_failures([*body.results, *flags.results], failures), state)

    inits = [*first, *[value_of(s.init) for s in slots]]
    before = [value_of(as_traced(recording.entry[k], bool)) for k in sorted(recording.variables.exits)]
    results = emit_while(
        record_body("condition", shapes, test), record_body("body", shapes, step), constants, [*inits, *before]
    )  # fmt: skip
    return recording.after(results[1:state_count], results[state_count:])


def _usable(source: Source | None) -> Source | None:
    """Return a source, unless its length depends on numbers of the call that are better known while tracing."""
    if source is not None and is_traced(source.length) and is_static(source.length):
        needs_value(source.length)
    return source
