"""XLA kernels, which read symbolic inputs and set the instructions of their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np

from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError
from cyxla.tf2xla.lib.bounded_shapes import any_dynamic, compared_sizes, rule_of
from cyxla.tf2xla.lib.dynamic_sizes import require_static
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.tf2xla.lib.tensor_list import XlaTensorList
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_context import XlaContext
from cyxla.tf2xla.xla_expression import ExpressionKind, XlaExpression
from cyxla.tf2xla.xla_op_registry import XlaOpRegistrationBuilder, XlaOpRegistry, register_xla_op
from cyxla.tf2xla.xla_resource import XlaResource
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp

Array = np.ndarray[Any, Any]
Key = int | str
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


class XlaOpKernelContext:
    """Context of an XLA kernel, with expressions in place of arrays.

    Parameters
    ----------
    kernel : XlaOpKernel
    inputs : sequence of XlaExpression
    xla : XlaContext
        Compilation of the graph.
    """

    __slots__ = ("_inputs", "kernel", "outputs", "xla")

    def __init__(self, kernel: XlaOpKernel, inputs: Sequence[XlaExpression], xla: XlaContext) -> None:
        self.kernel, self._inputs, self.xla = kernel, inputs, xla
        self.outputs: list[XlaExpression | None] = [None] * len(kernel.output_types)

    # The node

    @property
    def builder(self) -> XlaBuilder:
        """Builder of the instructions."""
        return self.xla.builder

    @property
    def num_inputs(self) -> int:
        """Number of inputs, with lists flattened."""
        return len(self._inputs)

    @property
    def num_outputs(self) -> int:
        """Number of outputs, with lists flattened."""
        return len(self.outputs)

    def attr(self, name: str) -> Any:
        """Return an attribute as a Python value.

        Raises
        ------
        InvalidArgumentError
            The node has no such attribute.
        """
        if name not in self.kernel.attrs:
            raise InvalidArgumentError(f"{self.kernel.type_string} has no attribute {name!r}")
        return self.kernel.attrs[name]

    def input_index(self, key: Key) -> int:
        """Return the index of a single input.

        Raises
        ------
        InvalidArgumentError
            The input does not exist, or is a list.
        """
        return self._index(key, self.kernel.props.input_ranges, self.kernel.props.input_lists, len(self._inputs))

    def output_index(self, key: Key) -> int:
        """Return the index of a single output; raises as `input_index`."""
        return self._index(key, self.kernel.props.output_ranges, self.kernel.props.output_lists, len(self.outputs))

    def _index(self, key: Key, ranges: Any, lists: frozenset[str], count: int) -> int:
        if isinstance(key, int):
            if not -count <= key < count:
                raise InvalidArgumentError(f"{self.kernel.type_string} has {count} values, none at {key}")
            return key % count
        if key not in ranges:
            raise InvalidArgumentError(f"{self.kernel.type_string} has no {key!r}", hint=f"it has {', '.join(ranges)}")
        if key in lists:
            raise InvalidArgumentError(f"{key!r} of {self.kernel.type_string} is a list")
        start: int = ranges[key].start
        return start

    # Inputs

    def input_expression(self, key: Key) -> XlaExpression:
        """Return the expression of an input."""
        return self._inputs[self.input_index(key)]

    def input(self, key: Key) -> XlaOp:
        """Return an input as an instruction.

        Raises
        ------
        UnimplementedError
            The input has a dynamic size.
        """
        return self._require_static(self.dynamic_input(key))

    def dynamic_input(self, key: Key) -> XlaOp:
        """Return an input as an instruction, with static or dynamic sizes; see `dynamic_sizes`."""
        return self.input_expression(key).as_xla_op(self.builder)

    def input_list(self, name: str) -> list[XlaOp]:
        """Return all values of a list input as instructions."""
        return [self.input(i) for i in self._range(name)]

    def _require_static(self, op: XlaOp) -> XlaOp:
        return require_static(op, f"an input of {self.kernel.type_string}")

    def _range(self, name: str) -> range:
        ranges = self.kernel.props.input_ranges
        if name not in ranges:
            raise InvalidArgumentError(f"{self.kernel.type_string} has no input {name!r}")
        return ranges[name]

    def input_type(self, key: Key) -> DataType:
        """Return the type of an input."""
        return self.kernel.input_types[self.input_index(key)]

    def input_shape(self, key: Key) -> tuple[int, ...]:
        """Return the dimensions of an input; raises as `input`."""
        expression = self.input_expression(key)
        if isinstance(expression.value, XlaOp):
            self._require_static(expression.value)
        return expression.shape

    def input_list_shapes(self, name: str) -> list[tuple[int, ...]]:
        """Return the dimensions of the values of a list input."""
        return [self.input_shape(i) for i in self._range(name)]

    # Compile-time constant inputs

    def constant_input(self, key: Key) -> Array:
        """Return the value of a compile-time constant input.

        Raises
        ------
        InvalidArgumentError
            The value depends on run-time data.
        """
        index = self.input_index(key)
        value = self.xla.constant_value(self._inputs[index])
        if value is None:
            raise InvalidArgumentError(
                f"input {key!r} of {self.kernel.type_string} must be a compile-time constant, but depends on data",
                where=f"node '{self.kernel.name}'",
                hint="feed it as a constant, or compute it from constants and shapes",
            )
        return value

    def constant_input_as_int_vector(self, key: Key) -> list[int]:
        """Return the numbers of a constant vector.

        Raises
        ------
        InvalidArgumentError
            The input is not a vector, or not a constant.
        """
        value = self.constant_input(key)
        if value.ndim != 1:
            raise InvalidArgumentError(f"{key!r} must be a vector; its shape is {list(value.shape)}")
        return [int(n) for n in value.tolist()]

    def constant_input_as_int_scalar(self, key: Key) -> int:
        """Return the number of a constant scalar; raises as `constant_input_as_int_vector`."""
        value = self.constant_input(key)
        if value.ndim:
            raise InvalidArgumentError(f"{key!r} must be a scalar; its shape is {list(value.shape)}")
        return int(value)

    def constant_input_as_shape(self, key: Key) -> tuple[int, ...]:
        """Return a constant vector as sizes; raises as `constant_input_as_int_vector`, and for negative ones."""
        sizes = self.constant_input_as_int_vector(key)
        if any(n < 0 for n in sizes):
            raise InvalidArgumentError(f"{key!r} must not hold negative sizes: {sizes}")
        return tuple(sizes)

    # Resources

    def input_resource(self, key: Key) -> XlaResource:
        """Return the resource of an input.

        Raises
        ------
        InvalidArgumentError
            The input is not a resource.
        """
        expression = self.input_expression(key)
        if expression.kind is not ExpressionKind.RESOURCE:
            raise InvalidArgumentError(f"input {key!r} of {self.kernel.type_string} is not a resource")
        resource: XlaResource = expression.value
        return resource

    def read_variable_input(self, key: Key, dtype: DataType) -> XlaOp:
        """Return the value of a variable.

        Raises
        ------
        FailedPreconditionError
            The variable has no value yet.
        InvalidArgumentError
            The variable has another type.
        """
        resource = self.input_resource(key)
        value = resource.read()
        if resource.dtype != dtype:
            raise InvalidArgumentError(f"the variable {resource.name!r} holds {resource.dtype}, not {dtype}")
        return value

    def assign_variable(self, key: Key, dtype: DataType, value: XlaOp) -> None:
        """Assign a value to a variable."""
        resource = self.input_resource(key)
        resource.set_type_and_shape(dtype, TensorShape(value.shape.dims))
        resource.value = value

    def input_tensor_list(self, key: Key) -> XlaTensorList:
        """Return the tensor list of an input.

        Raises
        ------
        InvalidArgumentError
            The input is not a tensor list.
        """
        expression = self.input_expression(key)
        if expression.kind is not ExpressionKind.TENSOR_LIST:
            raise InvalidArgumentError(f"input {key!r} of {self.kernel.type_string} is not a tensor list")
        tensor_list: XlaTensorList = expression.value
        return tensor_list

    # Outputs

    def expected_output_dtype(self, key: Key) -> DataType:
        """Return the declared type of an output."""
        return self.kernel.output_types[self.output_index(key)]

    def set_output(self, key: Key, op: XlaOp) -> None:
        """Set an output to an instruction.

        Raises
        ------
        InternalError
            The instruction has another type than declared.
        """
        index = self.output_index(key)
        dtype = self.kernel.output_types[index]
        if self.builder.first_error is not None:
            raise self.builder.first_error
        if op.shape.is_array and op.shape.dtype != element_type(dtype):
            raise InternalError(f"output {key!r} of {self.kernel.type_string} is {op.shape}, but declared {dtype}")
        self.outputs[index] = XlaExpression.of(op, dtype)

    def set_constant_output(self, key: Key, value: Any) -> None:
        """Set an output to a compile-time constant."""
        index = self.output_index(key)
        dtype = self.kernel.output_types[index]
        self.outputs[index] = XlaExpression.constant(np.asarray(value, dtype.numpy), dtype)

    def set_output_expression(self, key: Key, expression: XlaExpression) -> None:
        """Set an output to an expression."""
        self.outputs[self.output_index(key)] = expression

    def set_resource_output(self, key: Key, resource: XlaResource) -> None:
        """Set an output to a resource."""
        self.set_output_expression(key, XlaExpression.resource(resource))

    def set_tensor_list_output(self, key: Key, value: XlaTensorList) -> None:
        """Set an output to a tensor list."""
        self.set_output_expression(key, XlaExpression.tensor_list(value))

    def set_results(self, results: Any) -> None:
        """Set all outputs from the results of a kernel function: instructions, arrays, expressions, tensor lists."""
        flat = list(_leaves(results))
        if len(flat) != len(self.outputs):
            raise InternalError(f"{self.kernel.type_string} has {len(self.outputs)} outputs; it made {len(flat)}")
        for i, value in enumerate(flat):
            if isinstance(value, XlaOp):
                self.set_output(i, value)
            elif isinstance(value, XlaExpression):
                self.set_output_expression(i, value)
            elif isinstance(value, XlaTensorList):
                self.set_tensor_list_output(i, value)
            else:
                self.set_constant_output(i, value)

    def require(self, cond: object, message: str, error: type[OpError] = InvalidArgumentError, hint: str = "") -> None:
        """Raise `error` unless the condition holds."""
        if not cond:
            raise error(message, hint=hint)

    def allocate_output(self, *_: Any) -> None:
        """Raise: outputs of XLA kernels are instructions, not memory."""
        raise InternalError("an XLA kernel has no memory to allocate", hint="use set_output")

    allocate_temp = allocate_output


def checked(ctx: XlaOpKernelContext, result: R, checks: Iterable[SizePair]) -> R:
    """Return a result after adding checks of sizes to the program."""
    for check in checks:
        ctx.xla.size_checks.add_pair(ctx.kernel.name, ctx.kernel.type_string, check)
    return result


def _leaves(results: Any) -> Iterable[Any]:
    if isinstance(results, (tuple, list)):
        for part in results:
            yield from _leaves(part)
    else:
        yield results


class XlaOpKernel(OpKernel):
    """Base of XLA kernels, whose subclasses implement `compile` instead of `compute`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "compute" in cls.__dict__:
            raise InvalidArgumentError(f"{cls.__name__} has compute: an XLA kernel has compile instead")

    @property
    def implementation(self) -> Callable[..., Any]:
        """The class or function that emits the instructions."""
        return type(self)

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Read symbolic inputs from the context, and set instructions as outputs."""
        raise UnimplementedError(f"{type(self).__name__} has no compile")

    def compute(self, ctx: OpKernelContext) -> None:
        """Raise: graphs are not executed while compiling."""
        raise UnimplementedError(f"{self.type_string} on {self.device.device_type} only compiles", node=self.name)


class FunctionXlaKernel(XlaOpKernel):
    """Kernel whose `compile` is a function of the context, which may return the outputs."""

    def __init__(self, construction: OpKernelConstruction, function: Callable[[XlaOpKernelContext], Any]) -> None:
        super().__init__(construction)
        self._function = function

    @property
    def implementation(self) -> Callable[..., Any]:
        """The function that emits the instructions."""
        return self._function

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Call the function and set its results as outputs."""
        results = self._function(ctx)
        if results is not None:
            ctx.set_results(results)


class Lowering(XlaOpKernel):
    """Kernel that is a function of instructions; see `lowering`."""

    def __init__(
        self,
        construction: OpKernelConstruction,
        function: Callable[..., Any],
        attrs: tuple[str, ...],
        const: tuple[str, ...],
    ) -> None:
        super().__init__(construction)
        self._function, self._const = function, frozenset(const)
        self._attrs = {name: construction.get_attr(name) for name in attrs}

    @property
    def implementation(self) -> Callable[..., Any]:
        """The function that emits the instructions."""
        return self._function

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Call the function with instructions and constants, and set its results as outputs."""
        props, rule = self.props, rule_of(self.type_string)
        args: list[Any] = []
        for name, indices in props.input_ranges.items():
            get = ctx.constant_input if name in self._const else ctx.dynamic_input if rule else ctx.input
            values = [get(i) for i in indices]
            args.append(values if name in props.input_lists else values[0])
        if rule is not None and any_dynamic(args):
            for pair in compared_sizes(self.type_string, args, self._attrs):
                ctx.xla.size_checks.add_pair(self.name, self.type_string, pair)
            ctx.set_results(rule(self._function, args, self._attrs))
        else:
            ctx.set_results(self._function(*args, **self._attrs))


# ------------------------------------------------------------------------------------------------------ registration


def _builder(
    op: str,
    const: Sequence[str],
    types: Any,
    device: str | Sequence[str],
    compilation_only: bool,
    resource: bool,
    variant: bool,
    string: bool,
    metadata: bool,
    label: str,
) -> XlaOpRegistrationBuilder:
    builder = XlaOpRegistrationBuilder(op).label(label)
    devices = (device,) if isinstance(device, str) else tuple(device)
    if devices:
        builder.device(*devices)
    for attr, allowed in (types or {}).items():
        builder.type_constraint(attr, allowed)
    for name in const:
        builder.compile_time_constant_input(name)
    flags = (
        (compilation_only, builder.compilation_only),
        (resource, builder.allow_resource_types),
        (variant, builder.allow_variant_types),
        (string, builder.allow_string_type),
        (metadata, builder.is_metadata_op),
    )
    for enabled, setter in flags:
        if enabled:
            setter()
    return builder


def xla_kernel(
    op: str | Sequence[str],
    *,
    const: Sequence[str] = (),
    types: Any = None,
    device: str | Sequence[str] = (),
    compilation_only: bool = False,
    resource: bool = False,
    variant: bool = False,
    string: bool = False,
    metadata: bool = False,
    label: str = "",
    registry: XlaOpRegistry | None = None,
) -> Callable[[F], F]:
    """Register a function of the context, or a subclass of `XlaOpKernel`, as the XLA kernel of one or more ops.

    Parameters
    ----------
    op : str or sequence of str
        Names of the ops.
    const : sequence of str
        Names of the inputs that must be compile-time constants.
    types : dict of tuples of DataType, optional
        Allowed types per type attribute; by default those allowed by the op and the backend.
    device : str or sequence of str
        Compilation devices; all by default.
    compilation_only, resource, variant, string, metadata, label
        See `XlaOpRegistrationBuilder`.

    Examples
    --------
    >>> from cyxla.tf2xla.xla_op_registry import XlaOpRegistry
    >>> @xla_kernel("Relu", registry=XlaOpRegistry())
    ... def relu(ctx):
    ...     return xla.max(ctx.input(0), 0)
    """

    def decorate(target: F) -> F:
        factory: Callable[..., Any] = target
        if not isinstance(target, type):
            factory = partial(FunctionXlaKernel, function=target)
        flags = (compilation_only, resource, variant, string, metadata, label)
        for name in (op,) if isinstance(op, str) else op:
            register_xla_op(_builder(name, const, types, device, *flags), factory, registry)
        return target

    return decorate


@overload
def lowering(
    op: str | Sequence[str],
    function: None = None,
    *,
    attrs: Sequence[str] = (),
    const: Sequence[str] = (),
    types: Any = None,
    device: str | Sequence[str] = (),
    registry: XlaOpRegistry | None = None,
) -> Callable[[F], F]: ...
@overload
def lowering(
    op: str | Sequence[str],
    function: F,
    *,
    attrs: Sequence[str] = (),
    const: Sequence[str] = (),
    types: Any = None,
    device: str | Sequence[str] = (),
    registry: XlaOpRegistry | None = None,
) -> F: ...
def lowering(
    op: str | Sequence[str],
    function: Callable[..., Any] | None = None,
    *,
    attrs: Sequence[str] = (),
    const: Sequence[str] = (),
    types: Any = None,
    device: str | Sequence[str] = (),
    registry: XlaOpRegistry | None = None,
) -> Any:
    """Register a function of instructions as an XLA kernel; without `function`, return a decorator.

    Parameters
    ----------
    op : str or sequence of str
        Names of the ops.
    function : callable
        Function ``function(*inputs, **attrs)`` that returns an XlaOp, an array, or a tuple or list of these. List
        inputs are passed as lists, inputs of `const` as arrays, others as `XlaOp`. A returned array is a constant.
    attrs : sequence of str
        Names of the attributes passed as keyword arguments; types are passed as `DataType`.
    const, types, device
        See `xla_kernel`.
    """

    def decorate(target: F) -> F:
        factory = partial(Lowering, function=target, attrs=tuple(attrs), const=tuple(const))
        for name in (op,) if isinstance(op, str) else op:
            builder = _builder(name, const, types, device, False, False, False, False, False, "")
            register_xla_op(builder, factory, registry)
        return target

    return decorate if function is None else decorate(function)
