"""Calls of library functions from compiled code."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InternalError, InvalidArgumentError
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult, Output
from cyxla.tf2xla.lib.dynamic_sizes import set_dynamic_size, split_dynamic
from cyxla.tf2xla.lib.tensor_list import XlaTensorList
from cyxla.tf2xla.xla_context import XlaContext
from cyxla.tf2xla.xla_expression import ExpressionKind, XlaExpression
from cyxla.tf2xla.xla_resource import XlaResource
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def parts_of(context: XlaContext, expression: XlaExpression) -> list[XlaOp]:
    """Return the instructions of a value as operands of a computation."""
    if expression.kind is ExpressionKind.RESOURCE:
        resource: XlaResource = expression.value
        return resource.parts()
    if expression.kind is ExpressionKind.TENSOR_LIST:
        tensor_list: XlaTensorList = expression.value
        return tensor_list.parts()
    padded, sizes = split_dynamic(expression.as_xla_op(context.builder))
    return [padded, *(sizes[d] for d in sorted(sizes))]


def dynamic_dimensions(expression: XlaExpression) -> tuple[int, ...]:
    """Return the dimensions of an array whose sizes are known only at run time."""
    if expression.kind is not ExpressionKind.XLA_OP:
        return ()
    return tuple(d for d, flag in enumerate(expression.value.shape.dynamic) if flag)


def argument_of(context: XlaContext, expression: XlaExpression, *, must_be_constant: bool, keep: bool) -> Argument:
    """Describe a value as an argument of a function.

    Parameters
    ----------
    must_be_constant : bool
        True if the function needs the value at compile time.
    keep : bool
        True if a constant remains a constant inside the function.

    Raises
    ------
    InvalidArgumentError
        The function needs a value that is not known at compile time.
    """
    if expression.kind is ExpressionKind.RESOURCE:
        return resource_argument(expression.value)
    if expression.kind is ExpressionKind.TENSOR_LIST:
        tensor_list: XlaTensorList = expression.value
        shape = UNKNOWN if tensor_list.element_shape is None else TensorShape(tensor_list.element_shape)
        has_buffer = tensor_list.buffer is not None
        dtype, size, inner = tensor_list.kind
        return Argument(ArgumentKind.TENSOR_LIST, dtype, shape, size=size, initialized=has_buffer, inner_size=inner)
    value = context.constant_value(expression) if must_be_constant or (keep and expression.is_constant) else None
    if value is None and must_be_constant:
        raise InvalidArgumentError("an argument of a function must be a compile-time constant, but depends on data")
    shape = TensorShape(expression.shape)
    if value is not None:
        return Argument(ArgumentKind.CONSTANT, expression.dtype, shape, value)
    return Argument(ArgumentKind.PARAMETER, expression.dtype, shape, dynamic=dynamic_dimensions(expression))


def resource_argument(resource: XlaResource) -> Argument:
    """Describe a resource as an argument of a function."""
    return Argument(
        ArgumentKind.RESOURCE,
        resource.dtype,
        resource.shape,
        resource_kind=resource.kind,
        initialized=resource.is_initialized,
        size=resource.max_array_size,
        gradients=tuple(sorted(resource.gradients)),
        name=resource.name,
    )


def arguments_of(
    context: XlaContext, inputs: Sequence[XlaExpression], constant_indices: Collection[int], *, keep: bool
) -> list[Argument]:
    """Describe all values of a call as arguments; see `argument_of`."""
    return [argument_of(context, x, must_be_constant=i in constant_indices, keep=keep) for i, x in enumerate(inputs)]


def call_function(context: XlaContext, function: NameAttrList, inputs: Sequence[XlaExpression]) -> list[XlaExpression]:
    """Call a function, which is compiled once per signature."""
    compiler = context.compiler
    args = arguments_of(context, inputs, compiler.analysis.function_constants(function), keep=True)
    result = compiler.compile_function(function, args)
    operands = operands_of(context, inputs, result)
    call = xla.call(context.builder, result.computation, operands)
    parts = tuple_elements(call)
    apply_updates(result, inputs, parts)
    if result.size_checks:
        context.size_checks.add(result.size_checks, parts[-1])
    return [expression_of(output, inputs, parts) for output in result.outputs]


def operands_of(context: XlaContext, inputs: Sequence[XlaExpression], result: CompilationResult) -> list[XlaOp]:
    """Return the operands of a computation."""
    operands: list[XlaOp] = []
    for i in dict.fromkeys(result.input_mapping):
        operands += parts_of(context, inputs[i])
    if len(operands) != len(result.input_mapping):
        raise InternalError(f"{result.name} takes {len(result.input_mapping)} operands; there are {len(operands)}")
    return operands


def tuple_elements(tuple_op: XlaOp) -> list[XlaOp]:
    """Return the elements of a tuple."""
    return [xla.get_tuple_element(tuple_op, i) for i in range(len(tuple_op.shape.elements))]


def expression_of(output: Output, inputs: Sequence[XlaExpression], parts: Sequence[XlaOp]) -> XlaExpression:
    """Wrap a result of a computation as an expression of the caller."""
    if output.input_index >= 0:
        return inputs[output.input_index]
    if output.value is not None:
        return XlaExpression.constant(output.value, output.dtype)
    if output.tensor_list is not None:
        return XlaExpression.tensor_list(XlaTensorList.of(output.tensor_list, [parts[k] for k in output.tuple_indices]))
    return XlaExpression.of(joined([parts[k] for k in output.tuple_indices], output.dynamic), output.dtype)


def joined(parts: Sequence[XlaOp], dynamic: Sequence[int]) -> XlaOp:
    """Return an array of which the parts are the padded array and its dynamic sizes."""
    value, *sizes = parts
    for dimension, size in zip(dynamic, sizes, strict=True):
        value = set_dynamic_size(value, size, dimension)
    return value


def apply_updates(result: CompilationResult, inputs: Sequence[XlaExpression], parts: Sequence[XlaOp]) -> None:
    """Assign the values after a call to the resources of the caller."""
    for update in result.resource_updates:
        resource: XlaResource = inputs[update.input_index].value
        if resource.dtype is DataType.DT_INVALID or not resource.is_initialized:
            resource.dtype = update.dtype
        resource.shape = update.shape
        for source in update.gradients:
            gradient_of(resource, source)
        values = [parts[k] for k in update.tuple_indices]
        if update.modified:
            resource.set_parts(values)


def gradient_of(resource: XlaResource, source: str) -> XlaResource:
    """Return the gradients of a tensor array that a call created."""
    if source not in resource.gradients:
        gradient = XlaResource(resource.kind, -1, f"{resource.name}@{source}", resource.dtype, resource.shape)
        gradient.max_array_size = resource.max_array_size
        resource.gradients[source] = gradient
    return resource.gradients[source]
