"""Attributes and operands that parametrise an HLO instruction: messages, scalar computations, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.tensor_shape import SCALAR
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.tf2xla.argument import Argument, ArgumentKind
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_compiler import CompileOptions
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.proto.schema import messages, raw

_NO_CONSTANT_RESULTS = CompileOptions(resolve_constants=False)
_PRECISIONS = ("default", "high", "highest", "packed_nibble")


def message(ctx: XlaOpKernelContext, attr: str, kind: str) -> Any:
    """Parse an attribute that holds a serialised message.

    Raises
    ------
    InvalidArgumentError
        The attribute is not a message of that kind.
    """
    parsed = messages()[kind]()
    try:
        parsed.ParseFromString(raw(ctx.attr(attr)))
    except Exception:  # the error class is not public in all versions of protobuf
        raise InvalidArgumentError(f"{attr} of {ctx.kernel.type_string} is not a {kind}") from None
    return parsed


def fields_of(parsed: Any, *names: str) -> dict[str, Any]:
    """Return fields of a message as keyword arguments: numbers and tuples of numbers."""
    values = {name: getattr(parsed, name) for name in names}
    return {name: v if isinstance(v, (int, bool)) else tuple(v) for name, v in values.items()}


def precision(ctx: XlaOpKernelContext) -> tuple[str, ...]:
    """Return the precision of each operand of a product; raises as `message`, and for unknown values."""
    numbers = message(ctx, "precision_config", "PrecisionConfig").operand_precision
    if any(not 0 <= n < len(_PRECISIONS) for n in numbers):
        raise InvalidArgumentError(f"precision_config of {ctx.kernel.type_string} contains an unknown value")
    return tuple(_PRECISIONS[n] for n in numbers)


def preferred_type(ctx: XlaOpKernelContext) -> ElementType | None:
    """Return the preferred result type, or None if the op has no such attribute."""
    attr = ctx.kernel.attrs.get("preferred_element_type")
    return None if attr is None else element_type(attr)


def computation_of(
    ctx: XlaOpKernelContext, attr: str, types: Sequence[DataType], *, single: bool = True
) -> XlaComputation:
    """Compile a function of scalars to a computation that returns its result, or a tuple of results unless `single`."""
    function: NameAttrList = ctx.attr(attr)
    args = [Argument(ArgumentKind.PARAMETER, t, SCALAR) for t in types]
    compiled = ctx.xla.compiler.compile_function(function, args, _NO_CONSTANT_RESULTS)
    if compiled.resource_updates or (single and len(compiled.outputs) != 1):
        raise InvalidArgumentError(f"{attr} {function.name!r} must return one value, and have no side effects")
    if compiled.size_checks:
        raise UnimplementedError(f"{attr} {function.name!r} compares sizes that are known only at run time")
    builder = XlaBuilder(f"{compiled.computation.name}_scalars")
    parameters = [xla.parameter(builder, i, Shape.array(element_type(t))) for i, t in enumerate(types)]
    call = xla.call(builder, compiled.computation, [parameters[i] for i in compiled.input_mapping])
    results = [xla.get_tuple_element(call, output.tuple_indices[0]) for output in compiled.outputs]
    return builder.build(results[0] if single else xla.tuple_(builder, results))


def computation_of_two(ctx: XlaOpKernelContext, attr: str, dtype: DataType) -> XlaComputation:
    """Compile a function of two scalars of one type to a computation."""
    return computation_of(ctx, attr, (dtype, dtype))


def int_vectors(ctx: XlaOpKernelContext, *names: str) -> list[list[int]]:
    """Return operands that are constant integer vectors."""
    return [ctx.constant_input_as_int_vector(name) for name in names]


def padding_pairs(ctx: XlaOpKernelContext, name: str) -> list[tuple[int, int]]:
    """Return low and high padding of each dimension.

    Raises
    ------
    ShapeError
        The input does not have rows of two numbers.
    """
    value = ctx.constant_input(name)
    if value.ndim != 2 or value.shape[1] != 2:
        raise ShapeError(f"{name} must have rows of two numbers; its shape is {list(value.shape)}")
    return [(int(low), int(high)) for low, high in value.tolist()]
