"""Executables that call Python functions, or take and give tokens."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.types import Shape
from cyxla.xla.cpu.run.executable import CpuExecutable
from cyxla.xla.evaluator import TOKEN_VALUE, Options
from cyxla.xla.evaluator.evaluation import instruction_evaluator
from cyxla.xla.hlo import Instruction
from cyxla.xla.service import CompileOptions

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
_INTERNAL_STATUS = 13


class PythonCalls:
    """C functions that call the Python functions of a program.

    Parameters
    ----------
    instructions : sequence of Instruction
        Custom calls and host transfers that Python runs.
    options : CompileOptions
        Options of the program.

    Attributes
    ----------
    functions : list
        Functions made by `ctypes`, with the lifetime of this object.
    failed : threading.local
        Storage of the ``error`` that ended a thread's last call.
    """

    def __init__(self, instructions: Sequence[Instruction], options: CompileOptions) -> None:
        self.failed = threading.local()
        self._options = Options(
            custom_calls=options.custom_calls, seed=options.seed, max_trips=options.max_trips, feeds=options.feeds
        )
        self.functions = [self._function(ins) for ins in instructions]

    def addresses(self) -> list[int]:
        """Return the addresses of the functions."""
        return [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self.functions]

    def _function(self, ins: Instruction) -> Any:
        read_operands = [_reader(o.shape, writable=False) for o in ins.operands]
        read_results = _reader(ins.shape, writable=True)
        evaluate = instruction_evaluator(ins, self._options)

        def run(bufs: Any) -> int:
            try:
                indices = count()
                operands = [read(bufs, indices) for read in read_operands]
                results = read_results(bufs, indices)
                _store_results(ins, results, evaluate(*operands))
            except BaseException as error:
                self.failed.error = error
                return _INTERNAL_STATUS
            return 0

        return _SIGNATURE(run)


def _reader(shape: Shape, *, writable: bool) -> Callable[[Any, Iterator[int]], Any]:
    """Return a function that makes arrays over the next buffers of a kernel."""
    if shape.is_tuple:
        readers = [_reader(e, writable=writable) for e in shape.elements]
        return lambda bufs, indices: tuple([r(bufs, indices) for r in readers])
    if not shape.is_array:
        return lambda bufs, indices: TOKEN_VALUE
    static = shape.static
    dims, dtype, size = static.dims, static.dtype.numpy_dtype, static.nbytes
    memory: Any = ctypes.c_uint8 * size

    def read(bufs: Any, indices: Iterator[int]) -> np.ndarray[Any, Any]:
        address = bufs[next(indices)]
        if not size:
            return np.zeros(dims, dtype)
        array: np.ndarray[Any, Any] = np.ndarray(dims, dtype, memory.from_address(address))
        if not writable:  # a copy: functions may keep what they are given
            array = array.copy()
            array.flags.writeable = False
        return array

    return read


def _store_results(ins: Instruction, targets: Any, value: Any) -> None:
    """Write results to their buffers."""
    if isinstance(targets, tuple):
        if not isinstance(value, tuple) or len(value) != len(targets):
            raise _shape_error(ins)
        for target, part in zip(targets, value, strict=True):
            _store_results(ins, target, part)
    elif isinstance(targets, np.ndarray):
        if np.shape(value) != targets.shape:
            raise _shape_error(ins)
        targets[...] = value


def _shape_error(ins: Instruction) -> ShapeError:
    target = ins.attrs.get("custom_call_target")
    called = ins.opcode if target is None else f"the function of custom-call target {target!r}"
    return ShapeError(f"{called} did not return {ins.shape}", where=repr(ins))


class HostedExecutable(CpuExecutable):
    """Executable of a program that has tokens as arguments or results, or calls Python while it runs."""

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run; see `Executable`. An exception of a Python function propagates to the caller."""
        if len(args) == len(self.inputs):  # else the launcher says what is wrong
            args = tuple([without_tokens(s, a) for s, a in zip(self.inputs, args, strict=True)])
        if out is not None:
            out = without_tokens(self.outputs, out)
        return with_tokens(self.outputs, self._run(args, out))

    def _run(self, args: tuple[Any, ...], out: Any) -> Any:
        if self._calls is None:
            return super().__call__(*args, out=out)
        failed = self._calls.failed
        failed.error = None
        try:
            return super().__call__(*args, out=out)
        except Exception:
            error = failed.error
            failed.error = None
            if error is None:
                raise
            raise error from None


def without_tokens(shape: Shape, value: Any) -> Any:
    """Replace each token by an empty tuple; a value of another structure is left for the launcher to refuse."""
    if shape.is_tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.elements):
            return value
        return tuple([without_tokens(s, v) for s, v in zip(shape.elements, value, strict=True)])
    return value if shape.is_array else ()


def with_tokens(shape: Shape, value: Any) -> Any:
    """Put tokens in place of the empty tuples that native code has for them."""
    if shape.is_tuple:
        return tuple([with_tokens(s, v) for s, v in zip(shape.elements, value, strict=True)])
    return value if shape.is_array else TOKEN_VALUE
