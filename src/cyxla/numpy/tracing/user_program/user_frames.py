"""Frames of the user's program: the operation that a line is executing, and trimming of tracebacks."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import FrameType, FunctionType, TracebackType

from cyxla import config
from cyxla.errors import InternalError, OpError
from cyxla.numpy.tracing.trace import PACKAGE, is_internal, user_frame

HOOKS = "_cyxla"  # free variable of rewritten functions, which holds their hooks
_INPLACE = "="
_BUG_ERRORS = (AssertionError, AttributeError, InternalError, KeyError, NameError, RecursionError)
_PACKAGE_PATHS = (PACKAGE, "pyx/cyxla")
_RAISE_FOR_USER = ("__getattr__",)  # functions of this package whose AttributeError is meant for the user


_AS_IN_NUMPY = tuple(f"scipy.linalg.{n}" for n in ("det", "eigh", "eigvalsh", "inv", "norm", "pinv", "solve", "svd"))
_OPERATIONS = {  # by the opcode names of each supported version of Python
    "BINARY_SUBSCR": "look up", "BINARY_SLICE": "look up", "BINARY_OP []": "look up", "STORE_SUBSCR": "store",
    "STORE_SLICE": "store",
}  # fmt: skip


def user_operation() -> str:
    """Return the operation that the user's line is executing: "look up", "store", "augment", or an empty text.

    These are ``a[b]``, ``a[b] = c`` and ``a += b``; not ``a += b`` of a global `a`, whose new value would outlive the
    trace.
    """
    instruction, next_instruction = _current_instructions()
    if instruction is None:
        return ""
    if instruction.opname != "BINARY_OP":
        return _OPERATIONS.get(instruction.opname, "")
    if instruction.argrepr.endswith(_INPLACE):
        return "" if next_instruction is not None and next_instruction.opname == "STORE_GLOBAL" else "augment"
    return _OPERATIONS.get(f"BINARY_OP {instruction.argrepr}", "")


def library_call() -> str:
    """Return the name of the function of SciPy that the user's line has called; an empty text if none."""
    frame: FrameType | None = sys._getframe(1)
    name, user = "", user_frame()
    while frame is not None and frame is not user:
        name = _library_name(frame) or name
        frame = frame.f_back
    return name


def refused_by_library(error: BaseException) -> str:
    """Return the name of the function of SciPy whose compiled code raised an error; an empty text if none did."""
    traces = list(_traces(error.__traceback__))
    inside = [t for t in traces if t.tb_frame.f_globals.get("__name__", "").startswith("scipy.")]
    if isinstance(error, OpError) or not inside or inside[-1] is not traces[-1]:
        return ""
    last = inside[-1]
    instruction = next((i for i in dis.get_instructions(last.tb_frame.f_code) if i.offset == last.tb_lasti), None)
    if instruction is None or instruction.opname == "RAISE_VARARGS":  # it was raised by Python
        return ""
    names = [_library_name(t.tb_frame) for t in inside]
    return next((name for name in names if name), "")


def user_line_of(error: BaseException) -> str:
    """Return file and line of the program in the traceback of an error, as ``file:line``."""
    lines = [f"{_file(t)}:{t.tb_lineno}" for t in _traces(error.__traceback__) if not _is_foreign(_file(t))]
    return lines[-1] if lines else ""


def _is_foreign(filename: str) -> bool:
    return is_internal(filename) or filename.startswith("<")  # generated code of libraries


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _library_name(frame: FrameType) -> str:
    """Return the public name of a function of SciPy; an empty text for private functions and for other code."""
    module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
    if module.partition(".")[0] != "scipy" or name.startswith(("_", "<")):
        return ""
    if "<locals>" in frame.f_code.co_qualname:  # a decorator's
        decorated = next((v for v in frame.f_locals.values() if isinstance(v, FunctionType)), None)
        if decorated is None or not decorated.__module__.startswith("scipy."):
            return ""
        module, name = decorated.__module__, decorated.__name__
    public = ".".join(part for part in module.split(".") if not part.startswith("_"))
    return f"{public}.{name}"


def mend_of_library(name: str) -> str:
    """Return the mend for a call of a function of SciPy that no program makes."""
    function = name.rpartition(".")[2]
    mend = "call it outside of the traced function, or in one by cyxla.custom_call"
    return f"use np.linalg.{function}, or {mend}" if name == f"scipy.linalg.{function}" in _AS_IN_NUMPY else mend


def is_augmented_assignment() -> bool:
    """Return True if the user's line is executing an augmented assignment such as ``a += b`` rather than a call."""
    return user_operation() == "augment"


def _current_instructions() -> tuple[dis.Instruction | None, dis.Instruction | None]:
    """Return the bytecode instruction that the user's line is executing, and the next one."""
    frame = user_frame()
    if frame is None or frame.f_lasti < 0:
        return None, None
    remaining = (i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti)
    instruction = next(remaining, None)
    return (
        (instruction, next(remaining, None))
        if instruction is not None and instruction.offset == frame.f_lasti
        else (None, None)
    )


def trim_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception without the frames of this package and of NumPy.

    Nothing is removed for errors that look like bugs of this package, or if ``CYXLA_TRACEBACK`` is ``full``.
    """
    if config.get("TRACEBACK") == "full" or _is_bug(error):
        return error.__traceback__
    if isinstance(error, OpError) and _raised_by_package(error.__traceback__):
        error.__suppress_context__ = True
        error.__cause__ = None
    for earlier in (error.__cause__, error.__context__):
        if earlier is not None:
            earlier.__traceback__ = _user_frames(earlier.__traceback__)
    return _user_frames(error.__traceback__)


def _user_frames(trace: TracebackType | None) -> TracebackType | None:
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


def _raised_by_package(trace: TracebackType | None) -> bool:
    return trace is None or is_internal(_file(_innermost(trace)))


def _is_bug(error: BaseException) -> bool:
    """Return True if an exception was raised by this package unintentionally."""
    if not isinstance(error, _BUG_ERRORS) or error.__traceback__ is None:
        return False
    last = _innermost(error.__traceback__)
    return _file(last).startswith(_PACKAGE_PATHS) and last.tb_frame.f_code.co_name not in _RAISE_FOR_USER
