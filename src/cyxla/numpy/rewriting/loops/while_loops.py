"""Loops on conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cyxla.errors import InternalError, TraceError
from cyxla.numpy.rewriting.known_conditions import is_static, needs_value
from cyxla.numpy.rewriting.loops.drivers import Loop
from cyxla.numpy.rewriting.loops.emission import emit_loop, within
from cyxla.numpy.rewriting.loops.plans import Unsuitable, Variables
from cyxla.numpy.rewriting.loops.recordings import Recording
from cyxla.numpy.rewriting.loops.unrolling import MOST_UNROLLED_SIZE
from cyxla.numpy.rewriting.python_functions.choices import condition, truth
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.xla.hlo.builder import functions as xla

FIRST_KNOWN = 8  # iterations of a `while` on known conditions, before it is tried as a loop of the program
_WHILE_HINT = "give each variable one dtype and shape in all iterations"


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
                raise Unsuitable("its condition writes to an array", "write to it in the body")
            if any(i.has_side_effect for i in self.recording.part.trace.builder.instructions):
                raise Unsuitable("its condition prints, or draws a random number", "do so in the body")
            self._tested = truth(value)
            for room in self._appends.have_room():
                self._tested = TracedArray(xla.and_(value_of(self._tested), room))
            self._failures_of_test = len(require_current().failures)
            return True
        value = condition(value)
        if is_traced(value):
            if is_static(value):
                needs_value(value)
            if self._was_tried:
                raise self._error(self.failure)
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
            raise self._error(reason)
        self._state, self.entry = self.entry, None

    def _error(self, reason: str) -> TraceError:
        text = f"a loop on a traced condition cannot be compiled: {reason}"
        return TraceError(text, where=self.where or user_line(), hint=self.hint or _WHILE_HINT)

    def _repeat(self) -> None:
        raise InternalError("several iterations of a loop on a traced condition cannot be recorded as one")

    def _peel(self) -> None:
        raise InternalError("an iteration of a loop on a traced condition cannot be run before it")

    def _emit(self, recording: Recording) -> None:
        self._appends.guard(False)
        if require_current().program.gradients and not self._is_traced:
            self.recording = None
            recording.containers.forget()
            self._restore()
            self._unroll("a loop of unknown trip count has no gradient")
            return
        self.recording, self._is_done = None, True
        assert self._tested is not None
        failures = recording.part.trace.failures
        first, later = failures[: self._failures_of_test], failures[self._failures_of_test :]
        going = recording.part.trace.capture(self._tested.op)
        with within(recording):
            following = recording.index + require_current().constant(1, np.dtype(np.int64))
        zero = [require_current().constant(0, np.dtype(np.int64))]
        self._state = emit_loop(recording, going, first, [following], later, zero)
        assert self.entry is not None
        self._appends.finish(self.entry, self._state)
        recording.containers.note_lists(self._state)
