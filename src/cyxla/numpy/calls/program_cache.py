"""Cache of a function's compiled programs, by the signature of a call and by what they depend on outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple, TypeAlias

from cyxla._native.dispatch import Dispatcher
from cyxla.forking import new_lock
from cyxla.numpy.calls.entries import Entry, PlainEntry
from cyxla.numpy.calls.recompilation import WARN_AFTER
from cyxla.numpy.calls.signatures import Call
from cyxla.numpy.state.guards import Guards

MAX_ENTRIES = 256  # greatest number of signatures of a function that stay compiled
MAX_VARIANTS = 16  # programs of a signature that differ in values from outside
ExactEntry: TypeAlias = "Entry | PlainEntry"


class CacheInfo(NamedTuple):
    """Statistics of a function's cache.

    Attributes
    ----------
    hits : int
        Number of calls whose program was in the cache.
    misses : int
        Number of calls that compiled their program.
    entries : int
        Number of cached programs.
    seconds : float
        Time spent on tracing and compiling, in seconds.
    """

    hits: int
    misses: int
    entries: int
    seconds: float


class ProgramCache:
    """Programs for single sizes; the least recently used are dropped.

    Attributes
    ----------
    entries : dict
        Programs by the key of a call, and the number of the guards, None without any.
    misses : int
        Number of programs that were compiled, those for any size included.
    seconds : float
        Time that this took, in seconds.
    recent_calls : list of Call
        Last calls that compiled a program, at most as many as `warn_recompilation` is told.
    """

    def __init__(self) -> None:
        self.entries: dict[Any, ExactEntry] = {}
        self.misses = 0
        self.seconds = 0.0
        self.recent_calls: list[Call] = []
        self._guards: dict[Any, list[Guards]] = {}  # of the programs that depend on values from outside
        self._compile_locks: dict[Any, RLock] = {}
        self._lock = new_lock()

    def find(self, call: Call) -> ExactEntry | None:
        """Return the program of a call with the values from outside as they are; None if there is none."""
        for key in (call.key, call.key_of_classes):
            for guards in () if key is None else self._guards.get(key, ()):
                if guards.fetch(call.passed) is not None:
                    return self.entries.get((*key, guards.number))
        return self.entries.get((*call.key, None))

    def find_or_make(self, call: Call, make: Callable[[], ExactEntry], dispatcher: Dispatcher) -> ExactEntry:
        """Return the program of a call, which one thread makes if there is none.

        Parameters
        ----------
        call : Call
            Arguments of the call.
        make : callable
            Function that compiles the program.
        dispatcher : Dispatcher
            Function whose programs these are.
        """
        with self._compile_lock(call.key):
            entry = self.find(call)
            if entry is None:
                entry = make()
                self.add(call, entry, dispatcher)
        return entry

    def add(self, call: Call, entry: ExactEntry, dispatcher: Dispatcher) -> None:
        """Add the program of a call under the number of its guards."""
        is_of_classes = isinstance(entry, Entry) and entry.lowered.is_of_classes
        key = call.key_of_classes if is_of_classes else call.key
        guards = self._add_guards(key, entry.guards, dispatcher)
        with self._lock:
            entry.stamp = dispatcher.clock
            self.entries[(*key, guards)] = entry
            if len(self.entries) > MAX_ENTRIES:
                self._drop_oldest(entry, dispatcher)
            self.recent_calls = [*self.recent_calls[1 - WARN_AFTER :], call.without_arrays()]
        self.count(entry.seconds)

    def count(self, seconds: float) -> None:
        """Count a compilation that took some seconds."""
        with self._lock:
            self.misses += 1
            self.seconds += seconds

    def all_entries(self) -> list[ExactEntry]:
        """Return a list of the programs."""
        with self._lock:
            return list(self.entries.values())

    def clear(self) -> None:
        """Drop all programs."""
        with self._lock:
            self.entries.clear()
            self._guards.clear()
            self.recent_calls = []

    def _add_guards(self, key: Any, guards: Guards, dispatcher: Dispatcher) -> int | None:
        """Add the guards of a program, and return their number; None if it depends on nothing from outside."""
        if not guards.rows:
            return None
        with self._lock:
            variants = self._guards.setdefault(key, [])
            variants.append(guards)
            dropped = variants.pop(0) if len(variants) > MAX_VARIANTS else None
            entry = None if dropped is None else self.entries.pop((*key, dropped.number), None)
        if entry is not None:
            dispatcher.forget(entry)
        return guards.number

    @contextmanager
    def _compile_lock(self, key: Any) -> Iterator[None]:
        """Hold the lock of a signature, so that other threads do not compile the same."""
        with self._lock:
            lock = self._compile_locks.setdefault(key, new_lock())
        with lock:
            yield
        with self._lock:
            self._compile_locks.pop(key, None)

    def _drop_oldest(self, new_entry: ExactEntry, dispatcher: Dispatcher) -> None:
        oldest = min((k for k, e in self.entries.items() if e is not new_entry), key=lambda k: self.entries[k].stamp)
        dispatcher.forget(self.entries.pop(oldest))
