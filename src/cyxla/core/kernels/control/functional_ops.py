"""Conditionals, loops and function calls: kernels that run functions of the graph's library.

A function is looked up at its first call, so the function of a branch that is never taken may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.kernel_decorators import array_kernel, kernel
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, NotFoundError

Array = np.ndarray[Any, Any]


class _Functional(OpKernel):
    """Base of kernels that call functions."""

    is_expensive = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._handles: dict[int, Any] = {}

    def call(self, ctx: OpKernelContext, function: NameAttrList, args: Sequence[Any]) -> list[Any]:
        """Call a function in this step."""
        handle = self._handles.get(id(function))
        if handle is None:
            handle = self._handles[id(function)] = ctx.instantiate(function)
        return ctx.call_function(handle, args)

    def set_outputs(self, ctx: OpKernelContext, values: Sequence[Any]) -> None:
        """Set all outputs.

        Raises
        ------
        InvalidArgumentError
            The number or the types of the values differ from the node's outputs.
        """
        if len(values) != ctx.num_outputs:
            raise InvalidArgumentError(
                f"{self.type_string} has {ctx.num_outputs} outputs, but its function returned {len(values)} values"
            )
        for k, value in enumerate(values):
            dtype = self.output_types[k]
            if value.dtype != dtype.numpy:
                raise InvalidArgumentError(
                    f"output {k} of {self.type_string} is {dtype}, but its function returned {value.dtype}"
                )
            ctx.set_output(k, value)


def to_bool(value: Array) -> bool:
    """Convert a condition of any type to a bool: a number is true if nonzero, a string or an array if nonempty.

    Raises
    ------
    InvalidArgumentError
        The value is a resource or variant scalar.
    """
    if value.ndim:
        return value.size > 0
    element = value[()]
    if isinstance(element, (bytes, str)):
        return len(element) > 0
    if value.dtype.hasobject:
        raise InvalidArgumentError("a resource or a variant cannot be a condition", hint="give a bool")
    return bool(element != 0)


def _inputs(ctx: OpKernelContext, name: str) -> list[Any]:
    return [ctx.input(k) for k in ctx.op_kernel.input_range(name)]


@kernel(("If", "StatelessIf", "_If"))
class IfOp(_Functional):
    """Kernel that calls one of two functions."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function of the branch selected by the condition."""
        branch = "then_branch" if to_bool(ctx.input(0)) else "else_branch"
        self.set_outputs(ctx, self.call(ctx, self.attrs[branch], _inputs(ctx, "input")))


@kernel(("Case", "StatelessCase"))
class CaseOp(_Functional):
    """Kernel that calls one of several functions."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the branch at the index, or the last one if the index is out of range."""
        index, branches = ctx.input(0), self.attrs["branches"]
        ctx.require(index.ndim == 0, f"branch_index must be a scalar, but its shape is {list(index.shape)}")
        branch = int(index) if 0 <= int(index) < len(branches) else len(branches) - 1
        self.set_outputs(ctx, self.call(ctx, branches[branch], _inputs(ctx, "input")))


@kernel(("While", "StatelessWhile", "_While"))
class WhileOp(_Functional):
    """Kernel that calls a function while another returns true."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Iterate: results of the body become arguments of the condition and of the next body call."""
        values = _inputs(ctx, "input")
        while self._condition(ctx, values):
            ctx.step.check_running()
            values = self.call(ctx, self.attrs["body"], values)
            if len(values) != ctx.num_outputs:
                raise InvalidArgumentError(
                    f"the body of the loop returned {len(values)} values, but the loop has {ctx.num_outputs}"
                )
        self.set_outputs(ctx, values)

    def _condition(self, ctx: OpKernelContext, values: Sequence[Any]) -> bool:
        results = self.call(ctx, self.attrs["cond"], values)
        if len(results) != 1:
            raise InvalidArgumentError(f"the condition of a loop returns one value, but this one {len(results)}")
        return to_bool(results[0])


@kernel("For")
class ForOp(_Functional):
    """Kernel that calls a function for each number of a range."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Iterate: the body takes the number and its own previous results."""
        start, limit, delta = (self._number(ctx, k) for k in range(3))
        ctx.require(
            (delta > 0 and start <= limit) or (delta < 0 and start >= limit) or (delta == 0 and start == limit),
            f"steps of {delta} do not lead from {start} to {limit}",
            hint="delta must lead from start to limit",
        )
        values = _inputs(ctx, "input")
        for number in range(start, limit, delta or 1):
            ctx.step.check_running()
            values = self.call(ctx, self.attrs["body"], [np.array(number, np.int32), *values])
        self.set_outputs(ctx, values)

    def _number(self, ctx: OpKernelContext, index: int) -> int:
        value = ctx.input(index)
        name = ("start", "limit", "delta")[index]
        ctx.require(value.ndim == 0, f"{name} must be a scalar, but its shape is {list(value.shape)}")
        return int(value)


@kernel(("PartitionedCall", "StatefulPartitionedCall"))
class PartitionedCallOp(_Functional):
    """Kernel that calls a function."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function; unlike in conditionals and loops, a missing one is an invalid argument."""
        try:
            handle = ctx.instantiate(self.attrs["f"], self.attrs.get("executor_type", ""))
        except NotFoundError as error:
            if ctx.function_library.library.find(self.attrs["f"].name) is not None:
                raise  # what is missing is something else
            raise InvalidArgumentError(error.message, hint=error.hint) from None
        self.set_outputs(ctx, ctx.call_function(handle, _inputs(ctx, "args")))


@kernel("SymbolicGradient")
class SymbolicGradientOp(_Functional):
    """Kernel that calls the gradient of a function: arguments and gradients of results give gradients of arguments."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the gradient, which is derived from the function's body at the first call."""
        handle = ctx.function_library.instantiate_gradient(self.attrs["f"])
        self.set_outputs(ctx, ctx.call_function(handle, _inputs(ctx, "input")))


@kernel("RemoteCall")
class RemoteCallOp(_Functional):
    """Kernel that calls a function on a device of this process."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Check the device name and call the function locally."""
        target = ctx.input(0)
        ctx.require(target.ndim == 0, f"target must be a scalar, but its shape is {list(target.shape)}")
        ctx.function_library.engine.find_device(target[()].decode("utf-8", "surrogateescape"))
        self.set_outputs(ctx, self.call(ctx, self.attrs["f"], _inputs(ctx, "args")))


@kernel("MapDefun")
class MapDefunOp(_Functional):
    """Kernel that calls a function on each slice of its arguments."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function per row and stack the results; without rows, shapes come from ``output_shapes``."""
        arrays, captured = _inputs(ctx, "arguments"), _inputs(ctx, "captured_inputs")
        sizes = {a.shape[:1] for a in arrays}
        ctx.require(() not in sizes, "an argument is a scalar, which has no rows to map over")
        ctx.require(len(sizes) == 1, f"arguments must have the same number of rows; they have {sorted(sizes)}")
        rows = [
            self.call(ctx, self.attrs["f"], [*(a[k, ...] for a in arrays), *captured])
            for k in range(arrays[0].shape[0])
        ]
        for k in range(ctx.num_outputs):
            ctx.set_output(k, self._stack(ctx, [row[k] for row in rows], k))

    def _stack(self, ctx: OpKernelContext, values: list[Array], index: int) -> Array:
        shape, dtype = self.attrs["output_shapes"][index], self.output_types[index]
        if not values:
            ctx.require(shape.is_fully_defined, f"output {index} has no rows, and its shape {shape} is not known")
            return np.empty((0, *shape.as_list()), dtype.numpy)
        ctx.require(len({v.shape for v in values}) == 1, f"output {index} has rows of different shapes")
        return np.stack(values)


@array_kernel("FakeParam", attrs=("dtype", "shape"))
def _fake_param(dtype: DataType, shape: Any) -> Array:
    """Return a placeholder for a value that is never read; unknown sizes become 0."""
    sizes = [d or 0 for d in shape.dims or ()]
    return np.broadcast_to(np.zeros((), dtype.numpy), sizes)


@kernel("DeviceIndex")
def _device_index(ctx: OpKernelContext) -> None:
    """Output the index of this device's type in a list, or the list's length if it is missing."""
    names: tuple[str, ...] = ctx.attr("device_names")
    kind = ctx.device.device_type
    ctx.set_output(0, np.array(names.index(kind) if kind in names else len(names), np.int32))
