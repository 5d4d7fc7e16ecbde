"""C functions that custom calls of a program may name: include/cyxla/call.h is the contract.

A name means what was registered under it in this process, and nothing else: no symbol is ever looked up.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.forking import new_lock
from cyxla.types import Shape
from cyxla.xla.evaluator.custom_calls import find_custom_call, register_custom_call, unregister_custom_call
from cyxla.xla.hlo.instruction import Instruction

VERSION = 1
MESSAGE_BYTES = 256
_POINTERS = ctypes.POINTER(ctypes.c_void_p)


class Array(ctypes.Structure):
    """``cyxla_array``."""

    _fields_ = (
        ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("size", ctypes.c_int64),
    )  # fmt: skip


class Info(ctypes.Structure):
    """``cyxla_call_info``."""

    _fields_ = (
        ("version", ctypes.c_uint32), ("bytes", ctypes.c_uint32), ("inputs", ctypes.c_int32),
        ("outputs", ctypes.c_int32), ("input", ctypes.POINTER(Array)), ("output", ctypes.POINTER(Array)),
        ("opaque", ctypes.c_char_p), ("opaque_bytes", ctypes.c_int64), ("message", ctypes.c_char_p),
    )  # fmt: skip


SIGNATURE = ctypes.CFUNCTYPE(None, _POINTERS, _POINTERS, ctypes.POINTER(Info))


@dataclass(frozen=True)
class CCall:
    """A registered C function.

    Attributes
    ----------
    address : int
        Where it lies.
    keep : object
        What must live as long as it may be called.
    """

    address: int
    keep: Any = None


_CALLS: dict[str, CCall] = {}
_lock = new_lock()


def register(target: str, address: int, keep: Any = None, *, replace: bool = False) -> None:
    """Give a custom-call target a C function.

    Raises
    ------
    AlreadyExistsError
        The target has a meaning, and `replace` is false.
    """
    call = CCall(address, keep)
    function = SIGNATURE(address)

    def meaning(evaluation: Any, ins: Instruction, *operands: Any) -> Any:
        return run(function, ins, operands)

    with _lock:
        register_custom_call(target, meaning, replace=replace)
        _CALLS[target] = call


def unregister(target: str) -> None:
    """Take back what `register` gave."""
    with _lock:
        unregister_custom_call(target)
        _CALLS.pop(target, None)


def is_registered(target: str) -> bool:
    """Whether a target is a C function, and no Python function took its place."""
    return target in _CALLS and find_custom_call(target).__module__ == __name__


def address(target: str) -> int:
    """Where a registered function lies.

    Raises
    ------
    UnimplementedError
        It is not registered in this process.
    """
    found = _CALLS.get(target)
    if found is None:
        raise UnimplementedError(f"custom-call target {target!r} is no C function here", hint="cyxla.register_c_call")
    return found.address


def opaque_of(ins: Instruction) -> bytes:
    """The text that a custom call came with."""
    config = ins.extras.get("backend_config") or b""
    return config if isinstance(config, bytes) else str(config).encode()


def run(function: Any, ins: Instruction, operands: Sequence[Any]) -> Any:
    """Call a C function on the values of an instruction's operands."""
    arrays = [np.ascontiguousarray(v) for v in _leaves(operands)]
    results = call(function, ins.attrs["custom_call_target"], arrays, list(ins.shape.leaves()), opaque_of(ins))
    return _built(ins.shape, iter(results))


def call(
    function: Any, target: str, arrays: Sequence[np.ndarray[Any, Any]], results: Sequence[Shape], opaque: bytes = b""
) -> list[np.ndarray[Any, Any]]:
    """Call a C function on arrays.

    Raises
    ------
    InvalidArgumentError
        The function wrote a message.
    """
    made = [np.zeros(s.static.dims, s.static.dtype.numpy_dtype) for s in results]
    message = ctypes.create_string_buffer(MESSAGE_BYTES)
    inputs, outputs = _described([Shape.of(a) for a in arrays]), _described(results)
    info = Info(
        VERSION, ctypes.sizeof(Info), len(arrays), len(made), inputs, outputs, opaque, len(opaque),
        ctypes.cast(message, ctypes.c_char_p),
    )  # fmt: skip
    function(_pointers(made), _pointers(arrays), ctypes.byref(info))
    if message.value:
        raise InvalidArgumentError(f"{target}: {message.value.decode(errors='replace')}")
    return made


def _pointers(arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])


def _described(shapes: Sequence[Shape]) -> Any:
    made = (Array * max(1, len(shapes)))()
    for place, shape in zip(made, shapes, strict=False):
        dims = (ctypes.c_int64 * max(1, shape.rank))(*shape.dims)
        place.dtype, place.rank, place.dims, place.size = shape.dtype.value, shape.rank, dims, shape.size
    return made


def _leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def _built(shape: Shape, results: Any) -> Any:
    return tuple([_built(e, results) for e in shape.elements]) if shape.is_tuple else next(results)
