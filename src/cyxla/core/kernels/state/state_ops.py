"""Reference variables, and scatters into variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.types import INDEX, NUMBER
from cyxla.core.framework.variable import Ref, Var
from cyxla.core.kernels.lib.scatter import scatter, scatter_nd
from cyxla.core.kernels.lib.variables import assign_slice, initialized
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError

Array = np.ndarray[Any, Any]


class LegacyVar(Var):
    """Variable that is passed by reference; its name does not clash with resource variables."""


@kernel(("Variable", "VariableV2"))
class Variable(OpKernel):
    """Kernel that outputs a reference to a variable, which is created at the first run."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._name = construction.get_attr("shared_name") or self.name
        self._container = construction.get_attr("container")
        self._dtype = construction.get_attr("dtype")

    def compute(self, ctx: OpKernelContext) -> None:
        """Output the reference."""
        variable = ctx.resource_manager.lookup_or_create(
            self._container, self._name, LegacyVar, lambda: LegacyVar(self._dtype, name=self.name)
        )
        ctx.set_output_ref(0, variable)


class TemporaryVar(LegacyVar):
    """Variable that lives for one step."""


@kernel("TemporaryVariable")
def temporary_variable(ctx: OpKernelContext) -> None:
    """Create a variable of one step, with unspecified contents, and output a reference to it."""
    name = f"{ctx.attr('var_name') or ctx.op_kernel.name}"
    dtype, shape = ctx.attr("dtype"), ctx.attr("shape")
    ctx.require(shape.is_fully_defined, f"the shape {shape} of temporary variable '{name}' is not fully defined")
    variable = TemporaryVar(dtype, np.zeros(shape.as_list(), dtype.numpy), name)
    ctx.resource_manager.create(ctx.step_container.name, name, variable)
    ctx.set_output_ref(0, variable)


@kernel("DestroyTemporaryVariable")
def destroy_temporary_variable(ctx: OpKernelContext) -> None:
    """Delete a temporary variable and output its last value."""
    value = _value(ctx.mutable_input(0))
    ctx.resource_manager.delete(ctx.step_container.name, ctx.attr("var_name"), TemporaryVar)
    ctx.set_output(0, value)


@kernel("IsVariableInitialized")
def is_variable_initialized(ctx: OpKernelContext) -> None:
    """Return whether the variable has a value."""
    ctx.set_output(0, np.array(ctx.mutable_input(0).is_initialized))


@kernel("Assign")
def assign(ctx: OpKernelContext) -> None:
    """Assign a value to the variable."""
    ref, value = ctx.mutable_input(0), ctx.input(1)
    with ref.lock:
        old = ref.value
        if ctx.attr("validate_shape") and old is not None:
            _check_shapes(old, value)
        ref.assign(value)
    ctx.forward_ref_input_to_ref_output(0, 0)


_UPDATE = {"AssignAdd": np.add, "AssignSub": np.subtract}


@kernel(tuple(_UPDATE), types={"T": NUMBER})
def assign_update(ctx: OpKernelContext) -> None:
    """Add the value to the variable, or subtract it."""
    ref, value = ctx.mutable_input(0), ctx.input(1)
    with ref.lock, np.errstate(all="ignore"):
        old = _value(ref)
        _check_shapes(old, value)
        _UPDATE[ctx.op_kernel.type_string](old, value, out=ref.writable())
    ctx.forward_ref_input_to_ref_output(0, 0)


def _check_shapes(old: Array, value: Array) -> None:
    if old.shape != value.shape:
        raise InvalidArgumentError(
            f"the variable has the shape {list(old.shape)}, the value {list(value.shape)}",
            hint="Assign with validate_shape=false lets a variable change its shape",
        )


def _value(ref: Ref) -> Array:
    if ref.value is None:
        raise FailedPreconditionError(f"the variable {ref.name} has no value yet", hint="run its initializer first")
    return ref.value


@kernel("StridedSliceAssign")
def strided_slice_assign(ctx: OpKernelContext) -> None:
    """Assign a value to a slice of the variable."""
    ref = ctx.mutable_input(0)
    with ref.lock:
        assign_slice(ctx, ref, _value(ref).shape)
    ctx.forward_ref_input_to_ref_output(0, 0)


# Scatters: the suffix of an op's name, such as Add in "ResourceScatterAdd", is its update operation.

_ROWS = ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
_SLICES = ("Update", "Add", "Sub")


def _update_name(ctx: OpKernelContext) -> str:
    name = ctx.op_kernel.type_string
    return name[name.rindex("Scatter") + 7 :].removeprefix("Nd").lower()


def _resource_scatter(ctx: OpKernelContext) -> None:
    variable = ctx.lookup_resource(0, Var)
    with variable.lock:
        initialized(variable, ctx, 0)
        scatter(variable.writable(), ctx.input(1), ctx.input(2), _update_name(ctx))


def _resource_scatter_nd(ctx: OpKernelContext) -> None:
    variable = ctx.lookup_resource(0, Var)
    with variable.lock:
        initialized(variable, ctx, 0)
        scatter_nd(variable.writable(), ctx.input(1), ctx.input(2), _update_name(ctx), _policy(ctx))


def _ref_scatter(ctx: OpKernelContext) -> None:
    ref = ctx.mutable_input(0)
    with ref.lock:
        _value(ref)
        scatter(ref.writable(), ctx.input(1), ctx.input(2), _update_name(ctx))
    ctx.forward_ref_input_to_ref_output(0, 0)


def _ref_scatter_nd(ctx: OpKernelContext) -> None:
    ref = ctx.mutable_input(0)
    with ref.lock:
        _value(ref)
        scatter_nd(ref.writable(), ctx.input(1), ctx.input(2), _update_name(ctx), _policy(ctx))
    ctx.forward_ref_input_to_ref_output(0, 0)


def _policy(ctx: OpKernelContext) -> str:
    policy = str(ctx.attr("bad_indices_policy"))
    ctx.require(policy in ("", "DEFAULT", "ERROR", "IGNORE"), f"Unknown bad_indices_policy: {policy}")
    return policy


kernel("ResourceScatterUpdate", types={"Tindices": INDEX})(_resource_scatter)
kernel([f"ResourceScatter{how}" for how in _ROWS[1:]], types={"dtype": NUMBER, "Tindices": INDEX})(_resource_scatter)
kernel([f"ResourceScatterNd{how}" for how in _SLICES], types={"Tindices": INDEX})(_resource_scatter_nd)
kernel("ScatterUpdate", types={"Tindices": INDEX})(_ref_scatter)
kernel(("ScatterAdd", "ScatterSub"), types={"T": NUMBER, "Tindices": INDEX})(_ref_scatter)
kernel("ScatterNdUpdate", types={"Tindices": INDEX})(_ref_scatter_nd)


@kernel("ResourceCountUpTo", types={"T": INDEX})
def resource_count_up_to(ctx: OpKernelContext) -> None:
    """Output the value and increment the variable, up to a limit."""
    variable, limit = ctx.lookup_resource(0, Var), ctx.attr("limit")
    with variable.lock:
        old = initialized(variable, ctx, 0)
        ctx.require(old.ndim == 0, f"input is not a scalar: {list(old.shape)}")
        ctx.require(int(old) < limit, f"Reached limit of {limit}", error=OutOfRangeError)
        variable.assign(np.array(int(old) + 1, old.dtype), owned=True)
    ctx.set_output(0, old)
