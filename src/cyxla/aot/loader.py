"""Calls of shared libraries from Python, by ctypes: for tests of libraries rather than for speed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cyxla.errors import InternalError, NotFoundError, OpError, ShapeError
from cyxla.types import ElementType

MESSAGE_BYTES = 256
Array = np.ndarray[Any, Any]


class _Array(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_int64),
    )  # fmt: skip


class _Info(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32), ("num_args", ctypes.c_int32), ("num_results", ctypes.c_int32),
        ("args", ctypes.POINTER(_Array)), ("results", ctypes.POINTER(_Array)), ("temp_bytes", ctypes.c_int64),
        ("build_id", ctypes.c_char_p),
    )  # fmt: skip


class Run(ctypes.Structure):
    """Options of a call, as in ``library.h``."""

    _fields_ = (
        ("size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("temp", ctypes.c_void_p),
        ("message", ctypes.c_void_p), ("cancel", ctypes.c_void_p), ("parallel", ctypes.c_void_p),
        ("host", ctypes.c_void_p), ("poll", ctypes.c_void_p),
    )  # fmt: skip


class Function:
    """Program in a shared library, with the methods of the C++ class.

    Parameters
    ----------
    path : path
        Shared library.
    name : str
        Name of the program.

    Raises
    ------
    NotFoundError
        The library has no such program.
    """

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        self._library = ctypes.CDLL(str(Path(path).resolve()))
        try:
            self._entry, info = self._library[name], self._library[f"{name}_info"]
        except AttributeError:
            raise NotFoundError(f"{path} has no program {name!r}") from None
        info.restype = ctypes.POINTER(_Info)
        self._info = info().contents
        self._types = [_types(self._info.args, self._info.num_args), _types(self._info.results, self._info.num_results)]
        self.args: list[Array | None] = [None] * self._info.num_args
        self.results: list[Array] = []
        self.threads = 0
        self.error_msg = ""
        self.error_code = 0

    @property
    def num_args(self) -> int:
        """Number of arguments."""
        return int(self._info.num_args)

    @property
    def num_results(self) -> int:
        """Number of results."""
        return int(self._info.num_results)

    @property
    def temp_bytes(self) -> int:
        """Size of the temporaries of a call."""
        return int(self._info.temp_bytes)

    @property
    def build_id(self) -> str:
        """Digest of program and options."""
        return str(self._info.build_id.decode())

    @property
    def arg_names(self) -> list[str]:
        """Names of the arguments."""
        return [self._info.args[k].name.decode() for k in range(self.num_args)]

    @property
    def result_names(self) -> list[str]:
        """Names of the results."""
        return [self._info.results[k].name.decode() for k in range(self.num_results)]

    def lookup_arg_index(self, name: str) -> int:
        """Return the index of an argument, -1 if there is none of this name."""
        return self.arg_names.index(name) if name in self.arg_names else -1

    def lookup_result_index(self, name: str) -> int:
        """Return the index of a result, -1 if there is none of this name."""
        return self.result_names.index(name) if name in self.result_names else -1

    def load(self, path: str | os.PathLike[str], name: str) -> int:
        """Load the file of weights of the library; return 0 or a code."""
        return int(self._library[f"{name}_load"](str(path).encode()))

    def set_arg_data(self, index: int, value: Any) -> None:
        """Set an argument, which is converted to its type without a change of its shape.

        Raises
        ------
        ShapeError
            The shape is another one.
        """
        dtype, dims = self._types[0][index]
        array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
        if array.shape != dims:
            raise ShapeError(f"argument {index} has the shape {array.shape}, want {dims}")
        self.args[index] = array

    def run(self, options: Run | None = None) -> bool:
        """Run the program; return False if it fails, see `error_msg`."""
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        options = options or Run(threads=self.threads)
        options.size, options.message = ctypes.sizeof(Run), ctypes.addressof(message)
        self.results = [np.empty(dims, dtype) for dtype, dims in self._types[1]]
        self.error_code = self._entry(_pointers(self.args), _pointers(self.results), ctypes.byref(options))
        self.error_msg = message.value.decode(errors="replace") if self.error_code else ""
        return self.error_code == 0

    def __call__(self, *args: Any) -> list[Array]:
        """Run the program on some arguments; return its results.

        Raises
        ------
        OpError
            It fails.
        """
        for k, value in enumerate(args):
            self.set_arg_data(k, value)
        if not self.run():
            kinds = {kind.number: kind for kind in OpError.__subclasses__()}
            raise kinds.get(self.error_code, InternalError)(self.error_msg)
        return self.results


def _types(arrays: Any, count: int) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    found = []
    for array in arrays[:count]:
        dtype = ElementType(array.dtype).numpy_dtype
        assert dtype is not None
        found.append((dtype, tuple(array.dims[: array.rank])))
    return found


def _pointers(arrays: Sequence[Array | None]) -> Any:
    addresses = [0 if a is None else a.ctypes.data for a in arrays]
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
