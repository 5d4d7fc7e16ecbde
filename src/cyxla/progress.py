"""Progress of long compilations on stderr: who is compiled, for how long, and the line or the stage it has reached.

A thread looks at the stack of the compiling one, so that compilation itself does nothing for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, get_ident
from time import monotonic
from types import FrameType
from typing import Any, Final

from cyxla import config
from cyxla.gc_pause import fewer_collections

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
_watched: set[int] = set()  # threads that are watched


@contextmanager
def progress_of(name: str) -> Iterator[None]:
    """Show the progress of a compilation that takes longer than the seconds of ``CYXLA_PROGRESS``.

    Parameters
    ----------
    name : str
        Name of the program.
    """
    seconds, thread = config.get("PROGRESS"), get_ident()
    if not seconds or thread in _watched:  # a function that another one calls
        yield
        return
    done = Event()
    _watched.add(thread)
    Thread(target=_watch, args=(name, thread, seconds, done), daemon=True).start()
    try:
        yield
    finally:
        _watched.discard(thread)
        done.set()


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


def _watch(name: str, thread: int, seconds: float, done: Event) -> None:
    started = monotonic()
    if done.wait(seconds):
        return
    with _shown() as (show, is_terminal):
        while True:
            elapsed = monotonic() - started
            show(f"cyxla: compiling {name} for {elapsed:.0f} s, {_stage(sys._current_frames().get(thread))}")
            if done.wait(_TERMINAL_SECONDS if is_terminal else max(elapsed, 1.0)):
                return


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
