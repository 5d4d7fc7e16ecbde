"""Traces: a Python function runs once on traced arrays, and its operations are recorded as HLO."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from math import inf
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cyxla._native.dispatch import begin_trace, end_trace, set_traces
from cyxla.errors import DTypeError, OpError, TraceError, UnimplementedError
from cyxla.forking import call_in_child
from cyxla.numpy.tracing.hooks import hooks
from cyxla.records import dataclass
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule

if TYPE_CHECKING:
    from cyxla.numpy.tracing.results.promotion import Dtype

PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
_LIBRARIES = Path(np.__file__).parents[1]
_INTERNAL = (
    PACKAGE, f"{_LIBRARIES / 'numpy'}{os.sep}", f"{_LIBRARIES / 'scipy'}{os.sep}", "<frozen", "<__array",
    contextlib.__file__, f"{Path(contextlib.__file__).parent / 'concurrent'}{os.sep}",
)  # fmt: skip
_COMPILED = ("numpy/", "scipy/", "pyx/cyxla")  # Cython names frames of compiled modules by the source path of the build
_UNSUPPORTED_KINDS = "OSUTMmVgG"  # NumPy's type characters without an HLO element type
MOST_INSTRUCTIONS = 20_000  # of one trace
_MIN_UNIFORM = 16  # least number of elements for which an array of equal numbers becomes a broadcast of a scalar
_LOCAL = threading.local()
_asarray: Any = np.asarray  # NumPy's own function; `np.asarray` is replaced while tracing
_SOURCE_LINES: dict[tuple[CodeType, int], Metadata] = {}  # source lines by code object and bytecode offset
_CACHE_LIMIT = 1 << 16
_SHAPES: dict[tuple[Any, ...], Shape] = {}  # result shapes by opcode and operand shapes
_INTERNAL_FILES: dict[str, bool] = {}  # True for files of this package, of NumPy or of SciPy


@dataclass(frozen=True)
class Check:
    """A check at run time, and the error that is raised if it fails.

    Attributes
    ----------
    make_error : callable
        Function from the first offending number to the exception.
    where : str
        File and line of the user's program.
    """

    make_error: Callable[[int], Exception]
    where: str


Pullback = Callable[[Sequence[XlaOp | None]], Sequence[XlaOp | None]]


@dataclass(frozen=True, eq=False)
class Rule:
    """Custom derivative of a group of instructions; made by `cyxla.numpy.gradient.composite`.

    Instructions are inlined elsewhere together with their rules, so the functions take all values that they use as
    arguments and must not hold values of the trace in which they were defined.

    Attributes
    ----------
    inputs : list of XlaOp
        Operands of the group.
    outputs : list of XlaOp
        Results of the group.
    vjp : callable, optional
        Function from the inputs, the outputs and the cotangents of the outputs (None for an output that nothing depends
        on) to the cotangents of the inputs (None for zero).
    forward : callable, optional
        Alternative to `vjp`: function from the inputs, and a bool for each that tells whether it is differentiated, to
        a pair. The first is the outputs, recorded again in the current trace together with the residuals of the reverse
        pass; the second is the pullback.
    """

    inputs: list[XlaOp]
    outputs: list[XlaOp]
    vjp: Callable[[list[XlaOp], list[XlaOp], Sequence[XlaOp | None]], Sequence[XlaOp | None]] | None = None
    forward: Callable[[list[XlaOp], list[bool]], tuple[list[XlaOp], Pullback]] | None = None


@dataclass
class Program:
    """State shared by all traces of one program.

    Attributes
    ----------
    checks : list of Check
        Checks at run time, in the order of their error codes.
    bounds : str
        Mode of indices out of range: "raise", "clamp", "wrap" or "unchecked".
    cuts_slices : bool
        Whether slices of known length may reach beyond an end of their axis, and have a length known at run time.
    gradients : int
        Nesting depth of the functions being traced that will be differentiated.
    python_integers : frozenset of int
        Numbers of the parameters that are Python's integers and bools, for whose values programs are specialised.
    window_sizes : set of int
        Parameters among `python_integers` that determine the lengths of slices in loops, and had better be static.
    most_padded_bytes : int, optional
        Greatest size of a padded array with several run-time dimensions.
    flattened : list of Shape
        Shapes of padded arrays with several dimensions of which all elements are moved, up to the bounds.
    largest_padding : (int, str)
        Bytes of the largest array of run-time size, padded to its bounds, and the line that makes it, if it is large.
    catches : bool
        Whether the user's program may catch the error of a check.
    raised : list of OpError
        Errors of operations of the user's program that need a value. The program must not swallow them, since it would
        go on as if the value were another.
    outside : object
        Values from outside of the function that it has used so far; see `cyxla.numpy.state`. None if nothing records
        them.
    writes : list of int
        Number of instructions before each write to an argument; -1 for one in a loop or branch.
    prints : bool
        Whether runs print what the user's program does.
    draws : bool
        Whether runs draw random numbers from NumPy's global state.
    small_draws : int
        Number of draws of a few numbers.
    spectra : list of (XlaOp, XlaOp)
        Eigenvalues or eigenvectors of real matrices, which are real in NumPy if all eigenvalues are, and the latter.
    iterations : int
        Number of iterations of loops that Python has run while tracing.
    end : float
        Processor time of the thread at which tracing is given up.
    earliest_end : float
        Time of `perf_counter` before which that cannot be.
    calls : int
        Number of calls of functions of the user that Python has made while tracing.
    exact_classes : bool
        Whether numbers of one dtype may not differ in their class, such as `float` and ``np.float64``.
    keeps_known : bool
        Whether lists of known numbers are made while tracing, however long they are.
    made_traced : bool
        Whether the program makes numbers that would otherwise be known.
    written_lists : list
        Lists of which loops that are being recorded write elements, before their numbers are in arrays.
    copies : dict
        Values that may be other objects in the plain run, by `id`; see `cyxla.numpy.tracing.copies`.
    arguments : list
        Lists, dicts and dataclasses among the arguments of the function.
    aliases : list
        Lists, dicts and dataclasses that may be one object in the plain run; see `cyxla.numpy.rewriting.parts.aliases`.
    compares_objects : bool
        Whether arrays or containers have been compared with `is`, which are other objects unless one is passed twice.
    shares_by_layout : bool
        Whether it depends on an argument's being contiguous what shares memory with it.
    reads_layout : bool
        Whether flags or strides of an argument are read.
    created : dict of int to (object, type)
        Objects that the function has made of plain classes of the user, with these classes, by identity.
    """

    checks: list[Check] = field(default_factory=list)
    bounds: str = "raise"
    cuts_slices: bool = False
    gradients: int = 0
    python_integers: frozenset[int] = frozenset()
    window_sizes: set[int] = field(default_factory=set)
    most_padded_bytes: int | None = None
    flattened: list[Shape] = field(default_factory=list)
    largest_padding: tuple[int, str] = (0, "")
    catches: bool = False
    raised: list[OpError] = field(default_factory=list)
    outside: Any = None
    writes: list[int] = field(default_factory=list)
    prints: bool = False
    draws: bool = False
    small_draws: int = 0
    spectra: list[tuple[Any, Any]] = field(default_factory=list)
    iterations: int = 0
    end: float = inf
    earliest_end: float = inf
    calls: int = 0
    exact_classes: bool = False
    keeps_known: bool = False
    made_traced: bool = False
    written_lists: list[Any] = field(default_factory=list)
    copies: dict[int, Any] = field(default_factory=dict)
    arguments: list[Any] = field(default_factory=list)
    aliases: list[Any] = field(default_factory=list)
    compares_objects: bool = False
    shares_by_layout: bool = False
    reads_layout: bool = False
    created: dict[int, tuple[Any, type]] = field(default_factory=dict)

    @contextlib.contextmanager
    def bounds_mode(self, bounds: str) -> Iterator[None]:
        """Set the mode of indices out of range within a context."""
        previous, self.bounds = self.bounds, bounds
        try:
            yield
        finally:
            self.bounds = previous


class _Builder(XlaBuilder):
    """Builder that attaches the source line of the user's program to every instruction."""

    def add(self, *args: Any, **kwargs: Any) -> XlaOp:
        """Append an instruction; see `XlaBuilder.add`."""
        self._metadata = _source_line(user_frame()) if self._derived_from is None else self._derived_from
        if len(args) < 3 or args[2] or kwargs:
            return super().add(*args, **kwargs)
        return self._add_plain(*args)

    def _add_plain(self, opcode: str, operands: Sequence[XlaOp], attrs: Any) -> XlaOp:
        """Append an instruction without attributes, the most frequent kind; its shape is cached."""
        inputs = [o.instruction for o in operands]
        if None in inputs or self._built or self._extras:
            return super().add(opcode, operands, attrs)
        shape = _SHAPES.get((opcode, *[i.shape for i in inputs]))  # type: ignore[union-attr]
        if shape is None:
            op = super().add(opcode, operands, attrs)
            if len(_SHAPES) > _CACHE_LIMIT:
                _SHAPES.clear()
            _SHAPES[opcode, *[i.shape for i in inputs]] = op.shape  # type: ignore[union-attr]
            return op
        self._last = XlaOp(self, self._computation.add(opcode, inputs, shape=shape, metadata=self._metadata))  # type: ignore[arg-type]
        return self._last

    def build(self, root: XlaOp | None = None) -> XlaComputation:
        """Return the computation, with side effects in order."""
        self.order_effects()
        return super().build(root)

    def module(self, root: XlaOp) -> HloModule:
        """Return the module itself, without a copy; it is verified when it is compiled."""
        if self._error is not None:
            raise self._error
        root_instruction = self._root(root).instruction
        assert root_instruction is not None  # there is no error, so every operation has an instruction
        self._computation.root = root_instruction
        self._built = True
        self.order_effects()
        return self._module


def _source_line(frame: FrameType | None) -> Metadata:
    if frame is None:
        return ()
    key = (frame.f_code, frame.f_lasti)
    metadata = _SOURCE_LINES.get(key)
    if metadata is None:
        if len(_SOURCE_LINES) > _CACHE_LIMIT:
            _SOURCE_LINES.clear()
        metadata = _SOURCE_LINES[key] = (("source_file", frame.f_code.co_filename), ("source_line", frame.f_lineno))
    return metadata


class WriteLog:
    """Arrays of enclosing functions that a loop or branch writes to, and their values before it."""

    def __init__(self) -> None:
        self._saved: dict[int, tuple[Any, XlaOp]] = {}

    def add(self, array: Any, value: XlaOp | None = None) -> XlaOp:
        """Add an array with its present value, or a given one, unless it is there; return the value it had before."""
        found = self._saved.get(id(array))
        if found is None:
            found = self._saved[id(array)] = array, array.root_op if value is None else value
        return found[1]

    @property
    def arrays(self) -> list[Any]:
        """Arrays in the order of their first writes."""
        return [array for array, _ in self._saved.values()]

    def __contains__(self, array: Any) -> bool:
        return id(array) in self._saved

    def restore(self) -> None:
        """Give all arrays the values that they had before."""
        for array, op in self._saved.values():
            array.root_op = op


def require_few_instructions(count: int) -> None:
    """Refuse to go on with a function that makes too many operations.

    Raises
    ------
    TraceError
        The trace has more than `MOST_INSTRUCTIONS` instructions.
    """
    if count > MOST_INSTRUCTIONS:
        raise TraceError(
            f"the function has made more than {MOST_INSTRUCTIONS} operations, and goes on", where=user_line(),
            hint="use functions of whole arrays, or loops over ranges and arrays",
        )  # fmt: skip


#: Message and hint of a write to an array of an enclosing trace that is not permitted.
_REFUSED_WRITE = (
    "a loop or branch writes to {}, which was created outside of it",
    "pass the array as part of the carry, and return it",
)  # fmt: skip


class Trace:
    """Computation being recorded; loop bodies and branches are recorded in traces of their own.

    Parameters
    ----------
    name : str
        Name of the computation.
    parent : Trace, optional
        Trace of the enclosing function; its values that are used here become further parameters.

    Attributes
    ----------
    builder : XlaBuilder
        Builder of the instructions.
    captures : list of (XlaOp, XlaOp)
        Values captured from the parent, each with the parameter that stands for it here.
    rules : dict of Instruction to Rule
        Custom derivatives by output instruction.
    failures : list of (XlaOp, XlaOp)
        Failures, each a pair of s64 scalars: error code (index of the check plus one, 0 for success) and offending
        number.
    ranges : dict of Instruction to (int, int)
        Bounds of integers, least and greatest, that do not follow from their instructions.
    mask_counts : list of (Instruction, XlaOp)
        Masks that have selected elements, and the number that each selects.
    masks : dict
        Masks of the elements whose index along a dimension is below a size, by sizes, dimension and that size.
    writes : WriteLog, optional
        Arrays of enclosing traces that are written here; None if such a write is an error.
    refused_write : (str, str)
        Message of that error, with a place for the array, and hint.
    """

    def __init__(self, name: str, parent: Trace | None = None) -> None:
        self.builder = _Builder(name)
        self.parent = parent
        self.program: Program = parent.program if parent is not None else Program()
        self.captures: list[tuple[XlaOp, XlaOp]] = []
        self.rules: dict[Instruction, Rule] = {}
        self.failures: list[tuple[XlaOp, XlaOp]] = []
        self._failing: dict[Any, XlaOp] = {}  # codes among the failures, by their conditions
        self.ranges: dict[Instruction, tuple[int, int]] = {}
        self.mask_counts: list[tuple[Instruction, XlaOp]] = []
        self.masks: dict[Any, XlaOp] = {}
        self.parameter_count = 0
        self.is_loop = False  # if it is the body of a loop that is being recorded
        self.writes: WriteLog | None = None
        self.refused_write = _REFUSED_WRITE
        self._captured: dict[Instruction, XlaOp] = {}
        self._constants: dict[Any, XlaOp] = {}
        self._numbers: dict[Any, XlaOp] = {}

    def parameter(self, shape: Shape, name: str = "") -> XlaOp:
        """Append a parameter to the computation."""
        self.parameter_count += 1
        return xla.parameter(self.builder, self.parameter_count - 1, shape, name)

    def capture(self, op: XlaOp) -> XlaOp:
        """Return a value of this trace or of an enclosing one as a value of this trace.

        Raises
        ------
        TraceError
            The value belongs to a function that is no longer being traced.
        """
        if op.builder is self.builder:
            return op
        assert op.instruction is not None
        parameter = self._captured.get(op.instruction)
        if parameter is None:
            outer = self.parent.capture(op) if self.parent is not None else raise_escaped()
            parameter = self.parameter(outer.shape, "captured")
            self.captures.append((outer, parameter))
            self._captured[op.instruction] = parameter
        return parameter

    def has_used(self, op: XlaOp) -> bool:
        """Return True if an instruction of this trace has read a value of it, or of an enclosing one."""
        if op.builder is not self.builder:
            return op.instruction in self._captured
        return any(op.instruction in ins.operands for ins in self.builder.instructions)

    def note_write(self) -> None:
        """Note a write to an argument."""
        self.program.writes.append(self.builder.instruction_count if self.parent is None else -1)

    def constant(self, value: Any, dtype: Dtype | None = None) -> XlaOp:
        """Return a constant for a number or array.

        Raises
        ------
        DTypeError
            The type of the value has no HLO element type.
        """
        array = _asarray(value, dtype)
        if array.dtype.char in _UNSUPPORTED_KINDS:
            raise DTypeError(f"an array of dtype {array.dtype} cannot be traced", where=user_line())
        first = array.ravel()[:1]
        same_ends = array.size >= _MIN_UNIFORM and first.tobytes() * 2 == array.ravel()[-2:].tobytes()
        if same_ends and _is_uniform(array, first):
            return xla.broadcast(self._scalar(first[0], array.dtype), array.shape)
        return self._scalar(array[()], array.dtype) if array.ndim == 0 else xla.constant(self.builder, array)

    def number(self, value: float | complex, dtype: Dtype, sizes: tuple[int, ...]) -> XlaOp:
        """Return a Python number as a constant, broadcast to a shape."""
        text = None if type(value) is int else repr(value)  # distinguishes 0.0 and -0.0
        key = (value, text, type(value), dtype, sizes)
        constant = self._numbers.get(key)
        if constant is None:
            with np.errstate(over="ignore"):
                constant = self.constant(value, dtype)
            constant = xla.broadcast_in_dim(constant, sizes, ()) if sizes else constant
            self._numbers[key] = constant
        return constant

    def _scalar(self, value: Any, dtype: Dtype) -> XlaOp:
        key = (dtype, _asarray(value, dtype).tobytes())
        if key not in self._constants:
            self._constants[key] = xla.constant(self.builder, value, from_numpy(dtype))
        return self._constants[key]

    def fail_if(self, failed: XlaOp, number: XlaOp, make_error: Callable[[int], Exception]) -> None:
        """Make runs in which `failed` holds raise an error.

        Parameters
        ----------
        failed : XlaOp
            pred[], the condition of failure.
        number : XlaOp
            s64[], the argument of `make_error`.
        make_error : callable
            Function from that number to the exception.
        """
        self.program.checks.append(Check(make_error, user_line()))
        self.program.catches = self.program.catches or hooks.is_in_try_block()
        condition = _expression(failed)
        earlier = self._failing.get(condition)
        if earlier is not None and any(code is earlier for code, _ in self.failures):
            return  # a run in which it holds fails there
        code = self.constant(len(self.program.checks), np.dtype(np.int64))
        zero = self.constant(0, np.dtype(np.int64))
        code = xla.select(failed, code, zero)
        self.failures.append((code, number))
        self._failing[condition] = code

    def leave_if(self, failed: XlaOp, make_error: Callable[[int], Exception], *, warns: bool = False) -> None:
        """Make the plain function run in place of runs in which `failed` holds, which a program cannot represent.

        Parameters
        ----------
        failed : XlaOp
            pred[], the condition.
        make_error : callable
            Function from a number to the exception that is raised instead if functions must not fall back.
        warns : bool
            Whether to warn about the fallback.
        """

        def make_leaving(number: int) -> Exception:
            error = make_error(number)
            error.leaves_with_warning = warns  # type: ignore[attr-defined]
            return error

        self.fail_if(failed, self.constant(0, np.dtype(np.int64)), make_leaving)
        self.program.catches = True

    def first_failure(self) -> tuple[XlaOp, XlaOp] | None:
        """Return error code and offending number of the first failure of a run, both s64; None if nothing can fail."""
        if not self.failures:
            return None
        code, number = self.failures[0]
        for later_code, later_number in self.failures[1:]:
            has_failed = xla.ne(code, self.constant(0, np.dtype(np.int64)))
            code, number = xla.select(has_failed, code, later_code), xla.select(has_failed, number, later_number)
        return code, number

    def failure(self) -> XlaOp | None:
        """Return the first failure as s64[2]; None if nothing can fail."""
        first = self.first_failure()
        return None if first is None else xla.concatenate([xla.reshape(part, (1,)) for part in first], 0)

    def build(self, root: XlaOp) -> XlaComputation:
        """Finish the computation and return it."""
        return self.builder.build(root)

    def module(self, root: XlaOp) -> HloModule:
        """Finish the program and return its module."""
        return self.builder.module(root)


def _expression(op: XlaOp) -> Any:
    """Return a key that is equal for values of the same opcode and attributes on the same operands."""
    instruction = op.instruction
    if instruction is None or instruction.called or not instruction.operands:
        return op
    return instruction.opcode, instruction.operands, tuple(instruction.attrs.items())


def _is_uniform(array: np.ndarray[Any, Any], first: np.ndarray[Any, Any]) -> bool:
    size = array.dtype.itemsize
    if size in (1, 2, 4, 8):  # compare bits, since -0.0 == 0.0
        bits = np.dtype(f"u{size}")
        return bool((np.ascontiguousarray(array).view(bits) == first.view(bits)).all())
    return np.ascontiguousarray(array).tobytes() == first.tobytes() * array.size


class PlainRunError(UnimplementedError):
    """Call that no program makes, so that the whole function runs plainly: also a loop that Python runs ends."""


def plain_run(message: str, hint: str) -> PlainRunError:
    """Return the error of a call that no program makes, which counts even if the function catches it."""
    error = PlainRunError(message, where=user_line(), hint=hint)
    require_current().program.raised.append(error)
    return error


def raise_escaped() -> NoReturn:
    """Raise the error of a traced value that is used after its trace has ended, or by another thread.

    Raises
    ------
    TraceError
        Always.
    """
    raise TraceError(
        "a traced value is used after the function that it belongs to has ended, or by another thread",
        where=user_line(), hint="return it from the function instead of storing it elsewhere",
    )  # fmt: skip


def current() -> Trace | None:
    """Return the innermost trace of this thread; None outside of traces."""
    stack = getattr(_LOCAL, "stack", None)
    return stack[-1] if stack else None


def depth() -> int:
    """Return the number of traces of this thread that are under way."""
    return len(getattr(_LOCAL, "stack", ()))


def _recount_traces() -> None:
    set_traces(len(getattr(_LOCAL, "stack", ())))


call_in_child(_recount_traces)


def require_current() -> Trace:
    """Return the innermost trace of this thread.

    Raises
    ------
    TraceError
        This thread is not tracing.
    """
    trace = current()
    return trace if trace is not None else raise_escaped()


@contextlib.contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make a trace the current one, and end those that are begun inside and left open by an exception."""
    stack = _LOCAL.__dict__.setdefault("stack", [])
    depth = len(stack)
    with hooks.substituted() if not stack else contextlib.nullcontext():
        begin(trace)
        try:
            yield trace
        finally:
            while len(stack) > depth:
                end(stack[-1])


def begin(trace: Trace) -> None:
    """Make a trace the current one until `end`; for statements that begin and end apart."""
    _LOCAL.__dict__.setdefault("stack", []).append(trace)
    begin_trace()


def end(trace: Trace) -> None:
    """End the current trace, after those that were begun inside it."""
    stack = _LOCAL.stack
    ended = None
    while ended is not trace:
        ended = stack.pop()
        end_trace()


def is_under_way(trace: Trace | None) -> bool:
    """Return True for the current trace and those around it."""
    found = current()
    while found is not None and found is not trace:
        found = found.parent
    return found is not None


def can_capture(op: XlaOp) -> bool:
    """Return True if a value belongs to the current trace or one around it."""
    found = current()
    while found is not None and found.builder is not op.builder:
        found = found.parent
    return found is not None


@contextlib.contextmanager
def resumed(trace: Trace | None) -> Iterator[None]:
    """Make an enclosing trace the current one for a while."""
    stack = _LOCAL.stack
    stack.append(trace if trace is not None else current())
    try:
        yield
    finally:
        stack.pop()


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """End all traces of this thread for a while, in which NumPy computes."""
    stack = _LOCAL.__dict__.get("stack", [])
    _LOCAL.stack = []
    set_traces(0)
    try:
        yield
    finally:
        _LOCAL.stack = stack
        set_traces(len(stack))


def admit_write(array: Any) -> bool:
    """Note a write to an array in all loops and branches around it; return False if one of them does not permit it."""
    logs = []
    trace = current()
    while trace is not None and trace is not array.owner:
        if trace.writes is None:
            return False
        logs.append(trace.writes)
        trace = trace.parent
    if trace is None:
        return False
    value = None
    for log in logs:  # what an array was before a loop is its present value around the loop
        value = log.add(array, value)
    return True


def user_frame() -> FrameType | None:
    """Return the innermost frame outside of this package, of NumPy and of SciPy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = _INTERNAL_FILES.get(filename)  # inlined for speed: runs for every instruction
        if internal is False or (internal is None and not is_internal(filename)):
            break
        frame = frame.f_back
    return frame


def is_raised_for_user() -> bool:
    """Return True if the user's program, rather than NumPy, called the function of this package that runs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, "pyx/cyxla")):
        frame = frame.f_back
    return frame is not None and frame is user_frame()


def warn_user(message: str, category: type[Warning]) -> None:
    """Emit a warning that points to the line of the user's program."""
    target, level = user_frame(), 1
    frame: FrameType | None = sys._getframe(0)
    while frame is not None and frame is not target:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def is_internal(filename: str) -> bool:
    """Return True if a file belongs to this package, to NumPy or to SciPy."""
    internal = _INTERNAL_FILES.get(filename)
    if internal is None:
        compiled = filename.endswith((".pyx", ".pxi")) and filename.startswith(_COMPILED)
        internal = _INTERNAL_FILES[filename] = compiled or filename.startswith(_INTERNAL)
    return internal


def user_line() -> str:
    """Return file and line of the user's program, as ``file:line``."""
    frame = user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
