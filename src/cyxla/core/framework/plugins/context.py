"""Contexts of calls of C functions, and the table of functions that these may call back."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Any, Self

from cyxla.core.framework.plugins.interface import ABI, DONE, FAILED, OK, PROTOTYPES, Context, Host, text
from cyxla.core.framework.plugins.memory import Memory, NodeMemory
from cyxla.core.framework.types import DataType
from cyxla.errors import FailedPreconditionError, InternalError, InvalidArgumentError, OpError, from_code

_LOG = logging.getLogger("cyxla.plugins")
_POINTERS = ("allocate_output", "allocate_temp", "forward_input")  # their failure is a null pointer

#: Contexts in use, by address: C passes the address back.
_contexts: dict[int, NativeContext] = {}


class NativeContext:
    """State of one call of a C function, and its side of the interface.

    A subclass has a method for each function of the host that C may call meanwhile. In a ``with`` statement the context
    is known by its address.

    Parameters
    ----------
    node : NodeMemory
        Node that the call is for.
    state, data : int, optional
        Addresses of the state of the kernel, and of the data of its registration.
    label : str, optional
        Description of the node in errors, if it is not that of `node`.

    Attributes
    ----------
    error : BaseException or None
        First error.
    """

    kind = "a function"

    def __init__(self, node: NodeMemory, state: int | None = None, data: int | None = None, label: str = "") -> None:
        self.node, self.memory, self.label = node, Memory(), label or node.label
        self.error: BaseException | None = None
        self.struct = Context(host=_host_address(), node=node.address, state=state, data=data)
        self.address = ctypes.addressof(self.struct)

    def __enter__(self) -> Self:
        _contexts[self.address] = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _contexts.pop(self.address, None)

    def call(self, function: Callable[[int], int]) -> None:
        """Call a C function with this context; raise the error that it records or returns."""
        with self:
            status = function(self.address)
        self.check(status)

    def check(self, status: int) -> None:
        """Raise the recorded error, or that of a status."""
        if self.error is None and status != OK:
            self.struct.file = None  # the last call of the host, which succeeded
            self.record(self.error_of(status))
        if self.error is not None:
            raise self.error

    def error_of(self, status: int) -> OpError:
        """Return the error of a status without a message."""
        if status == FAILED:
            return InternalError(f"{self.node.op_def.name}: {self.kind} failed without an error")
        return from_code(status, f"{self.node.op_def.name}: {self.kind} returned the code {status}")

    def record(self, error: BaseException) -> None:
        """Record an error with the node and the line in C; the first one is kept."""
        if isinstance(error, OpError):
            error.where = error.where or self.label + self._line()
            error.op = error.op or self.node.op_def.name
            error.node = error.node or self.node.name or None
        self.error = self.error or error

    def _line(self) -> str:
        file = text(self.struct.file)
        return f", {file.rpartition('/')[2]}:{self.struct.line}" if file else ""

    # Functions of the host

    def fail(self, code: int, message: bytes | None) -> int:
        """Record an error."""
        self.record(from_code(code, text(message)))
        return FAILED

    def input_type(self, index: int) -> DataType:
        """Return the type of an input; raise InvalidArgumentError if there is none of the index."""
        return self._value("input", self.node.input_types, index)

    def output_type(self, index: int) -> DataType:
        """Return the type of an output; raise InvalidArgumentError if there is none of the index."""
        return self._value("output", self.node.output_types, index)

    def _value(self, kind: str, types: list[DataType], index: int) -> DataType:
        if not 0 <= index < len(types):
            raise InvalidArgumentError(f"{self.node.op_def.name} has {len(types)} {kind}s, none at {index}")
        return types[index]

    def unsupported(self, name: str) -> FailedPreconditionError:
        """Return the error of a function that must not be called here."""
        return FailedPreconditionError(f"cyxla_{name} cannot be called in {self.kind}")


def _callback(name: str, prototype: Any) -> Any:
    """Return the C function that calls a method of the context."""
    failure = None if name in _POINTERS else FAILED

    def function(address: int, *arguments: Any) -> Any:
        context = _contexts.get(address)
        if context is None:
            _LOG.error("cyxla_%s was called with a context that is no longer in use", name)
            return failure
        try:
            method = getattr(context, name, None)
            if method is None:
                raise context.unsupported(name)
            return method(*arguments)
        except BaseException as error:  # to be raised when the call has returned
            context.record(error)
            return failure

    return prototype(function)


@cache
def _host() -> Host:
    return Host(ctypes.sizeof(Host), ABI, *(_callback(name, prototype) for name, prototype in PROTOTYPES.items()))


@cache
def _host_address() -> int:
    return ctypes.addressof(_host())


def _done(address: int, status: int) -> None:
    context = _contexts.pop(address, None)
    if context is None:
        _LOG.error("done was called with a context that is no longer in use: it must be called once")
        return
    context.finish(status)  # type: ignore[attr-defined]


#: The ``done`` of asynchronous kernels.
done = DONE(_done)


def keep_until_done(context: NativeContext) -> None:
    """Keep a context until C calls `done` for it."""
    _contexts[context.address] = context
