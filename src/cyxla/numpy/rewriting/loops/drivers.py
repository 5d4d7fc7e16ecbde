"""Loops: they run in Python while they are traced, or become loops of the program whose body is recorded in place.

A rewritten loop iterates over a driver. Each iteration of Python's loop is one of the program's loop that is unrolled,
or a pass that records the body with the state as parameters; passes are repeated until nothing new is learned of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.loops.appends import Appends, roots_of
from cyxla.numpy.rewriting.loops.plans import Peel, Plan, Repeat, Unsuitable, Variables
from cyxla.numpy.rewriting.loops.unrolling import ITERATIONS_OF_A_PASS, Unrolling, count_iterations
from cyxla.numpy.rewriting.parts.python_state import PythonState
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.number_storage import StoredList
from cyxla.numpy.tracing.arrays.sharing import SharedArrayError
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.trace import PlainRunError, current, require_current
from cyxla.xla.hlo.builder import XlaOp

if TYPE_CHECKING:
    from cyxla.numpy.rewriting.loops.recordings import Recording

MOST_PASSES = 12
_STATE_HINT = "use arrays and numbers, or append to a new list, which the loop does not use otherwise"


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
        self.where = self.hint = ""  # of the failure
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
        from cyxla.numpy.rewriting.loops.recordings import Recording  # Python runs most short loops

        self._lists_before = len(require_current().program.written_lists)
        if self.entry is None:
            self.entry, self._stored = state, stored
            self._snapshot = PythonState(_values(stored))
            self.plan.add_written(_outer_arrays(_values(stored)))
        self._passes += 1
        count_iterations(require_current(), ITERATIONS_OF_A_PASS)
        self._raised_before = len(require_current().program.raised)
        assert self._snapshot is not None
        self.recording = Recording(self.variables, self.plan, self.entry, self._can_peel, self._snapshot)
        self.recording.part.trace.is_loop = True
        self._appends.guard(True)
        self._arrays_before = [(r, r.root_op) for r in roots_of(self.recording.state)] if self._appends else []
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
        self.append_some(values, value, self.bound)

    def append_some(self, values: StackedList, value: Any, times: int | None) -> None:
        """Append a value in some iterations, or several in each, at most a number of times in all; None for any."""
        self._note_appended(values, value)
        self._appends.add_some(values, value, times)

    def append_inside(self, values: StackedList, outer: Loop) -> None:
        """Note that the body appends to a list that a loop around it lets grow."""
        growing = outer._appends.growing_of(values)
        if growing is not None:
            self._appends.append_inside(growing)

    def _note_appended(self, values: StackedList | None, value: Any) -> None:
        if self.recording is not None:
            self.recording.containers.note_appended(values, value)

    @property
    def bound(self) -> int | None:
        """Greatest possible number of iterations of the loop of the program; None if it is unknown."""
        return None

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
            raise Unsuitable("its body changes a list, a dict, an object or a value from outside", _STATE_HINT)
        self._appends.check(self._arrays_before, state)
        self._appends.note_names(recording.state, state)
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

    def _written_lists(self, recording: Recording) -> list[StoredList]:
        """Return the lists from outside of which the pass has written elements, if they are of the enclosing trace."""
        written = require_current().program.written_lists[self._lists_before :]
        own = {id(v): v for v in written if v.owner is recording.part.trace.parent}
        return [] if self._is_short(recording) else [*own.values()]

    def _is_short(self, recording: Recording) -> bool:
        """Return True if Python runs the iterations rather than a loop of the program."""
        return False

    def _store(self, lists: Sequence[StoredList]) -> None:
        """Put the numbers of lists into arrays, which iterations write."""
        if lists:
            self.plan.add_written([array for values in lists for array in values.store()])
            self._snapshot = PythonState(_values(self._stored))

    def _retry(self, recording: Recording) -> None:
        self._appends.guard(False)
        del require_current().program.written_lists[self._lists_before :]
        recording.part.close()
        recording.containers.forget()
        self.recording = None
        self._restore()

    def _restore(self) -> None:
        """Make the next iteration begin with the values from before the loop."""
        self._restored = self.entry
        if self._snapshot is not None:
            self._snapshot.restore()

    def _decide(self, decision: Exception) -> None:
        if self.recording is not None:  # the pass has not been given up already
            self._retry(self.recording)
        self._appends = Appends()  # their number changes
        if isinstance(decision, Repeat):
            self.plan.period = decision.period
            self._repeat()
        elif isinstance(decision, Peel):
            self._peel()
        else:
            self.where, self.hint = "", getattr(decision, "hint", "")
            self._unroll(str(decision))

    @abstractmethod
    def _repeat(self) -> None:
        """Prepare passes over several iterations."""

    def _give_up(self, error: BaseException) -> None:
        recording = self.recording
        assert recording is not None
        del require_current().program.raised[self._raised_before :]  # which the user does not see
        self._retry(recording)
        self.where, self.hint = getattr(error, "where", ""), getattr(error, "hint", "")
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
    stored = [a for v in found if isinstance(v, StoredList) and v.storage is not None for a in v.storage.arrays]
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
