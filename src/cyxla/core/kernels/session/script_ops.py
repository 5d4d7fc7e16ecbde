"""Nodes that call Python functions."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.apply import to_array
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import OpKernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.step.py_functions import PyFunctionRegistry
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.errors import (
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)

Array = np.ndarray[Any, Any]
_ERRORS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], type[OpError]], ...] = (
    ((ValueError, TypeError), InvalidArgumentError),
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
    (Exception, UnknownError),
)


class PyFunctionOp(OpKernel, ABC):
    """Base class of the kernels that call a Python function."""

    is_expensive = True

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function, and output its results.

        Raises
        ------
        OpError
            The function raised an exception, or its results do not have the declared number and types.
        """
        token, args = self.attrs["token"], [self.argument(value) for value in ctx.input_list("input")]
        try:
            results = self.convert(PyFunctionRegistry.global_().look_up(token)(*args))
        except OpError:  # an error of cyxla, called by the function
            raise
        except Exception as error:
            raise _converted(error) from error
        if len(results) != ctx.num_outputs:
            raise InvalidArgumentError(
                f"{token} returns {len(results)} values, but expects to see {ctx.num_outputs} values."
            )
        for k, (value, dtype) in enumerate(zip(results, self.output_types, strict=True)):
            if value.dtype != dtype.numpy:
                raise InvalidArgumentError(
                    f"{k}-th value returned by {token} is {_name(value.dtype)}, but expects {dtype}"
                )
            ctx.set_output(k, value)

    def argument(self, value: Array) -> Any:
        """Return an argument of the function for an input."""
        value = value.view()
        value.flags.writeable = False
        return value

    @abstractmethod
    def convert(self, result: Any) -> list[Array]:
        """Return the results of the function as arrays that nobody else holds."""


@kernel(("PyFunc", "PyFuncStateless"))
class PyFuncOp(PyFunctionOp):
    """Kernel that calls a function of NumPy arrays and scalars; its results must have the declared types."""

    def argument(self, value: Array) -> Any:
        """Return a read-only array, or a scalar for an array of rank 0."""
        return super().argument(value) if value.ndim else value[()]

    def convert(self, result: Any) -> list[Array]:
        """Convert results as NumPy does; texts become bytes."""
        if result is None:
            return []
        return [_as_array(value) for value in (result if isinstance(result, (list, tuple)) else [result])]


@kernel("EagerPyFunc")
class EagerPyFuncOp(PyFunctionOp):
    """Kernel that calls a function of arrays; its results are converted to the declared types."""

    def convert(self, result: Any) -> list[Array]:
        """Convert results to the declared types, one for each; more or fewer are an error."""
        if result is None:
            return []
        values: Sequence[Any] = result if isinstance(result, (list, tuple)) else [result]
        if len(values) != len(self.output_types):
            return [np.asarray(value) for value in values]
        pairs = zip(values, self.output_types, strict=True)
        return [to_array(value, dtype, f"result {k}").copy() for k, (value, dtype) in enumerate(pairs)]


def _as_array(value: Any) -> Array:
    array = np.array(value)
    if array.dtype.kind == "S" or (array.dtype.kind == "U" and not isinstance(value, np.ndarray)):
        array = array.astype(object)
    if array.dtype.kind == "U":
        return np.char.encode(array, "utf-8").astype(object)
    if array.dtype.hasobject:
        texts = [item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item for item in array.flat]
        array = np.array([*texts, None], object)[:-1].reshape(array.shape)
    return array


def _name(dtype: np.dtype[Any]) -> str:
    try:
        return str(as_data_type(dtype)) if not dtype.hasobject else str(DataType.DT_STRING)
    except OpError:
        return str(dtype)


def _converted(error: Exception) -> OpError:
    kind = next(code for classes, code in _ERRORS if isinstance(error, classes))
    frames = "".join(traceback.format_tb(error.__traceback__)[1:])
    return kind(f"{type(error).__name__}: {error}\nTraceback (most recent call last):\n\n{frames}".rstrip())
