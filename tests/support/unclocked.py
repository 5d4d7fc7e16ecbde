"""Limits of work and interruptions that no test has to time: a loaded machine changes nothing about them."""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager


class Interrupted(BaseException):
    """Raised in the middle of anything, as by a signal handler."""


class TooMuchWorkError(BaseException):
    """Raised in the middle of the work; not an Exception, so that no handler of the code under test swallows it."""


@contextmanager
def at_most(lines):
    """Fail, and end the work, once more than `lines` lines of Python have run in this thread."""
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
    """Raise before the numbered line that this thread runs in some files, at the latest in the function `until`.

    Other threads can go on for `pause` seconds before that.
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
    """Call `action` again and again from another thread, in case that the first time came too early to be seen."""
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
    """Send this process a signal from another thread, a little after `when()` holds."""

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
    """Have the kernel send SIGALRM a little later, which works while no other thread of Python can run."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
