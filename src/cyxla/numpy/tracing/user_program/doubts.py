"""Numbers whose class in Python depends on the values of a run, such as ``max(1, 2.5)`` of traced numbers.

A program has one type for them. Where a number of another class leaves the program, the plain function runs instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.traced_array import Doubt, TracedArray
from cyxla.numpy.tracing.trace import Trace, current, require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_SMALL_FLOATS = ("e", "f", "F")
_PYTHON_NUMBERS = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}


def refuse_float(value: TracedArray, role: str) -> None:
    """Raise an error, for which the plain function runs, for a Python float where Python takes ints alone.

    Other paths, such as iterations that have not run yet, may make an int of it.

    Parameters
    ----------
    value : TracedArray
        Number that is no integer.
    role : str
        Use of the number, with which the message begins.
    """
    may_be_int = value.dtype.kind == "f" and (value.doubt is not None or value.is_mixed)
    if value.weak is float or may_be_int:
        raise TraceError(f"{role} is a float, or by the values an int", where=user_line())


def note_doubt(result: TracedArray, test: XlaOp, first: Any, second: Any) -> None:
    """Note in which runs a number that is one of two has another class than the result."""
    if result.ndim:
        return
    kind, choices = class_of(result), (first, second)
    for value, is_first in ((first, True), (second, False)):
        if _may_be_rounded(value, result.dtype):
            chosen = require_current().capture(test)
            _leave_if_rounded(result, chosen if is_first else xla.not_(chosen))
    result.is_mixed = len({class_of(v) for v in choices}) > 1 or any(getattr(v, "is_mixed", False) for v in choices)
    doubts = [doubt_of(v, kind) for v in choices]
    known = [d for d in doubts if d is not None]
    if not known:
        return
    no = require_current().constant(False, np.dtype(bool))
    one, other = (no if d is None else require_current().capture(d.test) for d in doubts)
    result.doubt = Doubt(xla.select(require_current().capture(test), one, other), any(d.is_numpy for d in known))


def _may_be_rounded(value: Any, dtype: np.dtype[Any]) -> bool:
    """Return True for an integer, not known while tracing, that a float of a dtype may not hold."""
    if dtype.kind not in "fc" or not isinstance(value, TracedArray) or value.dtype.kind not in "iu":
        return False
    instruction = value._op.instruction
    if instruction is not None and instruction.opcode == "constant":
        return bool(abs(int(np.asarray(instruction.attrs["literal"].array).item())) >= _most_exact(dtype))
    return value.dtype.itemsize * 8 > np.finfo(dtype).nmant + 1


def _most_exact(dtype: np.dtype[Any]) -> float:
    return 2.0 ** (np.finfo(dtype).nmant + 1)


def _leave_if_rounded(number: TracedArray, test: XlaOp) -> None:
    """Make the plain function run in place of runs in which an integer became a float, by a test, and was rounded."""
    trace = require_current()
    value = trace.capture(number._op)
    magnitude = xla.abs_(xla.real(value) if number.dtype.kind == "c" else value)
    limit = trace.constant(_most_exact(number.dtype), np.finfo(number.dtype).dtype)
    is_large = xla.ge(xla.reshape(magnitude, ()), limit)
    text = f"an integer is too large for the float that it becomes by the values\n  at:   {user_line()}"
    trace.leave_if(xla.and_(test, is_large), lambda _: OverflowError(text))


def doubt_of(value: Any, kind: type) -> Doubt | None:
    """Return in which runs a number has another class than one; None if in none."""
    found = class_of(value)
    if found is not kind and (require_current().program.exact_classes or np.dtype(found) != np.dtype(kind)):
        return _certain(is_numpy=found not in (bool, int, float, complex))
    doubt = value.doubt if isinstance(value, TracedArray) else None
    if doubt is None or _is_visible(doubt.test):
        return doubt
    return _certain(is_numpy=doubt.is_numpy)  # of a side of a branch, which has ended


def _certain(*, is_numpy: bool) -> Doubt:
    return Doubt(require_current().constant(True, np.dtype(bool)), is_numpy)


def _is_visible(op: XlaOp) -> bool:
    """Return True if a value belongs to a trace that is under way."""
    trace = current()
    while trace is not None and trace.builder is not op.builder:
        trace = trace.parent
    return trace is not None


def pass_on(operands: Sequence[Any], results: Sequence[TracedArray]) -> None:
    """Pass doubts about the operands of an operator on to its results.

    The values are the same whatever their class is; so is the dtype beside arrays of floats, but for complex numbers.
    """
    doubtful = [o for o in operands if isinstance(o, TracedArray) and o.doubt is not None]
    doubts = [o.doubt for o in doubtful if o.doubt is not None]
    if any(isinstance(o, TracedArray) and o.is_mixed for o in operands):
        _pass_on_mixture(operands, results)
    if not doubts:
        return
    strong = [o for o in operands if hasattr(o, "dtype") and not (isinstance(o, TracedArray) and o.weak is not None)]
    certain = [o for o in strong if not (isinstance(o, TracedArray) and o.doubt is not None)]
    kinds = "c" if any(o.dtype.kind == "c" for o in doubtful) else "fc"
    if any(o.dtype.kind in kinds and o.dtype.char not in _SMALL_FLOATS for o in certain):
        return
    if certain and not any(d.is_numpy for d in doubts) and _are_like_python_numbers(doubtful, certain):
        return
    trace = require_current()
    test = trace.capture(doubts[0].test)
    for d in doubts[1:]:
        test = xla.or_(test, trace.capture(d.test))
    doubt = Doubt(test, any(d.is_numpy for d in doubts))
    if certain:
        leave(trace, doubt)
        return
    for result in results:
        result.doubt = doubt if not result.ndim else None


def _are_like_python_numbers(numbers: Sequence[TracedArray], certain: Sequence[Any]) -> bool:
    """Return True if the dtype of a result beside operands is that which Python's numbers of less precision give."""
    kinds = [o.dtype for o in certain]
    has_float = any(k.kind in "fc" for k in kinds)
    if not all(n.dtype == np.int64 or (n.dtype.kind == "f" and has_float) for n in numbers):
        return False
    python = [_PYTHON_NUMBERS[n.dtype.kind] for n in numbers]
    own = [p if n.weak is not None else n.dtype for p, n in zip(python, numbers, strict=True)]
    return bool(np.result_type(*kinds, *own) == np.result_type(*kinds, *python))


def _pass_on_mixture(operands: Sequence[Any], results: Sequence[TracedArray]) -> None:
    """Pass on that an operand is of Python or of NumPy; refuse it where the dtype of the result depends on that."""
    mixed = [o for o in operands if isinstance(o, TracedArray) and o.is_mixed]
    others = [
        o.dtype for o in operands if hasattr(o, "dtype") and not (isinstance(o, TracedArray) and (o.is_mixed or o.weak))
    ]
    is_told_by_doubts = require_current().program.exact_classes and all(o.doubt is not None for o in mixed)
    if not is_told_by_doubts and any(_may_change(kind, o) for kind in others for o in mixed):
        raise TraceError(
            "a number is of Python or of NumPy by the values, and decides the dtype of a result", where=user_line(),
            hint="convert it: float(x), or np.float64(x)",
        )  # fmt: skip
    for result in results:
        result.is_mixed = not result.ndim and not others


def _may_change(kind: np.dtype[Any], number: TracedArray) -> bool:
    """Return True if the dtype of a result beside another operand depends on whether a number is Python's."""
    python = _PYTHON_NUMBERS.get(number.dtype.kind)
    return python is not None and np.result_type(kind, python) != np.result_type(kind, number.dtype)


def mixes_classes(one: TracedArray, other: TracedArray) -> bool:
    """Return True for two values of a number of which one is Python's, or may be, and the other NumPy's."""
    if one.ndim or other.ndim:
        return False
    return one.is_mixed or ((one.weak is not None) != (other.weak is not None))


def leave(trace: Trace, doubt: Doubt) -> None:
    """Make the plain function run in place of runs with a doubt."""
    text = f"a number is of another class, such as int for float, by the values\n  at:   {user_line()}"
    trace.leave_if(trace.capture(doubt.test), lambda _: TypeError(text))
