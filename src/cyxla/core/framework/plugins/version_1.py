"""Kernels in C, version 1 of the interface: ``include/cyxla/kernel_plugin_1.h``."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.errors import InvalidArgumentError, OpError, UnimplementedError, from_code


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    )


_ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)
)
_FAIL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
_ATTR_INT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64))
_ATTR_FLOAT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_double))
_FAILED = -1


class _Call(ctypes.Structure):
    _fields_ = (
        ("inputs", ctypes.POINTER(_Tensor)),
        ("num_inputs", ctypes.c_int32),
        ("num_outputs", ctypes.c_int32),
        ("allocate_output", _ALLOCATE),
        ("fail", _FAIL),
        ("attr_int", _ATTR_INT),
        ("attr_float", _ATTR_FLOAT),
        ("host", ctypes.c_void_p),
    )


class Op(ctypes.Structure):
    """Row of an op."""

    _fields_ = tuple((name, ctypes.c_char_p) for name in ("name", "signature", "attrs", "doc"))


class Kernel(ctypes.Structure):
    """Row of a kernel."""

    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("op", "device", "types", "label")),
        ("priority", ctypes.c_int32),
        ("compute", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_Call))),
    )


class Plugin(ctypes.Structure):
    """Contents of a library."""

    _fields_ = (
        ("abi", ctypes.c_int32),
        ("num_ops", ctypes.c_int32),
        ("num_kernels", ctypes.c_int32),
        ("ops", ctypes.POINTER(Op)),
        ("kernels", ctypes.POINTER(Kernel)),
    )


class _Host:
    """Host side of one kernel call: the callbacks from C."""

    def __init__(self, ctx: OpKernelContext) -> None:
        self.ctx = ctx
        self.error: Exception | None = None
        self.arrays = [self._contiguous_input(i) for i in range(ctx.num_inputs)]
        self.tensors = (_Tensor * len(self.arrays))(*(self._tensor(i, a) for i, a in enumerate(self.arrays)))
        self.call = _Call(
            self.tensors,
            len(self.arrays),
            ctx.num_outputs,
            _ALLOCATE(self.allocate),
            _FAIL(self.fail),
            _ATTR_INT(self.attr_int),
            _ATTR_FLOAT(self.attr_float),
            None,
        )

    def _contiguous_input(self, i: int) -> np.ndarray[Any, Any]:
        array = np.asarray(self.ctx.input(i), order="C")
        if array.dtype.hasobject:
            raise UnimplementedError(f"input {i} is {self.ctx.input_dtype(i)}: C kernels support numeric data only")
        return array

    def _tensor(self, i: int, array: np.ndarray[Any, Any]) -> _Tensor:
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        return _Tensor(array.ctypes.data, dims, array.ndim, int(self.ctx.input_dtype(i)))

    def _record_error(self, error: Exception) -> int:
        if isinstance(error, OpError):
            error.where = error.where or f"node '{self.ctx.op_kernel.name}' ({self.ctx.op_kernel.type_string})"
        self.error = self.error or error
        return _FAILED

    def allocate(self, _call: int, index: int, rank: int, dims: Any) -> int | None:
        """Allocate the memory of an output."""
        try:
            if self.ctx.expected_output_dtype(index).numpy.hasobject:
                raise UnimplementedError(f"output {index} is not numeric")
            return self.ctx.allocate_output(index, dims[:rank]).ctypes.data
        except Exception as error:
            self._record_error(error)
            return None

    def fail(self, _call: int, code: int, message: bytes | None) -> int:
        """Record an error."""
        return self._record_error(from_code(code, (message or b"").decode(errors="replace")))

    def attr_int(self, _call: int, name: bytes, value: Any) -> int:
        """Store the value of an integer attribute."""
        return self._store_attr(name, int, value)

    def attr_float(self, _call: int, name: bytes, value: Any) -> int:
        """Store the value of a float attribute."""
        return self._store_attr(name, float, value)

    def _store_attr(self, name: bytes, kind: type, value: Any) -> int:
        attr_value = self.ctx.op_kernel.attrs.get(name.decode(errors="replace"))
        if not isinstance(attr_value, kind):  # bools and types are ints
            return self._record_error(InvalidArgumentError(f"there is no {kind.__name__} attribute '{name.decode()}'"))
        value[0] = attr_value
        return 0


class NativeKernel(OpKernel):
    """Kernel of a loaded library."""

    def __init__(self, construction: OpKernelConstruction, compute: Any, library: Any) -> None:
        super().__init__(construction)
        self._compute, self._library = compute, library

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the kernel without the GIL."""
        host = _Host(ctx)
        status = self._compute(ctypes.byref(host.call))
        if status and host.error is None:
            host.fail(0, status, f"{self.type_string}: its kernel returned the code {status}".encode())
        if host.error is not None:
            raise host.error
