"""Mirrors of the structs of ``kernel_plugin.h``, version 2."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int32, c_int64, c_uint32, c_void_p
from typing import Any

from cyxla.core.framework.tensor_shape import MAX_RANK
from cyxla.errors import InvalidArgumentError

ABI = 2
FAILED, OK = -1, 0

DIMS = POINTER(c_int64)
FUNCTION = CFUNCTYPE(c_int32, c_void_p)
DONE = CFUNCTYPE(None, c_void_p, c_int32)
DESTRUCTOR = CFUNCTYPE(None, c_void_p)
CREATOR = CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(c_void_p))
COMPUTE_ASYNC = CFUNCTYPE(None, c_void_p, DONE)


class String(ctypes.Structure):
    """``cyxla_string``."""

    _fields_ = (("data", c_void_p), ("size", c_int64))


class Handle(ctypes.Structure):
    """``cyxla_handle``."""

    _fields_ = tuple((name, c_char_p) for name in ("device", "container", "name", "type"))


class Shape(ctypes.Structure):
    """``cyxla_shape``."""

    _fields_ = (("dims", c_void_p), ("rank", c_int32))


class Tensor(ctypes.Structure):
    """``cyxla_tensor``."""

    _fields_ = (("data", c_void_p), ("dims", c_void_p), ("size", c_int64), ("rank", c_int32), ("dtype", c_int32))


class Attr(ctypes.Structure):
    """``cyxla_attr``."""

    _fields_ = (("name", c_char_p), ("values", c_void_p), ("count", c_int64), ("kind", c_int32), ("is_list", c_int32))


class Arg(ctypes.Structure):
    """``cyxla_arg``."""

    _fields_ = (("name", c_char_p), ("start", c_int32), ("count", c_int32), ("is_list", c_int32))


class Node(ctypes.Structure):
    """``cyxla_node``."""

    _fields_ = (
        *((name, c_char_p) for name in ("name", "op", "device")),
        *((name, c_void_p) for name in ("attrs", "input_args", "output_args", "input_types", "output_types")),
        *((name, c_int32) for name in ("num_attrs", "num_input_args", "num_output_args", "num_inputs", "num_outputs")),
    )


class Context(ctypes.Structure):
    """``cyxla_context``."""

    _fields_ = (
        *((name, c_void_p) for name in ("host", "node", "inputs", "shapes", "state", "data")),
        ("file", c_char_p),
        ("line", c_int32),
    )


_TEXT3 = (c_char_p, c_char_p, c_char_p)  # container, name and type of a resource

#: Functions of ``cyxla_host``, in order: the type of the result, and those of the arguments behind the context.
HOST_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "fail": (c_int32, c_int32, c_char_p),
    "allocate_output": (c_void_p, c_int32, c_int32, DIMS),
    "allocate_temp": (c_void_p, c_int32, c_int32, DIMS),
    "forward_input": (c_void_p, c_int32, c_int32, c_int32, DIMS),
    "set_strings": (c_int32, c_int32, c_int32, DIMS, POINTER(String)),
    "set_handle": (c_int32, c_int32, *_TEXT3),
    "output_required": (c_int32, c_int32),
    "is_cancelled": (c_int32,),
    "lookup_resource": (c_int32, *_TEXT3, POINTER(c_void_p)),
    "lookup_or_create_resource": (c_int32, *_TEXT3, CREATOR, c_void_p, DESTRUCTOR, POINTER(c_void_p)),
    "create_resource": (c_int32, *_TEXT3, c_void_p, DESTRUCTOR),
    "delete_resource": (c_int32, *_TEXT3),
    "set_shape": (c_int32, c_int32, c_int32, DIMS),
    "constant_input": (c_int32, c_int32, POINTER(Tensor)),
    "input_as_shape": (c_int32, c_int32, POINTER(Shape)),
    "emit_module": (c_int32, c_char_p),
    "emit_call": (c_int32, c_char_p, c_void_p, c_void_p, c_int64, c_int32),
}
PROTOTYPES: dict[str, Any] = {
    name: CFUNCTYPE(result, c_void_p, *arguments) for name, (result, *arguments) in HOST_FUNCTIONS.items()
}


class Host(ctypes.Structure):
    """``cyxla_host``."""

    _fields_ = (("bytes", c_uint32), ("abi", c_uint32), *PROTOTYPES.items())


class Op(ctypes.Structure):
    """``cyxla_op``."""

    _fields_ = (
        *((name, c_char_p) for name in ("name", "signature", "attrs", "doc")),
        ("shape", FUNCTION),
        ("flags", c_uint32),
        ("data", c_void_p),
    )


class Kernel(ctypes.Structure):
    """``cyxla_kernel``."""

    _fields_ = (
        *((name, c_char_p) for name in ("op", "device", "types", "label")),
        ("priority", c_int32),
        ("compute", FUNCTION),
        ("compute_async", COMPUTE_ASYNC),
        ("create", FUNCTION),
        ("destroy", DESTRUCTOR),
        ("host_memory", c_char_p),
        ("data", c_void_p),
    )


class XlaKernel(ctypes.Structure):
    """``cyxla_xla_kernel``."""

    _fields_ = (
        *((name, c_char_p) for name in ("op", "types", "constants")),
        ("emit", FUNCTION),
        ("data", c_void_p),
    )


class Plugin(ctypes.Structure):
    """``cyxla_plugin``."""

    _fields_ = (
        *((name, c_int32) for name in ("abi", "num_ops", "num_kernels", "num_xla_kernels")),
        *((name, c_uint32) for name in ("op_bytes", "kernel_bytes", "xla_kernel_bytes")),
        *((name, c_void_p) for name in ("ops", "kernels", "xla_kernels")),
    )


def rows(kind: Any, address: int | None, stride: int, count: int) -> list[Any]:
    """Return copies of the rows of a table; fields that its library did not know are zero."""
    found = []
    for k in range(count):
        row = kind()
        ctypes.memmove(ctypes.byref(row), (address or 0) + k * stride, min(stride, ctypes.sizeof(kind)))
        found.append(row)
    return found


def text(value: bytes | None) -> str:
    """Return a text of C; empty for NULL."""
    return (value or b"").decode("utf-8", errors="replace")


def dims_of(rank: int, dims: Any) -> tuple[int, ...]:
    """Return the sizes that C passes; `dims` may be NULL for the rank 0.

    Raises
    ------
    InvalidArgumentError
        There are more than 254 dimensions, the limit of TensorFlow.
    """
    if rank > MAX_RANK:
        raise InvalidArgumentError(f"a shape has {rank} dimensions; the limit is {MAX_RANK}")
    return tuple(dims[:rank]) if rank > 0 else ()
