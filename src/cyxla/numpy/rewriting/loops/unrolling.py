"""Work of Python while a function is traced: loops that are unrolled and calls, their bounds, and a warning."""

from __future__ import annotations

from collections import Counter
from time import perf_counter, thread_time

from cyxla import config
from cyxla.errors import LongTraceWarning, TraceError
from cyxla.numpy.tracing.trace import Trace, current, plain_run, user_line, warn_user

WARN_ABOVE = 200  # instructions that one line makes in an unrolled loop
MOST = 8000  # instructions of an unrolled loop
SAMPLE = 8  # iterations of an unrolled loop before the number of its instructions is estimated
MOST_UNROLLED = 16  # iterations of a loop whose body is small
MOST_UNROLLED_SIZE = 160  # instructions of a loop that is unrolled rather than kept a loop
ITERATIONS_OF_A_PASS = 50  # that take as long as a pass over the body of a loop of the program
ITERATIONS_OF_A_BRANCH = 25
MOST_ITERATIONS = 20_000  # of all loops that Python runs while tracing
MOST_CALLS = 10_000  # of functions of the user while tracing


def count_iterations(trace: Trace, count: int) -> None:
    """Count iterations that Python runs.

    Raises
    ------
    TraceError
        There are too many in the program.
    """
    _require_time(trace)
    trace.program.iterations += count
    if trace.program.iterations > MOST_ITERATIONS:
        raise TraceError(
            f"loops that Python runs have made {MOST_ITERATIONS} iterations, or branches as much work",
            where=user_line(), hint="use loops over ranges and arrays, whose state is arrays and numbers",
        )  # fmt: skip


def count_call(trace: Trace | None) -> None:
    """Count a call of a function of the user.

    Raises
    ------
    TraceError
        There are too many in the program, as in a recursion that calls itself twice.
    """
    if trace is None:
        return
    _require_time(trace)
    trace.program.calls += 1
    if trace.program.calls > MOST_CALLS:
        raise TraceError(
            f"the function has made {MOST_CALLS} calls of functions, and goes on", where=user_line(),
            hint="keep the results of calls that recur, or use loops",
        )  # fmt: skip


def _require_time(trace: Trace) -> None:
    """Give up a program that has been traced for too long.

    Raises
    ------
    PlainRunError
        The time is over.
    """
    if perf_counter() > trace.program.earliest_end and thread_time() > trace.program.end:  # which is slow to read
        raise plain_run(
            f"the function has been traced for {config.get('TRACE_SECONDS'):g} s, and goes on",
            "use functions of whole arrays, or loops over arrays without branches; CYXLA_TRACE_SECONDS sets the limit",
        )


class Unrolling:
    """Instructions that the iterations of a loop make while they are traced one by one.

    Parameters
    ----------
    expected : int, optional
        Number of iterations, if all of them run.
    """

    def __init__(self, expected: int | None = None) -> None:
        self._trace: Trace | None = None
        self._expected = expected
        self._before = 0
        self._first = 0
        self._line = ""
        self.count = 0

    def begin(self) -> None:
        """Begin an iteration."""
        trace = current()
        if self._trace is not trace:
            self._trace = trace
            self._first = self._before = _count(trace)
            self._line = user_line()
        self.count += 1
        if trace is not None:
            count_iterations(trace, 1)
        self._require_end_in_sight(_count(trace))
        if self.size > MOST:
            raise TraceError(
                f"a loop has made {self.size} operations in {self.count} iterations, and goes on", where=user_line()
            )

    def _require_end_in_sight(self, count: int) -> None:
        """Give up at once if iterations as large as the one before will make twice the operations that a loop may."""
        last, self._before = count - self._before, count
        if self._expected is None or self.count <= SAMPLE:
            return
        total = self.size + last * (self._expected - self.count + 1)
        if total > 2 * MOST:
            raise TraceError(
                f"a loop has made {self.size} operations in {self.count - 1} of {self._expected} iterations, and would "
                f"make about {total}",
                where=user_line(),
            )  # fmt: skip

    @property
    def size(self) -> int:
        """Number of instructions so far."""
        return _count(self._trace) - self._first

    def end(self, reason: str) -> None:
        """End the loop, and warn if one line made many instructions."""
        if not reason or self._trace is None or self._trace is not current() or self.size <= WARN_ABOVE:
            return
        lines = Counter(i.metadata for i in self._trace.builder.instructions[self._first :])
        metadata, most = lines.most_common(1)[0]
        if most > WARN_ABOVE:
            why = f", since it cannot be a loop of the program: {reason}"
            line = dict(metadata).get("source_line", "?")
            warn_user(
                f"the loop at {self._line} was unrolled {self.count} times{why}; line {line} made {most} operations",
                LongTraceWarning,
            )


def _count(trace: Trace | None) -> int:
    return 0 if trace is None else trace.builder.instruction_count
