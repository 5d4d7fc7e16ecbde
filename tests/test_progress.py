"""Long compilations show on stderr whom they compile and where they are; others show nothing."""

import contextlib
import io
import re
import sys
import threading
import time

import numpy as np
import pytest

import cyxla
from cyxla import progress


def watched(monkeypatch, seconds="0.05"):
    """Show progress soon, and return what is written to stderr from now on."""
    monkeypatch.setenv("CYXLA_PROGRESS", seconds)
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    return written


PAUSE = threading.Event()  # functions that call `time.sleep` are not compiled


def slow(x):
    count = 0
    while "tracing" not in sys.stderr.getvalue() and count < 6000:
        PAUSE.wait(0.01)
        count += 1
    return x + 1


def calls_slow(x):
    return cyxla.jit(slow)(x) * 2


def fails(x):
    slow(x)
    raise KeyError(x.shape)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("function", [slow, calls_slow, fails])
def test_the_line_that_is_traced(function, monkeypatch):
    stderr = watched(monkeypatch)
    with contextlib.suppress(KeyError):
        cyxla.jit(function, platform="interpreter")(np.ones(3))
    shown = stderr.getvalue()
    first = slow.__code__.co_firstlineno
    lines = "|".join(str(first + n) for n in (1, 2, 3, 4))
    last = shown.splitlines()[-1]
    assert re.fullmatch(f"cyxla: compiling {function.__name__} for \\d+ s, tracing {__file__}:({lines})", last)
    time.sleep(1.2)
    assert stderr.getvalue() == shown  # nobody watches any more


def test_the_stage_of_a_program(monkeypatch):
    stderr = watched(monkeypatch)
    monkeypatch.setenv("CYXLA_CACHE", "0")
    lines = "\n".join(f"x{k + 1} = f32[9] sine(x{k})" for k in range(400))
    cyxla.compile(f"HloModule m\nENTRY e {{\nx0 = f32[9] parameter(0)\n{lines}\nROOT r = f32[9] negate(x400)\n}}")
    shown = [re.fullmatch(r"cyxla: compiling a program for \d+ s, (.*)", t) for t in stderr.getvalue().splitlines()]
    stages = {match[1] for match in shown}
    assert stages
    assert stages <= {
        "in the C compiler",
        "generating C",
        "in the passes on HLO",
        "evaluating constants",
        "in progress",
    }


@pytest.mark.parametrize("seconds", ["0", "60"])
def test_fast_or_unwatched_compilations_show_nothing(seconds, monkeypatch):
    stderr = watched(monkeypatch, seconds)
    cyxla.jit(lambda x: x + 1, platform="interpreter")(np.ones(4))
    assert not stderr.getvalue()


@pytest.mark.parametrize("text", ["-1", "soon", "inf"])
def test_settings_that_are_no_seconds(text, monkeypatch):
    monkeypatch.setenv("CYXLA_PROGRESS", text)
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="CYXLA_PROGRESS"):
        cyxla.jit(np.negative, platform="interpreter")(np.ones(5))


def test_one_thread_watches_all_compilations(monkeypatch):
    """Each compilation started a thread, which took longer than the compilation of a small program."""
    watched(monkeypatch, "60")
    started = []
    monkeypatch.setattr(progress, "start_new_thread", lambda *job: started.append(job))
    monkeypatch.setattr(progress, "_watcher", progress._Watcher())
    for k in range(5):
        with progress.compiling(str(k)), progress.compiling("inner"):
            pass
    assert len(started) == 1


def test_the_thread_ends_and_another_one_starts(monkeypatch):
    stderr = watched(monkeypatch)
    watcher = progress._Watcher()
    monkeypatch.setattr(progress, "_watcher", watcher)
    for k in range(2):
        with progress.compiling(f"p{k}"):
            until(lambda k=k: f"compiling p{k} " in stderr.getvalue())
        until(lambda: watcher._wakes_at is None)


def test_several_threads_compile(monkeypatch):
    stderr = watched(monkeypatch)

    def compile_one(name):
        with progress.compiling(name):
            until(lambda: f"compiling {name} " in stderr.getvalue())

    threads = [threading.Thread(target=compile_one, args=(f"p{k}",)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
