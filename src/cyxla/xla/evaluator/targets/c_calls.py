"""C functions as custom-call targets, with the ABI of include/cyxla/call.h.

A target is the function that was registered under its name in this process; symbols are never looked up.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.forking import new_lock
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.evaluator.custom_calls import find_custom_call, register_custom_call, unregister_custom_call
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.typed_attributes import Entry, entries, is_typed, read_attributes

VERSION = 1
MESSAGE_BYTES = 256
_POINTERS = ctypes.POINTER(ctypes.c_void_p)


class Array(ctypes.Structure):
    """Mirror of the C struct ``cyxla_array``."""

    _fields_ = (
        ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("size", ctypes.c_int64),
    )  # fmt: skip


class Attribute(ctypes.Structure):
    """Mirror of the C struct ``cyxla_call_attr``."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("kind", ctypes.c_int32), ("dtype", ctypes.c_int32), ("count", ctypes.c_int64),
        ("data", ctypes.c_void_p),
    )  # fmt: skip


class Info(ctypes.Structure):
    """Mirror of the C struct ``cyxla_call_info``."""

    _fields_ = (
        ("version", ctypes.c_uint32), ("bytes", ctypes.c_uint32), ("inputs", ctypes.c_int32),
        ("outputs", ctypes.c_int32), ("input", ctypes.POINTER(Array)), ("output", ctypes.POINTER(Array)),
        ("opaque", ctypes.c_char_p), ("opaque_bytes", ctypes.c_int64), ("message", ctypes.c_char_p),
        ("attrs", ctypes.POINTER(Attribute)), ("attr_count", ctypes.c_int64),
    )  # fmt: skip


SIGNATURE = ctypes.CFUNCTYPE(None, _POINTERS, _POINTERS, ctypes.POINTER(Info))


@dataclass(frozen=True)
class CCall:
    """A registered C function.

    Attributes
    ----------
    address : int
        Address of the function.
    keep : object
        An object to keep alive as long as the function may be called.
    """

    address: int
    owner: Any = None


_CALLS: dict[str, CCall] = {}
_lock = new_lock()


def register(target: str, address: int, owner: Any = None, *, replace: bool = False) -> None:
    """Register a C function as a custom-call target.

    Raises
    ------
    AlreadyExistsError
        The target is registered, and `replace` is false.
    """
    call = CCall(address, owner)
    function = SIGNATURE(address)

    def implementation(evaluation: Any, ins: Instruction, *operands: Any) -> Any:
        return run(function, ins, operands)

    with _lock:
        register_custom_call(target, implementation, replace=replace)
        _CALLS[target] = call


def unregister(target: str) -> None:
    """Remove a target of `register`."""
    with _lock:
        unregister_custom_call(target)
        _CALLS.pop(target, None)


def is_registered(target: str) -> bool:
    """Return True if a target is a C function that no Python function has replaced."""
    return target in _CALLS and find_custom_call(target).__module__ == __name__


def address(target: str) -> int:
    """Return the address of a registered function.

    Raises
    ------
    UnimplementedError
        The target is not registered in this process.
    """
    call = _CALLS.get(target)
    if call is None:
        raise UnimplementedError(
            f"custom-call target {target!r} is not a registered C function", hint="cyxla.register_c_call"
        )
    return call.address


def opaque_of(ins: Instruction) -> bytes:
    """Return the configuration of a custom call as bytes."""
    config = ins.extras.get("backend_config") or b""
    return config if isinstance(config, bytes) else str(config).encode()


def attributes_of(ins: Instruction) -> dict[str, Any]:
    """Return the typed attributes of a custom call; none if its configuration is another text.

    Raises
    ------
    InvalidArgumentError
        The configuration of a call of that version is malformed.
    """
    config = ins.extras.get("backend_config")
    return read_attributes(config) if is_typed(ins.attrs["api_version"], config) else {}


def run(function: Any, ins: Instruction, operands: Sequence[Any]) -> Any:
    """Call a C function on the values of an instruction's operands."""
    arrays = [np.ascontiguousarray(v) for v in _leaves(operands)]
    results = call(
        function, ins.attrs["custom_call_target"], arrays, list(ins.shape.leaves()), opaque_of(ins), attributes_of(ins)
    )  # fmt: skip
    return _unflatten(ins.shape, iter(results))


def call(
    function: Any, target: str, arrays: Sequence[np.ndarray[Any, Any]], results: Sequence[Shape], opaque: bytes = b"",
    attributes: Mapping[str, Any] = MappingProxyType({}),
) -> list[np.ndarray[Any, Any]]:  # fmt: skip
    """Call a C function on arrays, with typed attributes.

    Raises
    ------
    InvalidArgumentError
        The function wrote a message.
    """
    result_arrays = [np.zeros(s.static.dims, s.static.dtype.numpy_dtype) for s in results]
    message = ctypes.create_string_buffer(MESSAGE_BYTES)
    inputs, outputs = _descriptors([Shape.of(a) for a in arrays]), _descriptors(results)
    info = Info(
        VERSION, ctypes.sizeof(Info), len(arrays), len(result_arrays), inputs, outputs, opaque, len(opaque),
        ctypes.cast(message, ctypes.c_char_p), _attributes(entries(attributes)), len(attributes),
    )  # fmt: skip
    function(_pointers(result_arrays), _pointers(arrays), ctypes.byref(info))
    if message.value:
        raise InvalidArgumentError(f"{target}: {message.value.decode(errors='replace')}")
    return result_arrays


def _pointers(arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])


def _descriptors(shapes: Sequence[Shape]) -> Any:
    descriptors = (Array * max(1, len(shapes)))()
    for descriptor, shape in zip(descriptors, shapes, strict=False):
        dims = (ctypes.c_int64 * max(1, shape.rank))(*shape.dims)
        descriptor.dtype, descriptor.rank, descriptor.dims, descriptor.size = (
            shape.dtype.value,
            shape.rank,
            dims,
            shape.size,
        )
    return descriptors


def _attributes(rows: Sequence[Entry]) -> Any:
    """Return attributes as a C array, which keeps what it points to alive."""
    attributes: Any = (Attribute * max(1, len(rows)))()
    parts: list[Any] = []
    for attribute, row in zip(attributes, rows, strict=False):
        part: Any = _attributes(row.data) if isinstance(row.data, list) else ctypes.create_string_buffer(row.data)
        attribute.name, attribute.kind, attribute.dtype, attribute.count = row[:4]
        attribute.data = ctypes.cast(part, ctypes.c_void_p)
        parts.append(part)
    attributes.parts = parts
    return attributes


def _leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def _unflatten(shape: Shape, results: Any) -> Any:
    return tuple([_unflatten(e, results) for e in shape.elements]) if shape.is_tuple else next(results)
