"""XLA kernels of libraries in C, which give the text of a module or a C function to call."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from cyxla.core.framework.op_kernel import OpKernelConstruction
from cyxla.core.framework.plugins.context import NativeContext
from cyxla.core.framework.plugins.interface import OK, Shape, Tensor, text
from cyxla.core.framework.plugins.memory import NodeMemory, shape_of
from cyxla.core.framework.plugins.xla_kernels import XLA_KERNELS, NativeXlaKernelRow
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.errors import AlreadyExistsError, InternalError, InvalidArgumentError, OpError
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_op_kernel import XlaOpKernel, XlaOpKernelContext
from cyxla.tf2xla.xla_op_registry import XlaOpRegistrationBuilder, XlaOpRegistry
from cyxla.types import Shape as HloShape
from cyxla.xla.evaluator.targets import c_calls
from cyxla.xla.hlo import HloModule, parse_module
from cyxla.xla.hlo.builder import XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.stablehlo import is_stablehlo, read_stablehlo

_LOG = logging.getLogger("cyxla.plugins")


class EmitContext(NativeContext):
    """Context of the function `emit` of an XLA kernel.

    Attributes
    ----------
    results : list of XlaOp or None
        Outputs of the node, once they are emitted.
    """

    kind = "an XLA kernel"

    def __init__(self, ctx: XlaOpKernelContext, kernel: NativeXlaKernel) -> None:
        super().__init__(kernel.node, data=kernel.row.row.data)
        self._ctx, self._kernel = ctx, kernel
        self._operands = [ctx.input(i) for i in range(ctx.num_inputs)]
        self._input_shapes = [op.shape.dims for op in self._operands]
        self.struct.shapes = self.memory.array_of(Shape, [self.memory.shape(dims) for dims in self._input_shapes])
        self._set_shapes: dict[int, TensorShape] = {}
        self._inferred: list[TensorShape] | None = None
        self.results: list[XlaOp] | None = None

    def set_shape(self, index: int, rank: int, dims: Any) -> int:
        """Set the shape of an output."""
        self.output_type(index)
        self._set_shapes[index] = shape_of(rank, dims)
        return OK

    def constant_input(self, index: int, target: Any) -> int:
        """Store the value of an input; return 0 if it is unknown."""
        dtype = self.input_type(index)
        value = self._ctx.xla.constant_value(self._ctx.input_expression(index))
        if value is None:
            return 0
        target[0] = self.memory.tensor(value, dtype, f"input {index}")
        return 1

    def input_as_shape(self, index: int, target: Any) -> int:
        """Store the shape that an input holds."""
        value = Tensor()
        if not self.constant_input(index, [value]):
            raise InvalidArgumentError(f"the value of input {index} is not known at compile time")
        dims = self._ctx.constant_input_as_shape(index)
        target[0] = self.memory.shape(dims)
        return OK

    # Results

    def emit_module(self, module_text: bytes | None) -> int:
        """Emit a module in text form."""
        module = self._read(text(module_text))
        self._check_parameters(module)
        result = xla.call(self._ctx.builder, XlaComputation(module), self._operands)
        self._set_results(result)
        return OK

    def _read(self, module: str) -> HloModule:
        if is_stablehlo(module):
            return read_stablehlo(module, [op.shape for op in self._operands])
        return parse_module(module)

    def _check_parameters(self, module: HloModule) -> None:
        found = [(p.shape.dtype, p.shape.dims) if p.shape.is_array else None for p in module.parameters]
        expected = [(op.shape.dtype, op.shape.dims) for op in self._operands]
        if found != expected:
            shapes = ["(" + ", ".join(str(v.shape) for v in row) + ")" for row in (module.parameters, self._operands)]
            raise InvalidArgumentError(f"the module has the parameters {shapes[0]}, but the inputs are {shapes[1]}")

    def emit_call(
        self, target: bytes | None, function: int | None, opaque: int | None, opaque_bytes: int, side_effect: int
    ) -> int:
        """Emit a call of a C function."""
        name = text(target)
        if not name or not function:
            raise InvalidArgumentError("a call needs the name of a target, and a function")
        _register_target(name, function, self._kernel.row.library)
        config = _config(ctypes.string_at(opaque, opaque_bytes) if opaque and opaque_bytes else b"")
        shapes = [self._result_shape(k) for k in range(len(self.node.output_types))]
        shape = shapes[0] if len(shapes) == 1 else HloShape.tuple(shapes)
        builder, operands = self._ctx.builder, self._operands
        self._set_results(xla.custom_call(builder, name, operands, shape, config, has_side_effect=bool(side_effect)))
        return OK

    def _result_shape(self, index: int) -> HloShape:
        shape = self._set_shapes.get(index) or self._shapes()[index]
        if not shape.is_fully_defined:
            raise InvalidArgumentError(
                f"the shape of output {index} is not known: {shape}", hint="call cyxla_set_shape before"
            )
        return HloShape.array(element_type(self.node.output_types[index]), tuple(shape.as_list()))

    def _shapes(self) -> list[TensorShape]:
        """Return the shapes that the op's shape function gives."""
        if self._inferred is None:
            function, attrs = self._kernel.row.shape_function, self._kernel.props.node_def.attr
            values = [self._ctx.xla.constant_value(self._ctx.input_expression(i)) for i in range(self._ctx.num_inputs)]
            inference = InferenceContext(self.node.op_def, attrs, self._input_shapes, values)
            if function is not None:
                function.infer(inference, self.node)
            self._inferred = [inference.output(i) for i in range(inference.num_outputs)]
        return self._inferred

    def _set_results(self, result: XlaOp) -> None:
        is_tuple = result.shape.is_tuple
        parts = [xla.get_tuple_element(result, i) for i in range(len(result.shape.elements))] if is_tuple else [result]
        found = [(part.shape.dtype, part.shape.dims) if part.shape.is_array else None for part in parts]
        types = [element_type(dtype) for dtype in self.node.output_types]
        if len(found) != len(types):
            raise InternalError(f"the module has {len(found)} results, but the node has {len(types)} outputs")
        for index, (row, dtype) in enumerate(zip(found, types, strict=True)):
            expected = self._set_shapes.get(index) or self._shapes()[index]
            if row is None or row[0] != dtype or not expected.is_compatible_with(TensorShape(row[1])):
                raise InternalError(
                    f"result {index} is {parts[index].shape}, but the output is {dtype} of the shape {expected}"
                )
        self.results = parts


def _config(opaque: bytes) -> str:
    """Return the configuration of a call; raise InvalidArgumentError unless it is text."""
    try:
        return opaque.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgumentError("the configuration of a call must be text in UTF-8") from None


def _register_target(name: str, function: int, library: Any) -> None:
    """Register a C function as a custom-call target; raise AlreadyExistsError if the name has another one."""
    if c_calls.is_registered(name):
        if c_calls.address(name) != function:
            raise AlreadyExistsError(f"the custom-call target {name!r} is another function", hint="choose another name")
        return
    c_calls.register(name, function, library)


class NativeXlaKernel(XlaOpKernel):
    """XLA kernel of a library."""

    def __init__(self, construction: OpKernelConstruction, row: NativeXlaKernelRow) -> None:
        super().__init__(construction)
        self.row = row
        props = construction.props
        self.node = NodeMemory(props.op_def, props.node_def.attr, self.name, self.device.name)

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Call the function `emit`, and set its results as outputs."""
        context = EmitContext(ctx, self)
        context.call(self.row.row.emit)
        if context.results is None:
            raise InternalError(f"the XLA kernel of {self.type_string} has emitted nothing", where=context.label)
        ctx.set_results(context.results)


def register_plugin_kernels(registry: XlaOpRegistry, rows: Sequence[NativeXlaKernelRow]) -> None:
    """Register the XLA kernels of libraries; one that conflicts with a kernel of cyxla is left out with a warning."""
    for row in rows:
        builder = XlaOpRegistrationBuilder(row.op)
        for attr, types in row.types.items():
            builder.type_constraint(attr, types)
        for name in row.constants:
            builder.compile_time_constant_input(name)
        try:
            registry.register(builder.build(partial(NativeXlaKernel, row=row)))
        except OpError as error:
            _LOG.warning("the XLA kernel of %s in a library is not registered: %s", row.op, error)


def load_plugin_kernels() -> None:
    """Register the pending XLA kernels of libraries."""
    register_plugin_kernels(XlaOpRegistry.global_(), XLA_KERNELS.take())
