"""Frames of the user's program: the operation that a line is executing, and trimming of tracebacks."""

from __future__ import annotations

import dis
from types import TracebackType

from cyxla import config
from cyxla.errors import InternalError, OpError
from cyxla.numpy.tracing.trace import PACKAGE, is_internal, user_frame

_INPLACE = "="
_BUGS = (AssertionError, AttributeError, InternalError, KeyError, NameError, RecursionError)
_OURS = (PACKAGE, "pyx/cyxla")
_MAY_RAISE = ("__getattr__",)  # functions of this package whose AttributeError is meant for the user


_DOING = {  # by opcode names of all supported versions of Python
    "BINARY_SUBSCR": "look up", "BINARY_SLICE": "look up", "BINARY_OP []": "look up", "STORE_SUBSCR": "store",
    "STORE_SLICE": "store",
}  # fmt: skip


def doing() -> str:
    """Return the operation that the user's line is executing: "look up", "store", "augment", or an empty text.

    These are ``a[b]``, ``a[b] = c`` and ``a += b``; not ``a += b`` of a global `a`, whose new value would outlive the
    trace.
    """
    step, then = _steps()
    if step is None:
        return ""
    if step.opname != "BINARY_OP":
        return _DOING.get(step.opname, "")
    if step.argrepr.endswith(_INPLACE):
        return "" if then is not None and then.opname == "STORE_GLOBAL" else "augment"
    return _DOING.get(f"BINARY_OP {step.argrepr}", "")


def is_augmented_assignment() -> bool:
    """Return whether the user's line is executing an augmented assignment such as ``a += b`` rather than a call."""
    return doing() == "augment"


def _steps() -> tuple[dis.Instruction | None, dis.Instruction | None]:
    """Return the bytecode instruction that the user's line is executing, and the next one."""
    frame = user_frame()
    if frame is None or frame.f_lasti < 0:
        return None, None
    rest = (i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti)
    step = next(rest, None)
    return (step, next(rest, None)) if step is not None and step.offset == frame.f_lasti else (None, None)


def trimmed(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception without the frames of this package and of NumPy.

    Nothing is removed for errors that look like bugs of this package, or if ``CYXLA_TRACEBACK`` is ``full``.
    """
    if config.get("TRACEBACK") == "full" or _is_bug(error):
        return error.__traceback__
    if isinstance(error, OpError) and _is_ours(error.__traceback__):
        error.__suppress_context__ = True
        error.__cause__ = None
    for earlier in (error.__cause__, error.__context__):
        if earlier is not None:
            earlier.__traceback__ = _of_user(earlier.__traceback__)
    return _of_user(error.__traceback__)


def _of_user(trace: TracebackType | None) -> TracebackType | None:
    frames = []
    while trace is not None:
        if not is_internal(_file(trace)):
            frames.append(trace)
        trace = trace.tb_next
    for frame, inner in zip(frames, [*frames[1:], None], strict=False):
        frame.tb_next = inner
    return frames[0] if frames else None


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _innermost(trace: TracebackType) -> TracebackType:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _is_ours(trace: TracebackType | None) -> bool:
    return trace is None or is_internal(_file(_innermost(trace)))


def _is_bug(error: BaseException) -> bool:
    """Return whether an exception was raised by this package unintentionally."""
    if not isinstance(error, _BUGS) or error.__traceback__ is None:
        return False
    last = _innermost(error.__traceback__)
    return _file(last).startswith(_OURS) and last.tb_frame.f_code.co_name not in _MAY_RAISE
