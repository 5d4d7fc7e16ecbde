"""Progress of long compilations on stderr: who is compiled, for how long, and the line or the stage it has reached.

A thread looks at the stack of the compiling one, so that compilation itself does nothing for it.
"""

from __future__ import annotations

import os
import sys
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import get_ident
from time import monotonic
from types import FrameType
from typing import Any, Final

from cyxla import config
from cyxla.forking import call_in_child, new_condition
from cyxla.gc_pause import fewer_collections
from cyxla.records import dataclass

_PACKAGE: Final = os.path.dirname(__file__)
_STANDARD_LIBRARY: Final = os.path.dirname(os.__file__)
_TRACER: Final = "cyxla.numpy."  # modules that call functions of users while they trace them
#: Stages by prefixes of the innermost module in the stack that has one.
_STAGES: Final = {
    "cyxla.xla.cpu.native": "in the C compiler",
    "cyxla.xla.cpu": "generating C",
    "cyxla.xla.passes": "in the passes on HLO",
    "cyxla.xla.evaluator": "evaluating constants",
}
_TERMINAL_SECONDS: Final = 0.5  # between two updates of a line on a terminal; elsewhere, they become ever rarer


@dataclass
class _Compilation:
    """A compilation that is watched."""

    name: str
    thread: int
    started: float
    due: float  # time at which its progress is shown next
    is_shown: bool = False


class _Watcher:
    """Thread that shows the progress of all compilations. It ends when there have been none for a while."""

    def __init__(self) -> None:
        self._changed = new_condition()
        self._compilations: dict[int, _Compilation] = {}  # by thread
        self._wakes_at: float | None = None  # None if the thread does not run

    def begin(self, name: str, seconds: float) -> _Compilation | None:
        """Watch a compilation of this thread; return None if one is watched already."""
        thread, now = get_ident(), monotonic()
        with self._changed:
            if thread in self._compilations:  # a function that another one calls
                return None
            self._compilations[thread] = compilation = _Compilation(name, thread, now, now + seconds)
            if self._wakes_at is None:
                with suppress(RuntimeError):  # no more threads
                    start_new_thread(self._run, (seconds,))  # does not wait for the thread, as threading.Thread does
                    self._wakes_at = compilation.due
            elif compilation.due < self._wakes_at:
                self._changed.notify()
        return compilation

    def end(self, compilation: _Compilation) -> None:
        """End a compilation."""
        with self._changed:
            self._compilations.pop(compilation.thread, None)
            if compilation.is_shown:
                self._changed.notify()

    def forget(self) -> None:
        """Forget the thread, and all compilations but those of the thread that forked."""
        thread = get_ident()
        self._compilations = {k: c for k, c in self._compilations.items() if k == thread}
        self._wakes_at = None

    def _run(self, patience: float) -> None:
        """Show what is due, until there has been no compilation for some seconds."""
        try:
            while self._wait_until_due(patience):
                self._show()
        except BaseException:  # stderr may be closed; the next compilation starts another thread
            self._wakes_at = None
            raise

    def _show(self) -> None:
        """Show compilations that take long, until none of them is left."""
        with _shown() as (show, is_terminal):
            while compilations := self._shown_now():
                for c in compilations:
                    elapsed = monotonic() - c.started
                    stage = _stage(sys._current_frames().get(c.thread))
                    show(f"cyxla: compiling {c.name} for {elapsed:.0f} s, {stage}")
                    c.due = monotonic() + (_TERMINAL_SECONDS if is_terminal else max(elapsed, 1.0))

    def _wait_until_due(self, patience: float) -> bool:
        """Wait until the progress of a compilation is due; return False if there was none for some seconds."""
        with self._changed:
            is_idle = False
            while True:
                now = monotonic()
                due = min((c.due for c in self._compilations.values()), default=None)
                if due is not None and due <= now:
                    return True
                if due is None and is_idle:
                    self._wakes_at = None
                    return False
                is_idle = due is None
                self._wakes_at = now + patience if due is None else due
                self._changed.wait(self._wakes_at - now)

    def _shown_now(self) -> list[_Compilation]:
        """Wait until the progress of compilations is due, and return these, or none when no more is shown."""
        with self._changed:
            while True:
                now = monotonic()
                due = [c for c in self._compilations.values() if c.due <= now]
                for c in due:
                    c.is_shown = True
                if due or not any(c.is_shown for c in self._compilations.values()):
                    return due
                self._wakes_at = min(c.due for c in self._compilations.values())
                self._changed.wait(self._wakes_at - now)


_watcher: Final = _Watcher()
call_in_child(_watcher.forget)


@contextmanager
def progress_of(name: str) -> Iterator[None]:
    """Show the progress of a compilation that takes longer than the seconds of ``CYXLA_PROGRESS``.

    Parameters
    ----------
    name : str
        Name of the program.
    """
    seconds = config.get("PROGRESS")
    compilation = _watcher.begin(name, seconds) if seconds else None
    try:
        yield
    finally:
        if compilation is not None:
            _watcher.end(compilation)


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Show the progress of a compilation, and search for garbage cycles less often.

    Parameters
    ----------
    name : str
        Name of the program.
    """
    with fewer_collections(), progress_of(name):
        yield


@contextmanager
def _shown() -> Iterator[tuple[Callable[[str], object], bool]]:
    """Yield a function that shows a line: one that changes, on a terminal with `rich`, or one after the other."""
    status = _status() if sys.stderr is not None and sys.stderr.isatty() else None
    if status is None:
        yield lambda text: print(text, file=sys.stderr, flush=True), False
        return
    with status:
        yield status.update, True


def _status() -> Any:
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True).status("")


def _stage(frame: FrameType | None) -> str:
    """Return the user's line that is traced, or the stage that a compilation has reached, from the innermost frame."""
    line, stage = "", ""
    while frame is not None:
        path, module = frame.f_code.co_filename, frame.f_globals.get("__name__", "")
        if path.startswith(_PACKAGE):
            if line and module.startswith(_TRACER):
                return f"tracing {line}"
            stage = stage or next((text for prefix, text in _STAGES.items() if module.startswith(prefix)), "")
        elif not _is_library(path):
            line = line or f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return stage or "in progress"


def _is_library(path: str) -> bool:
    """Return whether code is Python's or NumPy's, or has no file."""
    is_standard = path.startswith(_STANDARD_LIBRARY) and "site-packages" not in path
    return is_standard or path.startswith("<") or "site-packages/numpy/" in path


__all__ = ["compiling", "progress_of"]
