"""Functions that are compiled again and again: a warning, and an end to it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import thread_time
from typing import Any, Final

from cyxla import config
from cyxla._native.dispatch import Receiver
from cyxla.errors import OpError, RecompileWarning, TraceError, without_frames
from cyxla.numpy.calls.lowering import Spec
from cyxla.numpy.calls.signatures import Call, Static
from cyxla.numpy.tracing.trace import warn_user
from cyxla.numpy.tracing.user_program.texts import TracedText

WARN_AFTER: Final = 8  # number of compilations after which to warn
MOST_SPECIALISATIONS: Final = 64
MOST_STATIC_ELEMENTS: Final = 128  # of a list, such as a shape; longer ones are data
MOST_REFUSALS: Final = 16  # signatures that are refused for the same line
_ELEMENT: Final = re.compile(r"(.*?)\[\d+\]")
MOST_SECONDS: Final = 20.0  # of specialising, from `WARN_AFTER` specialisations on
_STRUCTURE_HINT: Final = "pass containers of one structure"
_OBJECT_HINT: Final = "jit a function of their arrays, whose program serves all of them"


def elements_of_long_lists(names: Iterable[str], of_call: Iterable[str]) -> frozenset[str]:
    """Return those among some names that are elements of lists with many numbers, by all names of a call."""
    counts = Counter(map(_list_of, of_call))
    return frozenset(name for name in names if _list_of(name) and counts[_list_of(name)] > MOST_STATIC_ELEMENTS)


def with_other_elements(names: Iterable[str], static: Iterable[str], of_call: Iterable[str]) -> frozenset[str]:
    """Return names with all elements of the lists that have static elements already, which would follow one by one."""
    found = frozenset(names)
    lists = {_list_of(name) for name in found} & {_list_of(name) for name in static} - {""}
    return found | frozenset(name for name in of_call if lists and _list_of(name) in lists)


def _list_of(name: str) -> str:
    """Return the name of the outermost list that a value is in, such as `x` of ``x[0][2]``, or an empty text."""
    found = _ELEMENT.match(name)
    return found[1] if found else ""


class UnsupportedArgument(Exception):  # noqa: N818 - no error, but a reason to run the function as it is written
    """An argument that no program can take, or that needs one program too many.

    Parameters
    ----------
    error : OpError
        Error that names it.
    """

    def __init__(self, error: OpError) -> None:
        super().__init__(error)
        self.error = error


class Specialisations:
    """Static values, and structures of containers, for which a function is specialised of its own accord.

    Parameters
    ----------
    is_static : callable
        Function that returns True for the name of an argument that the user has marked static.
    where : str
        File and line of the function.
    """

    def __init__(self, is_static: Callable[[str], bool], where: str) -> None:
        self._is_static, self._where = is_static, where
        self._seen: dict[Any, Call] = {}

    def add(self, call: Call, seconds: float) -> TraceError | None:
        """Add those of a call; return the reason to stop if there are too many, or if they took too many seconds."""
        values = [
            (name, spec)
            for name, spec in zip(call.names, call.specs, strict=True)
            if isinstance(spec, Static) and not self._is_static(name.partition("[")[0])
        ]
        key = (call.binding.keywords, tuple(call.trees), tuple(values))
        if key in self._seen:
            return None
        count = len(self._seen)
        if count < WARN_AFTER or (count < MOST_SPECIALISATIONS and seconds < MOST_SECONDS):
            self._seen[key] = call.without_arrays()
            return None
        subject, specs = _changing_argument([*self._seen.values(), call])
        hint = "mark it static= if it should be compiled for each value" if specs else _STRUCTURE_HINT
        if _are_objects(specs):
            subject, hint = _object_of(subject), _OBJECT_HINT
        return TraceError(
            f"it has been specialised {count} times, since {subject} changes", where=self._where, hint=hint
        )

    def clear(self) -> None:
        """Forget all of them."""
        self._seen.clear()


def message_of(error: BaseException) -> str:
    """Return the message of an error, in which placeholders stand for traced values."""
    traced = [a for a in error.args if isinstance(a, TracedText)]
    return str.__str__(traced[0]) if traced else str(error)


def as_refusal(error: Exception) -> OpError:
    """Return the error of a run as a reason to run the function itself."""
    if isinstance(error, OpError):
        return error
    text, _, where = str(error).partition("\n  at:   ")
    return TraceError(text, where=where.partition("\n")[0])


class VainTraces:
    """Traces of a function that were given up: the processor time that they took, and their causes."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._counts: Counter[str] = Counter()
        self._last: OpError | None = None

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Add the time of what raises an exception inside."""
        started = thread_time()
        try:
            yield
        except Exception as error:
            self._seconds += thread_time() - started
            self._last = without_frames(error) if isinstance(error, OpError) else TraceError(message_of(error))
            raise

    def add_refusal(self, error: OpError) -> None:
        """Count a signature that was refused for good."""
        self._counts[error.where or error.message] += 1

    def reason(self) -> OpError | None:
        """Return the reason of the last one, if they took too long, or one cause has refused many signatures."""
        limit = config.get("TRACE_SECONDS")
        has_ended = (limit and self._seconds > limit) or max(self._counts.values(), default=0) >= MOST_REFUSALS
        return self._last if has_ended else None


def _changing_argument(calls: Sequence[Call]) -> tuple[str, list[Any]]:
    """Return a description of an argument that differs among calls like the last one, and its specs."""
    last = calls[-1]
    similar = [c for c in calls if c.binding.keywords == last.binding.keywords and c.names == last.names]
    for k, name in enumerate(last.names):
        specs = [c.specs[k] for c in similar]
        if len(set(specs)) > 1:
            return f"argument {name}", specs
    return "the structure of its arguments", []


def _object_of(subject: str) -> str:
    return "the object of the method" if subject == "argument self" else subject.replace("argument", "the object", 1)


def _are_objects(specs: Sequence[Any]) -> bool:
    """Return True for objects, such as those that a method was called for."""
    return bool(specs) and all(isinstance(s, Static) and _is_key_of_receiver(s.key) for s in specs)


def _is_key_of_receiver(key: Any) -> bool:
    return isinstance(key, tuple) and key[:1] == (Receiver,)


def warn_recompilation(name: str, calls: Sequence[Call], reason_of_sizes: str) -> None:
    """Warn about the argument that causes repeated compilation."""
    subject, specs = _changing_argument(calls)
    reason, hint = f"{subject} changes", _STRUCTURE_HINT
    if _are_objects(specs):
        reason, hint = f"{_object_of(subject)} changes", _OBJECT_HINT
    elif specs:
        reason += f": {', '.join(dict.fromkeys(map(str, specs[-4:])))}"
        hint = _recompilation_hint(specs, reason_of_sizes)
    warn_user(f"{name} has been compiled {WARN_AFTER} times, since {reason}; {hint}", RecompileWarning)


def _recompilation_hint(specs: Sequence[Any], reason_of_sizes: str) -> str:
    if not all(isinstance(s, Spec) for s in specs):
        return "leave it out of static=, and use it in arithmetic alone, if it may be a traced number"
    if len({s.kind for s in specs}) > 1:
        return "convert it to one dtype before the call"
    if reason_of_sizes:
        return f"pad it to a few sizes, since it cannot be compiled for any size: {reason_of_sizes}"
    return "pad it to a few sizes"
