"""Limits and interrupts counted in lines of Python, so that the load of the machine does not change them."""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager


class Interrupted(BaseException):
    """Raised at any line, as by a signal handler."""


class TooMuchWorkError(BaseException):
    """Raised when a limit is exceeded; not an Exception, so that no handler of the tested code catches it."""


@contextmanager
def at_most(lines):
    """Stop the work and fail when more than `lines` lines of Python have run in this thread."""
    counted = 0

    def count(frame, event, _):
        nonlocal counted
        if event == "line":
            counted += 1
            if counted > lines:
                raise TooMuchWorkError(f"more than {lines} lines in {frame.f_code.co_qualname}")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    except TooMuchWorkError as error:
        raise AssertionError(str(error)) from None
    finally:
        sys.settrace(before)


def lines_run(function, *args):
    """Count the lines of Python that a call runs in this thread."""
    counted = 0

    def count(_frame, event, _):
        nonlocal counted
        counted += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return counted


@contextmanager
def interrupted_before(number, files, until=None, pause=0.0):
    """Raise `Interrupted` before the `number`-th line that this thread runs in `files`, at the latest in `until`.

    Other threads run on for `pause` seconds before that.
    """
    left = number

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in files or left <= 0:
            return None
        left = 0 if until is not None and frame.f_code is until.__code__ else left - (event == "line")
        if left <= 0:
            time.sleep(pause)
            raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def repeatedly(action, seconds=0.05):
    """Call `action` every few moments from another thread, since a first call may come too early to have an effect."""
    done = threading.Event()

    def work():
        while not done.wait(seconds):
            action()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def sending(number, when=lambda: True):
    """Send this process a signal from another thread, shortly after `when()` returns true."""

    def work():
        while not when():
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextmanager
def alarm(seconds=0.1):
    """Make the kernel send SIGALRM after some time, which works even while no other Python thread can run."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
