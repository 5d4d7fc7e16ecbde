"""Compilation of graphs and functions to computations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import FunctionBody
from cyxla.core.graph.graph import Graph, Node
from cyxla.errors import InternalError, InvalidArgumentError, NotFoundError
from cyxla.gc_pause import fewer_collections
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult, Output, ResourceUpdate
from cyxla.tf2xla.const_analysis import BackwardsConstAnalysis
from cyxla.tf2xla.functions import dynamic_dimensions, joined, parts_of
from cyxla.tf2xla.graph_compiler import UNCOMPILABLE_OPS, GraphCompiler, eager_function, kernel_on
from cyxla.tf2xla.lib.tensor_list import XlaTensorList
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_backends import XLA_CPU_JIT
from cyxla.tf2xla.xla_context import XlaContext
from cyxla.tf2xla.xla_expression import ExpressionKind, XlaExpression
from cyxla.tf2xla.xla_op_kernel import Lowering, XlaOpKernel
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry
from cyxla.tf2xla.xla_resource import ResourceKind, XlaResource
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla

_MAX_LISTED_NODES = 20  # nodes in one message


@dataclass(frozen=True)
class XlaCompilerOptions:
    """Options of a compiler.

    Parameters
    ----------
    device_type : str
        Name of a compilation device, such as ``"XLA_CPU_JIT"``.
    library : FunctionLibraryDefinition
        Library of the functions that may be called.
    registry : XlaOpRegistry, optional
    kernels : KernelRegistry, optional
        Registries; the global ones by default.
    rewrite : callable, optional
        Function of the graph of a function, which it may change, and these options.
    """

    device_type: str
    library: FunctionLibraryDefinition
    registry: XlaOpRegistry = field(default_factory=XlaOpRegistry.global_)
    kernels: KernelRegistry = field(default_factory=KernelRegistry.global_)
    rewrite: Callable[[Graph, XlaCompilerOptions], object] | None = None


@dataclass(frozen=True)
class CompileOptions:
    """Options for compiling one graph.

    Parameters
    ----------
    resolve_constants : bool
        True if results known at compile time are kept out of the computation.
    return_all_resources : bool
        True if unmodified resources are returned as well.
    fake_param_shapes : tuple of (int, tuple of int)
        Shapes of results that are FakeParam nodes, by index.
    check_sizes : bool
        True if the computation returns whether sizes that are known only at run time agree; see `size_checks`.
    """

    resolve_constants: bool = True
    return_all_resources: bool = False
    fake_param_shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    check_sizes: bool = True


class XlaCompiler:
    """Compiles graphs and functions for one compilation device, caching functions by signature.

    Raises
    ------
    InvalidArgumentError
        The options have no device type.
    """

    def __init__(self, options: XlaCompilerOptions) -> None:
        if not options.device_type:
            raise InvalidArgumentError("XlaCompilerOptions names no device_type", hint=f'use "{XLA_CPU_JIT}"')
        self.options = options
        options.registry.register_compilation_kernels(options.kernels)
        self.device = DeviceBase(f"/job:localhost/replica:0/task:0/device:{options.device_type}:0", options.device_type)
        self.analysis = BackwardsConstAnalysis(options.library, options.registry)
        self._functions: dict[Any, CompilationResult] = {}
        self._kernels: dict[Any, XlaOpKernel] = {}
        self._rejections: dict[Any, str] = {}
        self._bodies: dict[Any, FunctionBody] = {}

    # Functions

    def body_of(self, function: NameAttrList) -> FunctionBody:
        """Return a function as a graph."""
        key = (function.name, _attrs_key(function.attrs))
        if key not in self._bodies:
            body = self.analysis.body_of(function)
            if self.options.rewrite is not None:
                self.options.rewrite(body.graph, self.options)
            self._bodies[key] = body
        return self._bodies[key]

    def compile_function(
        self, function: NameAttrList, args: Sequence[Argument], options: CompileOptions = CompileOptions()
    ) -> CompilationResult:
        """Compile a function of the library.

        Parameters
        ----------
        function : NameAttrList
        args : sequence of Argument
            Descriptions of the arguments.

        Raises
        ------
        NotFoundError
            The function does not exist.
        InvalidArgumentError
            A node cannot be compiled; the message names it.
        """
        key = (function.name, _attrs_key(function.attrs), tuple(arg.key for arg in args), options)
        if key not in self._functions:
            self._functions[key] = self.compile_graph(function.name, self.body_of(function).graph, args, options)
        return self._functions[key]

    # Graphs

    def compile_graph(
        self, name: str, graph: Graph, args: Sequence[Argument], options: CompileOptions = CompileOptions()
    ) -> CompilationResult:
        """Compile a graph whose ``_Arg`` and ``_Retval`` nodes are its arguments and results.

        Raises
        ------
        InvalidArgumentError
            A node has no kernel on the compilation device, or needs a constant that is not known.
        InternalError
            A node can never be compiled.
        """
        with fewer_collections():
            self.validate(name, graph)
            builder = XlaBuilder(_identifier(name))
            context = XlaContext(self, builder)
            if options.fake_param_shapes:
                shapes, fake_params = dict(options.fake_param_shapes), fake_params_of(graph)
                context.fake_param_shapes = {fake_params[k]: TensorShape(dims) for k, dims in shapes.items()}
            mapping = self._build_arguments(context, args)
            GraphCompiler(self, context, graph).compile()
            return self._build_computation(name, context, mapping, options)

    def validate(self, name: str, graph: Graph) -> None:
        """Check that all nodes can be compiled; one error lists all that cannot, with reasons.

        Raises
        ------
        InvalidArgumentError
            Nodes have no kernel on the compilation device.
        InternalError
            A node belongs to v1 control flow, or sends or receives.
        """
        rejected: list[tuple[Node, str]] = []
        for node in graph.nodes.values():
            if node.op in UNCOMPILABLE_OPS:
                raise InternalError(f"{node.op} cannot be inside of compiled code", node=node.name, op=node.op)
            reason = "" if graph.library.find(node.op) is not None else self._rejection(node)
            if reason:
                rejected.append((node, reason))
        if rejected:
            raise _rejection_error(name, self.options.device_type, rejected)

    def _rejection(self, node: Node) -> str:
        """Return the reason for which a node cannot be compiled, or an empty text; cached by kind of node."""
        key = _kind(node)
        if key not in self._rejections:
            try:
                self.options.kernels.find(self.options.device_type, node.node_def)
                self._rejections[key] = ""
            except NotFoundError as error:
                self._rejections[key] = error.message.splitlines()[0]
        return self._rejections[key]

    def kernel(self, node: Node) -> XlaOpKernel:
        """Return the XLA kernel of a node; stateless kernels are shared by nodes of one kind."""
        key = _kind(node)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = kernel_on(node, self.device, self.options.kernels)
            if isinstance(kernel, Lowering):
                self._kernels[key] = kernel
        kernel.name = node.name
        return kernel

    def eager_function(self, node: Node) -> Any:
        """Return the array function of the node's eager kernel, or None if it has none."""
        return eager_function(node, self.options.kernels)

    # Arguments

    def _build_arguments(self, context: XlaContext, args: Sequence[Argument]) -> tuple[int, ...]:
        """Create the parameters, and return the index of the argument of each."""
        mapping: list[int] = []

        def parameter(i: int, shape: Shape) -> XlaOp:
            mapping.append(i)
            return xla.parameter(context.builder, len(mapping) - 1, shape, f"arg{i}")

        for i, arg in enumerate(args):
            context.args.append(self._argument(context, i, arg, parameter))
        return tuple(mapping)

    def _argument(self, context: XlaContext, i: int, arg: Argument, parameter: Any) -> XlaExpression:
        if arg.kind is ArgumentKind.CONSTANT:
            return XlaExpression.constant(arg.value, arg.dtype)  # type: ignore[arg-type]
        if arg.kind is ArgumentKind.PARAMETER:
            shape = Shape.array(element_type(arg.dtype), tuple(arg.shape.as_list()))
            parts = [parameter(i, s) for s in (shape, *[Shape.array(ElementType.S32)] * len(arg.dynamic))]
            return XlaExpression.of(joined(parts, arg.dynamic), arg.dtype)
        if arg.kind is ArgumentKind.TENSOR_LIST:
            return XlaExpression.tensor_list(self._list_argument(context, i, arg, parameter))
        resource = self._resource_argument(i, arg, parameter)
        context.resources.append(resource)
        return XlaExpression.resource(resource)

    @staticmethod
    def _list_argument(context: XlaContext, i: int, arg: Argument, parameter: Any) -> XlaTensorList:
        if not arg.initialized:
            return XlaTensorList.empty(context.builder, arg.dtype, arg.size, None)
        buffer = parameter(i, Shape.array(element_type(arg.dtype), (arg.size, *arg.shape.as_list())))
        parts = [buffer, parameter(i, Shape.array(ElementType.S32))]
        if arg.inner_size >= 0:
            parts.append(parameter(i, Shape.array(ElementType.S32, (arg.size,))))
        return XlaTensorList.of((arg.dtype, arg.size, arg.inner_size), parts)

    @staticmethod
    def _resource_argument(i: int, arg: Argument, parameter: Any) -> XlaResource:
        kind = arg.resource_kind or ResourceKind.VARIABLE
        resource = XlaResource(kind, i, arg.name or f"arg{i}", arg.dtype, arg.shape, max_array_size=arg.size)
        if not arg.initialized:
            return resource
        sizes = arg.shape.as_list()
        shape = Shape.array(
            element_type(arg.dtype), tuple(sizes) if kind is ResourceKind.VARIABLE else (arg.size, *sizes)
        )
        resource.value = resource.initial_value = parameter(i, shape)
        if kind is ResourceKind.STACK:
            resource.pushed = parameter(i, Shape.array(ElementType.S32))
        for source in arg.gradients:
            value = parameter(i, shape)
            resource.gradients[source] = XlaResource(kind, -1, source, arg.dtype, arg.shape, value)
            resource.gradients[source].max_array_size = arg.size
        return resource

    # Results

    def _build_computation(
        self, name: str, context: XlaContext, mapping: tuple[int, ...], options: CompileOptions
    ) -> CompilationResult:
        """Build the result tuple: nonconstant results in order, resources in the order of their arguments, checks."""
        elements: list[XlaOp] = []

        def add_outputs(parts: Sequence[XlaOp]) -> tuple[int, ...]:
            elements.extend(parts)
            return tuple(range(len(elements) - len(parts), len(elements)))

        count = max(context.retvals, default=-1) + 1
        outputs = tuple(self._output(context, context.retvals[i], add_outputs, options) for i in range(count))
        updates = tuple(
            ResourceUpdate(
                r.arg_num, r.dtype, r.shape, add_outputs(r.parts()), r.is_modified, tuple(sorted(r.gradients))
            )
            for r in context.resources
            if r.is_initialized and (r.is_modified or options.return_all_resources)
        )
        checks = tuple(context.size_checks.checks) if options.check_sizes else ()
        if checks:
            elements.append(context.size_checks.vector())
        root = xla.tuple_(context.builder, elements)
        return CompilationResult(name, context.builder.build(root), mapping, outputs, updates, checks)

    @staticmethod
    def _output(context: XlaContext, value: XlaExpression, add_outputs: Any, options: CompileOptions) -> Output:
        if value.kind is ExpressionKind.RESOURCE:
            resource: XlaResource = value.value
            if resource.arg_num < 0:
                raise InvalidArgumentError(
                    f"the {resource.kind.value} {resource.name!r}, made inside, cannot be returned"
                )
            return Output(value.dtype, input_index=resource.arg_num)
        if value.kind is ExpressionKind.TENSOR_LIST:
            tensor_list: XlaTensorList = value.value
            if tensor_list.buffer is None:
                raise InvalidArgumentError("a tensor list with an unknown element shape cannot be returned")
            return Output(value.dtype, tuple_indices=add_outputs(tensor_list.parts()), tensor_list=tensor_list.kind)
        if options.resolve_constants:
            constant = value.value if value.is_constant else None
            if constant is not None:
                return Output(value.dtype, tuple(constant.shape), constant)
        dynamic = dynamic_dimensions(value)
        return Output(value.dtype, value.shape, tuple_indices=add_outputs(parts_of(context, value)), dynamic=dynamic)


def argument_for(array: np.ndarray[Any, Any], dtype: DataType, *, constant: bool) -> Argument:
    """Describe an array as an argument, constant or parameter."""
    shape = TensorShape(array.shape)
    if constant or array.dtype.hasobject:
        return Argument(ArgumentKind.CONSTANT, dtype, shape, array)
    return Argument(ArgumentKind.PARAMETER, dtype, shape)


def _rejection_error(name: str, device: str, rejected: Sequence[tuple[Node, str]]) -> InvalidArgumentError:
    """Return one error for all nodes of a graph that cannot be compiled."""
    lines = [f"node {node.name!r} ({node.op}): {reason}" for node, reason in rejected[:_MAX_LISTED_NODES]]
    lines += [f"and {len(rejected) - _MAX_LISTED_NODES} more"] if len(rejected) > _MAX_LISTED_NODES else []
    first = rejected[0][0]
    return InvalidArgumentError(
        f"graph {name!r} cannot be compiled for {device}: " + "; ".join(lines),
        node=first.name,
        op=first.op,
        hint='leave these nodes outside of the compiled region; jit="auto" does',
    )


def _kind(node: Node) -> Any:
    """Return a key that is equal for nodes that share a kernel; constants differ by type only."""
    if node.op == "Const":
        return (node.op, node.output_types[0])
    return (node.op, frozenset(node.attrs.items()), node.graph.versions.producer)


def _identifier(name: str) -> str:
    """Return a valid identifier of HLO text."""
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in name) or "graph"


def _attrs_key(attrs: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in attrs.items()))


def fake_params_of(graph: Graph) -> dict[int, str]:
    """Return the names of FakeParam nodes that are results of a graph, by index."""
    retvals = [node for node in graph.nodes.values() if node.op == "_Retval"]
    return {n.attr("index"): n.inputs[0].node.name for n in retvals if n.inputs[0].node.op == "FakeParam"}
