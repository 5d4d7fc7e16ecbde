"""Emission of recorded bodies as loops of the program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from cyxla.numpy.control.lower_while import emit_while, index_constant
from cyxla.numpy.rewriting.loops.recordings import Recording
from cyxla.numpy.tracing.arrays.traced_array import as_traced, value_of
from cyxla.numpy.tracing.bodies import Body, body_results, inline, record_body, replay
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import dtype_of
from cyxla.numpy.tracing.trace import require_current, resumed
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def within(recording: Recording) -> AbstractContextManager[None]:
    """Return a context in which operations belong to the body."""
    return resumed(recording.part.trace)


def converted_body(recording: Recording, results: Sequence[XlaOp], others: Sequence[XlaOp], failures: Any) -> Body:
    """Return the body with its results in the types of the state."""
    with within(recording):
        converted = [
            convert(op, dtype_of(slot.kind)) for op, slot in zip(results, recording.slots, strict=True)
        ]  # fmt: skip
    return recording.part.body_with_failures([*others, *converted], failures)


def emit_loop(
    recording: Recording, going: XlaOp, failures_of_test: Any, following: list[XlaOp], failures: Any,
    first: list[XlaOp],
) -> tuple[Any, ...]:  # fmt: skip
    """Emit a loop that runs while a value holds, for which nothing is printed or drawn, and no flag is set."""
    part, slots = recording.part, recording.slots
    body = converted_body(recording, recording.results(), following, failures)
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
        goes = body_results(going_on, replay(going_on, state, effects=False))[0]
        for flag in set_flags:
            goes = xla.and_(goes, xla.not_(flag))
            _ignore_failures_after(flag)  # the condition is not evaluated after a `break`
        return [goes]

    def step(*values: XlaOp) -> list[XlaOp]:
        state, _ = split(values)
        return inline(part.body_with_failures([*body.results, *flags.results], failures), state)

    inits = [*first, *[value_of(s.init) for s in slots]]
    before = [value_of(as_traced(recording.entry[k], bool)) for k in sorted(recording.variables.exits)]
    results = emit_while(
        record_body("condition", shapes, test), record_body("body", shapes, step), constants, [*inits, *before]
    )  # fmt: skip
    return recording.after(results[1:state_count], results[state_count:], results[0])


def _ignore_failures_after(flag: XlaOp) -> None:
    """Make the failures of the current trace successes if a flag is set."""
    trace = require_current()
    trace.failures[:] = [(xla.select(flag, index_constant(0), code), number) for code, number in trace.failures]
